// A run's own version of a user's folder or file that the run's containers may write to. Their writes stay in the run:
// the user's data is never changed, faults do not affect it, and parallel runs do not share it.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "base/folder.h"
#include "base/result.h"

namespace rose::deploy {

// True if `source` is data: a folder or a regular file. Things that belong to the kernel or the machine (a device, a
// socket, /proc, /run) are not data; containers get them unchanged.
[[nodiscard]] bool is_data(const std::filesystem::path& source);

// The folders that are not inside another folder of the list, sorted.
[[nodiscard]] std::vector<std::filesystem::path> outermost(std::vector<std::filesystem::path> sources);

// Suffix for the folder of an overlay's layers. Layers must not be inside `source` on its file system, so if the run's
// folder is inside `source`, a separate file system is mounted on the folder of the layers.
inline constexpr std::string_view kLayers = ".layers";

class RunData {
 public:
  // Makes the run's version of `source` at `shown`, a new name in a folder of the run. A folder becomes an overlay,
  // whose changes are in <shown>.layers/changes, or a copy if the file system does not support overlays. A file becomes
  // a copy. `id`: the deployment's id. `plain`: copies a folder even if overlays are supported. In this case, `shown`
  // must already exist and be empty.
  [[nodiscard]] static Result<RunData> make(const std::filesystem::path& source, const std::filesystem::path& shown,
                                            const std::string& id, bool plain = false);

  [[nodiscard]] const std::filesystem::path& source() const { return source_; }
  [[nodiscard]] const std::filesystem::path& shown() const { return shown_; }
  [[nodiscard]] bool is_mounted() const { return mounted_; }

 private:
  Result<void> overlay(const OpenFolder& all, const std::string& id);
  std::filesystem::path source_;
  std::filesystem::path shown_;
  bool mounted_ = false;
};

// Returns a new name for `source` that differs from all in `others`, and adds it to `others`.
[[nodiscard]] std::string data_name(const std::filesystem::path& source, std::vector<std::string>& others);

// Describes the data: "/srv/kv/data (12 files, 3.4 MiB)". Stops counting when that takes too long.
[[nodiscard]] std::string described_data(const std::filesystem::path& source);

}  // namespace rose::deploy
