// Victims in their own cgroups, and functions that find what a tracer recorded about them.
#pragma once

#include <bpf/bpf.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <chrono>
#include <cstddef>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/fd.h"
#include "bpf/tracer.h"
#include "eventually.h"
#include "folder.h"
#include "kernel/syscalls.h"
#include "observe/tracer.h"
#include "skel/tracer.skel.h"

namespace rose::observe::test {

using namespace std::chrono_literals;

using rose::test::eventually;
using rose::test::Folder;

inline std::filesystem::path cgroup_root() {
  std::ifstream mounts("/proc/self/mounts");
  std::string device, point, type, rest;
  while (mounts >> device >> point >> type && std::getline(mounts, rest)) {
    if (type == "cgroup2") return point;
  }
  return {};
}

// A cgroup. At the end, its processes are killed and it is removed.
class TestCgroup {
 public:
  explicit TestCgroup(const std::string& name)
      : path_(cgroup_root() / ("rose-observe-" + name + "-" + std::to_string(::getpid()))) {
    std::filesystem::create_directory(path_);
  }
  ~TestCgroup() {
    write("cgroup.freeze", "0");
    write("cgroup.kill", "1");
    (void)eventually([&] { return ::rmdir(path_.c_str()) == 0 || errno == ENOENT; });
  }
  TestCgroup(const TestCgroup&) = delete;
  TestCgroup& operator=(const TestCgroup&) = delete;
  void write(const char* file, const char* text) const { std::ofstream(path_ / file) << text; }
  [[nodiscard]] const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

// trace_victim (or another program) in a cgroup, where it waits for "go". At the end, it is killed and reaped if it
// still exists.
class Victim {
 public:
  explicit Victim(const TestCgroup* cgroup, std::vector<std::string> args,
                  const std::string& program = "trace_victim") {
    int in[2], out[2];
    REQUIRE(::pipe2(in, O_CLOEXEC) == 0);
    REQUIRE(::pipe2(out, O_CLOEXEC) == 0);
    args.insert(args.begin(), ROSE_PROGRAMS_DIR "/" + program);
    std::vector<char*> argv;
    for (auto& arg : args) argv.push_back(arg.data());
    argv.push_back(nullptr);
    std::string procs = cgroup != nullptr ? (cgroup->path() / "cgroup.procs").string() : std::string();
    pid_ = ::fork();
    REQUIRE(pid_ >= 0);
    if (pid_ == 0) {
      if (!procs.empty()) {
        const int fd = ::open(procs.c_str(), O_WRONLY | O_CLOEXEC);
        if (fd < 0 || ::write(fd, "0", 1) != 1) ::_exit(126);
      }
      ::dup2(in[0], 0);
      ::dup2(out[1], 1);
      ::execv(argv[0], argv.data());
      ::_exit(127);
    }
    ::close(in[0]);
    ::close(out[1]);
    in_ = Fd(in[1]);
    out_ = Fd(out[0]);
  }
  ~Victim() {
    if (!waited_) {
      ::kill(pid_, SIGKILL);
      (void)wait();
    }
  }
  Victim(const Victim&) = delete;
  Victim& operator=(const Victim&) = delete;

