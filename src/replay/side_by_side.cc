#include "replay/side_by_side.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <thread>

#include "base/ascii.h"
#include "base/file.h"
#include "base/log.h"
#include "base/units.h"
#include "kernel/syscalls.h"
#include "replay/repeat.h"

namespace rose::replay {
namespace {

// Timings of runs on a quiet machine may differ by a quarter plus kSlackNs, because of schedulers, the page cache and
// first page faults. The absolute part covers times that are so short that a quarter of them is noise. If a deployment
// has timeouts that are tighter than this, it would also be affected by a machine that is ordinarily busy.
constexpr double kSlack = 1.25;
constexpr std::int64_t kSlackNs = 200'000'000;
// The share of processor time that runs may use. The rest is for rose itself and for other processes.
constexpr double kProcessorShare = 0.75;
// The share of free memory that runs may use, because nodes may need more with faults than without.
constexpr double kMemoryShare = 0.5;
// If, for more than this share of the time, all tasks of parallel runs wait for memory or disk, the runs stall each
// other (PSI "full", Documentation/accounting/psi.rst).
constexpr double kStalledShare = 0.1;

std::int64_t with_slack(std::int64_t ns) {
  return static_cast<std::int64_t>(static_cast<double>(ns) * kSlack) + kSlackNs;
}

std::uint64_t free_memory() {
  std::uint64_t kib = 0;
  if (const auto text = read_file("/proc/meminfo"))
    if (const std::size_t at = text->find("MemAvailable:"); at != std::string::npos)
      kib = std::strtoull(text->c_str() + at + 13, nullptr, 10);
  return kib << 10;
}

// Microseconds since boot in which all tasks that wanted to run waited for memory or disk; 0 if the kernel has no PSI.
std::uint64_t stalled_us() {
  std::uint64_t sum = 0;
  for (const char* file : {"/proc/pressure/memory", "/proc/pressure/io"})
    if (const auto text = read_file(file))
      if (const std::size_t full = text->find("full "); full != std::string::npos)
        if (const std::size_t total = text->find("total=", full); total != std::string::npos)
          sum += std::strtoull(text->c_str() + total + 6, nullptr, 10);
  return sum;
}

bool usable(const Run& run) {
  return run.completed && run.result.oracle == schedule::OracleAnswer::miss && run.workload.ok();
}

std::string seconds(std::int64_t ns) { return fmt::format("{:.1f} s", static_cast<double>(ns) / 1e9); }

// True if the path contains the id of its process, as "/tmp/hsperfdata_root/1234" of a JVM does. No other process uses
// such a path at the same time.
bool contains_number(std::string_view path, std::int32_t pid) {
  if (pid <= 0) return false;
  const std::string number = std::to_string(pid);
  for (std::size_t at = path.find(number); at != std::string_view::npos; at = path.find(number, at + 1)) {
    const std::size_t end = at + number.size();
    if ((at == 0 || !is_digit(path[at - 1])) && (end == path.size() || !is_digit(path[end]))) return true;
  }
  return false;
}

// True for a file that was created with O_TMPFILE. The kernel shows the number of its inode instead of a name, as in
// "/tmp/#1234", and other processes cannot open it.
bool is_unnamed(std::string_view path) {
  const std::string_view name = path.substr(path.rfind('/') + 1);
  return name.size() > 1 && name[0] == '#' && std::all_of(name.begin() + 1, name.end(), is_digit);
}

}  // namespace

void TimingRange::add(const RunLoad& load) {
  ready_ns = std::max(ready_ns, with_slack(load.ready_ns));
  workload_ns = std::max(workload_ns, with_slack(load.workload_ns));
}

std::string TimingRange::outside(const RunLoad& load, bool faults) const {
  if (ready_ns > 0 && load.ready_ns > ready_ns)
    return fmt::format("its nodes took {} to become ready, control runs at most {}", seconds(load.ready_ns),
                       seconds(ready_ns));
  if (!faults && workload_ns > 0 && load.workload_ns > workload_ns)
    return fmt::format("its workload took {}, that of control runs at most {}", seconds(load.workload_ns),
                       seconds(workload_ns));
  return {};
}

double TimingRange::excess(const RunLoad& load) const {
  const auto share = [](std::int64_t ns, std::int64_t most) {
    return most > 0 ? static_cast<double>(ns) / static_cast<double>(most) : 0;
  };
  return std::max(share(load.ready_ns, ready_ns), share(load.workload_ns, workload_ns));
}

std::string never_side_by_side(const config::Config& config) {
  if (config.deployment.network != config::Network::netns)
    return "network = \"host\": runs would compete for the same ports";
  for (const config::Node& node : config.nodes)
    if (node.attach) return fmt::format("node {} is attached: there is only one of it", node.name);
  return {};
}

ChangedOutside changed_outside(const config::Config& config, const Run& run) {
  std::set<std::string> on_the_host;
  for (const config::Node& node : config.nodes)
    if (!node.container && !node.attach) on_the_host.insert(node.name);
  ChangedOutside changed;
  const std::string own = run.directory_made_in.string() + "/";
  for (const trace::Event& event : run.result.trace.events) {
    if (event.type != trace::EventType::sys || kernel::syscall_name(event.syscall).starts_with("exec")) continue;
    const std::string node(run.result.trace.str(event.node));
    if (!on_the_host.contains(node)) continue;
    for (const trace::StringId id : {event.path, event.path2}) {
      const std::string_view path = run.result.trace.str(id);
      if (!path.starts_with('/') || path.starts_with(own)) continue;
      if (path.starts_with("/proc/") || path.starts_with("/sys/") || path.starts_with("/dev/")) continue;
      if (contains_number(path, event.pid) || is_unnamed(path)) continue;
      changed.emplace(std::string(path), node);
    }
  }
  return changed;
}

std::string shared_path(const ChangedOutside& one, const ChangedOutside& other) {
  for (const auto& [path, node] : other)
    if (one.contains(path)) return fmt::format("{} writes {} in every run", node, path);
  return {};
}

int fitting_runs(const RunLoad& load, int processors, std::uint64_t free, int most) {
  const double wall = static_cast<double>(std::max<std::int64_t>(load.ready_ns + load.workload_ns, 1)) / 1e9;
  const double busy = std::max(load.cpu_seconds / wall, 0.001);
  double fit = std::min<double>(most, kProcessorShare * processors / busy);
  if (load.memory > 0) fit = std::min(fit, kMemoryShare * static_cast<double>(free) / static_cast<double>(load.memory));
  // Parallel runs start at the same time, and together need the sum of the processor time of their starts. Their nodes
  // are ready no sooner than after this sum divided by the number of processors that work for them.
  if (load.start_cpu_seconds > 0) {
    const double most_seconds = static_cast<double>(with_slack(load.ready_ns)) / 1e9;
    fit = std::min(fit, most_seconds * kProcessorShare * processors / load.start_cpu_seconds);
  }
  return std::clamp(static_cast<int>(fit), 1, most);
}

int fewer_runs(int jobs, double excess) {
  const int half = jobs > 2 ? (jobs + 1) / 2 : 1;
  return excess > 1 ? std::max(1, std::min(half, static_cast<int>(jobs / excess))) : half;
}

Result<SideBySide> measure_alone(RunStore& store, const config::Config& config, const schedule::Schedule& no_faults,
                                 RunOptions options) {
  SideBySide made;
  made.next_number = options.number;
  if (std::string why = never_side_by_side(config); !why.empty()) {
    made.words = std::move(why);
    return made;
  }
  options.trace = true;  // tracing shows what nodes write outside their folders
  options.number = made.next_number++;
  ROSE_TRY(Run alone, run_in(store, config, no_faults, options));
  const bool fit_to_measure = usable(alone);
  made.range.add(alone.load);
  made.alone = alone.load;
  made.changed = changed_outside(config, alone);
  const int processors = static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
  if (fit_to_measure) {
    made.fit = fitting_runs(alone.load, processors, free_memory(), kMostAutomaticJobs);
    RunLoad waiting = alone.load;
    waiting.cpu_seconds = waiting.start_cpu_seconds = 0;
    made.waiting = fitting_runs(waiting, processors, free_memory(), kMostAutomaticJobs);
  }
  made.words = !fit_to_measure ? "the control run cannot be compared with"
               : made.fit == 1 ? fmt::format("one run uses {:.1f} s of processor time and {} MiB of memory",
                                             alone.load.cpu_seconds, alone.load.memory >> 20)
                               : "";
  made.control_runs.push_back(std::move(alone));
  return made;
}

Result<void> measure_in_parallel(SideBySide& made, RunStore& store, const config::Config& config,
                                 const schedule::Schedule& no_faults, RunOptions options, int proven) {
  options.trace = true;
  TimingRange range;
  range.add(made.alone);
  const auto check = options.check;
  options.check = [&range, check](Run& run, const schedule::Schedule& schedule) {
    if (check) check(run, schedule);
    if (std::string why = range.outside(run.load, false); run.completed && !why.empty()) run.disturbed = std::move(why);
  };
  const auto keeps_timing = [&](int jobs) {
    made.jobs = jobs;
    made.words = fmt::format("{} runs keep the timing of one alone: ready after {}, workload {}", jobs,
                             seconds(made.alone.ready_ns), seconds(made.alone.workload_ns));
  };
  // A measurement takes as long as a run. It is worth this only if it may at least double the number of parallel runs
  // that are known to keep the timing.
  double excess = 0;
  for (int jobs = made.fit; jobs >= 2 * proven; jobs = fewer_runs(jobs, excess)) {
    excess = 0;
    const std::vector<const schedule::Schedule*> batch(static_cast<std::size_t>(jobs), &no_faults);
    options.number = made.next_number;
    made.next_number += jobs;
    const std::uint64_t stalled = stalled_us();
    std::string why;
    std::int64_t longest_ns = 1;
    std::vector<Run> beside;
    for (Result<Run>& run : run_side_by_side(store, config, batch, options)) {
      if (!run) return Unexpected(std::move(run).error());
      longest_ns = std::max(longest_ns, static_cast<std::int64_t>(run->result.seconds * 1e9));
      if (run->completed) excess = std::max(excess, range.excess(run->load));
      if (why.empty() && !run->disturbed.empty()) why = run->disturbed;
      else if (why.empty() && !usable(*run))
        why = run->result.oracle == schedule::OracleAnswer::hit ? "the oracle found the bug in a run without faults"
                                                                : run->result.reason;
      beside.push_back(std::move(*run));
    }
    for (const Run& run : beside)
      if (std::string path = shared_path(made.changed, changed_outside(config, run)); !path.empty()) {
        made.words = std::move(path);
        return {};  // these runs used the same file, so their timing means nothing
      }
    const double share = static_cast<double>(stalled_us() - stalled) * 1000 / static_cast<double>(longest_ns);
    if (why.empty() && share > kStalledShare)
      why = fmt::format("for {:.0f} % of the time all tasks waited for memory or disk", 100 * share);
    for (Run& run : beside)
      if (run.disturbed.empty() && usable(run)) {
        if (why.empty()) made.range.add(run.load);
        made.control_runs.push_back(std::move(run));
      }
    if (why.empty()) {
      keeps_timing(jobs);
      return {};
    }
    log::debug("{} parallel runs: {}", jobs, why);
    made.words = fmt::format("with {} in parallel {}", jobs, why);
  }
  if (proven > 1) keeps_timing(proven);
  return {};
}

Result<int> jobs_for(const config::Config& config, RunOptions options) {
  ROSE_TRY(RunStore store, RunStore::open(std::nullopt, false, {}, config.file));
  schedule::Schedule no_faults;
  no_faults.name = config.name;
  log::info("measuring how many runs this machine can carry in parallel");
  options.number = 1;
  ROSE_TRY(SideBySide made, measure_alone(store, config, no_faults, options));
  ROSE_CHECK(measure_in_parallel(made, store, config, no_faults, std::move(options)));
  log::info("parallel runs: {} ({})", made.jobs, made.words);
  return made.jobs;
}

}  // namespace rose::replay
