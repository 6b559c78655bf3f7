// The records that a node makes with librose-rr if ROSE_RR requests it, so that `rose replay --recording` can run the
// node again alone:
//
//   client/N, peer/N     a line of the Nth client's connection, a request of the Nth peer's, as it was taken up
//   reply/N              what node N answered to our request, or that it did not
//   tick, vote:.., append:.., install:.., propose:.., holds:.., snapshot
//                        the order in which the mutex was taken; and, for comparison in a replay, the index of the
//                        last applied entry and a hash of all applied entries
//   synced:.., installed:.., snapshot saved    the results of disk operations
//   signal               the signal that stops the node
//   raft                 checkpoints: the agreed state, and the whole state of the consensus
//
// Reads change nothing and are not recorded. Messages that the node sends are not recorded, because they follow from
// the rest.
#pragma once

#include <condition_variable>
#include <mutex>
#include <string>

#include "rr/rose_rr.hpp"

namespace kv {

namespace rr = rose::rr;

// Empty and unused unless recording or replaying.
inline std::string record_key(const char* what, const std::string& caller) {
  return rr::on() ? what + caller : std::string();
}

// "client/7": connections are numbered from 1 in order of arrival.
std::string numbered_caller(const char* kind);

// While recording, no checkpoint may come between two records of one call. A thread is inside while it handles a call;
// if it enters again, this has no effect.
class Gate {
 public:
  void enter();
  void leave();
  // Until open(), no thread can enter. Returns when the last thread inside has left.
  void close();
  void open();

  class Pass {
   public:
    explicit Pass(Gate& gate) : gate_(gate) { gate_.enter(); }
    Pass(const Pass&) = delete;
    ~Pass() { gate_.leave(); }

   private:
    Gate& gate_;
  };

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  int inside_ = 0;
  bool closed_ = false;
};

}  // namespace kv
