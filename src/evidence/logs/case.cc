#include "evidence/logs/case.h"

#include <algorithm>
#include <limits>

#include "base/units.h"

namespace rose::evidence {

void TimeLine::add(std::int64_t normal, std::int64_t failure) {
  if (!points_.empty() && (normal <= points_.back().first || failure < points_.back().second)) return;
  points_.emplace_back(normal, failure);
}

std::int64_t TimeLine::operator()(std::int64_t normal) const {
  if (points_.empty()) return normal + shift_;
  const auto after = std::lower_bound(points_.begin(), points_.end(), normal,
                                      [](const auto& point, std::int64_t ts) { return point.first < ts; });
  if (after == points_.begin()) return normal - after->first + after->second;
  if (after == points_.end()) return normal - points_.back().first + points_.back().second;
  const auto before = after - 1;
  const double share = static_cast<double>(normal - before->first) / static_cast<double>(after->first - before->first);
  return before->second + static_cast<std::int64_t>(share * static_cast<double>(after->second - before->second));
}

std::int64_t begin_of(const trace::Trace& trace) {
  if (trace.meta.begin_ns > 0) return trace.meta.begin_ns;
  return trace.events.empty() ? 0 : trace.events.front().ts_ns;
}

std::int64_t end_of(const trace::Trace& trace) {
  if (trace.meta.end_ns > 0) return trace.meta.end_ns;
  return trace.events.empty() ? kSecond : trace.events.back().ts_ns;
}

LogCase::LogCase(const Evidence& inputs, const logs::Evidence& evidence, const trace::Trace* control)
    : inputs_(inputs), evidence_(evidence), control_(control) {
  read_times();
}

std::string LogCase::node_of(const std::string& name) const {
  if (name.empty() && inputs_.config->nodes.size() == 1) return inputs_.config->nodes[0].name;
  return name;
}

std::string LogCase::name_of(std::size_t log) const {
  const logs::NodeLog& node = evidence_.failure.nodes[log];
  return node_of(node.node.empty() && inputs_.config->nodes.size() > 1 ? node.name : node.node);
}

std::string_view LogCase::name_in_control(const trace::Event& event) const {
  return event.node != 0 ? control_->str(event.node) : std::string_view(control_->meta.node);
}

bool LogCase::makes_call(const std::string& node, std::string_view call) const {
  if (!inputs_.profile) return true;
  const auto counts = inputs_.profile->syscalls.find(node);
  if (counts == inputs_.profile->syscalls.end() || counts->second.empty()) return true;
  const auto count = counts->second.find(std::string(call));
  return count != counts->second.end() && count->second > 0;
}

// Sets the first and the last time of the incident, and the maps from times of the control run: one for each node, and
// one for all. Without matched messages, the control run is placed so that it begins with the incident.
void LogCase::read_times() {
  first_ = logs::kNoTime;
  for (const logs::NodeLog& node : evidence_.failure.nodes)
    for (const logs::Message& message : node.messages) {
      if (message.ts_ns == logs::kNoTime) continue;
      first_ = first_ == logs::kNoTime ? message.ts_ns : std::min(first_, message.ts_ns);
      last_ = std::max(last_, message.ts_ns);
    }
  timed_ = first_ != logs::kNoTime;
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
    // Use only the messages before the node's first restart. The node does not restart in the control run, so the
    // control run logged the match of a later message at an unrelated time.
    std::uint32_t life = std::numeric_limits<std::uint32_t>::max();
    for (const logs::Hint& hint : evidence_.hints)
      if (hint.kind == logs::Hint::Kind::end && !hint.reported && hint.log == n && hint.until_ns != logs::kNoTime)
        life = std::min(life, hint.message);
    TimeLine line;
    for (const logs::Matched& pair : difference.matched) {
      if (pair.failure > life) break;
      const std::int64_t there = evidence_.failure.nodes[n].messages[pair.failure].ts_ns;
      const std::int64_t here = evidence_.normal.nodes[difference.normal].messages[pair.normal].ts_ns;
      if (there == logs::kNoTime || here == logs::kNoTime) continue;
      line.add(here, there);
      all.emplace_back(here, there);
    }
    if (!line.empty()) lines_.emplace(evidence_.normal.nodes[difference.normal].node, std::move(line));
  }
  std::sort(all.begin(), all.end());
  for (const auto& [here, there] : all) common_.add(here, there);
  if (all.empty()) common_.shift(shift);
}

std::int64_t LogCase::to_incident(std::string_view node, std::int64_t normal) const {
  const auto line = lines_.find(node);
  return line == lines_.end() ? to_incident(normal) : line->second(normal);
}

std::int64_t LogCase::time_of(const logs::Hint& hint) const {
  return hint.ts_ns != logs::kNoTime ? hint.ts_ns : first_ + (last_ - first_) / 2;
}

std::int64_t LogCase::latest(const logs::Hint& hint, const std::string& node) const {
  const std::int64_t ts = time_of(hint);
  if (control_ == nullptr || hint.log >= evidence_.difference.nodes.size()) return ts;
  const logs::NodeDifference& difference = evidence_.difference.nodes[hint.log];
  if (difference.normal == logs::kNoNode) return ts;
  const auto after =
      std::upper_bound(difference.matched.begin(), difference.matched.end(), hint.message,
                       [](std::uint32_t message, const logs::Matched& pair) { return message < pair.failure; });
  // If this message has no match, the two logs had already diverged before it, so the next message of the normal log
  // gives no limit.
  if (after == difference.matched.begin() || (after - 1)->failure != hint.message) return ts;
  const std::vector<logs::Message>& usual = evidence_.normal.nodes[difference.normal].messages;
  const std::size_t next = (after - 1)->normal + 1;
  const bool aligned = evidence_.failure.nodes[hint.log].aligned;
  // If there is no next message, the limit is the end of the incident. A log without timestamps does not show it: the
  // incident may then have lasted longer than its last message shows, until the end of the control run.
  const std::int64_t over = aligned ? std::max(last_, end_of(*control_)) : last_;
  std::int64_t until =
      next < usual.size() && usual[next].ts_ns != logs::kNoTime ? to_incident(node, usual[next].ts_ns) : over;
  if (!aligned && hint.until_ns != logs::kNoTime) until = std::min(until, hint.until_ns);
  return std::max(ts, until - 1);
}

}  // namespace rose::evidence
