// The work of extract.h, one class over several files: what it has learnt of the dumps so far (causes,
// ends, silences) explains what it looks at next. Inside this room only.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <map>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "diagnose/extract.h"
#include "diagnose/forms.h"
#include "diagnose/network.h"
#include "base/units.h"
#include "diagnose/words.h"

namespace rose::diagnose {

using trace::Event;
using trace::EventType;
using trace::ProcessState;

inline constexpr std::int64_t kMs = 1'000'000;
inline constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max() / 2;
inline constexpr std::int64_t kHeartbeat = 2 * kSecond;       // a silence begins at the last packet before its cause: so much earlier at most

enum class CauseKind { killed, ended_itself, paused, planned, cut };

// Something that explains what comes after it.
struct Cause {
  CauseKind kind = CauseKind::killed;
  int node = -1;
  std::vector<int> peers;  // cut: empty means all
  std::int64_t start = 0;
  std::int64_t end = 0;    // of its direct effect: back again, resumed, healed
  std::string words;       // "n1 was killed"
  bool partly = false;     // other processes of the node lived on
  std::int64_t gone = 0;   // it ended itself: when what decides had ended, after others

  [[nodiscard]] bool concerns(int a, int b) const {
    if (kind != CauseKind::cut) return node == a || node == b;
    const auto among = [&](int x) { return x >= 0 && (peers.empty() || std::find(peers.begin(), peers.end(), x) != peers.end()); };
    return (a == node && (b < 0 || among(b))) || (b == node && (a < 0 || among(a)));
  }
};

// Which of many spans still last at a time: those that ended before are passed over.
class Lasting {
 public:
  Lasting() = default;
  explicit Lasting(const std::vector<std::int64_t>& ends) : size_(ends.size()) {
    while (leaves_ < size_) leaves_ *= 2;
    latest_.assign(2 * leaves_, std::numeric_limits<std::int64_t>::min());
    std::copy(ends.begin(), ends.end(), latest_.begin() + static_cast<std::ptrdiff_t>(leaves_));
    for (std::size_t i = leaves_ - 1; i > 0; --i) latest_[i] = std::max(latest_[2 * i], latest_[2 * i + 1]);
  }
  // The first from `from` on that ends at `ts` or later; as many as there are when there is none.
  [[nodiscard]] std::size_t next(std::size_t from, std::int64_t ts) const {
    if (from >= size_) return size_;
    std::size_t at = leaves_ + from;
    while (latest_[at] < ts) {
      while ((at & 1) != 0) at /= 2;  // the last of its pair: on to the next pair
      if (at == 0) return size_;
      ++at;
    }
    while (at < leaves_) {
      at *= 2;
      if (latest_[at] < ts) ++at;
    }
    return std::min(at - leaves_, size_);
  }

 private:
  std::size_t size_ = 0;
  std::size_t leaves_ = 1;
  std::vector<std::int64_t> latest_;  // a tree: the latest end below each
};

struct ProcessEvent {
  const Event* event = nullptr;
  int node = -1;
  int signal = 0;          // that ended it; 0: exited
  int exit_code = -1;
  bool main = false;
  bool main_known = false; // some event of the node says which process is the main one
  std::uint64_t weight = 1;
};

struct Peer {
  int node = NodeMap::kNone;
  int port = 0;            // 0: ephemeral or unknown
  std::uint32_t id = 0;    // of its text in the group key
  std::string address;
};

// A call between two nodes.
struct Contact {
  const Event* event = nullptr;
  int from = -1;
  int to = -1;
  double plain = 0;  // how plainly its error says that the network between was cut; 0: they did reach each other
  bool out = false;  // what is sent does not leave; what comes may still come
};

class Interner;  // these three: failed_calls.h
struct ScfGroup;
struct Failure;

class Extractor {
 public:
  Extractor(const Inputs& inputs, const NodeMap& nodes, std::int64_t longest_ns, Plan& plan)
      : inputs_(inputs), nodes_(nodes), longest_ns_(longest_ns), plan_(plan), config_(*inputs.config) {
    for (const config::Node& node : config_.nodes)
      if (node.ready && node.ready->tcp) service_ports_.insert(*node.ready->tcp);
  }

