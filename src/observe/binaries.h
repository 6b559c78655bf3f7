// The files in which a target's functions are looked up: named by path or found in the target's processes. They are
// kept open, so that they stay the same files while they are watched even if an upgrade replaces them.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/fd.h"
#include "observe/tracer.h"

namespace rose::observe {

// The target's processes that are alive now, up to a limit.
[[nodiscard]] std::vector<pid_t> processes_of(const Target& target);

// True if a process of the targets has mapped this file as executable.
[[nodiscard]] bool any_maps(const std::vector<Target>& targets, const std::filesystem::path& file);

class Binaries {
 public:
  // Maps files that are not executed themselves to the copies that are executed. name() still returns the name of the
  // original.
  void execute_instead(std::map<std::filesystem::path, std::filesystem::path> copies) { copies_ = std::move(copies); }
  // Opens a file and returns its index. A file that is added under several names is opened once, and keeps the first
  // name. Returns -1 and sets errno if the file cannot be opened.
  int add(const std::filesystem::path& path);
  [[nodiscard]] const std::filesystem::path& name(int binary) const {
    return held_[static_cast<std::size_t>(binary)].name;
  }
  // A path that leads to the file even if its name was removed.
  [[nodiscard]] const std::filesystem::path& path(int binary) const {
    return held_[static_cast<std::size_t>(binary)].path;
  }
  // The file in which to look up the binary's functions. If each run copies a file, the original is used, so that what
  // was read from the original can be used for all copies.
  [[nodiscard]] const std::filesystem::path& symbols(int binary) const {
    return copies_.contains(name(binary)) ? name(binary) : path(binary);
  }

  // A profile from another host contains functions of the file `wanted`. Returns the files of this host in which to
  // look them up: the file at the same path, and files with the same name that were given with the target or that the
  // target's processes execute or map. If there is no such file: all files that were given with the target, or, if none
  // were given, all programs that the target's processes execute.
  [[nodiscard]] std::vector<int> substitutes(const Target& target, const std::filesystem::path& wanted);

 private:
  struct Held {
    std::filesystem::path name, path;
    Fd fd;
    dev_t device = 0;
    ino_t inode = 0;
  };
  int hold(const std::filesystem::path& open, const std::filesystem::path& name);
  std::vector<Held> held_;
  std::map<std::filesystem::path, std::filesystem::path> copies_;
};

}  // namespace rose::observe
