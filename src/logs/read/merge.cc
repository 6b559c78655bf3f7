#include "logs/read/merge.h"

#include <algorithm>
#include <limits>
#include <string>
#include <string_view>
#include <unordered_map>

#include "base/units.h"
#include "logs/clock_jumps.h"
#include "logs/read/align.h"

namespace rose::logs {
namespace {

// The times of the same message in two files may differ by this much, because one of the files may have only whole
// seconds.
constexpr std::int64_t kDuplicateWithin = kSecond;

// Adds the messages of one file to the logs. Replaces the file's own kinds and streams by common ones.
void add_file(FileResult& file, Logs& logs, Templates& templates,
              std::unordered_map<std::string, std::uint32_t>& streams) {
  std::vector<TemplateId> kinds(file.kinds.size());
  for (TemplateId i = 0; i < kinds.size(); ++i) kinds[i] = templates.learn(file.kinds, i);
  std::vector<std::uint32_t> stream_of(file.streams.size());
  for (std::size_t i = 0; i < stream_of.size(); ++i) {
    const auto [at, added] = streams.try_emplace(file.streams[i], static_cast<std::uint32_t>(logs.streams.size()));
    if (added) logs.streams.push_back(file.streams[i]);
    stream_of[i] = at->second;
  }
  const auto source = static_cast<std::uint16_t>(logs.sources.size());
  for (Message& message : file.messages) {
    message.kind = kinds[message.kind];
    message.stream = stream_of[message.stream];
    message.source = source;
  }
  // Find the node to which the messages belong.
  const Source& about = file.source;
  const std::string name = !about.node.empty() ? about.node : !about.host.empty() ? about.host : about.log;
  auto node = std::find_if(logs.nodes.begin(), logs.nodes.end(),
                           [&](const NodeLog& log) { return log.node == about.node && log.name == name; });
  if (node == logs.nodes.end()) {
    logs.nodes.push_back({about.node, name, {}, {}});
    node = logs.nodes.end() - 1;
  }
  node->counts.resize(std::max(node->counts.size(), templates.size()));
  for (std::size_t i = 0; i < kinds.size(); ++i) node->counts[kinds[i]] += file.counts[i];
  if (node->messages.empty()) {
    node->messages = std::move(file.messages);
  } else {
    node->messages.insert(node->messages.end(), file.messages.begin(), file.messages.end());
    file.messages = {};
  }
  logs.sources.push_back(std::move(file.source));
  logs.texts.push_back(std::move(file.texts));
}

void merge_by_time(Logs& logs) {
  for (NodeLog& node : logs.nodes) {
    // The lines of one file were written in the order in which they are in the file. They keep this order even if their
    // timestamps do not ascend. Files are merged by time; a file without timestamps comes last.
    std::vector<std::vector<Message>> files(logs.sources.size());
    bool several = false;
    for (std::size_t i = 1; i < node.messages.size() && !several; ++i)
      several = node.messages[i].source != node.messages[0].source;
    if (!several) continue;
    for (const Message& message : node.messages) files[message.source].push_back(message);
    // Merge the files by the time of their next message; if times are equal, by the order of `logs.sources`.
    std::vector<std::size_t> at(files.size());
    const auto time_at = [&](std::size_t file) {
      const Message& message = files[file][at[file]];
      return message.ts_ns == kNoTime ? std::numeric_limits<std::int64_t>::max() : message.ts_ns;
    };
    std::vector<std::size_t> heap;
    const auto later = [&](std::size_t a, std::size_t b) {
      const std::int64_t ta = time_at(a), tb = time_at(b);
      return ta != tb ? ta > tb : a > b;
    };
    for (std::size_t i = 0; i < files.size(); ++i) {
      if (!files[i].empty()) heap.push_back(i);
    }
    std::make_heap(heap.begin(), heap.end(), later);
    node.messages.clear();
    while (!heap.empty()) {
      std::pop_heap(heap.begin(), heap.end(), later);
      const std::size_t file = heap.back();
      heap.pop_back();
      node.messages.push_back(files[file][at[file]++]);
      if (at[file] == files[file].size()) continue;
      heap.push_back(file);
      std::push_heap(heap.begin(), heap.end(), later);
    }
  }
}

std::string_view first_line(std::string_view text) { return text.substr(0, text.find('\n')); }

// Removes duplicates, because two files may contain the same message (a program's log and its output, or its log and
// syslog's). Keeps the longer text (for example the one with a stack trace) and the more precise of the two times. The
// messages must be sorted by time.
void remove_duplicates(Logs& logs) {
  for (NodeLog& node : logs.nodes) {
    const auto other_log = [&](const Message& message) {
      return logs.sources[message.source].log != logs.sources[node.messages[0].source].log;
    };
    if (std::none_of(node.messages.begin(), node.messages.end(), other_log)) continue;
    // By text: recent messages that have no duplicate in another log yet. All messages of one text are from the same
    // log.
    std::unordered_map<std::string_view, std::deque<std::size_t>> alone;
    std::vector<bool> dropped(node.messages.size());
    std::size_t past = 0;
    for (std::size_t i = 0; i < node.messages.size(); ++i) {
      const Message& message = node.messages[i];
      const std::string_view text = first_line(logs.text(message));
      if (message.ts_ns == kNoTime || text.empty()) continue;
      for (; past < i && node.messages[past].ts_ns < message.ts_ns - kDuplicateWithin; ++past) {
        const auto at = alone.find(first_line(logs.text(node.messages[past])));
        if (at == alone.end() || at->second.front() != past) continue;
        at->second.pop_front();
        if (at->second.empty()) alone.erase(at);
      }
      std::deque<std::size_t>& same = alone[text];
      if (same.empty() || logs.sources[node.messages[same.front()].source].log == logs.sources[message.source].log) {
        same.push_back(i);
        continue;
      }
      const std::size_t before = same.front();
      same.pop_front();
      if (same.empty()) alone.erase(text);
      const bool more = logs.text(message).size() > logs.text(node.messages[before]).size();
      const std::size_t place = node.messages[before].ts_ns % kSecond == 0 ? i : before;
      Message kept = node.messages[more ? i : before];
      --node.counts[node.messages[more ? before : i].kind];
      kept.ts_ns = node.messages[place].ts_ns;
      node.messages[place] = kept;
      dropped[place == i ? before : i] = true;
    }
    std::size_t i = 0;
    std::erase_if(node.messages, [&](const Message&) { return dropped[i++]; });
  }
}

}  // namespace

Logs put_together(std::vector<std::deque<FileResult>>& files, Templates& templates) {
  Logs logs;
  std::unordered_map<std::string, std::uint32_t> streams;
  for (std::deque<FileResult>& file : files) {
    for (FileResult& result : file) {
      add_file(result, logs, templates, streams);
      result = {};
    }
  }
  for (NodeLog& node : logs.nodes) node.counts.resize(templates.size());
  align_years(logs);
  align_zones(logs);
  logs.jumps = undo_clock_jumps(logs);
  merge_by_time(logs);
  remove_duplicates(logs);
  return logs;
}

}  // namespace rose::logs
