#include "replay/work.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <functional>
#include <map>

#include "base/file.h"
#include "base/log.h"
#include "base/text.h"
#include "base/thread.h"
#include "kernel/syscalls.h"

namespace rose::replay {
namespace {

namespace fs = std::filesystem;

// Calls that need room on a disk.
constexpr std::array kWriting = std::to_array<std::string_view>(
    {"write",     "pwrite64",  "writev", "pwritev", "pwritev2", "sendfile",  "copy_file_range", "splice",  "fsync",
     "fdatasync", "close",     "open",   "openat",  "openat2",  "creat",     "mkdir",           "mkdirat", "rename",
     "renameat",  "renameat2", "link",   "linkat",  "symlink",  "symlinkat", "mknod",           "mknodat"});

// If a file system has less room than this, it was probably full: some room may be free again because a file was closed
// or a log was truncated.
constexpr std::uint64_t kLeastRoom = 64 << 10;
constexpr std::uint64_t kMuchRoom = std::uint64_t{256} << 20;  // see DiskWatch
constexpr std::size_t kMostRecord = 8192;  // most bytes of a record in the kernel's log (CONSOLE_EXT_LOG_MAX)
constexpr std::size_t kMostRecords = 100'000;

// The time at which the fault fired. If its conditions are only times, this is the planned time, because a busy machine
// may have injected the fault later.
std::int64_t fired_ns(const schedule::Schedule& schedule, const schedule::FaultOutcome& outcome) {
  const schedule::Fault* fault = schedule.find(outcome.id);
  if (fault == nullptr || !fault->after.empty()) return outcome.fired_ns;
  std::int64_t due = 0;
  for (const schedule::Condition& condition : fault->when) {
    if (condition.kind != schedule::ConditionKind::elapsed) return outcome.fired_ns;
    due += condition.elapsed_ns;
  }
  const bool waits_for_calls = fault->kind == schedule::FaultKind::syscall || fault->before ||
                               fault->kind == schedule::FaultKind::exception ||
                               fault->kind == schedule::FaultKind::block;
  return waits_for_calls ? outcome.fired_ns : std::min(due, outcome.fired_ns);
}

bool fired_by(const schedule::Schedule& schedule, const schedule::RunResult& result, std::int64_t ns) {
  return std::any_of(result.faults.begin(), result.faults.end(), [&](const schedule::FaultOutcome& outcome) {
    return outcome.fired && fired_ns(schedule, outcome) <= ns;
  });
}

// True if the node failed. Other ends may be intended; see work.h.
bool has_failed(const NodeEnd& end) {
  if (end.signalled) return end.code != SIGKILL && end.code != SIGTERM && end.code != SIGINT;
  return end.code != 0;
}

bool is_usual(const Usual& usual, const NodeEnd& end) {
  return std::any_of(usual.processes.begin(), usual.processes.end(), [&](const profile::ProcessKind& kind) {
    if (kind.node != end.node || !kind.main) return false;
    return end.signalled ? kind.signal == kernel::signal_name(end.code)
                         : kind.state == "exited" && kind.exit_code == end.code;
  });
}

// True if a fault of the schedule may send SIGKILL to this node, or make the kernel send it.
bool may_kill(const schedule::Schedule& schedule, const std::string& node) {
  return std::any_of(schedule.faults.begin(), schedule.faults.end(), [&](const schedule::Fault& fault) {
    const bool kills = fault.kind == schedule::FaultKind::crash || fault.kind == schedule::FaultKind::memory ||
                       fault.then_do == schedule::ThenDo::crash;
    return kills && (fault.node == node || fault.node.starts_with('@'));
  });
}

}  // namespace

bool exchanged_data(const observe::Exchanged& exchanged, const std::optional<profile::WorkloadUse>& usual) {
  const bool only_sends = usual && usual->exchanges() && *usual->received == 0;
  return exchanged.received > 0 || (only_sends && exchanged.sent > 0);
}

std::string doubt_of(const Work& work, const std::optional<profile::WorkloadUse>& usual,
                     const schedule::Schedule& schedule, const schedule::RunResult& result) {
  if (work.failed && !fired_by(schedule, result, work.ended_ns))
    return fmt::format("the workload did no work: it {} before any fault fired", work.note);
  if (!work.exchanged || exchanged_data(*work.exchanged, usual)) return {};
  if (usual && usual->exchanges())
    return fmt::format("the workload exchanged no data with any node, although it does without faults{}",
                       work.note.empty() ? "" : fmt::format("; it {}", work.note));
  // If the workload uses the nodes, and always succeeds without faults, the faults may have made it fail, so the run
  // counts.
  const bool usually_works = usual && usual->received && usual->runs > 0 && usual->failed == 0;
  if ((work.failed || work.timed_out) && !usually_works && result.oracle != schedule::OracleAnswer::hit)
    return fmt::format("the workload did no work: it {} and exchanged no data with any node", work.note);
  return {};
}

std::string doubt_of(const NodeEnds& nodes, const Usual& usual, const schedule::Schedule& schedule,
                     const schedule::RunResult& result) {
  if (result.oracle != schedule::OracleAnswer::miss) return {};
  for (const NodeEnd& end : nodes.ends) {
    if (is_usual(usual, end)) continue;
    if (end.out_of_memory && !may_kill(schedule, end.node))
      return fmt::format("node {} {}: the kernel ended it for lack of memory", end.node, end.note);
    if (has_failed(end) && nodes.down.contains(end.node) && !fired_by(schedule, result, end.ended_ns))
      return fmt::format("node {} {} before any fault fired, and was down at the end", end.node, end.note);
  }
  return {};
}

DiskWatch::DiskWatch(std::filesystem::path run_dir) : run_dir_(std::move(run_dir)) {
  Result<std::thread> thread = start_thread([this] {
    std::unique_lock lock(mutex_);
    while (!ended_.wait_for(lock, pause_, [this] { return end_ || !full_.empty(); })) look();
  });
  if (thread) thread_ = std::move(*thread);
  else log::debug("the disk of {} is not watched: {}", run_dir_.string(), thread.error().message);
}

DiskWatch::~DiskWatch() {
  {
    const std::lock_guard lock(mutex_);
    end_ = true;
  }
  ended_.notify_all();
  if (thread_.joinable()) thread_.join();
}

std::string DiskWatch::seen() {
  const std::lock_guard lock(mutex_);
  look();
  return full_;
}

void DiskWatch::look() {
  struct statvfs room{};
  if (!full_.empty() || ::statvfs(run_dir_.c_str(), &room) != 0) return;
  const bool bytes = room.f_blocks > 0 && std::uint64_t{room.f_bavail} * room.f_frsize < kLeastRoom;
  const bool files = room.f_files > 0 && room.f_favail == 0;
  if (bytes || files)
    full_ =
        fmt::format("the disk of the run's folder {} was full: what was written may be cut short", run_dir_.string());
  pause_ = std::chrono::milliseconds(std::uint64_t{room.f_bavail} * room.f_frsize < kMuchRoom ? 1 : 10);
}

std::string call_on_full_disk(const trace::Trace& trace, const config::Config& config,
                              const schedule::Schedule& schedule, const std::filesystem::path& run_dir) {
  struct stat disk{};
  if (::stat(run_dir.c_str(), &disk) != 0) return {};
  std::map<std::string, fs::path, std::less<>> folders;  // of the nodes that count
  for (const config::Node& node : config.nodes) {
    const bool meant = std::any_of(schedule.faults.begin(), schedule.faults.end(), [&](const schedule::Fault& fault) {
      const bool fills = fault.kind == schedule::FaultKind::disk_full || fault.error == ENOSPC || fault.error == EDQUOT;
      return fills && (fault.node == node.name || fault.node.starts_with('@'));
    });
    if (!meant && !node.container && !node.attach) folders.emplace(node.name, run_dir / node.name);
  }
  for (const trace::Event& event : trace.events) {
    if (event.type != trace::EventType::scf || (event.err != ENOSPC && event.err != EDQUOT) || event.path == 0)
      continue;
    const auto folder = folders.find(trace.strings[event.node]);
    const std::string call = kernel::syscall_name(event.syscall);
    if (folder == folders.end() || std::find(kWriting.begin(), kWriting.end(), call) == kWriting.end()) continue;
    const fs::path path = folder->second / trace.strings[event.path];
    // The file may be gone, or was never created.
    struct stat status{};
    fs::path there = path;
    while (::stat(there.c_str(), &status) != 0 && there.has_relative_path()) there = there.parent_path();
    if (status.st_dev != disk.st_dev) continue;
    return fmt::format("the disk of the run's folder {} was full for a while: {} of {} failed with {} on {}",
                       run_dir.string(), call, folder->first, kernel::errno_name(event.err), printable(path.string()));
  }
  return {};
}

Usual usual_of(const profile::Profile& profile) { return {profile.workload, profile.processes}; }

Result<Usual> usual_of(const config::Config& config, const std::string& profile) {
  std::filesystem::path file = profile;
  if (profile.empty()) {
    std::error_code unreadable;
    file = config.directory / "profile.json";
    if (!std::filesystem::exists(file, unreadable)) file += ".zst";
    if (!std::filesystem::exists(file, unreadable)) return Usual();
    // The user has not named this file, so it may be anything. Reading a pipe would wait for ever.
    if (!std::filesystem::is_directory(file, unreadable) && !std::filesystem::is_regular_file(file, unreadable))
      return fail(ErrorKind::input, fmt::format("{} is not a regular file", file.string()),
                  "name a profile with --profile");
  }
  ROSE_TRY(const profile::Profile read, profile::read_profile(file, profile::Part::functions));
  return usual_of(read);
}

// Reads a record such as "6,1034,9872341,-;Memory cgroup out of memory: Killed process 4711 (redis) total-vm:1200kB,
// ...".
std::optional<pid_t> killed_for_memory(std::string_view record) {
  constexpr std::string_view kKilled = "ut of memory: Killed process ";
  const std::size_t at = record.find(kKilled);
  if (at == std::string_view::npos || record.find(';') > at) return std::nullopt;
  const std::string_view number = record.substr(at + kKilled.size());
  pid_t pid = 0;
  const auto read = std::from_chars(number.data(), number.data() + number.size(), pid);
  if (read.ec != std::errc() || pid <= 0) return std::nullopt;
  return pid;
}

MemoryKills::MemoryKills() : log_(::open("/dev/kmsg", O_RDONLY | O_NONBLOCK | O_CLOEXEC)) {
  if (log_ && ::lseek(log_.get(), 0, SEEK_END) < 0) log_ = Fd();
}

std::set<pid_t> MemoryKills::pids() const {
  std::set<pid_t> out;
  std::array<char, kMostRecord> record{};
  for (std::size_t seen = 0; log_ && seen < kMostRecords; ++seen) {
    const ssize_t got = ::read(log_.get(), record.data(), record.size());
    if (got < 0 && (errno == EPIPE || errno == EINTR)) continue;  // EPIPE means that records were overwritten
    if (got <= 0) break;
    if (const auto pid = killed_for_memory({record.data(), static_cast<std::size_t>(got)})) out.insert(*pid);
  }
  return out;
}

}  // namespace rose::replay
