#include "observe/waits.h"

#include <utility>

namespace rose::observe {
namespace {

// Keeps the longest wait of each process.
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

std::vector<Waits::Wait> Waits::sample(std::span<const rose_blocked> blocked, std::int64_t now_ns) {
  std::map<std::uint32_t, Going> now;
  for (const auto& thread : blocked) {
    if (now.size() >= kMost) break;
    const auto before = going_.find(thread.tid);
    // Switched away from in between: it went on and waits anew.
    if (before != going_.end() && before->second.start_ns == thread.start_ns &&
        before->second.switches == thread.switches) {
      now.insert(going_.extract(before));
      continue;
    }
    now.emplace(thread.tid, Going{thread.start_ns, thread.switches,
                                  Wait{thread.tgid, thread.tid, thread.node, thread.flags, now_ns, 0}});
  }
  going_.swap(now);
  Longest over;
  for (auto& [tid, gone] : now) {
    if (now_ns - gone.wait.begin_ns < threshold_ns_) continue;
    gone.wait.end_ns = now_ns;
    over.add(gone.wait);
  }
  return over.take();
}

std::vector<Waits::Wait> Waits::ongoing(std::int64_t now_ns) const {
  Longest longest;
  for (const auto& [tid, going] : going_) {
    if (now_ns - going.wait.begin_ns < threshold_ns_) continue;
    Wait wait = going.wait;
    wait.end_ns = now_ns;
    longest.add(wait);
  }
  return longest.take();
}

}  // namespace rose::observe
