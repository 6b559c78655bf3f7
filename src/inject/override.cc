#include "inject/override.h"

#include <bpf/libbpf.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <csignal>
#include <cstring>
#include <fstream>
#include <set>

#include "kernel/arch.h"
#include "kernel/attach.h"
#include "kernel/syscalls.h"

namespace rose::inject {
namespace {

// Calls whose kernel function has another name.
constexpr std::pair<std::string_view, std::string_view> kRenamed[] = {
    {"stat", "newstat"},   {"fstat", "newfstat"}, {"lstat", "newlstat"},
    {"uname", "newuname"}, {"umount2", "umount"}, {"sendfile", "sendfile64"},
};

const std::set<std::string>& entries() {
  static const std::set<std::string> all = [] {
    std::set<std::string> names;
    std::ifstream symbols("/proc/kallsyms");
    std::string line;
    while (std::getline(symbols, line)) {
      const auto at = line.find(fmt::format(" {}", kernel::kCallPrefix));
      if (at == std::string::npos) continue;
      names.insert(line.substr(at + 1, line.find_first_of(" \t", at + 1) - at - 1));
    }
    return names;
  }();
  return all;
}

class Compiler {
 public:
  explicit Compiler(const Plan& plan) : plan_(plan) {}

  CallTables compile() {
    std::map<std::uint32_t, std::vector<std::uint32_t>> lists;
    std::set<int> numbers;
    const auto add = [&](const CallMatcher& matcher, std::uint32_t where, rose_wanted_call call) {
      match(matcher, call);
      const auto index = static_cast<std::uint32_t>(tables_.calls.size());
      tables_.calls.push_back(call);
      for (std::uint32_t node = 0; node < plan_.nodes.size(); ++node) {
        if (!Plan::may_be(where, node)) continue;
        for (const int number : matcher.numbers()) {
          lists[node << 16 | static_cast<std::uint32_t>(number)].push_back(index);
          numbers.insert(number);
        }
      }
    };
    for (std::size_t i = 0; i < plan_.conditions.size(); ++i) {
      if (!plan_.conditions[i].call) continue;
      rose_wanted_call call{};
      call.kind = ROSE_CALL_CONDITION;
      call.index = static_cast<__u32>(i);
      add(*plan_.conditions[i].call, plan_.conditions[i].data.node, call);
    }
    for (std::size_t i = 0; i < plan_.schedule.faults.size(); ++i) {
      if (plan_.chains[i].call) add(*plan_.chains[i].call, plan_.chains[i].data.node, fault(i));
    }
    for (const auto& [key, list] : lists) {
      tables_.lists[key] = {static_cast<__u32>(tables_.items.size()), static_cast<__u32>(list.size())};
      tables_.items.insert(tables_.items.end(), list.begin(), list.end());
    }
    tables_.numbers.assign(numbers.begin(), numbers.end());
    return std::move(tables_);
  }

 private:
  [[nodiscard]] rose_wanted_call fault(std::size_t chain) const {
    const auto& planned = plan_.chains[chain];
    const auto& fault = *planned.fault;
    rose_wanted_call call{};
    call.kind = ROSE_CALL_FAULT;
    call.index = static_cast<__u32>(chain);
    call.count = planned.call_count;
    call.times = fault.times;
    switch (fault.kind) {
      case schedule::FaultKind::crash:
        call.action = ROSE_DO_CRASH;
        call.signal = planned.data.signal;
        call.flags |= ROSE_SPARED_ANYWAY;
        break;
      case schedule::FaultKind::pause: call.action = ROSE_DO_PAUSE; break;
      default:
        if (fault.then_do == schedule::ThenDo::crash) {
          call.action = ROSE_DO_CRASH;
          call.signal = SIGKILL;
        } else if (fault.error != 0) {
          call.action = ROSE_DO_ANSWER;
          call.answer = -fault.error;
        } else if (fault.result) {
          call.action = ROSE_DO_ANSWER;
          call.answer = *fault.result;
        }
        break;
    }
    return call;
  }

