#include "logs/line/nested_host.h"

#include "logs/line/chars.h"

namespace rose::logs {
namespace {

// The objects that describe the origin of a line.
constexpr std::array kOriginKeys = std::to_array<std::string_view>(
    {"kubernetes", "k8s", "labels", "resource", "stream", "fields", "docker", "agent", "host", "pod", "attributes",
     "metadata", "container", "_source", "cloud", "orchestrator"});

bool is_object(const JsonMember& member) { return !member.text && member.value.starts_with('{'); }

}  // namespace

std::string nested_host(const std::vector<JsonMember>& members, Named named, int depth) {
  if (named == Named::anywhere)
    for (const std::string_view key : kHostNames)
      for (const JsonMember& member : members)
        if (member.key == key && member.text && !member.value.empty()) return std::string(member.value);
  if (depth <= 0) return {};
  for (const JsonMember& member : members) {
    if (!is_object(member) || !is_any(member.key, kOriginKeys)) continue;
    JsonLine inside;
    if (!inside.parse(member.value)) continue;
    if (member.key == "host" || member.key == "pod" || member.key == "container")  // as in {"host":{"name":"n1"}}
      if (const JsonMember* name = inside.find("name"); name != nullptr && name->text) return std::string(name->value);
    if (std::string host = nested_host(inside.members(), Named::anywhere, depth - 1); !host.empty()) return host;
  }
  return {};
}

}  // namespace rose::logs
