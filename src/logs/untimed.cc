#include "logs/untimed.h"

#include <sys/stat.h>

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <condition_variable>

#include "base/clock.h"
#include "base/folder.h"
#include "logs/line/lines.h"

namespace rose::logs {
namespace {

constexpr std::chrono::milliseconds kEvery{2};
constexpr int kListEvery = 25;                // the list of files is updated every kListEvery * kEvery
constexpr std::int64_t kMatchSpacing = 1000;  // ns between the messages that are placed before a matched message

bool has_times(const NodeLog& node) {
  return std::any_of(node.messages.begin(), node.messages.end(),
                     [](const Message& message) { return message.ts_ns != kNoTime; });
}

// How much later the incident happened than the normal run: the median difference between the times of matched
// messages. 0 if no matched messages have timestamps.
std::int64_t apart(const Logs& failure, const Logs& normal, const Difference& difference) {
  std::vector<std::int64_t> all;
  for (std::size_t n = 0; n < difference.nodes.size(); ++n) {
    if (difference.nodes[n].normal == kNoNode) continue;
    for (const Matched& pair : difference.nodes[n].matched) {
      const std::int64_t there = failure.nodes[n].messages[pair.failure].ts_ns;
      const std::int64_t here = normal.nodes[difference.nodes[n].normal].messages[pair.normal].ts_ns;
      if (there != kNoTime && here != kNoTime) all.push_back(there - here);
    }
  }
  if (all.empty()) return 0;
  std::nth_element(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(all.size() / 2), all.end());
  return all[all.size() / 2];
}

}  // namespace

Watch::Watch(std::function<std::vector<Input>()> files)
    : files_(std::move(files)), thread_([this](const std::stop_token& stop) { follow(stop); }) {}

Watch::~Watch() { stop(); }

void Watch::stop() {
  if (!thread_.joinable()) return;
  thread_.request_stop();
  thread_.join();
}

void Watch::follow(const std::stop_token& stop) {
  std::mutex mutex;
  std::condition_variable_any asked;
  std::vector<Input> known;
  const auto look = [&] {
    const std::int64_t now = monotonic_ns();
    for (const Input& file : known) {
      if (count_ >= kMostMarks) continue;
      const auto status = status_inside(file.folder, file.path);
      if (!status) continue;
      std::vector<Mark>& marks = marks_[file.path];
      const auto size = static_cast<std::uint64_t>(status->st_size);
      if (size == 0 || (!marks.empty() && size <= marks.back().size)) continue;
      marks.push_back({size, now});
      ++count_;
    }
  };
  for (int round = 0; !stop.stop_requested(); ++round) {
    if (round % kListEvery == 0) known = files_();
    look();
    std::unique_lock lock(mutex);
    asked.wait_for(lock, stop, kEvery, [] { return false; });
  }
  known = files_();
  look();
  // Convert all times by the wall clock at the end of the run, because the wall clock may have been set during the run.
  // The traces are converted in the same way.
  const std::int64_t offset = wall_offset_ns();
  for (auto& [file, marks] : marks_)
    for (Mark& mark : marks) mark.ts_ns += offset;
}

void Watch::apply(Logs& logs) const {
  std::vector<std::vector<std::int64_t>> times(logs.sources.size());  // the time of each line, by source
  for (std::size_t i = 0; i < logs.sources.size(); ++i) {
    const Source& source = logs.sources[i];
    const auto marks = marks_.find(source.path);
    if (source.timed != 0 || marks == marks_.end()) continue;
    Result<Bytes> bytes = Bytes::open(source.path, source.folder);
    if (!bytes || !bytes->packing().empty()) continue;
    LineReader lines(*std::move(bytes));
    auto mark = marks->second.begin();
    std::string_view line;
    for (std::uint64_t at = 0; times[i].size() < source.lines && lines.next(line);) {
      // `at` is the end of the line. If the line was truncated, its real end is later, so this line and the following
      // ones get times that are a little too early.
      at += line.size() + 1;
      while (mark + 1 != marks->second.end() && mark->size < at) ++mark;
      times[i].push_back(mark->ts_ns);
    }
  }
  for (NodeLog& node : logs.nodes) {
    bool any = false;
    for (Message& message : node.messages) {
      if (message.line == 0 || message.line > times[message.source].size()) continue;
      message.ts_ns = times[message.source][message.line - 1];
      any = true;
    }
    if (!any) continue;
    std::stable_sort(node.messages.begin(), node.messages.end(),
                     [](const Message& a, const Message& b) { return a.ts_ns < b.ts_ns; });
  }
}

void align(Logs& failure, const Logs& normal, const Difference& difference, std::int64_t end_ns) {
  const std::int64_t later = apart(failure, normal, difference);
  for (std::size_t n = 0; n < difference.nodes.size(); ++n) {
    NodeLog& node = failure.nodes[n];
    const NodeDifference& of = difference.nodes[n];
    if (of.normal == kNoNode || has_times(node)) continue;
    const NodeLog& other = normal.nodes[of.normal];
    std::vector<Matched> matched;
    for (const Matched& pair : of.matched)
      if (other.messages[pair.normal].ts_ns != kNoTime) matched.push_back(pair);
    if (matched.empty()) continue;
    node.aligned = true;
    const std::size_t tail = node.messages.size() - 1 - matched.back().failure;
    const std::int64_t from = other.messages[matched.back().normal].ts_ns + later;
    const std::int64_t step =
        std::max<std::int64_t>(kMatchSpacing, (end_ns + later - from) / static_cast<std::int64_t>(tail + 1));
    auto next = matched.begin();
    for (std::uint32_t i = 0; i < node.messages.size(); ++i) {
      while (next != matched.end() && next->failure < i) ++next;
      Message& message = node.messages[i];
      if (next == matched.end()) {
        message.ts_ns = node.messages[i - 1].ts_ns + step;
      } else {
        const std::int64_t there = other.messages[next->normal].ts_ns + later;
        message.ts_ns = there - kMatchSpacing * (next->failure - i);
        if (i > 0) message.ts_ns = std::max(message.ts_ns, node.messages[i - 1].ts_ns);
      }
    }
  }
}

std::string growth_text(const Watch::Growth& growth, const std::filesystem::path& run_dir) {
  std::string text;
  for (const auto& [file, marks] : growth) {
    const std::string name = file.lexically_relative(run_dir).string();
    if (name.empty() || name.starts_with("..") || name.find('\n') != std::string::npos) continue;
    text += fmt::format("/{}\n", name);
    for (const Watch::Mark& mark : marks) text += fmt::format("{} {}\n", mark.size, mark.ts_ns);
  }
  return text;
}

Watch::Growth growth_of_text(std::string_view text, const std::filesystem::path& run_dir) {
  Watch::Growth growth;
  std::vector<Watch::Mark>* marks = nullptr;
  std::size_t count = 0;
  while (!text.empty() && count < Watch::kMostMarks) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    if (line.starts_with('/')) {
      marks = &growth[run_dir / line.substr(1)];
      continue;
    }
    Watch::Mark mark;
    const char* end = line.data() + line.size();
    const auto size = std::from_chars(line.data(), end, mark.size);
    if (marks == nullptr || size.ec != std::errc() || size.ptr == end || *size.ptr != ' ') continue;
    const auto ts = std::from_chars(size.ptr + 1, end, mark.ts_ns);
    if (ts.ec != std::errc() || ts.ptr != end || (!marks->empty() && mark.size < marks->back().size)) continue;
    marks->push_back(mark);
    ++count;
  }
  return growth;
}

}  // namespace rose::logs
