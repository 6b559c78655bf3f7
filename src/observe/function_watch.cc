#include "observe/function_watch.h"

#include <bpf/bpf.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "base/thread.h"

namespace rose::observe {
namespace {

// The kernel examines the instructions to be probed only if a process has mapped the file. rose maps it, so that the
// kernel refuses the same functions whether the program already runs or starts later.
class MappedFile {
 public:
  explicit MappedFile(const std::filesystem::path& path) {
    const Fd file = open_regular(path);
    struct stat about{};
    if (!file || ::fstat(file.get(), &about) != 0 || about.st_size <= 0) return;
    bytes_ = static_cast<std::size_t>(about.st_size);
    memory_ = ::mmap(nullptr, bytes_, PROT_READ, MAP_PRIVATE, file.get(), 0);
  }
  ~MappedFile() {
    if (memory_ != MAP_FAILED) ::munmap(memory_, bytes_);
  }
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

 private:
  void* memory_ = MAP_FAILED;
  std::size_t bytes_ = 0;
};

using namespace std::chrono_literals;

// Functions per link. To detach a link, the kernel waits for RCU grace periods (about 50 ms), however many functions
// the link contains. While functions are measured, links are replaced all the time, and smaller links disturb fewer
// other functions.
constexpr std::size_t kCountedGroup = 128;
constexpr std::size_t kRecordedGroup = 1024;
constexpr std::size_t kMostGroups = 96;   // above this number, small groups are merged
constexpr std::size_t kMostSamples = 64;  // functions attached again at once
constexpr std::size_t kMostReported = 8;  // limit of reported detached functions, for all tracers of a command
constexpr auto kCountingLook = 10ms;
constexpr auto kRecordingLook = 250ms;
// Limit for kernels without uprobe_multi links, where each function needs a perf event, and detaching costs 0.1 s each.
constexpr std::size_t kMostSingle = 256;
// For this long after a link was replaced, both the new and the old link may report an entry.
constexpr std::int64_t kDoubled_ns = 1'000'000'000;
constexpr std::int64_t kMergeAgain_ns = 10'000'000'000;

RateLimits counting_limits(double infrequent_below, double entry_seconds) {
  RateLimits limits;
  limits.entry_seconds = entry_seconds;
  limits.hot_rate = 2 * infrequent_below;
  return limits;
}

// Limits all functions together to a share of a CPU. In production, also limits each function to `hot_rate` entries per
// second over ten seconds: a function with a higher rate is not infrequent.
RateLimits recording_limits(double hot_rate, double share, double entry_seconds) {
  RateLimits limits;
  limits.share = share;
  limits.burst_seconds = 5;
  limits.entry_seconds = entry_seconds;
  limits.hot_rate = hot_rate;
  limits.window_seconds = 10;
  limits.hot_calls = std::max<std::uint64_t>(8, static_cast<std::uint64_t>(hot_rate * limits.window_seconds));
  limits.pause_seconds = 10;
  limits.longest_pause_seconds = 600;
  return limits;
}

std::atomic<std::size_t> reported_busy{0};  // number of functions reported as busy

}  // namespace

void UnmapCounts::operator()(std::uint64_t* counts) const { ::munmap(counts, bytes); }

Result<void> FunctionWatch::find(const std::vector<Target>& targets, const TracerOptions& options) {
  infrequent_below_ = options.infrequent_below;
  hot_rate_ = options.hot_function_rate;
  share_ = options.function_share;
  binaries_.execute_instead(options.copies);
  copies_ = options.inlined ? symbols::Copies::inlined : symbols::Copies::none;
  std::map<std::tuple<int, std::uint64_t, std::string>, std::uint32_t> known;
  std::vector<std::pair<std::uint32_t, std::uint32_t>> asked;
  const auto add = [&](int binary, const symbols::Function& function, std::uint32_t node) {
    const auto [it, fresh] = known.emplace(std::tuple(binary, function.probe_offset, function.name),
                                           static_cast<std::uint32_t>(functions_.size()));
    if (fresh) functions_.push_back({function.name, binary, function.probe_offset});
    asked.emplace_back(it->second, node);
  };
  for (const auto& target : targets) nodes_.push_back(target.node);
  for (std::uint32_t node = 0; node < targets.size(); ++node) {
    const auto& target = targets[node];
    if (target.functions.empty() && target.sources.empty()) continue;
    if (target.binaries.empty()) {
      return fail(ErrorKind::input, fmt::format("node '{}' names functions but no binary to find them in", target.node),
                  "give 'binary', the program or libraries they are in");
    }
    ROSE_TRY(
        auto found,
        symbols::find_functions(target.binaries, target.functions, target.sources, copies_).map_error([&](Error error) {
          return target.node.empty() ? error : std::move(error).in(fmt::format("node {}: its functions", target.node));
        }));
    for (auto& [path, function] : found) {
      const int binary = binaries_.add(path);
      if (binary < 0) return fail_errno(ErrorKind::input, fmt::format("cannot read '{}'", path.string()), errno);
      add(binary, function, node);
    }
  }
  find_profiled(targets, add);
  if (functions_.size() > kMostSingle && !kernel::has_uprobe_multi()) {
    log::warning(
        "this kernel probes functions one by one (no uprobe_multi links, Linux 6.6), which are slow to detach: the "
        "first {} of {} are watched",
        kMostSingle, functions_.size());
    functions_.resize(kMostSingle);
    std::erase_if(asked, [](const auto& pair) { return pair.first >= kMostSingle; });
  }
  wanted_.assign(functions_.size() * nodes_.size(), false);
  for (const auto& [function, node] : asked) wanted_[function * nodes_.size() + node] = true;
  return {};
}

void FunctionWatch::find_profiled(const std::vector<Target>& targets, const Add& add) {
  std::size_t all = 0, missing = 0;
  std::string first;
  const auto miss = [&](const Target& target, std::size_t count, const std::string& function) {
    if (missing == 0) first = fmt::format("'{}' of node '{}'", function, target.node);
    missing += count;
  };
  std::string why;
  for (std::uint32_t node = 0; node < targets.size(); ++node) {
    const auto& target = targets[node];
    std::map<std::filesystem::path, std::vector<std::string>> by_binary;
    for (const auto& [function, binary] : target.profiled) by_binary[binary].push_back(function);
    for (const auto& [binary, names] : by_binary) {
      all += names.size();
      const auto files = binaries_.substitutes(target, binary);
      if (files.empty()) {
        miss(target, names.size(), names.front());
        if (why.empty()) {
          why = binary.empty()
                    ? fmt::format("; no program of node '{}' can be read", target.node)
                    : fmt::format("; '{}' is not on this host, and no process of node '{}' runs such a program",
                                  binary.string(), target.node);
        }
        continue;
      }
      std::vector<std::filesystem::path> paths;
      for (const int file : files) paths.push_back(binaries_.symbols(file));
      auto found = symbols::find_known_functions(paths, names, copies_);
      if (!found) {
        miss(target, names.size(), names.front());
        if (why.empty())
          why = fmt::format("; '{}' cannot be read: {}", binaries_.name(files.front()).string(), found.error().message);
        continue;
      }
      if (!found->missing.empty()) miss(target, found->missing.size(), found->missing.front());
      for (const auto& [path, function] : found->functions) {
        add(files[static_cast<std::size_t>(std::find(paths.begin(), paths.end(), path) - paths.begin())], function,
            node);
      }
      if (binaries_.name(files.front()) != binary) {
        log::debug("functions of '{}' are looked up in '{}'", binary.string(), binaries_.name(files.front()).string());
      }
    }
  }
  if (missing == 0) return;
  log::warn_once(
      fmt::format("{} of {} functions that the profile calls infrequent are not watched: they are not in the programs "
                  "of this host; the first is {}{} (is this another build than the profiled one?)",
                  missing, all, first, why));
}

Result<FunctionWatch::Group> FunctionWatch::attach_group(int binary, std::vector<std::uint32_t> functions) {
  Group group;
  group.binary = binary;
  group.functions = std::move(functions);
  // The upper half identifies the link if two links report the same entry.
  const std::uint64_t link = static_cast<std::uint64_t>(++next_link_) << 32;
  std::vector<kernel::ProbePoint> points;
  for (const auto index : group.functions) points.push_back({functions_[index].offset, link | index});
  const auto& path = binaries_.path(binary);
  auto attached = kernel::attach_possible(program_, path, points);
  if (!attached) {
    auto error = std::move(attached).error();
    // Use the name that the user knows.
    if (const auto at = error.message.find(path.native()); at != std::string::npos)
      error.message.replace(at, path.native().size(), binaries_.name(binary).native());
    return Unexpected(std::move(error));
  }
  group.link = std::move(attached->link);
  if (attached->refused.empty()) return group;
  const auto counts = read_counts();
  const std::int64_t now = monotonic_ns();
  std::vector<std::uint32_t> refused;
  for (const std::size_t at : attached->refused) refused.push_back(group.functions[at]);
  for (const auto index : refused) {
    rates_->failed(index, now, counts);  // failed: the function's rate is unknown, not 0
    const std::string text =
        fmt::format("'{}' of '{}' cannot be watched: the kernel cannot place a probe at its first instruction",
                    functions_[index].name, binaries_.name(binary).string());
    if (log::is_first_report(text)) log::info("{}", text);
  }
  std::erase_if(group.functions,
                [&](std::uint32_t index) { return std::find(refused.begin(), refused.end(), index) != refused.end(); });
  return group;
}

// Marks functions that could not be watched, so that they are not considered rare.
void FunctionWatch::failed(int binary, const std::vector<std::uint32_t>& functions, const Error& why) {
  const auto counts = read_counts();
  const std::int64_t now = monotonic_ns();
  for (const auto index : functions) rates_->failed(index, now, counts);
  log::warn_once(
      fmt::format("functions of '{}' are temporarily not watched: {}", binaries_.name(binary).string(), why.message));
}

Result<void> FunctionWatch::attach(const bpf_program* program, int counts_map, OnDetach on_detach) {
  if (functions_.empty()) return {};
  program_ = program;
  on_detach_ = std::move(on_detach);
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  const std::size_t bytes = (counters() * sizeof(std::uint64_t) + page - 1) / page * page;
  void* memory = ::mmap(nullptr, bytes, PROT_READ, MAP_SHARED, counts_map, 0);
  if (memory == MAP_FAILED) return fail_errno(ErrorKind::environment, "cannot map the functions' counters", errno);
  mapped_ = {static_cast<std::uint64_t*>(memory), UnmapCounts{bytes}};
  if (!counting()) last_.resize(256);
  const double entry_seconds = kernel::uprobe_seconds();
  log::debug("{} functions to watch; one entry costs {:.1f} us", functions_.size(), entry_seconds * 1e6);
  rates_ = std::make_unique<FunctionRates>(functions_.size(), nodes_.size() + 1,
                                           counting() ? counting_limits(infrequent_below_, entry_seconds)
                                                      : recording_limits(hot_rate_, share_, entry_seconds));

  const std::lock_guard lock(mutex_);
  const std::size_t most = !kernel::has_uprobe_multi() ? 1 : counting() ? kCountedGroup : kRecordedGroup;
  std::map<int, std::vector<std::uint32_t>> by_binary;
  for (std::uint32_t i = 0; i < functions_.size(); ++i) by_binary[functions_[i].binary].push_back(i);
  for (const auto& [binary, all] : by_binary) {
    const MappedFile mapped(binaries_.path(binary));
    for (std::size_t begin = 0; begin < all.size(); begin += most) {
      const auto first = all.begin() + static_cast<std::ptrdiff_t>(begin);
      std::vector<std::uint32_t> some(first, first + static_cast<std::ptrdiff_t>(std::min(most, all.size() - begin)));
      const auto counts = read_counts();
      const std::int64_t now = monotonic_ns();
      ROSE_TRY(auto group, attach_group(binary, std::move(some)));
      for (const auto index : group.functions) rates_->attached(index, now, counts);
      if (!group.functions.empty()) groups_.push_back(std::move(group));
    }
  }
  ROSE_TRY(watcher_, start_thread([this] { run(); }));
  return {};
}

void FunctionWatch::stop() {
  if (watcher_.joinable()) {
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    wake_.notify_all();
    watcher_.join();
  }
  for (auto& group : groups_) closer_.close(std::move(group.link));
  groups_.clear();
  closer_.wait();
}

bool FunctionWatch::entered(std::uint32_t function, std::uint32_t link, std::uint32_t tid) {
  if (monotonic_ns() < doubled_until_ns_) {
    // The function is part of the index, because two functions may begin at the same address, so that a thread enters
    // both alternately.
    auto& last = last_[(tid + function) % last_.size()];
    if (last.tid == tid && last.function == function && last.link != link && last.link != 0) {
      last = {};
      return false;
    }
    last = {tid, function, link};
  }
  return true;
}

std::vector<std::uint64_t> FunctionWatch::read_counts() const {
  std::vector<std::uint64_t> counts(counters());
  for (std::size_t i = 0; i < counts.size(); ++i) counts[i] = __atomic_load_n(mapped_.get() + i, __ATOMIC_RELAXED);
  return counts;
}

void FunctionWatch::run() {
  // Raise the priority: threads that enter hot functions compete with this thread for the CPU until it has detached the
  // functions.
  ::setpriority(PRIO_PROCESS, static_cast<id_t>(::gettid()), -10);
  std::unique_lock lock(mutex_);
  while (!wake_.wait_for(lock, counting() ? kCountingLook : kRecordingLook, [this] { return stopping_; })) look();
}

void FunctionWatch::look() {
  const auto counts = read_counts();
  const std::int64_t now = monotonic_ns();
  const auto gone = rates_->to_detach(now, counts);
  if (!gone.empty()) drop(gone);
  attach_due(now, counts);
  if (groups_.size() > kMostGroups) merge_groups();
  if (counting() || !on_detach_) return;
  for (const auto index : gone) {
    const auto own = counts.begin() + static_cast<std::ptrdiff_t>(index * (nodes_.size() + 1));
    const auto others = own + static_cast<std::ptrdiff_t>(nodes_.size());
    if (reported_busy <= kMostReported && log::is_first_report("busy: " + functions_[index].name)) {
      if (++reported_busy <= kMostReported)
        log::warning("'{}' is entered {:.0f} times a second{}: not recorded for {} s at a time while it is that busy",
                     functions_[index].name, rates_->last_rate(index),
                     *others > *std::max_element(own, others) ? ", mostly by processes that are not traced" : "",
                     rates_->pause_ns(index) / 1'000'000'000);
      else log::warn_once("further functions are as busy: they are detached in the same way, without a message");
    }
    for (std::uint32_t node = 0; node < nodes_.size(); ++node) {
      if (wanted(index, node)) on_detach_(index, node);
    }
  }
}

// Detaches functions. For each link that contains them, a new link with the other functions is attached before the old
// link is detached, so that the others are watched without interruption and their breakpoints stay in place.
void FunctionWatch::drop(const std::vector<std::uint32_t>& gone) {
  const std::set<std::uint32_t> out(gone.begin(), gone.end());
  std::vector<Group> groups;
  for (auto& group : groups_) {
    std::vector<std::uint32_t> stay;
    for (const auto index : group.functions) {
      if (!out.contains(index)) stay.push_back(index);
    }
    if (stay.size() == group.functions.size()) {
      groups.push_back(std::move(group));
      continue;
    }
    if (!stay.empty()) {
      doubled_until_ns_ = monotonic_ns() + kDoubled_ns;
      auto fresh = attach_group(group.binary, stay);
      if (fresh) groups.push_back(std::move(*fresh));
      else failed(group.binary, stay, fresh.error());
    }
    closer_.close(std::move(group.link));
  }
  groups_ = std::move(groups);
}

void FunctionWatch::attach_due(std::int64_t now, const std::vector<std::uint64_t>& counts) {
  const bool single = !kernel::has_uprobe_multi();
  // Detaching functions one by one takes 0.1 s each, so functions that were hot are not attached again.
  if (single && counting()) return;
  const auto due = rates_->due(now, single ? 1 : kMostSamples);
  if (due.empty()) return;
  std::map<int, std::vector<std::uint32_t>> by_binary;
  for (const auto index : due) by_binary[functions_[index].binary].push_back(index);
  for (auto& [binary, some] : by_binary) {
    const std::int64_t before = monotonic_ns();
    auto group = attach_group(binary, some);
    if (!group) {
      failed(binary, some, group.error());
      continue;
    }
    for (const auto index : group->functions) rates_->attached(index, before, counts);
    if (!group->functions.empty()) groups_.push_back(std::move(*group));
  }
}

// Merges the smallest links, because each function that was attached again and is no longer hot has a link of its own.
void FunctionWatch::merge_groups() {
  if (!kernel::has_uprobe_multi() || monotonic_ns() < merge_after_ns_) return;
  std::sort(groups_.begin(), groups_.end(),
            [](const Group& a, const Group& b) { return a.functions.size() > b.functions.size(); });
  std::map<int, std::vector<Group>> small;
  while (groups_.size() > kMostGroups / 2) {
    small[groups_.back().binary].push_back(std::move(groups_.back()));
    groups_.pop_back();
  }
  for (auto& [binary, groups] : small) {
    std::vector<std::uint32_t> all;
    std::vector<Group> old;
    const auto flush = [&] {
      if (old.empty()) return;
      doubled_until_ns_ = monotonic_ns() + kDoubled_ns;
      auto fresh = attach_group(binary, std::move(all));
      if (fresh) {
        groups_.push_back(std::move(*fresh));
        for (auto& group : old) closer_.close(std::move(group.link));
      } else {
        // The existing links keep working.
        log::debug("links were not merged: {}", fresh.error().message);
        merge_after_ns_ = monotonic_ns() + kMergeAgain_ns;
        for (auto& group : old) groups_.push_back(std::move(group));
      }
      all.clear();
      old.clear();
    };
    for (auto& group : groups) {
      if (all.size() + group.functions.size() > kCountedGroup) flush();
      all.insert(all.end(), group.functions.begin(), group.functions.end());
      old.push_back(std::move(group));
    }
    flush();
  }
}

std::vector<profile::FunctionRate> FunctionWatch::rates() {
  std::vector<profile::FunctionRate> out;
  if (functions_.empty() || !rates_) return out;
  const std::lock_guard lock(mutex_);
  const auto counts = read_counts();
  const std::int64_t now = monotonic_ns();
  // Indexed by node; the last element is for processes that are not traced.
  std::vector<FunctionRates::Estimate> estimates(nodes_.size() + 1);
  for (std::uint32_t i = 0; i < functions_.size(); ++i) {
    double highest = 0;
    for (std::size_t node = 0; node <= nodes_.size(); ++node) {
      estimates[node] = rates_->estimate(i, node, now, counts, infrequent_below_);
      highest = std::max(highest, estimates[node].calls);
    }
    for (std::uint32_t node = 0; node < nodes_.size(); ++node) {
      if (!wanted(i, node) || !estimates[node].known) continue;
      // If the function was detached because of other nodes, it was hardly observed on this node. Assume the highest
      // number of calls of those nodes.
      const double calls = estimates[node].enough ? estimates[node].calls : highest;
      profile::FunctionRate rate;
      rate.node = nodes_[node];
      rate.function = functions_[i].name;
      rate.binary = binaries_.name(functions_[i].binary).string();
      rate.count = static_cast<std::uint64_t>(std::llround(calls));
      rate.per_second = calls / std::max(1e-3, estimates[node].seconds);
      rate.infrequent = rate.per_second < infrequent_below_;
      out.push_back(std::move(rate));
    }
  }
  return out;
}

}  // namespace rose::observe
