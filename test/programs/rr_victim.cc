// A program that records itself and is replayed: rr_victim WHAT [ARGUMENT...]. It prints what it did.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <mutex>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "rr/rose_rr.hpp"

namespace rr = rose::rr;

namespace {

std::string variant() {
  const char* given = std::getenv("VARIANT");
  return given == nullptr ? "" : given;
}

// Threads draw numbers and append them to one list. The scheduler determines the order.
int order(int threads, int steps) {
  std::mutex mutex;
  std::vector<std::uint32_t> list;
  std::vector<std::thread> all;
  for (int i = 0; i < threads; ++i) {
    all.emplace_back([&, i] {
      const std::string draw = "draw/" + std::to_string(i), list_key = "list/" + std::to_string(i);
      std::random_device random;
      for (int step = 0; step < steps; ++step) {
        const std::uint32_t number = rr::recorded(draw.c_str(), [&] { return random(); });
        std::unique_lock lock(mutex, std::defer_lock);
        rr::lock_in_order(list_key.c_str(), lock);
        list.push_back(number ^ static_cast<std::uint32_t>(i));
      }
    });
  }
  for (std::thread& thread : all) thread.join();
  std::uint64_t hash = 0;
  for (const std::uint32_t number : list) hash = hash * 1099511628211U + number;
  std::printf("%016lx\n", hash);
  return 0;
}

// Reads lines from stdin until "quit", and passes them through a queue to a worker. A third thread is a timer.
class Server {
 public:
  void run() {
    std::thread timer([this] {
      for (;;) {
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
        std::unique_lock lock(state_, std::defer_lock);
        rr::lock_in_order("tick", lock);
        if (over_) return;
        sum_ = 3 * sum_ + 1;
        rr::compare("sum", {reinterpret_cast<const char*>(&sum_), sizeof sum_});
      }
    });
    std::thread worker([this] { work(); });
    if (rr::replaying()) {
      rr::reproducer(
          "line/*", [this](std::string_view key, std::string_view line) { push(std::string(key), std::string(line)); });
    } else {
      char text[256];
      for (int i = 0; std::fgets(text, sizeof text, stdin) != nullptr; ++i) {
        text[std::strcspn(text, "\n")] = '\0';
        push("line/" + std::to_string(i % 3), text);
      }
    }
    worker.join();
    timer.join();
    std::printf("%lu %d\n", sum_, lines_);
  }

 private:
  void push(std::string key, std::string line) {
    const std::lock_guard lock(queue_);
    lines_waiting_.emplace_back(std::move(key), std::move(line));
    come_.notify_one();
  }
  void work() {
    for (;;) {
      std::pair<std::string, std::string> taken;
      {
        std::unique_lock lock(queue_);
        come_.wait(lock, [this] { return !lines_waiting_.empty(); });
        taken = std::move(lines_waiting_.front());
        lines_waiting_.pop_front();
      }
      auto& [key, line] = taken;
      rose_rr_lock(key.c_str());
      const std::lock_guard lock(state_);
      rr::record(key.c_str(), line);
      for (const char c : line) sum_ = sum_ * 31 + static_cast<unsigned char>(c);
      ++lines_;
      if (line == "boom") std::abort();
      if (line == "quit") {
        over_ = true;
        return;
      }
    }
  }
  std::mutex queue_, state_;
  std::condition_variable come_;
  std::deque<std::pair<std::string, std::string>> lines_waiting_;
  std::uint64_t sum_ = 0;
  int lines_ = 0;
  bool over_ = false;
};

// In each variant, the replay does one thing differently from the recording.
int differs() {
  const std::string what = variant();
  std::uint64_t number = 7;
  rr::record("one", number);
  if (what == "size") {
    std::uint32_t small = 7;
    rr::record("two", small);
  } else if (what == "key") {
    rr::record("other", number);
  } else if (what == "kind") {
    rose_rr_lock("two");
    rose_rr_locked("two");
  } else if (what == "exit") {
    return 0;
  } else if (what == "crash") {
    std::abort();
  } else {
    rr::record("two", number);
  }
  rr::compare("small", what == "compare" ? "hxllo" : "hello");
  rr::compare("large", std::string(100, what == "hash" ? 'b' : 'a'));
  if (what == "more") rr::record("three", number);
  std::puts("done");
  std::fflush(stdout);
  if (what == "unfinished") ::_exit(0);
  return 0;
}

// Records more numbers than the window can hold. Checkpoints store the counter's value.
int window(int steps) {
  struct State {
    std::uint64_t counter = 0, hash = 0;
  } state;
  const void* data = nullptr;
  std::size_t size = 0;
  if (variant() != "forgets" && rose_rr_restore("state", &data, &size) != 0 && size == sizeof state)
    std::memcpy(&state, data, size);
  else if (variant() != "forgets") rose_rr_checkpoint("state", &state, sizeof state);
  std::random_device random;
  while (state.counter < static_cast<std::uint64_t>(steps)) {
    const std::uint32_t number = rr::recorded("number", [&] { return random(); });
    state.hash = (state.hash ^ number) * 1099511628211U;
    ++state.counter;
    if (rose_rr_checkpoint_due("state") != 0 && variant() != "bare") rose_rr_checkpoint("state", &state, sizeof state);
  }
  std::printf("%lu %016lx\n", state.counter, state.hash);
  return 0;
}

// Appends records as fast as it can, until it is killed. Each thread stores in FILE which of its calls have returned.
int flood(const char* file, int threads) {
  const int fd = ::open(file, O_RDWR | O_CLOEXEC);
  auto* returned =
      static_cast<std::atomic<std::uint64_t>*>(::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0));
  if (returned == MAP_FAILED) return 1;
  std::vector<std::thread> all;
  for (int i = 0; i < threads; ++i) {
    all.emplace_back([&, i] {
      const std::string key = "t" + std::to_string(i);
      char bytes[200] = {};
      for (std::uint64_t n = 1;; ++n) {
        std::memcpy(bytes, &n, sizeof n);
        rose_rr_record(key.c_str(), bytes, 8 + n % 190);
        returned[8 * i].store(n);
      }
    });
  }
  all.front().join();
  return 0;
}

// A child of fork() neither records nor replays.
int forks() {
  std::uint32_t number = 1;
  rr::record("before", number);
  const pid_t child = ::fork();
  if (child == 0) {
    rr::record("child", number);
    std::exit(rr::on() ? 3 : 0);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  rr::record("after", number);
  std::printf("%d\n", WEXITSTATUS(status));
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string what = argc > 1 ? argv[1] : "";
  if (what == "order" && argc == 4) return order(std::atoi(argv[2]), std::atoi(argv[3]));
  if (what == "server") {
    Server().run();
    return 0;
  }
  if (what == "differs") return differs();
  if (what == "window" && argc == 3) return window(std::atoi(argv[2]));
  if (what == "flood" && argc == 4) return flood(argv[2], std::atoi(argv[3]));
  if (what == "forks") return forks();
  if (what == "on") {
    std::printf("%d\n", rose_rr_on());
    return 0;
  }
  return 2;
}
