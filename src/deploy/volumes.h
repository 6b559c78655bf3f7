// File systems of a run's own, so that one of them can be full while the machine's are not. Their source is the
// deployment's id.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "base/result.h"

namespace rose::deploy::volume {

// A tmpfs over an empty folder, with its owner and mode. `options`: further ones of tmpfs(5), "size=64m,mode=0700";
// they count more.
[[nodiscard]] Result<void> make(const std::filesystem::path& folder, const std::string& id,
                                const std::string& options = {});
// It, or a Disk (deploy/disk.h), of this id.
[[nodiscard]] bool is_mounted(const std::filesystem::path& folder, const std::string& id);

struct Room {
  std::uint64_t bytes = 0;  // of the whole
  std::uint64_t used = 0;
};
[[nodiscard]] Result<Room> room(const std::filesystem::path& folder);
// Made no larger than what it holds, down to a page; whoever writes gets ENOSPC, root too. Verified.
[[nodiscard]] Result<Room> fill(const std::filesystem::path& folder, const std::string& id);
[[nodiscard]] Result<void> resize(const std::filesystem::path& folder, const std::string& id, std::uint64_t bytes);

// All that is in the one, as the other, which is not there yet; a copy that fails leaves there what it could copy.
[[nodiscard]] Result<void> copy_files(const std::filesystem::path& from, const std::filesystem::path& to);
// Plain files in a plain folder instead, whoever has some of them open; the file system goes. Nothing when there is
// none.
[[nodiscard]] Result<void> dissolve(const std::filesystem::path& folder, const std::string& id);

}  // namespace rose::deploy::volume
