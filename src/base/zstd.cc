#include "base/zstd.h"

#include <fmt/format.h>
#include <zstd.h>

#include <memory>
#include <vector>

#include "base/units.h"

namespace rose {
namespace {

constexpr int kLevel = 12;          // higher than zstd's default, because files are packed once but read often
constexpr int kLongestWindow = 27;  // log2 of bytes: 128 MiB. Files that need a larger window are refused

}  // namespace

bool is_zstd(std::string_view bytes) { return bytes.starts_with(std::string_view("\x28\xb5\x2f\xfd", 4)); }

Result<std::string> zstd_pack(std::string_view bytes) {
  std::string out(::ZSTD_compressBound(bytes.size()), '\0');
  const std::size_t size = ::ZSTD_compress(out.data(), out.size(), bytes.data(), bytes.size(), kLevel);
  if (::ZSTD_isError(size) != 0)
    return fail(ErrorKind::environment, fmt::format("zstd cannot pack: {}", ::ZSTD_getErrorName(size)));
  out.resize(size);
  return out;
}

Result<std::string> zstd_unpack(std::string_view bytes, std::size_t most, std::string_view name) {
  const std::unique_ptr<ZSTD_DStream, decltype(&::ZSTD_freeDStream)> stream(::ZSTD_createDStream(),
                                                                            &::ZSTD_freeDStream);
  if (stream == nullptr) return fail(ErrorKind::environment, "zstd: no memory for unpacking");
  ::ZSTD_DCtx_setParameter(stream.get(), ZSTD_d_windowLogMax, kLongestWindow);
  std::string out;
  std::vector<char> room(::ZSTD_DStreamOutSize());
  ZSTD_inBuffer in{bytes.data(), bytes.size(), 0};
  for (std::size_t left = 1; left != 0 || in.pos < in.size;) {
    ZSTD_outBuffer to{room.data(), room.size(), 0};
    const std::size_t before = in.pos;
    left = ::ZSTD_decompressStream(stream.get(), &to, &in);
    if (::ZSTD_isError(left) != 0)
      return fail(ErrorKind::input,
                  fmt::format("{}: damaged zstd data near byte {}: {}", name, in.pos, ::ZSTD_getErrorName(left)));
    if (out.size() + to.pos > most)
      return fail(ErrorKind::input, fmt::format("{}: unpacked it is larger than {}", name, format_size(most)));
    out.append(room.data(), to.pos);
    if (left != 0 && in.pos == before && to.pos == 0)
      return fail(ErrorKind::input, fmt::format("{}: its zstd data ends too early", name));
  }
  return out;
}

}  // namespace rose
