// File systems of a run, so that one of them can be full while the machine's are not. They are labelled with the
// deployment's id.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "base/result.h"

namespace rose::deploy::volume {

// Mounts a tmpfs over an empty folder, with the same owner and mode. `options`: further ones of tmpfs(5), such as
// "size=64m,mode=0700", which take precedence.
[[nodiscard]] Result<void> make(const std::filesystem::path& folder, const std::string& id,
                                const std::string& options = {});
// True if it, or a Disk (deploy/disk.h), with this id is mounted.
[[nodiscard]] bool is_mounted(const std::filesystem::path& folder, const std::string& id);

struct Room {
  std::uint64_t bytes = 0;  // total size
  std::uint64_t used = 0;
};
[[nodiscard]] Result<Room> room(const std::filesystem::path& folder);
// Shrinks it to its content, rounded up to pages, so that writes fail with ENOSPC, also for root. Verified.
[[nodiscard]] Result<Room> fill(const std::filesystem::path& folder, const std::string& id);
[[nodiscard]] Result<void> resize(const std::filesystem::path& folder, const std::string& id, std::uint64_t bytes);

// Copies everything in one folder to another, which must not exist. If copying fails, keeps what was copied.
[[nodiscard]] Result<void> copy_files(const std::filesystem::path& from, const std::filesystem::path& to);
// Replaces the file system by plain files in a plain folder, even if files are open, and unmounts it. Does nothing if
// there is none.
[[nodiscard]] Result<void> dissolve(const std::filesystem::path& folder, const std::string& id);

}  // namespace rose::deploy::volume
