// Prints as a table which programs of an injection this kernel's verifier accepts: kernel_kernel "[loads]".
#include "inject/shared.h"
#include "kernel/probe.h"
#include "loads.h"
#include "skel/inject.old.skel.h"
#include "skel/inject.skel.h"
#include "skel/network.old.skel.h"
#include "skel/network.skel.h"

using rose::test::prepare_uprobes;
using rose::test::table;

TEST_CASE("the kernel loads an injection's programs, and a table is printed", "[loads]") {
  const bool multi = rose::kernel::has_uprobe_multi();
  const bool can_override = rose::kernel::probe("override_return").ok;
  for (const bool with : {false, true}) {
    if (with && !multi) continue;
    rose::test::load_each<rose_inject>(
        {rose_inject__create_skeleton, rose_inject_old__elf_bytes},
        [&](rose_inject& skeleton, const std::string& name) {
          prepare_uprobes(skeleton, with);
          return name != "rose_call" || can_override;
        },
        table(with ? "inject (uprobe_multi)" : "inject"));
  }
  for (const bool links : {false, true}) {
    rose::test::load_each<rose_network>(
        {rose_network__create_skeleton, rose_network_old__elf_bytes},
        [&](rose_network& skeleton, const std::string&) {
          skeleton.rodata->rose_has_links = links;
          return true;
        },
        table(links ? "network (bad links)" : "network"));
  }
}

TEST_CASE("an injection's objects for old kernels have the same constants", "[loads]") {
  rose::test::check_alike(rose_inject__elf_bytes, rose_inject_old__elf_bytes);
  rose::test::check_alike(rose_network__elf_bytes, rose_network_old__elf_bytes);
}
