// Reads the calls in faults and conditions.
#include <charconv>

#include "base/text.h"
#include "kernel/syscalls.h"
#include "schedule/reader.h"

namespace rose::schedule {

std::optional<std::int64_t> decimal(std::string_view text) {
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return number;
}

void Reader::read_call(toml::Table& table, CallMatch& call) {
  read_syscall_name(table, call);
  table.string("path", call.path);
  table.string("path2", call.path2);
  table.string("peer", call.peer);
  table.string("local", call.local);
  for (const std::string_view key : {"peer", "local"}) {
    const std::optional<std::string>& address = key == "peer" ? call.peer : call.local;
    if (address && address->find_first_of(":*") == std::string::npos)
      table.wrong(key, fmt::format("{} has no port, \"ip:port\" is needed", toml::quoted(*address)),
                  address->size() < kMostName ? fmt::format("for any port write \"{}:*\"", *address) : std::string{});
  }
  read_args(table, call);
  table.string("process", call.process);
  if (call.syscall.empty()) return;
  // A call that can never match is refused, because the fault or condition would never happen.
  bool has_path = false;
  bool has_second = false;
  bool has_socket = false;
  for (const kernel::SyscallInfo& info : kernel::all_syscalls()) {
    if (!glob_match(call.syscall, info.name)) continue;
    has_path = has_path || info.path >= 0 || info.path2 >= 0 || info.fd >= 0 || info.dirfd >= 0;
    has_second = has_second || info.path2 >= 0;
    has_socket = has_socket || info.fd >= 0 || info.sockaddr >= 0;
  }
  // A call with such a name is newer than the table, so its arguments are unknown.
  if (call.syscall.rfind("syscall_", 0) == 0) has_path = has_second = has_socket = true;
  if (call.path && !has_path)
    table.wrong("path", fmt::format("'{}' uses neither a path nor a descriptor, so no path can match", call.syscall));
  if (call.path2 && !has_second)
    table.wrong("path2", fmt::format("'{}' has no second path, so none can match", call.syscall));
  for (const std::string_view key : {"peer", "local"})
    if (table.has(key) && !has_socket)
      table.wrong(key, fmt::format("'{}' does not use a socket, so no address can match", call.syscall));
}

void Reader::read_syscall_name(toml::Table& table, CallMatch& call) {
  std::string name;
  if (!table.string("syscall", name)) return;
  static const std::vector<std::string> names = kernel::syscall_names();
  if (name.find_first_of("*?") != std::string::npos) {
    if (std::none_of(names.begin(), names.end(), [&](const std::string& one) { return glob_match(name, one); })) {
      table.wrong("syscall", fmt::format("{} matches no syscall", toml::quoted(name)));
      return;
    }
  } else if (!kernel::syscall_number(name)) {
    table.wrong("syscall", fmt::format("unknown syscall {}", toml::quoted(name)), did_you_mean(name, names));
    return;
  }
  call.syscall = std::move(name);
}

namespace {

bool argument_shape(std::string_view text) {
  for (const std::string& part : split(text, '|')) {
    if (part.empty()) return false;
    const std::string_view digits =
        part.rfind("0x", 0) == 0 ? std::string_view(part).substr(2) : std::string_view(part);
    const bool hex = digits.size() != part.size();
    const bool number = !digits.empty() && digits.size() <= 18 &&
                        digits.find_first_not_of(hex ? "0123456789abcdefABCDEF" : "0123456789") == std::string::npos;
    const bool name = part[0] >= 'A' && part[0] <= 'Z' &&
                      part.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_") == std::string::npos;
    if (!number && !name) return false;
  }
  return true;
}

}  // namespace

void Reader::read_args(toml::Table& table, CallMatch& call) {
  auto args = table.table("args");
  if (!args) return;
  const toml::Value& value = *table.get("args");
  if (value.members.empty())
    table.wrong("args", "the table is empty, arguments such as { 1 = \"O_CREAT|O_TRUNC\" } are needed");
  for (const toml::Member& member : value.members) {
    const auto index = decimal(member.key);
    if (!index || *index < 0 || *index > 5 || member.key.size() != 1) {
      problems_.add(member.place, fmt::format("{}: {} is not an argument's index, 0 to 5 are accepted", args->path(),
                                              toml::quoted(member.key)));
      continue;
    }
    const toml::Value& wanted = member.value;
    if (wanted.type == toml::Type::integer) {
      call.args[static_cast<int>(*index)] = std::to_string(wanted.integer);
    } else if (wanted.type == toml::Type::string && (argument_shape(wanted.text) || decimal(wanted.text))) {
      call.args[static_cast<int>(*index)] = wanted.text;
    } else {
      problems_.add(wanted.place,
                    fmt::format("{}: {} was found, a number or flag names such as \"O_CREAT|O_TRUNC\" are needed",
                                args->path(member.key), toml::quoted(wanted)));
    }
  }
}

}  // namespace rose::schedule
