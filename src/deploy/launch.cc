#include "deploy/launch.h"

#ifdef __x86_64__
#include <asm/prctl.h>
#endif
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <linux/futex.h>
#include <linux/openat2.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <pwd.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <utility>

#include "base/cancel.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/folder.h"
#include "base/relax.h"
#include "kernel/arch.h"
#include "kernel/capability_sets.h"
#include "kernel/processes.h"

namespace rose::deploy {

// A child that is being started may be stopped by its user's processes. It is continued at this interval (in ns), and
// killed if it was found stopped more often than kMostStops.
static constexpr std::int64_t kContinueEvery = 100'000'000;
static constexpr int kMostStops = 100;

// Memory shared with the child, through which rose and the child synchronise. Between installing its filter and the
// execve, the child must not make a system call that the filter reports to rose, because rose does not answer yet.
struct Launch::Meeting {
  std::uint32_t state;    // kPreparing...
  std::int32_t listener;  // descriptor number in the child; -1: none
  std::int32_t stage;     // the step of the child that failed
  std::int32_t error;     // errno of that step
};

// Everything that the child needs. It is prepared before the clone: if another thread holds a lock (for example that of
// malloc) at the clone, this lock is never released in the child.
struct Launch::Plan {
  const char* file;
  char* const* argv;
  char* const* envp;
  const char* directory;
  const char* inside;  // null: none
  int netns;
  int names;
  int null_fd;
  int out_fd;
  int err_fd;
  int exec_fd;
  bool change_user;
  uid_t uid;
  gid_t gid;
  const gid_t* groups;
  std::size_t group_count;
  const sock_fprog* filter;  // null: none
  bool held;                 // the child starts in the state kHeld
  bool may_call;             // the filter allows futex and getppid, so the child may wait in the kernel
  pid_t parent;
};

namespace {

constexpr std::uint32_t kPreparing = 0;
constexpr std::uint32_t kWaiting = 1;
constexpr std::uint32_t kReleased = 2;
constexpr std::uint32_t kHeld = 3;  // the child waits until rose has moved it to its cgroup

enum Stage : std::int32_t {
  kSession,
  kNetwork,
  kNames,
  kDirectory,
  kDescriptors,
  kUser,
  kCapabilities,
  kFilter,
  kExec,
};

const char* stage_name(int stage) {
  switch (stage) {
    case kSession: return "start a session";
    case kNetwork: return "enter its network namespace";
    case kNames: return "enter the mount namespace with the run's names";
    case kDirectory: return "enter its directory";
    case kDescriptors: return "open its standard streams";
    case kUser: return "become its user";
    case kCapabilities: return "keep the right to install a seccomp filter";
    case kFilter: return "install its seccomp filter";
    default: return "execute";
  }
}

struct KernelSigaction {
  void* handler;
  unsigned long flags;
  void* restorer;
  std::uint64_t mask;
};

#define ROSE_CHILD __attribute__((no_sanitize("address", "thread", "undefined"), noinline))

// Moves the descriptor to 10 or above, because the child uses the numbers 0 to 3.
Fd raise(Fd fd) {
  if (!fd || fd.get() >= 10) return fd;
  return Fd(::fcntl(fd.get(), F_DUPFD_CLOEXEC, 10));
}

constexpr const char* kLogHint =
    "the node's output is written there: if the node needs its own file or pipe, choose another name";

void wake(std::uint32_t* state) { ::syscall(SYS_futex, state, FUTEX_WAKE, 1, nullptr, nullptr, 0); }

std::vector<char*> pointers(const std::vector<std::string>& strings) {
  std::vector<char*> list;
  for (const std::string& text : strings) list.push_back(const_cast<char*>(text.c_str()));
  list.push_back(nullptr);
  return list;
}

bool ended(int pidfd) {
  pollfd p{pidfd, POLLIN, 0};
  return ::poll(&p, 1, 0) > 0;
}

}  // namespace

ROSE_CHILD void Launch::run_child(const Plan& plan, Meeting* meeting) {
  const auto give_up = [meeting](Stage stage) {
    meeting->stage = stage;
    __atomic_store_n(&meeting->error, errno, __ATOMIC_RELEASE);
    ::syscall(SYS_exit_group, 127);
    // If the filter reports exit_group to rose, and rose does not answer any more, the call fails. Then this
    // instruction ends the process.
    __builtin_trap();
  };

  KernelSigaction normal{};
  for (int number = 1; number <= 64; ++number) ::syscall(SYS_rt_sigaction, number, &normal, nullptr, 8);
  const std::uint64_t no_signals = 0;
  ::syscall(SYS_rt_sigprocmask, SIG_SETMASK, &no_signals, nullptr, 8);

  const timespec second{1, 0};
  while (plan.held && __atomic_load_n(&meeting->state, __ATOMIC_ACQUIRE) == kHeld) {
    ::syscall(SYS_futex, &meeting->state, FUTEX_WAIT, kHeld, &second, nullptr, 0);
    if (::syscall(SYS_getppid) != plan.parent) give_up(kSession);  // rose was killed
  }
  if (::syscall(SYS_setsid) < 0) give_up(kSession);
  if (plan.netns >= 0 && ::syscall(SYS_setns, plan.netns, CLONE_NEWNET) != 0) give_up(kNetwork);
  if (plan.names >= 0 && ::syscall(SYS_setns, plan.names, CLONE_NEWNS) != 0) give_up(kNames);
  // This comes before the change of user, because the node's user may not be allowed to enter rose's folders.
  if (::syscall(SYS_chdir, plan.directory) != 0) give_up(kDirectory);
  if (plan.inside != nullptr) {
    // The node's user may have replaced the folder by a link, which root must not follow for that user.
    open_how how{};
    how.flags = O_PATH | O_DIRECTORY | O_CLOEXEC;
    how.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS;
    const long folder = ::syscall(SYS_openat2, AT_FDCWD, plan.inside, &how, sizeof how);
    if (folder < 0 || ::syscall(SYS_fchdir, folder) != 0) give_up(kDirectory);
  }
  if (::syscall(SYS_dup3, plan.null_fd, 0, 0) < 0 || ::syscall(SYS_dup3, plan.out_fd, 1, 0) < 0 ||
      ::syscall(SYS_dup3, plan.err_fd, 2, 0) < 0 || ::syscall(SYS_dup3, plan.exec_fd, 3, O_CLOEXEC) < 0)
    give_up(kDescriptors);
  // Close the descriptors now rather than at the execve: if rose dies while this child waits, the child must not keep
  // rose's locks and links.
  if (::syscall(SYS_close_range, 4, ~0U, 0) != 0) give_up(kDescriptors);

  if (plan.change_user) {
    // Installing the filter later requires CAP_SYS_ADMIN, or no_new_privs, which would restrict the node.
    if (plan.filter != nullptr && ::syscall(SYS_prctl, PR_SET_KEEPCAPS, 1, 0, 0, 0) != 0) give_up(kCapabilities);
    if (::syscall(SYS_setgroups, plan.group_count, plan.groups) != 0 ||
        ::syscall(SYS_setresgid, plan.gid, plan.gid, plan.gid) != 0 ||
        ::syscall(SYS_setresuid, plan.uid, plan.uid, plan.uid) != 0)
      give_up(kUser);
    if (plan.filter != nullptr) {
      constexpr std::uint64_t kInstall = std::uint64_t{1} << CAP_SYS_ADMIN;  // the execve drops it
      if (!kernel::set_capabilities({kInstall, kInstall, 0})) give_up(kCapabilities);
    }
  }

  if (plan.filter != nullptr) {
    const unsigned long flags = SECCOMP_FILTER_FLAG_NEW_LISTENER;
    long listener =
        ::syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags | SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV, plan.filter);
    // Linux before 5.19 does not know SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV.
    if (listener < 0 && errno == EINVAL) listener = ::syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, plan.filter);
    if (listener < 0) give_up(kFilter);
    meeting->listener = static_cast<std::int32_t>(listener);
  }
  __atomic_store_n(&meeting->state, kWaiting, __ATOMIC_RELEASE);
  if (plan.may_call) {
    ::syscall(SYS_futex, &meeting->state, FUTEX_WAKE, 1, nullptr, nullptr, 0);
    while (__atomic_load_n(&meeting->state, __ATOMIC_ACQUIRE) == kWaiting) {
      ::syscall(SYS_futex, &meeting->state, FUTEX_WAIT, kWaiting, &second, nullptr, 0);
      if (::syscall(SYS_getppid) != plan.parent) give_up(kExec);  // rose was killed
    }
  } else {
    // The wait is limited to about a minute. It is counted in instructions, so that time in which the process is frozen
    // does not count.
    std::uint64_t spins = std::uint64_t{1} << 31;
    while (__atomic_load_n(&meeting->state, __ATOMIC_ACQUIRE) == kWaiting) {
      relax();
      if (--spins == 0) give_up(kExec);
    }
  }
  ::syscall(SYS_execve, plan.file, plan.argv, plan.envp);
  give_up(kExec);
  __builtin_unreachable();
}

