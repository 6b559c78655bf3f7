// Finds the requested locations in the methods of a class that was loaded.
#include <cstring>
#include <utility>

#include "jvm/agent/agent.h"
#include "jvm/agent/text.h"
#include "jvm/bytecode.h"

namespace rose::jvm {
namespace {

// True if `wanted` is the name of the class's source file, or the end of its path: "x/Store.java" for org.x.Store.
bool is_file(std::string_view class_name, std::string_view source, std::string_view wanted) {
  if (source.empty()) return false;
  const auto slash = wanted.rfind('/');
  if (wanted.substr(slash == std::string_view::npos ? 0 : slash + 1) != source) return false;
  if (slash == std::string_view::npos) return true;
  std::string folder(class_name.substr(0, class_name.rfind('.') == std::string_view::npos ? 0 : class_name.rfind('.')));
  for (char& c : folder) c = c == '.' ? '/' : c;
  // The folder in either path may be the longer one: "/src/main/java/org/x/Store.java".
  std::string_view own = folder, asked = wanted.substr(0, slash);
  if (own.size() > asked.size()) {
    const std::string_view longer = own;
    own = asked;
    asked = longer;
  }
  return asked.substr(asked.size() - own.size()) == own &&
         (asked.size() == own.size() || own.empty() || asked[asked.size() - own.size() - 1] == '/');
}

// The method that contains a lambda: "run" for "lambda$run$0"; "" if it is not a lambda.
std::string_view method_of_lambda(std::string_view name) {
  constexpr std::string_view kBegin = "lambda$";
  if (name.substr(0, kBegin.size()) != kBegin) return {};
  name.remove_prefix(kBegin.size());
  return name.substr(0, name.rfind('$'));
}

}  // namespace

struct Agent::Class {
  struct Own {
    MethodId id = nullptr;
    std::string name, descriptor;
    std::uint32_t flags = 0;
    std::vector<unsigned char> code;
    bool has_code = false;  // the JVM was asked for `code`; the method has no code if `code` is still empty
    bool watched = false;
  };
  Jni jni;
  Object klass = nullptr;
  Object weak = nullptr;
  std::string name, source;
  std::vector<Own> methods;
  std::vector<PlaceSpec*> places;  // requests for locations that may be in this class
  std::vector<AskSpec*> asks;      // requests for values that may be in this class
  bool watched = false;            // the class may contain methods to watch

  [[nodiscard]] Method method(std::size_t index) const {
    const Own& own = methods[index];
    return {name, own.name, own.descriptor, source, own.flags};
  }
  [[nodiscard]] std::string display(std::size_t index) const {
    std::size_t same = 0;
    for (const Own& one : methods) same += one.name == methods[index].name && (one.flags & kBridge) == 0 ? 1 : 0;
    return display_name(name, methods[index].name, methods[index].descriptor, same > 1);
  }
};

// Collects the requests for locations in a method before they are published.
struct Agent::Wanted {
  struct Target {
    Location location = 0;
    std::vector<const PlaceSpec*> entered, passed;
    std::vector<const PlacedQuery*> at_entry, at_pass, at_return;
    bool guard = false, jumps = false, watched = false;
  };
  std::vector<Target> places;