  void match(const CallMatcher& matcher, rose_wanted_call& call) {
    for (const auto& argument : matcher.arguments()) {
      const auto at = static_cast<std::size_t>(argument.index);
      call.arguments |= 1U << at;
      call.value[at] = argument.value;
      call.mask[at] = argument.mask;
    }
    call.path = glob(matcher.path());
    call.path2 = glob(matcher.path2());
    call.process = glob(matcher.process());
    call.peer = glob(matcher.peer());
    call.local = glob(matcher.local());
    if (matcher.peer() && matcher.peer()->starts_with(':')) call.flags |= ROSE_PEER_PORT;
    if (matcher.local() && matcher.local()->starts_with(':')) call.flags |= ROSE_LOCAL_PORT;
  }

  std::uint16_t glob(const std::optional<std::string>& text) {
    if (!text) return 0;
    const auto [at, fresh] = globs_.try_emplace(*text, static_cast<std::uint16_t>(tables_.globs.size() + 1));
    if (fresh) {
      rose_glob made{};
      made.length = static_cast<__u32>(text->size());
      std::memcpy(made.text, text->data(), std::min(text->size(), sizeof made.text));
      tables_.globs.push_back(made);
    }
    return at->second;
  }

  const Plan& plan_;
  CallTables tables_;
  std::map<std::string, std::uint16_t> globs_;
};

}  // namespace

CallTables compile_calls(const Plan& plan) { return Compiler(plan).compile(); }

std::optional<std::string> entry_of(int syscall) {
  const auto* info = kernel::find_syscall(syscall);
  if (info == nullptr) return std::nullopt;
  std::string_view name = info->name;
  for (const auto& [call, function] : kRenamed) {
    if (name == call) name = function;
  }
  auto entry = fmt::format("{}{}", kernel::kCallPrefix, name);
  if (entries().count(entry) == 0) return std::nullopt;
  return entry;
}

rose_call_arguments arguments_of(int syscall) {
  rose_call_arguments signature{-1, -1, -1, -1, -1, -1, 0, 0};
  const auto* info = kernel::find_syscall(syscall);
  if (info == nullptr) return signature;
  signature.path = info->path;
  signature.dirfd = info->dirfd;
  signature.path2 = info->path2;
  signature.dirfd2 = info->dirfd2;
  signature.fd = info->fd;
  signature.sockaddr = info->sockaddr;
  signature.binds = info->name == "bind" ? 1 : 0;
  signature.message = kernel::names_peer_in_message(info->name) ? 1 : 0;
  return signature;
}

std::string describe(const rose_firing& firing) {
  if (__atomic_load_n(&firing.ready, __ATOMIC_ACQUIRE) == 0) return {};
  std::string text(reinterpret_cast<const char*>(firing.text),
                   std::min<std::size_t>(firing.length, sizeof firing.text));
  if (const auto second = text.find('\0'); firing.what == 1 && second != std::string::npos)
    text.replace(second, 1, ", ");
  if (firing.what == 2) text = "peer " + text;
  if (firing.what == 3) text = "local " + text;
  return fmt::format("{}({})", kernel::syscall_name(static_cast<int>(firing.syscall)), text);
}

void page_in(pid_t tid, std::uint64_t address) {
  constexpr std::uint64_t kPage = 4096;
  constexpr std::uint64_t kLargestStructure = sizeof(sockaddr_storage);  // a structure does not end at a NUL
  char data[kPage];
  for (std::uint64_t done = 0; done < PATH_MAX;) {
    const std::uint64_t here = kPage - (address + done) % kPage;
    iovec mine{data, here};
    iovec theirs{reinterpret_cast<void*>(address + done), here};
    const auto got = ::process_vm_readv(tid, &mine, 1, &theirs, 1, 0);
    if (got <= 0) return;
    done += static_cast<std::uint64_t>(got);
    if (done >= kLargestStructure && std::memchr(data, '\0', static_cast<std::size_t>(got)) != nullptr) return;
  }
}

Result<void> EntryProbes::attach(const bpf_program* program, const std::vector<int>& syscalls) {
  for (const int syscall : syscalls) {
    const auto entry = entry_of(syscall);
    if (!entry) continue;  // the call was selected by a glob, and this kernel does not have it
    bpf_link* link = bpf_program__attach_kprobe(program, false, entry->c_str());
    if (link == nullptr) {
      return kernel::bpf_failure(fmt::format("cannot attach to the entry of '{}'", kernel::syscall_name(syscall)),
                                 errno);
    }
    links_.push_back(link);
  }
  return {};
}

void EntryProbes::detach() {
  for (bpf_link* link : links_) bpf_link__destroy(link);
  links_.clear();
}

}  // namespace rose::inject
