#include "logs/hint/node_reports.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <optional>
#include <string>
#include <unordered_map>

#include "base/ascii.h"
#include "base/ports.h"
#include "kernel/syscalls.h"
#include "logs/hint/mentions.h"

namespace rose::logs {
namespace {

constexpr std::uint64_t kMostRead = 500;  // at most this many messages of one kind are read individually
constexpr std::size_t kLongLog = 200;     // a log with this many messages shows by itself which messages are normal
constexpr std::size_t kHeading = 32;  // a first line of at most this many characters is only the heading of a message
// a message of at most this many characters may only state the error of the message before it
constexpr std::size_t kErrorAlone = 60;

// If the next message only states an error ("Error: Is a directory."), uses that as the error of this message. Returns
// true if it does.
bool take_error_of_next(const Findings& found, const NodeLog& here, const Message& message, Meaning& meaning) {
  const Message* next = &message + 1;
  if (next == here.messages.data() + here.messages.size() || next->stream != message.stream) return false;
  const std::string_view text = found.failure.text(*next);
  if (text.size() > kErrorAlone) return false;
  const Meaning following = read_meaning(text);
  if (following.error == 0 || following.operation != Operation::unknown || !following.path.empty() ||
      !following.peer.empty())
    return false;
  meaning.error = following.error;
  meaning.failed = false;
  return true;
}

// How long the writer was paused. A message that reports a wake-up usually states no duration. The program could not
// log while it was suspended, so the duration is that of the silence of its log before the message. Messages in the
// last second before the message (kAtWake) are ignored, because a program that wakes up first reports the timers that
// expired meanwhile. A silence of kLongest or more is longer than any pause that can be injected, so the default is
// used.
std::int64_t pause_reported(const NodeLog& here, const Message& message, const Meaning& meaning) {
  constexpr std::int64_t kAtWake = kSecond, kLongest = 3600 * kSecond;
  if (!meaning.pause_unstated || message.ts_ns == kNoTime) return meaning.own_pause_ns;
  for (const Message* before = &message; before != here.messages.data();) {
    --before;
    if (before->ts_ns == kNoTime || before->ts_ns > message.ts_ns - kAtWake) continue;
    const std::int64_t silence = message.ts_ns - before->ts_ns;
    return silence < kLongest ? silence : meaning.own_pause_ns;
  }
  return meaning.own_pause_ns;
}

// The first two parts of an IPv4 address: "10.1" for "10.1.2.3:80". "" for anything else.
std::string_view network_of(std::string_view address) {
  if (address.empty() || !is_digit(address[0]) || std::count(address.begin(), address.end(), '.') != 3) return {};
  return address.substr(0, address.find('.', address.find('.') + 1));
}

// Assumption: if no known address of a node is in the peer's network, the peer may be any node. Goal: to read a log of
// production even if the nodes have other addresses there than in the deployment, and only one log is available.
// Derivation: the nodes' known addresses are those of the deployment, and those that the logs or --map state. A peer in
// one of their networks that is no node is a client or another service. A high port is also that of a client, and port
// 53 that of a resolver.
bool may_be_any_node(const std::vector<NodeName>& names, std::string_view peer) {
  constexpr int kDns = 53;
  const std::string_view network = network_of(peer);
  const std::size_t colon = peer.rfind(':');
  const int port = colon == peer.npos ? 0 : std::atoi(std::string(peer.substr(colon + 1)).c_str());
  if (network.empty() || port >= kFirstClientPort || port == kDns) return false;
  return std::none_of(names.begin(), names.end(), [&](const NodeName& node_name) {
    return std::any_of(node_name.also.begin(), node_name.also.end(),
                       [&](const std::string& name) { return network_of(name) == network; });
  });
}

double weight_of(Level level) {
  return level == Level::info || level == Level::debug || level == Level::trace ? kLowLevel : 1;
}

// EINVAL for a peer means a blackhole route. Such a message reports that the peer cannot be reached, so it leads to a
// hint about the peer and not to one about a failed call.
bool no_route_to_peer(const Meaning& meaning) {
  return meaning.error == EINVAL && (meaning.lost || !meaning.peer.empty());
}

bool fails_some_call(const Meaning& meaning) {
  return meaning.error != 0 && !calls_that_fail(meaning.error, meaning.operation).empty();
}

FailedCall call_of(const Meaning& meaning) {
  return {meaning.error, meaning.path, meaning.lost ? meaning.peer : std::string()};
}

}  // namespace

// Reads up to kMostRead messages of each kind. Further messages of a kind get the meaning of the last message that was
// read.
void NodeReports::read() {
  std::unordered_map<TemplateId, Kind> kinds;
  const Message* read_before = nullptr;  // the message that was already read together with the previous one
  for (const Message& message : here_.messages) {
    if (&message == read_before) continue;
    const std::optional<FailedCall> following_call = read_following_lines(message);
    Kind& kind = kinds[message.kind];
    // Messages of one kind report the same facts, with two exceptions: what follows a heading differs, and each
    // reported pause has its own length.
    if (kind.times != 0 && !kind.reports && kind.meaning.own_pause_ns == 0 &&
        (kind.times > kMostRead || found_.failure.text(message).find('\n') > kHeading))
      continue;
    // Read each message up to the limit, because the paths and peers in messages of one kind differ.
    if (++kind.times <= kMostRead && read_message(message, kind)) read_before = &message + 1;
    if (kind.meaning.reports_anything()) keep(message, kind, following_call);
  }
  fold_paths(calls_);
  for (std::map<std::string, Report>* reports : {&peers_, &refusing_, &unnamed_})
    for (auto& [other, report] : *reports) settle(report);
}

std::optional<FailedCall> NodeReports::read_following_lines(const Message& message) {
  const std::string_view following = found_.following_lines(message);
  if (following.empty() || ++following_lines_read_ > kMostRead) return std::nullopt;
  const Meaning meaning = read_meaning(following);
  if (fails_some_call(meaning) && !no_route_to_peer(found_.meaning(message)))
    put(calls_[call_of(meaning)], message, meaning, kExplicit);
  if (meaning.failed) put(in_vain_[{meaning.operation, meaning.path}], message, meaning, kExplicit);
  return call_of(meaning);
}

bool NodeReports::read_message(const Message& message, Kind& kind) {
  kind.meaning = found_.meaning(n_, message);
  kind.reports = kind.reports || kind.meaning.reports_anything();
  const bool next_too = kind.meaning.failed && take_error_of_next(found_, here_, message, kind.meaning);
  // At level info and below, clients report by number that usual connections ended, for example because they were idle.
  const bool usual = message.level != Level::none && message.level <= Level::info;
  const std::vector<NodeName>& names = usual ? found_.names : found_.numbered;
  kind.other =
      kind.reports ? mentioned_node(names, here_.node, kind.meaning, found_.failure.text(message)) : std::string();
  return next_too;
}

// True if the message reports no problem, because it is logged for debugging, belongs to a successful start, or occurs
// throughout the log.
bool NodeReports::reports_nothing(const Message& message, const Meaning& meaning) const {
  const bool throughout = here_.messages.size() >= kLongLog && found_.occurs_throughout(n_, message.kind);
  if (meaning.ended || meaning.panic) return false;
  if (kernel::resource_error(meaning.error) && !meaning.vague)
    return throughout && !found_.everything && found_.occurs_throughout_all(message.kind);
  if (found_.belongs_to_start(n_, message)) return true;
  if (meaning.clock || meaning.own_pause_ns != 0 || meaning.other_pause_ns != 0) return false;
  return message.level == Level::debug || message.level == Level::trace || throughout;
}

// True if the message reports, at a level for debugging, that a named node is missing or that a disk is slow.
bool NodeReports::misses_at_debug(const Message& message, const Kind& kind) const {
  if ((message.level != Level::debug && message.level != Level::trace) || found_.occurs_throughout(n_, message.kind) ||
      found_.belongs_to_start(n_, message))
    return false;
  if (kind.meaning.slow_disk_ns > 0) return true;
  const bool of_connection = kind.meaning.error == 0 || kind.meaning.error == ECONNREFUSED;
  return kind.meaning.lost && of_connection && !kind.other.empty() && !kind.meaning.clock;
}

// Adds the message to the report of each fact in it. The message has a lower weight if runs without faults have such
// messages, too, or if they occur throughout the log.
void NodeReports::keep(const Message& message, const Kind& kind, const std::optional<FailedCall>& following_call) {
  const Meaning& meaning = kind.meaning;
  if (found_.debug_only ? !misses_at_debug(message, kind) : reports_nothing(message, meaning)) return;
  const Observed* observed = found_.observed_as(n_, message.kind);
  double weight = observed != nullptr                          ? observed->weight
                  : found_.occurs_throughout(n_, message.kind) ? kThroughout
                  : found_.normal.nodes.empty()                ? kExplicit
                                                               : kAlsoNormal;
  if (found_.debug_only) weight *= kLowLevel;
  if (meaning.cut_off) put(cut_off_, message, meaning, weight);
  if (meaning.unresolved) {
    put(unresolved_, message, meaning, weight);
    names_looked_up_.insert(kind.other);
  }
  if (meaning.outcast) put(outcast_, message, meaning, weight);
  // At lower levels, such a message usually reports the expected end of recovered data: "invalid record, recovery ends
  // here".
  if (meaning.torn && weight_of(message.level) == 1) put(torn_, message, meaning, weight);
  if (meaning.unclean) put(unclean_, message, meaning, weight);
  found_.divided = found_.divided || meaning.divided;
  found_.reunited = found_.reunited || meaning.reunited;
  const bool misses = !is_of_other(kind) && !meaning.clock && !meaning.cut_off && meaning.slow_disk_ns == 0 &&
                      (meaning.lost || meaning.late);
  const bool for_a_reason = misses && found_.has_expected_absence(n_, kind.other, message.ts_ns);
  if (for_a_reason) weight = std::min(weight, kAlsoNormal);
  const NodeLog* peer = for_a_reason ? found_.log_of(kind.other) : nullptr;
  if (peer != nullptr && !kernel::resource_error(meaning.error) &&
      found_.is_restarted(static_cast<std::size_t>(peer - found_.failure.nodes.data()), message.ts_ns))
    return;
  keep_failure(message, kind, weight * weight_of(message.level), following_call);
  if (meaning.clock) keep_clock(message, kind, weight);
  else if (misses && !for_a_reason) keep_missing(message, kind, weight);
  if (const std::int64_t pause = pause_reported(here_, message, meaning); pause >= kLeastPause) {
    pauses_[message.kind].push_back(pause);
    if (longest_.first == nullptr || pause > longest_.meaning.own_pause_ns) {
      longest_ = {};
      put(longest_, message, meaning, weight);
      longest_.meaning.own_pause_ns = pause;
    }
  }
  if (meaning.other_pause_ns > 0) keep_suspension(message, kind, weight);
  if (meaning.slow_disk_ns > 0)
    if (Report& slowest = slowest_[kind.other];
        slowest.first == nullptr || meaning.slow_disk_ns > slowest.meaning.slow_disk_ns) {
      slowest = {};
      put(slowest, message, meaning, weight);
    }
  if (!meaning.ended || meaning.panic) return;
  // During an orderly stop, the exit codes of child processes mean nothing.
  const auto at = static_cast<std::size_t>(&message - here_.messages.data());
  if (meaning.signal == 0 && kind.times <= kMostRead && stops_in_order(found_.failure, found_.names, here_, 0, at))
    return;
  put(processes_[{kind.other.empty() ? here_.node : kind.other,
                  meaning.signal != 0 ? meaning.signal : 1000 + meaning.exit_code}],
      message, meaning, weight);
}

void NodeReports::keep_failure(const Message& message, const Kind& kind, double weight,
                               const std::optional<FailedCall>& following_call) {
  const Meaning& meaning = kind.meaning;
  if (is_of_other(kind)) {
    if (fails_some_call(meaning)) put(calls_of_others_[{kind.other, call_of(meaning)}], message, meaning, weight);
    return;
  }
  if (fails_some_call(meaning) && !no_route_to_peer(meaning) && following_call != call_of(meaning))
    put(calls_[call_of(meaning)], message, meaning, weight);
  if (meaning.failed) put(in_vain_[{meaning.operation, meaning.path}], message, meaning, weight);
}

void NodeReports::keep_missing(const Message& message, const Kind& kind, double weight) {
  const std::vector<NodeName>& names = found_.names;
  if (kind.meaning.closed && !kind.other.empty()) answered_.insert(kind.other);
  if (!kind.other.empty())
    put_episode((kind.meaning.error == ECONNREFUSED ? refusing_ : peers_)[kind.other], message, kind.meaning, weight);
  else if ((kind.meaning.peer.empty() || kind.meaning.peer.starts_with("127.") ||
            may_be_any_node(names, kind.meaning.peer)) &&
           !here_.node.empty() && (names.size() == 2 || kind.meaning.lost))
    // If there are more than two nodes, any of the others may be the missing one.
    for (const NodeName& other : names)
      if (other.node != here_.node)
        put_episode(unnamed_[other.node], message, kind.meaning,
                    weight * (names.size() == 2 ? kUnnamedOfTwo : kUnnamedOfSeveral));
}

// Keeps the longest suspension of each node. If the message does not name the node, it may be any of the others.
void NodeReports::keep_suspension(const Message& message, const Kind& kind, double weight) {
  const auto keep_longest = [&](const std::string& node, double factor) {
    Report& longest = suspended_[node];
    if (longest.first != nullptr && longest.meaning.other_pause_ns >= kind.meaning.other_pause_ns) return;
    longest = {};
    put(longest, message, kind.meaning, factor * weight);
  };
  if (!kind.other.empty()) return keep_longest(kind.other, 1);
  for (const NodeName& other : found_.names)
    if (other.node != here_.node) keep_longest(other.node, found_.names.size() == 2 ? 1 : kUnnamedOfSeveral);
}

void NodeReports::keep_clock(const Message& message, const Kind& kind, double weight) {
  put(clocks_[kind.meaning.clock->own ? here_.node : kind.other], message, kind.meaning, weight);
}

void find_reports(Findings& found, std::size_t n) {
  NodeReports reports(found, n);
  reports.read();
  reports.add_hints();
}

}  // namespace rose::logs
