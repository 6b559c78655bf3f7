// A victim that executes its arguments, one step each, and prints the result of each: "<step> = <result>", with the
// name of errno for failures. It makes raw system calls where libc might use other ones.
//
//   create F | append F | openr F | openat D F   open a file, whose descriptor becomes the current one
//   dup | close | read N | write TEXT | pwrite TEXT OFF | writev A B | fsync | fdatasync | ftruncate N
//   rename A B | unlink F | mkdir D | chdir D
//   repeat N STEP...;      the steps up to ";" N times
//   threads N M STEP...;   N threads, each does the steps M times with its own current descriptor
//   fork STEP...;          a child does the steps, then exits; the parent waits
//   interrupted N again|eintr
//                          a pipe read that N signals interrupt before its byte comes, with or without SA_RESTART
//   sleep MS | print TEXT | time (seconds since 1970) | exit N | gate F (until file F exists)
//   call                   enters step_function
//   server PORT            TCP accept loop: answers each byte with it (in the background)
//   udp PORT               UDP echo (in the background); server6 and udp6: on IPv6 addresses
//   use N                  writes to N MiB of fresh memory and keeps them
//   spin                   never ends
//   cold F                 opens F, whose name is in memory that was not accessed yet
//   unix F | uconnect F    listens at a socket in the file system, or connects to it
//   connect6 PORT          to ::1
//   udgram F TEXT          sends a datagram to its own socket at F, and prints what arrived and from which address
//   fchmod OCTAL
//   connect HOST PORT | listen PORT | accept | send TEXT | recv N
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <string>
#include <thread>
#include <vector>

using Steps = std::vector<std::string>;

#ifdef __x86_64__
// This function is written in assembly, so that its first instruction is 10 bytes long, whatever the compiler adds to
// other functions.
asm(".text\n.globl probed_function\n.type probed_function, @function\nprobed_function:\n"
    "movabs $0x1122334455667788, %rax\nret\n.size probed_function, .-probed_function\n");
#else
asm(".text\n.globl probed_function\n.type probed_function, @function\nprobed_function:\n"
    "mov x0, #7\nmov x1, #7\nmov x2, #7\nret\n.size probed_function, .-probed_function\n");
// System calls that this processor does not have.
constexpr long SYS_rename = -1, SYS_unlink = -1, SYS_mkdir = -1;
#endif

// step_middle is an address inside the function, at which a test puts a probe. It lies between the function's two
// prints.
extern "C" void step_middle();
extern "C" __attribute__((noinline)) void step_function(int fd, int n) {
  char text[32];
  int size = std::snprintf(text, sizeof text, "a%d\n", n);
  ::syscall(SYS_write, fd, text, size);
  asm volatile(".globl step_middle\n.type step_middle, @function\nstep_middle:\n" ::: "memory");
  text[0] = 'b';
  ::syscall(SYS_write, fd, text, size);
}

