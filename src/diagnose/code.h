// The nodes' code as the search sees it: the places inside a function at which a fault can be injected. Behind an
// interface, so that tests can script it; the real implementation reads the nodes' binaries.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "schedule/schedule.h"

namespace rose::diagnose {

enum class PlaceKind { syscall, call, other };

struct CodePlace {
  std::uint64_t offset = 0;  // bytes from the function's entry
  PlaceKind kind = PlaceKind::other;
  std::string name;   // "write@plt", "Log::append", "ret"
  bool loop = false;  // one call of the function may reach it very often
};

class CodeMap {
 public:
  virtual ~CodeMap() = default;
  // The places in `function` in the node's build of the test deployment, best first: system calls, other calls, the
  // rest. An error gives the reason why nothing is known.
  [[nodiscard]] virtual Result<std::vector<CodePlace>> places(std::string_view node, std::string_view function) = 0;
};

// Describes the offsets that the schedule names, a sentence each: "store+0x4f is where it calls write@plt."; unknown
// offsets are left out. `code` may be nullptr.
[[nodiscard]] std::vector<std::string> places_in_words(const schedule::Schedule& schedule, CodeMap* code);

}  // namespace rose::diagnose
