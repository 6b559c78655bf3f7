#include "diagnose/from_logs.h"

#include <algorithm>
#include <cerrno>
#include <set>

#include "base/ascii.h"
#include "base/units.h"
#include "diagnose/nodes.h"
#include "diagnose/thresholds.h"
#include "kernel/syscalls.h"

namespace rose::diagnose {
namespace {

using logs::Evidence;
using logs::Hint;
using logs::kNoTime;
using trace::Event;
using trace::EventType;
using trace::ProcessState;
using trace::StringId;
using trace::Trace;

constexpr std::int64_t kLag = 2 * kSecond;              // between a peer's silence and the first message that tells of it
constexpr std::int64_t kTelling = 1'000'000;            // from a message that tells of its program's end to that end
constexpr std::int64_t kLeastSilence = 5 * kSecond;
constexpr std::uint32_t kTold = 1000;                   // packets of a pair that talks
constexpr double kBeside = 0.29;                        // of what logs say besides a dump: less than a half said
constexpr double kUnwatched = 0.7;                      // the same of a node, or a time, of which no dump holds anything
constexpr std::int64_t kClocksApart = 2 * kSecond;      // of a dump and a log
constexpr double kSpeaks = 0.3;                         // a hint of this weight says something of its node
constexpr double kNextCall = 0.5;                       // each further call or file that a message may mean has so much of the one before
constexpr double kOpened = 0.9;                         // of a guess that a file can't be opened, beside one that it can't be written to
constexpr double kPlainlySaid = 0.9;                    // so much less is believed of guesses where logs name a cause
constexpr double kStoppedGuess = 0.08;                  // a kill or a stop that no message names
constexpr double kCutGuess = 0.06;                      // a cut or a pause that no message names
constexpr double kUnawareGuess = 0.2;                   // the same of the one node that says what it always says
constexpr std::int64_t kApartCuts = 4 * kSecond;
constexpr std::int64_t kShortGuess = 2 * kSecond, kLongGuess = 10 * kSecond;

// From the time of the run without faults to that of the incident, by the messages that both have.
class TimeLine {
 public:
  void add(std::int64_t normal, std::int64_t failure) {
    if (!points_.empty() && (normal <= points_.back().first || failure < points_.back().second)) return;
    points_.emplace_back(normal, failure);
  }
  void shift(std::int64_t by) { shift_ = by; }
  [[nodiscard]] bool empty() const { return points_.empty(); }
  [[nodiscard]] std::int64_t operator()(std::int64_t normal) const {
    if (points_.empty()) return normal + shift_;
    const auto after = std::lower_bound(points_.begin(), points_.end(), normal, [](const auto& point, std::int64_t ts) { return point.first < ts; });
    if (after == points_.begin()) return normal - after->first + after->second;
    if (after == points_.end()) return normal - points_.back().first + points_.back().second;
    const auto before = after - 1;
    const double share = static_cast<double>(normal - before->first) / static_cast<double>(after->first - before->first);
    return before->second + static_cast<std::int64_t>(share * static_cast<double>(after->second - before->second));
  }

 private:
  std::vector<std::pair<std::int64_t, std::int64_t>> points_;
  std::int64_t shift_ = 0;
};

bool takes_path(const kernel::SyscallInfo& info) { return info.path >= 0 || info.path2 >= 0 || info.fd >= 0; }
bool is_network_call(std::string_view call) {
  return call == "connect" || call.starts_with("accept") || call.starts_with("send") || call.starts_with("recv") || call == "bind" ||
         call == "listen" || call == "socket";
}
bool ends_connection(int error) {
  switch (error) {
    case ECONNREFUSED:
    case ECONNRESET:
    case ECONNABORTED:
    case EPIPE:
    case ETIMEDOUT:
    case ENOTCONN:
    case EHOSTUNREACH:
    case EHOSTDOWN:
    case ENETUNREACH:
    case ENETDOWN: return true;
    default: return false;
  }
}
bool is_process_call(std::string_view call) { return call.starts_with("clone") || call == "vfork" || call == "execve" || call == "mmap" || call == "brk"; }

class FromLogs {
 public:
  FromLogs(Inputs& inputs, const Evidence& evidence, const Trace* control)
      : inputs_(inputs), evidence_(evidence), control_(control), beside_(!inputs.traces.empty()) {}