// The folder belongs to the node's user, who may have created anything with this name since the last start: a pipe,
// which would block rose, or a link to another user's file.
Result<Fd> open_log(const std::string& path, const Credentials* user) {
  const std::filesystem::path file(path);
  ROSE_TRY(const OpenFolder folder, OpenFolder::open(file.parent_path()));
  Fd found = folder.file_to_change(file.filename());
  if (!found && errno == ENOENT) {
    const std::optional<Owner> owner = user != nullptr ? std::optional(Owner{user->uid, user->gid}) : std::nullopt;
    ROSE_TRY(found, folder.create(file.filename(), owner, 0644));
  }
  const int err = errno;
  struct stat info{};
  const bool there = found && ::fstat(found.get(), &info) == 0;
  if (!there && err == EINVAL)
    return fail(ErrorKind::inconclusive, fmt::format("{} is not a regular file any more", path), kLogHint);
  if (!there && err == EPERM)
    return fail(ErrorKind::inconclusive, fmt::format("{} belongs to another user", path), kLogHint);
  if (!there) return fail_errno(ErrorKind::environment, fmt::format("cannot open {}", path), err);
  if (user != nullptr && info.st_uid != user->uid)
    return fail(ErrorKind::inconclusive,
                fmt::format("{} belongs to user {}, not to the node's user", path, info.st_uid), kLogHint);
  Fd fd(::open(own_path(found.get()).c_str(), O_WRONLY | O_APPEND | O_CLOEXEC));
  if (!fd) return fail_errno(ErrorKind::environment, fmt::format("cannot open {}", path), errno);
  return raise(std::move(fd));
}

