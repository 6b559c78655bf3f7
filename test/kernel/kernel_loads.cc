// Prints as a table which programs of the tracer this kernel's verifier accepts: kernel_kernel "[loads]".
#include <algorithm>
#include <iterator>

#include "bpf/tracer.h"
#include "loads.h"
#include "skel/exchange.skel.h"
#include "skel/tracer.old.skel.h"
#include "skel/tracer.skel.h"

using rose::test::prepare_uprobes;
using rose::test::table;

TEST_CASE("the kernel loads the tracer's programs, and a table is printed", "[loads]") {
  const bool multi = rose::kernel::has_uprobe_multi();
  fmt::print("kernel programs: {}\n", rose::kernel::is_old() ? "for Linux before 5.17" : "for Linux from 5.17 on");
  // Load the programs with the smallest and with the largest settings that a trace may need.
  for (const bool all : {false, true}) {
    rose::test::load_each<rose_tracer>(
        {rose_tracer__create_skeleton, rose_tracer_old__elf_bytes},
        [&](rose_tracer& skeleton, const std::string& name) {
          if (name == "rose_xdp" && !rose::kernel::xdp_reads_packets()) return false;
          prepare_uprobes(skeleton, multi && all);
          auto& fixed = *skeleton.rodata;
          std::fill(std::begin(fixed.rose_changing), std::end(fixed.rose_changing), ~0ull);
          std::fill(std::begin(fixed.rose_classes), std::end(fixed.rose_classes), ROSE_SIZED);
          fixed.rose_node_count = all ? ROSE_MOST_NODES : 1;
          fixed.rose_level_count = all ? ROSE_MOST_LEVELS : 0;
          for (std::uint32_t i = 0; i < fixed.rose_level_count; ++i) fixed.rose_levels[i] = ROSE_MOST_LEVELS - i;
          fixed.rose_storm_slots = 64;
          fixed.rose_ring_limit = 1 << 20;
          fixed.rose_uring_form = rose::kernel::uring_form();
          fixed.rose_network.by_iterator = all;
          return true;
        },
        table(all ? "tracer (everything)" : "tracer (little)"));
  }
  rose::test::load_each<rose_exchange>(
      {rose_exchange__create_skeleton, nullptr},
      [](rose_exchange& skeleton, const std::string&) {
        skeleton.rodata->rose_command_level = 3;
        return true;
      },
      table("exchange"));
}

TEST_CASE("the tracer's object for old kernels has the same constants", "[loads]") {
  rose::test::check_alike(rose_tracer__elf_bytes, rose_tracer_old__elf_bytes);
}