  void build() {
    if (beside_) read_windows();
    lines();
    header();
    for (const Hint& hint : evidence_.hints) said(hint);
    for (const logs::ClockJump& jump : evidence_.failure.jumps) set_clock(jump);
    if (control_ != nullptr && !beside_) {
      guesses();
      guess_stops();
      replay_control();
    }
    finish();
  }

 private:
  [[nodiscard]] std::string node_of(const std::string& name) const {
    if (name.empty() && inputs_.config->nodes.size() == 1) return inputs_.config->nodes[0].name;
    return name;
  }
  [[nodiscard]] std::string name_of(std::size_t n) const {
    const logs::NodeLog& node = evidence_.failure.nodes[n];
    return node_of(node.node.empty() && inputs_.config->nodes.size() > 1 ? node.name : node.node);
  }

  // --- the time line

  void lines() {
    first_ = kNoTime;
    for (const logs::NodeLog& node : evidence_.failure.nodes)
      for (const logs::Message& one : node.messages) {
        if (one.ts_ns == kNoTime) continue;
        first_ = first_ == kNoTime ? one.ts_ns : std::min(first_, one.ts_ns);
        last_ = std::max(last_, one.ts_ns);
      }
    timed_ = first_ != kNoTime;
    if (!timed_) {
      first_ = control_ == nullptr ? 0 : begin_of(*control_);
      last_ = control_ == nullptr ? kSecond : end_of(*control_);
    }
    std::int64_t shift = 0;
    if (control_ != nullptr && timed_) shift = first_ - begin_of(*control_);
    std::vector<std::pair<std::int64_t, std::int64_t>> all;
    for (std::size_t n = 0; n < evidence_.difference.nodes.size(); ++n) {
      const logs::NodeDifference& difference = evidence_.difference.nodes[n];
      if (difference.normal == logs::kNoNode) continue;
      TimeLine line;
      for (const logs::Matched& one : difference.matched) {
        const std::int64_t there = evidence_.failure.nodes[n].messages[one.failure].ts_ns;
        const std::int64_t here = evidence_.normal.nodes[difference.normal].messages[one.normal].ts_ns;
        if (there == kNoTime || here == kNoTime) continue;
        line.add(here, there);
        all.emplace_back(here, there);
      }
      if (!line.empty()) lines_.emplace(evidence_.normal.nodes[difference.normal].node, std::move(line));
    }
    std::sort(all.begin(), all.end());
    for (const auto& [here, there] : all) common_.add(here, there);
    if (all.empty()) common_.shift(shift);
  }

  static std::int64_t begin_of(const Trace& trace) {
    if (trace.meta.begin_ns > 0) return trace.meta.begin_ns;
    return trace.events.empty() ? 0 : trace.events.front().ts_ns;
  }
  static std::int64_t end_of(const Trace& trace) {
    if (trace.meta.end_ns > 0) return trace.meta.end_ns;
    return trace.events.empty() ? kSecond : trace.events.back().ts_ns;
  }
  [[nodiscard]] std::int64_t there(std::string_view node, std::int64_t normal) const {
    const auto line = lines_.find(node);
    return line == lines_.end() ? common_(normal) : line->second(normal);
  }

  // Of a message without a time: as far into the run as its neighbours are.
  [[nodiscard]] std::int64_t time_of(const Hint& hint) const { return hint.ts_ns != kNoTime ? hint.ts_ns : first_ + (last_ - first_) / 2; }

  // A process that was killed said its last message before, and not what it says next in a run without faults.
  [[nodiscard]] std::int64_t latest(const Hint& hint, const std::string& node) const {
    const std::int64_t ts = time_of(hint);
    if (control_ == nullptr || hint.log >= evidence_.difference.nodes.size()) return ts;
    const logs::NodeDifference& difference = evidence_.difference.nodes[hint.log];
    if (difference.normal == logs::kNoNode) return ts;
    const auto after = std::upper_bound(difference.matched.begin(), difference.matched.end(), hint.message,
                                        [](std::uint32_t message, const logs::Matched& one) { return message < one.failure; });
    // Where it had left the usual way before, that says nothing.
    if (after == difference.matched.begin() || (after - 1)->failure != hint.message) return ts;
    const std::vector<logs::Message>& usual = evidence_.normal.nodes[difference.normal].messages;
    const std::size_t next = (after - 1)->normal + 1;
    const bool aligned = evidence_.failure.nodes[hint.log].aligned;
    // Where a log has no times, nor does its last message say when the run was over.
    const std::int64_t over = aligned ? std::max(last_, end_of(*control_)) : last_;
    std::int64_t until = next < usual.size() && usual[next].ts_ns != kNoTime ? there(node, usual[next].ts_ns) : over;
    if (!aligned && hint.until_ns != kNoTime) until = std::min(until, hint.until_ns);
    return std::max(ts, until - 1);
  }

