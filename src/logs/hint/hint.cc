#include "logs/hint/hint.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <map>
#include <set>

#include "kernel/syscalls.h"
#include "logs/hint/findings.h"
#include "logs/hint/mentions.h"

namespace rose::logs {
namespace {

// Factor: another message, logged at most kEchoed before or after, reports the same error more precisely.
constexpr double kEcho = 0.3;
constexpr std::int64_t kEchoed = kSecond;

// Programs print "I/O error" for any failed disk operation. If another message at about the same time names a different
// error and its file, "I/O error" means that error.
void weigh_echoes(std::vector<Hint>& hints) {
  for (Hint& hint : hints) {
    if (hint.kind != Hint::Kind::call || hint.error != EIO || !hint.path.empty() || hint.ts_ns == kNoTime) continue;
    const bool named = std::any_of(hints.begin(), hints.end(), [&](const Hint& other) {
      return other.kind == Hint::Kind::call && other.log == hint.log && other.error != EIO &&
             kernel::resource_error(other.error) && !other.path.empty() && other.ts_ns != kNoTime &&
             std::abs(other.ts_ns - hint.ts_ns) <= kEchoed;
    });
    if (named) hint.weight *= kEcho;
  }
}

// After a message has named the cause, the system usually does less, so a node may be silent because it has nothing to
// log. Such a silence therefore gets less weight.
void weigh_silences(std::vector<Hint>& hints, const std::vector<std::size_t>& silences) {
  std::int64_t reported_ns = kNoTime;
  for (const Hint& hint : hints)
    if (hint.kind == Hint::Kind::call && hint.weight >= kLowLevel && kernel::resource_error(hint.error) &&
        hint.ts_ns != kNoTime && (reported_ns == kNoTime || hint.ts_ns < reported_ns))
      reported_ns = hint.ts_ns;
  // A node to which there was no route also has less to log, because no peer could reach it. Key: the node; value: the
  // time of the first message that reports this.
  std::map<std::string, std::int64_t> apart;
  for (const Hint& hint : hints)
    if (hint.kind == Hint::Kind::silence && hint.no_route && hint.weight >= kLowLevel && hint.ts_ns != kNoTime) {
      if (reported_ns == kNoTime || hint.ts_ns < reported_ns) reported_ns = hint.ts_ns;
      const auto [first, fresh] = apart.try_emplace(hint.peer, hint.ts_ns);
      if (!fresh) first->second = std::min(first->second, hint.ts_ns);
    }
  if (reported_ns == kNoTime) return;
  for (const std::size_t index : silences) {
    const auto cut_off = apart.find(hints[index].node);
    if (hints[index].ts_ns >=
        (cut_off == apart.end() ? reported_ns : std::min(reported_ns, cut_off->second - kNoticeTime)))
      hints[index].weight *= kExplainedSilence;
  }
}

// Groups the hints by time. Hints that are at most kTogether apart are in the same group.
class Groups {
 public:
  explicit Groups(const std::vector<Hint>& hints) : group_of_(hints.size(), kNoNode) {
    constexpr std::int64_t kTogether = 180 * kSecond;
    std::vector<std::size_t> by_time;
    for (std::size_t i = 0; i < hints.size(); ++i)
      if (hints[i].ts_ns != kNoTime) by_time.push_back(i);
    std::stable_sort(by_time.begin(), by_time.end(),
                     [&](std::size_t a, std::size_t b) { return hints[a].ts_ns < hints[b].ts_ns; });
    std::int64_t until = kNoTime;
    for (const std::size_t i : by_time) {
      if (messages_.empty() || hints[i].ts_ns - until > kTogether) messages_.emplace_back();
      until = std::max(until, hints[i].ts_ns);
      messages_.back().insert({hints[i].log, hints[i].message});
      group_of_[i] = messages_.size() - 1;
    }
    for (std::size_t i = 0; i < messages_.size(); ++i) most_ = std::max(most_, support(i));
  }

