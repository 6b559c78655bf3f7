// The reader of schedule.toml. It is in several files: schedule.cc reads faults, roles and events; read_calls.cc reads
// calls; read_conditions.cc reads conditions; check.cc checks the schedule as a whole. Private to schedule.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/toml.h"
#include "schedule/order.h"
#include "schedule/schedule.h"

namespace rose::schedule {

inline constexpr std::int64_t kLeastTime = 1'000'000;
inline constexpr std::int64_t kMostTime = std::int64_t{24} * 3600 * 1'000'000'000;
inline constexpr std::int64_t kMostCount = 1'000'000'000;
inline constexpr std::size_t kMostName = 64;

class Reader {
 public:
  Reader(const toml::Value& root, std::string_view file) : problems_(file), root_(root, "", problems_) {}

  Result<Schedule> read();

 private:
  struct Places {
    toml::Place id;
    std::vector<toml::Place> after;
  };

  void read_roles();
  void read_events();
  void read_fault(toml::Table& table);
  void refuse_foreign_keys(toml::Table& table, FaultKind kind);
  void read_syscall_fault(toml::Table& table, Fault& fault);
  void read_process_fault(toml::Table& table, Fault& fault);
  void read_ends(toml::Table& table, Fault& fault);
  void read_lasting(toml::Table& table, Fault& fault);
  void read_partition(toml::Table& table, Fault& fault);
  void read_exception(toml::Table& table, Fault& fault);
  void read_effect(toml::Table& table, Fault& fault);
  bool read_name(toml::Table& table, std::string_view key, std::string& into);
  bool read_names(toml::Table& table, std::string_view key, std::string_view what, std::vector<std::string>& into);
  void read_node(toml::Table& table, Fault& fault);
  void read_call(toml::Table& table, CallMatch& call);
  void read_syscall_name(toml::Table& table, CallMatch& call);
  void read_args(toml::Table& table, CallMatch& call);
  void read_conditions(toml::Table& table, std::string_view key, const Fault& fault, std::vector<Condition>& into);
  void read_condition(toml::Table& table, const Fault& fault, const Condition* previous, Condition& condition);
  void read_result_condition(toml::Table& table, Condition& condition);
  bool known_role(std::string_view name, toml::Place place, std::string_view path);
  bool read_node_or_role(toml::Table& table, std::string& into);
  void check_ids();
  void check_after();
  void check_cycles();
  void read_order(toml::Place place);
  void check_order(toml::Place place);
  void follow_order();
  // True for an event or a step of the workload, that is, for a name in the order that is no fault.
  [[nodiscard]] bool is_mark(std::string_view name) const {
    return schedule_.find_event(name) != nullptr ||
           std::any_of(order_.begin(), order_.end(), [&](const OrderedName& one) { return one.name == name; });
  }

  Schedule schedule_;
  std::vector<OrderedName> order_;
  toml::Problems problems_;
  toml::Table root_;
  std::vector<Places> places_;
};

// Accepts only an integer; nothing may precede or follow it.
[[nodiscard]] std::optional<std::int64_t> decimal(std::string_view text);

}  // namespace rose::schedule
