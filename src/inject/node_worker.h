// Does things to one node one after the other, so that the thread that keeps time never waits for a cgroup to freeze.
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
  // Returns when all that was added has been done.
  void drain();
  // Does what is queued, then ends.
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
