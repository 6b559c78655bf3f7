#include "diagnose/features.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "base/sha256.h"
#include "base/units.h"
#include "diagnose/forms.h"
#include "schedule/schedule.h"

namespace rose::diagnose {
namespace {

constexpr std::size_t kIdDigits = 8;
constexpr std::int64_t kSoonAfter = 60 * kSecond;  // consequences of a fault mostly appear within this time

using schedule::FaultKind;

bool is_call_candidate(const Candidate& c) { return c.kind == FaultKind::syscall || c.kind == FaultKind::exception; }

// A call is identified by its kind, whenever it failed; anything else also by its time.
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

// Relations between candidates.
class Relations {
 public:
  explicit Relations(const Plan& plan) : plan_(plan) {
    for (const Candidate& c : plan.candidates) {
      if (c.symptom) {
        for (const std::string& node : c.nodes) symptoms_[node].push_back(c.first_ts);
        continue;
      }
      if (is_call_candidate(c) && c.ordinariness >= 3) continue;
      last_.push_back(c.last_ts);
      for (auto* first : {&first_, &first_of_[c.node]})
        *first = *first == 0 ? c.first_ts : std::min(*first, c.first_ts);
      ++of_node_[c.node];
    }
    std::sort(last_.begin(), last_.end());
    for (auto& [node, times] : symptoms_) std::sort(times.begin(), times.end());
  }

  // Candidates that ended later.
  [[nodiscard]] double later(const Candidate& c) const {
    return static_cast<double>(last_.end() - std::upper_bound(last_.begin(), last_.end(), c.last_ts));
  }
  [[nodiscard]] double later_share(const Candidate& c) const {
    return last_.empty() ? 0 : later(c) / static_cast<double>(last_.size());
  }
  [[nodiscard]] bool first(const Candidate& c) const { return c.first_ts <= first_; }
  [[nodiscard]] bool first_of_node(const Candidate& c) const {
    const auto known = first_of_.find(c.node);
    return known == first_of_.end() || c.first_ts <= known->second;
  }
  [[nodiscard]] double of_node(const Candidate& c) const {
    const auto known = of_node_.find(c.node);
    return known == of_node_.end() ? 0 : known->second;
  }
  // Consequences on its nodes that begin shortly after it.
  [[nodiscard]] double symptoms_after(const Candidate& c) const {
    double count = 0;
    for (const std::string& node : c.nodes)
      if (const auto known = symptoms_.find(node); known != symptoms_.end())
        count +=
            static_cast<double>(std::upper_bound(known->second.begin(), known->second.end(), c.last_ts + kSoonAfter) -
                                std::lower_bound(known->second.begin(), known->second.end(), c.first_ts));
    return count;
  }
  [[nodiscard]] double seconds_to_end(const Candidate& c) const {
    return static_cast<double>(std::max<std::int64_t>(0, plan_.end_ts - c.last_ts)) / 1e9;
  }

 private:
  const Plan& plan_;
  std::vector<std::int64_t> last_;
  std::int64_t first_ = 0;
  std::map<std::string, std::int64_t> first_of_;
  std::map<std::string, double> of_node_;
  std::map<std::string, std::vector<std::int64_t>> symptoms_;
};

std::vector<Feature> features_of(const Candidate& c, const Relations& all) {
  const auto yes = [](bool is) { return is ? 1.0 : 0.0; };
  const bool syscall = c.kind == FaultKind::syscall;
  return {
      {"process", yes(c.kind == FaultKind::crash || c.kind == FaultKind::pause)},
      {"network", yes(c.kind == FaultKind::partition || c.kind == FaultKind::network)},
      {"clock", yes(c.kind == FaultKind::clock)},
      {"exception", yes(c.kind == FaultKind::exception)},
      {"resource_error", yes(syscall && c.ordinariness == 0)},
      {"other_error", yes(syscall && c.ordinariness == 1)},
      {"everyday_error", yes(syscall && c.ordinariness == 2)},
      {"usual_error", yes(syscall && c.ordinariness == 3)},
      {"symptom", yes(c.symptom)},
      {"own_end", yes(c.own_end)},
      {"of_helper", yes(c.partly)},
      {"waited_for_disk", yes(c.blocked)},
      {"out_of_memory", yes(c.out_of_memory)},
      {"clock_was_set", yes(c.stepped)},
      {"clock_was_noticed", yes(c.complained)},
      {"profiled", yes(c.profiled)},
      {"follows", yes(c.follows)},
      {"foreign_program", yes(c.foreign)},
      {"usual", -std::log(std::max(c.usual, 1e-6))},
      {"fatal", yes(c.fatal)},
      {"first_error", yes(c.first)},
      {"stated", yes(c.known == Known::stated)},
      {"inferred", yes(c.known == Known::inferred)},
      {"plainness", std::log(std::max(c.plainness, 1e-6))},
      {"log_count", std::log1p(static_cast<double>(c.count))},
      {"log_later", std::log1p(all.later(c))},
      {"later_share", all.later_share(c)},
      {"log_seconds_to_end", std::log1p(all.seconds_to_end(c))},
      {"log_seconds", std::log1p(static_cast<double>(std::max<std::int64_t>(0, c.last_ts - c.first_ts)) / 1e9)},
      {"log_incidents", std::log1p(static_cast<double>(c.again.size()))},
      {"first_of_all", yes(all.first(c))},
      {"first_of_node", yes(all.first_of_node(c))},
      {"log_of_node", std::log1p(all.of_node(c))},
      {"log_symptoms_after", std::log1p(all.symptoms_after(c))},
  };
}

}  // namespace

void describe(Plan& plan, const config::Config& config) {
  std::map<std::string, int> used;  // for equal faults at the same time: a counter that makes the ids unique
  for (Candidate& c : plan.candidates) {
    c.id = id_of(c);
    if (const int n = ++used[c.id]; n > 1) c.id += fmt::format("-{}", n);
    c.nodes = nodes_of(c, config);
  }
  const Relations relations(plan);
  for (Candidate& c : plan.candidates) c.features = features_of(c, relations);
}

}  // namespace rose::diagnose
