// Compares the recordings that nodes made of themselves (librose-rr) in failing and correct runs. Finds where a failing
// run's messages stop matching those of any correct run. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace rose::explain {

struct Input;

// A message, a random number or a time that a node received. There are many, so they refer to texts that the caller
// keeps. `key`: the key under which the program recorded it, which names the source of such messages ("peer/2").
struct RecordedMessage {
  std::int64_t ts_ns = 0;  // wall clock, exact to some milliseconds
  std::string_view node, key;
  std::string_view what;     // recorded_words()
  std::uint64_t record = 0;  // number of the record in `file`, starting at 1
  std::string_view file;     // "n1/recording.1.rr"
};
// the largest number of messages of one node in one run; later ones are dropped, and the report says so
inline constexpr std::size_t kMostRecorded = 20'000;

// Describes arbitrary bytes. Text is shown with placeholders for what differs from run to run ("SET <*>"), other data
// by its size and first byte ("at most 32 bytes, the first 6d").
[[nodiscard]] std::string recorded_words(std::string_view data);

struct RecordedDivergence {
  std::string node, key;
  std::string what;          // the message that failing runs receive there
  std::string instead;       // what the correct run that agrees longest receives there; "": nothing
  std::uint64_t alike = 0;   // number of this key's messages since the fault that this correct run also received
  std::uint64_t record = 0;  // number of the record of `what`, in the run whose story is reported
  std::string file;
  std::int64_t at_ns = 0;              // since the workload began
  std::size_t failing = 0, sound = 0;  // runs that were compared
  // an upper bound of the probability that one of the keys that differ from run to run separates the sides by chance
  double chance = 1;
};
// A divergence is a message of one key: all failing runs received it after the same messages of this key, and no
// correct run did. Returns at most one for each node, the earliest; none if a divergence by chance alone has a
// probability above one fifth. The runs must be aligned. For each thing that could not be determined, `words` receives
// a sentence with the reason.
[[nodiscard]] std::vector<RecordedDivergence> recorded_divergences(const Input& input, std::vector<std::string>& words);

// The divergence as a sentence: "n1 takes ...".
[[nodiscard]] std::string divergence_words(const RecordedDivergence& divergence);

}  // namespace rose::explain
