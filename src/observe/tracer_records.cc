// The reader thread: processes the records of the BPF programs and makes the periodic checks.
#include <bpf/bpf.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>

#include "base/log.h"
#include "kernel/syscalls.h"
#include "observe/iterate.h"
#include "observe/kernel_tracer.h"

namespace rose::observe {
namespace {

constexpr std::size_t kMostEnds = 256;  // limit for process ends that nobody has taken yet

}  // namespace

trace::Event describe_wait(const Waits::Wait& wait) {
  trace::Event event;
  event.type = trace::EventType::ps;
  event.state = trace::ProcessState::paused;
  event.ts_ns = wait.end_ns;
  event.pid = static_cast<std::int32_t>(wait.tgid);
  event.tid = static_cast<std::int32_t>(wait.tid);
  event.duration_ms =
      static_cast<std::int32_t>(std::min<std::int64_t>((wait.end_ns - wait.begin_ns) / 1'000'000, INT32_MAX));
  event.flags = (wait.flags & ROSE_IN_FREEZER) != 0 ? 0 : trace::kBlocked;
  if ((wait.flags & ROSE_MAIN) != 0) event.flags |= trace::kMain;
  if ((wait.flags & ROSE_PLANNED) != 0) event.flags |= trace::kPlanned;
  return event;
}

void KernelTracer::run() {
  // In a storm, the reader competes for the CPU with the threads that fail, and must not be starved by them.
  ::setpriority(PRIO_PROCESS, static_cast<id_t>(::gettid()), -10);
  constexpr int timeout_ms = 100;
  std::int64_t sampled_ns = 0;
  bool more = false;
  while (!stopping_) {
    epoll_event events[2];
    ::epoll_wait(epoll_.get(), events, 2, more ? 0 : timeout_ms);
    {
      const std::lock_guard lock(mutex_);
      more = take_some(4096) == 4096;
      update_storms(false);
      values_.look(monotonic_ns());
    }
    take_missed();
    if (places_.changed()) network_.follow();
    if (const std::int64_t now = monotonic_ns(); now - sampled_ns >= sample_ns_) {
      sampled_ns = now;
      clock_steps_.look(now, wall_offset_ns);
      sample_waits();
      forget_false_pauses();
      // Forget which descriptors are not regular files, because they may have been closed and reused for regular files.
      std::fill(std::begin(skeleton_->bss->rose_streams), std::end(skeleton_->bss->rose_streams), 0);
    }
    network_.tick();
    if (network_.is_due(monotonic_ns())) sample_connections();
  }
}

void KernelTracer::sample_connections() {
  const std::vector<Decoded> ended = network_.sample();
  if (ended.empty()) return;
  const std::lock_guard lock(mutex_);
  for (const Decoded& silence : ended) {
    if (silence.node >= targets_.size()) continue;
    ++recorded_;
    window_->add(silence);
  }
}

std::size_t KernelTracer::take_some(std::size_t most) {
  return ring_.consume([this](std::span<const std::byte> record) { take(record); }, most);
}

void KernelTracer::take(std::span<const std::byte> record) {
  rose_cgroup cgroup;
  if (record.size() >= sizeof cgroup) {
    std::memcpy(&cgroup, record.data(), sizeof cgroup);
    if (cgroup.head.kind == ROSE_CGROUP) return places_.note(cgroup);
  }
  if (rose_value value; record.size() >= sizeof value) {
    std::memcpy(&value, record.data(), sizeof value);
    if (value.head.kind == ROSE_VALUE) {
      if (!values_.take(value)) ++unreadable_;
      return;
    }
  }
  if (rose_transfer message; record.size() >= sizeof message) {
    std::memcpy(&message, record.data(), sizeof message);
    if (message.head.kind == ROSE_TRANSFER) {
      if (!messages_.take(message)) ++unreadable_;
      return;
    }
  }
  if (!decode(record, decoded_) || decoded_.node >= targets_.size()) {
    ++unreadable_;
    return;
  }
  if (decoded_.counted) {
    take_counted(decoded_);
    return;
  }
  if (decoded_.storm != 0) storms_.remember(decoded_, ring_.consumed());
  if (decoded_.event.type == trace::EventType::af) {
    if (decoded_.function == ROSE_NAMED) {
      warn_of_hot_method();
    } else if (decoded_.function >= functions_.size()) {
      ++unreadable_;
      return;
    }
    if (decoded_.function != ROSE_NAMED &&
        (!functions_.wanted(decoded_.function, decoded_.node) ||
         !functions_.entered(decoded_.function, decoded_.link, static_cast<std::uint32_t>(decoded_.event.tid))))
      return;
  }
  if (decoded_.event.type == trace::EventType::nd && targets_[decoded_.node].own_network &&
      decoded_.src == decoded_.dst)
    return;
  if (decoded_.event.type == trace::EventType::ps) note_end(decoded_);
  recorded_ += decoded_.event.count;
  window_->add(decoded_);
}

// Warns of a function that an agent (of Java, Python or JavaScript) does not report for now, because the function was
// entered too often.
void KernelTracer::warn_of_hot_method() {
  if ((decoded_.event.flags & trace::kTruncated) == 0) return;
  log::warn_once(
      fmt::format("'{}' is entered too often: temporarily not recorded while it is that busy", decoded_.path));
}

void KernelTracer::take_counted(Decoded& counted) {
  const auto count = counted.event.count;
  if (!storms_.complete(counted)) {
    unreadable_ += count;
    return;
  }
  recorded_ += count;
  if (counted.event.type == trace::EventType::ps) note_end(counted);
  window_->add(counted);
}

// Handles changes of cgroups and ends of processes whose records did not fit into the ring. The ends are already
// counted as lost; changes of cgroups are not events.
void KernelTracer::take_missed() {
  const volatile rose_missed& now = skeleton_->bss->rose_missed;
  if (const std::uint64_t cgroups = now.cgroups; cgroups != missed_cgroups_) {
    missed_cgroups_ = cgroups;
    places_.note_missed();
  }
  if (const std::uint64_t ends = now.ends; ends != missed_ends_) {
    missed_ends_ = ends;
    Decoded last;
    last.node = now.node;
    last.event.type = trace::EventType::ps;
    last.event.pid = static_cast<std::int32_t>(now.tgid);
    last.event.signal = static_cast<std::uint8_t>(now.signal);
    last.event.exit_code = now.exit_code;
    last.event.state = last.event.signal != 0 ? trace::ProcessState::crashed : trace::ProcessState::exited;
    if ((now.flags & ROSE_MAIN) != 0) last.event.flags |= trace::kMain;
    if ((now.flags & ROSE_PLANNED) != 0) last.event.flags |= trace::kPlanned;
    if (last.node < targets_.size()) note_end(last);
  }
}

// Adds counts of storms to the window, once per second and whenever the window is read.
void KernelTracer::update_storms(bool all) {
  const std::int64_t now = monotonic_ns();
  if (!all && now - fetched_ns_ < 1'000'000'000) return;
  fetched_ns_ = now;
  std::vector<Decoded> unknown;
  const Storms::Take take = [&](Decoded& counted) {
    Decoded whole = counted;
    if (storms_.complete(whole)) take_counted(counted);
    else unknown.push_back(counted);
  };
  storms_.fetch(all, now, take);
  storms_.forget([this] { return ring_.produced(); }, ring_.consumed(), take);
  if (unknown.empty()) return;
  // The records with the details of these keys are still in the ring, so read them first.
  drain(ring_.produced());
  for (auto& counted : unknown) take_counted(counted);
}

void KernelTracer::note_end(const Decoded& decoded) {
  const auto& event = decoded.event;
  const bool crashed = event.state == trace::ProcessState::crashed;
  const bool failed =
      event.state == trace::ProcessState::exited && (event.flags & trace::kMain) != 0 && event.exit_code > 0;
  if ((!crashed && !failed) || (event.flags & trace::kPlanned) != 0) return;
  const std::lock_guard lock(ends_mutex_);
  if (ends_.size() >= kMostEnds) return;
  ends_.push_back({targets_[decoded.node].node, event.pid, event.signal, event.exit_code});
  const std::uint64_t one = 1;
  if (::write(ends_fd_.get(), &one, sizeof one) < 0) log::debug("the end of a process could not be recorded");
}

void KernelTracer::leave_out(pid_t pid) {
  const auto key = static_cast<std::uint32_t>(pid);
  const std::uint32_t nobody = ROSE_PROC_NODE;
  if (bpf_map_update_elem(bpf_map__fd(skeleton_->maps.rose_procs), &key, &nobody, BPF_ANY) != 0)
    log::debug("process {} cannot be excluded", pid);
}

// Expected failures by kind. If there are very many kinds, rare ones are included only in the total.
std::vector<trace::SuppressedCall> KernelTracer::suppressed_calls() const {
  constexpr std::size_t kMost = 64;
  const int map = bpf_map__fd(skeleton_->maps.rose_quiet);
  std::vector<std::uint64_t> values(static_cast<std::size_t>(cpus_));
  std::vector<trace::SuppressedCall> calls;
  std::uint32_t key = 0, next = 0;
  for (int error = bpf_map_get_next_key(map, nullptr, &next); error == 0 && calls.size() < 4096;
       error = bpf_map_get_next_key(map, &key, &next)) {
    key = next;
    if (bpf_map_lookup_elem(map, &key, values.data()) != 0) continue;
    trace::SuppressedCall call{static_cast<std::int16_t>(key >> 16), static_cast<std::int16_t>(key & 0xffff), 0};
    for (const auto value : values) call.count += value;
    calls.push_back(call);
  }
  std::sort(calls.begin(), calls.end(), [](const auto& a, const auto& b) {
    return std::tuple(b.count, a.syscall, a.err) < std::tuple(a.count, b.syscall, b.err);
  });
  if (calls.size() > kMost) calls.resize(kMost);
  return calls;
}

std::vector<ProcessEnd> KernelTracer::take_ends() {
  const std::lock_guard lock(ends_mutex_);
  std::uint64_t count = 0;
  [[maybe_unused]] const ssize_t n = ::read(ends_fd_.get(), &count, sizeof count);
  return std::exchange(ends_, {});
}

// Reads the ring up to the position `up_to`. A record that another CPU is still writing delays the following ones by
// microseconds.
void KernelTracer::drain(std::uint64_t up_to) {
  const std::int64_t limit = monotonic_ns() + 2'000'000'000;
  while (ring_.consumed() < up_to && monotonic_ns() < limit) {
    if (take_some(SIZE_MAX) == 0) ::usleep(50);
  }
}

SeenValues KernelTracer::take_values() {
  const std::lock_guard lock(mutex_);
  drain(ring_.produced());
  return values_.seen();
}

SeenMessages KernelTracer::take_messages() {
  const std::lock_guard lock(mutex_);
  drain(ring_.produced());
  return messages_.seen(bpf_map__fd(skeleton_->maps.rose_gates));
}

// Marks in the dump where the recorded entries of a function end.
void KernelTracer::note_detached(std::uint32_t function, std::uint32_t node) {
  Decoded note;
  note.event.type = trace::EventType::af;
  note.event.ts_ns = monotonic_ns();
  note.event.flags = trace::kTruncated;
  note.node = node;
  note.function = function;
  const std::lock_guard lock(mutex_);
  window_->add(note);
}

void KernelTracer::sample_waits() {
  const int link = waits_link_;
  if (link < 0) return;
  const auto blocked = iterate<rose_blocked>(link);
  if (!blocked) return;
  const std::lock_guard lock(mutex_);
  for (const auto& wait : waits_.sample(*blocked, monotonic_ns())) {
    if (wait.node >= targets_.size()) continue;
    Decoded decoded;
    decoded.node = wait.node;
    decoded.event = describe_wait(wait);
    ++recorded_;
    window_->add(decoded);
  }
}

// Removes pauses of processes that are not stopped. A delivered stop signal does not always stop the process: the stop
// signals of job control stop neither a process in an orphaned process group nor the init process of a PID namespace.
void KernelTracer::forget_false_pauses() {
  const int paused = bpf_map__fd(skeleton_->maps.rose_paused);
  const std::uint32_t most = bpf_map__max_entries(skeleton_->maps.rose_paused);
  std::uint64_t key = 0, next = 0;
  std::vector<std::uint64_t> none;
  std::uint32_t steps = 0;
  for (int error = bpf_map_get_next_key(paused, nullptr, &next); error == 0 && steps < most;
       error = bpf_map_get_next_key(paused, &key, &next), ++steps) {
    key = next;
    rose_pause pause{};
    if ((key & ROSE_FROZEN) != 0 || bpf_map_lookup_elem(paused, &key, &pause) != 0) continue;
    const std::int64_t age = monotonic_ns() - static_cast<std::int64_t>(pause.since_ns);
    const auto stat = kernel::process_stat(static_cast<pid_t>(pause.tgid));
    const char state = stat ? stat->state : '\0';
    // A thread that is about to stop is runnable, possibly for long if CPUs are scarce, but it does not sleep. So a
    // process that sleeps, or has been runnable for very long, is not going to stop.
    if ((state == 'S' && age > 50'000'000) || (state == 'R' && age > 1'000'000'000)) none.push_back(key);
  }
  for (const auto each : none) bpf_map_delete_elem(paused, &each);
}

}  // namespace rose::observe
