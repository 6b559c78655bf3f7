// Reads the conditions of faults and events, and those that end a fault.
#include "base/regex.h"
#include "base/text.h"
#include "kernel/syscalls.h"
#include "schedule/kinds.h"
#include "schedule/reader.h"

namespace rose::schedule {
namespace {

constexpr std::size_t kMostConditions = 4000;  // at most this many conditions in `when` or in `until`
const std::vector<std::string> kStates{"crashed", "exited", std::string(kOutOfMemory), "paused", "started"};

}  // namespace

void Reader::read_conditions(toml::Table& table, std::string_view key, const Fault& fault,
                             std::vector<Condition>& into) {
  const std::string_view what = "a list of conditions such as [ { elapsed = \"5s\" } ]";
  std::vector<toml::Table> tables = table.tables(key, what);
  if (const toml::Value* list = table.get(key);
      list != nullptr && list->type == toml::Type::array && list->items.empty()) {
    table.wrong(key, fmt::format("the list is empty, {} is needed", what));
    return;
  }
  if (tables.size() > kMostConditions) {
    problems_.add(tables[kMostConditions].place(), fmt::format("{}: {} conditions were found, up to {} are accepted",
                                                               table.path(key), tables.size(), kMostConditions));
    return;
  }
  into.reserve(tables.size());  // because `previous` below points into the vector
  for (toml::Table& one : tables) {
    Condition condition;
    read_condition(one, fault, into.empty() ? nullptr : &into.back(), condition);
    into.push_back(std::move(condition));
  }
}

void Reader::read_condition(toml::Table& table, const Fault& fault, const Condition* previous, Condition& condition) {
  struct Form {
    ConditionKind kind;
    std::string_view key;
    std::vector<std::string_view> others;
  };
  static const std::vector<Form> forms{
      {ConditionKind::elapsed, "elapsed", {}},
      {ConditionKind::function, "function", {"offset", "line", "count", "same_thread", "node"}},
      {ConditionKind::syscall,
       "syscall",
       {"path", "path2", "peer", "local", "args", "process", "result", "count", "same_thread", "node"}},
      {ConditionKind::log, "log", {"node", "count"}},
      {ConditionKind::process_state, "state", {"node"}},
      {ConditionKind::role, "role", {"node"}}};
  const Form* form = nullptr;
  for (const Form& one : forms) {
    if (!table.has(one.key)) continue;
    if (form != nullptr) {
      table.wrong(one.key, fmt::format("'{}' and '{}' were both found, a condition has exactly one of 'elapsed', "
                                       "'function', 'syscall', 'log', 'state', 'role'",
                                       form->key, one.key));
      return;
    }
    form = &one;
  }
  if (form == nullptr) {
    for (const Form& one : forms) table.get(one.key);
    for (const Form& one : forms)
      for (const std::string_view key : one.others) table.get(key);
    table.finish();  // reports a misspelt key, which is probably the reason why the required key is missing
    problems_.add_missing(table.place(), fmt::format("{}: a condition needs one of 'elapsed', 'function', 'syscall', "
                                                     "'log', 'state', 'role'",
                                                     table.path()));
    return;
  }
  for (const Form& other : forms)
    for (const std::string_view key : other.others)
      if (table.has(key) && std::find(form->others.begin(), form->others.end(), key) == form->others.end()) {
        table.wrong(
            key, fmt::format("'{}' is not a key of a condition on '{}'", key, form->key),
            form->others.empty() ? std::string{} : fmt::format("accepted are also: {}", fmt::join(form->others, ", ")));
        return;
      }

  condition.kind = form->kind;
  switch (form->kind) {
    case ConditionKind::elapsed: table.duration("elapsed", condition.elapsed_ns, 0, kMostTime); break;
    case ConditionKind::function:
      table.string("function", condition.function);
      read_place(table, condition.offset, condition.line);
      break;
    case ConditionKind::syscall:
      read_call(table, condition.call);
      read_result_condition(table, condition);
      break;
    case ConditionKind::log:
      if (table.string("log", condition.log))
        if (const std::string problem = Regex(condition.log).problem(); !problem.empty())
          table.wrong("log",
                      fmt::format("{} is not a regular expression (RE2): {}", toml::quoted(condition.log), problem));
      break;
    case ConditionKind::process_state: {
      std::size_t state = 0;
      if (table.one_of("state", kStates, state)) condition.state = kStates[state];
      break;
    }
    case ConditionKind::role: {
      const toml::Value& value = *table.get("role");
      if (value.type == toml::Type::table) {
        auto role = table.table("role");
        role->require("function");
        role->string("function", condition.function);
        role->finish();
      } else if (table.string("role", condition.role)) {
        known_role(condition.role, table.place("role"), table.path("role"));
      }
      break;
    }
  }
  const auto takes = [&](std::string_view key) {
    return std::find(form->others.begin(), form->others.end(), key) != form->others.end();
  };
  if (takes("node") && form->kind != ConditionKind::role) read_node_or_role(table, condition.node);
  if (takes("node") && form->kind == ConditionKind::role) read_name(table, "node", condition.node);
  if (takes("count")) table.integer("count", condition.count, 1, kMostCount);
  if (takes("same_thread") && table.boolean("same_thread", condition.same_thread) && condition.same_thread) {
    const auto node = [&](const Condition& one) { return one.node.empty() ? fault.node : one.node; };
    if (previous == nullptr ||
        (previous->kind != ConditionKind::function && previous->kind != ConditionKind::syscall) ||
        node(*previous) != node(condition))
      table.wrong(
          "same_thread",
          "'same_thread' requires a condition on 'function' or 'syscall' of the same node immediately before it");
  }
  table.finish();
}

void Reader::read_result_condition(toml::Table& table, Condition& condition) {
  const std::string_view what = "\"ok\", \"error\", an error's name such as \"ENOENT\" or a number";
  const toml::Value* value = table.get("result");
  if (value == nullptr) return;
  if (value->type == toml::Type::integer) {
    condition.result = std::to_string(value->integer);
  } else if (value->type == toml::Type::string && (value->text == "ok" || value->text == "error" ||
                                                   kernel::errno_number(value->text) || decimal(value->text))) {
    condition.result = value->text;
  } else {
    std::vector<std::string> names = kernel::errno_names();
    names.insert(names.end(), {"ok", "error"});
    table.wrong("result", fmt::format("{} was found, {} is needed", toml::quoted(*value), what),
                value->type == toml::Type::string ? did_you_mean(value->text, names) : std::string{});
  }
}

}  // namespace rose::schedule
