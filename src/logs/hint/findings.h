// Shared by the finders of hints: the logs, what was found so far, and its weight. They run one after the other; a
// later one may change the weight of what an earlier one found.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string_view>
#include <vector>

#include "base/units.h"
#include "logs/hint/hint.h"
#include "logs/meaning.h"

namespace rose::logs {

// Weights (0..1) that more than one finder uses.
inline constexpr double kPlain = 1.0;   // the failure's own message names the error, or the signal
inline constexpr double kStood = 0.35;  // a gap
inline constexpr double kHushed =
    0.3;  // times this: a silence of all nodes, or one that began after a message stated the failure's cause
inline constexpr double kInPassing = 0.5;  // factor for messages below the level of warnings
inline constexpr double kEveryday = 0.2;   // times this: it is said throughout the log
inline constexpr double kUsual = 0.1;      // times this: runs without faults say so, too

inline constexpr std::int64_t kNoticed =
    8 * kSecond;  // after a node was paused or partitioned, others report that they miss it within this time
inline constexpr std::int64_t kRanOn = 300 * kSecond;  // a program that went on for so long has started well
inline constexpr std::int64_t kEarly = 3 * kSecond;    // a log that ends so long before the others' ends early

// One thing, however often it is reported.
struct Repeated {
  const Message* first = nullptr;
  const Message* last = nullptr;
  std::uint64_t count = 0;
  double weight = 0;
};

struct Findings {
  Findings(const Logs& failed, const Logs& sound, const Difference& between, const std::vector<NodeName>& nodes);

  [[nodiscard]] const NodeLog& node(std::size_t n) const { return failure.nodes[n]; }
  // Null if there is no log of this node.
  [[nodiscard]] const NodeLog* log_of(std::string_view name) const;
  // The same node's in the run without faults; null: there is none.
  [[nodiscard]] const NodeLog* usual(std::size_t n) const;
  [[nodiscard]] Meaning meaning(const Message& message) const { return read_meaning(failure.text(message)); }
  // The same, by the names of all nodes; node `n` writes it.
  [[nodiscard]] Meaning meaning(std::size_t n, const Message& message) const {
    return read_meaning(failure.text(message), &names_of_nodes_[n]);
  }
  // Null if messages of this kind are no observable.
  [[nodiscard]] const Observed* observed_as(std::size_t n, TemplateId kind) const;
  // There is a run without faults, and nothing in how the failure differs from it speaks of this kind.
  [[nodiscard]] bool is_usual(std::size_t n, TemplateId kind) const {
    return !normal.nodes.empty() && observed_as(n, kind) == nullptr;
  }

  // True if there is no run without faults, and messages of this kind occur from the beginning of the log to its end.
  [[nodiscard]] bool is_everyday(std::size_t n, TemplateId kind) const { return everyday_[n].contains(kind); }

  // Lines without a time stand behind the message before, whichever program wrote them: a program that ends says so on
  // the same output, behind what it always says. "" where runs without faults have lines behind messages of that kind
  // as well.
  [[nodiscard]] std::string_view text_behind(const Message& message) const;

  Hint& add(Hint::Kind kind, std::size_t n, const Message& message, double weight);
  // True if the message belongs to the start of a program that then ran on for minutes. A program that is well misses
  // files and peers then, too; what a fault that lasts causes is repeated later.
  [[nodiscard]] bool is_of_start(std::size_t n, const Message& message) const {
    return static_cast<std::size_t>(&message - node(n).messages.data()) < start_[n];
  }
  // It said all when it began, long before the logs end: that it says nothing any more tells nothing.
  [[nodiscard]] bool wrote_all_at_start(std::size_t n) const;
  // It does not listen yet, as it says itself.
  [[nodiscard]] bool starts(std::size_t n, std::int64_t ts_ns) const {
    return ts_ns != kNoTime && ts_ns < serves_from_[n];
  }
  // `of` is not up yet or stops, or `by` stops: that one misses the other says nothing of a fault.
  [[nodiscard]] bool misses_for_a_reason(std::size_t by, std::string_view of, std::int64_t ts_ns) const;

  // From its first message to its last one.
  Hint& add(Hint::Kind kind, std::size_t n, const Repeated& repeated, double belief);

  const Logs& failure;
  const Logs& normal;
  const Difference& difference;
  std::vector<NodeName> names;  // and what nodes call themselves
  std::vector<std::int64_t> stops,
      normal_stops;  // by node: from when on it stops in order, and does not begin again; kNoTime: it does not say so
  std::int64_t last_ns = kNoTime, normal_last_ns = kNoTime;  // the last message of all
  std::vector<Hint> hints;
  std::vector<std::size_t> silences;  // hints that nothing but a silence speaks for
  bool reunited = false;              // nodes that had been apart found each other again, by their own words
  bool at_debug = false;              // only what is said at the level of debugging is looked at

 private:
  std::vector<std::map<TemplateId, const Observed*>> observed_;  // by node
  std::vector<knowledge::NamesOfNodes> names_of_nodes_;          // by the node that writes
  void find_everyday();

  std::vector<std::set<TemplateId>> everyday_;  // by node
  std::set<TemplateId> with_lines_behind_;      // kinds of messages of runs without faults
  std::vector<std::int64_t> serves_from_;       // by node
  std::vector<std::size_t> start_;              // by node: messages of the start of a program that ran on
};

// How many of its messages belong to the start of a program that ran on for minutes; 0: it did not, or its log begins
// later than the program.
[[nodiscard]] std::size_t messages_of_start(const Logs& logs, const NodeLog& node);
// True if it began, by its own words, and said nothing any more soon after that.
[[nodiscard]] bool only_started(const Logs& logs, const NodeLog& node);

// When it began, and could be reached by others, by its own words; kNoTime: its log does not tell.
[[nodiscard]] std::int64_t serves_from(const Logs& logs, const NodeLog& node);

// Finds each end of node `n`, and each time when it was paused.
void find_ends(Findings& found, std::size_t n);
void find_gaps(Findings& found, std::size_t n);
void find_lone_stop(Findings& found);
void find_silent_one(Findings& found);
// Finds what its messages report, and their exceptions.
void find_reports(Findings& found, std::size_t n);
void find_thrown(Findings& found, std::size_t n);
// Compares all nodes: finds a node that was paused while the others missed it, and a role that moved from one node to
// another.
void find_missed(Findings& found);
void find_missed_ends(Findings& found);
void find_lost_roles(Findings& found);

// Whether its messages have times of their own.
[[nodiscard]] bool is_timed(const NodeLog& node);
// The first of the messages before an end that may tell why it came.
[[nodiscard]] std::size_t tail_of(std::size_t begin, std::size_t end);
// Whether they tell of an orderly stop.
[[nodiscard]] bool stops_in_order(const Logs& logs, const std::vector<NodeName>& names, const NodeLog& node,
                                  std::size_t begin, std::size_t end);
// The stop that they end with, by their times.
struct Stop {
  std::int64_t since_ns = kNoTime;  // kNoTime: they tell of none
  bool gave_up = false;             // because of a failure, by its own words: it was not asked to stop
};
[[nodiscard]] Stop last_stop(const Logs& logs, const std::vector<NodeName>& names, const NodeLog& node,
                             std::size_t begin, std::size_t end);

}  // namespace rose::logs
