#include "cli/code_map.h"

#include <algorithm>

#include "jvm/node.h"

namespace rose::cli {
namespace {

diagnose::PlaceKind kind_of(symbols::PlaceKind kind) {
  switch (kind) {
    case symbols::PlaceKind::syscall: return diagnose::PlaceKind::syscall;
    case symbols::PlaceKind::call: return diagnose::PlaceKind::call;
    case symbols::PlaceKind::other: return diagnose::PlaceKind::other;
  }
  return diagnose::PlaceKind::other;
}

}  // namespace

Result<std::vector<diagnose::CodePlace>> NodeCode::read(const std::string& binary, const std::string& function) {
  auto file = files_.find(binary);
  if (file == files_.end()) file = files_.emplace(binary, symbols::CodeFile::open(binary)).first;
  if (!file->second) return Unexpected(Error(file->second.error()));
  ROSE_TRY(const std::vector<symbols::Place> places, file->second->places(function));
  std::vector<diagnose::CodePlace> found;
  found.reserve(places.size());
  for (const symbols::Place& place : places)
    found.push_back({place.offset, kind_of(place.kind), place.name, place.loop});
  return found;
}

// Puts system calls first: other calls have no visible effect before the next system call.
Result<std::vector<diagnose::CodePlace>> NodeCode::places_of_method(const std::string& node,
                                                                    const std::string& method) const {
  if (!methods_.contains(node, method))
    return fail(ErrorKind::input, fmt::format("no run has reported the code of '{}' on '{}'", method, node), "");
  std::vector<diagnose::CodePlace> found;
  for (const auto& [site, syscall] : methods_.places(node, method)) {
    found.push_back({site.offset, syscall ? diagnose::PlaceKind::syscall : diagnose::PlaceKind::call,
                     site.line > 0 ? fmt::format("{} (line {})", site.callee, site.line) : site.callee, site.loop});
  }
  std::stable_partition(found.begin(), found.end(),
                        [](const auto& place) { return place.kind == diagnose::PlaceKind::syscall; });
  return found;
}

Result<std::vector<diagnose::CodePlace>> NodeCode::places(std::string_view node, std::string_view function) {
  const config::Node* config = config_.find(node);
  if (config != nullptr && jvm::is_method(*config, function))
    return places_of_method(config->name, std::string(function));
  if (config == nullptr || config->binaries.empty())
    return fail(ErrorKind::input, fmt::format("no program of '{}' is known", node),
                "name it with `binary` in its [[node]]");
  std::optional<Error> first;
  for (const std::string& binary : config->binaries) {
    const auto key = std::pair(binary, std::string(function));
    auto known = known_.find(key);
    if (known == known_.end()) known = known_.emplace(key, read(binary, key.second)).first;
    if (known->second) return *known->second;
    if (!first) first = known->second.error();
  }
  return Unexpected(std::move(*first));
}

}  // namespace rose::cli