  void header() {
    out_.meta.host = "logs";
    out_.meta.begin_ns = first_;
    out_.meta.end_ns = last_;
    if (control_ != nullptr) {
      out_.meta.pause_ns = control_->meta.pause_ns;
      out_.meta.network_delay_ns = control_->meta.network_delay_ns;
      out_.meta.workload_ts = std::clamp(common_(control_->meta.workload_ts), first_, last_);
      if (control_->meta.workload_ts == 0) out_.meta.workload_ts = 0;
    }
  }

  // --- dumps beside the logs: they hold every failed call, end, pause and silence of their nodes and their time, so what messages say
  // of those is in them, or it was not so. As candidates they would only be there twice.

  struct Window {
    std::int64_t begin = 0, end = 0;
    bool whole = true;  // nothing was lost
  };

  void read_windows() {
    const Result<NodeMap> nodes = NodeMap::make(inputs_);
    if (!nodes) return;  // the plan will say so
    for (std::size_t i = 0; i < inputs_.traces.size(); ++i) {
      const Trace& dump = inputs_.traces[i];
      if (dump.events.empty()) continue;
      const bool full = dump.meta.window != 0 && dump.events.size() >= dump.meta.window;
      const Window window{full || dump.meta.begin_ns == 0 ? dump.events.front().ts_ns : dump.meta.begin_ns, end_of(dump), dump.meta.lost == 0 && dump.meta.pairs_evicted == 0};
      std::set<int> players;
      StringId last = 0;
      for (const Event& event : dump.events) {
        if (!players.empty() && event.node == last) continue;
        last = event.node;
        if (const int node = nodes->of(i, event); node >= 0) players.insert(node);
      }
      for (const int node : players) windows_[nodes->name(node)].push_back(window);
    }
  }

  // How much is left of what a message says of this node at that time.
  [[nodiscard]] double beside_dumps(const std::string& node, std::int64_t ts) const {
    if (!beside_) return 1;
    const auto windows = windows_.find(node);
    if (windows == windows_.end()) return kUnwatched;
    double left = kUnwatched;
    for (const Window& one : windows->second)
      if (!timed_ || (ts >= one.begin - kClocksApart && ts <= one.end + kClocksApart)) left = std::min(left, one.whole ? 0 : kBeside);
    return left;
  }

  // --- what messages say

  void put(Event event, double weight, const std::string& words, std::int64_t since_ns = 0) { made_.push_back({event, weight * left_, words, since_ns}); }

  Event event(EventType type, const std::string& node, std::int64_t ts) {
    Event event;
    event.type = type;
    event.ts_ns = ts;
    event.node = out_.strings.intern(node);
    return event;
  }