Result<Credentials> find_user(const std::string& name) {
  std::vector<char> buffer(16384);
  passwd entry{};
  passwd* found = nullptr;
  const int err = ::getpwnam_r(name.c_str(), &entry, buffer.data(), buffer.size(), &found);
  if (found == nullptr)
    return fail(ErrorKind::input, fmt::format("there is no user '{}' on this machine{}", name,
                                              err != 0 ? fmt::format(": {}", std::strerror(err)) : ""));
  Credentials user{entry.pw_uid, entry.pw_gid, {}};
  int count = 64;
  user.groups.resize(static_cast<std::size_t>(count));
  if (::getgrouplist(name.c_str(), entry.pw_gid, user.groups.data(), &count) < 0) {
    user.groups.resize(static_cast<std::size_t>(count));
    ::getgrouplist(name.c_str(), entry.pw_gid, user.groups.data(), &count);
  }
  user.groups.resize(static_cast<std::size_t>(count));
  return user;
}

namespace {

// A kind of call. The filter notifies rose if all tests of the arguments succeed; otherwise it tests the next kind.
struct ClockCall {
  long number;
  struct Test {
    unsigned argument;
    std::uint32_t mask;                 // applied to the lower 32 bits of the argument
    std::vector<std::uint32_t> values;  // accepted values; if empty, all values except 0
  };
  std::vector<Test> tests;
};

std::vector<ClockCall> clock_calls(ClockCalls which) {
  std::vector<std::uint32_t> clocks{CLOCK_REALTIME, CLOCK_REALTIME_COARSE, CLOCK_TAI};
  std::vector<std::uint32_t> waits{FUTEX_WAIT_BITSET | FUTEX_CLOCK_REALTIME};
  if (which == ClockCalls::all) {
    clocks.insert(clocks.end(), {CLOCK_MONOTONIC, CLOCK_MONOTONIC_RAW, CLOCK_MONOTONIC_COARSE, CLOCK_BOOTTIME});
    waits.push_back(FUTEX_WAIT_BITSET);
  }
  constexpr std::uint32_t kAll = ~0U;
#ifdef __x86_64__
  const std::vector<ClockCall> own = {{kernel::kFirstCall, {{0, kAll, {ARCH_SET_FS}}}}, {SYS_time, {}}};
#else
  const std::vector<ClockCall> own = {{kernel::kFirstCall, {}}};
#endif
  std::vector<ClockCall> calls = {
      {SYS_gettimeofday, {}},
      {SYS_clock_gettime, {{0, kAll, clocks}}},
      {SYS_clock_nanosleep, {{0, kAll, clocks}, {1, kAll, {TIMER_ABSTIME}}}},
      {SYS_timerfd_settime, {{1, TFD_TIMER_ABSTIME, {TFD_TIMER_ABSTIME}}}},
      {SYS_futex, {{1, ~static_cast<std::uint32_t>(FUTEX_PRIVATE_FLAG), waits}, {3, kAll, {}}}}};
  calls.insert(calls.begin(), own.begin(), own.end());
  return calls;
}

void add_clock_calls(std::vector<sock_filter>& program, ClockCalls which) {
  for (const ClockCall& call : clock_calls(which)) {
    std::vector<sock_filter> body;
    // The instructions are generated backwards. A test that fails jumps behind the instructions generated so far, and a
    // test that succeeds continues with the next one.
    body.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF));
    for (auto test = call.tests.rbegin(); test != call.tests.rend(); ++test) {
      std::vector<sock_filter> part = {
          BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
                   static_cast<std::uint32_t>(offsetof(seccomp_data, args) + 8 * test->argument)),
          BPF_STMT(BPF_ALU | BPF_AND | BPF_K, test->mask),
      };
      const std::size_t values = test->values.size();
      if (values == 0)
        part.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0, static_cast<unsigned char>(body.size()), 0));
      for (std::size_t i = 0; i < values; ++i) {
        const auto hit = static_cast<unsigned char>(values - 1 - i);
        const bool last = i + 1 == values;
        part.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, test->values[i], hit,
                                static_cast<unsigned char>(last ? body.size() : 0)));
      }
      body.insert(body.begin(), part.begin(), part.end());
    }
    program.push_back(BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)));
    program.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<std::uint32_t>(call.number), 0,
                               static_cast<unsigned char>(body.size())));
    program.insert(program.end(), body.begin(), body.end());
  }
}

}  // namespace

