#include "inject/ledger.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>

namespace rose::inject {

Result<std::unique_ptr<Ledger>> Ledger::create() {
  std::unique_ptr<Ledger> ledger(new Ledger);
  ledger->fd_ = Fd(::memfd_create("rose-calls", MFD_CLOEXEC));
  if (!ledger->fd_ || ::ftruncate(ledger->fd_.get(), sizeof(LedgerPage)) != 0)
    return fail_errno(ErrorKind::environment, "cannot create shared memory", errno);
  void* page = ::mmap(nullptr, sizeof(LedgerPage), PROT_READ | PROT_WRITE, MAP_SHARED, ledger->fd_.get(), 0);
  if (page == MAP_FAILED) return fail_errno(ErrorKind::environment, "cannot map shared memory", errno);
  ledger->page_ = static_cast<LedgerPage*>(page);
  return ledger;
}

Ledger::~Ledger() {
  if (page_ != nullptr) ::munmap(page_, sizeof(LedgerPage));
}

void Ledger::taken(std::uint64_t id) {
  const std::lock_guard lock(mutex_);
  waiting_.insert(id);
  __atomic_store_n(&page_->newest, id, __ATOMIC_RELEASE);
  __atomic_store_n(&page_->oldest, *waiting_.begin(), __ATOMIC_RELEASE);
}

void Ledger::answered(std::uint64_t id) {
  const std::lock_guard lock(mutex_);
  waiting_.erase(id);
  __atomic_store_n(&page_->oldest, waiting_.empty() ? 0 : *waiting_.begin(), __ATOMIC_RELEASE);
}

}  // namespace rose::inject
