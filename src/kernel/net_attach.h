// Classifiers on network interfaces, both ways: TCX links where the kernel has them (Linux 6.6), else clsact filters.
#pragma once

#include "base/fd.h"
#include "base/result.h"
#include "kernel/attach.h"

struct bpf_program;

namespace rose::kernel {

// A classifier on one interface's ingress and egress for as long as it lives. Links vanish with the process; a clsact
// filter stays behind one that was killed, until its interface or namespace goes.
class PortLink {
 public:
  // Of the calling thread's network namespace; detach() it there too.
  [[nodiscard]] static Result<PortLink> attach(const bpf_program* program, int ifindex);
  // On one way only.
  [[nodiscard]] static Result<PortLink> attach(const bpf_program* program, int ifindex, Way way);

  PortLink() = default;
  PortLink(PortLink&& other) noexcept;
  PortLink& operator=(PortLink&& other) noexcept;
  ~PortLink() { detach(); }
  void detach();

 private:
  Fd ingress_, egress_;
  int filtered_ = 0;  // ifindex with clsact filters of ours
};

}  // namespace rose::kernel
