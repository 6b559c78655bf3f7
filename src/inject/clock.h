// Changes the clocks that one node's processes see. Readings are shifted, and waits for an absolute time end when the
// shifted clock reaches that time. A hook in each process's vDSO (clock_hook.c) shifts readings; it is installed when a
// new program makes its first calls. Readings by system call and waits are changed while rose answers the calls that
// reach the node's seccomp listener.
//
// A "wrong" clock is one whose time a fault has changed.
#pragma once

#include <sys/types.h>

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/result.h"
#include "inject/call.h"
#include "inject/clock_hook.h"
#include "schedule/schedule.h"

namespace rose::inject {

// Combines several clock faults. Pure. Shifts add up, and so do drifts. A frozen clock stands still until the fault
// ends; drifts have no effect on it.
class ClockSum {
 public:
  // Current times of both groups (realtime, monotonic), in ns.
  using Now = std::array<std::int64_t, ROSE_CLOCK_GROUPS>;
  void begin(std::size_t fault, const schedule::ClockChange& change, const Now& now);
  void end(std::size_t fault) { active_.erase(fault); }
  // The active faults that change this group of clocks.
  [[nodiscard]] std::vector<std::size_t> of_group(std::size_t group) const;
  [[nodiscard]] std::array<rose_clock_shift, ROSE_CLOCK_GROUPS> shifts(const Now& now) const;

 private:
  struct Active {
    schedule::ClockChange change;
    Now began{};
  };
  std::map<std::size_t, Active> active_;
};

// The real time at which a clock with this shift shows `shown`. If the clock already shows this time or a later one,
// the result is `now` or earlier. A frozen clock never shows a later time; for it, the result is `now` plus the
// difference between `shown` and the frozen time.
[[nodiscard]] std::int64_t real_time_of(std::int64_t shown, const rose_clock_shift& shift, std::int64_t now);

class NodeClocks {
 public:
  // Checks that the vDSO of this kernel can be hooked. If not, returns ErrorKind::environment with the reason.
  [[nodiscard]] static Result<void> check();

  // Sets a function that is called once per fault, when a process of the node first reads a clock that the fault has
  // made wrong. Call on_read() and on_reader() before all other methods. Any thread may call the callbacks.
  void on_read(std::function<void(std::size_t fault)> callback) { on_read_ = std::move(callback); }
  // Sets a function that is called, per fault, for each of the first `most` threads that read a clock that the fault
  // has made wrong. Until it returns, the thread is held in its call.
  struct Reader {
    NotifiedCall& call;
    // Where the reader's stack begins: see ROSE_CLOCK_READ. 0: the program, and not the hook, made the call.
    std::uint64_t frame = 0, stack = 0;
  };
  void on_reader(std::size_t most, std::function<void(std::size_t fault, const Reader& reader)> callback) {
    most_readers_ = most;
    on_reader_ = std::move(callback);
  }

  void begin(std::size_t fault, const schedule::ClockChange& change);
  void end(std::size_t fault);
  // Writes the shifts into the hooks of these processes. Returns how many of them have the hook.
  std::size_t update(const std::vector<pid_t>& pids);

  // Decides how rose answers a call of the node of which seccomp has notified it. If `done` is true, the call must
  // return `result`, and the kernel must not execute it. Otherwise the kernel executes the call, and `afterwards` (if
  // set) must be called once rose has let the call continue.
  struct Answer {
    bool done = false;
    std::int64_t result = 0;
    std::function<void()> afterwards;
  };
  [[nodiscard]] Answer answer(NotifiedCall& call, std::uint64_t ip, const std::function<bool()>& alive);
  // True if this call was not made by the program, but by the hook, to report that a wrong clock was read. The report
  // is then recorded, and the call must return 0.
  [[nodiscard]] bool take_read_report(NotifiedCall& call);

 private:
  [[nodiscard]] rose_clock_shift shift_of(int clock) const;
  void was_read(int group, const Reader& reader);
  [[nodiscard]] bool reported_enough(std::size_t fault) const;
  [[nodiscard]] unsigned long announced() const;
  void hook(const NotifiedCall& call, const std::function<bool()>& alive);
  [[nodiscard]] Answer read_for(NotifiedCall& call, std::uint64_t ip, const std::function<bool()>& alive);
  [[nodiscard]] static std::optional<Answer> passed(NotifiedCall& call);
  [[nodiscard]] Answer wait_for(NotifiedCall& call, int clock, std::uint64_t address,
                                const std::function<bool()>& alive);

  mutable std::mutex mutex_;
  ClockSum sum_;
  std::array<rose_clock_shift, ROSE_CLOCK_GROUPS> now_{};
  struct Reports {
    std::size_t count = 0;
    std::set<pid_t> threads;
  };
  std::map<std::size_t, Reports> read_;  // by fault whose wrong clock was read
  std::function<void(std::size_t)> on_read_;
  std::size_t most_readers_ = 0;
  std::function<void(std::size_t, const Reader&)> on_reader_;
};

}  // namespace rose::inject
