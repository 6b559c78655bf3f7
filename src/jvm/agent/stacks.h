// Where this JVM's threads are: of the thread that comes by a place, noted by itself; of any other when rose asks. Told
// through a file (jvm/stacks_layout.h) that outlives the JVM.
#pragma once

#include <pthread.h>

#include <cstdint>
#include <string>
#include <vector>

#include "jvm/agent/interface.h"
#include "jvm/stacks_layout.h"

namespace rose::jvm {

struct CodePlace {
  std::string function, file;  // "org.x.C.m", "C.java"
  std::uint32_t line = 0;      // 0 not known
};
// False: the class is gone.
[[nodiscard]] bool place_of(Jvmti jvmti, Jni jni, MethodId method, Location location, CodePlace& place);

class ThreadStacks {
 public:
  // False when the file can't be made: nobody is told then.
  bool open(const std::string& path, Jvmti jvmti);
  [[nodiscard]] bool on() const { return head_ != nullptr; }

  // By the threads themselves.
  void thread_begins(Jni jni, Object thread);
  void thread_ends(Jni jni);
  // The calling thread's frames; where they stand. nullptr: too many threads.
  StackSlot* note(Jni jni);
  // A slot that keeps what was noted.
  void keep(const StackSlot& noted);

  // The agent's own thread. It waits for so long, or until rose asks; without the file it just waits.
  void wait(std::int64_t ns) const;
  void answer(Jni jni);
  void live(bool now) const;

 private:
  struct Thread {
    int tid = 0;
    Object weak = nullptr;
  };
  struct Known {
    MethodId method = nullptr;
    Location location = 0;
    std::uint32_t id = 0;  // 0: free
  };
  // False: the JVM does not tell.
  bool fill(Jni jni, Object thread, int tid, StackSlot& slot);
  std::uint32_t name(Jni jni, MethodId method, Location location);
  std::uint32_t make_name(Jni jni, MethodId method, Location location);
  void grow();
  [[nodiscard]] StackSlot* slots() const { return reinterpret_cast<StackSlot*>(memory_ + sizeof(StacksHead)); }

  Jvmti jvmti_;
  int fd_ = -1;
  unsigned char* memory_ = nullptr;
  StacksHead* head_ = nullptr;
  pthread_mutex_t threads_mutex_ = PTHREAD_MUTEX_INITIALIZER;
  std::vector<Thread> threads_;
  pthread_mutex_t names_mutex_ = PTHREAD_MUTEX_INITIALIZER;  // all below
  std::vector<Known> known_;
  std::uint32_t names_room_ = 0;
};

}  // namespace rose::jvm
