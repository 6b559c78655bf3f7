// Measures the cost of a record for the program that makes it, and how many records per second eight threads make.
#include <benchmark/benchmark.h>
#include <fcntl.h>
#include <unistd.h>

#include <cstdlib>
#include <string>

#include "rr/ring.h"
#include "rr/rose_rr.hpp"

namespace {

// Recording is off, so only the branch is executed.
void record_off(benchmark::State& state) {
  std::uint64_t number = 1;
  for (auto _ : state) {
    rose::rr::record("number", number);
    benchmark::DoNotOptimize(number);
  }
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(record_off);

// Records into one ring of 64 MiB, which wraps around repeatedly.
class Recorded : public benchmark::Fixture {
 public:
  void SetUp(const benchmark::State& state) override {
    if (state.thread_index() != 0) return;
    std::string folder = "/tmp/rose-bench-XXXXXX";
    if (::mkdtemp(folder.data()) == nullptr) std::abort();
    const int fd = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    char why[256] = "";
    static rose::rr::Ring made;
    made = rose::rr::Ring();
    if (!made.create(fd, "r", 64 << 20, "", why, sizeof why)) std::abort();
    ring = &made;
    ::unlinkat(fd, "r", 0);
    ::close(fd);
    ::rmdir(folder.c_str());
  }
  static rose::rr::Ring* ring;
};
rose::rr::Ring* Recorded::ring = nullptr;

BENCHMARK_DEFINE_F(Recorded, record)(benchmark::State& state) {
  const std::string data(static_cast<std::size_t>(state.range(0)), 'x');
  for (auto _ : state) ring->append(rose::rr::Kind::value, 0, {"client/17", 9}, {data.data(), data.size()});
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK_REGISTER_F(Recorded, record)->Arg(0)->Arg(64)->Arg(1024)->Threads(1)->Threads(8)->UseRealTime();

}  // namespace
