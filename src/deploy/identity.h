// Ownership: each deployment has an id and a lock file /run/rose/<id>.lock, which its process keeps locked. The kernel
// releases the lock however the process ends, so heal() can distinguish running deployments from leftovers. The lines
// in the file list what has to be undone.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/fd.h"
#include "base/result.h"

namespace rose::deploy {

inline constexpr const char* kLockFolder = "/run/rose";
// A key of lines in a lock file. The value is the id and the start time ("PID START") of a process that undoes, or is
// about to undo, what a killed rose left.
inline constexpr const char* kHealerNote = "healer";

class Identity {
 public:
  // Creates a new id ("rose-1f3a9c") and locks it.
  [[nodiscard]] static Result<Identity> create();
  Identity(Identity&& other) noexcept = default;
  Identity& operator=(Identity&&) = delete;
  ~Identity();  // calls release()

  [[nodiscard]] const std::string& id() const { return id_; }
  // Adds a line for heal() and the guardian: "run_dir\t/path", "cgroup\t/path", "ends\t/path" (a cgroup whose processes
  // cannot continue without rose), "netns\tname", "frozen\t/path", "thawed\t/path", ...
  [[nodiscard]] Result<void> note(std::string_view key, std::string_view value);
  // Removes the file. Call it when everything has been undone.
  void release();
  // The descriptor of the lock file, for the guardian, which shares the lock (deploy/guardian.h).
  [[nodiscard]] int fd() const { return fd_.get(); }
  // Keeps the file for heal(), as if rose had been killed. Call it when something could not be undone.
  void leave() { fd_.reset(); }

 private:
  Identity() = default;
  std::string id_;
  Fd fd_;
};

// A lock file found on this machine.
struct Registration {
  std::string id;
  bool alive = false;  // its owner holds the lock
  std::vector<std::pair<std::string, std::string>> notes;
  [[nodiscard]] std::vector<std::string> all(std::string_view key) const;  // values of the lines with this key
  Fd lock;  // held by this process if the owner is not running, so that only one heal works on it
  // Adds a line to the file. Call it only while `lock` is held.
  void note(std::string_view key, std::string_view value) const;
};
// All registrations, sorted by id. Unreadable files are skipped; incomplete files of a killed rose are removed. If
// another process is undoing what a killed rose left, waits for that process.
[[nodiscard]] std::vector<Registration> registrations();
// The registrations of this owner, which has ended, except the one with the id `except`. The locks of other owners are
// not touched.
[[nodiscard]] std::vector<Registration> registrations_of(pid_t owner, std::string_view except);
// The registration with this id, at most one, whether or not it is locked.
[[nodiscard]] std::vector<Registration> registrations(std::string_view id);
// The process for a text such as "123 4567" (a process id and its start time), if that process still exists.
[[nodiscard]] std::optional<pid_t> still_there(const std::string& value);

// The id at the beginning of the name of a namespace or cgroup: "rose-1f3a9c" for "rose-1f3a9c-n1". For a name of
// another form, the whole name.
[[nodiscard]] std::string id_of(std::string_view name);

}  // namespace rose::deploy
