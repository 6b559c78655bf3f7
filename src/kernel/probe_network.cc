// Probes for network namespaces and for programs that see packets.
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <fmt/format.h>
#include <linux/if_link.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sched.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <functional>
#include <sstream>

#include "kernel/attach.h"
#include "kernel/netlink.h"
#include "kernel/probe_child.h"
#include "kernel/probes.h"

namespace rose::kernel::probing {

bool send_to_self() {
  const Fd socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  if (::bind(socket.get(), reinterpret_cast<sockaddr*>(&address), size) != 0 ||
      ::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&address), &size) != 0 ||
      ::sendto(socket.get(), "rose", 4, 0, reinterpret_cast<sockaddr*>(&address), size) != 4) {
    return false;
  }
  // It only matters that the packet was sent, not whether it was delivered or dropped.
  (void)wait_readable(socket.get(), 50);
  return true;
}

namespace {

constexpr int kLoopback = 1;  // loopback is the first interface of every namespace

// Runs `body` in a child with its own network namespace, in which loopback is up. The namespace disappears with the
// child.
Finding in_namespace(const std::function<Finding()>& body) {
  Child child([&body](int socket) {
    const auto found = [&body] {
      if (::unshare(CLONE_NEWNET) != 0) return no_errno("making a network namespace", errno);
      if (const int error = Netlink().up(kLoopback); error != 0) return no_errno("setting its loopback up", error);
      return body();
    }();
    const std::string text = fmt::format("{} {} {}", found.ok ? 1 : 0, found.error, found.detail);
    return ::write(socket, text.data(), text.size()) == static_cast<ssize_t>(text.size()) ? 0 : 1;
  });
  if (!child.started()) return no("no child could be started");
  if (!wait_readable(child.socket(), 2 * kPatienceMs)) return no("the probe did not answer in time");
  char text[1024];
  const ssize_t got = ::read(child.socket(), text, sizeof text);
  child.wait(kPatienceMs);
  if (got <= 0) return no("the probe ended without an answer");
  std::istringstream in(std::string(text, static_cast<std::size_t>(got)));
  Finding found;
  int ok = 0;
  in >> ok >> found.error;
  in.get();
  std::getline(in, found.detail);
  found.ok = ok == 1;
  return found;
}

}  // namespace

Finding probe_netns() {
  return in_namespace([] {
    if (!send_to_self()) return no("no packet could be sent over loopback");
    return yes("a network namespace carried packets");
  });
}

Finding probe_veth() {
  return in_namespace([] {
    const int error = Netlink().add_veth("rose-pa", 0, "rose-pb", -1);
    if (error != 0) return no_errno("making a veth pair", error);
    return yes("a pair was created");
  });
}

Finding probe_bridge() {
  return in_namespace([] {
    Netlink netlink;
    if (const int error = netlink.add_bridge("rose-pbr"); error != 0) return no_errno("making a bridge", error);
    const int error = netlink.add_veth("rose-pa", static_cast<int>(::if_nametoindex("rose-pbr")), "rose-pb", -1);
    if (error != 0) return no_errno("putting an interface into the bridge", error);
    return yes("an interface was added to the bridge");
  });
}

namespace {

// Loads a counting program, attaches it to loopback with `attach`, sends a packet and checks the counter.
Finding count_packets(bpf_prog_type type, int result, int expected, const std::function<Finding(int program)>& attach,
                      const std::function<void()>& detach = {}) {
  const Counter counter;
  if (!counter.ok()) return no_errno("creating a BPF map", counter.error());
  int error = 0;
  const Fd program = load(type, count_and_return(counter, result), error, expected);
  if (!program) return no_errno("loading a packet program", error);
  Finding found = attach(program.get());
  if (!found.ok) return found;
  const bool sent = send_to_self();
  const std::uint64_t seen = counter.value();
  if (detach) detach();
  if (!sent) return no("no packet could be sent over loopback");
  if (seen == 0) return no("attached, but no packet was seen");
  return yes("packets were seen");
}

}  // namespace

Finding probe_tcx() {
  return in_namespace([] {
    Fd link;
    return count_packets(BPF_PROG_TYPE_SCHED_CLS, 0, 0, [&link](int program) {
      link = create_tcx_link(program, kLoopback);
      return link ? yes("") : no_errno("creating a TCX link", errno);
    });
  });
}

Finding probe_clsact() {
  return in_namespace([] {
    LIBBPF_OPTS(bpf_tc_hook, hook, .ifindex = kLoopback, .attach_point = BPF_TC_INGRESS);
    return count_packets(
        BPF_PROG_TYPE_SCHED_CLS, 0, 0,
        [&hook](int program) {
          if (const int error = bpf_tc_hook_create(&hook); error != 0) return no_errno("adding a clsact qdisc", -error);
          LIBBPF_OPTS(bpf_tc_opts, options, .prog_fd = program);
          if (const int error = bpf_tc_attach(&hook, &options); error != 0) return no_errno("adding a filter", -error);
          return yes("");
        },
        [&hook] {
          hook.attach_point = static_cast<bpf_tc_attach_point>(BPF_TC_INGRESS | BPF_TC_EGRESS);
          bpf_tc_hook_destroy(&hook);
        });
  });
}

Finding probe_xdp() {
  if (!xdp_reads_packets()) return no("XDP programs can't read packets by offset (bpf_xdp_load_bytes)");
  return in_namespace([] {
    Fd link;
    return count_packets(BPF_PROG_TYPE_XDP, XDP_PASS, BPF_XDP, [&link](int program) {
      LIBBPF_OPTS(bpf_link_create_opts, options, .flags = XDP_FLAGS_SKB_MODE);
      link = Fd(bpf_link_create(program, kLoopback, BPF_XDP, &options));
      if (link.get() < 0) return no_errno("attaching an XDP program", errno);
      return yes("");
    });
  });
}

}  // namespace rose::kernel::probing
