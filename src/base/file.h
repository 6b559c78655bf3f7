// Whole files: read with a limit, written beside and renamed.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

#include "base/fd.h"
#include "base/result.h"

namespace rose {

inline constexpr std::size_t kMostFileBytes = std::size_t{4} << 30;

// ErrorKind::input when it cannot be read or is larger than `most` bytes.
[[nodiscard]] Result<std::string> read_file(const std::filesystem::path& path,
                                            std::size_t most = kMostFileBytes);

// Writes to a fresh temporary file in the same folder (0600 unless `mode` says otherwise), syncs it and renames it over
// `path`: a reader sees the old file or the whole new one. What is no file is never replaced: a character device, a pipe of
// our own, and descriptors (/dev/stdout, /dev/fd/63) are written to as they are; other kinds are refused.
[[nodiscard]] Result<void> write_file(const std::filesystem::path& path, std::string_view content,
                                      mode_t mode = 0600);

// For kernel files (cgroup, proc): one write to an existing file, no rename.
[[nodiscard]] Result<void> write_control(const std::filesystem::path& path, std::string_view content);

// The same in steps, for large files.
class AtomicFile {
 public:
  [[nodiscard]] static Result<AtomicFile> create(const std::filesystem::path& path, mode_t mode = 0600);
  AtomicFile(AtomicFile&& other) noexcept;
  AtomicFile& operator=(AtomicFile&&) = delete;
  ~AtomicFile();  // removes the temporary file unless committed
  [[nodiscard]] Result<void> write(std::string_view bytes);
  [[nodiscard]] Result<void> commit();

 private:
  AtomicFile() = default;
  Fd fd_;  // of a device or pipe: opened by the first write, as opening a pipe waits for its reader
  std::filesystem::path path_;
  std::filesystem::path temporary_;  // empty: `path_` is written to as it is
};

}  // namespace rose
