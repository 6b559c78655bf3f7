#include "kernel/core_types.h"

#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <fmt/format.h>
#include <linux/bpf.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>

#include "base/fd.h"
#include "base/log.h"
#include "kernel/attach.h"
#include "kernel/kernel_types.h"

namespace rose::kernel {
namespace {

struct Free {
  void operator()(btf* types) const { btf__free(types); }
  void operator()(btf_ext* ext) const { btf_ext__free(ext); }
};
using Btf = std::unique_ptr<btf, Free>;

std::string path_of(const Fd& fd) { return fmt::format("/proc/self/fd/{}", fd.get()); }

Fd in_memory(const char* name, const void* data, std::size_t size) {
  Fd file(::memfd_create(name, MFD_CLOEXEC));
  if (!file || ::write(file.get(), data, size) != static_cast<ssize_t>(size)) return {};
  return file;
}

// True for the kinds of types that CO-RE looks up by name.
bool has_name_of_its_own(const btf_type* type) {
  return btf_is_composite(type) || btf_is_any_enum(type) || btf_is_typedef(type) || btf_is_int(type);
}

std::string_view name_in(const btf* types, const btf_type* type) {
  const char* name = btf__name_by_offset(types, type->name_off);
  return name == nullptr ? std::string_view{} : std::string_view{name};
}

// The name without the ___flavor suffix that distinguishes versions of one type. Follows libbpf's implementation.
std::string_view essential(std::string_view name) {
  for (std::size_t at = name.rfind("___"); at != std::string_view::npos && at > 0; at = name.rfind("___", at - 1))
    if (name[at - 1] != '_' && at + 3 < name.size() && name[at + 3] != '_') return name.substr(0, at);
  return name;
}

// Copies types and the types embedded in them. Pointed-to types are not copied, because CO-RE never follows a pointer.
class Copy {
 public:
  Copy(const btf* from, btf* to) : from_(from), to_(to) {}

  // Returns the id of the copy, or a negative number if it cannot be copied.
  int take(std::uint32_t id) {
    if (id == 0) return 0;
    const auto known = taken_.find(id);
    if (known != taken_.end()) return known->second;
    const int copy = make(btf__type_by_id(from_, id));
    taken_.emplace(id, copy);
    return copy;
  }

 private:
  int make(const btf_type* type) {
    const char* name = btf__name_by_offset(from_, type->name_off);
    switch (btf_kind(type)) {
      case BTF_KIND_INT: return btf__add_int(to_, name, type->size, btf_int_encoding(type));
      case BTF_KIND_FLOAT: return btf__add_float(to_, name, type->size);
      case BTF_KIND_PTR: return btf__add_ptr(to_, 0);
      case BTF_KIND_TYPEDEF: {
        const int inner = take(type->type);
        return inner < 0 ? -1 : btf__add_typedef(to_, name, inner);
      }
      case BTF_KIND_CONST:
      case BTF_KIND_VOLATILE:
      case BTF_KIND_RESTRICT:
      case BTF_KIND_TYPE_TAG: return take(type->type);  // does not affect the offsets of fields
      case BTF_KIND_ARRAY: {
        const auto* array = btf_array(type);
        const int index = take(array->index_type);
        const int element = take(array->type);
        return index < 0 || element < 0 ? -1 : btf__add_array(to_, index, element, array->nelems);
      }
      case BTF_KIND_ENUM: {
        const int copy = btf__add_enum(to_, name, type->size);
        for (std::uint32_t i = 0; copy >= 0 && i < btf_vlen(type); ++i) {
          const auto& value = btf_enum(type)[i];
          if (btf__add_enum_value(to_, btf__name_by_offset(from_, value.name_off), value.val) != 0) return -1;
        }
        return copy;
      }
      case BTF_KIND_ENUM64: {
        const int copy = btf__add_enum64(to_, name, type->size, btf_kflag(type));
        for (std::uint32_t i = 0; copy >= 0 && i < btf_vlen(type); ++i) {
          const auto& value = btf_enum64(type)[i];
          if (btf__add_enum64_value(to_, btf__name_by_offset(from_, value.name_off), btf_enum64_value(&value)) != 0)
            return -1;
        }
        return copy;
      }
      case BTF_KIND_STRUCT:
      case BTF_KIND_UNION: return composite(type, name);
      default: return -1;
    }
  }

  int composite(const btf_type* type, const char* name) {
    const btf_member* members = btf_members(type);
    for (std::uint32_t i = 0; i < btf_vlen(type); ++i)
      if (take(members[i].type) < 0) return -1;  // a member's type must precede the type that contains it
    const int copy =
        btf_is_struct(type) ? btf__add_struct(to_, name, type->size) : btf__add_union(to_, name, type->size);
    for (std::uint32_t i = 0; copy >= 0 && i < btf_vlen(type); ++i) {
      if (btf__add_field(to_, btf__name_by_offset(from_, members[i].name_off), take(members[i].type),
                         btf_member_bit_offset(type, i), btf_member_bitfield_size(type, i)) != 0)
        return -1;
    }
    return copy;
  }

