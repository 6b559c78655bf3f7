#include "kernel/probe_bpf.h"

#include <bpf/bpf.h>
#include <fmt/format.h>
#include <linux/perf_event.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstring>
#include <fstream>

#include "kernel/link_create.h"

namespace rose::kernel::probing {
namespace {

// The offset of the first parameter in struct pt_regs.
#ifdef __x86_64__
constexpr std::int16_t kOffsetOfFirst = 112;
#else
constexpr std::int16_t kOffsetOfFirst = 0;
#endif

bpf_insn insn(int code, int dst, int src, int off, std::int32_t imm) {
  bpf_insn made = {};
  made.code = static_cast<__u8>(code);
  made.dst_reg = static_cast<__u8>(dst & 0xf);
  made.src_reg = static_cast<__u8>(src & 0xf);
  made.off = static_cast<__s16>(off);
  made.imm = imm;
  return made;
}
bpf_insn move(int dst, std::int32_t imm) { return insn(BPF_ALU64 | BPF_MOV | BPF_K, dst, 0, 0, imm); }
bpf_insn copy(int dst, int src) { return insn(BPF_ALU64 | BPF_MOV | BPF_X, dst, src, 0, 0); }
bpf_insn add(int dst, std::int32_t imm) { return insn(BPF_ALU64 | BPF_ADD | BPF_K, dst, 0, 0, imm); }
bpf_insn call(bpf_func_id helper) { return insn(BPF_JMP | BPF_CALL, 0, 0, 0, helper); }
bpf_insn exit_program() { return insn(BPF_JMP | BPF_EXIT, 0, 0, 0, 0); }
void set64(Code& code, int dst, int pseudo, std::uint64_t value) {
  code.push_back(insn(BPF_LD | BPF_IMM | BPF_DW, dst, pseudo, 0, static_cast<std::int32_t>(value)));
  code.push_back(insn(0, 0, 0, 0, static_cast<std::int32_t>(value >> 32)));
}

Fd create_link(const LinkCreate& attr) {
  const int link = link_create(attr);
  if (link < 0) errno = -link;
  return Fd(link);
}

}  // namespace

Finding no(std::string detail) { return {false, 0, std::move(detail)}; }
Finding no_errno(const std::string& step, int err) {
  return {false, err, fmt::format("{}: {}", step, std::strerror(err))};
}

Counter::Counter() : map_(bpf_map_create(BPF_MAP_TYPE_ARRAY, "rose_probe", 4, 8, 1, nullptr)) {
  if (!map_) {
    error_ = errno;
    map_ = Fd();
  }
}

std::uint64_t Counter::value() const {
  const std::uint32_t key = 0;
  std::uint64_t value = 0;
  return bpf_map_lookup_elem(map_.get(), &key, &value) == 0 ? value : 0;
}

Code count_and_return(const Counter& counter, int result) {
  Code code;
  set64(code, BPF_REG_1, BPF_PSEUDO_MAP_VALUE, static_cast<std::uint32_t>(counter.fd()));
  code.push_back(move(BPF_REG_2, 1));
  code.push_back(insn(BPF_STX | BPF_ATOMIC | BPF_DW, BPF_REG_1, BPF_REG_2, 0, BPF_ADD));
  code.push_back(move(BPF_REG_0, result));
  code.push_back(exit_program());
  return code;
}

Code count_calls_of(const Counter& counter, pid_t pid) {
  const Code counting = count_and_return(counter, 0);
  Code code = {call(BPF_FUNC_get_current_pid_tgid), insn(BPF_ALU64 | BPF_RSH | BPF_K, BPF_REG_0, 0, 0, 32),
               insn(BPF_JMP | BPF_JEQ | BPF_K, BPF_REG_0, 0, 2, pid), move(BPF_REG_0, 0), exit_program()};
  code.insert(code.end(), counting.begin(), counting.end());
  return code;
}

Code clock_in_units(int shift) {
  return {call(BPF_FUNC_ktime_get_ns), insn(BPF_ALU64 | BPF_RSH | BPF_K, BPF_REG_0, 0, 0, shift), exit_program()};
}

Code loop_once() {
  Code code = {move(BPF_REG_1, 1)};
  // the offset is relative to the second half of this instruction
  set64(code, BPF_REG_2, BPF_PSEUDO_FUNC, kLoopStep - 2);
  const Code rest = {move(BPF_REG_3, 0), move(BPF_REG_4, 0), call(BPF_FUNC_loop), move(BPF_REG_0, 0),
                     exit_program(),     move(BPF_REG_0, 0), exit_program()};
  code.insert(code.end(), rest.begin(), rest.end());
  return code;
}

Code send_kill() { return {move(BPF_REG_1, SIGKILL), call(BPF_FUNC_send_signal), move(BPF_REG_0, 0), exit_program()}; }

Code output_to_ring(int ring_fd, std::uint64_t record) {
  Code code;
  set64(code, BPF_REG_2, 0, record);
  code.push_back(insn(BPF_STX | BPF_MEM | BPF_DW, BPF_REG_10, BPF_REG_2, -8, 0));
  set64(code, BPF_REG_1, BPF_PSEUDO_MAP_FD, static_cast<std::uint32_t>(ring_fd));
  code.push_back(copy(BPF_REG_2, BPF_REG_10));
  code.push_back(add(BPF_REG_2, -8));
  code.push_back(move(BPF_REG_3, 8));
  code.push_back(move(BPF_REG_4, 0));
  code.push_back(call(BPF_FUNC_ringbuf_output));
  code.push_back(move(BPF_REG_0, 0));
  code.push_back(exit_program());
  return code;
}

Code override_when(std::uint64_t argument, int err) {
  Code code;
  code.push_back(copy(BPF_REG_6, BPF_REG_1));
  // The wrapper of a system call receives a pointer to the caller's registers as its only argument.
  code.push_back(insn(BPF_LDX | BPF_MEM | BPF_DW, BPF_REG_3, BPF_REG_1, kOffsetOfFirst, 0));
  code.push_back(add(BPF_REG_3, kOffsetOfFirst));
  code.push_back(copy(BPF_REG_1, BPF_REG_10));
  code.push_back(add(BPF_REG_1, -8));
  code.push_back(move(BPF_REG_2, 8));
  code.push_back(call(BPF_FUNC_probe_read_kernel));
  code.push_back(insn(BPF_LDX | BPF_MEM | BPF_DW, BPF_REG_1, BPF_REG_10, -8, 0));
  set64(code, BPF_REG_2, 0, argument);
  code.push_back(insn(BPF_JMP | BPF_JNE | BPF_X, BPF_REG_1, BPF_REG_2, 3, 0));
  code.push_back(copy(BPF_REG_1, BPF_REG_6));
  code.push_back(move(BPF_REG_2, -err));
  code.push_back(call(BPF_FUNC_override_return));
  code.push_back(move(BPF_REG_0, 0));
  code.push_back(exit_program());
  return code;
}

Fd load(bpf_prog_type type, const Code& code, int& error, int expected_attach_type) {
  LIBBPF_OPTS(bpf_prog_load_opts, options);
  options.expected_attach_type = static_cast<bpf_attach_type>(expected_attach_type);
  const int fd = bpf_prog_load(type, "rose_probe", "GPL", code.data(), code.size(), &options);
  error = fd < 0 ? -fd : 0;
  return fd < 0 ? Fd() : Fd(fd);
}

Fd create_tcx_link(int program, int ifindex) {
  LinkCreate attr;
  attr.prog_fd = static_cast<std::uint32_t>(program);
  attr.target_fd = static_cast<std::uint32_t>(ifindex);
  attr.attach_type = kTcxIngress;
  return create_link(attr);
}

Fd create_uprobe_multi_link(int program, const char* path, std::uint64_t offset) {
  LinkCreate attr;
  attr.prog_fd = static_cast<std::uint32_t>(program);
  attr.attach_type = kUprobeMulti;
  attr.path = reinterpret_cast<std::uint64_t>(path);
  attr.offsets = reinterpret_cast<std::uint64_t>(&offset);
  attr.count = 1;
  return create_link(attr);
}

Finding attach_perf(const char* pmu, const char* target, std::uint64_t offset, int pid, int program, Fd& event) {
  std::uint32_t type = 0;
  if (!(std::ifstream(fmt::format("/sys/bus/event_source/devices/{}/type", pmu)) >> type)) {
    return no(fmt::format("the kernel has no '{}' perf events", pmu));
  }
  perf_event_attr attr = {};
  attr.type = type;
  attr.size = sizeof attr;
  attr.config1 = reinterpret_cast<std::uint64_t>(target);
  attr.config2 = offset;
  event = Fd(static_cast<int>(::syscall(SYS_perf_event_open, &attr, pid, pid < 0 ? 0 : -1, -1, PERF_FLAG_FD_CLOEXEC)));
  if (!event) return no_errno(fmt::format("opening a {} event on {}", pmu, target), errno);
  if (::ioctl(event.get(), PERF_EVENT_IOC_SET_BPF, program) != 0) {
    return no_errno(fmt::format("attaching to the {} event on {}", pmu, target), errno);
  }
  if (::ioctl(event.get(), PERF_EVENT_IOC_ENABLE, 0) != 0) return no_errno("enabling the event", errno);
  return yes("attached");
}

}  // namespace rose::kernel::probing
