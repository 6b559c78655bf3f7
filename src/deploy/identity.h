// Who owns what: each deployment has an id and a lock file /run/rose/<id>.lock that its process
// holds locked while it lives. The kernel gives the lock back however that process ends, so heal()
// can tell living deployments from leftovers; the file's lines say what there is to undo.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/fd.h"
#include "base/result.h"

namespace rose::deploy {

inline constexpr const char* kLockFolder = "/run/rose";

class Identity {
 public:
  // A fresh id ("rose-1f3a9c"), locked.
  [[nodiscard]] static Result<Identity> create();
  Identity(Identity&& other) noexcept = default;
  Identity& operator=(Identity&&) = delete;
  ~Identity();  // release()

  [[nodiscard]] const std::string& id() const { return id_; }
  // Adds a line for heal(): "run_dir\t/path", "cgroup\t/path", "netns\tname", "frozen\t/path", "thawed\t/path", ...
  [[nodiscard]] Result<void> note(std::string_view key, std::string_view value);
  // Everything is undone: the file goes.
  void release();
  // Something is not: the file stays, as that of a killed rose, for heal().
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
  [[nodiscard]] std::vector<std::string> all(std::string_view key) const;  // values of the notes with this key
  Fd lock;  // held by us now when it is not alive, so that two heals do not meet
};
// By id; unreadable files are skipped. Files that a killed rose left half made are removed.
[[nodiscard]] std::vector<Registration> registrations();

// The id that the name of a namespace or cgroup begins with: "rose-1f3a9c-n1" -> "rose-1f3a9c"; a name of
// another form is its own id.
[[nodiscard]] std::string id_of(std::string_view name);

}  // namespace rose::deploy
