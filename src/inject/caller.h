// Lets a thread of rose act like a node's thread that waits in a call for rose's answer: with its rights (user, groups
// and capabilities) and its view of the file system (mounts, root and current folder). Other threads of rose are not
// affected.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "base/fd.h"

namespace rose::inject {

struct CallerRights {
  uid_t uid = 0;  // the real user and group ids, with which messages on Unix sockets name their sender
  gid_t gid = 0;
  uid_t fsuid = 0;
  gid_t fsgid = 0;
  std::vector<gid_t> groups;
  std::uint64_t capabilities = 0;  // the effective capabilities; none if they are valid only in another user namespace
};
// Returns nothing if the thread has ended.
[[nodiscard]] std::optional<CallerRights> rights_of(pid_t tid);
// The rights of the calling thread. Call this before the thread enters another view (with_view()), because the /proc of
// that mount namespace may not show rose's threads.
[[nodiscard]] std::optional<CallerRights> own_rights();

// While this object exists, the calling thread has the user and groups of `rights`, and the capabilities of `rights`
// and `kept` that its own rights `own` include.
class AsCaller {
 public:
  AsCaller(const CallerRights& rights, const CallerRights& own, std::uint64_t kept = 0);
  AsCaller(const AsCaller&) = delete;
  AsCaller& operator=(const AsCaller&) = delete;
  ~AsCaller();

  // Returns false if the rights could not be assumed; the thread then keeps its own.
  [[nodiscard]] bool ok() const { return ok_; }

 private:
  bool take_on(const CallerRights& rights, std::uint64_t kept);
  void give_back();

  bool ok_ = false;
  CallerRights own_;
};

// The mount namespace, root and current folder of a thread, held open.
struct CallerView {
  Fd mounts, root, folder;
};
[[nodiscard]] std::optional<CallerView> view_of(pid_t tid);
// Runs `work` in a new thread with this view and waits for it. Returns false if the thread cannot be started, or cannot
// enter the namespace and the folders.
[[nodiscard]] bool with_view(const CallerView& view, const std::function<void()>& work);

}  // namespace rose::inject
