// Attaches classifiers to network interfaces, with TCX links where available (Linux 6.6), else with clsact filters.
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
  // In the network namespace of the calling thread. Call detach() in the same namespace.
  [[nodiscard]] static Result<PortLink> attach(const bpf_program* program, int ifindex);
  // In one direction only.
  [[nodiscard]] static Result<PortLink> attach(const bpf_program* program, int ifindex, Way way);

  PortLink() = default;
  PortLink(PortLink&& other) noexcept;
  PortLink& operator=(PortLink&& other) noexcept;
  ~PortLink() { detach(); }
  void detach();

 private:
  Fd ingress_, egress_;
  int filtered_ = 0;  // ifindex if it was attached with clsact filters
};

}  // namespace rose::kernel
