// Executes tasks for a node one after the other, so that the injector's thread never waits for a cgroup to freeze.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>

namespace rose::inject {

class NodeWorker {
 public:
  NodeWorker() : thread_([this] { run(); }) {}
  ~NodeWorker() { finish(); }
  NodeWorker(const NodeWorker&) = delete;
  NodeWorker& operator=(const NodeWorker&) = delete;

  void add(std::function<void()> task);
  // Returns when all tasks added so far are done.
  void drain();
  // Executes the queued tasks, then ends the thread.
  void finish();

 private:
  void run();

  std::mutex mutex_;
  std::condition_variable ready_, idle_;
  bool busy_ = false;
  std::deque<std::function<void()>> tasks_;
  bool stop_ = false;
  std::thread thread_;
};

}  // namespace rose::inject
