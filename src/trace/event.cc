#include "trace/event.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <unordered_set>

#include "base/result.h"
#include "kernel/syscalls.h"
#include "trace/limits.h"

namespace rose::trace {

namespace {

std::uint32_t hash_of(std::string_view text) {
  const std::size_t hash = std::hash<std::string_view>{}(text);
  return static_cast<std::uint32_t>(hash ^ (hash >> 32));
}

}  // namespace

// Each string is a view into a chunk, so a copy needs its own chunks.
StringTable::StringTable(const StringTable& other) {
  for (std::size_t id = 1; id < other.strings_.size(); ++id) (void)intern(other.strings_[id]);
}

StringTable& StringTable::operator=(const StringTable& other) {
  if (this != &other) *this = StringTable(other);
  return *this;
}

StringTable::StringTable(StringTable&& other) noexcept { *this = std::move(other); }

StringTable& StringTable::operator=(StringTable&& other) noexcept {
  chunks_ = std::move(other.chunks_);
  chunk_end_ = std::exchange(other.chunk_end_, nullptr);
  left_ = std::exchange(other.left_, 0);
  bytes_ = std::exchange(other.bytes_, 0);
  reserved_ = std::exchange(other.reserved_, 0);
  strings_ = std::move(other.strings_);
  places_ = std::move(other.places_);
  // Leave the table that was moved from empty and usable.
  other.chunks_.clear();
  other.strings_.assign(1, {});
  other.places_.clear();
  return *this;
}

std::size_t StringTable::place_of(std::string_view text, std::uint32_t hash) const {
  const std::size_t mask = places_.size() - 1;
  std::size_t at = hash & mask;
  while (places_[at].id != 0 && (places_[at].hash != hash || strings_[places_[at].id] != text)) at = (at + 1) & mask;
  return at;
}

void StringTable::grow() {
  std::vector<Place> old(std::max<std::size_t>(places_.size() * 2, 64));
  old.swap(places_);
  const std::size_t mask = places_.size() - 1;
  for (const Place& place : old) {
    if (place.id == 0) continue;
    std::size_t at = place.hash & mask;
    while (places_[at].id != 0) at = (at + 1) & mask;
    places_[at] = place;
  }
}

StringId StringTable::intern(std::string_view text) {
  if (strings_.size() * 3 >= places_.size() * 2) grow();
  const std::uint32_t hash = hash_of(text);
  Place& place = places_[place_of(text, hash)];
  if (place.id != 0) return place.id;
  if (text.size() > left_) {
    // Each chunk doubles the total size, up to a limit, so that little space is wasted at the ends of chunks.
    const std::size_t size = std::max(text.size(), std::clamp<std::size_t>(reserved_, 4096, std::size_t{1} << 18));
    chunks_.push_back(std::make_unique_for_overwrite<char[]>(size));
    left_ = size;
    reserved_ += size;
    chunk_end_ = chunks_.back().get() + size;
  }
  char* const at = chunk_end_ - left_;
  std::copy(text.begin(), text.end(), at);
  left_ -= text.size();
  bytes_ += text.size();
  place = {hash, static_cast<StringId>(strings_.size())};
  strings_.emplace_back(at, text.size());
  return place.id;
}

StringId StringTable::find(std::string_view text) const {
  return places_.empty() ? 0 : places_[place_of(text, hash_of(text))].id;
}

void sort_by_time(Trace& trace) {
  auto& events = trace.events;
  // A tracer's events are almost sorted. A few arrive late (counts of frequent events, records from another CPU). Take
  // the late events out, sort them, and merge them back, which is faster than sorting all events.
  std::vector<Event> late;
  std::size_t kept = 0;
  for (std::size_t i = 0; i < events.size(); ++i) {
    if (kept > 0 && events[i].ts_ns < events[kept - 1].ts_ns) {
      late.push_back(events[i]);
    } else {
      if (kept != i) events[kept] = events[i];
      ++kept;
    }
  }
  if (late.empty()) return;
  const auto earlier = [](const Event& a, const Event& b) { return a.ts_ns < b.ts_ns; };
  std::stable_sort(late.begin(), late.end(), earlier);
  // Merge from the back, so that each event moves at most once. At equal times, the late events come last, so the sort
  // is stable.
  std::size_t to = events.size(), a = kept, b = late.size();
  while (b > 0) events[--to] = a > 0 && events[a - 1].ts_ns > late[b - 1].ts_ns ? events[--a] : late[--b];
}

NodeNames::NodeNames(const TraceBase& trace) : trace_(trace), known_(trace.strings.size()) {
  for (const std::string& name : trace.meta.nodes) add(name);
}

void NodeNames::add(std::string_view name) {
  if (!name.empty() && seen_.insert(name).second) names_.emplace_back(name);
}

void NodeNames::add(const Event& event) {
  if (event.node == 0) nameless_ = true;
  if (event.node >= known_.size() || known_[event.node]) return;
  known_[event.node] = true;
  add(trace_.str(event.node));
}

std::vector<std::string> NodeNames::list() && {
  if (nameless_) add(trace_.meta.node);
  return std::move(names_);
}

std::vector<std::string> node_names(const Trace& trace) {
  NodeNames names(trace);
  for (const Event& event : trace.events) names.add(event);
  return std::move(names).list();
}

std::string_view type_name(EventType type) {
  switch (type) {
    case EventType::scf: return "scf";
    case EventType::af: return "af";
    case EventType::nd: return "nd";
    case EventType::ps: return "ps";
    case EventType::sys: return "sys";
  }
  return "unknown";
}

std::string_view state_name(ProcessState state) {
  switch (state) {
    case ProcessState::none: return "none";
    case ProcessState::crashed: return "crashed";
    case ProcessState::exited: return "exited";
    case ProcessState::paused: return "paused";
    case ProcessState::started: return "started";
  }
  return "unknown";
}

std::optional<Label> to_label(std::string_view line) {
  const std::size_t equals = line.find('=');
  const std::size_t colon = line.find(':', equals == std::string_view::npos ? line.size() : equals);
  if (colon == std::string_view::npos || equals == 0 || colon == equals + 1 || colon + 1 == line.size())
    return std::nullopt;
  return Label{std::string(line.substr(0, equals)), std::string(line.substr(equals + 1, colon - equals - 1)),
               std::string(line.substr(colon + 1))};
}

std::map<std::string, std::string> nodes_by_address(const Meta& meta) {
  std::map<std::string, std::string> nodes;
  for (const std::string& entry : meta.addresses)
    if (const std::size_t equals = entry.rfind('='); equals != std::string::npos)
      nodes.emplace(entry.substr(equals + 1), entry.substr(0, equals));
  return nodes;
}

std::optional<std::string> event_fault(const Event& event, std::size_t strings) {
  const auto bad = [](std::string_view field, std::int64_t value) {
    return fmt::format("{} {} is out of range", field, value);
  };
  const auto type = static_cast<int>(event.type);
  if (type < static_cast<int>(EventType::scf) || type > static_cast<int>(EventType::sys)) return bad("type", type);
  if (event.state > ProcessState::started) return bad("state", static_cast<int>(event.state));
  if (event.protocol != Protocol::none && event.protocol != Protocol::tcp && event.protocol != Protocol::udp)
    return bad("protocol", static_cast<int>(event.protocol));
  if ((event.flags & ~kKnownFlags) != 0) return bad("flags", event.flags);
  if (event.ts_ns < 0 || event.ts_ns > kLatestTs) return bad("ts", event.ts_ns);
  if (event.pid < 0) return bad("pid", event.pid);
  if (event.tid < 0) return bad("tid", event.tid);
  if (event.fd < -1) return bad("fd", event.fd);
  for (const std::int32_t ms : {event.begin_within_ms, event.end_within_ms, event.usual_ms})
    if (ms < -1) return bad("a time in ms", ms);
  if (event.duration_ms < -1) return bad("duration_ms", event.duration_ms);
  if (event.exit_code < -1 || event.exit_code > kMostExitCode) return bad("exit_code", event.exit_code);
  if (event.count == 0) return bad("count", 0);
  if (event.syscall < -1 || event.syscall >= kernel::kMostSyscalls) return bad("syscall", event.syscall);
  if (event.err < 0 || event.err > kMostErrno) return bad("errno", event.err);
  if (event.signal > kMostSignal) return bad("signal", event.signal);
  for (const StringId id :
       {event.node, event.path, event.path2, event.peer, event.function, event.src, event.dst, event.by}) {
    if (id >= strings) return fmt::format("string {} does not exist, there are {}", id, strings);
  }
  return std::nullopt;
}

}  // namespace rose::trace
