#include <catch2/catch.hpp>

#include <bpf/bpf.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <set>

#include "base/clock.h"
#include "environment.h"
#include "kernel/probe.h"

namespace fs = std::filesystem;
using rose::kernel::Capability;
using rose::test::Environment;

namespace {

const Capability& named(const std::vector<Capability>& all, const std::string& name) {
  const auto found = std::find_if(all.begin(), all.end(), [&](const Capability& c) { return c.name == name; });
  REQUIRE(found != all.end());
  return *found;
}

std::set<std::string> descriptors() {
  std::set<std::string> open;
  for (const auto& entry : fs::directory_iterator("/proc/self/fd")) {
    std::error_code ignored;
    open.insert(entry.path().filename().native() + " " + fs::read_symlink(entry.path(), ignored).native());
  }
  return open;
}

bool has_children() { return ::waitpid(-1, nullptr, WNOHANG) != -1 || errno != ECHILD; }

// The BPF programs and cgroups that have the names of those of probes. They may belong to another rose that probes at
// the same time.
std::set<std::string> probe_objects() {
  std::set<std::string> found;
  __u32 id = 0;
  while (bpf_prog_get_next_id(id, &id) == 0) {
    const int fd = bpf_prog_get_fd_by_id(id);
    if (fd < 0) continue;
    bpf_prog_info info = {};
    __u32 size = sizeof info;
    if (bpf_obj_get_info_by_fd(fd, &info, &size) == 0 && std::strcmp(info.name, "rose_probe") == 0) {
      found.insert("program " + std::to_string(id));
    }
    ::close(fd);
  }
  std::error_code gone;
  for (fs::recursive_directory_iterator at("/sys/fs/cgroup", fs::directory_options::skip_permission_denied, gone), end;
       !gone && at != end; at.increment(gone)) {
    if (at->path().filename().native().starts_with("rose-probe-")) found.insert(at->path().native());
  }
  return found;
}

}  // namespace

