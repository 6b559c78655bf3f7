// Plans locations in programs: functions and offsets in the nodes' binaries, methods of their JVMs.
#include <capstone/capstone.h>

#include <algorithm>
#include <cerrno>

#include "base/fd.h"
#include "base/file.h"
#include "base/leaving.h"
#include "base/read_at.h"
#include "base/text.h"
#include "inject/plan_maker.h"
#include "jvm/node.h"

namespace rose::inject {

using schedule::Fault;

namespace {

Result<std::string> read_code(const std::filesystem::path& binary, std::uint64_t offset, std::uint64_t size) {
  const Fd file = open_regular(binary);
  if (!file) return fail_errno(ErrorKind::input, fmt::format("cannot read '{}'", binary.string()), errno);
  std::string code(std::min<std::uint64_t>(size, 16 << 20), '\0');
  code.resize(read_at(file.get(), code.data(), code.size(), offset));
  return code;
}

}  // namespace

// Plans the location on each of these nodes. It must exist on at least one of them; otherwise, returns the error for
// the first node.
Result<void> Planner::functions(std::uint32_t entry, const ProbePoint& point, const std::vector<std::size_t>& nodes) {
  std::optional<Error> first;
  bool found = false;
  for (const std::size_t node : nodes) {
    if (auto ok = function(entry, point, node); ok) {
      found = true;
    } else if (!first) {
      first = std::move(ok).error();
    }
  }
  if (found) return {};
  return Unexpected(std::move(*first));
}

// Requests the location from the node's JVMs. Whether the method exists is known only when a JVM has loaded its class.
void Planner::method(std::uint32_t entry, const ProbePoint& point, std::size_t node, const Fault* thrown) {
  jvm::PlaceRequest place{.entry = entry, .pattern = point.function, .throws = {}, .message = {}};
  if (point.offset && *point.offset > 0) place.at = jvm::At::offset, place.number = *point.offset;
  if (point.line) place.at = jvm::At::line, place.number = *point.line;
  if (thrown != nullptr) {
    place.throws = thrown->throws;
    place.message = thrown->message.empty() ? "injected by rose" : thrown->message;
  }
  plan_.methods[node].push_back(std::move(place));
}

Result<void> Planner::exception(const Fault& fault, std::size_t index) {
  auto& chain = plan_.chains[index];
  chain.data.flags |= ROSE_WAITS_FOR_CALL;
  chain.call_count = static_cast<std::uint64_t>(fault.count);
  const auto entry = ROSE_SITE_THROW | static_cast<std::uint32_t>(plan_.throws.size());
  plan_.throws.push_back(
      {.chain = static_cast<__u32>(index), .reserved = 0, .count = chain.call_count, .times = fault.times});
  bool found = false;
  if (!leaving_of(fault.function).exception.empty())
    return refuse(
        fault, ErrorKind::input,
        fmt::format("'{}' is an exception that leaves a method, and nothing can be thrown there", fault.function),
        "`function` is the method, and `throws` the exception's class");
  for (const std::size_t node : nodes_at(chain.data.node)) {
    if (!jvm::may_be_method(config_.nodes[node], fault.function)) continue;
    found = true;
    method(entry, ProbePoint{fault.function, fault.offset, fault.at_line}, node, &fault);
  }
  if (found) return {};
  return refuse(
      fault, ErrorKind::input,
      fmt::format("'{}' is not a method of a JVM that {} is known to run", fault.function,
                  plan_.where(chain.data.node)),
      "names are like org.x.Store.append; a node runs a JVM when its command or binary is java, a jar or a script, or "
      "its sources are .java files");
}

Result<void> Planner::function(std::uint32_t entry, const ProbePoint& point, std::size_t node) {
  const std::string& name = point.function;
  const auto& place_in = point.offset;
  if (jvm::is_method(config_.nodes[node], name)) {
    const bool inside = point.line || place_in.value_or(0) > 0;
    if (inside && !leaving_of(name).exception.empty())
      return fail(ErrorKind::input,
                  fmt::format("'{}' is an exception that leaves a method: it has neither `offset` nor `line`", name));
    method(entry, point, node);
    return {};
  }
  if (point.line) {
    return fail(
        ErrorKind::input,
        fmt::format("`line` is for Java methods, and '{}' is not one of node '{}'", name, config_.nodes[node].name),
        "a location inside a native function needs `offset`; a node runs a JVM when its command or binary is java, a "
        "jar or a script, or its sources are .java files");
  }
  const auto& config = config_.nodes[node];
  std::vector<std::string> names;
  std::size_t readable = 0, found = 0;
  std::optional<Error> misplaced;
  for (const auto& binary : config.binaries) {
    const auto* functions = binaries_.functions(binary);
    if (functions == nullptr) continue;
    ++readable;
    for (const auto& function : *functions) {
      if (!symbols::may_be_named(name, function.linkage_name, function.name) || !symbols::name_matches(name, function))
        continue;
      const std::uint64_t offset = place_in.value_or(0);
      if (offset > 0) {
        if (function.size > 0 && offset >= function.size) {
          misplaced = Error{ErrorKind::input, fmt::format("offset {:#x} is outside '{}'", offset, function.name),
                            fmt::format("it is {:#x} bytes long", function.size)};
          continue;
        }
        ROSE_TRY(const auto code, read_code(binary, function.offset, function.size > 0 ? function.size : offset + 16));
        if (!is_instruction_boundary(code, offset)) {
          misplaced = Error{ErrorKind::input,
                            fmt::format("no instruction begins at offset {:#x} of '{}'", offset, function.name),
                            "a probe inside an instruction would change the program's behaviour"};
          continue;
        }
      }
      ++found;
      // For entries, use the probe offset, so that an entry counts once even if Go restarts the function.
      const auto key = std::make_pair(binary, offset == 0 ? function.probe_offset : function.offset + offset);
      const auto [at, fresh] = site_at_.try_emplace(key, plan_.sites.size());
      if (fresh) plan_.sites.push_back({.binary = binary, .offset = key.second, .conditions = {}});
      auto& list = plan_.sites[at->second].conditions;
      // Two names (aliases) of one address count as a single entry.
      if (std::find(list.begin(), list.end(), entry) != list.end()) continue;
      // Roles must be updated before conditions refer to them.
      list.insert((entry & ROSE_SITE_ROLE) != 0 ? list.begin() : list.end(), entry);
    }
  }
  if (found > 0) return {};
  if (misplaced) return Unexpected(std::move(*misplaced));
  const auto binaries = fmt::format("{}", fmt::join(config.binaries, "', '"));
  if (readable == 0) {
    return fail(ErrorKind::input,
                fmt::format("no functions of node '{}' are known{}", config.name,
                            binaries_.last_error() ? ": " + binaries_.last_error()->message : ""),
                jvm::may_be_method(config, name)
                    ? "name its executables and shared libraries with `binary = [...]` in its [[node]]; a Java method "
                      "by its class with the package"
                    : "name its executables and shared libraries with `binary = [...]` in its [[node]]");
  }
  for (const auto& binary : config.binaries) {
    const auto* functions = binaries_.functions(binary);
    if (functions == nullptr) continue;
    for (const auto& function : *functions) names.push_back(function.name.substr(0, function.name.find('(')));
  }
  auto hint = did_you_mean(name, names);
  if (hint.empty()) hint = "functions that were inlined everywhere or stripped have no entry";
  return fail(ErrorKind::input, fmt::format("no function '{}' in '{}'", name, binaries), std::move(hint));
}

bool is_instruction_boundary(std::string_view code, std::uint64_t offset) {
  if (offset == 0) return true;
#ifdef __aarch64__
  return offset % 4 == 0 && offset < code.size();
#endif
  csh handle = 0;
  if (cs_open(CS_ARCH_X86, CS_MODE_64, &handle) != CS_ERR_OK) return false;
  cs_insn* instruction = cs_malloc(handle);
  const auto* bytes = reinterpret_cast<const std::uint8_t*>(code.data());
  std::size_t left = code.size();
  std::uint64_t address = 0;
  bool found = false;
  // Disassemble from the beginning of the function. Capstone 4 knows endbr64 and similar instructions. An unknown
  // instruction ends the loop, so no offset after it is accepted.
  while (!found && address < offset && cs_disasm_iter(handle, &bytes, &left, &address, instruction)) {
    found = address == offset;
  }
  cs_free(instruction, 1);
  cs_close(&handle);
  return found && left > 0;
}

}  // namespace rose::inject
