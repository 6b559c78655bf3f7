// The state that the finders of hints share: the logs, the hints found so far, and common weights. The finders run one
// after the other. A later finder may change the weights of earlier hints.
#pragma once

#include <algorithm>
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

// Weights and factors (0..1) that more than one finder uses.
inline constexpr double kExplicit = 1.0;  // the message of the failure itself names the error or the signal
inline constexpr double kLogGap = 0.35;   // the node logs nothing for an unusually long time
// Factor for a silence if all nodes are silent at that time, or if a message before it states the cause of the failure.
inline constexpr double kExplainedSilence = 0.3;
inline constexpr double kLowLevel = 0.5;    // factor: the message has the level "info", "debug" or "trace"
inline constexpr double kThroughout = 0.2;  // factor: the message occurs throughout the log
inline constexpr double kAlsoNormal = 0.1;  // factor: the message also occurs in runs without faults

// If a node was paused or partitioned, the other nodes report within this time that they miss it.
inline constexpr std::int64_t kNoticeTime = 8 * kSecond;
inline constexpr std::int64_t kLongRun = 300 * kSecond;  // a program that runs for this long has started successfully
inline constexpr std::int64_t kEarlyEnd = 3 * kSecond;   // a log ends early if it ends this much before the others
// a program reports its start in one of its first messages, at most this many
inline constexpr std::size_t kBannerMessages = 12;

// A fact, and the messages that report it.
struct Repeated {
  const Message* first = nullptr;
  const Message* last = nullptr;
  std::uint64_t count = 0;
  double weight = 0;
};

struct Findings {
  Findings(const Logs& failed, const Logs& sound, const Difference& between, const std::vector<NodeName>& nodes);

  [[nodiscard]] const NodeLog& node(std::size_t n) const { return failure.nodes[n]; }
  // The log of this node; null if there is none.
  [[nodiscard]] const NodeLog* log_of(std::string_view name) const;
  // The log of the same node in the run without faults; null if there is none.
  [[nodiscard]] const NodeLog* normal_log(std::size_t n) const;
  // What a message reports. Does not recognise the names of nodes.
  [[nodiscard]] Meaning meaning(const Message& message) const { return read_meaning(failure.text(message)); }
  // What a message of node `n` reports. Recognises the names of all nodes.
  [[nodiscard]] Meaning meaning(std::size_t n, const Message& message) const {
    return read_meaning(failure.text(message), &names_of_nodes_[n]);
  }
  // Null if this kind of message is no observable.
  [[nodiscard]] const Observed* observed_as(std::size_t n, TemplateId kind) const;
  // True if a run without faults shows that messages of this kind are normal. They are then no observable.
  [[nodiscard]] bool is_normal(std::size_t n, TemplateId kind) const {
    return !normal.nodes.empty() && observed_as(n, kind) == nullptr;
  }

  // True if messages of this kind occur throughout the node's log. Always false if there is a run without faults: then
  // is_normal() is the better test.
  [[nodiscard]] bool occurs_throughout(std::size_t n, TemplateId kind) const { return throughout_[n].contains(kind); }

  // A time in which the node was down because it was stopped in an orderly way and then started again. It includes what
  // the node's peers notice shortly before and after.
  struct Restart {
    const Message* stop = nullptr;
    std::int64_t begin = kNoTime, end = kNoTime;
  };
  [[nodiscard]] bool is_restarted(std::size_t n, std::int64_t ts_ns) const;
  [[nodiscard]] const std::vector<Restart>& restarts(std::size_t n) const { return restarts_[n]; }

  // Like occurs_throughout(), in the logs of all nodes; false if there is only one node. A fault rarely hits all nodes
  // all the time.
  [[nodiscard]] bool occurs_throughout_all(TemplateId kind) const {
    return throughout_.size() > 1 &&
           std::ranges::all_of(throughout_, [&](const std::set<TemplateId>& kinds) { return kinds.contains(kind); });
  }

  // The lines without a timestamp that follow the message. They need not belong to the message: a program that ends
  // may report the reason in lines without a timestamp, which then follow one of its usual messages. "" if such lines
  // follow messages of this kind in runs without faults, too, or if there is no such run.
  [[nodiscard]] std::string_view following_lines(const Message& message) const;

  Hint& add(Hint::Kind kind, std::size_t n, const Message& message, double weight);
  // True if the message belongs to the start of a program that then ran for minutes. While such a program starts, it
  // also misses files and peers, which is no evidence: if a lasting fault is the reason, its effect is logged again
  // later.
  [[nodiscard]] bool belongs_to_start(std::size_t n, const Message& message) const {
    return static_cast<std::size_t>(&message - node(n).messages.data()) < start_[n];
  }
  // True if the node logged only its start and then ran for a long time, so that its silence is no evidence.
  [[nodiscard]] bool logged_only_start(std::size_t n) const;
  // True if, according to its log, the node does not accept connections yet at this time.
  [[nodiscard]] bool is_starting(std::size_t n, std::int64_t ts_ns) const {
    return ts_ns != kNoTime && ts_ns < serves_from_[n];
  }
  // True if `of` has not started yet or is stopping, or if `by` is stopping. Then no fault is needed to explain that
  // `by` misses `of`.
  [[nodiscard]] bool has_expected_absence(std::size_t by, std::string_view of, std::int64_t ts_ns) const;

