// schedule.toml: no input may crash the reader, and what it accepts must survive being written and read.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "schedule/schedule.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  auto schedule = rose::schedule::parse_schedule(text, "schedule.toml");
  if (!schedule) {
    if (schedule.error().message.rfind("schedule.toml:", 0) != 0) std::abort();
    return 0;
  }
  (void)rose::schedule::in_words(*schedule);
  auto again = rose::schedule::parse_schedule(rose::schedule::to_toml(*schedule, "comment\n\x01"), "written.toml");
  if (!again) std::abort();
  if (rose::schedule::fingerprint(*schedule) != rose::schedule::fingerprint(*again)) std::abort();
  for (auto* one : {&*schedule, &*again}) {
    for (auto& fault : one->faults) fault.line = 0;
    for (auto& event : one->events) event.line = 0;
  }
  if (!(*schedule == *again)) std::abort();
  return 0;
}
