#include "kernel/privilege.h"

#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <mutex>

#include "base/clock.h"
#include "kernel/capability_sets.h"

namespace rose::kernel {
namespace {

constexpr std::array<const char*, 41> kNames = {"CAP_CHOWN",
                                                "CAP_DAC_OVERRIDE",
                                                "CAP_DAC_READ_SEARCH",
                                                "CAP_FOWNER",
                                                "CAP_FSETID",
                                                "CAP_KILL",
                                                "CAP_SETGID",
                                                "CAP_SETUID",
                                                "CAP_SETPCAP",
                                                "CAP_LINUX_IMMUTABLE",
                                                "CAP_NET_BIND_SERVICE",
                                                "CAP_NET_BROADCAST",
                                                "CAP_NET_ADMIN",
                                                "CAP_NET_RAW",
                                                "CAP_IPC_LOCK",
                                                "CAP_IPC_OWNER",
                                                "CAP_SYS_MODULE",
                                                "CAP_SYS_RAWIO",
                                                "CAP_SYS_CHROOT",
                                                "CAP_SYS_PTRACE",
                                                "CAP_SYS_PACCT",
                                                "CAP_SYS_ADMIN",
                                                "CAP_SYS_BOOT",
                                                "CAP_SYS_NICE",
                                                "CAP_SYS_RESOURCE",
                                                "CAP_SYS_TIME",
                                                "CAP_SYS_TTY_CONFIG",
                                                "CAP_MKNOD",
                                                "CAP_LEASE",
                                                "CAP_AUDIT_WRITE",
                                                "CAP_AUDIT_CONTROL",
                                                "CAP_SETFCAP",
                                                "CAP_MAC_OVERRIDE",
                                                "CAP_MAC_ADMIN",
                                                "CAP_SYSLOG",
                                                "CAP_WAKE_ALARM",
                                                "CAP_BLOCK_SUSPEND",
                                                "CAP_AUDIT_READ",
                                                "CAP_PERFMON",
                                                "CAP_BPF",
                                                "CAP_CHECKPOINT_RESTORE"};

// Returns 0 or an errno. Makes only system calls, because it also runs in a signal handler.
int drop_of_thread(std::uint64_t keep, Commands commands) {
  CapabilitySets sets;
  if (!get_capabilities(sets)) return errno;
  // Reduce the bounding set first, because that requires CAP_SETPCAP, which is dropped next. Without CAP_SETPCAP,
  // no_new_privs has the same effect for later programs.
  if (commands == Commands::as_weak) {
    if (((sets.effective >> CAP_SETPCAP) & 1) != 0) {
      for (int bit = 0; ::prctl(PR_CAPBSET_READ, bit, 0, 0, 0) >= 0; ++bit)
        if (((keep >> bit) & 1) == 0 && ::prctl(PR_CAPBSET_DROP, bit, 0, 0, 0) != 0) return errno;
    }
    if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return errno;
  }
  if (::prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) != 0 && errno != EINVAL) return errno;
  const std::uint64_t kept = sets.permitted & keep;
  return set_capabilities({kept, kept, 0}) ? 0 : errno;
}

// Capabilities are per thread, so every thread has to drop its own.
std::mutex broadcast_mutex;
std::atomic<std::uint64_t> broadcast_keep = 0;
std::atomic<Commands> broadcast_commands = Commands::as_weak;
std::atomic<int> broadcast_error = 0;

void on_broadcast(int) {
  const int saved = errno;
  if (const int error = drop_of_thread(broadcast_keep, broadcast_commands); error != 0) broadcast_error = error;
  errno = saved;
}

std::vector<pid_t> threads_with_more(std::uint64_t keep) {
  std::vector<pid_t> found;
  std::error_code bad;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/task", bad)) {
    const auto thread = static_cast<pid_t>(std::strtol(entry.path().filename().c_str(), nullptr, 10));
    CapabilitySets sets;
    if (get_capabilities(sets, thread) && (sets.permitted & ~keep) != 0) found.push_back(thread);
  }
  return found;
}

std::string name_of(int bit) {
  return bit >= 0 && static_cast<std::size_t>(bit) < kNames.size() ? kNames[static_cast<std::size_t>(bit)]
                                                                   : fmt::format("capability {}", bit);
}

std::string lower_name(int bit) {
  std::string name = name_of(bit);
  for (char& c : name) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return name;
}

}  // namespace

std::string to_text(Capabilities capabilities) {
  std::string text;
  for (int bit = 0; bit < 64; ++bit)
    if (capabilities.has(bit)) text += (text.empty() ? "" : ", ") + name_of(bit);
  return text.empty() ? "none" : text;
}

Capabilities effective_capabilities() {
  CapabilitySets sets;
  return get_capabilities(sets) ? Capabilities::from(sets.effective) : Capabilities();
}

Result<void> check_capabilities(const std::vector<Need>& needs) {
  const Capabilities have = effective_capabilities();
  std::string missing, names;
  for (const Need& need : needs) {
    const bool substitute = (need.capability == CAP_BPF || need.capability == CAP_PERFMON) && have.has(CAP_SYS_ADMIN);
    if (have.has(need.capability) || substitute) continue;
    missing += fmt::format("{}{} ({})", missing.empty() ? "" : ", ", name_of(need.capability), need.what_for);
    names += (names.empty() ? "" : ",") + lower_name(need.capability);
  }
  if (missing.empty()) return {};
  return fail(
      ErrorKind::environment, fmt::format("not permitted: this needs {}", missing),
      fmt::format("run as root; or give the user these capabilities (AmbientCapabilities= of a systemd unit, or "
                  "capsh/setpriv), or the program ('setcap {}+ep .../rose')",
                  names));
}

Result<void> drop_capabilities(Capabilities keep, Commands commands) {
  const std::lock_guard lock(broadcast_mutex);
  broadcast_keep = keep.bits();
  broadcast_commands = commands;
  broadcast_error = 0;
  const auto failed = [](int error) {
    return fail_errno(ErrorKind::environment, "cannot drop privileges that are no longer needed", error);
  };
  if (const int error = drop_of_thread(keep.bits(), commands); error != 0) return failed(error);
  struct sigaction action{}, before{};
  action.sa_handler = on_broadcast;
  action.sa_flags = SA_RESTART;
  const int signal = SIGRTMIN + 3;
  ::sigaction(signal, &action, &before);
  // Repeat until no thread has more capabilities, because a thread may have created another one meanwhile.
  Result<void> result;
  const std::int64_t limit = monotonic_ns() + 5'000'000'000;
  for (;;) {
    const auto threads = threads_with_more(keep.bits());
    if (threads.empty()) break;
    for (const pid_t tid : threads) ::syscall(SYS_tgkill, ::getpid(), tid, signal);
    if (broadcast_error != 0 || monotonic_ns() > limit) {
      result = failed(broadcast_error != 0 ? broadcast_error.load() : ETIMEDOUT);
      break;
    }
    ::usleep(200);
  }
  // A signal may still be pending, and its default action would end the process, so it is ignored from now on.
  action.sa_handler = SIG_IGN;
  ::sigaction(signal, before.sa_handler == SIG_DFL ? &action : &before, nullptr);
  return result;
}

void weaken_thread() { (void)drop_of_thread(0, Commands::as_weak); }

}  // namespace rose::kernel
