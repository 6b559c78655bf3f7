// Limits the number of descriptors of a node's processes (RLIMIT_NOFILE) and restores their previous limits.
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

// Manages the limits of one node. Not thread-safe.
class DescriptorLimits {
 public:
  // List returns the living processes of the node; Note adds a line for heal().
  using List = std::function<std::vector<pid_t>()>;
  using Note = std::function<Result<void>(const std::string& value)>;

  // Limits every process to `limit`; children inherit it. Without a limit, restores the limits of all processes.
  // Returns how many processes were changed for the first time. `once`: makes only one pass over the list, and may
  // therefore miss a process that is just being forked.
  [[nodiscard]] Result<std::size_t> apply(const List& list, std::optional<std::uint64_t> limit, const Note& note,
                                          bool once = false);
  // Without CAP_SYS_RESOURCE, a hard limit cannot be restored, so only the soft limit is lowered. A process can raise
  // its soft limit itself (Go's runtime and JVMs do so when they start), so apply() must be repeated.
  [[nodiscard]] static bool may_be_raised();

 private:
  struct Known {
    rlimit before{};
    rlimit set{};
  };
  enum class Change { none, first, again };
  Result<Change> change(pid_t pid, const List& list, std::optional<std::uint64_t> limit, const Note& note);
  std::map<std::pair<pid_t, std::uint64_t>, Known> known_;  // by process id and start time
  // The key is a limit that rose set; the value is what the process's limits were before. When limits are restored, a
  // child that inherited the limit from that process gets these earlier limits.
  std::map<rlim_t, rlimit> inherited_;
};

// Restores the limits from the notes of a killed rose. Returns how many processes were restored.
[[nodiscard]] std::size_t restore_descriptors(const std::vector<std::string>& notes);

}  // namespace rose::deploy
