// The bytes of a log file, which is plain or compressed by gzip, xz, zstd or bzip2. The format is recognised by the
// first bytes, not by the name. Damaged data are not an error: they end the stream early, and damage() reports them.
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
  // If a compressed file unpacks to more bytes, the rest is not read.
  static constexpr std::uint64_t kMostUnpacked = std::uint64_t{16} << 30;

  // ErrorKind::input if the file cannot be opened, or is neither a regular file nor a pipe. For `folder`, see
  // logs::Input.
  [[nodiscard]] static Result<Bytes> open(const std::filesystem::path& path, const std::filesystem::path& folder = {});
  [[nodiscard]] static Bytes of(std::string content);  // content in memory, which may be compressed

  Bytes(Bytes&&) noexcept;
  Bytes& operator=(Bytes&&) noexcept;
  ~Bytes();

  // Fills `into` from its beginning. Returns fewer bytes than its size only at the end of the data; 0 means that there
  // are no more data.
  [[nodiscard]] std::size_t read(std::span<char> into);

  [[nodiscard]] std::string_view packing() const;  // "", "gzip", "xz", "zstd", "bzip2"
  // The reason why the file could not be read to its end, in one sentence; "" if it could.
  [[nodiscard]] const std::string& damage() const;
  // The size of the stored file. 0 if it is unknown (a pipe).
  [[nodiscard]] std::uint64_t file_size() const;
  // The time of the last write to the file, wall clock in ns. 0 if it is unknown.
  [[nodiscard]] std::int64_t modified_ns() const;

  // The file and its decoder; public only because the functions in bytes.cc use it.
  struct Inner;

 private:
  explicit Bytes(std::unique_ptr<Inner> inner);
  std::unique_ptr<Inner> inner_;
};

}  // namespace rose::logs