  void run();

 private:

  void times();

  std::string at(std::int64_t ts) const;
  // What a log says of the event; nullptr when it comes from a dump.
  const Said::Of* said(const Event& event) const;
  // Tells of the message behind a candidate, and believes it as far as the message goes.
  void from_log(Candidate& candidate, const Event& event) const;

  // --- bookkeeping

  void note(std::string text) { plan_.notes.push_back(std::move(text)); }
  void discard(std::string_view why, std::uint64_t events);
  static std::uint64_t weight_of(const Event& event) { return std::max<std::uint32_t>(1, event.count); }
  const std::string& name(int node) const { return nodes_.name(node); }

  // Short enough for the schedule's file form, whatever the node is called.
  std::string unique_id(std::string base);
  Candidate& add(FaultKind kind, int node, Fault fault, std::uint64_t count, std::int64_t ts);
  [[nodiscard]] std::int64_t pause_threshold() const;    // of the dump; else the configuration's
  [[nodiscard]] std::int64_t network_threshold() const;

  // --- one walk over all events: counts, and the few that are not SCF

  void collect();

  static std::string stranger(const std::string& host);

  std::int64_t back_after(int node, std::int64_t ts) const;

  // --- processes: extract_processes.cc

  // Ends that the fault-free runs show as often, by node and manner.
  bool profiled(const ProcessEvent& p, const std::map<std::tuple<int, int, int, int>, std::uint64_t>& in_dump) const;
  static std::tuple<int, int, int, int> kind_of(const ProcessEvent& p);

  void processes();

  // Nodes that nobody saw start again did so all the same when they speak again.
  void end_causes_by_signs_of_life();

  static bool outside(const ProcessEvent& p);

  static bool orderly(const ProcessEvent& p);
  std::int64_t all_stopped() const;

  void crashes_of(int node, const std::vector<ProcessEvent>& ends);
  void fold_usual(const std::vector<std::size_t>& candidates, std::string_view did);
  // Whether others of the node's processes were there before these ended, and still are.
  bool lived_on(int node, std::span<const ProcessEvent> ended);

  void pauses_of(int node, const std::vector<ProcessEvent>& pauses);

  // --- network: extract_silences.cc

  void network();

  // How long before its cause a silence may begin: pairs that speak often fall silent at once.
  std::int64_t heartbeat(const Event& event, const Silence& silence) const;
  std::vector<bool> watched_nodes() const;

  // Which nodes a silence is between; discards those between others.
  bool endpoints(std::size_t s, const trace::Trace& trace, const Event& event, Silence& silence);

  int owner_of_port(std::uint16_t port) const;

  // What the profile shows between these nodes, on this service: a silence as long, or one that no run saw the end of.
  enum class Usual { no, as_long, without_end };
  Usual usual_silence(const trace::Trace& trace, const Event& event, const Silence& silence) const;

  Candidate& add_cut(const Cut& cut);

  // --- calls to other nodes that fail as unreachable: extract_unreachable.cc

  // In their order; without those that fail like that without faults, too.
  std::vector<Contact> contacts() const;
  // As silences, of errors that say it plainly, or else of those that only may mean it; not where something else explains them.
  std::vector<Silence> unreachable(const std::vector<Contact>& contacts, bool plainly) const;
  // Whether calls alone, without a silence, are enough to believe in it.
  bool believable(const Cut& cut) const;

  // --- system calls: extract_calls.cc

  // By time; again whenever there are more of them.
  void order_causes();
  bool has_cause(int node) const { return !causes_of_[static_cast<std::size_t>(node)].empty(); }

  const Cause* explaining(const Event& event, int node, int peer_node, bool peer_known) const;

