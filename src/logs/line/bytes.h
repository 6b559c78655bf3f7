// The bytes of a log file: plain, or packed by gzip, xz, zstd or bzip2 (recognised by their first bytes, not by the
// name). Damage ends the bytes early and is reported; it is never an error of the whole.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "base/fd.h"
#include "base/result.h"

namespace rose::logs {

class Bytes {
 public:
  static constexpr std::uint64_t kMostUnpacked = std::uint64_t{16}
                                                 << 30;  // a packed file that claims to be larger ends here

  // ErrorKind::input when it cannot be opened or is no regular file or pipe. `folder`: see logs::Input.
  [[nodiscard]] static Result<Bytes> open(const std::filesystem::path& path, const std::filesystem::path& folder = {});
  [[nodiscard]] static Bytes of(std::string content);  // already in memory; may be packed too

  Bytes(Bytes&&) noexcept;
  Bytes& operator=(Bytes&&) noexcept;
  ~Bytes();

  // Fills `into` from its beginning; fewer bytes than asked only at the end. 0: that was all.
  [[nodiscard]] std::size_t read(std::span<char> into);

  [[nodiscard]] std::string_view packing() const;  // "", "gzip", "xz", "zstd", "bzip2"
  // One sentence when the bytes ended before the file did; else "".
  [[nodiscard]] const std::string& damage() const;
  // How large the file itself is; 0: not known (a pipe).
  [[nodiscard]] std::uint64_t file_size() const;
  // When the file was last written, wall-clock ns; 0: not known.
  [[nodiscard]] std::int64_t modified_ns() const;

  // The decompressors; public for bytes.cc alone.
  struct Inner;

 private:
  explicit Bytes(std::unique_ptr<Inner> inner);
  std::unique_ptr<Inner> inner_;
};

}  // namespace rose::logs
