// Whether this kernel's verifier accepts programs: each is loaded by itself, so that a refusal names its program, and
// all of them, including those that are rarely used.
#pragma once

#include <bpf/libbpf.h>

#include <catch2/catch.hpp>
#include <functional>
#include <memory>
#include <string>

#include "kernel/attach.h"
#include "kernel/core_types.h"

namespace rose::test {

// `prepare` sets what must be fixed before loading, and decides whether the program of that name is loaded here.
template <typename Skeleton>
void load_each(const std::function<bool(Skeleton&, const std::string&)>& prepare) {
  kernel::route_libbpf_log();
  for (int chosen = 0;; ++chosen) {
    LIBBPF_OPTS(bpf_object_open_opts, options, .btf_custom_path = kernel::core_types(Skeleton::elf_bytes));
    const std::unique_ptr<Skeleton, void (*)(Skeleton*)> skeleton(Skeleton::open(&options), Skeleton::destroy);
    REQUIRE(skeleton);
    std::string name;
    int i = 0;
    bpf_program* program = nullptr;
    bpf_object__for_each_program(program, skeleton->obj) {
      bpf_program__set_autoload(program, i == chosen);
      if (i++ == chosen) name = bpf_program__name(program);
    }
    if (name.empty()) {
      CHECK(chosen > 0);
      return;
    }
    if (!prepare(*skeleton, name)) continue;
    INFO(name);
    CHECK(Skeleton::load(skeleton.get()) == 0);
  }
}

}  // namespace rose::test