TEST_CASE("every capability is probed quickly and leaves nothing behind") {
  (void)rose::kernel::probe("memory_lock");  // libbpf opens descriptors here that it keeps
  const auto before = descriptors();
  const std::int64_t begin = rose::monotonic_ns();
  const std::vector<Capability> all = rose::kernel::probe_all();
  const std::int64_t took_ms = (rose::monotonic_ns() - begin) / 1'000'000;
  // probe_all takes 0.6 s on an idle machine; the limit detects a wait for something that never happens
  CHECK(took_ms < 60'000);
  WARN("probe_all took " << took_ms << " ms");

  CHECK(all.size() == rose::kernel::probe_names().size());
  std::set<std::string> names;
  for (const Capability& c : all) {
    CAPTURE(c.name, c.detail, c.remedy);
    CHECK(names.insert(c.name).second);
    CHECK(c.name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_") == std::string::npos);
    CHECK_FALSE(c.detail.empty());
    CHECK(c.remedy.empty() == c.ok);
    if (c.required) CHECK(c.ok);
  }
  CHECK(descriptors() == before);
  CHECK_FALSE(has_children());
  // All objects that exist now must disappear: the kernel frees our own shortly after their last descriptor was closed,
  // and objects of other probing programs disappear when those programs are done.
  std::set<std::string> left = probe_objects();
  const std::int64_t end = rose::monotonic_ns() + 60'000'000'000;
  while (!left.empty() && rose::monotonic_ns() < end) {
    ::usleep(10'000);
    const std::set<std::string> now = probe_objects();
    std::erase_if(left, [&now](const std::string& one) { return !now.contains(one); });
  }
  CHECK(left.empty());
}

TEST_CASE("probes agree with what the machine shows") {
  const auto all = rose::kernel::probe_all();
  CHECK(named(all, "root").ok == (::geteuid() == 0));
  CHECK(named(all, "kernel_btf").ok == fs::exists("/sys/kernel/btf/vmlinux"));
  const bool kprobes = fs::exists("/sys/bus/event_source/devices/kprobe/type");
  if (!kprobes) {
    CHECK_FALSE(named(all, "kprobe").ok);
    CHECK_FALSE(named(all, "override_return").ok);
    CHECK(named(all, "kprobe").detail.find("no 'kprobe' perf events") != std::string::npos);
    CHECK(named(all, "kprobe").remedy.find("CONFIG_KPROBES") != std::string::npos);
  }
  if (!named(all, "override_return").ok) {
    CHECK(named(all, "override_return").detail.find("seccomp backend") != std::string::npos);
  }
  const Capability& cgroup = named(all, "cgroup2");
  if (cgroup.ok) {
    const std::string path = cgroup.detail.substr(0, cgroup.detail.find_first_of(" ;"));
    CHECK(fs::exists(fs::path(path) / "cgroup.procs"));
  }
}

TEST_CASE("each probe can be masked") {
  CHECK_FALSE(rose::kernel::masked("tcx"));
  const Environment mask("ROSE_MASK", "tcx,uprobe_multi");
  CHECK(rose::kernel::masked("tcx"));
  CHECK(rose::kernel::masked("uprobe_multi"));
  CHECK_FALSE(rose::kernel::masked("uprobe"));
  CHECK_FALSE(rose::kernel::masked(""));
  CHECK_FALSE(rose::kernel::masked("tcx,uprobe_multi"));
  const Capability tcx = rose::kernel::probe("tcx");
  CHECK_FALSE(tcx.ok);
  CHECK(tcx.detail.find("masked by ROSE_MASK") == 0);
  CHECK(tcx.remedy == "unset ROSE_MASK");
  CHECK(rose::kernel::probe("memory_lock").detail.find("masked") == std::string::npos);
}

TEST_CASE("an unknown capability is not available") {
  const Capability none = rose::kernel::probe("uprobe_mutli");
  CHECK_FALSE(none.ok);
  CHECK(none.detail == "no such capability");
  CHECK(none.remedy == "did you mean 'uprobe_multi'?");
}

TEST_CASE("without privilege every missing capability is reported with its remedy") {
  if (::geteuid() != 0) return;  // without root, the tests above have already run without privilege
  // Do this in a child, because dropped privileges cannot be regained.
  int pipes[2];
  REQUIRE(::pipe2(pipes, O_CLOEXEC) == 0);
  const pid_t pid = ::fork();
  REQUIRE(pid >= 0);
  if (pid == 0) {
    if (::setgid(65534) != 0 || ::setuid(65534) != 0) ::_exit(2);
    std::string text;
    for (const Capability& c : rose::kernel::probe_all()) {
      text += c.name + "\t" + (c.ok ? "yes" : "no") + "\t" + c.detail + "\t" + c.remedy + "\n";
    }
    ::_exit(::write(pipes[1], text.data(), text.size()) == static_cast<ssize_t>(text.size()) ? 0 : 3);
  }
  ::close(pipes[1]);
  std::string text;
  char buffer[4096];
  ssize_t got = 0;
  while ((got = ::read(pipes[0], buffer, sizeof buffer)) > 0) text.append(buffer, static_cast<std::size_t>(got));
  ::close(pipes[0]);
  int status = 0;
  REQUIRE(::waitpid(pid, &status, 0) == pid);
  REQUIRE(status == 0);
  INFO(text);
  CHECK(text.find("root\tno\t") != std::string::npos);
  CHECK(text.find("capabilities\tno\t") != std::string::npos);
  CHECK(text.find("CAP_BPF") != std::string::npos);
  for (const std::string name : {"cgroup2", "netns", "override_return", "cgroup_skb", "tcx"}) {
    CAPTURE(name);
    const std::size_t at = text.find("\n" + name + "\tno\t");
    REQUIRE(at != std::string::npos);
    const std::string line = text.substr(at + 1, text.find('\n', at + 1) - at - 1);
    CAPTURE(line);
    CHECK(line.find("run rose as root") != std::string::npos);
  }
}
