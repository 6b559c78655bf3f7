#include "symbols/mini_debug_info.h"

#include <lzma.h>

#include <algorithm>

namespace rose::symbols {
namespace {

// most memory for the decoder, including its dictionary
constexpr std::uint64_t kMostMemory = std::uint64_t{128} << 20;
// Most bytes of the unpacked file. The symbol tables of the largest programs have tens of MiB.
constexpr std::size_t kMostBytes = std::size_t{256} << 20;

struct StreamEnd {
  lzma_stream& stream;
  ~StreamEnd() { lzma_end(&stream); }
};

}  // namespace

std::vector<char> unpack_mini_debug_info(std::span<const std::uint8_t> section) {
  lzma_stream stream = LZMA_STREAM_INIT;
  if (section.empty() || lzma_stream_decoder(&stream, kMostMemory, 0) != LZMA_OK) return {};
  const StreamEnd end{stream};
  stream.next_in = section.data();
  stream.avail_in = section.size();
  std::vector<char> bytes;
  for (lzma_ret state = LZMA_OK; state == LZMA_OK;) {
    const std::size_t done = bytes.size();
    if (done >= kMostBytes) return {};
    bytes.resize(std::min(kMostBytes, std::max<std::size_t>(1 << 16, done * 2)));
    stream.next_out = reinterpret_cast<std::uint8_t*>(bytes.data() + done);
    stream.avail_out = bytes.size() - done;
    state = lzma_code(&stream, LZMA_FINISH);
    bytes.resize(bytes.size() - stream.avail_out);
    if (state != LZMA_OK && state != LZMA_STREAM_END) return {};
  }
  bytes.shrink_to_fit();
  return bytes;
}

}  // namespace rose::symbols
