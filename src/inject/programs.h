// The loaded BPF programs of a schedule, with their maps and attachments: inject.bpf.c (conditions, and faults that
// take effect in the thread that meets them) and network.bpf.c (partitions and bad links).
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "deploy/deployment.h"
#include "inject/plan.h"
#include "inject/state.h"

namespace rose::inject {

// Indexed by DWARF register number; the last one is the instruction pointer.
using StackRegisters = std::array<std::uint64_t, ROSE_REGISTERS>;

inline constexpr std::size_t kMostChangedCalls = 65'536;  // at most this many calls are returned by changed()

class Programs {
 public:
  // Loads what the plan needs; attaches nothing.
  [[nodiscard]] static Result<std::unique_ptr<Programs>> load(const Plan& plan);
  virtual ~Programs() = default;

  [[nodiscard]] virtual SharedArrays arrays() = 0;
  // Becomes readable when a BPF program has sent a notice, for example about a transition; drain() reads all notices.
  [[nodiscard]] virtual int notice_fd() const = 0;
  virtual void drain() = 0;

  // Call it after the State has been written. `agent`: the file of the JVM agent if the plan has methods.
  [[nodiscard]] virtual Result<void> attach(deploy::Deployment& deployment, const std::filesystem::path& agent) = 0;
  // Adds a node's cgroup, which may be known only when the node starts (attached systems).
  [[nodiscard]] virtual Result<void> add_node(const deploy::NodeInfo& node) = 0;
  virtual void set_main(std::size_t node, pid_t pid) = 0;
  // Call it when processes of an attached node were found. Assigns the local addresses of their sockets to the node, in
  // whichever cgroup the sockets were created.
  [[nodiscard]] virtual Result<void> add_sockets(const deploy::NodeInfo& node, const std::vector<pid_t>& pids) = 0;

  // Returns when all packets that the network programs let pass before the call have arrived or are lost.
  [[nodiscard]] virtual Result<void> wait_for_packets() = 0;

  // Records that the thread is inside a call that counts for these conditions when it returns.
  virtual void tag(pid_t tid, int syscall, const std::vector<std::uint32_t>& conditions) = 0;
  virtual void untag(pid_t tid) = 0;
  // True if the thread repeats a call that a signal had interrupted. `ip`: the address after the call's instruction.
  // Returns true only once for each interruption.
  virtual bool take_restart(pid_t tid, int syscall, std::uint64_t ip) = 0;

  // The call at which the override backend fired a fault; "" if it did not.
  [[nodiscard]] virtual std::string fired_at(std::size_t chain) const = 0;
  // The calls that the override backend changed, each with its fault, as far as drain() has read them.
  struct Changed {
    std::int64_t at_ns = 0;
    pid_t tid = 0;
    int syscall = 0;
  };
  [[nodiscard]] virtual std::vector<std::pair<std::size_t, Changed>> changed() const = 0;
  // Packets that a partition has dropped so far, and how many of them were answered.
  struct Stopped {
    std::uint64_t packets = 0;
    std::uint64_t rejected = 0;
  };
  [[nodiscard]] virtual Stopped stopped(std::size_t chain) const = 0;
  // The counters of a bad link so far.
  struct Carried {
    rose_link link{};
    HoldCounts held;
  };
  [[nodiscard]] virtual Carried carried(std::size_t chain) const = 0;
  // Call it before a fault fills this disk.
  [[nodiscard]] virtual Result<void> watch_disk(dev_t device) = 0;
  // How often calls of the node failed for lack of a descriptor, or of disk space on these disks. Counted only if
  // Plan::watches_limits().
  [[nodiscard]] virtual std::uint64_t descriptors_lacked(std::size_t node) const = 0;
  [[nodiscard]] virtual std::uint64_t room_lacked(std::size_t node, const std::vector<dev_t>& disks) const = 0;
  // Sets the fault that now limits this resource of the node; none if the resource is not limited. The stacks of the
  // first threads that meet the limit are recorded for this fault.
  virtual void set_limiting(std::size_t node, schedule::FaultKind kind, std::optional<std::size_t> chain) = 0;
  // The recorded state of affected threads.
  [[nodiscard]] virtual std::vector<const rose_stack*> stacks(std::size_t chain) const = 0;
  // The registers of a thread that is in the kernel.
  [[nodiscard]] virtual Result<StackRegisters> registers(pid_t tid) const = 0;
  virtual void detach() = 0;
};

}  // namespace rose::inject
