#include "base/thread.h"

#include <pthread.h>

namespace rose {
namespace {

constexpr int kPriority = 10;  // of 1 to 99: below the priorities that administrators usually assign

}  // namespace

RunsAhead::RunsAhead() : error_(::pthread_getschedparam(::pthread_self(), &policy_, &before_)) {
  if (error_ != 0) return;
  sched_param ahead{};
  ahead.sched_priority = kPriority;
  error_ = ::pthread_setschedparam(::pthread_self(), SCHED_FIFO, &ahead);
}

RunsAhead::~RunsAhead() {
  if (error_ == 0) (void)::pthread_setschedparam(::pthread_self(), policy_, &before_);
}

}  // namespace rose
