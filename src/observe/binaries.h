// The files whose functions a target means: named by path, kept open so that they stay the same files for as long as
// they are watched (an upgrade replaces them), and found among what the target's processes run.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <string>
#include <vector>

#include "base/fd.h"
#include "observe/tracer.h"

namespace rose::observe {

// Alive now; of many the first.
[[nodiscard]] std::vector<pid_t> processes_of(const Target& target);

// Does a process of the targets map this file to execute it?
[[nodiscard]] bool any_maps(const std::vector<Target>& targets, const std::filesystem::path& file);

class Binaries {
 public:
  // The same file is held once, under the first name it came by; -1 and errno: it cannot be opened.
  int add(const std::filesystem::path& path);
  [[nodiscard]] const std::filesystem::path& name(int binary) const {
    return held_[static_cast<std::size_t>(binary)].name;
  }
  // A path that leads to it whatever became of its name.
  [[nodiscard]] const std::filesystem::path& path(int binary) const {
    return held_[static_cast<std::size_t>(binary)].path;
  }

  // Where to look for functions that a profile found in `wanted` on another host: there, and in files of that name that
  // were given with the target or that its processes run; if there are none, in all that were given, else in all
  // programs that its processes run.
  [[nodiscard]] std::vector<int> stand_ins(const Target& target, const std::filesystem::path& wanted);

 private:
  struct Held {
    std::filesystem::path name, path;
    Fd fd;
    dev_t device = 0;
    ino_t inode = 0;
  };
  int hold(const std::filesystem::path& open, const std::filesystem::path& name);
  std::vector<Held> held_;
};

}  // namespace rose::observe
