// Speeds up CO-RE. libbpf before 1.6 scans all types of the kernel (more than 100,000) once for each type that an
// object uses. This code scans them once for all types of the object.
#pragma once

#include <cstddef>

namespace rose::kernel {

// A value for bpf_object_open_opts::btf_custom_path: the path of a file with only those kernel types that the object
// uses, or null, which makes libbpf search all types. The file is made once per object, and its path is valid only in
// this process. `elf_bytes` is the skeleton's NAME__elf_bytes.
[[nodiscard]] const char* core_types(const void* (*elf_bytes)(std::size_t* size));

}  // namespace rose::kernel
