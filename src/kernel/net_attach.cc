#include "kernel/net_attach.h"

#include <bpf/libbpf.h>

#include <cerrno>
#include <cstdint>
#include <utility>

#include "kernel/attach.h"

namespace rose::kernel {
namespace {

constexpr std::uint32_t kHandle = 0x726f;  // "ro"
constexpr std::uint32_t kPriority = 0x726f;

bpf_tc_hook hook_of(int ifindex, bpf_tc_attach_point point) {
  bpf_tc_hook hook{};
  hook.sz = sizeof hook;
  hook.ifindex = ifindex;
  hook.attach_point = point;
  return hook;
}

int filter(const bpf_program* program, int ifindex, bpf_tc_attach_point point) {
  bpf_tc_hook hook = hook_of(ifindex, point);
  if (const int err = bpf_tc_hook_create(&hook); err != 0 && err != -EEXIST) return err;
  bpf_tc_opts options{};
  options.sz = sizeof options;
  options.handle = kHandle;
  options.priority = kPriority;
  options.prog_fd = bpf_program__fd(program);
  return bpf_tc_attach(&hook, &options);
}

void unfilter(int ifindex, bpf_tc_attach_point point) {
  const bpf_tc_hook hook = hook_of(ifindex, point);
  bpf_tc_opts options{};
  options.sz = sizeof options;
  options.handle = kHandle;
  options.priority = kPriority;
  (void)bpf_tc_detach(&hook, &options);
}

}  // namespace

Result<PortLink> PortLink::attach(const bpf_program* program, int ifindex) {
  route_libbpf_log();
  PortLink link;
  if (auto in = attach_tcx(program, ifindex, Way::in)) {
    link.ingress_ = std::move(*in);
    ROSE_TRY(link.egress_, attach_tcx(program, ifindex, Way::out));
    return link;
  }
  link.filtered_ = ifindex;
  for (const auto point : {BPF_TC_INGRESS, BPF_TC_EGRESS}) {
    if (const int err = filter(program, ifindex, point); err != 0) {
      return bpf_failure(fmt::format("cannot attach a classifier to interface {}", ifindex), -err);
    }
  }
  return link;
}

Result<PortLink> PortLink::attach(const bpf_program* program, int ifindex, Way way) {
  route_libbpf_log();
  PortLink link;
  if (auto one = attach_tcx(program, ifindex, way)) {
    (way == Way::in ? link.ingress_ : link.egress_) = std::move(*one);
    return link;
  }
  link.filtered_ = ifindex;
  if (const int err = filter(program, ifindex, way == Way::in ? BPF_TC_INGRESS : BPF_TC_EGRESS); err != 0)
    return bpf_failure(fmt::format("cannot attach a classifier to interface {}", ifindex), -err);
  return link;
}

PortLink::PortLink(PortLink&& other) noexcept
    : ingress_(std::move(other.ingress_)),
      egress_(std::move(other.egress_)),
      filtered_(std::exchange(other.filtered_, 0)) {}

PortLink& PortLink::operator=(PortLink&& other) noexcept {
  if (this != &other) {
    detach();
    ingress_ = std::move(other.ingress_);
    egress_ = std::move(other.egress_);
    filtered_ = std::exchange(other.filtered_, 0);
  }
  return *this;
}

void PortLink::detach() {
  ingress_.reset();
  egress_.reset();
  if (filtered_ == 0) return;
  unfilter(filtered_, BPF_TC_INGRESS);
  unfilter(filtered_, BPF_TC_EGRESS);
  // Remove the clsact qdisc too: nothing else in the deployment's namespace uses it.
  bpf_tc_hook hook = hook_of(filtered_, static_cast<bpf_tc_attach_point>(BPF_TC_INGRESS | BPF_TC_EGRESS));
  (void)bpf_tc_hook_destroy(&hook);
  filtered_ = 0;
}

}  // namespace rose::kernel
