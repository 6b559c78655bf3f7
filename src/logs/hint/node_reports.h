// Reads what the messages of one node report, and adds the hints that follow. Its functions are in node_reports.cc
// (reading) and node_hints.cc (hints).
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "logs/hint/findings.h"
#include "logs/hint/reports.h"

namespace rose::logs {

// Factors of a hint's weight if the message does not name the missing peer. With two nodes, the peer is the other node
// or a client. With more nodes, it may be any of them.
inline constexpr double kUnnamedOfTwo = 0.4, kUnnamedOfSeveral = 0.25;

// Collects the facts that the messages of one node report.
class NodeReports {
 public:
  NodeReports(Findings& found, std::size_t n) : found_(found), n_(n), here_(found.node(n)) {}

  void read();
  void add_hints();

 private:
  // What the messages of one kind report.
  struct Kind {
    std::uint64_t times = 0;
    bool reports = false;
    Meaning meaning;    // the meaning of the last message of this kind that was read
    std::string other;  // the node that the message is about
  };

  // True if the error occurred on the mentioned node, which sent it in its answer.
  [[nodiscard]] static bool is_of_other(const Kind& kind) { return kind.meaning.of_peer && !kind.other.empty(); }
  // Reads the lines without a timestamp that follow the message. Returns the failed call that they report, if there is
  // one.
  std::optional<FailedCall> read_following_lines(const Message& message);
  // Reads the message. Returns true if the next message was read as a part of it.
  bool read_message(const Message& message, Kind& kind);
  [[nodiscard]] bool reports_nothing(const Message& message, const Meaning& meaning) const;
  [[nodiscard]] bool misses_at_debug(const Message& message, const Kind& kind) const;
  void keep(const Message& message, const Kind& kind, const std::optional<FailedCall>& following_call);
  void keep_failure(const Message& message, const Kind& kind, double weight,
                    const std::optional<FailedCall>& following_call);
  void keep_missing(const Message& message, const Kind& kind, double weight);
  void keep_suspension(const Message& message, const Kind& kind, double weight);
  void keep_clock(const Message& message, const Kind& kind, double weight);
  void add_refusal(const std::string& other, const Report& report, bool unnamed);
  [[nodiscard]] bool follows_an_end(const Report& report) const;
  void add_unresolved();
  void add_last_end();
  void add_outcast();
  void add_standstill();
  void add_suspensions();
  [[nodiscard]] bool is_usual_pause() const;
  [[nodiscard]] bool lives_on_after(const Message& message) const;
  void add_processes();
  void add_clocks();
  void add_slow_disk();

  Findings& found_;
  std::size_t n_;
  const NodeLog& here_;
  std::map<FailedCall, Report> calls_;
  std::map<std::pair<std::string, FailedCall>, Report> calls_of_others_;  // key: the node that made the call
  std::map<std::pair<Operation, std::string>, Report> in_vain_;           // key: operation and path
  std::map<std::string, Report> peers_, refusing_, unnamed_;              // key: the missing peer; "": unknown
  std::set<std::string> answered_;                                        // peers in peers_ whose machine answered
  std::map<std::pair<std::string, int>, Report> processes_;               // key: node, and signal or 1000 + exit code
  // Key: the node whose clock is wrong, or differs from the writer's; "": unknown.
  std::map<std::string, Report> clocks_;
  Report longest_;                           // the longest pause that the node reports
  std::map<std::string, Report> suspended_;  // key: the node that this node, a manager, suspended
  std::unordered_map<TemplateId, std::vector<std::int64_t>> pauses_;
  Report cut_off_;                         // the node's own network interface is down
  Report outcast_;                         // the node was excluded from the cluster
  Report torn_, unclean_;                  // data or marks left by a previous process that did not shut down cleanly
  Report unresolved_;                      // the first name that was not resolved
  std::set<std::string> names_looked_up_;  // the nodes whose names were not resolved
  // The slowest disk operation. Key: the node that the message names besides the writer; "": none.
  std::map<std::string, Report> slowest_;
  std::uint64_t following_lines_read_ = 0;
};

}  // namespace rose::logs
