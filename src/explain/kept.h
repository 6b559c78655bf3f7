// The data that `explain --report` keeps of its runs, so that they can be compared again, on another machine or by a
// newer rose. It is one file: a line with format and version, then values compressed by zstd with a checksum. It
// contains no path of the machine. Every file is treated as hostile: sizes, kinds and indices are checked before use.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/redact.h"
#include "base/result.h"
#include "explain/explain.h"

namespace rose::explain {

inline constexpr std::uint32_t kKeptVersion = 6;            // 1 to 5 are read, too
inline constexpr const char* kKeptFile = "explained.runs";  // the file's name in the folder of the report

struct Kept {
  std::string name, schedule_path, config_path;  // the name of the deployment, and the paths as the user gave them
  int runs = 0;                                  // number of runs that were made
  int reproduced = 0, missed = 0, inconclusive = 0;
  double seconds = 0;
  // True if there were failing and correct runs; `input` then contains them. Otherwise the report only says that such
  // runs are missing.
  bool comparable = false;
  Verdict verdict = Verdict::inconclusive;
  std::string reason;
  std::vector<std::string> limits;

  Input input;  // the argument of explain()
  // `input` also contains the runs of the rounds of --deepen.
  bool deepened = false;
  std::vector<std::string> own_questions;  // queries of the user
  std::vector<Round> rounds;
  std::string deepen_ended;
  // Calls taken from the runs. `calls`: calls of suspects that only failing runs enter. `lost_calls`: calls of suspects
  // that only correct runs enter. `outer_calls`: calls of the functions in `outer`.
  std::vector<Call> calls, outer_calls, lost_calls;
  std::vector<std::string> outer;
  std::vector<std::string> caller_limits;

  // The texts to which `input` refers after unpacking.
  struct Texts {
    std::set<std::string, std::less<>> pool;
    std::map<std::uint32_t, std::string> messages;
    std::map<std::pair<std::string, std::string>, Place> places;
  };
  std::shared_ptr<Texts> texts = std::make_shared<Texts>();
};

// The texts that pack() replaces.
struct Scrub {
  std::vector<std::pair<std::string, std::string>> prefixes;  // folders of this machine, and their replacements
  Redactor* redact = nullptr;
};

[[nodiscard]] Result<std::string> pack(const Kept& kept, const Scrub& scrub);
// Errors (input): the file is not of this kind, is damaged, or has an unknown version.
[[nodiscard]] Result<Kept> unpack(std::string_view bytes, std::string_view name);
// The values of a file without compression and checksum. The fuzzer changes these and unpacks the result.
struct Plain {
  std::uint32_t version = kKeptVersion;
  std::string bytes;
};
[[nodiscard]] Result<Plain> plain_of(std::string_view bytes, std::string_view name);
[[nodiscard]] Result<Kept> unpack_plain(std::string_view plain, std::string_view name,
                                        std::uint32_t version = kKeptVersion);

// Explains the kept runs. Changes `kept.input`.
[[nodiscard]] Explanation explain_kept(Kept& kept);
// Adds what the kept calls show about callers to an explanation. Its fresh_functions() and lost_functions() must be
// those whose callers were queried.
void add_all_callers(const Kept& kept, Explanation& explanation);

}  // namespace rose::explain
