// The point from which the recordings of failing and of correct runs differ.
#include <catch2/catch.hpp>

#include "base/units.h"
#include "explain/explain.h"
#include "explain/recorded.h"

using namespace rose;
using namespace rose::explain;

namespace {

Run run(Group group, std::vector<RecordedMessage> recorded) {
  Run run;
  run.group = group;
  run.cut_ns = 100 * kMillisecond;
  run.recorded = std::move(recorded);
  return run;
}
RecordedMessage message_at(int ms, const char* key, const char* what, std::uint64_t record, const char* node = "n1") {
  return {ms * kMillisecond, node, key, what, record, "n1/recording.1.rr"};
}

// The runs differ before the fault, which does not matter. After the fault, they receive the same messages, except for
// the last one, which is `third` in failing runs. Recorded times lag behind by some milliseconds.
Input input_of(int failing, int sound, const char* third) {
  Input input;
  for (int i = 0; i < failing; ++i)
    input.runs.push_back(
        run(Group::failing,
            {message_at(50, "client/1", i % 2 == 0 ? "x" : "y", 1),
             message_at(i == 0 ? 92 : 110, "client/1", "GET <*>", 2), message_at(115 + i, "client/2", "PING", 3),
             message_at(120, "client/1", "SET <*>", 4), message_at(130, "client/1", third, 5)}));
  for (int i = 0; i < sound; ++i)
    input.runs.push_back(
        run(Group::sound, {message_at(60, "client/1", "z", 1), message_at(111, "client/1", "GET <*>", 2),
                           message_at(118 - i, "client/2", "PING", 3), message_at(121, "client/1", "SET <*>", 4),
                           message_at(131, "client/1", "GET <*>", 5)}));
  return input;
}

}  // namespace

TEST_CASE("recordings diverge at the first message that only failing runs received") {
  std::vector<std::string> words;
  const auto parts = recorded_divergences(input_of(3, 3, "MOVE <*>"), words);
  CHECK(words.empty());
  REQUIRE(parts.size() == 1);
  const RecordedDivergence& at = parts.front();
  CHECK(at.node == "n1");
  CHECK(at.key == "client/1");
  CHECK(at.what == "MOVE <*>");
  CHECK(at.instead == "GET <*>");
  CHECK(at.alike == 2);
  CHECK(at.record == 5);
  CHECK(at.at_ns == 130 * kMillisecond);
  CHECK(at.chance == Approx(1.0 / 20));
  CHECK(
      divergence_words(at) ==
      "after 2 from 'client/1' that a correct run takes as well, n1 takes MOVE <*> from 'client/1', where the "
      "nearest correct run takes GET <*> (record 5 of n1/recording.1.rr; all 3 failing runs, none of 3 correct ones)");
}

TEST_CASE("recordings without a divergence and too few recordings are reported as such") {
  std::vector<std::string> words;
  CHECK(recorded_divergences(input_of(3, 3, "GET <*>"), words).empty());
  CHECK(words ==
        std::vector<std::string>{"recordings of n1: no message distinguishes all failing from all correct runs"});
  words.clear();
  // One of the correct runs received the message, too.
  Input input = input_of(3, 3, "MOVE <*>");
  input.runs.back().recorded.back().what = "MOVE <*>";
  CHECK(recorded_divergences(input, words).empty());
  CHECK(words.size() == 1);
  words.clear();
  CHECK(recorded_divergences(input_of(1, 3, "MOVE <*>"), words).empty());
  CHECK(words ==
        std::vector<std::string>{"recordings of n1 are not compared: 1 failing and 3 correct runs have one that "
                                 "reaches back to the fault, 2 of each are needed"});
  words.clear();
  // If the window begins only after the fault, the recording lacks what came first.
  input = input_of(2, 2, "MOVE <*>");
  for (Run& each : input.runs) {
    std::erase_if(each.recorded, [](const RecordedMessage& message) { return message.ts_ns < 112 * kMillisecond; });
    each.recorded_late.insert("n1");
  }
  CHECK(recorded_divergences(input, words).empty());
  CHECK(words.size() == 1);
  words.clear();
  // Many keys differ in every run, and one of them happens to separate failing from correct runs.
  input = input_of(2, 2, "MOVE <*>");
  for (std::size_t i = 0; i < input.runs.size(); ++i)
    input.runs[i].recorded.push_back(
        message_at(140, i % 2 == 0 ? "peer/1" : "peer/2", "at most 32 bytes, the first 6d", 6));
  CHECK(recorded_divergences(input, words).empty());
  REQUIRE(words.size() == 1);
  CHECK(words.front().find("may be chance") != std::string::npos);
  words.clear();
  Input bare;
  bare.runs.push_back(run(Group::failing, {}));
  CHECK(recorded_divergences(bare, words).empty());
  CHECK(words.empty());
}

TEST_CASE("recorded data is printed as text, or else as its size and beginning") {
  CHECK(recorded_words("").find("nothing") == 0);
  CHECK(recorded_words("SET counter 17\n") == recorded_words("SET counter 4\n"));
  CHECK(recorded_words("SET counter 17\n") != recorded_words("GET counter 17\n"));
  CHECK(recorded_words(std::string_view("\x01\0\0", 3)) == "3 bytes");
  CHECK(recorded_words(std::string(30, '\x6d') + '\0') == "at most 32 bytes, the first 6d");
}
