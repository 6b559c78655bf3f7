// Whole files: read with a limit, written beside and renamed.
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

// ErrorKind::input when it cannot be read or is larger than `most` bytes.
[[nodiscard]] Result<std::string> read_file(const std::filesystem::path& path, std::size_t most = kMostFileBytes);

// For reading. No descriptor when it cannot be opened or is no regular file: opening or reading a pipe or device may
// block, or act.
[[nodiscard]] Fd open_regular(const std::filesystem::path& path);

// Writes to a fresh file in the same folder that has no name yet (0600 unless `mode` says otherwise), syncs it, names
// it `path`, and syncs the folder: a reader sees the old file or the whole new one, and whoever is killed on the way
// leaves nothing. What is no file is never replaced: a character device, a pipe of our own, and descriptors
// (/dev/stdout, /dev/fd/63) are written to as they are; other kinds are refused.
[[nodiscard]] Result<void> write_file(const std::filesystem::path& path, std::string_view content, mode_t mode = 0600);

// The same, but only when nothing has that name yet, not even meanwhile. ErrorKind::usage when something has.
[[nodiscard]] Result<void> write_new_file(const std::filesystem::path& path, std::string_view content,
                                          mode_t mode = 0644);

// All of `bytes`, in as many writes as it takes. 0, or errno.
[[nodiscard]] int write_bytes(int fd, std::string_view bytes);

// For kernel files (cgroup, proc): one write to an existing file, no rename.
[[nodiscard]] Result<void> write_control(const std::filesystem::path& path, std::string_view content);

// The same in steps, for large files.
class AtomicFile {
 public:
  [[nodiscard]] static Result<AtomicFile> create(const std::filesystem::path& path, mode_t mode = 0600);
  AtomicFile(AtomicFile&& other) noexcept;
  AtomicFile& operator=(AtomicFile&&) = delete;
  ~AtomicFile();  // leaves nothing unless committed
  [[nodiscard]] Result<void> write(std::string_view bytes);
  // Not in order: its size first, then what is not zero. Only of files, which pipes and devices are not.
  [[nodiscard]] Result<void> resize(std::uint64_t bytes);
  [[nodiscard]] Result<void> write_at(std::uint64_t offset, std::string_view bytes);
  [[nodiscard]] Result<void> commit();

 private:
  AtomicFile() = default;
  Result<void> link_over();
  Fd fd_;  // of a device or pipe: opened by the first write, as opening a pipe waits for its reader
  std::filesystem::path path_;
  bool in_place_ = true;             // `path_` is written to as it is
  std::filesystem::path temporary_;  // its name, where the file system knows no files without one
};

// A folder of one's own (0700) in $TMPDIR or /tmp, which goes with all that is in it.
class TemporaryFolder {
 public:
  [[nodiscard]] static Result<TemporaryFolder> make(std::string_view prefix);
  TemporaryFolder(TemporaryFolder&& other) noexcept : path_(std::exchange(other.path_, {})) {}
  TemporaryFolder& operator=(TemporaryFolder&&) = delete;
  ~TemporaryFolder();
  [[nodiscard]] const std::filesystem::path& path() const { return path_; }

 private:
  explicit TemporaryFolder(std::filesystem::path path) : path_(std::move(path)) {}
  std::filesystem::path path_;
};

// Some file systems (NFS, 9p, FAT) know no files without a name. Removes what writers of files in `folder`, whose names
// begin with `prefix`, left there when they were killed; those that are still at work keep theirs.
void remove_unfinished(const std::filesystem::path& folder, std::string_view prefix);

}  // namespace rose
