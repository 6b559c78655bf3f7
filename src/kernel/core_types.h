// CO-RE asks the kernel's BTF where the fields of a structure are. libbpf (before 1.6) walks through all of the
// kernel's types, of which there are more than 100,000, once for each type that an object names. What is here does it
// once for all of them.
#pragma once

#include <cstddef>

namespace rose::kernel {

// For bpf_object_open_opts::btf_custom_path: a file with those of the kernel's types only that the object has in its
// own BTF, or null: then libbpf looks for itself. Made once for each object; valid as long as the process, and in it
// alone. `elf_bytes` is the skeleton's NAME__elf_bytes.
[[nodiscard]] const char* core_types(const void* (*elf_bytes)(std::size_t* size));

}  // namespace rose::kernel
