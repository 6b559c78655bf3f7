#include "evidence/logs/guesses.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <vector>

#include "base/units.h"
#include "kernel/syscalls.h"
#include "logs/meaning.h"
#include "logs/quote.h"
#include "weights/weights.h"

namespace rose::evidence {
namespace {

using logs::Hint;
using logs::kNoTime;
using trace::Event;
using trace::EventType;
using trace::ProcessState;

constexpr std::size_t kMostGuesses = 40;  // at most this many failed calls are guessed for one node

// The origin of an observation that no message mentions. `since_ns`: see Origin.
Origin assumed(double weight, std::string words, std::int64_t since_ns = 0) {
  return {Known::inferred, weight, std::move(words), since_ns, {}, true};
}

}  // namespace

Guesses::Guesses(const LogCase& log_case, LogSource& out) : case_(log_case), evidence_(log_case.evidence()), out_(out) {
  for (const Hint& hint : evidence_.hints)
    if (hint.kind != Hint::Kind::thrown) explicitness_ = std::max(explicitness_, hint.weight);
}

void Guesses::add_calls() {
  bool any = false;
  for (std::size_t n = 0; n < evidence_.failure.nodes.size(); ++n) {
    const logs::Observed* anchor = nullptr;
    for (const logs::Observed& observed : evidence_.difference.observed)
      if (observed.node == n && (anchor == nullptr || observed.weight > anchor->weight)) anchor = &observed;
    if (anchor == nullptr) continue;
    any = true;
    add_calls_before(n, anchor);
  }
  for (std::size_t n = 0; !any && n < evidence_.failure.nodes.size(); ++n) add_calls_before(n, nullptr);
}

void Guesses::add_calls_before(std::size_t n, const logs::Observed* anchor) {
  const logs::NodeLog& node = evidence_.failure.nodes[n];
  const std::string name = case_.name_of(n);
  if (case_.inputs().config->find(name) == nullptr || node.messages.empty()) return;
  const std::size_t index = anchor != nullptr ? anchor->first : node.messages.size() - 1;
  const std::int64_t ts = node.messages[index].ts_ns != kNoTime ? node.messages[index].ts_ns : case_.last();
  const std::string before = anchor != nullptr ? " before " + quote(evidence_.failure, n, node.messages[index]) +
                                                     ", which no run without faults writes"
                                               : " before the end of its log";
  struct Site {
    std::size_t messages = 0;  // messages between the site and the anchor
    std::size_t calls = 0;     // calls that the site's thread made in between
    const Event* event = nullptr;
    std::int64_t ts = 0;
  };
  std::map<std::int32_t, std::size_t> made;  // key: thread; value: its calls before the anchor
  for (const Event& control_event : case_.control()->events)
    if ((control_event.type == EventType::sys || control_event.type == EventType::af) &&
        case_.name_in_control(control_event) == name && case_.to_incident(name, control_event.ts_ns) <= ts)
      ++made[control_event.tid];
  std::map<std::int32_t, std::size_t> until_here;
  std::map<std::pair<std::int16_t, std::string>, Site> sites;
  for (const Event& control_event : case_.control()->events) {
    if ((control_event.type != EventType::sys && control_event.type != EventType::af) ||
        case_.name_in_control(control_event) != name)
      continue;
    const std::size_t nth = ++until_here[control_event.tid];
    if (control_event.type != EventType::sys) continue;
    if (logs::errors_of(kernel::syscall_name(control_event.syscall)).empty()) continue;
    const std::int64_t when = case_.to_incident(name, control_event.ts_ns);
    if (when > ts) continue;
    const auto first =
        std::lower_bound(node.messages.begin(), node.messages.begin() + static_cast<std::ptrdiff_t>(index), when,
                         [](const logs::Message& message, std::int64_t at) { return message.ts_ns < at; });
    const auto between = static_cast<std::size_t>(node.messages.begin() + static_cast<std::ptrdiff_t>(index) - first);
    Site& site = sites[{control_event.syscall, profile::path_pattern(case_.control()->str(control_event.path))}];
    // Of several calls at one site, use the last one before the anchor.
    if (site.event == nullptr || between <= site.messages)
      site = {between, made[control_event.tid] - nth, &control_event, when};
  }
  std::vector<Site> nearest;
  for (const auto& [key, site] : sites) nearest.push_back(site);
  // The distance in the code between the site and the message is unknown. The number of calls that the site's thread
  // made in between is used instead, because a call after which the thread made many others is less likely to have
  // caused the message.
  std::stable_sort(nearest.begin(), nearest.end(), [](const Site& a, const Site& b) {
    return std::tuple(a.messages, a.calls, -a.ts) < std::tuple(b.messages, b.calls, -b.ts);
  });
  if (nearest.size() > kMostGuesses) nearest.resize(kMostGuesses);
  for (const Site& site : nearest) add_failed_call(site.event, name, site.ts, {site.messages, site.calls}, before);

  // Guess that the process was killed, unless the node reports a problem of its own. The end of a process explains why
  // other nodes miss the node, but not a problem that the node itself reports.
  if (std::any_of(evidence_.hints.begin(), evidence_.hints.end(), [&](const Hint& hint) {
        return hint.weight >= kLeastHint && hint.kind != Hint::Kind::silence && hint.kind != Hint::Kind::thrown &&
               case_.node_of(hint.node) == name;
      }))
    return;
  const std::string moment =
      fmt::format("no message names a cause, so this is a guess: the process ended a moment{}", before);
  Observation end = out_.observation(EventType::ps, name, ts);
  end.state = ProcessState::crashed;
  end.signal = 9;
  end.flags = trace::kMain;
  // The process may have ended at any time since the previous message; if there is none, since an unknown time. Without
  // an anchor, it may have ended at any time since the beginning of the incident.
  const std::int64_t before_ts = anchor == nullptr ? case_.first()
                                 : index > 0       ? node.messages[index - 1].ts_ns
                                                   : kNoTime;
  out_.put(end, assumed(kGuessedStop, moment, before_ts == kNoTime || before_ts >= ts ? 0 : before_ts));
}

void Guesses::add_stops() {
  const bool named = std::any_of(evidence_.hints.begin(), evidence_.hints.end(), [](const Hint& hint) {
    return hint.weight >= kLeastReported && hint.kind != Hint::Kind::thrown;
  });
  if (named) return;
  std::int64_t first = kNoTime;
  for (const logs::Observed& observed : evidence_.difference.observed) {
    const std::int64_t ts = evidence_.failure.nodes[observed.node].messages[observed.first].ts_ns;
    if (ts != kNoTime && (first == kNoTime || ts < first)) first = ts;
  }
  if (first == kNoTime) first = case_.first() + (case_.last() - case_.first()) / 2;
  const std::int64_t duration = std::clamp((case_.last() - case_.first()) / 4, kShortGuess, kLongGuess);
  const std::string words = "no message names a cause";
  // A node that logs only its usual messages, while other nodes log unusual messages, may be the node that was paused
  // or partitioned.
  std::map<std::string, std::uint64_t> unusual;
  std::size_t noticed = 0;
  for (std::size_t n = 0; n < evidence_.failure.nodes.size(); ++n)
    noticed += (unusual[case_.name_of(n)] += unusual_messages(n)) != 0 ? 1 : 0;
  std::vector<const config::Node*> nodes;
  for (const config::Node& node : case_.inputs().config->nodes) nodes.push_back(&node);
  const auto unaware = [&](const config::Node& node) {
    const auto own = unusual.find(node.name);  // not found: the node has no log
    return noticed > 0 && nodes.size() > 2 && own != unusual.end() && own->second == 0;
  };
  std::stable_partition(nodes.begin(), nodes.end(), [&](const config::Node* node) { return unaware(*node); });
  std::int64_t cut = first;
  for (const config::Node* other_node : nodes) {
    const config::Node& node = *other_node;
    const double weight = unaware(node) ? kGuessedUnaware : kGuessedPartition;
    Observation stop = out_.observation(EventType::ps, node.name, first + duration);
    stop.state = ProcessState::paused;
    stop.duration_ms = static_cast<std::int32_t>(duration / 1'000'000);
    stop.flags = trace::kMain;
    out_.put(stop, assumed(weight, words));
    for (const config::Node& other : case_.inputs().config->nodes)
      if (other.name != node.name) out_.put_silence(node.name, other.name, cut, cut + duration, assumed(weight, words));
    cut += duration + kGuessSpacing;  // silences at the same time would be merged into one partition
  }
}

std::uint64_t Guesses::unusual_messages(std::size_t n) const {
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

void Guesses::add_failed_call(const Event* done, const std::string& node, std::int64_t ts, const Distance& distance,
                              const std::string& before) {
  const std::string call = kernel::syscall_name(done->syscall);
  const std::string words = fmt::format(
      "no message names a cause, so this is a guess: the call was made {} message{}{}{}", distance.messages,
      distance.messages == 1 ? "" : "s", before,
      distance.calls > 0
          ? fmt::format("; its thread made {} more call{} in between", distance.calls, distance.calls == 1 ? "" : "s")
          : "");
  // `calls` is less than 1, so any number of calls counts less than one message.
  const double calls = static_cast<double>(distance.calls) / (static_cast<double>(distance.calls) + kCallsPerMessage);
  const double weight =
      kGuessedCall / (1 + static_cast<double>(distance.messages) + calls) * (1 - kCauseReported * explicitness_);
  const auto failed = [&](std::string_view what, double share) {
    const kernel::SyscallInfo* info = kernel::find_syscall(what);
    const std::vector<int> errors = logs::errors_of(what);
    if (info == nullptr || errors.empty() || !case_.makes_call(node, what)) return;
    Observation scf = out_.observation(EventType::scf, node, ts);
    scf.syscall = static_cast<std::int16_t>(info->number);
    scf.err = static_cast<std::int16_t>(errors.front());
    if (done->path != 0) scf.path = out_.intern(case_.control()->str(done->path));
    if (done->path2 != 0) scf.path2 = out_.intern(case_.control()->str(done->path2));
    if (done->peer != 0) scf.peer = out_.intern(case_.control()->str(done->peer));
    if (!out_.has_failed_call(scf)) out_.put(scf, assumed(weight * share, words));
  };
  // A file that is opened for writing will be written, but writes are too frequent to be recorded individually, so also
  // guess failed writes. They are likelier than a failed open, because full disks are far more common than files that
  // cannot be opened.
  if (call.starts_with("open") || call == "creat") {
    failed("write", 1);
    failed("pwrite64", kNextCall);
    failed(call, kGuessedOpen);
  } else {
    failed(call, 1);
  }
}

}  // namespace rose::evidence
