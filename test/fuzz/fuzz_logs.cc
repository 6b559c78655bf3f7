// Logs: no content may crash the reader, what it keeps must stay within its bounds, and its description of the file
// must be one line.
#include <cstdint>
#include <cstdlib>
#include <string>

#include "logs/reader.h"
#include "logs/thrown.h"

using namespace rose::logs;

namespace {

void check(const std::vector<StackTrace>& traces) {
  if (traces.size() > kMostTraces) std::abort();
  for (const StackTrace& trace : traces) {
    if (trace.empty() || trace.size() > kMostCauses) std::abort();
    for (const Thrown& one : trace) {
      if (one.class_name.empty() || one.frames.empty() || one.frames.size() > kMostFrames ||
          one.common > one.frames.size())
        std::abort();
      if (one.message.size() > kLongestThrownText || one.message.find('\n') != std::string::npos) std::abort();
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Templates kinds;
  // Read some inputs with a pattern of rose.toml.
  ReadOptions options;
  if (size % 4 == 3)
    options.custom.push_back({"*", R"(^(?P<time>[^|]*)\|(?:(?P<level>\w+)\|)?(?P<message>.*)$)",
                              size % 8 == 3 ? "%d.%m.%Y %H:%M:%S.%f %z" : "", std::nullopt});
  const Logs logs = read_text(std::string(reinterpret_cast<const char*>(data), size), {"x.log", "n1"}, options, kinds);
  if (logs.sources.size() != 1 || logs.nodes.size() != 1) std::abort();
  const Source& source = logs.sources[0];
  if (words(source).find('\n') != std::string::npos) std::abort();
  if (source.messages > source.lines || source.kept > source.messages) std::abort();
  if (logs.nodes[0].messages.size() != source.kept || kinds.size() > Templates::kMost + 8) std::abort();
  check(read_traces(std::string_view(reinterpret_cast<const char*>(data), size)));
  for (const Message& message : logs.nodes[0].messages) {
    if (message.kind >= kinds.size() || message.stream >= logs.streams.size() || message.line > source.lines)
      std::abort();
    if (logs.text(message).size() > kLongestText + 1) std::abort();
    (void)kinds.text(message.kind);
    check(read_traces(logs.text(message)));
  }
  // Read the same input as a file with lines of several nodes.
  ReadOptions several;
  several.node_of = [](std::string_view host) {
    return host.size() % 3 == 0 ? std::string() : "n" + std::to_string(host.size() % 40);
  };
  Templates more;
  const Logs apart = read_text(std::string(reinterpret_cast<const char*>(data), size), {"x.log", ""}, several, more);
  if (apart.sources.empty() || apart.sources.size() > 16 || apart.nodes.size() > apart.sources.size()) std::abort();
  for (const Source& one : apart.sources) {
    if (words(one).find('\n') != std::string::npos || one.messages > one.lines || one.kept > one.messages) std::abort();
    for (const std::string& name : one.unknown_hosts)
      if (name.find('\n') != std::string::npos || name.size() > 256) std::abort();
  }
  for (const NodeLog& node : apart.nodes)
    for (const Message& message : node.messages)
      if (message.source >= apart.sources.size() || apart.text(message).size() > kLongestText + 1) std::abort();
  return 0;
}
