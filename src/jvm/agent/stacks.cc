#include "jvm/agent/stacks.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstring>
#include <string_view>

#include "jvm/agent/lock.h"
#include "jvm/agent/system.h"
#include "jvm/names.h"

namespace rose::jvm {
namespace {

constexpr std::uint32_t kNamesAtOnce = 128;

}  // namespace

bool place_of(Jvmti jvmti, Jni jni, MethodId method, Location location, CodePlace& place) {
  Object klass = nullptr;
  if (jvmti.declaring_class(method, &klass) != kNone) return false;
  char *signature = nullptr, *own = nullptr, *descriptor = nullptr, *source = nullptr;
  if (jvmti.class_signature(klass, &signature) == kNone) {
    place.function = class_of_signature(signature);
    jvmti.deallocate(signature);
  }
  if (jvmti.method_name(method, &own, &descriptor) == kNone) {
    place.function += '.';
    place.function += own;
    jvmti.deallocate(own);
    jvmti.deallocate(descriptor);
  }
  if (jvmti.source_file(klass, &source) == kNone) {
    place.file = source;
    jvmti.deallocate(source);
  }
  jni.delete_local(klass);
  std::int32_t count = 0;
  LineEntry* table = nullptr;
  if (location >= 0 && jvmti.line_table(method, &count, &table) == kNone) {
    Location best = -1;
    for (std::int32_t i = 0; i < count; ++i) {
      if (table[i].start > location || table[i].start < best) continue;
      best = table[i].start;
      place.line = static_cast<std::uint32_t>(table[i].line);
    }
    jvmti.deallocate(table);
  }
  return true;
}

bool ThreadStacks::open(const std::string& path, Jvmti jvmti) {
  jvmti_ = jvmti;
  fd_ = ::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (fd_ < 0) return false;
  // Allocate the disk blocks first. Otherwise, on a full disk, a store to the mapping would kill the JVM with SIGBUS.
  if (::posix_fallocate(fd_, 0, static_cast<off_t>(kStacksNamesAt)) != 0 ||
      ::ftruncate(fd_, static_cast<off_t>(kStacksBytes)) != 0)
    return false;
  void* memory = ::mmap(nullptr, kStacksBytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd_, 0);
  if (memory == MAP_FAILED) return false;
  memory_ = static_cast<unsigned char*>(memory);
  auto* head = new (memory_) StacksHead;
  head->pid = ::getpid();
  named_locations_.resize(1024);
  head_ = head;
  return true;
}

void ThreadStacks::thread_begins(Jni jni, Object thread) {
  const Object weak = jni.new_weak(thread);
  if (weak == nullptr) return;
  const int tid = thread_id();
  const Lock lock(threads_mutex_);
  for (Thread& one : threads_) {
    if (one.tid != tid) continue;
    jni.delete_weak(one.weak);
    one.weak = weak;
    return;
  }
  threads_.push_back({tid, weak});
}

void ThreadStacks::thread_ends(Jni jni) {
  const int tid = thread_id();
  const Lock lock(threads_mutex_);
  for (std::size_t i = 0; i < threads_.size(); ++i) {
    if (threads_[i].tid != tid) continue;
    jni.delete_weak(threads_[i].weak);
    threads_[i] = threads_.back();
    threads_.pop_back();
    break;
  }
  for (std::uint32_t i = 1; i <= kStackThreads; ++i) {
    int own = tid;
    __atomic_compare_exchange_n(&slots()[i].tid, &own, 0, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
  }
}

StackSlot* ThreadStacks::note(Jni jni) {
  const int tid = thread_id();
  StackSlot* slot = nullptr;
  for (std::uint32_t i = 0; i < kStackThreads && slot == nullptr; ++i) {
    StackSlot& one = slots()[1 + (static_cast<std::uint32_t>(tid) + i) % kStackThreads];
    int nobody = 0;
    if (__atomic_load_n(&one.tid, __ATOMIC_ACQUIRE) == tid ||
        __atomic_compare_exchange_n(&one.tid, &nobody, tid, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
      slot = &one;
  }
  if (slot == nullptr || !fill(jni, nullptr, tid, *slot)) return nullptr;
  return slot;
}

void ThreadStacks::keep(const StackSlot& noted) {
  const Lock lock(names_mutex_);
  if (head_->kept >= kStackKept) return;
  slots()[1 + kStackThreads + head_->kept] = noted;
  __atomic_store_n(&head_->kept, head_->kept + 1, __ATOMIC_RELEASE);
}

bool ThreadStacks::fill(Jni jni, Object thread, int tid, StackSlot& slot) {
  __atomic_store_n(&slot.count, 0, __ATOMIC_RELEASE);
  FrameInfo frames[kStackFrames + 1];
  std::int32_t count = 0;
  if (jvmti_.stack_trace(thread, 0, static_cast<std::int32_t>(kStackFrames + 1), frames, &count) != kNone || count < 0)
    return false;
  const auto all = static_cast<std::uint32_t>(count);
  const std::uint32_t kept = all < kStackFrames ? all : kStackFrames;
  slot.at_ns = now_ns();
  slot.more = all > kStackFrames ? 1 : 0;
  for (std::uint32_t i = 0; i < kept; ++i) slot.frames[i] = name(jni, frames[i].method, frames[i].location);
  slot.tid = tid;
  __atomic_store_n(&slot.count, kept, __ATOMIC_RELEASE);
  return true;
}

// Each location is named only once, because naming takes longer than taking a stack.
std::uint32_t ThreadStacks::name(Jni jni, MethodId method, Location location) {
  const Lock lock(names_mutex_);
  const auto slot_of = [&](const std::vector<NamedLocation>& table) {
    std::size_t hash = reinterpret_cast<std::size_t>(method) / 8 * 0x9e3779b97f4a7c15ULL +
                       static_cast<std::size_t>(location) * 0xff51afd7ed558ccdULL;
    hash ^= hash >> 29;
    for (;; ++hash) {
      const NamedLocation& one = table[hash & (table.size() - 1)];
      if (one.id == 0 || (one.method == method && one.location == location)) return hash & (table.size() - 1);
    }
  };
  std::size_t at = slot_of(named_locations_);
  if (named_locations_[at].id != 0) return named_locations_[at].id;
  const std::uint32_t id = make_name(jni, method, location);
  if (id == 0) return 0;
  named_locations_[at] = {method, location, id};
  if (head_->names * 2 > named_locations_.size()) {
    std::vector<NamedLocation> larger(named_locations_.size() * 2);
    for (const NamedLocation& one : named_locations_) {
      if (one.id == 0) continue;
      method = one.method;
      location = one.location;
      larger[slot_of(larger)] = one;
    }
    named_locations_.swap(larger);
  }
  return id;
}

// Call this under the lock for names.
std::uint32_t ThreadStacks::make_name(Jni jni, MethodId method, Location location) {
  if (head_->names >= names_room_) grow();
  if (head_->names >= names_room_) return 0;
  CodePlace place;
  if (!place_of(jvmti_, jni, method, location, place)) return 0;
  auto& [function, file, line] = place;
  auto* record = reinterpret_cast<StackName*>(memory_ + kStacksNamesAt) + head_->names;
  if (file.size() > 100) file.resize(100);
  if (function.size() > kStackText - file.size()) function.resize(kStackText - file.size());
  record->line = line;
  record->function = static_cast<std::uint16_t>(function.size());
  record->file = static_cast<std::uint16_t>(file.size());
  std::memcpy(record->text, function.data(), function.size());
  std::memcpy(record->text + function.size(), file.data(), file.size());
  __atomic_store_n(&head_->names, head_->names + 1, __ATOMIC_RELEASE);
  return head_->names;
}

void ThreadStacks::grow() {
  if (names_room_ >= kStackNames) return;
  const std::uint64_t from = kStacksNamesAt + std::uint64_t{names_room_} * sizeof(StackName);
  if (::posix_fallocate(fd_, static_cast<off_t>(from), static_cast<off_t>(kNamesAtOnce * sizeof(StackName))) == 0)
    names_room_ += kNamesAtOnce;
}

void ThreadStacks::live(bool now) const {
  if (head_ != nullptr) __atomic_store_n(&head_->live, now ? 1 : 0, __ATOMIC_RELEASE);
}

void ThreadStacks::wait(std::int64_t ns) const {
  const timespec time{ns / 1'000'000'000, ns % 1'000'000'000};
  if (head_ == nullptr) {
    ::nanosleep(&time, nullptr);
    return;
  }
  const std::uint32_t answered = __atomic_load_n(&head_->answered, __ATOMIC_ACQUIRE);
  // The futex is not private, because rose wakes it from another process.
  ::syscall(SYS_futex, &head_->asked, FUTEX_WAIT, answered, &time, nullptr, 0);
}

void ThreadStacks::answer(Jni jni) {
  if (head_ == nullptr) return;
  const std::uint32_t asked = __atomic_load_n(&head_->asked, __ATOMIC_ACQUIRE);
  if (asked == __atomic_load_n(&head_->answered, __ATOMIC_RELAXED)) return;
  __atomic_store_n(&head_->begun, asked, __ATOMIC_RELEASE);
  const int tid = __atomic_load_n(&head_->asked_tid, __ATOMIC_ACQUIRE);
  Object thread = nullptr;
  {
    const Lock lock(threads_mutex_);
    for (const Thread& one : threads_) {
      if (one.tid == tid) thread = jni.new_local(one.weak);
    }
  }
  StackAnswer answer = StackAnswer::stranger;
  if (thread != nullptr) {
    // No lock is held here, because fill() may have to wait, for any time, until the thread leaves the JVM's own code.
    answer = fill(jni, thread, tid, slots()[0]) ? StackAnswer::recorded : StackAnswer::refused;
    jni.delete_local(thread);
  }
  head_->answer = static_cast<std::uint32_t>(answer);
  __atomic_store_n(&head_->answered, asked, __ATOMIC_RELEASE);
  ::syscall(SYS_futex, &head_->answered, FUTEX_WAKE, 0x7fffffff, nullptr, nullptr, 0);
}

}  // namespace rose::jvm
