// Every program of the tracer is accepted by this kernel's verifier.
#include <bpf/btf.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <tuple>

#include "loads.h"
#include "observe_support.h"
#include "skel/exchange.skel.h"
#include "skel/tracer.old.skel.h"

TEST_CASE("the kernel loads every program of the tracer, with any number of nodes and levels", "[loads]") {
  const auto [nodes, levels] =
      GENERATE(table<std::uint32_t, std::uint32_t>({{1, 0}, {3, 1}, {ROSE_MOST_NODES, ROSE_MOST_LEVELS}}));
  CAPTURE(nodes, levels);
  rose::test::load_each<rose_tracer>(
      {rose_tracer__create_skeleton, rose_tracer_old__elf_bytes}, [&](rose_tracer& skeleton, const std::string&) {
        auto& fixed = *skeleton.rodata;
        std::fill(std::begin(fixed.rose_changing), std::end(fixed.rose_changing), ~0ull);
        std::fill(std::begin(fixed.rose_classes), std::end(fixed.rose_classes), ROSE_SIZED);
        fixed.rose_node_count = nodes;
        fixed.rose_level_count = levels;
        for (std::uint32_t i = 0; i < levels; ++i) fixed.rose_levels[i] = levels - i;
        fixed.rose_storm_slots = 64;
        fixed.rose_ring_limit = 1 << 20;
        return true;
      });
}

namespace {

using Btf = std::unique_ptr<btf, decltype(&btf__free)>;
// The members of a structure: name, offset in bits, and width as a bit field. The entry with an empty name stands for
// the structure itself and has its size.
using Form = std::set<std::tuple<std::string, std::uint32_t, std::uint32_t>>;

std::multimap<std::string, Form> structures(const btf* types) {
  std::multimap<std::string, Form> out;
  for (std::uint32_t id = 1; id < btf__type_cnt(types); ++id) {
    const btf_type* type = btf__type_by_id(types, id);
    if (!btf_is_composite(type) || type->name_off == 0) continue;
    Form form{{"", 0, type->size}};
    for (std::uint32_t i = 0; i < btf_vlen(type); ++i)
      form.emplace(btf__name_by_offset(types, btf_members(type)[i].name_off), btf_member_bit_offset(type, i),
                   btf_member_bitfield_size(type, i));
    out.emplace(btf__name_by_offset(types, type->name_off), std::move(form));
  }
  return out;
}

}  // namespace

TEST_CASE("the types given to CO-RE are a small part of the kernel's own", "[loads]") {
  const char* path = rose::kernel::core_types(rose_tracer__elf_bytes);
  REQUIRE(path != nullptr);
  CHECK(rose::kernel::core_types(rose_tracer__elf_bytes) == path);  // the file is made only once
  const Btf few(btf__parse(path, nullptr), btf__free), all(btf__load_vmlinux_btf(), btf__free);
  REQUIRE(few);
  REQUIRE(all);
  CHECK(btf__type_cnt(few.get()) < btf__type_cnt(all.get()) / 10);
  const auto kernels = structures(all.get()), ours = structures(few.get());
  CHECK(ours.contains("task_struct"));
  CHECK(ours.contains("sock_common"));  // which is a member of another structure
  for (const auto& [name, form] : ours) {
    INFO(name);
    const auto [from, to] = kernels.equal_range(name);
    CHECK(std::any_of(from, to, [&](const auto& one) { return one.second == form; }));
  }
  // All types of one name must be included, because CO-RE compares their members to choose among them.
  for (const char* name : {"task_struct", "sock", "mount"}) CHECK(ours.count(name) == kernels.count(name));
}

TEST_CASE("the kernel loads the programs that count what commands exchange", "[loads]") {
  rose::test::load_each<rose_exchange>({rose_exchange__create_skeleton, nullptr},
                                       [](rose_exchange& skeleton, const std::string&) {
                                         skeleton.rodata->rose_command_level = 3;
                                         return true;
                                       });
}