std::vector<sock_filter> notify_filter(const std::vector<int>& syscalls, ClockCalls clocks) {
  std::vector<sock_filter> program = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, arch)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, kernel::kAuditArch, 1, 0),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
  };
  for (const int number : syscalls) {
    program.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<std::uint32_t>(number), 0, 1));
    program.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF));
  }
  if (clocks != ClockCalls::none) add_clock_calls(program, clocks);
  program.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));
  return program;
}

Unexpected Launch::trouble(std::string_view what, int err) const {
  return fail_errno(ErrorKind::environment, fmt::format("{}: cannot {}", what_, what), err);
}

Result<Launch> Launch::prepare(const LaunchSpec& spec) {
  Launch launch;
  launch.what_ = spec.what;
  launch.file_ = spec.file;
  const Fd null_fd = raise(Fd(::open("/dev/null", O_RDONLY | O_CLOEXEC)));
  if (!null_fd) return launch.trouble("open /dev/null", errno);
  ROSE_TRY(const Fd out_fd, open_log(spec.stdout_log, spec.user));
  ROSE_TRY(const Fd err_fd, open_log(spec.stderr_log, spec.user));
  const Fd cgroup_fd(::open(spec.cgroup.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!cgroup_fd) return launch.trouble(fmt::format("open its cgroup {}", spec.cgroup), errno);
  ROSE_TRY(const Fd exec_fd, launch.make_meeting());

  const std::vector<char*> argv = pointers(spec.argv);
  std::vector<std::string> variables;
  for (const auto& [name, value] : spec.env) variables.push_back(fmt::format("{}={}", name, value));
  const std::vector<char*> envp = pointers(variables);
  std::vector<sock_filter> program = notify_filter(spec.notified_syscalls, spec.notified_clocks);
  const sock_fprog filter{static_cast<unsigned short>(program.size()), program.data()};
  const auto notified = [&spec](long number) {
    return std::find(spec.notified_syscalls.begin(), spec.notified_syscalls.end(), number) !=
           spec.notified_syscalls.end();
  };

  Plan plan{};
  plan.file = spec.file.c_str();
  plan.argv = argv.data();
  plan.envp = envp.data();
  plan.directory = spec.directory.c_str();
  plan.inside = spec.inside.empty() ? nullptr : spec.inside.c_str();
  plan.netns = spec.netns;
  plan.names = spec.names;
  plan.null_fd = null_fd.get();
  plan.out_fd = out_fd.get();
  plan.err_fd = err_fd.get();
  plan.exec_fd = exec_fd.get();
  if (spec.user != nullptr && spec.changes_user) {
    plan.change_user = true;
    plan.uid = spec.user->uid;
    plan.gid = spec.user->gid;
    plan.groups = spec.user->groups.data();
    plan.group_count = spec.user->groups.size();
  }
  plan.filter = spec.notified_syscalls.empty() && spec.notified_clocks == ClockCalls::none ? nullptr : &filter;
  plan.may_call = !notified(SYS_futex) && !notified(SYS_getppid);
  plan.parent = ::getpid();
  ROSE_CHECK(launch.start(plan, spec.cgroup, cgroup_fd.get()));
  ROSE_CHECK(launch.take_over_listener());
  return launch;
}

// Creates the shared memory and returns the child's end of the pipe.
Result<Fd> Launch::make_meeting() {
  int pipe_fds[2];
  if (::pipe2(pipe_fds, O_CLOEXEC) != 0) return trouble("make a pipe", errno);
  executed_ = Fd(pipe_fds[0]);
  Fd exec_fd = raise(Fd(pipe_fds[1]));
  if (!exec_fd) return trouble("make a pipe", errno);
  void* page = ::mmap(nullptr, sizeof(Meeting), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (page == MAP_FAILED) return trouble("map memory", errno);
  meeting_ = static_cast<Meeting*>(page);
  meeting_->listener = -1;
  return exec_fd;
}

// Since Linux 6.14 (b69bb476dee9, "cgroup: fix race between fork and cgroup.kill"), CLONE_INTO_CGROUP compares the kill
// count of rose's own cgroup with that of the target, so a child cloned into a cgroup that was ever killed dies
// immediately. Therefore, if a child is killed before it reports, rose starts another one outside the cgroup and moves
// it while it waits, which takes the kernel some milliseconds longer.
Result<void> Launch::start(Plan& plan, const std::string& cgroup, int cgroup_fd) {
  for (const bool into : {true, false}) {
    plan.held = !into;
    meeting_->state = into ? kPreparing : kHeld;
    if (const int err = clone_child(plan, into ? cgroup_fd : -1); err != 0)
      return trouble(fmt::format("start a process in {}", cgroup), err);
    if (!into) {
      ROSE_CHECK(write_control(cgroup + "/cgroup.procs", std::to_string(pid_)));
      __atomic_store_n(&meeting_->state, kPreparing, __ATOMIC_RELEASE);
      wake(&meeting_->state);
    }
    await_child();
    const bool silent = __atomic_load_n(&meeting_->state, __ATOMIC_ACQUIRE) == kPreparing &&
                        __atomic_load_n(&meeting_->error, __ATOMIC_ACQUIRE) == 0;
    if (!into || !silent) break;
    reap();
  }
  if (const int err = __atomic_load_n(&meeting_->error, __ATOMIC_ACQUIRE); err != 0)
    return trouble(stage_name(meeting_->stage), err);
  return {};
}

// Clones the child into the cgroup, or into rose's own cgroup if `cgroup_fd` is -1. Returns 0 or an errno.
int Launch::clone_child(const Plan& plan, int cgroup_fd) {
  // Signal handlers of rose must not run in the child before it has reset them.
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  int pidfd = -1;
  clone_args args{};
  args.flags = CLONE_PIDFD | (cgroup_fd >= 0 ? CLONE_INTO_CGROUP : 0);
  args.pidfd = reinterpret_cast<std::uint64_t>(&pidfd);
  args.exit_signal = SIGCHLD;
  args.cgroup = cgroup_fd >= 0 ? static_cast<std::uint64_t>(cgroup_fd) : 0;
  const long pid = ::syscall(SYS_clone3, &args, sizeof args);
  const int clone_errno = errno;
  if (pid == 0) run_child(plan, meeting_);
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (pid < 0) return clone_errno;
  pid_ = static_cast<pid_t>(pid);
  pidfd_ = Fd(pidfd);
  return 0;
}

// Waits until the child has prepared itself. The child wakes this thread if its filter allows that call. If the child
// is frozen, this waits until it is thawed or killed. Once the child has changed its user, that user's processes may
// stop it. In that case it is continued repeatedly, and killed if it is stopped too often or the command is
// interrupted.
void Launch::await_child() {
  std::int64_t continued = monotonic_ns();
  int stopped = 0;
  while (__atomic_load_n(&meeting_->state, __ATOMIC_ACQUIRE) == kPreparing && !ended(pidfd_.get())) {
    const timespec nap{0, 1'000'000};
    ::syscall(SYS_futex, &meeting_->state, FUTEX_WAIT, kPreparing, &nap, nullptr, 0);
    const std::int64_t now = monotonic_ns();
    if (now - continued < kContinueEvery) continue;
    continued = now;
    const auto stat = kernel::process_stat(pid_);
    if (stat && stat->state == 'T') ++stopped;
    (void)kernel::pidfd_signal(pidfd_.get(), cancel::requested() || stopped > kMostStops ? SIGKILL : SIGCONT);
  }
}

Result<void> Launch::take_over_listener() {
  if (meeting_->listener < 0) return {};
  listener_ = Fd(static_cast<int>(::syscall(SYS_pidfd_getfd, pidfd_.get(), meeting_->listener, 0)));
  // ESRCH or EBADF means that the child was killed while it waited; its pidfd reports that.
  if (!listener_ && errno != ESRCH && errno != EBADF) return trouble("take over its seccomp listener", errno);
  return {};
}

Result<Fd> Launch::release() {
  __atomic_store_n(&meeting_->state, kReleased, __ATOMIC_RELEASE);
  wake(&meeting_->state);
  // The pipe closes at the execve or at the end of the process. The wait is limited, because a supervisor that is
  // notified of the execve may delay it, or the node may be frozen. An execve that fails later appears as an end with
  // status 127.
  pollfd p{executed_.get(), POLLIN, 0};
  const std::int64_t until = monotonic_ns() + 10'000'000'000;
  while (::poll(&p, 1, 100) == 0 && monotonic_ns() < until && !cancel::requested())
    (void)kernel::pidfd_signal(pidfd_.get(), SIGCONT);  // as in await_child()
  if (const int err = __atomic_load_n(&meeting_->error, __ATOMIC_ACQUIRE); err != 0) {
    std::string hint;
    if (err == ENOEXEC) hint = "a script needs a first line such as #!/bin/sh";
    if (err == EACCES) hint = "it must be executable and reachable for its user";
    if (err == ENOENT) hint = "the file or the interpreter in its first line does not exist";
    return fail(ErrorKind::input, fmt::format("{}: cannot execute {}: {}", what_, file_, std::strerror(err)), hint);
  }
  ::munmap(meeting_, sizeof(Meeting));
  meeting_ = nullptr;
  return std::move(pidfd_);
}

Launch::Launch(Launch&& other) noexcept
    : what_(std::move(other.what_)),
      file_(std::move(other.file_)),
      pid_(std::exchange(other.pid_, 0)),
      pidfd_(std::move(other.pidfd_)),
      executed_(std::move(other.executed_)),
      listener_(std::move(other.listener_)),
      meeting_(std::exchange(other.meeting_, nullptr)) {}

Launch::~Launch() {
  reap();
  if (meeting_ != nullptr) ::munmap(meeting_, sizeof(Meeting));
}

void Launch::reap() {
  if (!pidfd_) return;
  // Close the listener, so that a child that waits for an answer (for example about its exit_group) ends at once.
  // SIGKILL ends the child in all other states.
  listener_.reset();
  ::syscall(SYS_pidfd_send_signal, pidfd_.get(), SIGKILL, nullptr, 0);
  siginfo_t info{};
  while (::waitid(P_PIDFD, static_cast<id_t>(pidfd_.get()), &info, WEXITED) != 0 && errno == EINTR) {
  }
  pidfd_.reset();
}

}  // namespace rose::deploy
