// Which notified calls of an entered command wait for rose's answer, in memory that the keeper of its filter shares:
// when rose is killed, the kernel does not tell the keeper what rose had taken from the listener.
#pragma once

#include <cstdint>
#include <mutex>
#include <set>

#include "base/fd.h"
#include "base/result.h"

namespace rose::inject {

// What the two share. Ids count up by one a call, from a beginning that only the kernel knows.
struct LedgerPage {
  std::uint64_t oldest = 0;  // that waits; 0: none does
  std::uint64_t newest = 0;  // that was ever taken
};

// Rose's side. From any thread.
class Ledger {
 public:
  [[nodiscard]] static Result<std::unique_ptr<Ledger>> create();
  Ledger(const Ledger&) = delete;
  Ledger& operator=(const Ledger&) = delete;
  ~Ledger();

  // To be handed to the keeper.
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
