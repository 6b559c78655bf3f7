// A copied thread of an untrusted process, with a file of that process: no bytes may make the unwinder read outside the
// copy and the file, or run forever. The input consists of 17 registers, 4 mappings, a stack (half of the rest, at most
// 4 KiB), and the file. A mapping has three words: start, end, and the file offset with a bit that is set if there is a
// file.
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>

#include <fmt/format.h>

#include "base/fd.h"
#include "symbols/unwind.h"

using namespace rose::symbols;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  constexpr std::size_t kMaps = 4, kHead = 17 * 8 + kMaps * 24;
  if (size < kHead) return 0;
  Snapshot snapshot;
  std::memcpy(snapshot.registers.data(), data, 17 * 8);
  const std::size_t stack = std::min<std::size_t>((size - kHead) / 2, 4096);
  snapshot.stack.assign(data + kHead, data + kHead + stack);
  const rose::Fd file(::memfd_create("rose-fuzz", MFD_CLOEXEC));
  if (!file) std::abort();
  for (std::size_t done = kHead + stack; done < size;) {
    const ssize_t wrote = ::write(file.get(), data + done, size - done);
    if (wrote <= 0) std::abort();
    done += static_cast<std::size_t>(wrote);
  }
  for (std::size_t i = 0; i < kMaps; ++i) {
    std::uint64_t words[3];
    std::memcpy(words, data + 17 * 8 + i * 24, sizeof words);
    snapshot.maps.push_back({words[0], words[1], words[2] >> 1,
                             (words[2] & 1) != 0 ? fmt::format("/proc/self/fd/{}", file.get()) : "", "/bin/fuzz"});
  }
  const auto unwound = unwind(snapshot, 1'000'000'000);
  if (unwound.frames.empty() || unwound.frames.size() > rose::symbols::kMostFrames) std::abort();
  return 0;
}
