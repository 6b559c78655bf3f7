// Faults that leave a node too little of a resource: their keys read, written, and said in words.
#include <filesystem>

#include "base/text.h"
#include "base/units.h"
#include "schedule/kinds.h"

namespace rose::schedule {
namespace {

constexpr std::int64_t kLeastDescriptors = 3;
constexpr std::int64_t kMostDescriptors = 1'048'576;
constexpr std::uint64_t kLeastMemory = std::uint64_t{64} << 10;  // less holds not even a process's kernel side
constexpr std::uint64_t kMostMemory = std::uint64_t{1} << 40;
constexpr double kLeastShare = 0.01;  // the kernel takes no less than 1 ms in 100
constexpr double kMostShare = 1024;
constexpr std::size_t kMostFolder = 1024;

// A folder below the node's own: relative, and on no way out of it.
bool stays_inside(const std::string& text) {
  const std::filesystem::path path(text);
  if (text.empty() || text.size() > kMostFolder || path.is_absolute()) return false;
  for (const unsigned char c : text)
    if (c < ' ' || c == 0x7f) return false;
  for (const auto& part : path)
    if (part == ".." || part == ".") return false;
  return path.has_filename();
}

// As parse_size reads it back, to the byte.
std::string size_text(std::uint64_t bytes) {
  for (const auto& [unit, name] : {std::pair{30U, "GiB"}, std::pair{20U, "MiB"}, std::pair{10U, "KiB"}})
    if (bytes % (std::uint64_t{1} << unit) == 0) return fmt::format("{}{}", bytes >> unit, name);
  return fmt::format("{}B", bytes);
}

void read_memory(toml::Table& table, std::int64_t& limit) {
  std::string text;
  if (!table.string("limit", text)) return;
  const auto bytes = parse_size(text);
  if (!bytes || *bytes < kLeastMemory || *bytes > kMostMemory)
    table.wrong("limit", fmt::format("{} is not a size such as \"16MiB\" (units B, KiB, MiB, GiB; 64KiB to 1024GiB)", toml::quoted(text)));
  else
    limit = static_cast<std::int64_t>(*bytes);
}

}  // namespace

void read_folder(toml::Table& table, Resource& resource) {
  if (table.string("path", resource.folder) && !stays_inside(resource.folder))
    table.wrong("path", fmt::format("{} is not a folder in the node's own, such as \"data\"", toml::quoted(resource.folder)),
                "no '/' at its beginning or end, no '.' or '..' in it; without 'path' it is the node's whole folder");
}

void read_resource(toml::Table& table, Fault& fault) {
  Resource& resource = fault.resource;
  switch (fault.kind) {
    case FaultKind::descriptors:
      table.require("limit", "how many a process may have open, such as limit = 64");
      table.integer("limit", resource.limit, kLeastDescriptors, kMostDescriptors);
      break;
    case FaultKind::memory:
      table.require("limit", "how much the node may use, such as limit = \"16MiB\"");
      read_memory(table, resource.limit);
      break;
    case FaultKind::cpu:
      table.require("share", "how much of one processor the node is left, such as share = 0.05");
      if (table.real("share", resource.share, 0, kMostShare) && resource.share < kLeastShare)
        table.wrong("share", fmt::format("'{}' is less than the kernel can do, 0.01 to 1024 is accepted", resource.share));
      break;
    default:
      read_folder(table, resource);
      break;
  }
}

void add_resource(Parts& parts, const Fault& fault) {
  const Resource& resource = fault.resource;
  if (fault.kind == FaultKind::descriptors) parts.emplace_back("limit", std::to_string(resource.limit));
  if (fault.kind == FaultKind::memory)
    parts.emplace_back("limit", toml::literal(size_text(static_cast<std::uint64_t>(resource.limit))));
  if (fault.kind == FaultKind::cpu) parts.emplace_back("share", fmt::format("{}", resource.share));
  if (fault.kind == FaultKind::disk_full && !resource.folder.empty()) parts.emplace_back("path", toml::literal(resource.folder));
}

std::string resource_words(const Fault& fault, const std::string& node) {
  const Resource& resource = fault.resource;
  switch (fault.kind) {
    case FaultKind::descriptors: return fmt::format("let no process of {} have more than {} descriptors", node, resource.limit);
    case FaultKind::memory:
      return fmt::format("let {} use no more than {} of memory", node, size_text(static_cast<std::uint64_t>(resource.limit)));
    case FaultKind::cpu: return fmt::format("leave {} {:.4g} of a processor", node, resource.share);
    default:
      return resource.folder.empty() ? fmt::format("let the disk of {} be full", node)
                                     : fmt::format("let the disk that holds {} of {} be full", resource.folder, node);
  }
}

}  // namespace rose::schedule