  // The number of different messages in the group of hint `i`; 0 if the hint has no time.
  [[nodiscard]] std::size_t size_of(std::size_t i) const {
    return group_of_[i] == kNoNode ? 0 : messages_[group_of_[i]].size();
  }
  // size_of(), plus one for each further node that logged a message of the group, because two nodes that agree are
  // stronger evidence than two messages of one node.
  [[nodiscard]] std::size_t support_of(std::size_t i) const {
    return group_of_[i] == kNoNode ? 0 : support(group_of_[i]);
  }
  [[nodiscard]] std::size_t most() const { return most_; }

 private:
  [[nodiscard]] std::size_t support(std::size_t group) const {
    std::set<std::size_t> logs;
    for (const auto& [log, message] : messages_[group]) logs.insert(log);
    return messages_[group].size() + logs.size() - 1;
  }

  // the messages of each group, as pairs of log and index
  std::vector<std::set<std::pair<std::size_t, std::uint32_t>>> messages_;
  std::vector<std::size_t> group_of_;
  std::size_t most_ = 0;
};

// Assumption: an outage leaves several messages at about the same time. Hours of logs also contain single errors from
// which the programs recover. Goal: such an error does not rank before the outage. Derivation: if one group of hints
// comes from kCluster different messages or more, a group with at most a third as many messages is half as likely to be
// the cause. It remains a candidate, because a cause may be long before its effects.
void weigh_isolated(std::vector<Hint>& hints, const Logs& failure) {
  constexpr std::size_t kCluster = 3, kLongLogs = 500;
  constexpr double kIsolated = 0.5;
  std::size_t messages = 0;
  for (const NodeLog& node : failure.nodes) messages += node.messages.size();
  const Groups groups(hints);
  if (messages < kLongLogs || groups.most() < kCluster) return;
  for (std::size_t i = 0; i < hints.size(); ++i)
    if (const std::size_t size = groups.support_of(i); size != 0 && size * 3 <= groups.most())
      hints[i].weight *= kIsolated;
}

// Assumption: in a system that runs for hours, it is an everyday event that a client goes away, a peer answers late
// once, or a task fails. Goal: such an event is not taken for part of an outage. Derivation: an event is everyday if no
// node reports anything else around its time, and if the node that logged it logs kGoesOn messages after it, for
// kGoesOnFor or longer. Failures of disks and resources, wrong clocks, and ends by a signal are never everyday.
void weigh_passing(std::vector<Hint>& hints, const Logs& failure) {
  constexpr std::size_t kLongLog = 200, kGoesOn = 100;
  constexpr std::int64_t kGoesOnFor = 300 * kSecond;
  constexpr std::uint64_t kMostTimes = 2;
  constexpr double kPassing = 0.5;
  const Groups groups(hints);
  std::vector<bool> dropped(hints.size());
  for (std::size_t i = 0; i < hints.size(); ++i) {
    Hint& hint = hints[i];
    if (groups.size_of(i) != 1 || hint.count > kMostTimes || hint.log >= failure.nodes.size()) continue;
    const std::vector<Message>& all = failure.nodes[hint.log].messages;
    if (all.size() < kLongLog || all.size() - hint.message <= kGoesOn || all.back().ts_ns - hint.ts_ns < kGoesOnFor)
      continue;
    const bool everyday = hint.kind == Hint::Kind::silence ||
                          (hint.kind == Hint::Kind::limit && hint.limit == Hint::Limit::disk_slow) ||
                          (hint.kind == Hint::Kind::call && !kernel::resource_error(hint.error)) ||
                          (hint.kind == Hint::Kind::end && ((hint.reported && hint.signal == 0) || hint.missed)) ||
                          (hint.kind == Hint::Kind::stop && failure.nodes[hint.log].node != hint.node);
    if (!everyday) continue;
    hint.passing = true;
    hint.weight *= kPassing;
    if (hint.kind == Hint::Kind::call && !hint.syscalls.empty()) hint.syscalls.resize(1);
    // If the message does not name the missed node and also reports a failed call, the hint that a node was missed is
    // only a guess. Drop it, and keep the hint of the call.
    dropped[i] = hint.kind != Hint::Kind::call && hint.unnamed &&
                 std::any_of(hints.begin(), hints.end(), [&](const Hint& other) {
                   return other.kind == Hint::Kind::call && other.log == hint.log && other.message == hint.message;
                 });
  }
  std::size_t i = 0;
  std::erase_if(hints, [&](const Hint&) { return dropped[i++]; });
}

// A wrong clock differs from the clocks of all other nodes, and each of these clocks differs only from the wrong clock.
void weigh_clocks(std::vector<Hint>& hints) {
  std::map<std::string, std::set<std::string>>
      differ;  // key: a node; value: the nodes whose clocks differ from its clock
  for (const Hint& hint : hints)
    if (hint.kind == Hint::Kind::clock && !hint.clock.own) differ[hint.node].insert(hint.peer);
  std::size_t most = 0;
  for (const auto& [node, peers] : differ) most = std::max(most, peers.size());
  for (Hint& hint : hints)
    if (hint.kind == Hint::Kind::clock && !hint.clock.own)
      hint.weight *= static_cast<double>(differ[hint.node].size()) / static_cast<double>(most);
}

// The last resort if no message was understood. A warning or error that names another node counts as a complaint about
// that node. If there is only one log, a warning or error that names no node counts as a complaint about the node
// itself. If no message of a short excerpt has a level, each of its messages counts as a complaint, because the excerpt
// was selected to show the problem.
class Complaints {
 public:
  explicit Complaints(Findings& found) : found_(found) {
    std::size_t messages = 0;
    for (const NodeLog& log : found.failure.nodes) {
      messages += log.messages.size();
      for (const Message& message : log.messages) levels_ = levels_ || message.level != Level::none;
    }
    excerpt_ = messages <= kExcerpt && found.normal.nodes.empty();
  }

