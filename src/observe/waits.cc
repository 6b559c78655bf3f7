#include "observe/waits.h"

#include <algorithm>
#include <utility>

namespace rose::observe {
namespace {

// Keeps only the longest wait of each process. For waits in the freezer, keeps only the longest of each node.
class Longest {
 public:
  void add(const Waits::Wait& wait) {
    const bool frozen = (wait.flags & ROSE_IN_FREEZER) != 0;
    const auto [it, fresh] = longest_.emplace(std::pair(frozen, frozen ? wait.node : wait.tgid), wait);
    if (fresh) return;
    const std::uint32_t main = (wait.flags | it->second.flags) & ROSE_MAIN;
    if (wait.begin_ns < it->second.begin_ns) it->second = wait;
    if (frozen) it->second.flags |= main;
  }
  [[nodiscard]] std::vector<Waits::Wait> take() const {
    std::vector<Waits::Wait> out;
    for (const auto& [of, wait] : longest_) {
      out.push_back(wait);
      if (of.first) out.back().tgid = out.back().tid = 0;
    }
    return out;
  }

 private:
  std::map<std::pair<bool, std::uint32_t>, Waits::Wait> longest_;
};

}  // namespace

std::int64_t Waits::end_of(const Ongoing& ongoing_wait, std::int64_t now_ns) const {
  return std::min(now_ns, ongoing_wait.wait.end_ns + interval_ns_);
}

std::vector<Waits::Wait> Waits::sample(std::span<const rose_blocked> blocked, std::int64_t now_ns) {
  std::map<std::uint32_t, Ongoing> now;
  for (const auto& thread : blocked) {
    if (now.size() >= kMost) break;
    const auto before = ongoing_.find(thread.tid);
    // If the thread was not scheduled since the last sample, the same wait continues. Otherwise it is a new wait.
    if (before != ongoing_.end() && before->second.start_ns == thread.start_ns &&
        before->second.switches == thread.switches) {
      before->second.wait.end_ns = now_ns;
      now.insert(ongoing_.extract(before));
      continue;
    }
    now.emplace(thread.tid, Ongoing{thread.start_ns, thread.switches,
                                    Wait{thread.tgid, thread.tid, thread.node, thread.flags, now_ns, now_ns}});
  }
  ongoing_.swap(now);
  Longest over;
  for (auto& [tid, ended] : now) {
    ended.wait.end_ns = end_of(ended, now_ns);
    if (ended.wait.end_ns - ended.wait.begin_ns >= threshold_ns_) over.add(ended.wait);
  }
  return over.take();
}

std::vector<Waits::Wait> Waits::ongoing(std::int64_t now_ns) const {
  Longest longest;
  for (const auto& [tid, ongoing_wait] : ongoing_) {
    Wait wait = ongoing_wait.wait;
    wait.end_ns = end_of(ongoing_wait, now_ns);
    if (wait.end_ns - wait.begin_ns >= threshold_ns_) longest.add(wait);
  }
  return longest.take();
}

}  // namespace rose::observe
