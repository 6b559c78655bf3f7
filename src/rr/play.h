// Replays a recording. Supplies the recorded bytes in the recorded order, delays calls that are made too early,
// delivers messages, and ends the process when its execution differs from the recorded one.
#pragma once

#include <pthread.h>

#include <cstddef>
#include <cstdint>

#include "rr/outcome.h"
#include "rr/reading.h"
#include "rr/rose_rr.h"

namespace rose::rr {

class Play {
 public:
  // If `path` cannot be replayed, ends the process with status 2.
  void begin(const char* path, const char* outcome, double patience_s);
  // False if another process already replays this recording. Then this process runs normally.
  [[nodiscard]] bool is_ours() const { return ours_; }

  std::size_t take(Kind kind, std::string_view key, void* data, std::size_t size, std::size_t room, bool sized);
  void compare(Kind kind, std::string_view key, const void* data, std::size_t size);
  std::size_t await(std::string_view key);
  void reproducer(std::string_view key, rose_rr_function function, void* context);
  bool checkpoint_due(std::string_view key);
  bool restore(std::string_view key, const void** data, std::size_t* size);
  void at_end(void (*function)(void*), void* context);
  void end();      // rose_rr_end()
  void exiting();  // called when exit() runs
  // Called in a handler of fatal signals. Waits until everything was replayed, or until there is no more progress.
  void wait_before_death();

 private:
  struct Waiter;
  struct Worker;
  struct Reproducer;
  static void* watch(void* self);
  static void* work(void* worker);
  void wait_turn(Kind kind, std::string_view key);
  void advance();
  void dispatch(bool at_once = false);
  void finish();
  void note_state();
  [[noreturn]] void refuse(const char* path, const char* why);
  [[noreturn]] void diverge(const char* expected, const char* got);
  void expect_text(char* text, std::size_t room) const;
  bool load(Reading& reading);
  void claim(const char* outcome);
  bool start_thread(void* (*run)(void*), void* argument);

  pthread_mutex_t lock_ = PTHREAD_MUTEX_INITIALIZER;
  pthread_cond_t watch_ = PTHREAD_COND_INITIALIZER;
  Record* records_ = nullptr;
  // for each record: index of the next record of the same thread; count_: there is none
  std::uint32_t* following_ = nullptr;
  std::size_t count_ = 0;
  std::atomic<std::size_t> next_ = 0;
  bool ended_ = false;  // the recorded process ended on purpose, so this process is expected to do so, too
  bool must_restore_ = false;
  bool ours_ = true;
  bool finishing_ = false, gone_ = false;
  std::size_t dispatched_ = SIZE_MAX;  // index of the last record for which a reproducer was called
  std::uint64_t taker_ = 0;            // the thread that took the last record
  Waiter* waiters_ = nullptr;
  Worker* workers_ = nullptr;
  std::size_t worker_count_ = 0;
  Reproducer* reproducers_ = nullptr;
  void (*hook_)(void*) = nullptr;
  void* hook_context_ = nullptr;
  Outcome* outcome_ = nullptr;
  Outcome own_{};
  double patience_s_ = 10;
};

}  // namespace rose::rr