  void find() {
    if (about_another(false) || about_outsider() || about_itself(false)) return;
    if (excerpt_ && !levels_ && !about_another(true)) about_itself(true);
  }

 private:
  static constexpr std::size_t kExcerpt = 20;  // logs with at most this many messages are an excerpt
  static constexpr double kAboutAnother = 0.3, kAboutOutsider = 0.3, kAboutItself = 0.2, kPausedInstead = 0.15,
                          kCutInstead = 0.12;
  static constexpr double kWithoutLevel = 0.5;  // factor: the message has no level
  static constexpr std::int64_t kAssumedPauseLength = 10 * kSecond;

  [[nodiscard]] bool complains(std::size_t n, const Message& message, Level least, bool any) const {
    const bool is_bad = any ? message.level == Level::none : message.level >= least;
    return is_bad && !found_.belongs_to_start(n, message) && !found_.occurs_throughout(n, message.kind) &&
           !found_.is_normal(n, message.kind);
  }

  // Treats the first complaint that names another node as a report that this node is missing. `any`: messages without a
  // level count as complaints. Returns true if there is such a complaint.
  bool about_another(bool any) {
    for (std::size_t n = 0; n < found_.failure.nodes.size(); ++n)
      for (const Message& message : found_.node(n).messages) {
        if (!complains(n, message, Level::warning, any)) continue;
        const Meaning meaning = found_.meaning(n, message);
        if (meaning.starting || meaning.serving) continue;
        const std::string other =
            mentioned_node(found_.numbered, found_.node(n).node, meaning, found_.failure.text(message));
        if (other.empty()) continue;
        Hint& hint = found_.add(Hint::Kind::silence, n, message, kAboutAnother * (any ? kWithoutLevel : 1));
        hint.peer = other;
        hint.unnamed = hint.timed_out = true;
        find_missed_ends(found_);
        return true;
      }
    return false;
  }

