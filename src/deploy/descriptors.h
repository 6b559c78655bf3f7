// How many descriptors a node's processes may have (RLIMIT_NOFILE), and what they were given before.
#pragma once

#include <sys/resource.h>
#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"

namespace rose::deploy {

// Of one node. Not safe for use by several threads at once.
class DescriptorLimits {
 public:
  // Now living processes, and what notes lines for heal().
  using List = std::function<std::vector<pid_t>()>;
  using Note = std::function<Result<void>(const std::string& value)>;

  // Every process may have at most `limit`; children inherit it. Nothing: all have again what they had. Returns how
  // many were changed for the first time. `once`: looks once, not until nobody is found any more.
  [[nodiscard]] Result<std::size_t> apply(const List& list, std::optional<std::uint64_t> limit, const Note& note,
                                          bool once = false);
  // Without CAP_SYS_RESOURCE a hard limit cannot be given back, so only the soft one is lowered. A process may raise
  // that itself (Go's runtime and JVMs do when they start): apply() has to be called again now and then.
  [[nodiscard]] static bool may_be_raised();

 private:
  struct Known {
    rlimit before{};
    rlimit set{};
  };
  enum class Change { none, first, again };
  Result<Change> change(pid_t pid, std::optional<std::uint64_t> limit, const Note& note);
  std::map<std::pair<pid_t, std::uint64_t>, Known> known_;  // by process and when it began
  std::map<rlim_t, rlimit> inherited_;  // by the limit that was set: what a child that has it would have had
};

// The notes of a rose that was killed. Returns how many processes were given back what they had.
[[nodiscard]] std::size_t restore_descriptors(const std::vector<std::string>& notes);

}  // namespace rose::deploy