  Target& at(Location location) {
    for (Target& one : places) {
      if (one.location == location) return one;
    }
    places.push_back(
        {.location = location, .entered = {}, .passed = {}, .at_entry = {}, .at_pass = {}, .at_return = {}});
    return places.back();
  }
};

// Call this under the lock.
void Agent::prepare(Jni jni, Object klass) {
  char* signature = nullptr;
  if (jvmti_.class_signature(klass, &signature) != kNone) return;
  Class info{.jni = jni,
             .klass = klass,
             .name = class_of_signature(signature),
             .source = {},
             .methods = {},
             .places = {},
             .asks = {},
             .watched = false};
  jvmti_.deallocate(signature);
  // The JVM generates a class with such a name for a lambda or a method handle. The code of the lambda is in another
  // class.
  if (info.name.find("$$Lambda") != std::string::npos || info.name.find("LambdaForm") != std::string::npos) return;
  for (PlaceSpec* place : spec_.places) {
    if (place->pattern.may_be_in(info.name)) info.places.push_back(place);
  }
  info.watched = watched_.may_be_in(info.name, {});
  bool lines = false;
  for (AskSpec* ask : spec_.asks) {
    lines = lines || ask->where == AskWhere::line;
    if (ask->where != AskWhere::line && ask->pattern.may_be_in(info.name)) info.asks.push_back(ask);
  }
  if (info.places.empty() && !info.watched && info.asks.empty() && !lines) return;
  char* source = nullptr;
  if (jvmti_.source_file(klass, &source) == kNone) {
    info.source = source;
    jvmti_.deallocate(source);
  }
  info.watched = info.watched && watched_.may_be_in(info.name, info.source.empty() ? "?" : info.source);
  for (AskSpec* ask : spec_.asks)
    if (ask->where == AskWhere::line && is_file(info.name, info.source, ask->file)) info.asks.push_back(ask);
  if (info.places.empty() && !info.watched && info.asks.empty()) return;

  std::int32_t count = 0;
  MethodId* methods = nullptr;
  if (jvmti_.class_methods(klass, &count, &methods) != kNone) return;
  for (std::int32_t i = 0; i < count; ++i) {
    char *name = nullptr, *descriptor = nullptr;
    std::int32_t flags = 0;
    if (jvmti_.method_name(methods[i], &name, &descriptor) != kNone) continue;
    (void)jvmti_.modifiers(methods[i], &flags);
    info.methods.push_back({methods[i], name, descriptor, static_cast<std::uint32_t>(flags), {}});
    jvmti_.deallocate(name);
    jvmti_.deallocate(descriptor);
  }
  jvmti_.deallocate(methods);
  for (PlaceSpec* place : info.places) place->method_seen = place->placed = false;
  for (std::size_t i = 0; i < info.methods.size(); ++i) prepare_method(info, i);
  if (info.watched && code_.wanted()) write_code(info);
  for (const PlaceSpec* place : info.places) {
    if (!place->method_seen || place->placed) continue;
    std::string text = info.name + " has '" + place->pattern.text() + "', but ";
    if (place->where == Where::line) text += "no code of line " + decimal(place->number) + " in it";
    else if (place->where == Where::offset)
      text += "no instruction begins at offset " + decimal(place->number) + " of it";
    else text += "it has no code to stop at: it is native or abstract";
    state_.note(text, place->entry);
  }
}

// Writes the calls in the class's watched methods to the code file.
void Agent::write_code(const Class& klass) {
  std::int32_t count = 0, size = 0;
  unsigned char* bytes = nullptr;
  if (jvmti_.constant_pool(klass.klass, &count, &size, &bytes) != kNone) return;
  const ConstantPool pool({bytes, static_cast<std::size_t>(size)}, static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < klass.methods.size(); ++i) {
    const auto& own = klass.methods[i];
    if (!own.watched) continue;
    std::int32_t lines = 0;
    LineEntry* table = nullptr;
    if (jvmti_.line_table(own.id, &lines, &table) != kNone) lines = 0;
    code_.add(klass.display(i), Code(own.code), pool, table, lines);
    if (table != nullptr) jvmti_.deallocate(table);
  }
  code_.flush();
  jvmti_.deallocate(bytes);
}

void Agent::prepare_method(Class& klass, std::size_t index) {
  auto& own = klass.methods[index];
  const Method method = klass.method(index);
  Wanted wanted;
  const auto code = [&] {
    if (std::exchange(own.has_code, true)) return;
    std::int32_t count = 0;
    unsigned char* bytes = nullptr;
    if ((own.flags & (kNative | kAbstract)) != 0 || jvmti_.bytecodes(own.id, &count, &bytes) != kNone) return;
    own.code.assign(bytes, bytes + count);
    jvmti_.deallocate(bytes);
  };
  for (PlaceSpec* place : klass.places) {
    bool here = place->pattern.matches(method);
    if (!here && place->where == Where::line) {
      // In the source, the lines of a lambda belong to the method that contains it.
      Method outer = method;
      outer.name = method_of_lambda(own.name);
      outer.flags = 0;
      here = !outer.name.empty() && place->pattern.matches(outer);
    }
    if (!here) continue;
    place->method_seen = true;
    if (!place->escaping.empty()) {
      place->placed = true;
      if (std::exchange(place->reported, true)) continue;
      if (StateRecord* record = state_.add(RecordKind::place, klass.display(index))) record->entry = place->entry;
      continue;
    }
    code();
    places_of(klass, index, *place, wanted);
  }
  if (!klass.asks.empty()) {
    for (const AskSpec* ask : klass.asks)
      if (ask->where == AskWhere::line || ask->pattern.matches(method)) code();
    asks_of(klass, index, wanted);
  }
  if (klass.watched && watched_.wants(method, klass.display(index))) {
    code();
    if (!own.code.empty()) wanted.at(0).watched = own.watched = true;
  }
  if (wanted.places.empty()) return;
  guard(klass, index, wanted);
  publish(klass, index, wanted);
}

// The code ranges of a line. There are several because compilers duplicate `finally` blocks. Returns the start of each
// range or, with `calls`, the first call in it if there is one.
std::vector<Location> Agent::stretches_of(MethodId method, Code code, std::int64_t wanted, bool calls) const {
  std::vector<Location> found;
  std::int32_t count = 0;
  LineEntry* table = nullptr;
  if (jvmti_.line_table(method, &count, &table) != kNone) return found;
  std::size_t at = 0;
  bool inside = false, called = false;
  Location first = -1;
  const auto line_at = [&](std::size_t place) {
    std::int32_t line = -1;
    Location best = -1;
    for (std::int32_t i = 0; i < count; ++i) {
      if (table[i].start > static_cast<Location>(place) || table[i].start < best) continue;
      best = table[i].start;
      line = table[i].line;
    }
    return line;
  };
  while (at < code.size()) {
    const std::size_t size = instruction_size(code, at);
    if (size == 0) break;
    const bool mine = line_at(at) == wanted;
    if (mine && !inside) first = static_cast<Location>(at), called = false;
    if (mine && calls && !called && is_call(code[at])) first = static_cast<Location>(at), called = true;
    if (!mine && inside) found.push_back(first);
    inside = mine;
    at += size;
  }
  if (inside) found.push_back(first);
  jvmti_.deallocate(table);
  return found;
}

void Agent::places_of(const Class& klass, std::size_t index, PlaceSpec& spec, Wanted& wanted) {
  const auto& own = klass.methods[index];
  const Code code(own.code);
  if (code.empty()) return;
  std::vector<Location> found;
  switch (spec.where) {
    case Where::entry: found.push_back(0); break;
    case Where::offset:
      if (begins_at(code, static_cast<std::size_t>(spec.number))) found.push_back(spec.number);
      break;
    case Where::line: found = stretches_of(own.id, code, spec.number, true); break;
  }
  for (const Location location : found) {
    auto& target = wanted.at(location);
    target.entered.push_back(&spec);
    if (spec.where != Where::entry) target.passed.push_back(&spec);
    spec.placed = true;
  }
  if (found.empty() || std::exchange(spec.reported, true)) return;
  if (StateRecord* record = state_.add(RecordKind::place, klass.display(index))) record->entry = spec.entry;
}

// Values

// Reports a problem, at most once per request. Call this under the lock.
void Agent::complain(AskSpec& ask, std::string_view text) {
  if (std::exchange(ask.complained, true)) return;
  if (StateRecord* record = state_.add(RecordKind::asked, text)) record->entry = ask.fetch;
}

void Agent::placed(const Class& klass, std::size_t index, AskSpec& ask, std::string_view type) {
  if (std::exchange(ask.reported, true)) return;
  if (StateRecord* record = state_.add(RecordKind::asked, klass.display(index) + '|' + std::string(type))) {
    record->entry = ask.fetch;
    record->flags = kAskedPlaced;
  }
}

// "I" gives "int".
static std::string type_name(std::string_view signature) {
  const std::string list = parameters_of("(" + std::string(signature) + ")V");
  return list.size() > 2 ? list.substr(1, list.size() - 2) : std::string(signature);
}

// Finds the slot of a variable at a location. If no such variable is known there, reports this and returns false.
bool Agent::variable(const Class& klass, std::size_t index, AskSpec& ask, Location location, PlacedQuery& asking) {
  const auto& own = klass.methods[index];
  const bool is_static = (own.flags & static_cast<std::uint32_t>(kStatic)) != 0;
  if (ask.name == "this") {
    if (is_static) {
      complain(ask, klass.display(index) + " is static: it has no 'this'");
      return false;
    }
    asking.slot = 0;
    asking.type = 'L';
    placed(klass, index, ask, klass.name);
    return true;
  }
  std::int32_t count = 0;
  VariableEntry* table = nullptr;
  const bool names = jvmti_.variable_table(own.id, &count, &table) == kNone;
  bool found = false;
  std::string known;
  for (std::int32_t i = 0; names && i < count; ++i) {
    const bool in_scope = table[i].start <= location && location < table[i].start + table[i].length;
    if (in_scope && !found && ask.name == table[i].name) {
      found = true;
      asking.slot = table[i].slot;
      asking.type = table[i].signature[0];
      placed(klass, index, ask, type_name(table[i].signature));
    }
    if (in_scope && known.size() < 120) known += (known.empty() ? "" : ", ") + std::string(table[i].name);
    jvmti_.deallocate(table[i].name);
    jvmti_.deallocate(table[i].signature);
    if (table[i].generic != nullptr) jvmti_.deallocate(table[i].generic);
  }
  if (names) jvmti_.deallocate(table);
  if (found) return true;
  // A parameter that is given by its number can be found without debug information.
  if (ask.where == AskWhere::argument && ask.number > 0) {
    if (parameter(own.descriptor, is_static, ask.number, asking.slot, asking.type)) {
      std::string list = parameters_of(own.descriptor);
      placed(klass, index, ask, is_object(asking.type) ? "an object" : type_name(std::string(1, asking.type)));
      return true;
    }
    complain(ask, klass.display(index) + " has no argument " + decimal(ask.number));
    return false;
  }
  if (!names)
    complain(ask, klass.name +
                      " was compiled without names of variables (javac -g): ask for arguments by number and for fields "
                      "by this.NAME");
  else
    complain(ask, klass.display(index) + " has no '" + ask.name + "' in scope there" +
                      (known.empty() ? "" : ": " + known + " are"));
  return false;
}

void Agent::asks_of(const Class& klass, std::size_t index, Wanted& wanted) {
  const auto& own = klass.methods[index];
  const Code code(own.code);
  const Method method = klass.method(index);
  for (AskSpec* ask : klass.asks) {
    const bool line = ask->where == AskWhere::line;
    if (!line && !ask->pattern.matches(method)) continue;
    if (code.empty()) {
      if (!line) complain(*ask, klass.display(index) + " has no code to stop at: it is native or abstract");
      continue;
    }
    if (ask->where == AskWhere::caller) {
      placed(klass, index, *ask, "a caller");
      wanted.at(0).at_entry.push_back(new PlacedQuery{ask});
      continue;
    }
    if (!(ask->where == AskWhere::returned ? exits_ : variables_)) {
      complain(*ask, ask->where == AskWhere::returned ? "this JVM does not report return values"
                                                      : "this JVM does not report variables");
      continue;
    }
    if (ask->where == AskWhere::argument) {
      PlacedQuery asking{ask};
      if (variable(klass, index, *ask, 0, asking)) wanted.at(0).at_entry.push_back(new PlacedQuery(asking));
      continue;
    }
    if (ask->where == AskWhere::returned) {
      const std::string_view type = returned(own.descriptor);
      if (type == "V") {
        complain(*ask, klass.display(index) + " returns nothing");
        continue;
      }
      placed(klass, index, *ask, type_name(type));
      for (std::size_t at = 0; at < code.size();) {
        const std::size_t size = instruction_size(code, at);
        if (size == 0) break;
        if (is_return(code[at]))
          wanted.at(static_cast<Location>(at)).at_return.push_back(new PlacedQuery{ask, 0, type[0]});
        at += size;
      }
      continue;
    }
    for (const Location location : stretches_of(own.id, code, ask->number, false)) {
      PlacedQuery asking{ask};
      if (variable(klass, index, *ask, location, asking))
        wanted.at(location).at_pass.push_back(new PlacedQuery(asking));
    }
  }
}

// Adds breakpoints on jumps back to the method's entry and on the instructions that may follow them (see
// Place::jumps_to).
void Agent::guard(const Class& klass, std::size_t index, Wanted& wanted) {
  bool at_entry = false;
  for (const auto& target : wanted.places) at_entry = at_entry || target.location == 0;
  if (!at_entry) return;
  const Code code(klass.methods[index].code);
  for (std::size_t at = 0; at < code.size();) {
    const std::size_t size = instruction_size(code, at);
    if (size == 0) return;
    const Jumps jumps = jumps_of(code, at);
    bool back = false;
    for (std::size_t i = 0; i < jumps.targets; ++i) back = back || jump_target(code, at, i) == 0;
    if (back) {
      auto& jump = wanted.at(static_cast<Location>(at));
      jump.jumps = jump.guard = true;
      if (jumps.goes_on) wanted.at(static_cast<Location>(at + size)).guard = true;
      for (std::size_t i = 0; i < jumps.targets; ++i) {
        const std::int64_t target = jump_target(code, at, i);
        if (target != 0) wanted.at(target).guard = true;
      }
    }
    at += size;
  }
}

void Agent::publish(Class& klass, std::size_t index, Wanted& wanted) {
  if (klass.weak == nullptr) klass.weak = klass.jni.new_weak(klass.klass);
  const MethodId method = klass.methods[index].id;
  const auto fill = [](Visit& visit, const std::vector<const PlaceSpec*>& specs) {
    // Roles must be updated before conditions that refer to them are evaluated.
    constexpr std::uint32_t kRole = 0x80000000U;
    for (const bool roles : {true, false}) {
      for (const PlaceSpec* spec : specs) {
        if (((spec->entry & kRole) != 0) != roles) continue;
        bool known = false;
        for (const std::uint32_t entry : visit.entries) known = known || entry == spec->entry;
        if (known) continue;
        visit.entries.push_back(spec->entry);
        visit.noted = visit.noted || spec->noted;
        if (spec->thrown != nullptr) visit.throws.push_back(spec->thrown);
      }
    }
  };
  std::vector<Place*> made;
  Place* entry = nullptr;
  Watched* watched = nullptr;
  for (const auto& target : wanted.places) {
    auto* place = new Place;
    place->method = method;
    place->location = target.location;
    place->klass = klass.weak;
    fill(place->entered, target.entered);
    fill(place->passed, target.passed);
    place->at_entry = target.at_entry;
    place->at_pass = target.at_pass;
    place->at_return = target.at_return;
    if (target.location == 0) entry = place;
    if (target.watched) watched = watched_.of(method, klass.display(index), state_);
    made.push_back(place);
  }
  for (std::size_t i = 0; i < made.size(); ++i) {
    if (wanted.places[i].jumps) made[i]->jumps_to = entry;
    if (wanted.places[i].guard && entry != nullptr && made[i] != entry) entry->guards.push_back(made[i]);
  }
  if (watched != nullptr) {
    entry->watched = watched;
    watched->place = entry;
  }
  for (Place* place : made) places_.publish(place);
  for (Place* place : made) {
    const bool asked = !place->at_entry.empty() || !place->at_pass.empty() || !place->at_return.empty();
    if (!place->entered.entries.empty() || !place->passed.entries.empty() || asked) hold(klass.jni, *place);
  }
  // A method that was detached because it was hot stays detached when another tool changes its class.
  if (watched == nullptr || (watched->gaps && !watched_.is_held(*watched))) return;
  hold(klass.jni, *entry);
  if (!watched_.is_held(*watched)) watched_.held(*watched);
}

}  // namespace rose::jvm
