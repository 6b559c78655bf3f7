#include "observe/exchange.h"

#include <arpa/inet.h>
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <linux/types.h>

#include <cerrno>
#include <cstring>
#include <optional>

#include "base/fd.h"
#include "exchanged.h"
#include "kernel/attach.h"
#include "kernel/cgroup2.h"
#include "kernel/old_kernel.h"
#include "skel/exchange.skel.h"

namespace rose::observe {
namespace {

std::optional<rose_node_address> address_of(const std::string& text) {
  rose_node_address address{};
  if (::inet_pton(AF_INET6, text.c_str(), address.bytes) == 1) return address;
  address.bytes[10] = address.bytes[11] = 0xff;
  if (::inet_pton(AF_INET, text.c_str(), address.bytes + 12) == 1) return address;
  return std::nullopt;
}

class CountedExchange final : public Exchange {
 public:
  CountedExchange() = default;
  CountedExchange(const CountedExchange&) = delete;
  CountedExchange& operator=(const CountedExchange&) = delete;
  ~CountedExchange() override {
    links_.clear();
    rose_exchange__destroy(programs_);
  }

  Result<void> begin(const std::filesystem::path& commands, const std::vector<std::string>& addresses) {
    kernel::route_libbpf_log();
    ROSE_TRY(const kernel::Cgroup cgroup, kernel::find_cgroup(commands));
    programs_ = kernel::open_skeleton(rose_exchange__create_skeleton);
    if (programs_ == nullptr) return kernel::bpf_failure("cannot open the programs that count packets", errno);
    programs_->rodata->rose_command_level = cgroup.level + 1;
    if (const int err = rose_exchange__load(programs_); err != 0)
      return kernel::bpf_failure("cannot load the programs that count packets", -err);
    for (const std::string& text : addresses) {
      const std::optional<rose_node_address> address = address_of(text);
      const std::uint32_t one = 1;
      if (!address) continue;
      if (bpf_map_update_elem(bpf_map__fd(programs_->maps.rose_addresses), &*address, &one, BPF_ANY) != 0)
        return kernel::bpf_failure("cannot count the packets of a node", errno);
    }
    for (const auto* program : {programs_->progs.rose_sent, programs_->progs.rose_received}) {
      ROSE_TRY(Fd link, kernel::attach_cgroup(program, commands));
      links_.push_back(std::move(link));
    }
    return {};
  }

  Exchanged of(std::uint64_t cgroup_id) const override {
    rose_exchanged counted{};
    (void)bpf_map_lookup_elem(bpf_map__fd(programs_->maps.rose_exchanges), &cgroup_id, &counted);
    return {counted.sent, counted.received};
  }

 private:
  rose_exchange* programs_ = nullptr;
  std::vector<Fd> links_;
};

}  // namespace

Result<std::unique_ptr<Exchange>> Exchange::start(const std::filesystem::path& commands,
                                                  const std::vector<std::string>& addresses) {
  auto exchange = std::make_unique<CountedExchange>();
  ROSE_CHECK(exchange->begin(commands, addresses));
  return exchange;
}

}  // namespace rose::observe
