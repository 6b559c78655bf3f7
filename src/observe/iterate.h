// Reads the output of a BPF iterator that writes records of one size.
#pragma once

#include <bpf/bpf.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <optional>
#include <vector>

#include "base/fd.h"

namespace rose::observe {

// `link`: descriptor of the attached iterator's link. Returns nothing if the iterator cannot be read.
template <typename Record>
std::optional<std::vector<Record>> iterate(int link) {
  const Fd walk(link < 0 ? -1 : bpf_iter_create(link));
  if (!walk) return std::nullopt;
  std::vector<Record> records;
  std::array<std::byte, 256 * sizeof(Record)> bytes;
  std::size_t filled = 0;
  for (;;) {
    const ssize_t n = ::read(walk.get(), bytes.data() + filled, bytes.size() - filled);
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) continue;
    if (n < 0) return std::nullopt;
    if (n == 0) break;
    filled += static_cast<std::size_t>(n);
    const std::size_t whole = filled / sizeof(Record);
    const std::size_t before = records.size();
    records.resize(before + whole);
    std::memcpy(records.data() + before, bytes.data(), whole * sizeof(Record));
    filled -= whole * sizeof(Record);
    std::memmove(bytes.data(), bytes.data() + whole * sizeof(Record), filled);
  }
  return records;
}

}  // namespace rose::observe
