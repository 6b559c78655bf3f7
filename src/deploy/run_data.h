// A run's own version of a folder or file of the user's that its containers may write to. What they write stays in the
// run: the user's data is never changed, faults do not reach it, and runs side by side do not meet in it.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "base/folder.h"
#include "base/result.h"

namespace rose::deploy {

// Whether `source` is data: a folder or a regular file, but nothing of the kernel's or the machine's own (a device, a
// socket, /proc, /run), which containers get as it is.
[[nodiscard]] bool is_data(const std::filesystem::path& source);

// The folders that are inside of no other one in the list, sorted.
[[nodiscard]] std::vector<std::filesystem::path> outermost(std::vector<std::filesystem::path> sources);

// Behind the name of what is shown: the folder of an overlay's layers. It must not be inside of `source`; a file system
// of its own mounted there is not.
inline constexpr std::string_view kLayers = ".layers";

class RunData {
 public:
  // At `shown`, a new name in a folder of the run: a folder as an overlay, whose changes are in <shown>.layers/changes,
  // or as a copy where the file system does not support one; a file as a copy. `id`: of the deployment.
  [[nodiscard]] static Result<RunData> make(const std::filesystem::path& source, const std::filesystem::path& shown,
                                            const std::string& id);

  [[nodiscard]] const std::filesystem::path& source() const { return source_; }
  [[nodiscard]] const std::filesystem::path& shown() const { return shown_; }
  [[nodiscard]] bool is_mounted() const { return mounted_; }

 private:
  Result<void> overlay(const OpenFolder& all, const std::string& id);
  std::filesystem::path source_;
  std::filesystem::path shown_;
  bool mounted_ = false;
};

// A name for `source` among `others`, which it is added to.
[[nodiscard]] std::string data_name(const std::filesystem::path& source, std::vector<std::string>& others);

// "/srv/kv/data (12 files, 3.4 MiB)", counting no further than is quick.
[[nodiscard]] std::string described_data(const std::filesystem::path& source);

}  // namespace rose::deploy
