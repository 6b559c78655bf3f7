// Reports the stacks of this JVM's threads. A thread records its own stack when it reaches a location, and rose can
// request the stack of any thread. The stacks are in a file (jvm/stacks_layout.h) that remains when the JVM ends.
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
  std::uint32_t line = 0;      // 0: unknown
};
// Returns false if the class of the method was unloaded.
[[nodiscard]] bool place_of(Jvmti jvmti, Jni jni, MethodId method, Location location, CodePlace& place);

class ThreadStacks {
 public:
  // Returns false if the file cannot be created. Then no stacks are reported.
  bool open(const std::string& path, Jvmti jvmti);
  [[nodiscard]] bool on() const { return head_ != nullptr; }

  // Each thread calls this itself.
  void thread_begins(Jni jni, Object thread);
  void thread_ends(Jni jni);
  // Records the calling thread's frames. Returns nullptr if there are too many threads.
  StackSlot* note(Jni jni);
  // Copies the recorded stack to a slot that is not overwritten.
  void keep(const StackSlot& noted);

  // Called by the agent's own thread. Waits until rose makes a request, but at most this long. Without a file it always
  // waits this long.
  void wait(std::int64_t ns) const;
  void answer(Jni jni);
  void live(bool now) const;

 private:
  struct Thread {
    int tid = 0;
    Object weak = nullptr;
  };
  struct NamedLocation {
    MethodId method = nullptr;
    Location location = 0;
    std::uint32_t id = 0;  // 0: unused
  };
  // Returns false if the JVM refuses to report the frames.
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
  pthread_mutex_t names_mutex_ = PTHREAD_MUTEX_INITIALIZER;  // protects everything below
  std::vector<NamedLocation> named_locations_;
  std::uint32_t names_room_ = 0;
};

}  // namespace rose::jvm
