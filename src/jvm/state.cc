#include "jvm/state.h"

#include <algorithm>
#include <cstring>
#include <set>

#include "base/folder.h"
#include "jvm/state_layout.h"

namespace rose::jvm {
namespace {

constexpr std::size_t kMostBytes = sizeof(StateHead) + std::size_t{kStateRecords} * sizeof(StateRecord);

// Text that the node wrote, without control characters.
std::string text_of(const char* bytes, std::size_t size) {
  std::string text(bytes, size);
  std::replace_if(
      text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; }, '?');
  return text;
}

}  // namespace

bool parse_state(std::string_view bytes, JvmState& into) {
  StateHead head;
  if (bytes.size() < sizeof head) return false;
  std::memcpy(&head, bytes.data(), sizeof head);
  if (head.magic != kStateMagic || head.record_bytes != sizeof(StateRecord)) return false;
  into.pid = head.pid;
  into.breakpoints = head.breakpoints == 1;
  into.version = text_of(head.version, ::strnlen(head.version, sizeof head.version));
  const std::size_t there = (bytes.size() - sizeof head) / sizeof(StateRecord);
  const std::size_t count = std::min<std::size_t>({head.used, there, kStateRecords});
  for (std::size_t i = 0; i < count; ++i) {
    StateRecord record;
    std::memcpy(&record, bytes.data() + sizeof head + i * sizeof record, sizeof record);
    if (record.length > kStateText) continue;
    std::string text = text_of(record.text, record.length);
    switch (static_cast<RecordKind>(record.kind)) {
      case RecordKind::note: into.notes.push_back({record.entry, std::move(text)}); break;
      case RecordKind::place: into.places.push_back({record.entry, std::move(text)}); break;
      case RecordKind::method:
        into.methods.push_back({std::move(text),
                                static_cast<double>(record.count) + static_cast<double>(record.unseen) / 1000,
                                (record.flags & kMethodUnknown) == 0, (record.flags & kMethodWatched) != 0});
        break;
      case RecordKind::asked:
        into.asked.push_back({record.entry, (record.flags & kAskedPlaced) != 0, std::move(text)});
        break;
    }
  }
  return true;
}

std::vector<JvmState> read_states(const std::filesystem::path& folder) {
  std::vector<JvmState> all;
  const Result<OpenFolder> states = OpenFolder::open(folder);
  if (!states) return all;
  for (const std::string& name : states->names()) {
    if (!name.ends_with(".jvm")) continue;
    const auto bytes = states->read(name, kMostBytes);
    JvmState one;
    if (bytes && parse_state(*bytes, one)) all.push_back(std::move(one));
  }
  std::sort(all.begin(), all.end(), [](const JvmState& a, const JvmState& b) { return a.pid < b.pid; });
  return all;
}

std::map<std::string, WatchedMethod> watched_methods(const std::vector<JvmState>& states) {
  std::map<std::string, WatchedMethod> all;
  for (const JvmState& state : states) {
    for (const WatchedMethod& method : state.methods) {
      const auto [at, fresh] = all.emplace(method.name, method);
      if (fresh) continue;
      at->second.calls += method.calls;
      at->second.known = at->second.known && method.known;
      at->second.watched = at->second.watched && method.watched;
    }
  }
  return all;
}

std::vector<std::string> complaints(const std::string& node, const std::vector<JvmState>& states) {
  if (states.empty())
    return {fmt::format(
        "no JVM of {} loaded rose's agent (JAVA_TOOL_OPTIONS must reach it): its methods are not watched", node)};
  std::set<std::string> messages;
  bool able = false, any = false;
  for (const JvmState& state : states) {
    able = able || state.breakpoints;
    any = any || !state.methods.empty();
  }
  for (const JvmState& state : states) {
    // Notes about a schedule's locations are left out here, because they are reported with its faults. A JVM that
    // cannot set breakpoints is left out if another one can, because it may belong to a tool that the start script
    // runs.
    if (able && !state.breakpoints) continue;
    for (const Note& note : state.notes) {
      if (note.entry == kNoEntry) messages.insert(fmt::format("{}: {}", node, note.text));
    }
  }
  if (able && !any)
    messages.insert(
        fmt::format("no class that {} loaded has a method that matches its `functions` or `sources`", node));
  return {messages.begin(), messages.end()};
}

}  // namespace rose::jvm