  // Used if the deployment has only one node, and this node complains about a peer outside the deployment. Only results
  // of the node's calls to that peer can be injected.
  bool about_outsider() {
    if (found_.names.size() != 1) return false;
    for (std::size_t n = 0; n < found_.failure.nodes.size(); ++n)
      for (const Message& message : found_.node(n).messages) {
        const Meaning meaning = found_.meaning(n, message);
        if (!meaning.lost || meaning.error != 0 || meaning.clock || found_.node(n).node.empty() ||
            found_.belongs_to_start(n, message) || found_.occurs_throughout(n, message.kind) ||
            found_.is_normal(n, message.kind))
          continue;
        Hint& hint = found_.add(Hint::Kind::call, n, message, kAboutOutsider);
        hint.error = meaning.closed ? ECONNRESET : ETIMEDOUT;
        hint.syscalls = meaning.closed ? std::vector<std::string_view>{"recvfrom", "sendto"}
                                       : std::vector<std::string_view>{"connect", "recvfrom"};
        hint.peer = meaning.peer;
        hint.unnamed = true;
        return true;
      }
    return false;
  }

  // Treats the last complaint in the only log as the effect of an end, a pause or a partition of its node.
  bool about_itself(bool any) {
    if (found_.failure.nodes.size() != 1 || !found_.normal.nodes.empty()) return false;
    const std::vector<Message>& all = found_.node(0).messages;
    // Begin with the last message, because it is the closest to the failure.
    for (auto message = all.rbegin(); message != all.rend(); ++message) {
      if (!complains(0, *message, excerpt_ ? Level::warning : Level::error, any)) continue;
      if (const Meaning meaning = found_.meaning(0, *message); meaning.starting || meaning.serving || meaning.stopping)
        return false;
      Hint& end = found_.add(Hint::Kind::end, 0, *message, kAboutItself * (any ? kWithoutLevel : 1));
      end.signal = SIGKILL;
      end.reported = end.unnamed = true;
      Hint& stop = found_.add(Hint::Kind::stop, 0, *message, kPausedInstead * (any ? kWithoutLevel : 1));
      stop.took_ns = kAssumedPauseLength;
      stop.missed = true;
      for (const NodeName& other : found_.names) {
        if (other.node == found_.node(0).node || found_.node(0).node.empty()) continue;
        Hint& cut = found_.add(Hint::Kind::silence, 0, *message, kCutInstead * (any ? kWithoutLevel : 1));
        cut.peer = other.node;
        cut.unnamed = true;
      }
      return true;
    }
    return false;
  }

  Findings& found_;
  bool excerpt_ = false, levels_ = false;
};

}  // namespace

std::vector<Hint> find_hints(const Logs& failure, const Logs& normal, const Difference& difference,
                             const std::vector<NodeName>& nodes) {
  Findings found(failure, normal, difference, nodes);
  for (std::size_t n = 0; n < failure.nodes.size(); ++n) {
    find_ends(found, n);
    find_gaps(found, n);
  }
  for (std::size_t n = 0; n < failure.nodes.size(); ++n) {
    find_reports(found, n);
    find_thrown(found, n);
  }
  find_missed(found);
  find_missed_ends(found);
  find_lost_roles(found);
  // The evidence from here on is weak, so each kind of it is used only if there are no hints yet.
  if (found.hints.empty()) find_silent_node(found);
  if (found.hints.empty()) find_lone_stop(found);
  if (found.hints.empty()) {
    found.everything = true;
    for (std::size_t n = 0; n < failure.nodes.size(); ++n) find_reports(found, n);
  }
  if (found.hints.empty()) {
    found.debug_only = true;
    for (std::size_t n = 0; n < failure.nodes.size(); ++n) find_reports(found, n);
  }
  if (found.hints.empty()) Complaints(found).find();
  weigh_echoes(found.hints);
  weigh_silences(found.hints, found.silences);
  weigh_clocks(found.hints);
  weigh_isolated(found.hints, failure);
  if (normal.nodes.empty()) weigh_passing(found.hints, failure);
  std::stable_sort(found.hints.begin(), found.hints.end(),
                   [](const Hint& a, const Hint& b) { return a.weight > b.weight; });
  if (found.hints.size() > kMostHints) found.hints.resize(kMostHints);
  return std::move(found.hints);
}

}  // namespace rose::logs
