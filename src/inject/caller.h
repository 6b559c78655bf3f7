// Acting with the rights and the view of a thread that waits in a notified call: its user, groups and capabilities, and
// where paths lead for it. For one thread of rose at a time, and given back.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "base/fd.h"

namespace rose::inject {

struct CallerRights {
  uid_t fsuid = 0;
  gid_t fsgid = 0;
  std::vector<gid_t> groups;
  std::uint64_t capabilities = 0;  // effective ones; none when they hold in another user namespace than rose's
};
// Nothing when the thread is gone.
[[nodiscard]] std::optional<CallerRights> rights_of(pid_t tid);
// The calling thread's; to be asked before its view changes, since the caller's /proc may not know it.
[[nodiscard]] std::optional<CallerRights> own_rights();

// The calling thread, whose own rights are `own`, has these rights (those of them that it has itself) until this is
// destroyed.
class AsCaller {
 public:
  AsCaller(const CallerRights& rights, const CallerRights& own);
  AsCaller(const AsCaller&) = delete;
  AsCaller& operator=(const AsCaller&) = delete;
  ~AsCaller();

  // False: they could not be taken on, and the thread has its own.
  [[nodiscard]] bool ok() const { return ok_; }

 private:
  bool take_on(const CallerRights& rights);
  void give_back();

  bool ok_ = false;
  CallerRights own_;
};

// Its mounts, root and folder, held open.
struct CallerView {
  Fd mounts, root, folder;
};
[[nodiscard]] std::optional<CallerView> view_of(pid_t tid);
// Runs `work` in a thread of its own that has this view, and waits. False when it cannot be had.
[[nodiscard]] bool with_view(const CallerView& view, const std::function<void()>& work);

}  // namespace rose::inject