  bool last_breath(const Event& event, int node) const;

  class CallReader;
  void syscalls();
  // Failures that the profile does not have, or far rarer.
  std::vector<Failure> unusual(const CallReader& calls);

  // Does the dump hold all that the node did, from its first start in the test deployment on?
  [[nodiscard]] bool seen_from_start(int node) const;

  // At several times, each longer after the one before than a workload lasts.
  [[nodiscard]] bool all_the_time(std::vector<std::int64_t> times) const;

  // A process that ends cannot be answered, and a return from a signal handler is no call.
  static bool can_fail(int number);

  // The folder that a test run made for itself, or one of its nodes' in it: no other deployment has it.
  bool run_folder(std::string_view path) const;

  // What always comes right after a start of its node, or after a worse failure, is a consequence, wherever it stands.
  void follow(std::vector<Failure>& failures) const;

  double per_run(const profile::CallKind& kind) const;
  double longer_than_a_run() const;
  // The same for what a workload does so many times a run, however long it is held up: windows of another order only.
  double runs_in_window() const;

  Peer read_peer(std::string_view text, Interner& texts) const;

  // --- a fault out of a failed call: extract_call_faults.cc

  // The peer as the test deployment will show it.
  std::string peer_glob(const ScfGroup& group) const;

  // Does the node make this call so often that its first one means nothing?
  bool hot(int node, const std::string& syscall) const;

  // `with_shapes`: it may come to be tried, in all its shapes.
  void add_call(const Failure& failure, const std::string& pattern, bool with_shapes);
  Fault call_fault(const Failure& failure);
  std::vector<Fault> call_shapes(const Failure& failure, const Fault& fault, bool with_shapes) const;
  void call_words(const Failure& failure, Candidate& candidate);
  // It went on failing until the dump's end.
  bool for_good(const Failure& failure) const;

  // --- what logs say was thrown: extract_exceptions.cc

  void exceptions();
  void add_exception(const ToldException& told, int node);

  // --- clocks that were wrong: extract_clocks.cc

  void clocks();
  void clock_offsets();
  void clock_steps();
  void add_clock_step(int node, const ToldClockStep& step);
  void add_wrong_clock(int node, std::int64_t off_ns, bool or_all_others);

  // --- causes before consequences: rank.cc

  // Processes that end themselves do so for a reason; if the dump holds one, that is tried first.
  void explain_own_ends();

  void rank();

  // A disk that fails right before a node is killed or falls silent may be why: of the paper's order
  // we depart for the first such failure, because a symptom never precedes its cause.
  void promote();

  void weigh();
  void weigh_nearness();

  void observe();

  void finish();

  const Inputs& inputs_;
  const NodeMap& nodes_;
  const std::int64_t longest_ns_;
  Plan& plan_;
  const config::Config& config_;
  std::set<std::uint16_t> service_ports_;
  std::map<std::string, std::uint64_t, std::less<>> discarded_;
  std::map<std::string, int> ids_;
  std::vector<bool> main_known_;
  std::vector<std::pair<const Event*, int>> started_;
  std::vector<std::vector<std::int64_t>> starts_;       // of a node's main process
  std::vector<ProcessEvent> ps_;
  std::vector<std::unordered_map<std::int32_t, std::pair<std::int64_t, std::int64_t>>> lives_;  // by node and process, of long ones: first and last event
  std::vector<std::pair<std::size_t, const Event*>> silences_;
  std::vector<Cause> causes_;
  Lasting lasting_;                                     // by cause, once they are in their order
  std::vector<std::vector<const Cause*>> causes_of_;
  std::vector<std::size_t> own_ends_;                   // candidates, before ranking
  std::map<std::string, double> usual_;                 // faults that production has all the time, by id: odds for that
  std::set<std::size_t> followers_;                     // candidates that always follow something
  std::set<int> came_back_;
};

}  // namespace rose::diagnose