  void said(const Hint& hint) {
    const std::string node = node_of(hint.node);
    if (node.empty()) {
      ++nameless_;
      return;
    }
    left_ = beside_dumps(node, time_of(hint));
    if (hint.kind == Hint::Kind::end && hint.until_ns != kNoTime) left_ = std::max(left_, beside_dumps(node, hint.until_ns));  // some time in between
    if (left_ == 0 && hint.kind != Hint::Kind::thrown) return;
    switch (hint.kind) {
      case Hint::Kind::call: said_call(hint, node); return;
      case Hint::Kind::end: {
        // Whatever else the message tells of came before the end, and may be its cause.
        const std::int64_t told = time_of(hint);
        std::int64_t gone = hint.itself || hint.told ? told : latest(hint, node);
        const std::int64_t since = gone > told + kTelling ? told : 0;
        if (gone == told) gone += kTelling;
        Event end = event(EventType::ps, node, gone);
        end.state = hint.signal != 0 ? ProcessState::crashed : ProcessState::exited;
        end.signal = static_cast<std::uint8_t>(hint.signal);
        end.exit_code = hint.exit_code;
        // Which one its main process is, something must tell.
        if (hint.helper && alive_.insert(node).second) {
          Event main = event(EventType::ps, node, std::min(first_, gone - 1));
          main.state = ProcessState::started;
          main.flags = trace::kMain;
          made_.push_back({main, 0, {}, 0});
        }
        end.flags = static_cast<decltype(end.flags)>((hint.helper ? 0 : trace::kMain) | (hint.out_of_memory ? trace::kOutOfMemory : 0));
        put(end, hint.weight, hint.words, since);
        if (hint.until_ns != kNoTime) {
          Event start = event(EventType::ps, node, std::max(hint.until_ns, end.ts_ns + 1'000'000));
          start.state = ProcessState::started;
          start.flags = trace::kMain;
          put(start, hint.weight, hint.words);
        }
        if (hint.weight >= kSpeaks) cut_off(node, end.ts_ns);
        return;
      }
      case Hint::Kind::stop: {
        Event stop = event(EventType::ps, node, hint.until_ns);
        stop.state = ProcessState::paused;
        stop.duration_ms = static_cast<std::int32_t>(std::min<std::int64_t>((hint.until_ns - hint.ts_ns) / 1'000'000, 3'600'000));
        stop.flags = trace::kMain;
        put(stop, hint.weight, hint.words);
        return;
      }
      case Hint::Kind::silence: {
        const std::int64_t begin = std::max(first_, time_of(hint) - kLag);
        const std::int64_t end = std::max(hint.until_ns != kNoTime ? hint.until_ns : begin, begin + kLeastSilence);
        put_silence(node, hint.peer, begin, end, hint.weight, hint.words);
        return;
      }
      case Hint::Kind::thrown: said_thrown(hint, node); return;
    }
  }

  // What else may have happened is as likely as before: an exception is the cause, or tells of one.
  void said_thrown(const Hint& hint, const std::string& node) {
    const config::Node* home = inputs_.config->find(node);
    if (home == nullptr) return;
    ToldException told{node, time_of(hint), hint.until_ns, hint.count, beside_ ? hint.weight * kBeside : hint.weight, {}, throw_sites(hint.trace, *home)};
    if (told.sites.empty()) {
      ++nowhere_;
      return;
    }
    told.last_ts = std::max(told.last_ts, told.first_ts);
    told.words = fmt::format("{}, with {} in {}", hint.words, told.sites[0].throws, told.sites[0].frame);
    inputs_.exceptions.push_back(std::move(told));
  }

  // Dumps do not see what a process is told of the time: believed beside them, too.
  void set_clock(const logs::ClockJump& jump) {
    const std::string node = name_of(jump.log);
    if (inputs_.config->find(node) == nullptr) {
      ++nameless_;
      return;
    }
    inputs_.clock_steps.push_back({node, jump.at_ns, jump.until_ns == kNoTime ? 0 : jump.until_ns - jump.at_ns, jump.change_ns, jump.weight, jump.words});
  }

  void put_silence(const std::string& node, const std::string& peer, std::int64_t begin, std::int64_t end, double weight, const std::string& words) {
    for (const bool back : {false, true}) {
      Event silence = event(EventType::nd, back ? peer : node, end);
      silence.src = out_.strings.intern(back ? node : peer);
      silence.dst = out_.strings.intern(back ? peer : node);
      silence.protocol = trace::Protocol::tcp;
      silence.packets = kTold;
      silence.duration_ms = static_cast<std::int32_t>(std::min<std::int64_t>((end - begin) / 1'000'000, 3'600'000));
      put(silence, weight, words);
    }
  }

