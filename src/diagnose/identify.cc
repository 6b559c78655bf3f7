#include "diagnose/identify.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/sha256.h"
#include "schedule/schedule.h"

namespace rose::diagnose {
namespace {

constexpr std::size_t kIdDigits = 8;

using schedule::FaultKind;

bool is_call_candidate(const Candidate& c) { return c.kind == FaultKind::syscall || c.kind == FaultKind::exception; }

// Failed calls and exceptions are identified without their time, because one candidate covers all of them. The ids of
// other faults also depend on their time.
std::string id_of(const Candidate& c) {
  std::string name = fmt::format("{}-{}", schedule::kind_name(c.kind), c.node);
  if (!c.syscall.empty()) name += fmt::format("-{}-{}", c.syscall, c.error.empty() ? "short" : c.error);
  std::string key = fmt::format("{}\n{}\n{}", name, c.path, c.peer);
  if (c.foreign) key += "\nforeign";
  if (c.kind == FaultKind::exception) key += fmt::format("\n{}\n{}", c.fault.throws, c.fault.function);
  else if (!is_call_candidate(c)) key += fmt::format("\n{}", c.first_ts);
  return fmt::format("{}-{}", name, sha256(key).substr(0, kIdDigits));
}

std::vector<std::string> nodes_of(const Candidate& c, const config::Config& config) {
  std::vector<std::string> nodes{c.node};
  if (c.kind != FaultKind::partition && c.kind != FaultKind::network) return nodes;
  std::vector<std::string> peers = c.fault.peers;
  if (peers.empty())
    for (const config::Node& node : config.nodes) peers.push_back(node.name);
  for (std::string& peer : peers)
    if (std::find(nodes.begin(), nodes.end(), peer) == nodes.end()) nodes.push_back(std::move(peer));
  return nodes;
}

}  // namespace

void identify(Plan& plan, const config::Config& config) {
  // number of candidates by id: a suffix makes the ids of equal faults at one time unique
  std::map<std::string, int> used;
  for (Candidate& c : plan.candidates) {
    c.id = id_of(c);
    if (const int n = ++used[c.id]; n > 1) c.id += fmt::format("-{}", n);
    c.nodes = nodes_of(c, config);
  }
}

}  // namespace rose::diagnose
