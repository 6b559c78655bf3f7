#include "logs/hint/findings.h"

#include <algorithm>
#include <csignal>

#include "logs/hint/mentions.h"
#include "logs/quote.h"

namespace rose::logs {
namespace {

constexpr std::size_t kTail = 6;  // at most this many messages before an end may state its cause
// A stop is a sequence of messages that report it. They follow each other within kStopInterval, and all of them are
// among the last kMostOfStop messages.
constexpr std::int64_t kStopInterval = 5 * kSecond;
constexpr std::size_t kMostOfStop = 1'000;
// A log with at least kLeastForThroughout messages is divided into kParts of equal size. A message that occurs in the
// first part, and in at least kMostParts parts, occurs "throughout the log".
constexpr std::size_t kLeastForThroughout = 20, kParts = 8, kMostParts = 6;

std::int64_t last_of(const Logs& logs) {
  std::int64_t last = kNoTime;
  for (const NodeLog& node : logs.nodes)
    if (is_timed(node)) last = std::max(last, node.messages.back().ts_ns);
  return last;
}

std::vector<std::int64_t> stops_of(const Logs& logs, const std::vector<NodeName>& names) {
  std::vector<std::int64_t> all;
  for (const NodeLog& node : logs.nodes) all.push_back(last_stop(logs, names, node, 0, node.messages.size()).since_ns);
  return all;
}

// True if the message reports the stop of another node, which the writer ordered or was informed of: "shutdown host
// n2".
bool is_of_another(const std::vector<NodeName>& names, const NodeLog& node, const Meaning& meaning,
                   std::string_view text) {
  return meaning.stop_end != 0 && is_object(names, node.node, text.substr(std::min(meaning.stop_end, text.size())));
}

}  // namespace

Findings::Findings(const Logs& failed, const Logs& sound, const Difference& between, const std::vector<NodeName>& nodes)
    : failure(failed),
      normal(sound),
      difference(between),
      names(with_stated_names(nodes, failed)),
      numbered(with_numbers(names, failed)),
      stops(stops_of(failed, names)),
      normal_stops(stops_of(sound, names)),
      last_ns(last_of(failed)),
      normal_last_ns(last_of(sound)) {
  for (const NodeLog& log : normal.nodes)
    for (const Message& message : log.messages)
      if (normal.text(message).find('\n') != std::string_view::npos) with_following_lines_.insert(message.kind);
  for (const NodeLog& log : failure.nodes) {
    knowledge::NamesOfNodes& known = names_of_nodes_.emplace_back();
    for (const NodeName& name : names) {
      known.emplace(name.node, name.node == log.node);
      for (const std::string& also : name.also) known.emplace(also, name.node == log.node);
    }
  }
  observed_.resize(failure.nodes.size());
  for (const Observed& observed : difference.observed) observed_[observed.node].emplace(observed.kind, &observed);
  for (const NodeLog& log : failure.nodes) {
    serves_from_.push_back(serves_from(failure, log));
    start_.push_back(normal.nodes.empty() ? messages_of_start(failure, log) : 0);
  }
  find_throughout();
  restarts_.resize(failure.nodes.size());
  for (std::size_t n = 0; n < failure.nodes.size(); ++n) find_restarts(n);
}

// A log usually begins before the fault, so a message that occurs in most parts of the log, including the first one, is
// no consequence of a fault. A short log is not examined, because it may be an excerpt that begins with the fault.
void Findings::find_throughout() {
  throughout_.resize(failure.nodes.size());
  if (!normal.nodes.empty()) return;
  for (std::size_t n = 0; n < failure.nodes.size(); ++n) {
    const std::vector<Message>& all = failure.nodes[n].messages;
    if (all.size() < kLeastForThroughout) continue;
    std::map<TemplateId, std::set<std::size_t>> parts;
    for (std::size_t i = 0; i < all.size(); ++i) parts[all[i].kind].insert(i * kParts / all.size());
    for (const auto& [kind, in] : parts)
      if (*in.begin() == 0 && in.size() >= kMostParts) throughout_[n].insert(kind);
  }
}

// Assumption: if a node stops in an orderly way within a long log and soon starts again, its operators restarted it.
// Goal: what its peers report meanwhile does not count as an outage. Derivation: the messages of the stop and of the
// start occur only a few times. Between them, the node logs none of the messages that it logs all the time (otherwise
// only one component was restarted), and no process reports a failure. The start follows within kMostDown. Connections
// close up to kBefore before the first message of the stop, and are open again kAfter after the start.
void Findings::find_restarts(std::size_t n) {
  constexpr std::size_t kLongLog = 200;
  constexpr std::uint64_t kFew = 6;
  constexpr std::int64_t kMostDown = 600 * kSecond, kBefore = 5 * kSecond, kAfter = 30 * kSecond;
  const NodeLog& log = failure.nodes[n];
  if (!normal.nodes.empty() || !is_timed(log) || log.messages.size() < kLongLog ||
      log.messages.back().ts_ns - log.messages.front().ts_ns < kLongRun)
    return;
  const Message* stop = nullptr;
  for (const Message& message : log.messages) {
    if (occurs_throughout(n, message.kind) || (stop != nullptr && message.ts_ns - stop->ts_ns > kMostDown))
      stop = nullptr;
    if (log.counts[message.kind] > kFew || belongs_to_start(n, message)) continue;
    const std::string_view text = failure.text(message);
    const Meaning meaning = read_meaning(text);
    const bool asked = meaning.signal == SIGTERM || meaning.signal == SIGINT;
    if ((meaning.ended && !asked) || meaning.panic || meaning.gave_up) stop = nullptr;
    else if (meaning.stopping && !is_of_another(names, log, meaning, text)) stop = stop != nullptr ? stop : &message;
    else if (stop != nullptr && meaning.starting) {
      restarts_[n].push_back({stop, stop->ts_ns - kBefore, message.ts_ns + kAfter});
      stop = nullptr;
    }
  }
}

const NodeLog* Findings::normal_log(std::size_t n) const {
  return difference.nodes[n].normal == kNoNode ? nullptr : &normal.nodes[difference.nodes[n].normal];
}

const Observed* Findings::observed_as(std::size_t n, TemplateId kind) const {
  const auto found = observed_[n].find(kind);
  return found != observed_[n].end() ? found->second : nullptr;
}

std::string_view Findings::following_lines(const Message& message) const {
  if (normal.nodes.empty() || with_following_lines_.contains(message.kind)) return {};
  const std::string_view text = failure.text(message);
  const std::size_t end = text.find('\n');
  return end == std::string_view::npos ? std::string_view() : text.substr(end + 1);
}

const NodeLog* Findings::log_of(std::string_view name) const {
  const auto found =
      std::find_if(failure.nodes.begin(), failure.nodes.end(), [&](const NodeLog& log) { return log.node == name; });
  return found == failure.nodes.end() ? nullptr : &*found;
}

bool Findings::has_expected_absence(std::size_t by, std::string_view of, std::int64_t ts_ns) const {
  if (ts_ns == kNoTime) return false;
  const auto has_stopped = [&](std::size_t n) { return stops[n] != kNoTime && ts_ns >= stops[n]; };
  if (has_stopped(by)) return true;
  const NodeLog* log = log_of(of);
  if (log == nullptr) return false;
  const auto other = static_cast<std::size_t>(log - failure.nodes.data());
  return is_starting(other, ts_ns) || has_stopped(other) || is_restarted(other, ts_ns);
}

bool Findings::is_restarted(std::size_t n, std::int64_t ts_ns) const {
  return std::ranges::any_of(restarts_[n], [&](const Restart& one) { return ts_ns >= one.begin && ts_ns <= one.end; });
}

bool Findings::logged_only_start(std::size_t n) const {
  return normal.nodes.empty() && last_ns - node(n).messages.front().ts_ns >= kLongRun &&
         logs_only_start(failure, node(n));
}

Hint& Findings::add(Hint::Kind kind, std::size_t n, const Message& message, double weight) {
  Hint& hint = hints.emplace_back();
  hint.kind = kind;
  hint.node = node(n).node;
  hint.ts_ns = message.ts_ns;
  hint.weight = weight;
  hint.log = n;
  hint.message = static_cast<std::uint32_t>(&message - node(n).messages.data());
  hint.words = quote(failure, n, message);
  return hint;
}

Hint& Findings::add(Hint::Kind kind, std::size_t n, const Repeated& repeated, double belief) {
  Hint& hint = add(kind, n, *repeated.first, belief * repeated.weight);
  hint.count = repeated.count;
  hint.until_ns = repeated.last->ts_ns;
  return hint;
}

bool is_timed(const NodeLog& node) {
  return !node.messages.empty() && node.messages.front().ts_ns != kNoTime && !node.aligned;
}

std::size_t tail_of(std::size_t begin, std::size_t end) { return end - std::min(end - begin, kTail); }

bool stops_in_order(const Logs& logs, const std::vector<NodeName>& names, const NodeLog& node, std::size_t begin,
                    std::size_t end) {
  for (std::size_t i = tail_of(begin, end); i < end; ++i)
    if (const Meaning meaning = read_meaning(logs.text(node.messages[i]));
        meaning.stopping && !is_of_another(names, node, meaning, logs.text(node.messages[i])))
      return true;
  return false;
}

Stop last_stop(const Logs& logs, const std::vector<NodeName>& names, const NodeLog& node, std::size_t begin,
               std::size_t end) {
  Stop stop;
  if (begin == end || !is_timed(node)) return stop;
  std::int64_t since = node.messages[end - 1].ts_ns;
  const std::size_t from = end - std::min(end - begin, kMostOfStop);
  for (std::size_t i = end; i-- > from && since - node.messages[i].ts_ns <= kStopInterval;) {
    const Meaning meaning = read_meaning(logs.text(node.messages[i]));
    if ((!meaning.stopping && !meaning.gave_up) || is_of_another(names, node, meaning, logs.text(node.messages[i])))
      continue;
    stop.since_ns = since = node.messages[i].ts_ns;
    stop.gave_up = stop.gave_up || meaning.gave_up;
  }
  return stop;
}

}  // namespace rose::logs
