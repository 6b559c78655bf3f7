#include "inject/stacks.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstring>
#include <thread>

#include "base/clock.h"
#include "base/file.h"
#include "base/text.h"
#include "base/units.h"
#include "kernel/maps.h"
#include "kernel/processes.h"
#include "symbols/interpreters.h"
#include "symbols/machine.h"

namespace rose::inject {
namespace {

constexpr std::size_t kBytes = sizeof rose_stack::words;
constexpr std::size_t kPage = 4096;
constexpr std::size_t kMostThreads = 4;  // stacks taken from one process if the fault affects the whole process
// Time limits for unwinding: for one stack, and for all stacks of a run.
constexpr std::int64_t kOneNs = 2 * kSecond, kAllNs = 10 * kSecond;
constexpr std::size_t kMostThreadsSeen = 128;  // number of threads that are examined to find running threads
constexpr std::int64_t kStillNs =
    20'000'000;  // how long a thread may take to stop after SIGSTOP; the kill is delayed by that time
constexpr std::size_t kStackPointer = ROSE_STACK_POINTER;
constexpr long kOverlayMagic = 0x794c7630;

std::string text_of(const char* bytes, std::size_t room) { return std::string(bytes, ::strnlen(bytes, room)); }

std::string thread_name(pid_t pid, pid_t tid) {
  auto name = read_file(fmt::format("/proc/{}/task/{}/comm", pid, tid)).value_or("");
  while (!name.empty() && name.back() == '\n') name.pop_back();
  return name;
}

// Replaces the registers by those of the caller of the function that stored the frame record at `record`. `stack`: the
// caller's stack pointer. Returns false if the record contains no return address.
bool go_out(pid_t tid, std::uint64_t record, std::uint64_t stack, symbols::Snapshot& snapshot) {
  std::array<std::uint64_t, 2> words{};  // the caller's frame pointer, and the return address
  iovec mine{words.data(), sizeof words}, theirs{reinterpret_cast<void*>(record), sizeof words};
  if (record == 0 || ::process_vm_readv(tid, &mine, 1, &theirs, 1, 0) != ssize_t{sizeof words}) return false;
  const bool code = std::any_of(snapshot.maps.begin(), snapshot.maps.end(), [&](const symbols::Mapping& map) {
    return words[1] >= map.start && words[1] < map.end;
  });
  if (!code) return false;
  snapshot.registers[symbols::machine::kOwn.frame] = words[0];
  snapshot.registers[symbols::machine::kOwn.instruction] = words[1];
  snapshot.registers[symbols::machine::kOwn.stack] = stack;
  return true;
}

std::vector<std::uint8_t> read_stack_of(pid_t pid, std::uint64_t from) {
  std::vector<std::uint8_t> bytes(kBytes);
  std::vector<iovec> theirs;
  for (std::uint64_t at = from; at - from < kBytes;) {
    const auto size = std::min<std::uint64_t>(kPage - at % kPage, kBytes - (at - from));
    theirs.push_back({reinterpret_cast<void*>(at), size});
    at += size;
  }
  iovec mine{bytes.data(), bytes.size()};
  const auto got = ::process_vm_readv(pid, &mine, 1, theirs.data(), theirs.size(), 0);
  bytes.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
  return bytes;
}

template <typename Number>
bool take_number(std::string_view& text, Number& number, int base) {
  const auto read = std::from_chars(text.data(), text.data() + text.size(), number, base);
  if (read.ec != std::errc()) return false;
  text.remove_prefix(static_cast<std::size_t>(read.ptr - text.data()));
  return true;
}
// Called after SIGSTOP. Returns true if this thread of the process has stopped within kStillNs.
bool stands_still(pid_t pid, pid_t tid) {
  for (const std::int64_t until = monotonic_ns() + kStillNs; monotonic_ns() < until;
       std::this_thread::sleep_for(std::chrono::microseconds(200))) {
    const auto where = read_file(fmt::format("/proc/{}/task/{}/syscall", pid, tid)).value_or("");
    if (where.empty()) return false;
    if (!where.starts_with("running")) return true;
  }
  return false;
}

struct OneThread {
  pid_t tid = 0;
  bool running = false;
};

// At most kMostThreads threads of a process, in this order: the likely thread, running threads, because they do the
// work, the main thread, and then the threads with the lowest ids.
std::vector<OneThread> threads_of(pid_t pid, pid_t likely) {
  const std::string folder = fmt::format("/proc/{}/task", pid);
  std::vector<pid_t> tids;
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(folder, ignored)) {
    const auto name = entry.path().filename().string();
    pid_t tid = 0;
    std::string_view left = name;
    if (take_number(left, tid, 10)) tids.push_back(tid);
    if (tids.size() == kMostThreadsSeen) break;
  }
  std::vector<OneThread> threads;
  for (const pid_t tid : tids)
    if (const auto where = read_file(fmt::format("{}/{}/syscall", folder, tid)).value_or(""); !where.empty())
      threads.push_back({tid, where.starts_with("running")});
  const auto rank = [&](const OneThread& thread) {
    return thread.tid == likely ? 0 : thread.running ? 1 : thread.tid == pid ? 2 : 3;
  };
  std::stable_sort(threads.begin(), threads.end(), [&](const OneThread& a, const OneThread& b) {
    return std::pair(rank(a), a.tid) < std::pair(rank(b), b.tid);
  });
  if (threads.size() > kMostThreads) threads.resize(kMostThreads);
  return threads;
}

// True if this can be the file that was mapped. Its inode number must be the same, except on overlayfs, which assigns
// its own inode numbers.
bool is_file(const std::string& path, std::uint64_t inode) {
  struct stat status = {};
  if (::stat(path.c_str(), &status) != 0 || !S_ISREG(status.st_mode)) return false;
  if (status.st_ino == inode) return true;
  struct statfs system = {};
  return ::statfs(path.c_str(), &system) == 0 && system.f_type == kOverlayMagic;
}

void add_reason(std::string& all, const std::string& one) {
  if (one.empty()) return;
  if (!all.empty()) all += "; ";
  all += one;
}

bool in_file(const schedule::Frame& frame, std::string_view name) {
  return std::string_view(frame.module).substr(frame.module.rfind('/') + 1).starts_with(name);
}

// Replaces native frames by Java frames, beginning with the first frame of JVM code (generated code, or code of the JVM
// itself). Frames further out only show how the JVM runs the methods. If rose's agent is on the stack, because the
// thread is at a location in a method, all native frames are replaced.
void put_java(std::vector<schedule::Frame>& frames, const std::vector<jvm::JavaFrame>& java) {
  const bool in_agent =
      std::any_of(frames.begin(), frames.end(), [](const auto& frame) { return in_file(frame, "rose-jvm.so"); });
  const auto end = in_agent ? frames.begin() : std::find_if(frames.begin(), frames.end(), [](const auto& frame) {
    return frame.module.empty() || in_file(frame, "libjvm.so");
  });
  frames.erase(end, frames.end());
  for (const jvm::JavaFrame& one : java) frames.push_back({one.function, one.file, one.line, {}, 0});
}

// Replaces the frames of the interpreter, and all frames further out, by Python functions.
void put_python(std::vector<schedule::Frame>& frames, std::vector<python::Frame> python) {
  const auto begin = std::find_if(frames.begin(), frames.end(),
                                  [](const auto& frame) { return symbols::language_run_by(frame.module) == "Python"; });
  frames.erase(begin, frames.end());
  for (python::Frame& one : python) frames.push_back({std::move(one.function), std::move(one.file), one.line, {}, 0});
}

// The language of frames that only the language's runtime can name; "" if there are none.
std::string_view language_of(const std::vector<schedule::Frame>& frames) {
  for (const auto& frame : frames) {
    const std::string_view language = symbols::language_run_by(frame.module);
    for (const std::string_view known : {"Java", "Python", "JavaScript", "Ruby"})
      if (language == known) return known;
  }
  return {};
}

// The condition under which frames of this language can be named.
std::string_view naming_condition(std::string_view language) {
  if (language == "Python") return "when it runs with -X perf (3.12 or later)";
  if (language == "JavaScript") return "when it runs with --perf-basic-prof --interpreted-frames-native-stack";
  return "when it writes a list for perf, /tmp/perf-PID.map";
}

bool has_runtime_names(const std::vector<schedule::Frame>& frames) {
  return std::any_of(frames.begin(), frames.end(), schedule::is_managed);
}

}  // namespace

