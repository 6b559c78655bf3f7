#include "inject/holder.h"

#include <dirent.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <set>

#include "base/log.h"
#include "kernel/processes.h"

namespace rose::inject {
namespace {

constexpr int kSocket = 3;  // the only descriptor that the tracer inherits, besides 0 to 2
constexpr int kMostLooks = 16;
constexpr auto kOptions = PTRACE_O_TRACECLONE | PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK;

}  // namespace

enum class What : std::uint32_t { watch, hold, release };

struct Holder::Command {
  What what = What::watch;
  std::uint32_t chain = 0;
  pid_t process = 0;
  pid_t thread = 0;
};

// Memory that rose shares with the tracer. Indexed by chain.
struct Holder::Shared {
  std::uint32_t held[ROSE_MAX_CHAINS];  // Hold
  std::uint32_t released[ROSE_MAX_CHAINS];
};

namespace {

// The tracer's side: one thread that waits for commands and for the threads it traces.
template <typename Shared>
class Tracer {
 public:
  Tracer(const rose_chain* chains, const std::vector<std::size_t>& which, Shared* shared, std::vector<pid_t>& threads)
      : chains_(chains), which_(which), shared_(shared), threads_(threads) {}

  template <typename Command>
  [[noreturn]] void run() {
    sigset_t children;
    sigemptyset(&children);
    sigaddset(&children, SIGCHLD);
    const int signals = ::signalfd(-1, &children, SFD_CLOEXEC | SFD_NONBLOCK);
    if (signals < 0) ::_exit(1);
    for (;;) {
      serve();
      pollfd watched[2] = {{kSocket, POLLIN, 0}, {signals, POLLIN, 0}};
      if (::poll(watched, 2, -1) < 0 && errno != EINTR) break;
      signalfd_siginfo info[16];
      while (::read(signals, info, sizeof info) > 0) {
      }
      if (watched[0].revents == 0) continue;
      Command command;
      Fd process;
      const auto got = receive(command, process);
      if (got < 0 && (errno == EAGAIN || errno == EINTR)) continue;
      if (got != static_cast<ssize_t>(sizeof command)) break;  // rose has ended, or has no more requests
      const int answer = obey(command, process);
      (void)::send(kSocket, &answer, sizeof answer, MSG_NOSIGNAL);
    }
    // Handle the threads that have just stopped. The held threads are in stops without a signal, so they continue when
    // their tracer ends.
    serve();
    ::_exit(0);
  }

 private:
  // Receives a command. If the command concerns a process, a descriptor of the process comes with it.
  template <typename Command>
  static ssize_t receive(Command& command, Fd& process) {
    iovec data{&command, sizeof command};
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))];
    msghdr message{};
    message.msg_iov = &data;
    message.msg_iovlen = 1;
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    const ssize_t got = ::recvmsg(kSocket, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    const cmsghdr* const header = got > 0 ? CMSG_FIRSTHDR(&message) : nullptr;
    if (header != nullptr && header->cmsg_type == SCM_RIGHTS) {
      int fd = -1;
      std::memcpy(&fd, CMSG_DATA(header), sizeof fd);
      process = Fd(fd);
    }
    return got;
  }

  template <typename Command>
  int obey(const Command& command, const Fd& process) {
    switch (command.what) {
      case What::watch: return watch(command.process, process);
      case What::hold: return hold(command.chain, command.process, process, command.thread);
      case What::release: release(command.chain); return 0;
    }
    return -EINVAL;
  }

  static bool is_thread_of(pid_t process, pid_t thread) {
    char path[64];
    std::snprintf(path, sizeof path, "/proc/%d/task/%d", process, thread);
    return ::access(path, F_OK) == 0;
  }

  // Starts to trace a thread. A traced thread and its process keep their ids, so check the process only now: the thread
  // may have ended before it was traced, and its id may belong to another program.
  int seize(pid_t process, const Fd& pidfd, pid_t thread) {
    if (::ptrace(static_cast<__ptrace_request>(PTRACE_SEIZE), thread, nullptr, kOptions) != 0) return -errno;
    if (is_thread_of(process, thread) && !kernel::pidfd_ended(pidfd.get())) return 0;
    strangers_.insert(thread);
    (void)::ptrace(static_cast<__ptrace_request>(PTRACE_INTERRUPT), thread, nullptr, nullptr);
    return -ESRCH;
  }

