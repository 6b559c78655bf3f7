// Block faults, in which a thread waits at a location: reads and writes their keys, and describes them.
#include "base/text.h"
#include "schedule/kinds.h"

namespace rose::schedule {
namespace {

constexpr std::int64_t kMostThreads = 1'000'000'000;

}  // namespace

void read_block(toml::Table& table, Fault& fault, const std::function<void(toml::Table&, CallMatch&)>& read_call) {
  table.require(
      "at", "where the thread waits: at = { function = \"commit\" } or at = { syscall = \"fsync\", path = \"*/log\" }");
  auto at = table.table("at");
  bool counted = false;
  if (at) {
    const bool function = at->has("function");
    if (function && at->has("syscall")) {
      at->wrong("syscall", "'function' and 'syscall' were both found, exactly one is needed");
      return;
    }
    if (!function && !at->has("syscall")) {
      for (const std::string_view key : {"function", "syscall", "count"}) at->get(key);
      at->finish();  // reports a misspelt key, which is probably the reason why the required key is missing
      table.problems().add_missing(at->place(), fmt::format("{}: one of 'function', 'syscall' is missing", at->path()));
      return;
    }
    if (function) {
      at->string("function", fault.function);
      read_place(*at, fault.offset, fault.at_line);
    } else {
      read_call(*at, fault.call);
    }
    // `count` may be inside `at`, as it is in `before` and in conditions, or next to `at`, as in other faults.
    counted = at->integer("count", fault.count, 1, kMostThreads);
    at->finish();
  }
  if (counted && table.has("count"))
    table.wrong("count", "'count' was found here and in 'at', at most one is accepted");
  table.integer("count", fault.count, 1, kMostThreads);
}

void add_block(Parts& parts, const Fault& fault) {
  Parts at;
  if (!fault.function.empty()) {
    at.emplace_back("function", toml::literal(fault.function));
    if (fault.offset) at.emplace_back("offset", fmt::format("{:#x}", *fault.offset));
    if (fault.at_line) at.emplace_back("line", std::to_string(*fault.at_line));
  } else {
    add_call(at, fault.call);
  }
  parts.emplace_back("at", inline_table(at));
  if (fault.count != 1) parts.emplace_back("count", std::to_string(fault.count));
}

std::string block_words(const Fault& fault, const std::string& node) {
  const std::string which = fault.count == 1 ? "first" : ordinal_text(fault.count);
  if (fault.function.empty())
    return fmt::format("block the thread that is about to make the {} {}{} on {}", fault.count == 1 ? "1st" : which,
                       fault.call.syscall, call_details(fault.call), node);
  std::string place = fault.function;
  if (fault.offset && *fault.offset != 0) place = fmt::format("{}+{:#x}", fault.function, *fault.offset);
  if (fault.at_line) place = fmt::format("line {} of {}", *fault.at_line, fault.function);
  return fmt::format("block the {} thread of {} that reaches {}", which, node, place);
}

}  // namespace rose::schedule
