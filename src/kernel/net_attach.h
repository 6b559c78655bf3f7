// Attaches classifiers to network interfaces: with TCX links if the kernel has them (Linux 6.6), otherwise with clsact
// filters.
#pragma once

#include "base/fd.h"
#include "base/result.h"
#include "kernel/attach.h"

struct bpf_program;

namespace rose::kernel {

// Keeps a classifier attached to the ingress and egress of one interface. Links disappear when the process ends. A
// clsact filter stays if rose is killed, until its interface or namespace is removed.
class PortLink {
 public:
  // Attaches the program in the network namespace of the calling thread. Call detach() in the same namespace.
  [[nodiscard]] static Result<PortLink> attach(const bpf_program* program, int ifindex);
  // Attaches the program in one direction only.
  [[nodiscard]] static Result<PortLink> attach(const bpf_program* program, int ifindex, Way way);

  PortLink() = default;
  PortLink(PortLink&& other) noexcept;
  PortLink& operator=(PortLink&& other) noexcept;
  ~PortLink() { detach(); }
  void detach();

 private:
  Fd ingress_, egress_;
  int filtered_ = 0;  // the ifindex if the program was attached with clsact filters; otherwise 0
};

}  // namespace rose::kernel
