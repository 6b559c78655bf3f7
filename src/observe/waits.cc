#include "observe/waits.h"

#include <algorithm>
#include <utility>

namespace rose::observe {
namespace {

// Keeps only the longest wait of each process.
class Longest {
 public:
  void add(const Waits::Wait& wait) {
    const auto [it, fresh] = by_process_.emplace(wait.tgid, wait);
    if (!fresh && wait.begin_ns < it->second.begin_ns) it->second = wait;
  }
  [[nodiscard]] std::vector<Waits::Wait> take() const {
    std::vector<Waits::Wait> out;
    for (const auto& [tgid, wait] : by_process_) out.push_back(wait);
    return out;
  }

 private:
  std::map<std::uint32_t, Waits::Wait> by_process_;
};

}  // namespace

std::int64_t Waits::end_of(const Going& going, std::int64_t now_ns) const {
  return std::min(now_ns, going.wait.end_ns + interval_ns_);
}

std::vector<Waits::Wait> Waits::sample(std::span<const rose_blocked> blocked, std::int64_t now_ns) {
  std::map<std::uint32_t, Going> now;
  for (const auto& thread : blocked) {
    if (now.size() >= kMost) break;
    const auto before = going_.find(thread.tid);
    // It was scheduled in between, so this is a new wait.
    if (before != going_.end() && before->second.start_ns == thread.start_ns &&
        before->second.switches == thread.switches) {
      before->second.wait.end_ns = now_ns;
      now.insert(going_.extract(before));
      continue;
    }
    now.emplace(thread.tid, Going{thread.start_ns, thread.switches,
                                  Wait{thread.tgid, thread.tid, thread.node, thread.flags, now_ns, now_ns}});
  }
  going_.swap(now);
  Longest over;
  for (auto& [tid, gone] : now) {
    gone.wait.end_ns = end_of(gone, now_ns);
    if (gone.wait.end_ns - gone.wait.begin_ns >= threshold_ns_) over.add(gone.wait);
  }
  return over.take();
}

std::vector<Waits::Wait> Waits::ongoing(std::int64_t now_ns) const {
  Longest longest;
  for (const auto& [tid, going] : going_) {
    Wait wait = going.wait;
    wait.end_ns = end_of(going, now_ns);
    if (wait.end_ns - wait.begin_ns >= threshold_ns_) longest.add(wait);
  }
  return longest.take();
}

}  // namespace rose::observe