TakenStack read_stack(const rose_stack& stack) {
  TakenStack taken;
  taken.at_ns = static_cast<std::int64_t>(stack.at_ns);
  taken.pid = static_cast<int>(stack.pid);
  taken.tid = static_cast<int>(stack.tid);
  taken.own_tid = static_cast<int>(stack.own_tid != 0 ? stack.own_tid : stack.tid);
  taken.thread = text_of(stack.thread, sizeof stack.thread);
  std::copy(std::begin(stack.registers), std::end(stack.registers), taken.snapshot.registers.begin());
  const auto bytes = std::min<std::size_t>(stack.bytes, kBytes);
  taken.snapshot.stack.resize(bytes);
  std::memcpy(taken.snapshot.stack.data(), stack.words, bytes);
  const auto maps = std::min<std::size_t>(stack.map_count, ROSE_STACK_MAPS);
  bool long_path = false;
  for (std::size_t i = 0; i < maps; ++i) {
    const auto& map = stack.maps[i];
    symbols::Mapping mapping{map.start, map.end, map.offset, {}, {}};
    if (map.inode != 0 && map.at < ROSE_STACK_PATH)
      mapping.name = text_of(reinterpret_cast<const char*>(map.path) + map.at, ROSE_STACK_PATH - map.at);
    long_path = long_path || (map.inode != 0 && mapping.name.empty());
    taken.snapshot.maps.push_back(std::move(mapping));
    taken.inodes.push_back(map.inode);
  }
  if (stack.bytes == 0) add_reason(taken.missing, "its stack could not be read");
  if (stack.unknown > 0) add_reason(taken.missing, "its memory map was being changed");
  if (stack.more_maps > 0)
    add_reason(taken.missing, fmt::format("it executes code of more than {} files", ROSE_STACK_MAPS));
  if (long_path) add_reason(taken.missing, fmt::format("the path of a file is longer than {} bytes", ROSE_STACK_PATH));
  return taken;
}