  // Adds a hint that lasts from the first message that reports the fact to the last one. Its weight is `belief` times
  // the weight of the fact.
  Hint& add(Hint::Kind kind, std::size_t n, const Repeated& repeated, double belief);

  const Logs& failure;
  const Logs& normal;
  const Difference& difference;
  std::vector<NodeName> names;     // including the ids and endpoints that nodes state as their own
  std::vector<NodeName> numbered;  // `names`, and the words by which messages mention nodes by number
  // Indexed by node: the time at which the node's final orderly stop began. kNoTime: the node does not stop, or starts
  // again.
  std::vector<std::int64_t> stops, normal_stops;
  std::int64_t last_ns = kNoTime,
               normal_last_ns = kNoTime;  // the time of the last message of all nodes
  std::vector<Hint> hints;
  std::vector<std::size_t> silences;  // indices of hints whose only evidence is that a log is silent
  bool divided = false;               // some message reports that nodes on both sides of a partition run
  bool reunited = false;              // some message reports that partitioned nodes are connected again
  bool everything = false;            // messages that occur throughout the logs of all nodes are read, too
  bool debug_only = false;            // only messages with the level "debug" are read; see NodeReports

 private:
  std::vector<std::map<TemplateId, const Observed*>> observed_;  // indexed by node
  std::vector<knowledge::NamesOfNodes> names_of_nodes_;          // indexed by the node that logs the message
  void find_throughout();
  void find_restarts(std::size_t n);

  std::vector<std::set<TemplateId>> throughout_;  // indexed by node
  std::vector<std::vector<Restart>> restarts_;    // indexed by node
  // kinds of messages that, in runs without faults, are followed by lines without a timestamp
  std::set<TemplateId> with_following_lines_;
  std::vector<std::int64_t> serves_from_;  // indexed by node; serves_from() of each
  std::vector<std::size_t> start_;         // indexed by node; messages_of_start() of each
};

// The number of messages that belong to the start of a program which then ran for minutes. 0 if the program ended
// earlier, or if the log does not begin with its start.
[[nodiscard]] std::size_t messages_of_start(const Logs& logs, const NodeLog& node);
// True if the program logged its start, and nothing after the first minute of its log.
[[nodiscard]] bool logs_only_start(const Logs& logs, const NodeLog& node);

// The time at which the program logs that it accepts connections, if the log begins with the program's start. Otherwise
// kNoTime.
[[nodiscard]] std::int64_t serves_from(const Logs& logs, const NodeLog& node);

// Adds a hint for each time that the process of node `n` ended, and for each gap in its log.
void find_ends(Findings& found, std::size_t n);
void find_gaps(Findings& found, std::size_t n);
void find_lone_stop(Findings& found);
void find_silent_node(Findings& found);
// Adds hints for what the node's messages report, and for the exceptions in these messages.
void find_reports(Findings& found, std::size_t n);
void find_thrown(Findings& found, std::size_t n);
// Compares all nodes. Finds nodes that were paused or ended while others missed them, and roles that moved from one
// node to another.
void find_missed(Findings& found);
void find_missed_ends(Findings& found);
void find_lost_roles(Findings& found);

// True if the messages have timestamps of their own.
[[nodiscard]] bool is_timed(const NodeLog& node);
// True if the gap in the log before message `after` is far longer than all other gaps.
[[nodiscard]] bool is_unusual_gap(const NodeLog& log, std::size_t after);
// The index of the first of the messages before `end` that may state the cause of an end.
[[nodiscard]] std::size_t tail_of(std::size_t begin, std::size_t end);
// True if the last messages before `end` report an orderly stop.
[[nodiscard]] bool stops_in_order(const Logs& logs, const std::vector<NodeName>& names, const NodeLog& node,
                                  std::size_t begin, std::size_t end);
// The stop that the last messages report. The messages of one stop follow each other closely in time.
struct Stop {
  std::int64_t since_ns = kNoTime;  // kNoTime: the last messages report no stop
  bool gave_up = false;  // the messages say that the node stops because of a failure, and not because it was asked to
};
[[nodiscard]] Stop last_stop(const Logs& logs, const std::vector<NodeName>& names, const NodeLog& node,
                             std::size_t begin, std::size_t end);

}  // namespace rose::logs