  // Looks for threads until a round finds no new ones: untraced threads may create threads during a round. Threads that
  // traced threads create are traced automatically.
  int watch(pid_t process, const Fd& pidfd) {
    char path[64];
    std::snprintf(path, sizeof path, "/proc/%d/task", process);
    int taken = 0;
    for (int look = 0, fresh = 1; fresh > 0 && look < kMostLooks; ++look) {
      fresh = 0;
      DIR* folder = ::opendir(path);
      if (folder == nullptr) break;
      while (const dirent* entry = ::readdir(folder)) {
        const pid_t thread = std::atoi(entry->d_name);
        if (thread > 0 && seize(process, pidfd, thread) == 0) ++fresh;
      }
      ::closedir(folder);
      taken += fresh;
    }
    return taken;
  }

  int hold(std::size_t chain, pid_t process, const Fd& pidfd, pid_t thread) {
    serve();
    if (__atomic_load_n(&shared_->held[chain], __ATOMIC_ACQUIRE) != 0) return 0;
    const int got = seize(process, pidfd, thread);
    // The thread is traced now, has ended, or was already traced by this tracer. If it exists, serve() handles it when
    // it has stopped.
    if (got == 0 || got == -ESRCH || kernel::tracer_of(thread) == ::getpid()) return 0;
    (void)kernel::pidfd_signal(pidfd.get(), SIGCONT);
    return got;
  }

  void release(std::size_t chain) {
    __atomic_store_n(&shared_->released[chain], 1U, __ATOMIC_RELEASE);
    serve();
    if (threads_[chain] == 0) return;
    resume(threads_[chain], 0);
    threads_[chain] = 0;
  }

  // The chain for which this thread is to be held; null if there is none.
  const std::size_t* wanted(pid_t thread) const {
    for (const std::size_t& chain : which_) {
      const auto state = __atomic_load_n(&chains_[chain].state, __ATOMIC_ACQUIRE);
      const bool here = state == ROSE_FIRED || (chains_[chain].kind == ROSE_CHAIN_MARK && state == ROSE_ARMED);
      const auto signalled = chains_[chain].signalled;
      if (here && signalled != 0 && signalled != ROSE_NOT_HELD && static_cast<pid_t>(chains_[chain].tid) == thread &&
          !seen_.at(chain))
        return &chain;
    }
    return nullptr;
  }

  static void resume(pid_t thread, int signal) {
    (void)::ptrace(PTRACE_CONT, thread, nullptr, static_cast<unsigned long>(signal));
  }

  // Handles threads that have stopped or ended.
  void serve() {
    for (;;) {
      int status = 0;
      const pid_t thread = ::waitpid(-1, &status, __WALL | WNOHANG);
      if (thread <= 0) return;
      if (const auto stranger = strangers_.find(thread); stranger != strangers_.end()) {
        // Pass on the signal for which the thread has stopped, unless the tracer caused the stop.
        const int signal = WIFSTOPPED(status) && status >> 16 == 0 ? WSTOPSIG(status) : 0;
        (void)::ptrace(PTRACE_DETACH, thread, nullptr, static_cast<unsigned long>(signal));
        strangers_.erase(stranger);
      } else if (WIFSTOPPED(status)) {
        stopped(thread, WSTOPSIG(status), status >> 16);
      } else {
        std::replace(threads_.begin(), threads_.end(), thread, 0);
      }
    }
  }

  void stopped(pid_t thread, int signal, int event) {
    const bool stops = signal == SIGSTOP || signal == SIGTSTP || signal == SIGTTIN || signal == SIGTTOU;
    if (std::find(threads_.begin(), threads_.end(), thread) != threads_.end()) return;  // the thread stays stopped
    if (signal == SIGSTOP && (event == 0 || event == PTRACE_EVENT_STOP)) {
      if (const std::size_t* chain = wanted(thread); chain != nullptr) {
        take(*chain, thread, event == PTRACE_EVENT_STOP);
        return;
      }
    }
    if (event == PTRACE_EVENT_STOP && stops) {
      (void)::ptrace(static_cast<__ptrace_request>(PTRACE_LISTEN), thread, nullptr,
                     nullptr);  // its process is stopped and remains so
      return;
    }
    resume(thread, event == 0 ? signal : 0);
  }

  void take(std::size_t chain, pid_t thread, bool with_process) {
    seen_[chain] = true;
    const bool over = __atomic_load_n(&shared_->released[chain], __ATOMIC_ACQUIRE) != 0;
    if (with_process) {
      // The signal has stopped all threads of the process. Keep this thread stopped, and let the others continue.
      if (!over) threads_[chain] = thread;
      // The signal has stopped the process in either case, so let it continue even if the hold is already over.
      const auto process = static_cast<pid_t>(chains_[chain].pid);
      if (is_thread_of(process, thread)) ::kill(process, SIGCONT);
      if (over) resume(thread, 0);
    } else {
      // The thread has stopped because it is about to receive the signal. Discard the signal, and move the thread to a
      // stop without a signal, which ends when the tracer ends.
      if (!over) {
        (void)::ptrace(static_cast<__ptrace_request>(PTRACE_INTERRUPT), thread, nullptr, nullptr);
        threads_[chain] = thread;
      }
      resume(thread, 0);
    }
    __atomic_store_n(&shared_->held[chain], static_cast<std::uint32_t>(with_process ? Hold::stopped : Hold::alone),
                     __ATOMIC_RELEASE);
  }