void note_maps(std::string_view text, TakenStack& taken) {
  for (kernel::MappedRange& range : kernel::read_maps(text)) {
    if (!range.executable()) continue;
    if (range.inode == 0) range.name.clear();
    taken.snapshot.maps.push_back({range.begin, range.end, range.offset, {}, std::move(range.name)});
    taken.inodes.push_back(range.inode);
  }
}

Stacks::Stacks(const Plan& plan, Programs& programs) : plan_(plan), programs_(programs) {}

bool Stacks::wanted(std::size_t chain) {
  const std::lock_guard lock(mutex_);
  return begun_[chain]++ < plan_.stacks && chain < plan_.stack_slots() / std::max<std::size_t>(plan_.stacks, 1);
}

void Stacks::take(std::size_t chain, pid_t pid, pid_t tid, const std::string& why) {
  take(chain, pid, tid, why, false);
}

void Stacks::take_reader(std::size_t chain, pid_t pid, const NodeClocks::Reader& reader) {
  // The thread executes rose's clock hook. No file has unwind information for the hook, so the recorded stack begins at
  // the hook's caller.
  take(chain, pid, reader.call.tid(), "reads the clock", false, {}, [&](pid_t tid, symbols::Snapshot& snapshot) {
    if (reader.frame == 0 || !go_out(tid, reader.frame, reader.stack, snapshot)) return;
    // Go's runtime calls the vDSO on a stack of its own. Only the frame pointer leads from there to the goroutine's
    // stack. In a program without frame pointers, the register may have any value; go_out() then finds no return
    // address at that place.
    const std::uint64_t frame = snapshot.registers[symbols::machine::kOwn.frame];
    if (frame % sizeof frame == 0 && frame - reader.stack >= kBytes)
      (void)go_out(tid, frame, frame + 2 * sizeof frame, snapshot);
  });
}

void Stacks::take(std::size_t chain, pid_t pid, pid_t tid, const std::string& why, bool stopped,
                  std::optional<std::size_t> node, const Adjust& adjust) {
  if (plan_.stacks == 0 || !wanted(chain)) return;
  TakenStack taken;
  taken.at_ns = monotonic_ns();
  taken.pid = pid;
  taken.tid = tid;
  taken.own_tid = kernel::own_number(tid);
  taken.node = node;
  taken.why = why;
  taken.thread = thread_name(pid, tid);
  const auto registers = programs_.registers(tid);
  if (!registers) {
    taken.missing = registers.error().message;
  } else {
    taken.snapshot.registers = *registers;
    const std::string maps = read_file(fmt::format("/proc/{}/maps", pid)).value_or("");
    note_maps(maps, taken);
    if (adjust) adjust(tid, taken.snapshot);
    taken.snapshot.stack = read_stack_of(tid, taken.snapshot.registers[kStackPointer]);
    if (taken.snapshot.stack.empty()) taken.missing = "its stack could not be read";
    if (!stopped) ask_java(tid, maps, taken);
  }
  ask_python(taken);
  const std::lock_guard lock(mutex_);
  taken_[chain].push_back(std::move(taken));
}

void Stacks::ask_python(TakenStack& taken) const {
  if (python_ == nullptr) return;
  for (std::size_t i = 0; i < plan_.nodes.size() && taken.python.empty(); ++i)
    taken.python = python_->stack_of(plan_.nodes[i], taken.own_tid);
}