  void said_call(const Hint& hint, const std::string& node) {
    const std::int64_t ts = time_of(hint);
    double weight = hint.weight;
    std::int64_t later = 0;  // likelier calls stand before others
    std::size_t left = 12;   // faults that one message may stand for
    for (const std::string_view call : hint.syscalls) {
      const kernel::SyscallInfo* info = kernel::find_syscall(call);
      if (info == nullptr || !makes(node, call) || left == 0) continue;
      std::vector<std::string> paths;
      const bool of_connection = ends_connection(hint.error) && !is_network_call(call);  // a read or write of a socket
      if (of_connection && hint.peer.empty()) continue;
      if (!of_connection && !is_network_call(call) && !is_process_call(call) && takes_path(*info)) {
        if (!hint.path.empty()) paths.push_back(hint.path);
        else paths = files_near(node, ts, call);
        if (paths.empty()) {  // any call at all: its output, too
          if (control_ == nullptr) ++fileless_;
          continue;
        }
      } else {
        paths.emplace_back();
      }
      for (const std::string& path : paths) {
        if (left-- == 0) break;
        Event failed = event(EventType::scf, node, ts + 1000 * later++);
        failed.syscall = static_cast<std::int16_t>(info->number);
        failed.err = static_cast<std::int16_t>(hint.error);
        if (!path.empty()) failed.path = out_.strings.intern(path);
        if (!hint.peer.empty() && (of_connection || is_network_call(call))) failed.peer = out_.strings.intern(hint.peer);
        failed.count = hint.count > 1 ? static_cast<std::uint32_t>(std::min<std::uint64_t>(hint.count - 1, 100'000)) : 1;
        put(failed, weight, hint.words);
        if (hint.count > 1) {
          failed.ts_ns = std::max(failed.ts_ns + 1, hint.until_ns != kNoTime ? hint.until_ns : ts);
          failed.count = 1;
          put(failed, weight, hint.words);
        }
        weight *= kNextCall;
      }
    }
    if (hint.weight >= kSpeaks) cut_off(node, ts);
  }

  // What the profile counted, where there is one.
  [[nodiscard]] bool makes(const std::string& node, std::string_view call) const {
    if (!inputs_.profile) return true;
    const auto counts = inputs_.profile->syscalls.find(node);
    if (counts == inputs_.profile->syscalls.end() || counts->second.empty()) return true;
    const auto count = counts->second.find(std::string(call));
    return count != counts->second.end() && count->second > 0;
  }

  // Files of the node that the run without faults made or changed, those touched last before that moment first.
  [[nodiscard]] std::vector<std::string> files_near(const std::string& node, std::int64_t ts, std::string_view call) const {
    std::vector<std::string> files;
    if (control_ == nullptr) return files;
    std::vector<std::pair<std::int64_t, std::string>> by_distance;
    for (const Event& one : control_->events) {
      if (one.type != EventType::sys || one.path == 0 || name_in_control(one) != node) continue;
      const std::string done = kernel::syscall_name(one.syscall);
      const bool makes_file = done.starts_with("open") || done == "creat" || done.find("sync") != std::string::npos || done.starts_with("rename") ||
                              done.find("truncate") != std::string::npos || done == "fallocate" || done == call;
      if (!makes_file || is_network_call(done) || done == "execve") continue;
      const std::string_view path = control_->str(one.path);
      if (path.empty() || path[0] != '/' || path.starts_with("/proc/") || path.starts_with("/dev/") || path.starts_with("/sys/")) continue;
      const std::int64_t apart = ts - there(node, one.ts_ns);
      by_distance.emplace_back(apart >= 0 ? apart : 10 * -apart, std::string(path));
    }
    std::stable_sort(by_distance.begin(), by_distance.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    std::set<std::string> patterns;
    for (const auto& [distance, path] : by_distance) {
      if (!patterns.insert(profile::path_pattern(path)).second) continue;
      files.push_back(path);
      if (files.size() == kMostPaths) break;
    }
    return files;
  }

  [[nodiscard]] std::string_view name_in_control(const Event& event) const {
    return event.node != 0 ? control_->str(event.node) : std::string_view(control_->meta.node);
  }

  // --- what no message says: sites of the run without faults, by how few messages stand between them and the first observable

  void guesses() {
    bool any = false;
    for (const Hint& hint : evidence_.hints)
      if (hint.kind != Hint::Kind::thrown) said_ = std::max(said_, hint.weight);
    for (std::size_t n = 0; n < evidence_.failure.nodes.size(); ++n) {
      const logs::Observed* anchor = nullptr;
      for (const logs::Observed& one : evidence_.difference.observed)
        if (one.node == n && (anchor == nullptr || one.weight > anchor->weight)) anchor = &one;
      if (anchor == nullptr) continue;
      any = true;
      guess(n, anchor);
    }
    for (std::size_t n = 0; !any && n < evidence_.failure.nodes.size(); ++n) guess(n, nullptr);
  }

  void guess(std::size_t n, const logs::Observed* anchor) {
    const logs::NodeLog& node = evidence_.failure.nodes[n];
    const std::string name = name_of(n);
    if (inputs_.config->find(name) == nullptr || node.messages.empty()) return;
    const std::size_t index = anchor != nullptr ? anchor->first : node.messages.size() - 1;
    const std::int64_t ts = node.messages[index].ts_ns != kNoTime ? node.messages[index].ts_ns : last_;
    const std::string before = anchor != nullptr ? " before " + quote(evidence_.failure, n, node.messages[index]) + ", which no run without faults says"
                                                 : " before the end of its log";
    struct Site {
      std::size_t messages = 0;  // between
      const Event* event = nullptr;
      std::int64_t ts = 0;
    };
    std::map<std::pair<std::int16_t, std::string>, Site> sites;
    for (const Event& one : control_->events) {
      if (one.type != EventType::sys || name_in_control(one) != name) continue;
      if (logs::errors_of(kernel::syscall_name(one.syscall)).empty()) continue;
      const std::int64_t when = there(name, one.ts_ns);
      if (when > ts) continue;
      const auto first = std::lower_bound(node.messages.begin(), node.messages.begin() + static_cast<std::ptrdiff_t>(index), when,
                                          [](const logs::Message& message, std::int64_t at) { return message.ts_ns < at; });
      const auto between = static_cast<std::size_t>(node.messages.begin() + static_cast<std::ptrdiff_t>(index) - first);
      Site& site = sites[{one.syscall, profile::path_pattern(control_->str(one.path))}];
      if (site.event == nullptr || between <= site.messages) site = {between, &one, when};
    }
    std::vector<Site> nearest;
    for (const auto& [key, site] : sites) nearest.push_back(site);
    std::stable_sort(nearest.begin(), nearest.end(), [](const Site& a, const Site& b) { return std::pair(a.messages, -a.ts) < std::pair(b.messages, -b.ts); });
    if (nearest.size() > kMostGuesses) nearest.resize(kMostGuesses);
    for (const Site& site : nearest) guess_call(site.event, name, site.ts, site.messages, before);

    // A process that was killed explains what others miss; that is not said of one that tells of its trouble itself.
    if (std::any_of(evidence_.hints.begin(), evidence_.hints.end(),
                    [&](const Hint& hint) {
                      return hint.weight >= kSpeaks && hint.kind != Hint::Kind::silence && hint.kind != Hint::Kind::thrown && node_of(hint.node) == name;
                    }))
      return;
    const std::string moment = fmt::format("no message names a cause; a moment{}", before);
    Event end = event(EventType::ps, name, ts);
    end.state = ProcessState::crashed;
    end.signal = 9;
    end.flags = trace::kMain;
    // Since the message before, or since nobody knows when.
    const std::int64_t before_ts = anchor == nullptr ? first_ : index > 0 ? node.messages[index - 1].ts_ns : kNoTime;
    put(end, kStoppedGuess, moment, before_ts == kNoTime || before_ts >= ts ? 0 : before_ts);
  }

  // Where logs say nothing of processes and the network, both are possible: each node stands still, or is cut off, for a while.
  void guess_stops() {
    const bool told = std::any_of(evidence_.hints.begin(), evidence_.hints.end(), [](const Hint& hint) { return hint.weight >= kHalfSaid && hint.kind != Hint::Kind::thrown; });
    if (told) return;
    std::int64_t first = kNoTime;
    for (const logs::Observed& one : evidence_.difference.observed) {
      const std::int64_t ts = evidence_.failure.nodes[one.node].messages[one.first].ts_ns;
      if (ts != kNoTime && (first == kNoTime || ts < first)) first = ts;
    }
    if (first == kNoTime) first = first_ + (last_ - first_) / 2;
    const std::int64_t duration = std::clamp((last_ - first_) / 4, kShortGuess, kLongGuess);
    const std::string words = "no message names a cause";
    // A node that says what it always says, while others see something happen, may be the one that it happened to.
    std::map<std::string, std::uint64_t> unusual;
    std::size_t noticed = 0;
    for (std::size_t n = 0; n < evidence_.failure.nodes.size(); ++n) noticed += (unusual[name_of(n)] += unusual_messages(n)) != 0 ? 1 : 0;
    std::vector<const config::Node*> nodes;
    for (const config::Node& node : inputs_.config->nodes) nodes.push_back(&node);
    const auto unaware = [&](const config::Node& node) { return noticed > 0 && nodes.size() > 2 && unusual[node.name] == 0; };
    std::stable_partition(nodes.begin(), nodes.end(), [&](const config::Node* node) { return unaware(*node); });
    std::int64_t cut = first;
    for (const config::Node* one : nodes) {
      const config::Node& node = *one;
      const double weight = unaware(node) ? kUnawareGuess : kCutGuess;
      Event stop = event(EventType::ps, node.name, first + duration);
      stop.state = ProcessState::paused;
      stop.duration_ms = static_cast<std::int32_t>(duration / 1'000'000);
      stop.flags = trace::kMain;
      put(stop, weight, words);
      for (const config::Node& other : inputs_.config->nodes)
        if (other.name != node.name) put_silence(node.name, other.name, cut, cut + duration, weight, words);
      cut += duration + kApartCuts;  // silences of one time would be one cut
    }
  }

  // How many messages of each kind the node says more, or fewer, than in the run without faults.
  [[nodiscard]] std::uint64_t unusual_messages(std::size_t n) const {
    const logs::NodeDifference& difference = evidence_.difference.nodes[n];
    if (difference.normal == logs::kNoNode) return 0;
    const std::vector<std::uint64_t>& here = evidence_.failure.nodes[n].counts;
    const std::vector<std::uint64_t>& usual = evidence_.normal.nodes[difference.normal].counts;
    std::uint64_t sum = 0;
    for (std::size_t kind = 0; kind < std::max(here.size(), usual.size()); ++kind) {
      const std::uint64_t a = kind < here.size() ? here[kind] : 0, b = kind < usual.size() ? usual[kind] : 0;
      sum += std::max(a, b) - std::min(a, b);
    }
    return sum;
  }

  void guess_call(const Event* done, const std::string& node, std::int64_t ts, std::size_t messages, const std::string& before) {
    const std::string call = kernel::syscall_name(done->syscall);
    const std::string words = fmt::format("no message names a cause; it comes {} messages{}", messages, before);
    const double weight = kGuessed / static_cast<double>(1 + messages) * (1 - kPlainlySaid * said_);
    const auto failed = [&](std::string_view what, double share) {
      const kernel::SyscallInfo* info = kernel::find_syscall(what);
      const std::vector<int> errors = logs::errors_of(what);
      if (info == nullptr || errors.empty() || !makes(node, what)) return;
      Event scf = event(EventType::scf, node, ts);
      scf.syscall = static_cast<std::int16_t>(info->number);
      scf.err = static_cast<std::int16_t>(errors.front());
      if (done->path != 0) scf.path = out_.strings.intern(control_->str(done->path));
      if (done->path2 != 0) scf.path2 = out_.strings.intern(control_->str(done->path2));
      if (done->peer != 0) scf.peer = out_.strings.intern(control_->str(done->peer));
      put(scf, weight * share, words);
    };
    // A file that is opened to be written to is written to; those calls are too many to be recorded one by one. Disks that are full
    // are met far more often than files that can't be opened, and what can't be opened is not written to.
    if (call.starts_with("open") || call == "creat") {
      failed("write", 1);
      failed("pwrite64", kNextCall);
      failed(call, kOpened);
    } else {
      failed(call, 1);
    }
  }

  // --- the run without faults itself: what comes before the causes is what they may wait for

  // From here on the incident went another way than the run without faults.
  void cut_off(const std::string& node, std::int64_t ts) {
    const auto [known, fresh] = cut_.try_emplace(node, ts);
    if (!fresh) known->second = std::max(known->second, ts);
  }

  void replay_control() {
    for (const Event& one : control_->events) {
      const bool start = one.type == EventType::ps && one.state == ProcessState::started;
      if (one.type != EventType::af && one.type != EventType::sys && !start) continue;
      if ((one.flags & trace::kInjected) != 0) continue;
      const std::string_view node = name_in_control(one);
      Event event = one;
      event.ts_ns = there(node, one.ts_ns);
      const auto cut = cut_.find(std::string(node));
      if (cut != cut_.end() && event.ts_ns > cut->second) continue;
      for (StringId Event::*field : {&Event::path, &Event::path2, &Event::peer, &Event::function, &Event::src, &Event::dst})
        if (one.*field != 0) event.*field = out_.strings.intern(control_->str(one.*field));
      event.node = out_.strings.intern(node);
      made_.push_back({event, 0, {}, 0});
    }
    out_.meta.addresses = control_->meta.addresses;
  }

  void finish() {
    std::stable_sort(made_.begin(), made_.end(), [](const Made& a, const Made& b) { return a.event.ts_ns < b.event.ts_ns; });
    Said& said = inputs_.said.emplace_back();
    said.trace = inputs_.traces.size();
    for (Made& one : made_) {
      if (!one.words.empty()) said.events.emplace(out_.events.size(), Said::Of{one.weight, std::move(one.words), one.since_ns});
      out_.events.push_back(one.event);
      out_.meta.end_ns = std::max(out_.meta.end_ns, one.event.ts_ns);
    }
    if (nameless_ > 0)
      inputs_.log_notes.push_back(fmt::format("{} of logs {} to no known node: say whose log it is with --log NODE=FILE", nameless_ == 1 ? "1 finding" : fmt::format("{} findings", nameless_),
                                              nameless_ == 1 ? "belongs" : "belong"));
    if (nowhere_ > 0)
      inputs_.log_notes.push_back(fmt::format("{} exception{} of logs {} in no method of a JVM that the node is known to run: none is thrown for {}", nowhere_,
                                              nowhere_ == 1 ? "" : "s", nowhere_ == 1 ? "comes up" : "come up", nowhere_ == 1 ? "it" : "them"));
    if (fileless_ > 0)
      inputs_.log_notes.push_back("some messages name an error but no file: a run without faults tells which files the node works on, and those are tried");
    inputs_.traces.push_back(std::move(out_));
    for (const logs::Observed& one : evidence_.difference.observed) {
      const logs::Message& message = evidence_.failure.nodes[one.node].messages[one.first];
      inputs_.log_observables.push_back({key_of(evidence_.failure, one), name_of(one.node), message.ts_ns != kNoTime ? message.ts_ns : last_});
    }
  }

  struct Made {
    Event event;
    double weight = 0;
    std::string words;
    std::int64_t since_ns = 0;
  };

  Inputs& inputs_;
  const Evidence& evidence_;
  const Trace* control_;
  std::map<std::string, std::vector<Window>> windows_;  // of dumps, by node
  double left_ = 1;    // of what the hint that is looked at says
  const bool beside_;  // there are dumps, which say more: sites and contexts come from them
  Trace out_;
  std::vector<Made> made_;
  std::map<std::string, TimeLine, std::less<>> lines_;  // by node
  TimeLine common_;
  std::int64_t first_ = kNoTime, last_ = 0;
  bool timed_ = false;
  std::map<std::string, std::int64_t> cut_;
  std::set<std::string> alive_;  // nodes of which helpers ended
  std::uint64_t nameless_ = 0;
  std::uint64_t fileless_ = 0; // errors of files that neither the message nor, without a run, anything else names
  std::uint64_t nowhere_ = 0;  // exceptions that no method can be told of
  double said_ = 0;  // how plainly logs name a cause at all
};

}  // namespace

void add_logs(Inputs& inputs, const Evidence& evidence, const Trace* control) { FromLogs(inputs, evidence, control).build(); }

std::string node_of_host(std::string_view host, const config::Config& config, const std::map<std::string, std::string>& host_to_node) {
  const auto known = [&](std::string_view name) -> std::string {
    if (const auto mapped = host_to_node.find(std::string(name)); mapped != host_to_node.end()) return mapped->second;
    if (config.find(std::string(name)) != nullptr) return std::string(name);
    for (const config::Node& node : config.nodes)
      if (!node.ip.empty() && node.ip == name) return node.name;
    return {};
  };
  const std::string_view pod = host.substr(0, host.find('/'));
  std::string_view service = pod;
  while (!service.empty() && is_digit(service.back())) service.remove_suffix(1);
  if (service.size() < pod.size() && !service.empty() && (service.back() == '-' || service.back() == '_')) service.remove_suffix(1);
  else service = pod;
  for (const std::string_view name : {host, pod, pod.substr(0, pod.find('.')), service, service.substr(service.find_first_of("-_") + 1)})
    if (std::string node = known(name); !node.empty()) return node;
  return {};
}

std::vector<logs::NodeName> node_names_in_logs(const config::Config& config, const std::map<std::string, std::string>& host_to_node) {
  std::vector<logs::NodeName> names;
  for (const config::Node& node : config.nodes) {
    logs::NodeName name{node.name, {}};
    if (!node.ip.empty()) name.also.push_back(node.ip);
    for (const auto& [host, mapped] : host_to_node)
      if (mapped == node.name) name.also.push_back(host);
    names.push_back(std::move(name));
  }
  return names;
}

}  // namespace rose::diagnose