  void go() { send("go"); }
  void send(std::string_view bytes) {
    REQUIRE(::write(in_.get(), bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size()));
  }
  void end_input() { in_.reset(); }
  [[nodiscard]] pid_t pid() const { return pid_; }
  // Waits until the process ends, and returns its wait status.
  int wait() {
    int status = 0;
    ::waitpid(pid_, &status, 0);
    waited_ = true;
    return status;
  }
  int run() {
    go();
    return wait();
  }
  // Reads the next lines of the output up to a line "NAME NUMBER", and returns the number.
  int number(const std::string& name) {
    for (;;) {
      const auto end = text_.find('\n');
      if (end != std::string::npos) {
        const std::string line = text_.substr(0, end);
        text_.erase(0, end + 1);
        if (line.starts_with(name + " ")) return std::stoi(line.substr(name.size() + 1));
        continue;
      }
      pollfd wait{out_.get(), POLLIN, 0};
      if (::poll(&wait, 1, 300'000) != 1) return -1;
      char bytes[256];
      const ssize_t n = ::read(out_.get(), bytes, sizeof bytes);
      if (n <= 0) return -1;
      text_.append(bytes, static_cast<std::size_t>(n));
    }
  }
  // Returns the rest of the output.
  std::string rest() {
    pollfd wait{out_.get(), POLLIN, 0};
    while (::poll(&wait, 1, 300'000) == 1) {
      char bytes[4096];
      const ssize_t n = ::read(out_.get(), bytes, sizeof bytes);
      if (n <= 0) break;
      text_.append(bytes, static_cast<std::size_t>(n));
    }
    return std::exchange(text_, {});
  }

 private:
  pid_t pid_ = -1;
  bool waited_ = false;
  Fd in_, out_;
  std::string text_;
};

inline Target target(const std::string& node, const TestCgroup& cgroup) {
  Target out;
  out.node = node;
  out.cgroups = {cgroup.path()};
  return out;
}

// A target in which these functions of trace_victim are watched.
inline Target watched(const std::string& node, const TestCgroup& cgroup, std::vector<std::string> functions) {
  Target out = target(node, cgroup);
  out.binaries = {ROSE_PROGRAMS_DIR "/trace_victim"};
  out.functions = std::move(functions);
  return out;
}

inline std::unique_ptr<Tracer> start(const std::vector<Target>& targets, const TracerOptions& options = {}) {
  auto tracer = Tracer::start(options, targets);
  if (!tracer) FAIL(tracer.error().message + " (" + tracer.error().hint + ")");
  return std::move(*tracer);
}

inline trace::Trace snapshot(Tracer& tracer) {
  auto trace = tracer.snapshot();
  if (!trace) FAIL(trace.error().message);
  return std::move(*trace);
}

// Fills the ring of this process's only tracer as far as possible. Until the tracer reads the ring again, the kernel
// finds no space in it.
class FullRing {
 public:
  FullRing() {
    const Fd ring(own_map("rose_ring", bytes_));
    REQUIRE(ring);
    consumer_ = static_cast<std::uint64_t*>(::mmap(nullptr, kPage, PROT_READ | PROT_WRITE, MAP_SHARED, ring.get(), 0));
    producer_ = static_cast<const std::uint64_t*>(::mmap(nullptr, kPage, PROT_READ, MAP_SHARED, ring.get(), kPage));
    REQUIRE(consumer_ != MAP_FAILED);
    REQUIRE(producer_ != MAP_FAILED);
    std::uint32_t entries = 0;
    counts_ = own_map("rose_tra.bss", entries);
    REQUIRE(counts_);
  }
  FullRing(const FullRing&) = delete;
  FullRing& operator=(const FullRing&) = delete;
  ~FullRing() {
    ::munmap(consumer_, kPage);
    ::munmap(const_cast<std::uint64_t*>(producer_), kPage);
  }
  void fill() const {
    std::atomic_ref<std::uint64_t>(*consumer_).store(__atomic_load_n(producer_, __ATOMIC_ACQUIRE) - bytes_);
  }
  [[nodiscard]] rose_missed missed() const {
    bpf_map_info info{};
    std::uint32_t length = sizeof info, key = 0;
    REQUIRE(bpf_obj_get_info_by_fd(counts_.get(), &info, &length) == 0);
    std::vector<std::byte> value(info.value_size);
    REQUIRE(bpf_map_lookup_elem(counts_.get(), &key, value.data()) == 0);
    rose_missed missed{};
    constexpr std::size_t kAt = offsetof(std::remove_pointer_t<decltype(rose_tracer::bss)>, rose_missed);
    REQUIRE(value.size() >= kAt + sizeof missed);
    std::memcpy(&missed, value.data() + kAt, sizeof missed);
    return missed;
  }

 private:
  static constexpr std::size_t kPage = 4096;
  static Fd own_map(std::string_view name, std::uint32_t& entries) {
    for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
      const int fd = std::stoi(entry.path().filename());
      bpf_map_info info{};
      std::uint32_t length = sizeof info;
      std::error_code error;
      if (std::filesystem::read_symlink(entry.path(), error) != "anon_inode:bpf-map") continue;
      if (bpf_obj_get_info_by_fd(fd, &info, &length) != 0 || info.name != name) continue;
      entries = info.max_entries;
      return Fd(::fcntl(fd, F_DUPFD_CLOEXEC, 0));
    }
    return Fd();
  }
  std::uint32_t bytes_ = 0;
  std::uint64_t* consumer_ = nullptr;
  const std::uint64_t* producer_ = nullptr;
  Fd counts_;
};

// The event to find. Empty and negative fields match anything.
struct Want {
  trace::EventType type = trace::EventType::scf;
  std::string syscall = {};
  std::string error = {};
  std::string path = {};
  std::string path2 = {};
  std::string peer = {};
  pid_t pid = 0;
};

inline std::vector<trace::Event> find(const trace::Trace& trace, const Want& want) {
  std::vector<trace::Event> found;
  for (const auto& event : trace.events) {
    if (event.type != want.type) continue;
    if (!want.syscall.empty() && kernel::syscall_name(event.syscall) != want.syscall) continue;
    if (!want.error.empty() && kernel::errno_name(event.err) != want.error) continue;
    if (!want.path.empty() && trace.str(event.path) != want.path) continue;
    if (!want.path2.empty() && trace.str(event.path2) != want.path2) continue;
    if (!want.peer.empty() && trace.str(event.peer) != want.peer) continue;
    if (want.pid != 0 && event.pid != want.pid) continue;
    found.push_back(event);
  }
  return found;
}

inline std::vector<trace::Event> processes(const trace::Trace& trace, pid_t pid, trace::ProcessState state) {
  std::vector<trace::Event> found;
  for (const auto& event : trace.events) {
    if (event.type == trace::EventType::ps && event.pid == pid && event.state == state) found.push_back(event);
  }
  return found;
}

inline bool is_open(const trace::Event& event) { return (event.flags & trace::kOpen) != 0; }

// Describes the trace, for messages of failed checks.
inline std::string describe(const trace::Trace& trace) {
  std::string out;
  for (const auto& e : trace.events) {
    if (out.size() > 20000) break;
    out += std::string(trace::type_name(e.type)) + " " + (e.syscall >= 0 ? kernel::syscall_name(e.syscall) : "") + " " +
           (e.err != 0 ? kernel::errno_name(e.err) : "") + " fd=" + std::to_string(e.fd) +
           " path=" + std::string(trace.str(e.path).substr(0, 200)) + " path2=" + std::string(trace.str(e.path2)) +
           " peer=" + std::string(trace.str(e.peer)) + " pid=" + std::to_string(e.pid) +
           " state=" + std::string(trace::state_name(e.state)) + " ms=" + std::to_string(e.duration_ms) + " " +
           std::string(trace.str(e.src)) + ":" + std::to_string(e.sport) + ">" + std::string(trace.str(e.dst)) + ":" +
           std::to_string(e.dport) + " " + std::string(trace.str(e.function)) + "\n";
  }
  return out;
}

}  // namespace rose::observe::test
