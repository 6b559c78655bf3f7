// Faults that limit a node's resources: reads and writes their keys, and describes them.
#include <filesystem>

#include "base/text.h"
#include "base/units.h"
#include "schedule/kinds.h"

namespace rose::schedule {
namespace {

constexpr std::int64_t kLeastDescriptors = 3;
constexpr std::int64_t kMostDescriptors = 1'048'576;
// Less than this is not even enough for the kernel memory of one process.
constexpr std::uint64_t kLeastMemory = std::uint64_t{64} << 10;
constexpr std::uint64_t kMostMemory = std::uint64_t{1} << 40;
constexpr double kLeastShare = 0.01;  // the kernel's minimum is 1 ms in 100 ms
constexpr double kMostShare = 1024;
constexpr std::size_t kMostFolder = 1024;
constexpr std::uint64_t kLeastDiskRate = std::uint64_t{1} << 10;
constexpr std::uint64_t kMostDiskRate = std::uint64_t{1} << 40;
constexpr double kMostIops = 1e6;
constexpr double kLeastIops = 0.1;
constexpr std::int64_t kLeastDiskDelay = 100'000;
constexpr std::int64_t kMostDiskDelay = 60'000'000'000;

// True for a relative path that stays below the node's folder, and for an absolute path, which is one in the node's
// container.
bool names_folder(const std::string& text) {
  const std::filesystem::path path(text);
  if (text.empty() || text.size() > kMostFolder || path.lexically_normal() != path) return false;
  for (const unsigned char c : text)
    if (c < ' ' || c == 0x7f) return false;
  for (const auto& part : path)
    if (part == ".." || part == ".") return false;
  return path.has_filename();
}

// Formats a size so that parse_size reads it back exactly.
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
    table.wrong("limit", fmt::format("{} is not a size such as \"16MiB\" (units B, KiB, MiB, GiB; 64KiB to 1024GiB)",
                                     toml::quoted(text)));
  else limit = static_cast<std::int64_t>(*bytes);
}

// Parses a rate such as "10MiB/s" with an integral number of units. 0 for any other text.
std::uint64_t parse_disk_rate(std::string_view text) {
  if (!text.ends_with("/s")) return 0;
  return parse_size(text.substr(0, text.size() - 2)).value_or(0);
}

void read_disk_speed(toml::Table& table, Resource& resource) {
  std::string rate;
  if (table.string("rate", rate)) {
    resource.rate = parse_disk_rate(rate);
    if (resource.rate < kLeastDiskRate || resource.rate > kMostDiskRate)
      table.wrong(
          "rate",
          fmt::format("{} is not a disk's rate such as \"10MiB/s\" (units B, KiB, MiB, GiB; 1KiB/s to 1024GiB/s)",
                      toml::quoted(rate)));
  }
  if (table.real("iops", resource.iops, 0, kMostIops) && resource.iops < kLeastIops)
    table.wrong("iops", fmt::format("'{}' is less than 0.1 requests a second", resource.iops));
  table.duration("delay", resource.delay_ns, kLeastDiskDelay, kMostDiskDelay);
  if (!table.has("rate") && !table.has("iops") && !table.has("delay"))
    table.problems().add_missing(
        table.place(), "fault: needs one of 'rate', 'iops', 'delay'",
        "state how slow the disk is: rate = \"1MiB/s\", iops = 50 or delay = \"20ms\" for each of its requests");
}

// Describes the limits: "1MiB/s, 50 requests a second and 20ms more for each request".
std::string speed_words(const Resource& resource) {
  std::vector<std::string> parts;
  if (resource.rate != 0) parts.push_back(size_text(resource.rate) + "/s");
  if (resource.iops != 0) parts.push_back(fmt::format("{:.4g} requests a second", resource.iops));
  if (resource.delay_ns != 0)
    parts.push_back(fmt::format("{} more for each request", duration_text(resource.delay_ns)));
  return enumerate(parts);
}

}  // namespace

void read_folder(toml::Table& table, Resource& resource) {
  if (table.string("path", resource.folder) && !names_folder(resource.folder))
    table.wrong(
        "path",
        fmt::format(
            "{} is neither a folder below the node's own, such as \"data\", nor an absolute path in its container",
            toml::quoted(resource.folder)),
        "no '/' at the end and no '.' or '..' in it; without 'path' it is the node's whole folder, and all its "
        "volumes");
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
        table.wrong("share",
                    fmt::format("'{}' is below the kernel's minimum, 0.01 to 1024 is accepted", resource.share));
      break;
    case FaultKind::disk_slow:
      read_folder(table, resource);
      read_disk_speed(table, resource);
      break;
    default: read_folder(table, resource); break;
  }
}

void add_resource(Parts& parts, const Fault& fault) {
  const Resource& resource = fault.resource;
  if (fault.kind == FaultKind::descriptors) parts.emplace_back("limit", std::to_string(resource.limit));
  if (fault.kind == FaultKind::memory)
    parts.emplace_back("limit", toml::literal(size_text(static_cast<std::uint64_t>(resource.limit))));
  if (fault.kind == FaultKind::cpu) parts.emplace_back("share", fmt::format("{}", resource.share));
  const bool disk = fault.kind == FaultKind::disk_full || fault.kind == FaultKind::disk_slow;
  if (disk && !resource.folder.empty()) parts.emplace_back("path", toml::literal(resource.folder));
  if (fault.kind != FaultKind::disk_slow) return;
  if (resource.rate != 0) parts.emplace_back("rate", toml::literal(size_text(resource.rate) + "/s"));
  if (resource.iops != 0) parts.emplace_back("iops", fmt::format("{}", resource.iops));
  if (resource.delay_ns != 0) parts.emplace_back("delay", toml::literal(duration_text(resource.delay_ns)));
}

std::string resource_words(const Fault& fault, const std::string& node) {
  const Resource& resource = fault.resource;
  switch (fault.kind) {
    case FaultKind::descriptors:
      return fmt::format("let no process of {} have more than {} descriptors", node, resource.limit);
    case FaultKind::memory:
      return fmt::format("let {} use no more than {} of memory", node,
                         size_text(static_cast<std::uint64_t>(resource.limit)));
    case FaultKind::cpu: return fmt::format("leave {} {:.4g} of a processor", node, resource.share);
    case FaultKind::disk_slow: {
      const std::string disk = resource.folder.empty()
                                   ? fmt::format("the disk of {}", node)
                                   : fmt::format("the disk that holds {} of {}", resource.folder, node);
      return fmt::format("slow {} down to {}", disk, speed_words(resource));
    }
    default:
      return resource.folder.empty() ? fmt::format("let the disk of {} be full", node)
                                     : fmt::format("let the disk that holds {} of {} be full", resource.folder, node);
  }
}

}  // namespace rose::schedule
