#include "evidence/causes.h"

#include <limits>
#include <utility>

#include "evidence/surprise.h"
#include "weights/weights.h"

namespace rose::evidence {
namespace {

std::vector<Cause> by_time(std::vector<Cause> causes) {
  std::stable_sort(causes.begin(), causes.end(), [](const Cause& a, const Cause& b) { return a.start < b.start; });
  return causes;
}

std::vector<std::int64_t> ends_of(const std::vector<Cause>& causes) {
  std::vector<std::int64_t> ends;
  for (const Cause& cause : causes) ends.push_back(cause.end);
  return ends;
}

}  // namespace

Lasting::Lasting(const std::vector<std::int64_t>& ends) : size_(ends.size()) {
  while (leaves_ < size_) leaves_ *= 2;
  latest_.assign(2 * leaves_, std::numeric_limits<std::int64_t>::min());
  std::copy(ends.begin(), ends.end(), latest_.begin() + static_cast<std::ptrdiff_t>(leaves_));
  for (std::size_t i = leaves_ - 1; i > 0; --i) latest_[i] = std::max(latest_[2 * i], latest_[2 * i + 1]);
}

std::size_t Lasting::next(std::size_t from, std::int64_t ts) const {
  if (from >= size_) return size_;
  std::size_t at = leaves_ + from;
  while (latest_[at] < ts) {
    while ((at & 1) != 0) at /= 2;  // a right child: continue at the right sibling of an ancestor
    if (at == 0) return size_;
    ++at;
  }
  while (at < leaves_) {
    at *= 2;
    if (latest_[at] < ts) ++at;
  }
  return std::min(at - leaves_, size_);
}

Causes::Causes(std::vector<Cause> causes, std::vector<int> networks)
    : causes_(by_time(std::move(causes))),
      of_(networks.size()),
      networks_(std::move(networks)),
      lasting_(ends_of(causes_)) {
  for (std::size_t i = 0; i < causes_.size(); ++i) of_[static_cast<std::size_t>(causes_[i].node)].push_back(i);
}

Causes Causes::with(const std::vector<Cause>& more) const {
  std::vector<Cause> all = causes_;
  all.insert(all.end(), more.begin(), more.end());
  return {std::move(all), networks_};
}

const Cause* Causes::explaining(const Event& event, int node, int peer_node, bool peer_known) const {
  const auto network = [this](int member) { return member < 0 ? member : networks_[static_cast<std::size_t>(member)]; };
  const std::int64_t grace = event.err == 110 /* ETIMEDOUT */ ? kConnectTimeout : kAftermath;
  for (std::size_t i = lasting_.next(0, event.ts_ns - grace); i < causes_.size();
       i = lasting_.next(i + 1, event.ts_ns - grace)) {
    const Cause& cause = causes_[i];
    if (event.ts_ns < cause.start - kSecond / 2) break;  // causes_ is sorted by time, so all further ones are later
    // An address identifies a network, so the peer may be any of the nodes that share this network.
    const bool meant = peer_known && network(cause.node) == network(peer_node);
    if (cause.kind == CauseKind::killed || cause.kind == CauseKind::ended_itself || cause.kind == CauseKind::planned) {
      if (peer_known ? meant : cause.node != node) return &cause;
    } else if (!peer_known || (cause.kind == CauseKind::partition ? cause.concerns(network(node), network(peer_node))
                                                                  : cause.node == node || meant)) {
      return &cause;
    }
  }
  return nullptr;
}

bool Causes::while_ending(const Event& event, int node) const {
  const std::vector<std::size_t>& of = of_[static_cast<std::size_t>(node)];
  const auto soon = std::lower_bound(of.begin(), of.end(), event.ts_ns - kAfterKill,
                                     [&](std::size_t cause, std::int64_t ts) { return causes_[cause].start < ts; });
  for (auto it = soon; it != of.end() && causes_[*it].start < event.ts_ns; ++it) {
    const Cause& cause = causes_[*it];
    if (cause.kind == CauseKind::paused || cause.kind == CauseKind::partition || cause.partly ||
        cause.plainness < kLeastReported)
      continue;
    // A resource error that came before the end of the leading process may be the reason for this end. For example, a
    // worker fails, its recovery fails on the same disk, and then the main process ends.
    if (event.ts_ns <= cause.lead_ended_ns && resource_error(event.err)) continue;
    if (event.ts_ns < cause.end) return true;
  }
  return false;
}

}  // namespace rose::evidence
