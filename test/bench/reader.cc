// Measures how many events per second the reader moves from the ring to the window, while calls of other threads fail
// as fast as possible.
#include <benchmark/benchmark.h>
#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <string>

#include "base/fd.h"
#include "observe/tracer.h"

extern char** environ;

namespace {

using namespace rose;

// Runs rose_bench_calls. That program is controlled over two pipes, and ends when its input ends.
class Calls {
 public:
  Calls() {
    int in[2], out[2];
    if (::pipe2(in, O_CLOEXEC) != 0 || ::pipe2(out, O_CLOEXEC) != 0) return;
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, in[0], 0);
    posix_spawn_file_actions_adddup2(&actions, out[1], 1);
    char name[] = ROSE_BENCH_CALLS;
    char* argv[] = {name, nullptr};
    if (::posix_spawn(&pid_, name, &actions, nullptr, argv, environ) != 0) pid_ = -1;
    posix_spawn_file_actions_destroy(&actions);
    ::close(in[0]);
    ::close(out[1]);
    in_ = Fd(in[1]);
    out_ = ::fdopen(out[0], "r");
  }
  ~Calls() {
    in_.reset();
    if (pid_ > 0) ::waitpid(pid_, nullptr, 0);
    if (out_ != nullptr) std::fclose(out_);
  }
  Calls(const Calls&) = delete;
  Calls& operator=(const Calls&) = delete;
  [[nodiscard]] pid_t pid() const { return pid_; }
  double ask(const std::string& line) {
    double answer = -1;
    if (::write(in_.get(), line.data(), line.size()) < 0 || std::fscanf(out_, "%lf", &answer) != 1) return -1;
    return answer;
  }

 private:
  pid_t pid_ = -1;
  Fd in_;
  std::FILE* out_ = nullptr;
};

void ring_to_window(benchmark::State& state) {
  Calls calls;
  observe::Target target;
  target.node = "n1";
  target.pids = {calls.pid()};
  auto tracer = observe::Tracer::start({}, {target});
  if (!tracer) {
    state.SkipWithError(tracer.error().message.c_str());
    return;
  }
  double made = 0;
  const auto line = "storm " + std::to_string(state.range(0)) + " 0.5\n";
  for (auto _ : state) {
    const double sum = calls.ask(line);
    if (sum < 0) {
      state.SkipWithError("the workload ended");
      return;
    }
    made += sum;
    if (auto window = (*tracer)->snapshot(); !window) state.SkipWithError("no snapshot");
  }
  const auto stats = (*tracer)->stats();
  state.counters["events/s"] = benchmark::Counter(static_cast<double>(stats.recorded), benchmark::Counter::kIsRate);
  state.counters["made"] = made;
  state.counters["lost"] = static_cast<double>(stats.lost);
}
// Measured in real time, because other threads do the work.
BENCHMARK(ring_to_window)->Arg(1)->Arg(4)->UseRealTime()->Unit(benchmark::kMillisecond)->MinTime(2.0);

}  // namespace
