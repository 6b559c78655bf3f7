#include "diagnose/alike.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "kernel/syscalls.h"
#include "profile/profile.h"

namespace rose::diagnose {
namespace {

constexpr std::size_t kFewDoings = 4;     // that the profile knows: fewer are chance
constexpr double kAlikeEnough = 0.5;      // of what the host does
constexpr double kAsAlike = 0.05;         // so close in share, two nodes are replicas for this
constexpr std::size_t kMostDoings = 4096; // kept of one host

using Doings = std::set<std::string>;

// Folders differ between deployments; the name of what a call is made on mostly does not.
std::string doing_of_call(std::string_view syscall, std::string_view path) {
  return fmt::format("{} {}", syscall, path.empty() ? std::string{} : profile::tail_pattern(path, 1));
}

std::vector<Doings> doings_of_nodes(const Inputs& inputs) {
  std::vector<Doings> found(inputs.config->nodes.size());
  const auto each = [&](const std::string& node, const std::string& doing) {
    for (std::size_t i = 0; i < found.size(); ++i)
      if (node == "*" || node == inputs.config->nodes[i].name) found[i].insert(doing);
  };
  for (const auto* kinds : {&inputs.profile->state_changes, &inputs.profile->failures})
    for (const profile::CallKind& kind : *kinds) each(kind.node, doing_of_call(kind.syscall, kind.path));
  for (const profile::FunctionRate& rate : inputs.profile->functions) each(rate.node, rate.function + "()");
  return found;
}

struct Host {
  Doings doings;
  std::uint64_t failures = 0;
};

std::map<std::string, Host, std::less<>> doings_of_hosts(const Inputs& inputs, const std::vector<std::string>& names) {
  std::map<std::string, Host, std::less<>> hosts;
  for (const std::string& name : names) hosts.try_emplace(name);
  for (const trace::Trace& trace : inputs.traces) {
    std::vector<Host*> host_of(trace.strings.size() + 1, nullptr);
    for (std::size_t id = 1; id < host_of.size(); ++id)
      if (const auto it = hosts.find(trace.str(static_cast<trace::StringId>(id))); it != hosts.end()) host_of[id] = &it->second;
    std::set<std::pair<const Host*, std::uint64_t>> seen;  // one string is made of each call and path
    for (const trace::Event& event : trace.events) {
      Host* host = event.node < host_of.size() ? host_of[event.node] : nullptr;
      if (host == nullptr) continue;
      if (event.type == trace::EventType::scf || event.type == trace::EventType::ps) ++host->failures;
      if (host->doings.size() >= kMostDoings) continue;
      const bool call = event.type == trace::EventType::scf || event.type == trace::EventType::sys;
      if (!call && event.type != trace::EventType::af) continue;
      const std::uint64_t key = call ? (static_cast<std::uint64_t>(static_cast<std::uint16_t>(event.syscall)) << 32) | event.path
                                     : (std::uint64_t{1} << 48) | event.function;
      if (!seen.emplace(host, key).second) continue;
      host->doings.insert(call ? doing_of_call(kernel::syscall_name(event.syscall), trace.str(event.path))
                               : std::string(trace.str(event.function)) + "()");
    }
  }
  return hosts;
}

}  // namespace

std::vector<Alike> find_alike(const Inputs& inputs, const std::vector<std::string>& names, const std::vector<bool>& taken) {
  std::vector<Alike> found;
  if (!inputs.profile || names.empty()) return found;
  const std::vector<Doings> nodes = doings_of_nodes(inputs);
  std::map<std::string, std::size_t> known;  // doing -> nodes that do it
  for (const Doings& doings : nodes)
    for (const std::string& doing : doings) ++known[doing];
  const auto hosts = doings_of_hosts(inputs, names);
  std::vector<std::pair<std::uint64_t, std::string>> order;
  for (const auto& [name, host] : hosts) order.emplace_back(host.failures, name);
  std::stable_sort(order.begin(), order.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
  std::vector<std::size_t> players(nodes.size());
  for (std::size_t i = 0; i < taken.size() && i < players.size(); ++i) players[i] = taken[i] ? 1 : 0;
  for (const auto& [failures, name] : order) {
    const Host& host = hosts.find(name)->second;
    std::vector<double> shares(nodes.size());
    double all = 0;
    std::size_t told = 0;
    for (const std::string& doing : host.doings) {
      const auto it = known.find(doing);
      if (it == known.end()) {
        all += 1.0 / static_cast<double>(nodes.size());  // of nobody here: another program, or the failure itself
        continue;
      }
      ++told;
      const double weight = 1.0 / static_cast<double>(it->second);
      all += weight;
      for (std::size_t i = 0; i < nodes.size(); ++i) shares[i] += nodes[i].contains(doing) ? weight : 0;
    }
    if (told < kFewDoings || all <= 0) continue;
    const double best = *std::max_element(shares.begin(), shares.end()) / all;
    if (best < kAlikeEnough) continue;
    Alike alike{name, -1, best, false};
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      if (shares[i] / all < best - kAsAlike) continue;
      alike.any = alike.any || alike.node >= 0;
      if (alike.node < 0 || players[i] < players[static_cast<std::size_t>(alike.node)]) alike.node = static_cast<int>(i);
    }
    ++players[static_cast<std::size_t>(alike.node)];
    found.push_back(std::move(alike));
  }
  return found;
}

}  // namespace rose::diagnose
