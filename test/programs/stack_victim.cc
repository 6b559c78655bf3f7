// Threads that make calls through stack frames that no frame pointer links: stack_victim THREADS TIMES FOLDER. Each
// writes TIMES times to its own file, threads with even numbers by even_way() and the others by odd_way().
#include <fcntl.h>
#include <unistd.h>

#include <barrier>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

namespace stacks {

volatile int sink = 0;

static inline __attribute__((always_inline)) long put_line(int fd, const char* text) {
  const long wrote = ::write(fd, text, std::strlen(text));  // stack: write
  sink = sink + 1;
  return wrote;
}

class Store {
 public:
  explicit Store(int fd) : fd_(fd) {}
  __attribute__((noinline)) long append(const std::string& text) {
    char room[256];
    std::snprintf(room, sizeof room, "%s\n", text.c_str());
    const long wrote = put_line(fd_, room);  // stack: put_line
    sink = sink + room[0];
    return wrote;
  }

 private:
  int fd_;
};

namespace {
struct Counter {
  __attribute__((always_inline)) void count(int n) { sink = sink + n; }
};
}  // namespace

extern "C" __attribute__((noinline, used)) void count_up(int n) { Counter().count(n); }  // no other function calls it

extern "C" __attribute__((noinline)) void checkpoint(int n) { sink = sink + n; }

__attribute__((noinline)) long even_way(Store& store, int n) {
  checkpoint(n);
  const long wrote = store.append("even " + std::to_string(n));  // stack: even
  sink = sink + 1;
  return wrote;
}

__attribute__((noinline)) long odd_way(Store& store, int n) {
  const long wrote = store.append("odd " + std::to_string(n));  // stack: odd
  sink = sink + 2;
  return wrote;
}

// When a thread starts, the process's memory map changes, and rose may not know the change for a moment. Therefore all
// threads start before any of them works.
void begin(std::barrier<>& all) {
  void* volatile own = std::malloc(1);  // makes glibc map memory for the thread now
  std::free(own);
  all.arrive_and_wait();
}

__attribute__((noinline)) void work(int number, int times, const std::string& folder) {
  const std::string path = folder + "/lines." + std::to_string(number);
  Store store(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
  for (int i = 0; i < times; ++i) {
    const long wrote = number % 2 == 0 ? even_way(store, i) : odd_way(store, i);  // stack: work
    if (wrote < 0) std::printf("%d fails: %s\n", number, std::strerror(errno));
  }
  sink = sink + 1;
}

}  // namespace stacks

int main(int argc, char** argv) {
  if (argc != 4) return 2;
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  const int count = std::atoi(argv[1]), times = std::atoi(argv[2]);
  std::barrier all(count);
  std::vector<std::thread> threads;
  for (int i = 1; i < count; ++i)
    threads.emplace_back([&all, i, times, folder = std::string(argv[3])] {
      stacks::begin(all);
      stacks::work(i, times, folder);
    });
  stacks::begin(all);
  stacks::work(0, times, argv[3]);
  for (auto& thread : threads) thread.join();
  std::puts("done");
  return 0;
}
