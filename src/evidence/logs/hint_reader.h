// Converts the hints of the logs to observations, and collects what else the search needs. The functions are in
// from_logs.cc, process_hints.cc (ends, pauses and silences) and call_hints.cc (failed calls, limits, exceptions and
// clocks).
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "evidence/evidence.h"
#include "evidence/logs/case.h"
#include "evidence/logs/dump_cover.h"
#include "evidence/logs/source.h"
#include "logs/evidence.h"

namespace rose::evidence {

// assumed time, in ns, between a message in which a program reports its own end, and that end
inline constexpr std::int64_t kMessageToEnd = 1'000'000;

class HintReader {
 public:
  HintReader(Evidence& inputs, const logs::Evidence& evidence, const trace::Trace* control, bool dumps_explain)
      : inputs_(inputs),
        case_(inputs, evidence, control),
        dumps_(inputs, case_),
        with_dumps_(inputs.recorded()),
        dumps_explain_(dumps_explain),
        out_(case_) {}

  void build();

 private:
  // Finds out how soon nodes are restarted, if several nodes were restarted. Assumption: one supervisor restarts all
  // nodes, always after the same delay. Then this delay is at most the shortest time between the last message of a
  // process and the first message of the next process of its node. A node that was silent for longer was therefore
  // still running at the beginning of its silence.
  void find_restart_delay();
  // True for an end whose only evidence is that the same log later contains another start of the node.
  [[nodiscard]] bool between_lives(const logs::Hint& hint) const;

  // The node on which the failure occurred: the node that logged the message, unless the message reports a peer's
  // error. Then the message contains the peer's name and a path of the peer: `peer=n2 error="write /srv/n2/data/x:
  // ..."`.
  [[nodiscard]] std::string failing_node(const logs::Hint& hint) const;

  // Adds the observations that one hint suggests, with less weight if the dumps make them unlikely.
  void add(const logs::Hint& hint);

  // Adds a hint from a log of an unknown node. If the deployment has few nodes, the hint is added for each node except
  // the node that the message is about.
  void add_of_some_node(const logs::Hint& hint);

  // `since`: see Origin::since_ns.
  static Origin origin_of(const logs::Hint& hint, double weight, bool inferred, std::int64_t since = 0);

  // Adds the end of a process, and the start of the next one if the logs show it.
  void add_end(const logs::Hint& hint, const std::string& node, double weight);

  // The latest time at which the process may have ended.
  [[nodiscard]] std::int64_t gone_at(const logs::Hint& hint, const std::string& node) const;

  Observation start(const std::string& node, std::int64_t ts);

  // True if messages report that the node's machine closed or refused connections at `ts` or later, or that the process
  // ended. The machine of a paused process would have accepted the connections.
  [[nodiscard]] bool refused_since(const std::string& node, std::int64_t ts) const;

  // A node that logs nothing more has ended or is paused. If the deployment restarts the node, an end is less likely,
  // because the new process would have logged its start.
  void add_early_end(const logs::Hint& hint, const std::string& node, double weight);

  void add_stop(const logs::Hint& hint, const std::string& node, double weight);

  void put_stop(const std::string& node, std::int64_t since, std::int64_t until, unsigned flags, Origin origin);

  void add_silence(const logs::Hint& hint, const std::string& node, double weight);

  // Adds a failed call for each system call and file that the message may mean. The most likely call comes first; each
  // further call has less weight.
  void add_call(const logs::Hint& hint, const std::string& node, double weight);

  void add_limit(const logs::Hint& hint, const std::string& node, double weight);

  // Files that the node created or changed in the control run, or on which it made `call`. The files that it used
  // shortly before `ts` come first.
  [[nodiscard]] std::vector<std::string> files_near(const std::string& node, std::int64_t ts,
                                                    std::string_view call) const;

  // Adds an exception. The weights of other candidates stay the same, because the exception is either the cause or a
  // consequence of one of these candidates. An exception that a peer threw and sent may come from any other node; the
  // survey shows which nodes reach the code that throws it.
  void add_exception(const logs::Hint& hint, const std::string& node);

  // How often the node had entered the method in the control run by the time that corresponds to `ts`.
  [[nodiscard]] std::uint64_t visits(const std::string& node, const std::string& function, std::int64_t ts) const;

  // Adds a clock step that the timestamps of a log show. It is added even if there are dumps, because dumps do not
  // contain the clock values that a process reads.
  void set_clock(const logs::ClockJump& jump);

  // Adds a wrong clock that a message reports. It is added even if there are dumps, because the dump of one host does
  // not show how its clock differs from those of other hosts.
  void add_clock(const logs::Hint& hint, const std::string& node);

  // Collects notes for the user: what could not be used, and which faults are tried although no message mentions them.
  void notes();

  // Passes the observables to the search, with a quote of each observable whose meaning is known.
  void observables();

  Evidence& inputs_;
  const LogCase case_;
  const DumpCover dumps_;
  const bool with_dumps_;     // there are dumps, which provide sites and contexts
  const bool dumps_explain_;  // see add_logs()
  LogSource out_;
  std::int64_t restart_delay_ = 0;  // a restarted node was down for at most this long, in ns; 0: unknown
  std::set<std::string> alive_;     // nodes for which a start was added because a child process of theirs ended
  std::uint64_t without_node_ = 0;
  std::uint64_t without_file_ = 0;    // errors whose file neither the message nor a control run shows
  std::uint64_t without_method_ = 0;  // exceptions for which the deployment has no method that could throw them
};

}  // namespace rose::evidence