namespace {

void print_result(const std::string& step, long result) {
  std::string line = step + " = ";
  line += result < 0 ? strerrorname_np(errno) : std::to_string(result);
  line += '\n';
  // Write each line by one call, to a file that is open for appending, so that lines of different threads do not mix.
  ::syscall(SYS_write, 1, line.data(), line.size());
}

// Returns a socket of the family, bound to all addresses.
int bound(int family, int type, int port) {
  const int server = ::socket(family, type | SOCK_CLOEXEC, 0);
  const int one = 1;
  ::setsockopt(server, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
  ::setsockopt(server, IPPROTO_IPV6, IPV6_V6ONLY, &one, sizeof one);
  sockaddr_in6 address{};
  address.sin6_family = static_cast<sa_family_t>(family);
  address.sin6_port = htons(static_cast<std::uint16_t>(port));  // at the same offset as in sockaddr_in
  const socklen_t size = family == AF_INET ? sizeof(sockaddr_in) : sizeof address;
  if (::bind(server, reinterpret_cast<sockaddr*>(&address), size) == 0) return server;
  print_result("server", -1);
  std::exit(1);
}

void echo_tcp(int family, int port) {
  const int server = bound(family, SOCK_STREAM, port);
  if (::listen(server, 64) != 0) {
    print_result("server", -1);
    std::exit(1);
  }
  std::thread([server] {
    for (;;) {
      const int peer = ::accept(server, nullptr, nullptr);
      if (peer < 0) continue;
      std::thread([peer] {
        char byte;
        while (::recv(peer, &byte, 1, 0) == 1) ::send(peer, &byte, 1, MSG_NOSIGNAL);
        ::close(peer);
      }).detach();
    }
  }).detach();
}

void echo_udp(int family, int port) {
  const int server = bound(family, SOCK_DGRAM, port);
  std::thread([server] {
    for (;;) {
      char data[64];
      sockaddr_in6 from{};
      socklen_t size = sizeof from;
      const auto got = ::recvfrom(server, data, sizeof data, 0, reinterpret_cast<sockaddr*>(&from), &size);
      if (got > 0) ::sendto(server, data, static_cast<std::size_t>(got), 0, reinterpret_cast<sockaddr*>(&from), size);
    }
  }).detach();
}

// Reads the steps of a block, up to the ";" that closes it.
Steps block(const Steps& steps, std::size_t& at) {
  Steps inner;
  int depth = 0;
  for (; at < steps.size(); ++at) {
    const auto& word = steps[at];
    if (word == "repeat" || word == "threads" || word == "fork") ++depth;
    if (word == ";" && depth-- == 0) break;
    inner.push_back(word);
  }
  ++at;
  return inner;
}

void run(const Steps& steps, int fd) {
  std::size_t at = 0;
  const auto next = [&]() -> const std::string& {
    if (at >= steps.size()) {
      std::fprintf(stderr, "step wants more words\n");
      std::exit(99);
    }
    return steps[at++];
  };
  const auto number = [&] { return std::atol(next().c_str()); };
  while (at < steps.size()) {
    const std::string step = next();
    if (step == "create" || step == "append" || step == "openr") {
      const auto& path = next();
      const int flags = step == "create"   ? O_RDWR | O_CREAT | O_TRUNC
                        : step == "append" ? O_WRONLY | O_CREAT | O_APPEND
                                           : O_RDONLY;
      const long got = ::syscall(SYS_openat, AT_FDCWD, path.c_str(), flags, 0644);
      print_result(step + " " + path, got < 0 ? -1 : 0);
      if (got >= 0) fd = static_cast<int>(got);
    } else if (step == "openat") {
      const auto& folder = next();
      const auto& path = next();
      const int dir = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY);
      const long got = ::syscall(SYS_openat, dir, path.c_str(), O_RDWR | O_CREAT, 0644);
      print_result("openat " + path, got < 0 ? -1 : 0);
      ::close(dir);
      if (got >= 0) fd = static_cast<int>(got);
    } else if (step == "cold") {
      const auto& path = next();
      const int names = ::open("names", O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
      [[maybe_unused]] const auto put = ::write(names, path.c_str(), path.size() + 1);
      void* page = ::mmap(nullptr, 4096, PROT_READ, MAP_PRIVATE, names, 0);
      ::close(names);
      ::madvise(page, 4096, MADV_RANDOM);
      const long got = ::syscall(SYS_openat, AT_FDCWD, page, O_RDWR | O_CREAT, 0644);
      print_result("cold " + path, got < 0 ? -1 : 0);
      if (got >= 0) fd = static_cast<int>(got);
    } else if (step == "unix" || step == "uconnect") {
      sockaddr_un address{};
      address.sun_family = AF_UNIX;
      std::strncpy(address.sun_path, next().c_str(), sizeof address.sun_path - 1);
      fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
      if (step == "uconnect") {
        print_result(step, ::syscall(SYS_connect, fd, &address, sizeof address));
      } else {
        const int bound = ::bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof address);
        print_result(step, bound < 0 ? -1 : ::listen(fd, 16));
      }
    } else if (step == "udgram") {
      sockaddr_un address{};
      address.sun_family = AF_UNIX;
      std::strncpy(address.sun_path, next().c_str(), sizeof address.sun_path - 1);
      const auto& text = next();
      const int receiver = ::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
      const int sender = ::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
      const int on = 1;
      ::setsockopt(receiver, SOL_SOCKET, SO_PASSCRED, &on, sizeof on);
      ::unlink(address.sun_path);
      ::bind(receiver, reinterpret_cast<sockaddr*>(&address), sizeof address);
      print_result(step, ::syscall(SYS_sendto, sender, text.data(), text.size(), 0, &address, sizeof address));
      char data[64];
      iovec part{data, sizeof data};
      alignas(cmsghdr) char room[CMSG_SPACE(sizeof(ucred))]{};
      msghdr message{};
      message.msg_iov = &part;
      message.msg_iovlen = 1;
      message.msg_control = room;
      message.msg_controllen = sizeof room;
      const auto got = ::recvmsg(receiver, &message, MSG_DONTWAIT);
      ucred from{};
      for (cmsghdr* head = CMSG_FIRSTHDR(&message); head != nullptr; head = CMSG_NXTHDR(&message, head))
        if (head->cmsg_type == SCM_CREDENTIALS) std::memcpy(&from, CMSG_DATA(head), sizeof from);
      const bool itself = from.pid == ::getpid() && from.uid == ::getuid() && from.gid == ::getgid();
      print_result("arrived " + std::string(data, got > 0 ? static_cast<std::size_t>(got) : 0) +
                       (itself ? " from itself" : " from another"),
                   got);
      ::close(receiver);
      ::close(sender);
    } else if (step == "connect6") {
      sockaddr_in6 address{};
      address.sin6_family = AF_INET6;
      address.sin6_port = htons(static_cast<std::uint16_t>(number()));
      address.sin6_addr = in6addr_loopback;
      fd = ::socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
      print_result(step, ::syscall(SYS_connect, fd, &address, sizeof address));
    } else if (step == "dup") {
      fd = ::dup(fd);
      print_result(step, fd < 0 ? -1 : 0);
    } else if (step == "close") {
      print_result(step, ::syscall(SYS_close, fd));
    } else if (step == "read") {
      std::string data(static_cast<std::size_t>(number()), '\0');
      print_result(step, ::syscall(SYS_read, fd, data.data(), data.size()));
    } else if (step == "write") {
      const auto& text = next();
      print_result(step, ::syscall(SYS_write, fd, text.data(), text.size()));
    } else if (step == "pwrite") {
      const auto& text = next();
      const long offset = number();
      print_result(step, ::syscall(SYS_pwrite64, fd, text.data(), text.size(), offset));
    } else if (step == "writev") {
      const auto& a = next();
      const auto& b = next();
      iovec parts[2] = {{const_cast<char*>(a.data()), a.size()}, {const_cast<char*>(b.data()), b.size()}};
      print_result(step, ::syscall(SYS_writev, fd, parts, 2));
    } else if (step == "fsync") {
      print_result(step, ::syscall(SYS_fsync, fd));
    } else if (step == "fdatasync") {
      print_result(step, ::syscall(SYS_fdatasync, fd));
    } else if (step == "ftruncate") {
      print_result(step, ::syscall(SYS_ftruncate, fd, number()));
    } else if (step == "fchmod") {
      print_result(step, ::syscall(SYS_fchmod, fd, std::strtol(next().c_str(), nullptr, 8)));
    } else if (step == "rename") {
      const auto& from = next();
      const auto& to = next();
      print_result(step + " " + to, ::syscall(SYS_rename, from.c_str(), to.c_str()));
    } else if (step == "unlink") {
      const auto& path = next();
      print_result(step + " " + path, ::syscall(SYS_unlink, path.c_str()));
    } else if (step == "mkdir") {
      const auto& path = next();
      print_result(step + " " + path, ::syscall(SYS_mkdir, path.c_str(), 0755));
    } else if (step == "chdir") {
      print_result(step, ::chdir(next().c_str()));
    } else if (step == "repeat") {
      const long times = number();
      const auto inner = block(steps, at);
      for (long i = 0; i < times; ++i) run(inner, fd);
    } else if (step == "threads") {
      const long count = number();
      const long times = number();
      const auto inner = block(steps, at);
      std::vector<std::thread> threads;
      for (long i = 0; i < count; ++i) {
        threads.emplace_back([&inner, times, fd] {
          for (long k = 0; k < times; ++k) run(inner, fd);
        });
      }
      for (auto& thread : threads) thread.join();
    } else if (step == "fork") {
      const auto inner = block(steps, at);
      const pid_t child = ::fork();
      if (child == 0) {
        run(inner, fd);
        ::_exit(0);
      }
      ::waitpid(child, nullptr, 0);
    } else if (step == "interrupted") {
      const long signals = number();
      struct sigaction action{};
      action.sa_handler = [](int) {};
      action.sa_flags = next() == "again" ? SA_RESTART : 0;
      ::sigaction(SIGUSR1, &action, nullptr);
      int ends[2];
      if (::pipe(ends) != 0) std::exit(97);
      const auto reader = ::pthread_self();
      const long tid = ::syscall(SYS_gettid);
      std::thread writer([=] {
        const std::string wchan = "/proc/self/task/" + std::to_string(tid) + "/stat";
        for (long i = 0; i < signals; ++i) {
          // Only a thread that sleeps in the read can be interrupted, so wait until it sleeps.
          for (int calm = 0; calm < 20;) {
            char text[512] = {};
            const int stat = ::open(wchan.c_str(), O_RDONLY);
            const auto got = ::pread(stat, text, sizeof text - 1, 0);
            ::close(stat);
            const char* state = got > 0 ? std::strrchr(text, ')') : nullptr;
            calm = state != nullptr && state[2] == 'S' ? calm + 1 : 0;
            ::usleep(500);
          }
          ::pthread_kill(reader, SIGUSR1);
        }
        ::usleep(5000);
        [[maybe_unused]] const auto put = ::write(ends[1], "x", 1);
      });
      char byte;
      long got = ::syscall(SYS_read, ends[0], &byte, 1);
      while (got < 0 && errno == EINTR) {
        print_result("read", got);
        got = ::syscall(SYS_read, ends[0], &byte, 1);
      }
      print_result("read", got);
      writer.join();
      ::close(ends[0]);
      ::close(ends[1]);
    } else if (step == "sleep") {
      ::usleep(static_cast<useconds_t>(number() * 1000));
    } else if (step == "print") {
      const std::string line = next() + "\n";
      ::syscall(SYS_write, 1, line.data(), line.size());
    } else if (step == "time") {
      const std::string line = "time " + std::to_string(std::time(nullptr)) + "\n";
      ::syscall(SYS_write, 1, line.data(), line.size());
    } else if (step == "exit") {
      ::_exit(static_cast<int>(number()));
    } else if (step == "gate") {
      const auto& path = next();
      while (::access(path.c_str(), F_OK) != 0) ::usleep(1000);
    } else if (step == "use") {
      const long mib = number();
      char* memory = static_cast<char*>(std::malloc(static_cast<std::size_t>(mib) << 20));
      for (long page = 0; page < mib * 256; ++page) *const_cast<volatile char*>(memory + page * 4096) = 1;
      print_result(step, 0);
    } else if (step == "spin") {
      for (;;) asm volatile("");
    } else if (step == "call") {
      static int calls = 0;
      step_function(fd, ++calls);
    } else if (step == "server" || step == "server6") {
      echo_tcp(step == "server" ? AF_INET : AF_INET6, static_cast<int>(number()));
    } else if (step == "udp" || step == "udp6") {
      echo_udp(step == "udp" ? AF_INET : AF_INET6, static_cast<int>(number()));
    } else if (step == "connect") {
      const auto& host = next();
      const long port = number();
      fd = ::socket(AF_INET, SOCK_STREAM, 0);
      sockaddr_in address{};
      address.sin_family = AF_INET;
      address.sin_port = htons(static_cast<std::uint16_t>(port));
      ::inet_pton(AF_INET, host.c_str(), &address.sin_addr);
      print_result(step, ::syscall(SYS_connect, fd, &address, sizeof address));
    } else if (step == "accept") {
      const long got = ::syscall(SYS_accept4, fd, nullptr, nullptr, 0);
      print_result(step, got < 0 ? -1 : 0);
      if (got >= 0) fd = static_cast<int>(got);
    } else if (step == "listen") {
      const long port = number();
      fd = ::socket(AF_INET, SOCK_STREAM, 0);
      const int one = 1;
      ::setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
      sockaddr_in address{};
      address.sin_family = AF_INET;
      address.sin_port = htons(static_cast<std::uint16_t>(port));
      const int bound = ::bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof address);
      print_result(step, bound < 0 ? -1 : ::listen(fd, 16));
    } else if (step == "send") {
      const auto& text = next();
      print_result(step, ::syscall(SYS_sendto, fd, text.data(), text.size(), MSG_NOSIGNAL, nullptr, 0));
    } else if (step == "recv") {
      std::string data(static_cast<std::size_t>(number()), '\0');
      print_result(step, ::syscall(SYS_recvfrom, fd, data.data(), data.size(), 0, nullptr, nullptr));
    } else {
      std::fprintf(stderr, "unknown step '%s'\n", step.c_str());
      std::exit(98);
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  run(Steps(argv + 1, argv + argc), -1);
  return 0;
}
