// Checks whether this kernel's verifier accepts programs. Each program is loaded separately, so that a refusal names
// the program. Programs that are rarely used are included.
#pragma once

#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <fmt/format.h>

#include <catch2/catch.hpp>
#include <cstdio>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "kernel/attach.h"
#include "kernel/old_kernel.h"

namespace rose::test {

// Opens one of the objects, for kernel::open_skeleton.
template <typename Skeleton>
struct Object {
  int (*create)(Skeleton*);
  const void* (*old_bytes)(std::size_t*);
};

// Called with the name of the program and the kernel's message. If the message is empty, the program was accepted.
using OnLoad = std::function<void(const std::string&, const std::string&)>;

// The reason is near the end of the verifier's log. The last line only counts instructions.
inline std::string reason(int error, const std::string& log) {
  std::string text = std::strerror(-error);
  std::size_t end = log.find_last_not_of('\n');
  for (int line = 0; line < 3 && end != std::string::npos; ++line) {
    const std::size_t begin = log.rfind('\n', end);
    const std::string one = log.substr(begin == std::string::npos ? 0 : begin + 1, end - begin);
    if (!one.starts_with("processed ") && !one.empty() && one[0] != '\n')
      return text + ": " + one.substr(0, one.find('\n'));
    if (begin == std::string::npos) break;
    end = begin == 0 ? std::string::npos : begin - 1;
  }
  return text;
}

// `prepare` sets what must be fixed before loading, and decides whether the named program is loaded on this machine.
template <typename Skeleton>
void load_each(const Object<Skeleton>& object, const std::function<bool(Skeleton&, const std::string&)>& prepare,
               const OnLoad& on_load = {}) {
  kernel::route_libbpf_log();
  for (int chosen = 0;; ++chosen) {
    const std::unique_ptr<Skeleton, void (*)(Skeleton*)> skeleton(
        kernel::open_skeleton(object.create, object.old_bytes), Skeleton::destroy);
    REQUIRE(skeleton);
    bpf_program* the_one = nullptr;
    std::string name;
    int i = 0;
    bpf_program* program = nullptr;
    bpf_object__for_each_program(program, skeleton->obj) {
      bpf_program__set_autoload(program, i == chosen);
      if (i++ != chosen) continue;
      name = bpf_program__name(program);
      the_one = program;
    }
    if (name.empty()) {
      CHECK(chosen > 0);
      return;
    }
    if (!prepare(*skeleton, name)) continue;
    INFO(name);
    std::string log(on_load ? 1 << 24 : 0, '\0');
    constexpr std::uint32_t kReason = 4;  // this is BPF_LOG_STATS, which prints no line for each instruction
    if (on_load) bpf_program__set_log_buf(the_one, log.data(), log.size());
    if (on_load) bpf_program__set_log_level(the_one, kReason);
    const int error = Skeleton::load(skeleton.get());
    CHECK(error == 0);
    if (on_load) on_load(name, error == 0 ? "" : reason(error, log.c_str()));
  }
}

// The offsets of the variables in .rodata and .bss. The structures of the skeletons contain the same offsets.
inline std::map<std::string, std::pair<std::uint32_t, std::uint32_t>> variables(const void* (*bytes)(std::size_t*)) {
  std::map<std::string, std::pair<std::uint32_t, std::uint32_t>> out;
  std::size_t size = 0;
  const void* elf = bytes(&size);
  const std::unique_ptr<bpf_object, decltype(&bpf_object__close)> object(bpf_object__open_mem(elf, size, nullptr),
                                                                         bpf_object__close);
  REQUIRE(object);
  const btf* types = bpf_object__btf(object.get());
  for (const char* section : {".rodata", ".bss"}) {
    const int id = btf__find_by_name_kind(types, section, BTF_KIND_DATASEC);
    if (id <= 0) continue;
    const btf_type* type = btf__type_by_id(types, static_cast<std::uint32_t>(id));
    for (std::uint32_t i = 0; i < btf_vlen(type); ++i) {
      const auto& one = btf_var_secinfos(type)[i];
      const char* name = btf__name_by_offset(types, btf__type_by_id(types, one.type)->name_off);
      out[section + std::string(" ") + name] = {one.offset, one.size};
    }
  }
  return out;
}

// One skeleton opens both objects, so the variables that user space writes must have the same offsets in both.
inline void check_alike(const void* (*now)(std::size_t*), const void* (*old)(std::size_t*)) {
  const auto here = variables(now), there = variables(old);
  for (const auto& [name, place] : here) {
    INFO(name);
    const bool own = name.rfind('.') != name.find('.');  // a constant inside a function
    if (!own) CHECK((there.contains(name) && there.at(name) == place));
  }
}

// Prints one line for each program.
inline OnLoad table(const std::string& object) {
  return [object](const std::string& name, const std::string& why) {
    fmt::print("{:<24} {:<20} {}\n", object, name, why.empty() ? "loaded" : why);
    std::fflush(stdout);
  };
}

// With `multi`, prepares uprobe programs for uprobe_multi links. Otherwise does not change them.
template <typename Skeleton>
void prepare_uprobes(Skeleton& skeleton, bool multi) {
  bpf_program* program = nullptr;
  bpf_object__for_each_program(program, skeleton.obj) {
    if (multi && std::string(bpf_program__section_name(program)) == "uprobe") kernel::prepare_uprobe(program);
  }
}

}  // namespace rose::test