  const rose_chain* chains_;
  const std::vector<std::size_t>& which_;
  Shared* shared_;
  std::vector<pid_t>& threads_;  // by chain: threads that are held; 0: none
  std::set<pid_t> strangers_;    // seized by mistake, to be detached when they have stopped
  std::vector<bool> seen_ = std::vector<bool>(ROSE_MAX_CHAINS);
};

}  // namespace

Result<std::unique_ptr<Holder>> Holder::start(const rose_chain* chains, std::vector<std::size_t> which) {
  std::unique_ptr<Holder> holder(new Holder);
  holder->shared_size_ = sizeof(Shared);
  void* shared = ::mmap(nullptr, holder->shared_size_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (shared == MAP_FAILED)
    return fail_errno(ErrorKind::environment, "no memory for the tracer that holds threads", errno);
  holder->shared_ = static_cast<Shared*>(shared);
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
    return fail_errno(ErrorKind::environment, "no socket for the tracer that holds threads", errno);
  holder->socket_ = Fd(ends[0]);
  const Fd theirs(ends[1]);
  std::vector<pid_t> threads(ROSE_MAX_CHAINS);
  Tracer<Shared> tracer(chains, which, holder->shared_, threads);
  // Block all signals in the child: Ctrl-C is for rose, which ends the tracer at the right time.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  const pid_t pid = ::fork();
  if (pid == 0) {
    // Close inherited descriptors, because a listener that stays open after rose has ended would make its node hang.
    if (::dup2(theirs.get(), kSocket) != kSocket || ::syscall(SYS_close_range, kSocket + 1, ~0U, 0) != 0) ::_exit(1);
    ::prctl(PR_SET_NAME, "rose-holder");
    struct sigaction usual{};
    usual.sa_handler = SIG_DFL;
    ::sigaction(SIGCHLD, &usual, nullptr);
    tracer.template run<Command>();
  }
  const int err = errno;
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (pid < 0) return fail_errno(ErrorKind::environment, "cannot start the tracer that holds threads", err);
  holder->pid_ = pid;
  return holder;
}

// Returns the tracer's answer; -EPIPE if the tracer has ended.
int Holder::ask(const Command& command, int pidfd) {
  const std::lock_guard lock(mutex_);
  int answer = 0;
  iovec data{const_cast<Command*>(&command), sizeof command};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr message{};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  if (pidfd >= 0) {
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    cmsghdr* const header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof(int));
    std::memcpy(CMSG_DATA(header), &pidfd, sizeof pidfd);
  }
  if (!socket_ || ::sendmsg(socket_.get(), &message, MSG_NOSIGNAL) != static_cast<ssize_t>(sizeof command))
    return -EPIPE;
  ssize_t got = 0;
  do {
    got = ::recv(socket_.get(), &answer, sizeof answer, 0);
  } while (got < 0 && errno == EINTR);
  return got == static_cast<ssize_t>(sizeof answer) ? answer : -EPIPE;
}

void Holder::watch(pid_t process, int pidfd) {
  const int threads = ask({What::watch, 0, process, 0}, pidfd);
  log::debug("{} threads of process {} can be held", threads, process);
}

Result<void> Holder::hold(std::size_t chain, pid_t process, int pidfd, pid_t thread) {
  const int err = ask({What::hold, static_cast<std::uint32_t>(chain), process, thread}, pidfd);
  if (err >= 0) return {};
  if (err == -EPIPE) (void)kernel::pidfd_signal(pidfd, SIGCONT);
  return fail(ErrorKind::environment, fmt::format("thread {} cannot be held: {}", thread,
                                                  err == -EPIPE ? "rose-holder has ended" : std::strerror(-err)));
}

Hold Holder::held(std::size_t chain) const {
  return static_cast<Hold>(__atomic_load_n(&shared_->held[chain], __ATOMIC_ACQUIRE));
}

void Holder::release(std::size_t chain) { (void)ask({What::release, static_cast<std::uint32_t>(chain), 0, 0}); }

void Holder::stop() {
  {
    const std::lock_guard lock(mutex_);
    socket_.reset();
  }
  if (pid_ > 0) {
    int status = 0;
    while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
    }
    pid_ = 0;
  }
}

Holder::~Holder() {
  stop();
  if (shared_ != nullptr) ::munmap(shared_, shared_size_);
}

}  // namespace rose::inject
