// The cost of watched functions, measured in one run on one machine:
//
//   bench_functions [SECONDS]      4,000 profiled functions: lost throughput; time to attach, detach and look up
//
// The victim is the same process all the time. Intervals with and without profiling alternate, so that other activities
// of the machine affect both. Exits with 1 if a limit is exceeded.
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "observe/tracer.h"
#include "symbols/symbols.h"

namespace {

using rose::Fd;
using rose::observe::Target;
using rose::observe::Tracer;
using rose::observe::TracerOptions;

double now() { return static_cast<double>(rose::monotonic_ns()) / 1e9; }

class Victim {
 public:
  Victim() {
    int in[2], out[2];
    if (::pipe2(in, O_CLOEXEC) != 0 || ::pipe2(out, O_CLOEXEC) != 0) std::exit(3);
    pid_ = ::fork();
    if (pid_ == 0) {
      ::dup2(in[0], 0);
      ::dup2(out[1], 1);
      ::execl(ROSE_BENCH_VICTIM, ROSE_BENCH_VICTIM, nullptr);
      ::_exit(127);
    }
    ::close(in[0]);
    ::close(out[1]);
    in_ = Fd(in[1]);
    out_ = Fd(out[0]);
    if (line() != "ready") std::exit(3);
  }
  ~Victim() {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  Victim(const Victim&) = delete;
  Victim& operator=(const Victim&) = delete;
  [[nodiscard]] pid_t pid() const { return pid_; }
  // Requests per second since the previous call.
  double mark() {
    if (::write(in_.get(), "x", 1) != 1) std::exit(3);
    return std::strtod(line().c_str(), nullptr);
  }

 private:
  std::string line() {
    std::string text;
    char byte = 0;
    for (;;) {
      pollfd wait{out_.get(), POLLIN, 0};
      if (::poll(&wait, 1, 60'000) != 1 || ::read(out_.get(), &byte, 1) != 1) return "";
      if (byte == '\n') return text;
      text += byte;
    }
  }
  pid_t pid_ = -1;
  Fd in_, out_;
};

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

Target target_of(const Victim& victim, bool functions) {
  Target target;
  target.node = "n1";
  target.pids = {victim.pid()};
  if (functions) {
    target.binaries = {ROSE_BENCH_VICTIM};
    target.functions = {"rose_bench_*"};
  }
  return target;
}

std::unique_ptr<Tracer> start(const TracerOptions& options, const Target& target) {
  auto tracer = Tracer::start(options, {target});
  if (tracer) return std::move(*tracer);
  std::fprintf(stderr, "bench_functions: %s\n", tracer.error().message.c_str());
  std::exit(3);
}

}  // namespace

int main(int argc, char** argv) {
  const double seconds = argc > 1 ? std::strtod(argv[1], nullptr) : 10;
  const auto span = std::chrono::duration<double>(seconds);
  constexpr int kRounds = 3;
  TracerOptions profile;
  profile.infrequent_below = 2;
  bool good = true;

  auto begin = now();
  const auto functions = rose::symbols::find_functions(std::filesystem::path(ROSE_BENCH_VICTIM), {"rose_bench_*"}, {});
  std::printf("functions                          %zu, found in %.3f s\n", functions ? functions->size() : 0,
              now() - begin);

  Victim victim;
  std::vector<double> ratios, attach, detach;
  std::vector<rose::profile::FunctionRate> rates;
  (void)victim.mark();
  for (int round = 0; round < kRounds; ++round) {
    std::this_thread::sleep_for(span / 2);
    const double before = victim.mark();
    begin = now();
    auto tracer = start(profile, target_of(victim, true));
    attach.push_back(now() - begin);
    (void)victim.mark();  // attaching is not measured, because it happens once; learning which functions are hot is
                          // measured
    const double since = now();
    std::this_thread::sleep_for(std::min(span / 4, std::chrono::duration<double>(1)));
    const double first_span = now() - since;
    const double first = victim.mark();
    std::this_thread::sleep_for(span - std::chrono::duration<double>(first_span));
    const double rest = victim.mark();
    const double profiled = (first * first_span + rest * (now() - since - first_span)) / (now() - since);
    rates = tracer->counts().functions;
    begin = now();
    tracer.reset();
    detach.push_back(now() - begin);
    (void)victim.mark();
    std::this_thread::sleep_for(span / 2);
    const double after = victim.mark();
    const double plain = (before + after) / 2;
    ratios.push_back(profiled / plain);
    std::printf(
        "round %d: requests a second           %.0f plain, %.0f profiled for %.0f s (%.0f in the first %.1f s)\n",
        round + 1, plain, profiled, seconds, first, first_span);
  }
  const double kept = median(ratios);
  std::printf("throughput kept while profiled     %.3f (lost %.1f %%; fails from 33 %% on)\n", kept, 100 * (1 - kept));
  good = good && kept > 2.0 / 3;

  // Check the classification against the names, which show what each function is.
  std::size_t wrong = 0, rare = 0;
  for (const auto& rate : rates) {
    const bool often =
        rate.function.find("_inner_") != std::string::npos || rate.function.find("_request_") != std::string::npos;
    const bool seldom = rate.function.find("_second_") != std::string::npos ||
                        rate.function.find("_start_") != std::string::npos ||
                        rate.function.find("_never_") != std::string::npos;
    rare += rate.infrequent ? 1 : 0;
    if ((often && rate.infrequent) || (seldom && !rate.infrequent)) {
      if (++wrong <= 5)
        std::printf("  judged wrongly: %s, %lu calls, %.2f a second\n", rate.function.c_str(),
                    static_cast<unsigned long>(rate.count), rate.per_second);
    }
  }
  std::printf("called infrequent                  %zu of %zu, %zu judged wrongly\n", rare, rates.size(), wrong);
  good = good && wrong == 0 && !rates.empty();

  // Measure the whole tracer with and without functions. The difference is the cost of 4,000 functions.
  std::vector<double> plain_start, plain_stop, watch_start, watch_stop;
  for (int round = 0; round < kRounds; ++round) {
    for (const bool with : {false, true}) {
      begin = now();
      auto tracer = start({}, target_of(victim, with));
      (with ? watch_start : plain_start).push_back(now() - begin);
      begin = now();
      tracer.reset();
      (with ? watch_stop : plain_stop).push_back(now() - begin);
    }
  }
  std::printf("tracer without functions           start %.3f s, stop %.3f s\n", median(plain_start),
              median(plain_stop));
  std::printf("... recording 4,000 functions      start %.3f s, stop %.3f s\n", median(watch_start),
              median(watch_stop));
  std::printf("... profiling 4,000 functions      start %.3f s, stop %.3f s\n", median(attach), median(detach));
  const double functions_cost = median(watch_start) - median(plain_start) + median(watch_stop) - median(plain_stop);
  std::printf("attach + detach 4,000 functions    %.3f s (fails beyond 0.5 s)\n", functions_cost);
  good = good && functions_cost <= 0.5;
  return good ? 0 : 1;
}
