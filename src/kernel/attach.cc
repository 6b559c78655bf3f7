#include "kernel/attach.h"

#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <system_error>
#include <utility>

#include "base/log.h"
#include "kernel/kernel_types.h"
#include "kernel/link_create.h"
#include "kernel/maps.h"
#include "kernel/old_kernel.h"
#include "kernel/privilege.h"
#include "kernel/probe.h"

namespace rose::kernel {
namespace {

int to_log(enum libbpf_print_level level, const char* format, va_list args) {
  if (level == LIBBPF_DEBUG) return 0;  // these are hundreds of lines about relocations
  char* text = nullptr;
  // The format comes from libbpf, so the compiler cannot check it here.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
  const int length = ::vasprintf(&text, format, args);
#pragma GCC diagnostic pop
  if (length < 0) return 0;
  const std::unique_ptr<char, decltype(&std::free)> owner(text, &std::free);
  std::string_view line(text, static_cast<std::size_t>(length));
  while (!line.empty() && (line.back() == '\n' || line.back() == ' ')) line.remove_suffix(1);
  if (line.empty()) return 0;
  // The verifier's log may have megabytes; the reason for a rejection is at its end.
  constexpr std::size_t kMostBegin = 512, kMostEnd = 3072;
  if (line.size() <= kMostBegin + kMostEnd) log::debug(line);
  else log::debug("{}\n[...]\n{}", line.substr(0, kMostBegin), line.substr(line.size() - kMostEnd));
  return 0;
}

// A function of rose itself that can be probed without side effects.
[[gnu::noinline, gnu::used]] void probe_here() { asm volatile(""); }

std::atomic<double> uprobe_cost = 10e-6;

// Takes the fastest of several rounds, because scheduling and interrupts only ever make a round slower.
double time_probe() {
  double best = 1;
  for (int round = 0; round < 5; ++round) {
    const auto begin = std::chrono::steady_clock::now();
    for (int i = 0; i < 20; ++i) probe_here();
    best = std::min(best, std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count() / 20);
  }
  return std::clamp(best, 0.5e-6, 50e-6);
}

bool try_uprobe_multi() {
  if (masked("uprobe_multi") || is_old()) return false;
  route_libbpf_log();
  // The program: r0 = 0; exit
  const bpf_insn program[] = {
      {.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0, .src_reg = 0, .off = 0, .imm = 0},
      {.code = BPF_JMP | BPF_EXIT, .dst_reg = 0, .src_reg = 0, .off = 0, .imm = 0}};
  LIBBPF_OPTS(bpf_prog_load_opts, options);
  options.expected_attach_type = static_cast<bpf_attach_type>(kUprobeMulti);
  const Fd loaded(bpf_prog_load(BPF_PROG_TYPE_KPROBE, "rose_probe", "GPL", program, 2, &options));
  if (!loaded) return false;
  const auto [file, offset] = own_place(reinterpret_cast<const void*>(&probe_here));
  const std::uint64_t cookie = 1;
  LinkCreate attr;
  attr.prog_fd = static_cast<std::uint32_t>(loaded.get());
  attr.attach_type = kUprobeMulti;
  attr.path = reinterpret_cast<std::uint64_t>(file.c_str());
  attr.offsets = reinterpret_cast<std::uint64_t>(&offset);
  attr.cookies = reinterpret_cast<std::uint64_t>(&cookie);
  attr.count = 1;
  const int made = link_create(attr);
  log::debug("uprobe_multi links: {}", made >= 0 ? "yes" : std::strerror(-made));
  if (made < 0) return false;
  uprobe_cost = time_probe();
  // Detaching waits for RCU grace periods, so it runs in the background.
  static std::future<void> closing;
  closing = std::async(std::launch::async, [made] { ::close(made); });
  return true;
}

// Encodes the cookie in the path: "/." for each bit that is 1 and "//" for each bit that is 0, neither of which changes
// the file that the path names. Before Linux 5.15, a program can read no other part of its perf event. rose_cookie_of()
// in bpf/rose_old.h decodes the cookie.
std::string with_cookie(std::uint64_t cookie, const std::string& path) {
  std::string out;
  for (int bit = 0; bit < 64; ++bit) out += (cookie >> bit & 1) != 0 ? "/." : "//";
  return out + path;
}

// Keeps these descriptors open in a short-lived process. Closing them here is then quick, because that process has
// references too: the kernel detaches the probes, which takes time, only when that process ends. The process is forked
// twice, so that nothing has to wait for it.
void hold_elsewhere(std::vector<int> descriptors) {
  std::sort(descriptors.begin(), descriptors.end());
  // The child may only make system calls: other threads may hold locks, for example of the allocator.
  const pid_t first = ::fork();
  if (first < 0) return;
  if (first > 0) {
    int status = 0;
    while (::waitpid(first, &status, 0) < 0 && errno == EINTR) {
    }
    return;
  }
  ::setsid();
  const pid_t second = ::fork();
  if (second != 0) ::_exit(second > 0 ? 0 : 1);
  unsigned next = 0;
  for (const int fd : descriptors) {
    const auto at = static_cast<unsigned>(fd);
    if (at > next) ::close_range(next, at - 1, 0);
    next = at + 1;
  }
  ::close_range(next, ~0U, 0);
  // The original process should close its own copies before this process ends. Otherwise the kernel would detach the
  // probes in the original process.
  const timespec pause{0, 500'000'000};
  ::nanosleep(&pause, nullptr);
  ::_exit(0);
}

}  // namespace

void route_libbpf_log() {
  static std::once_flag once;
  std::call_once(once, [] { libbpf_set_print(to_log); });
}

// The kernel's ENOTSUPP, which the kernel returns although the headers of user space do not define it.
constexpr int kNotSupported = 524;

Unexpected bpf_failure(std::string_view what, int err) {
  const Capabilities have = effective_capabilities();
  std::string missing;
  if (!have.has(21)) {  // CAP_SYS_ADMIN implies all of them
    const std::pair<int, const char*> needed[] = {{39, "CAP_BPF"}, {38, "CAP_PERFMON"}, {12, "CAP_NET_ADMIN"}};
    for (const auto& [bit, name] : needed) {
      if (have.has(bit)) continue;
      if (!missing.empty()) missing += ", ";
      missing += name;
    }
  }
  if (!missing.empty() && (err == EPERM || err == EACCES)) {
    return fail(ErrorKind::environment, fmt::format("{}: not permitted, {} missing", what, missing),
                "run as root, or give rose CAP_BPF, CAP_PERFMON and CAP_NET_ADMIN");
  }
  std::string hint;
  switch (err) {
    case EPERM:
      hint =
          "the kernel refuses it even with the right capabilities (lockdown, or a container's seccomp profile); "
          "'rose doctor' tries each feature";
      break;
    case EACCES:
    case EINVAL:
    case ENOTSUP:
    case ENOSYS:
    case ENOENT:
    case ESRCH:
      hint =
          "this kernel lacks a feature that rose uses (Linux 6.1 with CONFIG_DEBUG_INFO_BTF, CONFIG_BPF_SYSCALL and "
          "CONFIG_BPF_EVENTS has every such feature); 'rose doctor' names it, --verbose shows the kernel's message";
      break;
    case kNotSupported:
    case ENOEXEC:
      return fail(ErrorKind::environment,
                  fmt::format("{}: the kernel cannot place a probe at the instruction there", what),
                  "the kernel must execute a copy of the instruction at another address, which it cannot do with some "
                  "instructions, such as those with a lock prefix: name another function or a later line");
    case ENOMEM:
    case E2BIG: hint = "lower the memory option"; break;
    default: hint = "'rose doctor' tries each feature; --verbose shows the kernel's message";
  }
  return fail(ErrorKind::environment, fmt::format("{}: {}", what, std::strerror(err)), hint);
}

bool has_uprobe_multi() {
  static const bool answer = try_uprobe_multi();
  return answer;
}

double uprobe_seconds() {
  (void)has_uprobe_multi();
  return uprobe_cost;
}

void prepare_uprobe(bpf_program* program) {
  route_libbpf_log();
  if (has_uprobe_multi()) {
    bpf_program__set_expected_attach_type(program, static_cast<bpf_attach_type>(kUprobeMulti));
  }
}

FunctionLink::FunctionLink(FunctionLink&& other) noexcept
    : multi_(std::move(other.multi_)), single_(std::exchange(other.single_, {})) {}

FunctionLink& FunctionLink::operator=(FunctionLink&& other) noexcept {
  if (this != &other) {
    detach();
    multi_ = std::move(other.multi_);
    single_ = std::exchange(other.single_, {});
  }
  return *this;
}

FunctionLink::~FunctionLink() { detach(); }

void FunctionLink::detach() {
  multi_.reset();
  for (bpf_link* link : single_) bpf_link__destroy(link);
  single_.clear();
}

void LinkCloser::reap(std::size_t most) {
  using namespace std::chrono_literals;
  closing_.remove_if([](std::future<void>& one) { return one.wait_for(0s) == std::future_status::ready; });
  while (closing_.size() > most) {
    closing_.front().wait();
    closing_.pop_front();
  }
}

void LinkCloser::close(FunctionLink link) {
  constexpr std::size_t kMostAtOnce = 64;
  if (!link.attached()) return;
  if (!link.single_.empty()) {
    single_.push_back(std::move(link));
    using namespace std::chrono_literals;
    closing_.remove_if([](std::future<void>& one) { return one.wait_for(0s) == std::future_status::ready; });
    if (!closing_.empty()) return;
    link = std::move(single_.back());
    single_.pop_back();
  }
  reap(kMostAtOnce - 1);
  auto shared = std::make_shared<FunctionLink>(std::move(link));
  try {
    closing_.push_back(std::async(std::launch::async, [shared] { shared->detach(); }));
  } catch (const std::system_error&) {  // no thread could be started
    shared->detach();
  }
}

void LinkCloser::wait() {
  constexpr std::size_t kWorthAProcess = 8;
  std::vector<int> descriptors;
  for (const auto& link : single_) {
    for (const bpf_link* one : link.single_) descriptors.push_back(bpf_link__fd(one));
  }
  if (descriptors.size() > kWorthAProcess) hold_elsewhere(descriptors);
  single_.clear();
  reap(0);
}

int FunctionLink::attach(const bpf_program* program, const std::string& path, std::span<const ProbePoint> points) {
  if (bpf_program__expected_attach_type(program) == static_cast<bpf_attach_type>(kUprobeMulti)) {
    std::vector<std::uint64_t> offsets, cookies;
    for (const auto& point : points) {
      offsets.push_back(point.offset);
      cookies.push_back(point.cookie);
    }
    LinkCreate attr;
    attr.prog_fd = static_cast<std::uint32_t>(bpf_program__fd(program));
    attr.attach_type = kUprobeMulti;
    attr.path = reinterpret_cast<std::uint64_t>(path.c_str());
    attr.offsets = reinterpret_cast<std::uint64_t>(offsets.data());
    attr.cookies = reinterpret_cast<std::uint64_t>(cookies.data());
    attr.count = static_cast<std::uint32_t>(points.size());
    const int fd = link_create(attr);
    if (fd < 0) return -fd;
    multi_ = Fd(fd);
    return 0;
  }
  for (const auto& point : points) {
    LIBBPF_OPTS(bpf_uprobe_opts, options);
    if (!is_old()) options.bpf_cookie = point.cookie;
    const std::string given = is_old() ? with_cookie(point.cookie, path) : path;
    bpf_link* one = bpf_program__attach_uprobe_opts(program, -1, given.c_str(), point.offset, &options);
    if (one == nullptr) return errno;
    single_.push_back(one);
  }
  return 0;
}

namespace {

// True if the error may concern a single instruction. Other errors concern all probes.
bool is_about_instruction(int error) {
#ifdef __aarch64__
  if (error == EINVAL) return true;
#endif
  return error == kNotSupported || error == ENOEXEC;
}

std::string absolute_path(const std::filesystem::path& binary) {
  std::error_code bad;
  const auto absolute = std::filesystem::absolute(binary, bad);
  return bad ? binary.string() : absolute.string();
}

// Appends the indices of the points that the kernel refuses. Returns 0, or the error if the kernel refuses for a reason
// other than the instruction.
int find_refused(const bpf_program* program, const std::string& path, std::span<const ProbePoint> points,
                 std::size_t first, std::vector<std::size_t>& refused) {
  FunctionLink trial;
  const int error = trial.attach(program, path, points);
  if (error == 0 || !is_about_instruction(error)) return error;
  if (points.size() == 1) {
    refused.push_back(first);
    return 0;
  }
  const std::size_t half = points.size() / 2;
  const int in_first = find_refused(program, path, points.first(half), first, refused);
  return in_first != 0 ? in_first : find_refused(program, path, points.subspan(half), first + half, refused);
}

Unexpected attach_failure(const std::filesystem::path& binary, std::size_t functions, int error) {
  return bpf_failure(
      fmt::format("cannot watch {} of '{}'",
                  functions == 1 ? std::string("a function") : fmt::format("{} functions", functions), binary.string()),
      error);
}

}  // namespace

Result<FunctionLink> attach_functions(const bpf_program* program, const std::filesystem::path& binary,
                                      const std::vector<ProbePoint>& points) {
  FunctionLink link;
  if (points.empty()) return link;
  if (const int error = link.attach(program, absolute_path(binary), points); error != 0)
    return attach_failure(binary, points.size(), error);
  return link;
}

Result<PossibleLink> attach_possible(const bpf_program* program, const std::filesystem::path& binary,
                                     const std::vector<ProbePoint>& points) {
  PossibleLink made;
  if (points.empty()) return made;
  const std::string path = absolute_path(binary);
  int error = made.link.attach(program, path, points);
  if (is_about_instruction(error)) {
    made.link = {};
    error = find_refused(program, path, points, 0, made.refused);
    std::vector<ProbePoint> others;
    for (std::size_t i = 0; i < points.size(); ++i) {
      if (!std::binary_search(made.refused.begin(), made.refused.end(), i)) others.push_back(points[i]);
    }
    if (error == 0 && !others.empty()) error = made.link.attach(program, path, others);
  }
  if (error != 0) return attach_failure(binary, points.size(), error);
  return made;
}

Result<Fd> attach_cgroup(const bpf_program* program, const std::filesystem::path& cgroup) {
  const Fd folder(::open(cgroup.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!folder) return fail_errno(ErrorKind::input, fmt::format("cannot open cgroup '{}'", cgroup.string()), errno);
  LinkCreate attr;
  attr.prog_fd = static_cast<std::uint32_t>(bpf_program__fd(program));
  attr.target_fd = static_cast<std::uint32_t>(folder.get());
  attr.attach_type = static_cast<std::uint32_t>(bpf_program__expected_attach_type(program));
  const int fd = link_create(attr);
  if (fd < 0) {
    return bpf_failure(fmt::format("cannot attach {} to cgroup '{}'", bpf_program__name(program), cgroup.string()),
                       -fd);
  }
  return Fd(fd);
}

Result<Fd> attach_tcx(const bpf_program* program, int ifindex, Way way) {
  LinkCreate attr;
  attr.prog_fd = static_cast<std::uint32_t>(bpf_program__fd(program));
  attr.target_fd = static_cast<std::uint32_t>(ifindex);
  attr.attach_type = way == Way::in ? kTcxIngress : kTcxEgress;
  const int fd = masked("tcx") ? -EOPNOTSUPP : link_create(attr);
  if (fd < 0) {
    return bpf_failure(fmt::format("cannot attach {} to interface {}", bpf_program__name(program), ifindex), -fd);
  }
  return Fd(fd);
}

namespace {

bool try_files() {
  route_libbpf_log();
  const int type = libbpf_find_vmlinux_btf_id("task_file", BPF_TRACE_ITER);
  if (type <= 0) return false;
  // The program: if (ctx->file) bpf_sock_from_file(ctx->file); return 0. The objects for old kernels do not call
  // bpf_sock_from_file, so the call is left out for them.
  constexpr std::int16_t kFile = 24;  // in struct bpf_iter__task_file
  const bpf_insn program[] = {
      {.code = BPF_LDX | BPF_MEM | BPF_DW, .dst_reg = BPF_REG_1, .src_reg = BPF_REG_1, .off = kFile, .imm = 0},
      {.code = BPF_JMP | BPF_JEQ | BPF_K, .dst_reg = BPF_REG_1, .src_reg = 0, .off = 1, .imm = 0},
      {.code = BPF_JMP | BPF_CALL, .dst_reg = 0, .src_reg = 0, .off = 0, .imm = BPF_FUNC_sock_from_file},
      {.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0, .src_reg = 0, .off = 0, .imm = 0},
      {.code = BPF_JMP | BPF_EXIT, .dst_reg = 0, .src_reg = 0, .off = 0, .imm = 0}};
  LIBBPF_OPTS(bpf_prog_load_opts, options);
  options.expected_attach_type = BPF_TRACE_ITER;
  options.attach_btf_id = static_cast<std::uint32_t>(type);
  const std::size_t first = is_old() ? 3 : 0;
  const Fd loaded(
      bpf_prog_load(BPF_PROG_TYPE_TRACING, "rose_probe", "GPL", program + first, std::size(program) - first, &options));
  if (!loaded) return false;
  LinkCreate attr;
  attr.prog_fd = static_cast<std::uint32_t>(loaded.get());
  attr.attach_type = BPF_TRACE_ITER;
  const Fd link(link_create(attr));
  return link.get() >= 0;
}

}  // namespace

bool iterates_files() {
  static const bool able = try_files();
  return able && !masked("task_file");
}

bool xdp_reads_packets() {
  if (masked("xdp")) return false;
  route_libbpf_log();
  // A negative result means that libbpf cannot determine whether the helper exists. In that case, assume that it does.
  return libbpf_probe_bpf_helper(BPF_PROG_TYPE_XDP, BPF_FUNC_xdp_load_bytes, nullptr) != 0;
}

Result<Fd> attach_xdp(const bpf_program* program, int ifindex) {
  constexpr std::uint32_t kGeneric = 2;  // XDP_FLAGS_SKB_MODE
  LinkCreate attr;
  attr.prog_fd = static_cast<std::uint32_t>(bpf_program__fd(program));
  attr.target_fd = static_cast<std::uint32_t>(ifindex);
  attr.attach_type = BPF_XDP;
  attr.flags = kGeneric;
  const int fd = link_create(attr);
  if (fd < 0) {
    return bpf_failure(fmt::format("cannot attach {} to interface {}", bpf_program__name(program), ifindex), -fd);
  }
  return Fd(fd);
}

bool tracepoint_passes_pointer(const std::string& tracepoint, int index) {
  const std::shared_ptr<const btf> types = kernel_types();
  const btf* kernel = types.get();
  if (kernel == nullptr) return false;
  const auto id = btf__find_by_name_kind(kernel, ("btf_trace_" + tracepoint).c_str(), BTF_KIND_TYPEDEF);
  const btf_type* type =
      id <= 0 ? nullptr : btf__type_by_id(kernel, btf__type_by_id(kernel, static_cast<std::uint32_t>(id))->type);
  if (type != nullptr && btf_is_ptr(type)) type = btf__type_by_id(kernel, type->type);
  bool pointer = false;
  if (type != nullptr && btf_is_func_proto(type) && index < btf_vlen(type)) {
    const auto* value = btf__type_by_id(kernel, btf_params(type)[index].type);
    pointer = value != nullptr && btf_is_ptr(value);
  }
  return pointer;
}

std::uint32_t uring_form() {
  static const std::uint32_t form = [] {
    constexpr int kRequest = 2;
    if (tracepoint_arguments("io_uring_complete") == 0) return 0U;
    if (!tracepoint_passes_pointer("io_uring_complete", kRequest)) return 2U;
    return tracepoint_arguments("io_uring_complete") > 4 ? 1U : 0U;
  }();
  return form;
}

int tracepoint_arguments(const std::string& tracepoint) {
  static std::mutex mutex;
  static std::map<std::string, int> known;
  const std::lock_guard lock(mutex);
  const auto [found, fresh] = known.try_emplace(tracepoint, 0);
  if (!fresh) return found->second;
  const std::shared_ptr<const btf> types = kernel_types();
  const btf* kernel = types.get();
  if (kernel == nullptr) return 0;
  const auto id = btf__find_by_name_kind(kernel, ("btf_trace_" + tracepoint).c_str(), BTF_KIND_TYPEDEF);
  const btf_type* type =
      id <= 0 ? nullptr : btf__type_by_id(kernel, btf__type_by_id(kernel, static_cast<std::uint32_t>(id))->type);
  if (type != nullptr && btf_is_ptr(type)) type = btf__type_by_id(kernel, type->type);
  if (type != nullptr && btf_is_func_proto(type)) found->second = btf_vlen(type);
  return found->second;
}

std::uint64_t missed_runs(const bpf_object* object) {
  std::uint64_t missed = 0;
  bpf_program* program = nullptr;
  bpf_object__for_each_program(program, object) {
    bpf_prog_info info{};
    std::uint32_t length = sizeof info;
    const int fd = bpf_program__fd(program);
    if (fd >= 0 && bpf_obj_get_info_by_fd(fd, &info, &length) == 0) missed += info.recursion_misses;
  }
  return missed;
}

}  // namespace rose::kernel