void Stacks::ask_java(pid_t tid, std::string_view maps, TakenStack& taken) {
  const std::string name = jvms_ != nullptr ? jvm::stacks_file(maps) : std::string();
  for (std::size_t i = 0; i < plan_.java_stacks.size() && !name.empty(); ++i) {
    std::error_code error;
    const auto file = jvms_->state(plan_.nodes[i]) / name;
    if (!plan_.java_stacks[i] || !std::filesystem::exists(file, error)) continue;
    const std::lock_guard lock(asking_);
    taken.java = jvm::ask(file, tid);
    return;
  }
}

void Stacks::take_process(std::size_t chain, const Process& process, const std::string& why) {
  const pid_t pid = process.pid;
  Process now = process;
  for (const OneThread& thread : threads_of(pid, process.likely)) {
    if (thread.running) take_running(chain, now, thread.tid, why);
    else take(chain, pid, thread.tid, why, now.stopped);
  }
}

// The registers of a running thread cannot be read. Therefore a JVM is asked for the stacks of its threads, and another
// process is stopped first if it is about to be killed anyway.
void Stacks::take_running(std::size_t chain, Process& process, pid_t tid, const std::string& why) {
  if (!more_of(chain)) return;
  TakenStack taken;
  taken.at_ns = monotonic_ns();
  taken.pid = process.pid;
  taken.tid = tid;
  taken.own_tid = kernel::own_number(tid);
  taken.why = why;
  taken.thread = thread_name(process.pid, tid);
  if (!process.stopped) ask_java(tid, read_file(fmt::format("/proc/{}/maps", process.pid)).value_or(""), taken);
  if (taken.java.frames.empty() && process.killed) {
    // Some time may have passed since the process was listed, because a JVM may have been asked. Its id may now belong
    // to another process, so signal_listed() checks it.
    process.stopped = process.stopped || kernel::signal_listed(process.pid, process.listed, SIGSTOP);
    if (process.stopped && stands_still(process.pid, tid)) {
      take(chain, process.pid, tid, why, true);
      return;
    }
    // The process is to be killed now, so do not wait for its other running threads, too.
    process.killed = false;
  }
  if (!wanted(chain)) return;
  ask_python(taken);
  taken.missing =
      taken.java.frames.empty()
          ? "the thread was running when the fault fired: only a condition inside the process would show where"
          : "";
  const std::lock_guard lock(mutex_);
  taken_[chain].push_back(std::move(taken));
}

bool Stacks::more_of(std::size_t chain) {
  const std::lock_guard lock(mutex_);
  return begun_[chain] < plan_.stacks;
}

bool Stacks::take_waiting(std::size_t chain, std::size_t node, pid_t pid, pid_t tid, const std::string& why) {
  if (!more_of(chain)) return false;
  take(chain, pid, tid, why, false, node);
  return true;
}

