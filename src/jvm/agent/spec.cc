#include "jvm/agent/spec.h"

#include <algorithm>

namespace rose::jvm {
namespace {

std::string_view take_field(std::string_view& line) {
  const auto tab = line.find('\t');
  const std::string_view field = line.substr(0, tab);
  line = tab == std::string_view::npos ? std::string_view() : line.substr(tab + 1);
  return field;
}

bool number_of(std::string_view text, std::int64_t& into) {
  if (text.empty() || text.size() > 18) return false;
  into = 0;
  for (const char c : text) {
    if (c < '0' || c > '9') return false;
    into = into * 10 + (c - '0');
  }
  return true;
}

bool take_place(std::string_view line, Spec& spec) {
  std::int64_t entry = 0, number = 0;
  if (!number_of(take_field(line), entry)) return false;
  const std::string_view where = take_field(line);
  if (!number_of(take_field(line), number)) return false;
  const std::string_view pattern = take_field(line);
  if (pattern.empty()) return false;
  auto* place =
      new PlaceSpec{.entry = static_cast<std::uint32_t>(entry), .pattern = NamePattern(leaving_of(pattern).method)};
  place->escaping = std::string(leaving_of(pattern).exception);
  place->number = number;
  if (where == "entry") {
    place->where = Where::entry;
  } else if (where == "offset") {
    place->where = Where::offset;
  } else if (where == "line") {
    place->where = Where::line;
  } else {
    return false;
  }
  if (!line.empty()) {
    auto* thrown = new Throw;
    thrown->entry = place->entry;
    thrown->class_name = std::string(take_field(line));
    thrown->message = std::string(line);
    place->thrown = thrown;
  }
  spec.places.push_back(place);
  return true;
}

bool take_watch(std::string_view line, WatchSpec& watch) {
  const std::string_view how = take_field(line);
  std::int64_t thousandths = 0, share = 0;
  if ((how != "count" && how != "tell") || !number_of(take_field(line), thousandths) || !number_of(line, share) ||
      share <= 0)
    return false;
  watch.on = true;
  watch.count = how == "count";
  watch.rate = static_cast<double>(thousandths) / 1000;
  watch.share = static_cast<double>(share) / 1000;
  return true;
}

bool take_ask(std::string_view line, Spec& spec) {
  std::int64_t fetch = 0, place = 0, number = 0;
  if (!number_of(take_field(line), fetch) || !number_of(take_field(line), place)) return false;
  const std::string_view where = take_field(line);
  if (!number_of(take_field(line), number)) return false;
  const std::string_view what = take_field(line);
  if (what.empty() || (where != "argument" && where != "return" && where != "caller" && where != "line")) return false;
  auto* ask = new AskSpec{.fetch = static_cast<std::uint32_t>(fetch),
                          .place = static_cast<std::uint32_t>(place),
                          .number = number,
                          .pattern = NamePattern(where == "line" ? std::string_view("*") : what),
                          .file = {},
                          .name = {},
                          .members = {}};
  ask->where = where == "argument" ? AskWhere::argument
               : where == "return" ? AskWhere::returned
               : where == "caller" ? AskWhere::caller
                                   : AskWhere::line;
  if (ask->where == AskWhere::line) ask->file = std::string(what);
  ask->name = std::string(take_field(line));
  while (!line.empty()) ask->members.emplace_back(take_field(line));
  spec.asks.push_back(ask);
  return true;
}

void take_method(std::string_view name, WatchSpec& watch) {
  watch.methods.emplace_back(name);
  const std::string_view before = name.substr(0, name.find('('));
  const auto dot = before.rfind('.');
  if (dot != std::string_view::npos) watch.classes.emplace_back(before.substr(0, dot));
}

bool take_line(std::string_view line, Spec& spec) {
  const std::string_view what = take_field(line);
  if (what == "state") {
    spec.state = std::string(line);
    return true;
  }
  if (what == "watch") return take_watch(line, spec.watch);
  if (what == "code") {
    spec.watch.code = true;
    return true;
  }
  if (what == "lasting") {
    spec.watch.lasting = true;
    return true;
  }
  if (what == "catchers") {
    spec.watch.catchers = true;
    return true;
  }
  if (what == "function") {
    spec.watch.functions.push_back(new NamePattern(line));
    return !line.empty();
  }
  if (what == "thrower") {
    spec.watch.throwers.push_back(new NamePattern(line));
    return !line.empty();
  }
  if (what == "thrower_source") {
    spec.watch.thrower_sources.emplace_back(line);
    return !line.empty();
  }
  if (what == "source") {
    spec.watch.sources.emplace_back(line);
    return !line.empty();
  }
  if (what == "method") {
    take_method(line, spec.watch);
    return !line.empty();
  }
  if (what == "stacks") {
    spec.stacks = true;
    return true;
  }
  if (what == "noted") {  // the lines "noted" follow those of the locations
    std::int64_t entry = 0;
    if (!number_of(line, entry)) return false;
    for (PlaceSpec* place : spec.places)
      place->noted = place->noted || place->entry == static_cast<std::uint32_t>(entry);
    return true;
  }
  if (what == "ask") return take_ask(line, spec);
  return what == "place" && take_place(line, spec);
}

}  // namespace

Spec parse_spec(std::string_view text) {
  Spec spec;
  bool first = true;
  while (!text.empty()) {
    const auto end = text.find('\n');
    const std::string_view line = text.substr(0, end);
    text = end == std::string_view::npos ? std::string_view() : text.substr(end + 1);
    if (first) {
      first = false;
      if (line == "rose-jvm\t3") continue;
      spec.damaged = true;
      return spec;
    }
    if (!line.empty() && !take_line(line, spec)) spec.damaged = true;
  }
  for (auto* list : {&spec.watch.sources, &spec.watch.methods, &spec.watch.classes, &spec.watch.thrower_sources})
    std::sort(list->begin(), list->end());
  return spec;
}

}  // namespace rose::jvm
