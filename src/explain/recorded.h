// Compares what nodes recorded of themselves (librose-rr) in failing and correct runs: finds where a failing run's
// messages stop matching those of any correct run. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace rose::explain {

struct Input;

// A message, a random number or a time that a node received. There are many, so the caller keeps the texts.
struct RecordedMessage {
  std::int64_t ts_ns = 0;  // wall clock, to some milliseconds
  std::string_view node, key;
  std::string_view what;     // recorded_words()
  std::uint64_t record = 0;  // its number in `file`, starting at 1
  std::string_view file;     // "n1/recording.1.rr"
};
inline constexpr std::size_t kMostRecorded =
    20'000;  // of one node in one run; later ones are dropped, which is reported

// Describes arbitrary bytes: text with placeholders for what differs from run to run, other data by its size and
// beginning: "SET <*>", "at most 32 bytes, the first 6d".
[[nodiscard]] std::string recorded_words(std::string_view data);

struct RecordedDivergence {
  std::string node, key;
  std::string what;          // the message that failing runs receive there
  std::string instead;       // what the correct run that agrees longest receives there; "": nothing
  std::uint64_t alike = 0;   // messages of this key since the fault that a correct run received as well
  std::uint64_t record = 0;  // of `what`, in the run whose story is reported
  std::string file;
  std::int64_t at_ns = 0;              // since the workload began
  std::size_t failing = 0, sound = 0;  // runs that were compared
  double chance =
      // an upper bound of the probability that, of this many keys that differ from run to run, one separates the sides
      // by accident
      1;
};
// For each node at most one divergence: the earliest message that all failing runs received and no correct run did,
// after the same messages of the same key. There is none if chance alone would produce it in more than a fifth of all
// cases. The runs must be aligned. `words` receives one sentence for each thing that could not be determined, with the
// reason.
[[nodiscard]] std::vector<RecordedDivergence> recorded_divergences(const Input& input, std::vector<std::string>& words);

// "n1 takes ..." as a sentence.
[[nodiscard]] std::string divergence_words(const RecordedDivergence& divergence);

}  // namespace rose::explain
