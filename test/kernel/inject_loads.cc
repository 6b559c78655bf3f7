// Every program of an injection is accepted by this kernel's verifier.
#include "inject/shared.h"
#include "kernel/probe.h"
#include "loads.h"
#include "skel/inject.old.skel.h"
#include "skel/inject.skel.h"
#include "skel/network.old.skel.h"
#include "skel/network.skel.h"

TEST_CASE("the kernel loads every program of an injection", "[loads]") {
  const bool can_override = rose::kernel::probe("override_return").ok;
  rose::test::load_each<rose_inject>(
      {rose_inject__create_skeleton, rose_inject_old__elf_bytes},
      [&](rose_inject&, const std::string& name) { return name != "rose_call" || can_override; });
  rose::test::load_each<rose_network>({rose_network__create_skeleton, rose_network_old__elf_bytes},
                                      [](rose_network&, const std::string&) { return true; });
}
