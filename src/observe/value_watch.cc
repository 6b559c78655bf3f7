#include "observe/value_watch.h"

#include <bpf/bpf.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <set>

#include "base/clock.h"
#include "base/log.h"

namespace rose::observe {
namespace {

constexpr std::size_t kMostPlaces = 512;
constexpr std::size_t kMostAlone =
    64;  // without uprobe_multi links, each location needs a perf event, and detaching costs 0.1 s each
constexpr std::size_t kMostAgain = 16;  // locations that are attached again at once

RateLimits limits_of(double share, double entry_seconds) {
  RateLimits limits;
  limits.share = share;
  limits.burst_seconds = 5;
  limits.entry_seconds = entry_seconds;
  limits.hot_rate = 0;
  limits.window_seconds = 10;
  limits.pause_seconds = 1;
  return limits;
}

void put_chain(const symbols::Chain& chain, rose_chain& out) {
  out.base = chain.base;
  out.reads = static_cast<std::uint8_t>(chain.offsets.size() - 1);
  std::copy(chain.offsets.begin(), chain.offsets.end(), std::begin(out.offsets));
}

bool fits(const symbols::Chain& chain) { return !chain.offsets.empty() && chain.offsets.size() <= ROSE_CHAIN_STEPS; }

rose_fetch fetch_of(const symbols::Fetch& fetch) {
  rose_fetch out{};
  put_chain(fetch.at, out.at);
  put_chain(fetch.length, out.length);
  out.size = fetch.size;
  switch (fetch.kind) {
    case symbols::Fetch::Kind::word: out.kind = ROSE_FETCH_WORD; break;
    case symbols::Fetch::Kind::memory: out.kind = ROSE_FETCH_MEMORY; break;
    case symbols::Fetch::Kind::text: out.kind = ROSE_FETCH_TEXT; break;
    case symbols::Fetch::Kind::counted: out.kind = ROSE_FETCH_COUNTED; break;
    case symbols::Fetch::Kind::code: out.kind = ROSE_FETCH_CODE; break;
  }
  return out;
}

}  // namespace

Result<void> ValueWatch::prepare(const TracerOptions& options, std::size_t nodes) {
  nodes_ = nodes;
  share_ = options.values_share;
  binaries_.execute_instead(options.copies);
  const std::vector<ValuePlace>& places = options.values;
  const std::size_t most = kernel::has_uprobe_multi() ? kMostPlaces : kMostAlone;
  if (places.size() > most)
    return fail(
        ErrorKind::input,
        fmt::format("values at {} code locations are more than the {} that can be watched here", places.size(), most));
  for (const ValuePlace& place : places) {
    Place added{.what = place,
                .binary = place.by_agent ? 0 : binaries_.add(place.binary),
                .first = static_cast<std::uint32_t>(owners_.size()),
                .link = {},
                .grouped = false,
                .detached = false};
    if (added.binary < 0)
      return fail_errno(ErrorKind::input, fmt::format("cannot read '{}'", place.binary.string()), errno);
    const bool good = std::all_of(place.fetches.begin(), place.fetches.end(),
                                  [](const symbols::Fetch& fetch) { return fits(fetch.at) && fits(fetch.length); });
    if (!good || place.fetches.size() > ROSE_FETCHES_AT_ONCE ||
        owners_.size() + place.fetches.size() > ROSE_MOST_FETCHES)
      return fail(ErrorKind::input,
                  fmt::format("too many values: at most {} can be read at one location, and at most {} in all",
                              int{ROSE_FETCHES_AT_ONCE}, int{ROSE_MOST_FETCHES}));
    owners_.insert(owners_.end(), place.fetches.size(), static_cast<std::uint32_t>(places_.size()));
    places_.push_back(std::move(added));
  }
  return {};
}

Result<void> ValueWatch::attach(const bpf_program* program, int fetches_map, int counts_map) {
  if (places_.empty()) return {};
  program_ = program;
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  const std::size_t bytes = (counters() * sizeof(std::uint64_t) + page - 1) / page * page;
  void* memory = ::mmap(nullptr, bytes, PROT_READ, MAP_SHARED, counts_map, 0);
  if (memory == MAP_FAILED) return fail_errno(ErrorKind::environment, "cannot map the counters of values", errno);
  mapped_ = {static_cast<std::uint64_t*>(memory), UnmapCounts{bytes}};
  rates_ = std::make_unique<FunctionRates>(places_.size(), nodes_ + 1, limits_of(share_, kernel::uprobe_seconds()));
  for (const Place& place : places_) {
    for (std::uint32_t i = 0; i < place.what.fetches.size(); ++i) {
      const std::uint32_t key = place.first + i;
      const rose_fetch fetch = fetch_of(place.what.fetches[i]);
      if (const int error = bpf_map_update_elem(fetches_map, &key, &fetch, BPF_ANY); error != 0)
        return kernel::bpf_failure("cannot tell the kernel which values to record", -error);
    }
  }
  // Closing a link takes about 0.05 s, however many locations it has, so all locations in a file share one link.
  // Without uprobe_multi links, each location has its own perf event anyway.
  const bool groups = kernel::has_uprobe_multi();
  for (std::uint32_t i = 0; i < places_.size(); ++i) {
    const auto counts = read_counts();
    if (!groups) ROSE_CHECK(attach_place(i));
    else places_[i].grouped = !places_[i].what.by_agent;
    rates_->attached(i, monotonic_ns(), counts);
  }
  for (const Place& place : places_) {
    if (!place.grouped || groups_.contains(place.binary)) continue;
    ROSE_TRY(kernel::FunctionLink link, attach_group(place.binary));
    groups_.emplace(place.binary, std::move(link));
  }
  return {};
}

kernel::ProbePoint ValueWatch::point_of(std::uint32_t index) const {
  const Place& place = places_[index];
  return {place.what.offset, index | std::uint64_t{place.first} << 16 | std::uint64_t{place.what.fetches.size()} << 32};
}

Result<kernel::FunctionLink> ValueWatch::attach_group(int binary) const {
  std::vector<kernel::ProbePoint> points;
  for (std::uint32_t i = 0; i < places_.size(); ++i)
    if (places_[i].grouped && places_[i].binary == binary) points.push_back(point_of(i));
  if (points.empty()) return kernel::FunctionLink();
  auto attached = kernel::attach_functions(program_, binaries_.path(binary), points);
  if (attached) return attached;
  Error error = std::move(attached).error();
  error.message = fmt::format("values of '{}' cannot be recorded: {}", binaries_.name(binary).string(), error.message);
  return Unexpected(std::move(error));
}

Result<void> ValueWatch::attach_place(std::uint32_t index) {
  Place& place = places_[index];
  if (place.what.by_agent) return {};
  auto attached = kernel::attach_functions(program_, binaries_.path(place.binary), {point_of(index)});
  if (!attached) {
    Error error = std::move(attached).error();
    error.message = fmt::format("values at {:#x} of '{}' cannot be recorded: {}", place.what.offset,
                                binaries_.name(place.binary).string(), error.message);
    return Unexpected(std::move(error));
  }
  place.link = std::move(*attached);
  return {};
}

// To detach locations of a group, attaches the other locations of the group by a new link, and then closes the old
// link. In this order, no value is lost, but for some 50 ms, values of the other locations are recorded twice.
void ValueWatch::detach(const std::vector<std::uint32_t>& places) {
  std::set<int> changed;
  for (const std::uint32_t index : places) {
    Place& place = places_[index];
    place.detached = true;
    if (place.grouped) changed.insert(place.binary);
    else closer_.close(std::move(place.link));
    place.grouped = false;
  }
  for (const int binary : changed) {
    auto others = attach_group(binary);
    if (!others) {
      log::debug("{}", others.error().message);
      for (Place& place : places_)
        if (place.grouped && place.binary == binary) place.grouped = false, place.detached = true;
    }
    closer_.close(std::move(groups_[binary]));
    groups_[binary] = others ? std::move(*others) : kernel::FunctionLink();
  }
}

std::vector<std::uint64_t> ValueWatch::read_counts() const {
  std::vector<std::uint64_t> counts(counters());
  for (std::size_t i = 0; i < counts.size(); ++i) counts[i] = __atomic_load_n(mapped_.get() + i, __ATOMIC_RELAXED);
  return counts;
}

void ValueWatch::look(std::int64_t now_ns) {
  if (!rates_) return;
  auto counts = read_counts();
  // Counts of locations in methods are ignored, because the JVM's agent limits its own rate.
  for (std::size_t i = 0; i < places_.size(); ++i)
    if (places_[i].what.by_agent)
      std::fill_n(counts.begin() + static_cast<std::ptrdiff_t>(i * (nodes_ + 1)), nodes_ + 1, 0);
  detach(rates_->to_detach(now_ns, counts));
  // Detaching locations one by one takes 0.1 s each, so locations that were busy are not attached again.
  if (!kernel::has_uprobe_multi()) return;
  for (const std::uint32_t index : rates_->due(now_ns, kMostAgain)) {
    if (auto again = attach_place(index); again) rates_->attached(index, now_ns, counts);
    else rates_->failed(index, now_ns, counts), log::debug("{}", again.error().message);
  }
}

bool ValueWatch::take(const rose_value& value) {
  if (value.fetch >= owners_.size() || value.head.node >= nodes_ || value.length > ROSE_TEXT_BYTES) return false;
  SeenValue seen;
  seen.place = owners_[value.fetch];
  if (value.failed == ROSE_TOO_MANY) {
    places_[seen.place].detached = true;
    return true;
  }
  seen.fetch = value.fetch - places_[seen.place].first;
  seen.node = value.head.node;
  seen.pid = static_cast<std::int32_t>(value.head.tgid);
  seen.tid = static_cast<std::int32_t>(value.head.tid);
  seen.ts_ns = static_cast<std::int64_t>(value.head.ts_ns);
  seen.unreadable = value.failed == ROSE_UNREADABLE;
  seen.null = value.failed == ROSE_NULL;
  seen.form = value.form;
  seen.bits = value.word;
  seen.text.assign(reinterpret_cast<const char*>(value.text), value.length);
  Kept& kept = kept_[{value.fetch, seen.node}];
  if (kept.first.size() < kMostValues / 2) {
    kept.first.push_back(std::move(seen));
    return true;
  }
  kept.last.push_back(std::move(seen));
  if (kept.last.size() > kMostValues / 2) kept.last.pop_front(), ++left_out_;
  return true;
}

SeenValues ValueWatch::seen() const {
  SeenValues out;
  for (const auto& [key, kept] : kept_) {
    out.values.insert(out.values.end(), kept.first.begin(), kept.first.end());
    out.values.insert(out.values.end(), kept.last.begin(), kept.last.end());
  }
  std::stable_sort(out.values.begin(), out.values.end(),
                   [](const SeenValue& a, const SeenValue& b) { return a.ts_ns < b.ts_ns; });
  out.left_out = left_out_;
  const auto counts = rates_ ? read_counts() : std::vector<std::uint64_t>(counters());
  for (std::size_t i = 0; i < places_.size(); ++i) {
    SeenValues::Place place;
    for (std::size_t node = 0; node < nodes_; ++node) place.visits += counts[i * (nodes_ + 1) + node];
    place.detached = places_[i].detached;
    out.places.push_back(place);
  }
  return out;
}

void ValueWatch::stop() {
  for (Place& place : places_) closer_.close(std::move(place.link));
  for (auto& [binary, link] : groups_) closer_.close(std::move(link));
  closer_.wait();
}

}  // namespace rose::observe
