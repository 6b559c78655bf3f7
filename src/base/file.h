// Reads whole files up to a limit. Writes new content to a temporary file and renames it, so that readers never see a
// partial file.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

#include "base/fd.h"
#include "base/result.h"

namespace rose {

inline constexpr std::size_t kMostFileBytes = std::size_t{4} << 30;

// Returns ErrorKind::input if the file cannot be read or is larger than `most` bytes.
[[nodiscard]] Result<std::string> read_file(const std::filesystem::path& path, std::size_t most = kMostFileBytes);

// Opens a file for reading. Returns no descriptor if the file cannot be opened or is not a regular file (then errno is
// EINVAL). Opening or reading a pipe or a device may block or have side effects. Therefore the function first examines
// the file through an O_PATH descriptor and then opens the file that it has examined.
[[nodiscard]] Fd open_regular(const std::filesystem::path& path);
// Like open_regular(), for a path relative to an open folder. `flags`: O_NOFOLLOW or 0.
[[nodiscard]] Fd open_regular_at(int folder, const std::filesystem::path& path, int flags = 0);

// Writes to an unnamed file in the same folder (mode 0600 unless `mode` is given), syncs it, links it as `path` and
// syncs the folder. Readers see either the old content or all of the new content, and a killed writer leaves nothing.
// Only regular files are replaced. Character devices, pipes of this user and descriptors (/dev/stdout, /dev/fd/63) are
// written in place; other kinds of files are refused, and so is a pipe that nobody reads.
[[nodiscard]] Result<void> write_file(const std::filesystem::path& path, std::string_view content, mode_t mode = 0600);

// Like write_file, but returns ErrorKind::usage if `path` exists. The check is atomic: it also detects a file that
// another process creates in the meantime.
[[nodiscard]] Result<void> write_new_file(const std::filesystem::path& path, std::string_view content,
                                          mode_t mode = 0644);

// Writes all of `bytes`, with several calls if necessary. Returns 0 or errno.
[[nodiscard]] int write_bytes(int fd, std::string_view bytes);

// Writes to an existing kernel file (cgroup, proc) with one call and without a rename.
[[nodiscard]] Result<void> write_control(const std::filesystem::path& path, std::string_view content);

// Like write_file(), in several steps, for content that is too large to hold in memory.
class AtomicFile {
 public:
  [[nodiscard]] static Result<AtomicFile> create(const std::filesystem::path& path, mode_t mode = 0600);
  AtomicFile(AtomicFile&& other) noexcept;
  AtomicFile& operator=(AtomicFile&&) = delete;
  ~AtomicFile();  // removes the file unless it was committed
  [[nodiscard]] Result<void> write(std::string_view bytes);
  // For content that is not written in order: set the size first, then write the parts that are not zero. Only for
  // regular files, because pipes and devices cannot seek.
  [[nodiscard]] Result<void> resize(std::uint64_t bytes);
  [[nodiscard]] Result<void> write_at(std::uint64_t offset, std::string_view bytes);
  [[nodiscard]] Result<void> commit();

 private:
  AtomicFile() = default;
  Result<void> link_over();
  // The first write opens a device or pipe, and the descriptor then stays open: if it were closed between two writes,
  // the reader of a pipe would see the end of the content.
  Fd fd_;
  std::filesystem::path path_;
  bool in_place_ = true;  // `path_` is not a regular file and is written directly
  // the name of the temporary file if the file system does not support unnamed files (O_TMPFILE)
  std::filesystem::path temporary_;
};

// A private folder (mode 0700) in $TMPDIR or /tmp, which is removed with its content by the destructor. If a process
// was killed, its folder is removed by the next process that makes a folder with the same prefix. A lock (F_OFD_SETLK)
// shows that a folder is in use.
class TemporaryFolder {
 public:
  [[nodiscard]] static Result<TemporaryFolder> make(std::string_view prefix);
  TemporaryFolder(TemporaryFolder&& other) noexcept
      : path_(std::exchange(other.path_, {})), lock_(std::move(other.lock_)) {}
  TemporaryFolder& operator=(TemporaryFolder&&) = delete;
  ~TemporaryFolder();
  [[nodiscard]] const std::filesystem::path& path() const { return path_; }

 private:
  TemporaryFolder(std::filesystem::path path, Fd lock) : path_(std::move(path)), lock_(std::move(lock)) {}
  std::filesystem::path path_;
  Fd lock_;
};

// On file systems without unnamed files (NFS, 9p, FAT), a killed writer leaves a temporary file. Removes such files in
// `folder` if their names begin with `prefix`. Keeps files that are locked, because their writers still run.
void remove_unfinished(const std::filesystem::path& folder, std::string_view prefix);

}  // namespace rose
