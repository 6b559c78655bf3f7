#include "evidence/call_keys.h"

#include "kernel/syscalls.h"

namespace rose::evidence {

std::optional<SameCall> same_call(int node, const trace::Event& event, std::string_view call, std::uint32_t pattern) {
  const kernel::SyscallInfo* info = kernel::find_syscall(event.syscall);
  if (info == nullptr || !info->state_changing || call.starts_with("open"))
    return std::nullopt;  // only opens that create or truncate are recorded
  if (call.starts_with("accept")) return SameCall{node, event.syscall, 0, event.pid, event.fd};
  if (pattern == 0) return std::nullopt;
  return SameCall{node, event.syscall, pattern, 0, 0};
}

}  // namespace rose::evidence
