// Checks the schedule as a whole: ids must be unique, and it must be possible to satisfy the order and every `after`.
#include <unordered_map>
#include <unordered_set>

#include "base/text.h"
#include "schedule/reader.h"

namespace rose::schedule {

void Reader::check_ids() {
  std::unordered_map<std::string_view, std::size_t> seen;
  for (std::size_t i = 0; i < schedule_.faults.size(); ++i) {
    const auto [it, fresh] = seen.emplace(schedule_.faults[i].id, i);
    if (!fresh)
      problems_.add(places_[i].id, fmt::format("fault.id: '{}' is taken by the fault in line {}, ids must differ",
                                               schedule_.faults[i].id, schedule_.faults[it->second].line));
    if (const Event* event = schedule_.find_event(schedule_.faults[i].id); event != nullptr)
      problems_.add(places_[i].id, fmt::format("fault.id: '{}' is taken by the event in line {}, names must differ",
                                               event->name, event->line));
  }
}

void Reader::read_order(toml::Place place) {
  if (schedule_.order.empty()) return;
  auto names = parse_order(schedule_.order);
  if (names) order_ = std::move(*names);
  else problems_.add(place, fmt::format("order: {}", names.error().message), names.error().hint);
}

// Adds to the `after` of each fault what precedes the fault in the order.
void Reader::follow_order() {
  for (const OrderedName& name : order_) {
    const auto fault = std::find_if(schedule_.faults.begin(), schedule_.faults.end(),
                                    [&](const Fault& one) { return one.id == name.name; });
    if (fault == schedule_.faults.end()) continue;
    std::erase_if(fault->after, [&](const std::string& id) {
      return std::find(name.before.begin(), name.before.end(), id) != name.before.end();
    });
    fault->after.insert(fault->after.end(), name.before.begin(), name.before.end());
  }
}

// Checks the names in the order. A name that is neither an event nor a fault is a step of the workload.
void Reader::check_order(toml::Place place) {
  const auto ordered = [&](const std::string& name) {
    return std::any_of(order_.begin(), order_.end(), [&](const OrderedName& one) { return one.name == name; });
  };
  for (const Event& event : schedule_.events) {
    const bool used =
        ordered(event.name) || std::any_of(schedule_.faults.begin(), schedule_.faults.end(), [&](const Fault& fault) {
          return std::find(fault.after.begin(), fault.after.end(), event.name) != fault.after.end();
        });
    if (used) continue;
    problems_.add({event.line, 1}, fmt::format("event '{}' is not used", event.name),
                  "name it in `order = \"...\"` or in a fault's `after`");
    return;
  }
  if (order_.empty()) return;
  // If the order lacks a fault, and has a step with almost the same name, this is probably a typing error.
  std::vector<std::string> left_out;
  for (const Fault& fault : schedule_.faults)
    if (!ordered(fault.id)) left_out.push_back(fault.id);
  for (const OrderedName& name : order_) {
    if (schedule_.find(name.name) != nullptr || schedule_.find_event(name.name) != nullptr) continue;
    if (const std::string hint = did_you_mean(name.name, left_out); !hint.empty()) {
      problems_.add(place,
                    fmt::format("order: column {}: '{}' is neither an event nor a fault", name.column, name.name),
                    hint + " (a step of the workload needs a different name)");
      return;
    }
  }
  // Collect what each name depends on: the names in its `after`, and those that the order puts immediately before it.
  std::unordered_map<std::string, std::vector<std::string>> before;
  for (const Fault& fault : schedule_.faults) before[fault.id] = fault.after;
  for (const OrderedName& name : order_) {
    auto& list = before[name.name];
    list.insert(list.end(), name.before.begin(), name.before.end());
    if (const Fault* fault = schedule_.find(name.name); fault != nullptr && !fault->group.empty()) {
      problems_.add(place, fmt::format("order: fault '{}' belongs to group '{}': it may be withdrawn, and what follows "
                                       "it could then never happen",
                                       fault->id, fault->group));
      return;
    }
  }
  for (const Event& event : schedule_.events) {
    if (!before.contains(event.name)) before[event.name];
  }
  // Remove names whose dependencies have all been removed (topological sort). The names that remain contain a cycle.
  std::unordered_map<std::string, std::size_t> left;
  for (const auto& [name, list] : before)
    for (const std::string& early : list) {
      (void)early;
      ++left[name];
    }
  std::vector<std::string> ready;
  for (const auto& [name, list] : before)
    if (list.empty()) ready.push_back(name);
  std::size_t done = 0;
  while (done < ready.size()) {
    const std::string name = ready[done++];
    for (const auto& [late, list] : before) {
      const auto times = static_cast<std::size_t>(std::count(list.begin(), list.end(), name));
      if (times == 0) continue;
      left[late] -= times;
      if (left[late] == 0) ready.push_back(late);
    }
  }
  for (const OrderedName& name : order_) {
    if (left[name.name] == 0) continue;
    problems_.add(place,
                  fmt::format("order: column {}: '{}' would depend on itself: the order contradicts an `after`",
                              name.column, name.name),
                  "a fault's `after` must not name what the order puts after it");
    return;
  }
}

void Reader::check_after() {
  std::unordered_map<std::string_view, const Fault*> by_id;
  std::vector<std::string> ids;
  for (const Fault& fault : schedule_.faults) {
    by_id.emplace(fault.id, &fault);
    ids.push_back(fault.id);
  }
  for (const Event& event : schedule_.events) ids.push_back(event.name);
  for (const OrderedName& name : order_) ids.push_back(name.name);
  for (std::size_t i = 0; i < schedule_.faults.size(); ++i) {
    const Fault& fault = schedule_.faults[i];
    std::unordered_set<std::string_view> seen;
    for (std::size_t k = 0; k < fault.after.size(); ++k) {
      const std::string& id = fault.after[k];
      std::string problem;
      std::string hint;
      const auto other = by_id.find(id);
      if (id == fault.id) {
        problem = fmt::format("'{}' depends on itself", id);
      } else if (other == by_id.end() && !is_mark(id)) {
        problem = fmt::format("no fault has the id {}", toml::quoted(id));
        hint = did_you_mean(id, ids);
      } else if (!seen.insert(id).second) {
        problem = fmt::format("'{}' occurs twice", id);
      } else if (other != by_id.end() && !fault.group.empty() && other->second->group == fault.group) {
        problem = fmt::format("'{}' is an alternative in the same group '{}': when it fires, '{}' is withdrawn", id,
                              fault.group, fault.id);
      }
      if (problem.empty()) continue;
      problems_.add(places_[i].after[k], fmt::format("fault.after: {}", problem), std::move(hint));
      return;
    }
  }
}

void Reader::check_cycles() {
  // Searches depth first, without recursion, because a chain may be as long as the schedule.
  const std::vector<Fault>& faults = schedule_.faults;
  std::unordered_map<std::string_view, std::size_t> index;
  for (std::size_t i = 0; i < faults.size(); ++i) index.emplace(faults[i].id, i);
  enum class State : char { fresh, open, done };
  std::vector<State> states(faults.size(), State::fresh);
  struct Step {
    std::size_t fault;
    std::size_t next;
  };
  for (std::size_t start = 0; start < faults.size(); ++start) {
    if (states[start] != State::fresh) continue;
    std::vector<Step> stack{{start, 0}};
    states[start] = State::open;
    while (!stack.empty()) {
      const std::size_t here = stack.back().fault;
      if (stack.back().next == faults[here].after.size()) {
        states[here] = State::done;
        stack.pop_back();
        continue;
      }
      const std::size_t place = stack.back().next++;
      const auto known = index.find(faults[here].after[place]);
      if (known == index.end()) continue;  // it is an event, which depends on no fault
      const std::size_t other = known->second;
      if (states[other] == State::open) {
        std::string circle;
        auto from = std::find_if(stack.begin(), stack.end(), [&](const Step& step) { return step.fault == other; });
        for (; from != stack.end(); ++from) circle += fmt::format("'{}' waits for ", faults[from->fault].id);
        problems_.add(
            places_[here].after[place],
            fmt::format("fault.after: faults depend on each other in a cycle: {}'{}'", circle, faults[other].id));
        return;
      }
      if (states[other] == State::fresh) {
        states[other] = State::open;
        stack.push_back({other, 0});
      }
    }
  }
}

}  // namespace rose::schedule
