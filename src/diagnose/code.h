// The places inside a function at which a fault can be injected. CodeMap is an interface, so that tests can supply
// scripted places; the real implementation reads the nodes' binaries.
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
  bool loop = false;  // the place is in a loop, so one call of the function may reach it very often
};

class CodeMap {
 public:
  virtual ~CodeMap() = default;
  // The places in `function` of the program that the node runs in the test deployment: system calls first, then other
  // calls, then other instructions. An error gives the reason why they are unknown, for example stripped symbols.
  [[nodiscard]] virtual Result<std::vector<CodePlace>> places(std::string_view node, std::string_view function) = 0;
};

// Describes each offset in the schedule's conditions by a sentence: "store+0x4f is where it calls write@plt.". Unknown
// offsets are left out. `code` may be nullptr; the result is then empty.
[[nodiscard]] std::vector<std::string> places_in_words(const schedule::Schedule& schedule, CodeMap* code);

}  // namespace rose::diagnose
