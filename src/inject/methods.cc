#include "inject/methods.h"

#include <algorithm>

namespace rose::inject {
namespace {

const jvm::Note* find(const std::vector<jvm::Note>& notes, std::uint32_t entry) {
  const auto at =
      std::find_if(notes.begin(), notes.end(), [entry](const jvm::Note& note) { return note.entry == entry; });
  return at == notes.end() ? nullptr : &*at;
}

}  // namespace

void MethodReports::read(const Plan& plan, const jvm::Session& jvms) {
  nodes_.clear();
  for (std::size_t i = 0; i < plan.nodes.size(); ++i) {
    if (plan.methods[i].empty()) continue;
    Node node{.name = plan.nodes[i], .entries = {}, .jvms = jvm::read_states(jvms.state(plan.nodes[i]))};
    for (const auto& place : plan.methods[i]) node.entries.push_back(place.entry);
    nodes_.push_back(std::move(node));
  }
}

std::string MethodReports::found_in(std::uint32_t entry) const {
  for (const Node& node : nodes_) {
    for (const auto& one : node.jvms) {
      if (const auto* place = find(one.places, entry)) return place->text;
    }
  }
  return {};
}

std::string MethodReports::not_thrown(std::uint32_t entry) const {
  for (const Node& node : nodes_) {
    for (const auto& one : node.jvms) {
      if (const auto* note = find(one.notes, entry)) return note->text;
    }
  }
  return {};
}

std::string MethodReports::unreachable(std::uint32_t entry) const {
  std::vector<std::string> reasons;  // one for each node
  for (const Node& node : nodes_) {
    if (std::find(node.entries.begin(), node.entries.end(), entry) == node.entries.end()) continue;
    if (node.jvms.empty()) {
      reasons.push_back(fmt::format("no JVM of {} loaded rose's agent (JAVA_TOOL_OPTIONS must reach it)", node.name));
      continue;
    }
    const bool able = std::any_of(node.jvms.begin(), node.jvms.end(), [](const auto& one) { return one.breakpoints; });
    std::string own = able ? fmt::format("no class that {} loaded has it", node.name) : std::string();
    for (const auto& one : node.jvms) {
      if (find(one.places, entry) != nullptr) return {};
      if (const auto* note = find(one.notes, entry)) own = note->text;
      if (!able && own.empty() && !one.notes.empty()) own = fmt::format("{}: {}", node.name, one.notes.front().text);
    }
    if (!own.empty()) reasons.push_back(std::move(own));
  }
  return reasons.empty() ? std::string() : fmt::format("{}", fmt::join(reasons, "; "));
}

}  // namespace rose::inject