  const btf* from_;
  btf* to_;
  std::unordered_map<std::uint32_t, int> taken_;
};

// The header of .BTF.ext (Documentation/bpf/btf.rst). Offsets are relative to its end.
struct ExtHeader {
  std::uint16_t magic;
  std::uint8_t version, flags;
  std::uint32_t length;
  std::uint32_t functions_at, functions_length, lines_at, lines_length, relocations_at, relocations_length;
};

// The types whose fields the programs access: the root type of each CO-RE relocation. The input is rose's own skeleton,
// which libbpf has already read, so it is known to be well formed.
std::set<std::uint32_t> roots(const btf_ext* ext) {
  std::set<std::uint32_t> out;
  std::uint32_t size = 0;
  const auto* data = static_cast<const std::byte*>(btf_ext__get_raw_data(ext, &size));
  ExtHeader header{};
  if (data == nullptr || size < sizeof header) return out;
  std::memcpy(&header, data, sizeof header);
  if (header.length < sizeof header) return out;
  const std::byte* at = data + header.length + header.relocations_at;
  const std::byte* end = at + header.relocations_length;
  const auto number = [&at] {
    std::uint32_t value = 0;
    std::memcpy(&value, at, sizeof value);
    at += sizeof value;
    return value;
  };
  if (at == end) return out;
  const std::uint32_t each = number();
  while (at < end) {  // for each ELF section with code
    number();         // the section's name
    for (std::uint32_t left = number(); left > 0; --left, at += each) {
      bpf_core_relo one{};
      std::memcpy(&one, at, sizeof one);
      out.insert(one.type_id);
    }
  }
  return out;
}

// Copies the kernel types that CO-RE will look up. Returns null if one of them cannot be copied, or is not in vmlinux.
// A type that is not in vmlinux may be defined by a module, where libbpf can find it.
Btf chosen(const btf* kernel, const btf* object, const std::set<std::uint32_t>& wanted) {
  Btf few(btf__new_empty());
  if (!few) return {};
  std::unordered_map<std::string_view, bool> found;  // by name: whether the kernel has the type
  for (std::uint32_t id : wanted) found.emplace(essential(name_in(object, btf__type_by_id(object, id))), false);
  Copy copy(kernel, few.get());
  for (std::uint32_t id = 1; id < btf__type_cnt(kernel); ++id) {
    const btf_type* type = btf__type_by_id(kernel, id);
    if (type->name_off == 0 || !has_name_of_its_own(type)) continue;
    const auto name = found.find(essential(name_in(kernel, type)));
    if (name == found.end()) continue;
    if (copy.take(id) < 0) return {};
    name->second = true;
  }
  const bool all = std::all_of(found.begin(), found.end(), [](const auto& one) { return one.second; });
  return all ? std::move(few) : Btf{};
}

// Returns no descriptor if libbpf has to search all types itself.
Fd make(const void* elf, std::size_t size) {
  const auto object_file = in_memory("rose-object", elf, size);
  btf_ext* read_ext = nullptr;
  const Btf object(object_file ? btf__parse_elf(path_of(object_file).c_str(), &read_ext) : nullptr);
  const std::unique_ptr<btf_ext, Free> ext(read_ext);
  const std::shared_ptr<const btf> kernel = kernel_types();
  if (!object || !ext || !kernel) return {};
  const Btf few = chosen(kernel.get(), object.get(), roots(ext.get()));
  std::uint32_t bytes = 0;
  const void* raw = few ? btf__raw_data(few.get(), &bytes) : nullptr;
  return raw != nullptr ? in_memory("rose-types", raw, bytes) : Fd();
}

}  // namespace

const char* core_types(const void* (*elf_bytes)(std::size_t* size)) {
  struct Made {
    Fd file;
    std::string path;
  };
  static std::mutex mutex;
  static std::map<const void*, Made> made;
  std::size_t size = 0;
  const void* elf = elf_bytes(&size);
  const std::lock_guard lock(mutex);
  const auto [one, fresh] = made.try_emplace(elf);
  if (fresh) {
    route_libbpf_log();
    one->second.file = make(elf, size);
    if (one->second.file) one->second.path = path_of(one->second.file);
    if (!one->second.file) log::debug("libbpf searches all types of the kernel");
  }
  // If /proc belongs to a PID namespace without this process, /proc/self leads nowhere. libbpf then searches all types.
  return !one->second.path.empty() && ::access(one->second.path.c_str(), R_OK) == 0 ? one->second.path.c_str()
                                                                                    : nullptr;
}

}  // namespace rose::kernel
