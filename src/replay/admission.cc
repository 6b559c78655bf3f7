#include "replay/admission.h"

#include <chrono>

#include "base/cancel.h"

namespace rose::replay {

bool Admission::wait(std::size_t i) {
  using std::chrono_literals::operator""ms;
  std::unique_lock lock(mutex_);
  // A cancellation does not wake the thread, so look for it every few milliseconds.
  while (!changed_.wait_for(lock, 20ms, [&] { return i == next_ && busy_.size() < most_; }))
    if (!cancel::check()) return false;
  ++next_;
  busy_.insert(i);
  changed_.notify_all();
  return true;
}

void Admission::no_longer_busy(std::size_t i) {
  const std::lock_guard lock(mutex_);
  if (busy_.erase(i) > 0) changed_.notify_all();
}

}  // namespace rose::replay