void Stacks::note_root(std::size_t node, pid_t pid) {
  if (plan_.stacks == 0 || !kernel::trusts_mounts_of(pid)) return;
  Fd root(::open(fmt::format("/proc/{}/root", pid).c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!root) return;
  const std::lock_guard lock(mutex_);
  roots_[node] = std::move(root);
}

schedule::Stack Stacks::resolve_stack(TakenStack taken, std::size_t node, const std::vector<pid_t>& living,
                                      std::int64_t limit_ns) const {
  std::vector<std::string> roots;
  const auto add_root = [&](pid_t pid) {
    if (kernel::trusts_mounts_of(pid)) roots.push_back(fmt::format("/proc/{}/root", pid));
  };
  add_root(taken.pid);
  for (std::size_t i = 0; i < living.size() && i < 8; ++i) add_root(living[i]);
  if (const auto kept = roots_.find(node); kept != roots_.end())
    roots.push_back(fmt::format("/proc/self/fd/{}", kept->second.get()));
  roots.emplace_back();
  std::vector<std::string> lost;
  for (std::size_t i = 0; i < taken.snapshot.maps.size(); ++i) {
    auto& map = taken.snapshot.maps[i];
    if (map.name.empty() || map.name[0] != '/') continue;
    for (const auto& root : roots) {
      if (!is_file(root + map.name, taken.inodes[i])) continue;
      map.file = root + map.name;
      break;
    }
    if (map.file.empty()) lost.push_back(map.name);
  }
  for (const auto& root : roots) {
    const auto list = fmt::format("{}/tmp/perf-{}.map", root, kernel::own_number(taken.pid));
    if (!taken.snapshot.runtime_list.empty() || ::access(list.c_str(), R_OK) != 0) continue;
    taken.snapshot.runtime_list = list;
  }
  schedule::Stack stack;
  stack.node = plan_.nodes[node];
  stack.thread = std::move(taken.thread);
  stack.pid = taken.pid;
  stack.tid = taken.tid;
  stack.why = std::move(taken.why);
  stack.ns = taken.at_ns;
  stack.incomplete = std::move(taken.missing);
  if (limit_ns <= 0) {
    add_reason(stack.incomplete, "the time limit for unwinding was reached");
    return stack;
  }
  if (taken.snapshot.registers.back() == 0) {
    if (!taken.python.empty()) put_python(stack.frames, std::move(taken.python)), stack.incomplete.clear();
    if (!taken.java.frames.empty())
      put_java(stack.frames, taken.java.frames), stack.incomplete = std::move(taken.java.missing);
    return stack;
  }
  auto unwound = symbols::unwind(taken.snapshot, limit_ns);
  for (auto& frame : unwound.frames)
    stack.frames.push_back(
        {std::move(frame.function), std::move(frame.file), frame.line, std::move(frame.binary), frame.address});
  // Mention lost files only if frames are missing.
  if (!unwound.incomplete.empty() && !lost.empty())
    add_reason(stack.incomplete, fmt::format("{} was removed or replaced", lost.front()));
  add_reason(stack.incomplete, unwound.incomplete);
  const std::string_view language = language_of(stack.frames);
  if (!taken.python.empty() && language == "Python") {
    put_python(stack.frames, std::move(taken.python));
    stack.incomplete.clear();  // missing frames of the interpreter do not matter
    return stack;
  }
  if (!taken.java.frames.empty()) {
    put_java(stack.frames, taken.java.frames);
    stack.incomplete = std::move(taken.java.missing);  // missing native frames inside the JVM do not matter
  } else if (!taken.java.missing.empty()) {
    add_reason(stack.incomplete, taken.java.missing);
  } else if (language == "Java" && (node >= plan_.java_stacks.size() || !plan_.java_stacks[node])) {
    add_reason(stack.incomplete,
               "these are the runtime's frames: Java frames are recorded for nodes that rose starts and knows to run a "
               "JVM, by a `command` that is java or `sources` that are .java files");
  } else if (!language.empty() && !has_runtime_names(stack.frames)) {
    // Another thread of the runtime may do the work. For example, Node.js performs file I/O in a thread pool.
    add_reason(
        stack.incomplete,
        taken.snapshot.runtime_list.empty()
            ? fmt::format("these are the runtime's frames: those of {} are recorded {}", language,
                          naming_condition(language))
            : fmt::format("these are the runtime's frames: no function of {} was on this thread's stack", language));
  }
  return stack;
}

Stacks::ByFault Stacks::resolve(const std::vector<std::vector<pid_t>>& living,
                                const std::function<std::size_t(std::size_t)>& node_of,
                                const std::function<std::string(std::size_t)>& why) const {
  const std::lock_guard lock(mutex_);
  const auto until = monotonic_ns() + kAllNs;
  ByFault resolved;
  std::map<std::size_t, std::vector<jvm::JavaStack>> noted;  // by node: what its JVMs recorded themselves
  const auto java_of = [&](std::size_t node, TakenStack& taken) {
    if (jvms_ == nullptr || node >= plan_.java_stacks.size() || !plan_.java_stacks[node]) return;
    const auto [known, fresh] = noted.try_emplace(node);
    if (fresh) known->second = jvm::noted(jvms_->state(plan_.nodes[node]));
    if (const jvm::JavaStack* stack = jvm::stack_of(known->second, taken.own_tid, taken.at_ns)) taken.java = *stack;
  };
  const auto resolve = [&](std::size_t chain, TakenStack taken) {
    const auto node = taken.node.value_or(node_of(chain));
    resolved[chain].push_back(
        resolve_stack(std::move(taken), node, living[node], std::min(kOneNs, until - monotonic_ns())));
  };
  for (std::size_t chain = 0; chain < plan_.schedule.faults.size(); ++chain) {
    for (const auto* stack : programs_.stacks(chain)) {
      auto taken = read_stack(*stack);
      taken.why = why(chain);
      java_of(node_of(chain), taken);
      // If the process still exists, the thread has continued since then, so it is no longer in the same functions.
      if (!kernel::process_exists(taken.pid)) ask_python(taken);
      resolve(chain, std::move(taken));
    }
    if (const auto own = taken_.find(chain); own != taken_.end()) {
      for (const auto& taken : own->second) resolve(chain, taken);
    }
  }
  return resolved;
}

}  // namespace rose::inject
