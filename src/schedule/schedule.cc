#include "schedule/schedule.h"

#include <algorithm>
#include <limits>
#include <unordered_set>

#include "base/address.h"
#include "base/ascii.h"
#include "base/file.h"
#include "base/text.h"
#include "kernel/syscalls.h"
#include "schedule/kinds.h"
#include "schedule/reader.h"

namespace rose::schedule {
namespace {

constexpr std::int64_t kVersion = 1;
constexpr std::size_t kMostFaults = 4096;
constexpr std::size_t kMostRoles = 64;
constexpr std::size_t kMostEvents = 256;

const std::vector<std::string> kKinds{"syscall",     "crash",  "pause", "partition", "network", "clock",    "exception",
                                      "descriptors", "memory", "cpu",   "disk-full", "block",   "disk-slow"};

// True if the text has the form of an id, or of the name of a group or node.
bool name_shape(std::string_view name) {
  return name.size() <= kMostName && std::all_of(name.begin(), name.end(), [](char c) {
           return is_alpha(c) || is_digit(c) || c == '_' || c == '.' || c == '-' || c == ':';
         });
}

struct Owner {
  std::string_view key;
  std::vector<FaultKind> kinds;
};

const std::vector<Owner>& owners() {
  using enum FaultKind;
  static const std::vector<Owner> list{
      {"syscall", {FaultKind::syscall}},
      {"error", {FaultKind::syscall}},
      {"result", {FaultKind::syscall}},
      {"effect", {FaultKind::syscall}},
      {"delay", {FaultKind::syscall, network, disk_slow}},
      {"path", {FaultKind::syscall, disk_full, disk_slow, crash}},
      {"path2", {FaultKind::syscall}},
      {"peer", {FaultKind::syscall}},
      {"local", {FaultKind::syscall}},
      {"args", {FaultKind::syscall}},
      {"process", {FaultKind::syscall}},
      {"count", {FaultKind::syscall, network, exception, block}},
      {"times", {FaultKind::syscall, network, exception}},
      {"then", {FaultKind::syscall}},
      {"signal", {crash}},
      {"scope", {crash, pause}},
      {"before", {crash, pause}},
      {"lose", {crash}},
      {"keep", {crash}},
      {"duration", {pause, partition, network, clock, descriptors, memory, cpu, disk_full, disk_slow, block}},
      {"until", {partition, network, clock, descriptors, memory, cpu, disk_full, disk_slow, block}},
      {"at", {block}},
      {"peers", {partition, network}},
      {"direction", {partition, network}},
      {"ports", {partition, network}},
      {"protocol", {partition, network}},
      {"loss", {partition, network}},
      {"action", {partition}},
      {"jitter", {network}},
      {"duplicate", {network}},
      {"reorder", {network}},
      {"corrupt", {network}},
      {"rate", {network, disk_slow}},
      {"iops", {disk_slow}},
      {"payload", {network}},
      {"counts", {network}},
      {"seed", {network}},
      {"shift", {clock}},
      {"drift", {clock}},
      {"freeze", {clock}},
      {"clocks", {clock}},
      {"limit", {descriptors, memory}},
      {"share", {cpu}},
      {"throws", {exception}},
      {"message", {exception}},
      {"function", {exception}},
      {"offset", {exception}},
      {"line", {exception}}};
  return list;
}

// True if the text has the form of a class name: "java.io.IOException", "org.x.Outer$Inner".
bool class_shape(std::string_view name) {
  bool begins = true;
  for (const char c : name) {
    const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '$' ||
                        static_cast<unsigned char>(c) >= 0x80;
    if (begins ? !letter : !letter && !(c >= '0' && c <= '9') && c != '.') return false;
    begins = c == '.';
  }
  return !begins && name.size() <= 512;
}

}  // namespace

Result<Schedule> Reader::read() {
  root_.require("version", "write version = 1 at the top");
  if (const toml::Value* version = root_.get("version", toml::Type::integer, "an integer"))
    if (version->integer != kVersion)
      root_.wrong("version", fmt::format("found version {}, this rose reads version {}", version->integer, kVersion));
  root_.string("name", schedule_.name);
  read_roles();
  read_events();
  const toml::Place order_place = root_.place("order");
  root_.string("order", schedule_.order);
  std::vector<toml::Table> tables = root_.tables("fault", "a list of tables ([[fault]])");
  root_.finish();
  if (tables.size() > kMostFaults) {
    problems_.add(tables[kMostFaults].place(),
                  fmt::format("fault: {} faults were found, up to {} are accepted", tables.size(), kMostFaults));
    tables.clear();
  }
  for (toml::Table& table : tables) read_fault(table);
  if (!problems_.any()) read_order(order_place);
  if (!problems_.any()) check_ids();
  if (!problems_.any()) check_after();
  if (!problems_.any()) check_cycles();
  if (!problems_.any()) check_order(order_place);
  ROSE_CHECK(problems_.result());
  follow_order();
  return std::move(schedule_);
}

bool Reader::read_name(toml::Table& table, std::string_view key, std::string& into) {
  std::string name;
  if (!table.string(key, name)) return false;
  if (!name_shape(name)) {
    table.wrong(key, fmt::format("{} is not a name: up to {} letters, digits, '_', '.', '-', ':' are accepted",
                                 toml::quoted(name), kMostName));
    return false;
  }
  into = std::move(name);
  return true;
}

bool Reader::read_names(toml::Table& table, std::string_view key, std::string_view what,
                        std::vector<std::string>& into) {
  std::vector<std::string> names;
  if (!table.strings(key, names)) return false;
  const toml::Value& list = *table.get(key);
  for (std::size_t i = 0; i < names.size(); ++i) {
    std::string problem;
    if (!name_shape(names[i]) && !parse_address_range(names[i]))
      problem = fmt::format("{} is not {}", toml::quoted(names[i]), what);
    else if (std::find(names.begin(), names.begin() + static_cast<std::ptrdiff_t>(i), names[i]) !=
             names.begin() + static_cast<std::ptrdiff_t>(i))
      problem = fmt::format("'{}' occurs twice", names[i]);
    if (problem.empty()) continue;
    problems_.add(list.items[i].place, fmt::format("{}: {}", table.path(key), problem));
    return false;
  }
  into = std::move(names);
  return true;
}

// Reads the name of a node. Link faults also accept a list of nodes, which stay connected with each other.
void Reader::read_node(toml::Table& table, Fault& fault) {
  const toml::Value* value = table.get("node");
  if (value == nullptr || value->type != toml::Type::array) {
    read_node_or_role(table, fault.node);
    return;
  }
  std::vector<std::string> names;
  if (!read_names(table, "node", "a node's name", names)) return;
  if (fault.kind != FaultKind::partition && fault.kind != FaultKind::network && names.size() > 1) {
    table.wrong("node", fmt::format("{} nodes were found, a {} fault affects one", names.size(), kind_name(fault.kind)),
                "write one [[fault]] per node; in a `group`, only the first that can fires");
    return;
  }
  fault.node = std::move(names.front());
  fault.side.assign(std::make_move_iterator(names.begin() + 1), std::make_move_iterator(names.end()));
}

void Reader::read_roles() {
  std::vector<toml::Table> tables = root_.tables("role", "a list of tables ([[role]])");
  if (tables.size() > kMostRoles) {
    problems_.add(tables[kMostRoles].place(),
                  fmt::format("role: {} roles were found, up to {} are accepted", tables.size(), kMostRoles));
    return;
  }
  for (toml::Table& table : tables) {
    Role role;
    table.require("name", "faults name it with an '@', such as node = \"@leader\"");
    table.require("function", "the node that last entered it has the role, such as function = \"become_leader\"");
    if (read_name(table, "name", role.name) && schedule_.find_role(role.name) != nullptr)
      table.wrong("name", fmt::format("'{}' occurs twice", role.name));
    table.string("function", role.function);
    table.finish();
    schedule_.roles.push_back(std::move(role));
  }
}

void Reader::read_events() {
  std::vector<toml::Table> tables = root_.tables("event", "a list of tables ([[event]])");
  if (tables.size() > kMostEvents) {
    problems_.add(tables[kMostEvents].place(),
                  fmt::format("event: {} events were found, up to {} are accepted", tables.size(), kMostEvents));
    return;
  }
  for (toml::Table& table : tables) {
    Event event;
    event.line = table.place().line;
    table.require("name", "`order` and the `after` of faults name it");
    table.require("node", "the node of the event");
    table.require("when", "a list of conditions such as [ { log = \"created /a\" } ]");
    if (read_name(table, "name", event.name) && schedule_.find_event(event.name) != nullptr)
      table.wrong("name", fmt::format("'{}' occurs twice", event.name));
    Fault own;  // supplies the node for conditions that name none
    read_node_or_role(table, own.node);
    read_conditions(table, "when", own, event.when);
    table.duration("timeout", event.timeout_ns, kLeastTime, kMostTime);
    table.finish();
    event.node = std::move(own.node);
    schedule_.events.push_back(std::move(event));
  }
}

bool Reader::known_role(std::string_view name, toml::Place place, std::string_view path) {
  if (schedule_.find_role(name) != nullptr) return true;
  std::vector<std::string> names;
  for (const Role& role : schedule_.roles) names.push_back(role.name);
  std::string hint = did_you_mean(name, names);
  if (hint.empty()) hint = fmt::format("[[role]] with name = \"{}\" and function = ... defines it", name);
  problems_.add(place, fmt::format("{}: no [[role]] is named {}", path, toml::quoted(name)), std::move(hint));
  return false;
}

// Reads a name such as "n1" or "@leader".
bool Reader::read_node_or_role(toml::Table& table, std::string& into) {
  const toml::Value* value = table.get("node");
  if (value == nullptr || value->type != toml::Type::string || !role_of(value->text))
    return read_name(table, "node", into);
  if (!known_role(*role_of(value->text), table.place("node"), table.path("node"))) return false;
  into = value->text;
  return true;
}

void Reader::read_fault(toml::Table& table) {
  Fault fault;
  Places places;
  fault.line = table.place().line;
  table.require("id", "each fault needs its own id, such as id = \"cut\"");
  table.require("kind", fmt::format("one of \"{}\"", fmt::join(kKinds, "\", \"")));
  table.require("node", "the name of the node that the fault affects");
  read_name(table, "id", fault.id);
  places.id = table.place("id");
  std::size_t kind = 0;
  const bool known_kind = table.one_of("kind", kKinds, kind);
  fault.kind = static_cast<FaultKind>(kind);
  read_node(table, fault);
  if (table.strings("after", fault.after))
    for (const toml::Value& item : table.get("after")->items) places.after.push_back(item.place);
  read_name(table, "group", fault.group);
  table.boolean("optional", fault.optional);
  read_conditions(table, "when", fault, fault.when);
  if (!known_kind) {
    // Without a kind, it is unknown which keys are allowed, but a key that no kind has is still reported.
    for (const Owner& owner : owners()) table.get(owner.key);
    table.finish();
    return;
  }
  refuse_foreign_keys(table, fault.kind);
  switch (fault.kind) {
    case FaultKind::syscall: read_syscall_fault(table, fault); break;
    case FaultKind::crash:
    case FaultKind::pause: read_process_fault(table, fault); break;
    case FaultKind::partition: read_partition(table, fault); break;
    case FaultKind::network:
      read_ends(table, fault);
      read_bad_link(table, fault);
      read_lasting(table, fault);
      break;
    case FaultKind::clock:
      read_clock(table, fault);
      read_lasting(table, fault);
      break;
    case FaultKind::exception: read_exception(table, fault); break;
    case FaultKind::descriptors:
    case FaultKind::memory:
    case FaultKind::cpu:
    case FaultKind::disk_full:
    case FaultKind::disk_slow:
      read_resource(table, fault);
      read_lasting(table, fault);
      break;
    case FaultKind::block:
      read_block(table, fault, [this](toml::Table& at, CallMatch& call) { read_call(at, call); });
      read_lasting(table, fault);
      break;
  }
  table.finish();
  places_.push_back(std::move(places));
  schedule_.faults.push_back(std::move(fault));
}

// Refuses keys of other kinds. Such a key is no typing error, so the message names the kinds that have it.
void Reader::refuse_foreign_keys(toml::Table& table, FaultKind kind) {
  for (const Owner& owner : owners()) {
    if (!table.has(owner.key) || std::find(owner.kinds.begin(), owner.kinds.end(), kind) != owner.kinds.end()) continue;
    std::string whose;
    for (std::size_t i = 0; i < owner.kinds.size(); ++i)
      whose += fmt::format("{}{}",
                           i == 0                        ? ""
                           : i + 1 == owner.kinds.size() ? " and "
                                                         : ", ",
                           kind_name(owner.kinds[i]));
    table.get(owner.key);  // marks the key as known, although it is not allowed here
    table.wrong(owner.key, fmt::format("'{}' is for {} faults, this is {} {} fault", owner.key, whose,
                                       kind == FaultKind::exception ? "an" : "a", kind_name(kind)));
  }
}

void Reader::read_syscall_fault(toml::Table& table, Fault& fault) {
  table.require("syscall", "the name of the call to change, such as syscall = \"read\"");
  read_call(table, fault.call);
  std::string error;
  if (table.string("error", error)) {
    const auto number = kernel::errno_number(error);
    if (!number || *number < 1 || *number > 4095)
      table.wrong("error", fmt::format("unknown error {}, a name such as \"EIO\" is needed", toml::quoted(error)),
                  did_you_mean(error, kernel::errno_names()));
    else fault.error = *number;
  }
  std::int64_t result = 0;
  if (const toml::Value* value = table.get("result");
      value != nullptr && value->type == toml::Type::integer && value->integer < 0)
    table.wrong("result", fmt::format("'{}' is out of range, an integer from 0 up is needed", value->integer),
                "to make a call fail, write error = \"EIO\"");
  else if (table.integer("result", result, 0, std::numeric_limits<std::int64_t>::max())) fault.result = result;
  read_effect(table, fault);
  table.duration("delay", fault.delay_ns, kLeastTime, kMostTime);
  table.integer("count", fault.count, 1, kMostCount);

  read_times(table, fault.times, kMostCount);
  std::size_t then = 0;
  if (table.one_of("then", {"crash"}, then)) fault.then_do = ThenDo::crash;

  if (table.has("error") && table.has("result") &&
      (fault.effect != Effect::bytes || fault.result != fault.effect_bytes || fault.then_do != ThenDo::nothing))
    table.wrong("result", "'error' and 'result' were both found, exactly one is needed",
                "both are allowed with effect = { bytes = N } and result = N: the first call does only N bytes, and "
                "the next calls fail");
  else if (!table.has("error") && !table.has("result") && !table.has("delay"))
    problems_.add_missing(table.place(), "fault: needs one of 'error', 'result', 'delay'",
                          "state what the call does: error = \"EIO\", result = 0 or delay = \"200ms\"");
  else if (table.has("effect") && !table.has("error") && !table.has("result"))
    table.wrong("effect", "'effect' requires 'error' or 'result', neither was found");
}

void Reader::read_effect(toml::Table& table, Fault& fault) {
  const toml::Value* value = table.get("effect");
  if (value == nullptr) return;
  const std::string_view what = "\"none\", \"full\" or { bytes = N }";
  if (value->type == toml::Type::table) {
    toml::Table effect(*value, table.path("effect"), problems_);
    effect.require("bytes");
    if (effect.integer("bytes", fault.effect_bytes, 1, std::int64_t{1} << 40)) fault.effect = Effect::bytes;
    effect.finish();
  } else if (value->type == toml::Type::string && value->text == "full") {
    fault.effect = Effect::full;
  } else if (value->type != toml::Type::string || value->text != "none") {
    table.wrong("effect", fmt::format("{} is not one of {}", toml::quoted(*value), what),
                value->type == toml::Type::string ? did_you_mean(value->text, {"none", "full"}) : std::string{});
  }
}

void Reader::read_process_fault(toml::Table& table, Fault& fault) {
  std::size_t scope = 0;
  // A pause stops the main process, or all processes at once by the node's cgroup.
  const bool crash = fault.kind == FaultKind::crash;
  if (table.one_of("scope",
                   crash ? std::vector<std::string>{"all", "main", "others"} : std::vector<std::string>{"all", "main"},
                   scope))
    fault.scope = static_cast<Scope>(scope);
  if (crash) {
    std::string name;
    if (table.string("signal", name)) {
      const auto number = kernel::signal_number(name);
      static const std::vector<std::string> usual{"SIGKILL", "SIGTERM", "SIGINT",  "SIGHUP", "SIGQUIT",
                                                  "SIGABRT", "SIGSEGV", "SIGBUS",  "SIGILL", "SIGFPE",
                                                  "SIGPIPE", "SIGUSR1", "SIGUSR2", "SIGALRM"};
      static const std::vector<std::string> harmless{"SIGSTOP", "SIGCONT", "SIGTSTP", "SIGTTIN",
                                                     "SIGTTOU", "SIGCHLD", "SIGURG",  "SIGWINCH"};
      if (!number)
        table.wrong("signal",
                    fmt::format("unknown signal {}, a name such as \"SIGKILL\" is needed", toml::quoted(name)),
                    did_you_mean(name, usual));
      else if (std::find(harmless.begin(), harmless.end(), name) != harmless.end())
        table.wrong("signal", fmt::format("'{}' does not end a process, a signal such as \"SIGKILL\" is needed", name));
      else fault.signal = *number;
    }
    read_loss(table, fault);
  } else {
    table.require("duration", "how long the node is paused, such as duration = \"3s\"");
    table.duration("duration", fault.duration_ns, kLeastTime, kMostTime);
  }
  if (auto before = table.table("before")) {
    CallMatch call;
    before->require("syscall");
    read_call(*before, call);
    before->integer("count", fault.before_count, 1, kMostCount);
    before->finish();
    fault.before = std::move(call);
  }
}

// Reads which links are affected, and which part of their traffic.
void Reader::read_ends(toml::Table& table, Fault& fault) {
  if (read_names(table, "peers", "a node's name, an address such as \"10.0.0.9\" or a range such as \"10.0.0.0/8\"",
                 fault.peers)) {
    const toml::Value& list = *table.get("peers");
    for (std::size_t i = 0; i < fault.peers.size(); ++i) {
      const std::string& peer = fault.peers[i];
      if (peer != fault.node && std::find(fault.side.begin(), fault.side.end(), peer) == fault.side.end()) continue;
      problems_.add(list.items[i].place,
                    fmt::format("{}: '{}' is {}, other nodes are needed", table.path("peers"), peer,
                                fault.side.empty() ? "the fault's own node" : "among the fault's own nodes"));
      break;
    }
  }
  std::size_t direction = 0;
  if (table.one_of("direction", {"both", "in", "out"}, direction)) fault.direction = static_cast<Direction>(direction);

  const std::string_view ports = "a list of ports from 1 to 65535 such as [7000]";
  if (const toml::Value* list = table.get("ports", toml::Type::array, ports)) {
    if (list->items.empty()) table.wrong("ports", fmt::format("the list is empty, {} is needed", ports));
    std::unordered_set<std::int64_t> seen;
    for (const toml::Value& item : list->items) {
      std::string problem;
      if (item.type != toml::Type::integer || item.integer < 1 || item.integer > 65535)
        problem = fmt::format("{} was found, {} is needed", toml::quoted(item), ports);
      else if (!seen.insert(item.integer).second) problem = fmt::format("'{}' occurs twice", item.integer);
      if (!problem.empty()) {
        problems_.add(item.place, fmt::format("{}: {}", table.path("ports"), problem));
        break;
      }
      fault.ports.push_back(static_cast<std::uint16_t>(item.integer));
    }
  }
  std::size_t protocol = 0;
  if (table.one_of("protocol", {"tcp", "udp"}, protocol)) fault.protocol = protocol == 0 ? "tcp" : "udp";
}

void Reader::read_partition(toml::Table& table, Fault& fault) {
  read_ends(table, fault);
  table.real("loss", fault.loss, 0, 1);
  std::size_t action = 0;
  if (table.one_of("action", {"drop", "reject"}, action)) fault.reject = action == 1;
  read_lasting(table, fault);
}

void Reader::read_lasting(toml::Table& table, Fault& fault) {
  table.duration("duration", fault.duration_ns, kLeastTime, kMostTime);
  read_conditions(table, "until", fault, fault.until);
  if (fault.kind == FaultKind::block) {
    if (!table.has("duration") && !table.has("until"))
      problems_.add_missing(table.place(), "fault: needs one of 'duration', 'until'",
                            "state how long the thread waits: duration = \"2s\" or until = [ { log = \"closed\" } ]; "
                            "with both, whichever comes first");
    return;
  }
  if (table.has("duration") && table.has("until"))
    table.wrong("until", "'duration' and 'until' were both found, at most one is accepted");
}

void Reader::read_exception(toml::Table& table, Fault& fault) {
  table.require("throws", "the exception's class, such as throws = \"java.io.IOException\"");
  table.require("function", "the method that throws it, such as function = \"org.x.Store.append\"");
  if (table.string("throws", fault.throws)) {
    if (!class_shape(fault.throws))
      table.wrong("throws", fmt::format("{} is not the name of a Java class such as \"java.io.IOException\"",
                                        toml::quoted(fault.throws)));
    else if (fault.throws.find('.') == std::string::npos)
      table.wrong("throws", fmt::format("'{}' has no package, a full name such as \"java.io.IOException\" is needed",
                                        fault.throws));
  }
  if (table.string("message", fault.message) &&
      (fault.message.size() > 400 || fault.message.find_first_of("\t\n\r") != std::string::npos))
    table.wrong("message", "a line of at most 400 characters, without tabs, is needed");
  table.string("function", fault.function);
  read_place(table, fault.offset, fault.at_line);
  table.integer("count", fault.count, 1, kMostCount);
  read_times(table, fault.times, kMostCount);
}

const Fault* Schedule::find(std::string_view id) const {
  const auto it = std::find_if(faults.begin(), faults.end(), [&](const Fault& fault) { return fault.id == id; });
  return it == faults.end() ? nullptr : &*it;
}

const Event* Schedule::find_event(std::string_view event) const {
  const auto it = std::find_if(events.begin(), events.end(), [&](const Event& one) { return one.name == event; });
  return it == events.end() ? nullptr : &*it;
}

const Role* Schedule::find_role(std::string_view role) const {
  const auto it = std::find_if(roles.begin(), roles.end(), [&](const Role& one) { return one.name == role; });
  return it == roles.end() ? nullptr : &*it;
}

std::optional<std::string_view> role_of(std::string_view node) {
  if (node.size() < 2 || node.front() != '@') return std::nullopt;
  return node.substr(1);
}

std::string_view kind_name(FaultKind kind) {
  switch (kind) {
    case FaultKind::syscall: return "syscall";
    case FaultKind::crash: return "crash";
    case FaultKind::pause: return "pause";
    case FaultKind::partition: return "partition";
    case FaultKind::network: return "network";
    case FaultKind::clock: return "clock";
    case FaultKind::exception: return "exception";
    case FaultKind::descriptors: return "descriptors";
    case FaultKind::memory: return "memory";
    case FaultKind::cpu: return "cpu";
    case FaultKind::disk_full: return "disk-full";
    case FaultKind::disk_slow: return "disk-slow";
    case FaultKind::block: return "block";
  }
  return "";
}

bool limits(FaultKind kind) {
  return kind == FaultKind::descriptors || kind == FaultKind::memory || kind == FaultKind::cpu ||
         kind == FaultKind::disk_full || kind == FaultKind::disk_slow;
}

bool lasts(FaultKind kind) {
  return kind != FaultKind::syscall && kind != FaultKind::crash && kind != FaultKind::exception;
}

Result<Schedule> read_schedule(const std::filesystem::path& path) {
  ROSE_TRY(const std::string text, read_file(path, toml::kMostBytes));
  return parse_schedule(text, path.string());
}

Result<Schedule> parse_schedule(std::string_view text, std::string_view name) {
  ROSE_TRY(const toml::Value root, toml::parse(text, name));
  return Reader(root, name).read();
}

Result<void> check_nodes(const Schedule& schedule, const std::vector<std::string>& nodes, std::string_view file) {
  for (const Fault& fault : schedule.faults) {
    const std::string where = fault.line > 0 ? fmt::format("{}:{}", file, fault.line) : std::string(file);
    const auto check = [&](const std::string& node, std::string_view what) -> Result<void> {
      if (node.empty() || role_of(node) || std::find(nodes.begin(), nodes.end(), node) != nodes.end()) return {};
      std::string hint = did_you_mean(node, nodes);
      if (hint.empty()) hint = fmt::format("the nodes are {}", fmt::join(nodes, ", "));
      return fail(
          ErrorKind::input,
          fmt::format("{}: fault '{}': {} {} is not in the deployment", where, fault.id, what, toml::quoted(node)),
          std::move(hint));
    };
    ROSE_CHECK(check(fault.node, "node"));
    for (const std::string& node : fault.side) ROSE_CHECK(check(node, "node"));
    bool outside = false;
    for (const std::string& peer : fault.peers) {
      outside = outside || parse_address_range(peer).has_value();
      if (!parse_address_range(peer)) ROSE_CHECK(check(peer, "peer"));
    }
    for (const Condition& condition : fault.when) ROSE_CHECK(check(condition.node, "node"));
    for (const Condition& condition : fault.until) ROSE_CHECK(check(condition.node, "node"));
    const bool links = fault.kind == FaultKind::partition || fault.kind == FaultKind::network;
    if (links && nodes.size() < 2 && !outside)
      return fail(ErrorKind::input,
                  fmt::format("{}: fault '{}': a {} needs at least two nodes, the deployment has {}", where, fault.id,
                              fault.kind == FaultKind::network ? "bad link" : "partition", nodes.size()));
  }
  for (const Event& event : schedule.events) {
    const std::string where = event.line > 0 ? fmt::format("{}:{}", file, event.line) : std::string(file);
    const auto check = [&](const std::string& node) -> Result<void> {
      if (node.empty() || role_of(node) || std::find(nodes.begin(), nodes.end(), node) != nodes.end()) return {};
      std::string hint = did_you_mean(node, nodes);
      if (hint.empty()) hint = fmt::format("the nodes are {}", fmt::join(nodes, ", "));
      return fail(
          ErrorKind::input,
          fmt::format("{}: event '{}': node {} is not in the deployment", where, event.name, toml::quoted(node)),
          std::move(hint));
    };
    ROSE_CHECK(check(event.node));
    for (const Condition& condition : event.when) ROSE_CHECK(check(condition.node));
  }
  return {};
}

}  // namespace rose::schedule
