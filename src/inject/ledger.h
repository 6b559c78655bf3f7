// Lists the seccomp notifications that rose has received from a command of `rose exec` and has not answered yet. The
// list is in memory that rose shares with the keeper of the command's filter (inject/exec_socket.h). If rose is killed,
// the keeper answers these notifications. It needs the list, because the kernel does not report which notifications
// rose had received.
#pragma once

#include <cstdint>
#include <mutex>
#include <set>

#include "base/fd.h"
#include "base/result.h"

namespace rose::inject {

// The shared memory. The kernel assigns consecutive ids to notifications, beginning with an unknown number.
struct LedgerPage {
  std::uint64_t oldest = 0;  // oldest unanswered id; 0: none
  std::uint64_t newest = 0;  // newest id received
};

// Rose's side. Thread-safe.
class Ledger {
 public:
  [[nodiscard]] static Result<std::unique_ptr<Ledger>> create();
  Ledger(const Ledger&) = delete;
  Ledger& operator=(const Ledger&) = delete;
  ~Ledger();

  // The descriptor to hand over to the keeper.
  [[nodiscard]] int fd() const { return fd_.get(); }
  // Call it when a notification has been received.
  void taken(std::uint64_t id);
  void answered(std::uint64_t id);

 private:
  Ledger() = default;
  Fd fd_;
  LedgerPage* page_ = nullptr;
  std::mutex mutex_;
  std::set<std::uint64_t> waiting_;
};

}  // namespace rose::inject
