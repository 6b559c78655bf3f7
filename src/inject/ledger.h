// Lists calls of a command of `rose exec`: those of which rose was notified, and which it has not answered yet. The
// list is in memory that rose shares with the keeper of the command's filter (inject/exec_socket.h). The keeper needs
// the list if rose is killed, because the kernel does not report which notifications rose had received.
#pragma once

#include <cstdint>
#include <mutex>
#include <set>

#include "base/fd.h"
#include "base/result.h"

namespace rose::inject {

// The shared memory. Ids are consecutive; only the kernel knows the first one.
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
