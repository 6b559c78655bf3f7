// Creates plans. The code is in several files: plan.cc handles nodes, faults and their order, plan_links.cc partitions
// and bad links, plan_conditions.cc conditions, and plan_places.cc locations in programs.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/text.h"
#include "inject/plan.h"
#include "symbols/symbols.h"

namespace rose::inject {

// The functions of the nodes' binaries. Each binary is read once.
class Binaries {
 public:
  // Returns nullptr if `path` is not an ELF file with symbols.
  const std::vector<symbols::Function>* functions(const std::filesystem::path& path) {
    auto [at, fresh] = known_.try_emplace(path.string());
    if (fresh) {
      if (auto list = symbols::list_functions(path)) {
        at->second = std::move(*list);
      } else {
        last_error_ = std::move(list).error();
      }
    }
    return at->second ? &*at->second : nullptr;
  }
  [[nodiscard]] const std::optional<Error>& last_error() const { return last_error_; }

 private:
  std::map<std::string, std::optional<std::vector<symbols::Function>>> known_;
  std::optional<Error> last_error_;
};

class Planner {
 public:
  Planner(const config::Config& config, bool allow_attached, Plan& plan)
      : config_(config), allow_attached_(allow_attached), plan_(plan) {}

  Result<void> make();

 private:
  Result<void> fault(std::size_t index);
  Result<void> mark(Mark& mark);
  void in_turn(Mark& mark, rose_chain& chain);
  [[nodiscard]] static bool holds_threads();
  Result<void> syscall_fault(const schedule::Fault& fault, PlannedChain& chain);
  Result<void> process_fault(const schedule::Fault& fault, PlannedChain& chain);
  Result<void> block(const schedule::Fault& fault, std::size_t index);
  Result<void> partition(const schedule::Fault& fault, std::size_t index);
  Result<void> bad_link(const schedule::Fault& fault, std::size_t index);
  Result<rose_rule> rule(const schedule::Fault& fault, std::size_t index);
  Result<void> clock(const schedule::Fault& fault, const PlannedChain& chain);
  Result<void> conditions(std::size_t chain, const std::vector<schedule::Condition>& list);
  Result<void> condition(std::size_t chain, std::size_t position, const schedule::Condition& source);
  Result<void> counted(std::size_t id) const;
  // Plans what the condition waits for on these nodes. `name` is used in messages. The errors that this function
  // returns do not name the condition yet.
  Result<void> met_by(std::size_t id, const std::vector<std::size_t>& nodes, const std::string& name);
  Result<void> met_by_call(PlannedCondition& condition, const std::vector<std::size_t>& nodes, const std::string& name);
  Result<void> met_by_line(PlannedCondition& condition, const std::vector<std::size_t>& nodes,
                           const std::string& name) const;
  Result<void> met_by_role(std::size_t id, const std::vector<std::size_t>& nodes, const std::string& name);
  // True if a fault limits the memory of one of these nodes, or of a role, which can be any of them. Only then does
  // rose have a memory cgroup for the node, whose counters show that the kernel killed a process for lack of memory.
  [[nodiscard]] bool limits_memory(const std::vector<std::size_t>& nodes) const;
  // The number that represents `@role` or a node's name in rose_chain.node. `injects`: a fault is injected there, so
  // nodes that rose did not start are refused unless they are allowed.
  Result<std::uint32_t> place(const std::string& name, bool injects);
  Result<std::uint32_t> role_index(const std::string& name, const std::string& function);
  [[nodiscard]] std::vector<std::size_t> nodes_at(std::uint32_t where) const;
  // A location in a function.
  struct ProbePoint {
    const std::string& function;
    std::optional<std::uint64_t> offset{};
    std::optional<std::uint64_t> line{};
  };
  Result<void> functions(std::uint32_t entry, const ProbePoint& point, const std::vector<std::size_t>& nodes);
  Result<void> function(std::uint32_t entry, const ProbePoint& point, std::size_t node);
  void method(std::uint32_t entry, const ProbePoint& point, std::size_t node, const schedule::Fault* thrown = nullptr);
  Result<void> exception(const schedule::Fault& fault, std::size_t index);
  Result<void> edges();
  Result<void> order();
  Result<void> lists();

  [[nodiscard]] Result<std::size_t> node_index(const std::string& name, bool injects) const;
  [[nodiscard]] Unexpected refuse(const schedule::Fault& fault, ErrorKind kind, std::string what,
                                  std::string hint = {}) const {
    return fail(kind, fmt::format("{}: {}", label(fault), what), std::move(hint));
  }
  [[nodiscard]] Unexpected within(const schedule::Fault& fault, Error error) const {
    return Unexpected(std::move(error).in(label(fault)));
  }
  [[nodiscard]] std::string label(const schedule::Fault& fault) const {
    return fmt::format("{} '{}'", plan_.schedule.find_event(fault.id) != nullptr ? "event" : "fault", fault.id);
  }

  const config::Config& config_;
  const bool allow_attached_;
  Plan& plan_;
  Binaries binaries_;
  std::map<std::pair<std::string, std::uint64_t>, std::size_t> site_at_;
  std::vector<std::string> role_functions_;
};

}  // namespace rose::inject
