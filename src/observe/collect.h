// The windows of many hosts at once: of tracers that are asked over ssh or in pods, and out of folders that tracers
// write to.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace rose::observe {

// Where a dump comes from: "HOST", "USER@HOST", "ssh:HOST"; "kubectl:[NAMESPACE/]POD[:CONTAINER]"; a folder, with a
// slash: "/var/incident/".
struct DumpSource {
  enum class Kind { ssh, pod, folder };
  Kind kind = Kind::ssh;
  std::string name;  // as it was given
  std::string host;  // ssh
  std::string space, pod, container;
  std::filesystem::path folder;
};

[[nodiscard]] Result<DumpSource> parse_source(std::string_view text);
// A file of sources, one a line, with empty lines and '#' comments.
[[nodiscard]] Result<std::vector<DumpSource>> read_sources(const std::filesystem::path& file);

struct CollectOptions {
  std::int64_t deadline_ns = 30'000'000'000;  // of each host
  std::size_t at_once = 64;
  std::string ssh = "ssh", kubectl = "kubectl";  // programs, by PATH or with a slash
  std::string rose = "rose";                     // there
  std::string control;                           // there; "": the usual one
  std::string after;                             // --after, there
};

struct Collected {
  std::string source;
  std::filesystem::path file;  // the dump; empty: there is none, and `problem` says why
  std::string problem;
  double seconds = 0;  // until it was there
};

// What is executed for a source that is no folder.
[[nodiscard]] std::vector<std::string> collect_command(const DumpSource& source, const CollectOptions& options);

// Brings the dump of each source into `folder`, which is the caller's; those of a folder (the newest of each host
// there) stay where they are. In the order of the sources.
[[nodiscard]] Result<std::vector<Collected>> collect(const std::vector<DumpSource>& sources,
                                                     const CollectOptions& options,
                                                     const std::filesystem::path& folder);

}  // namespace rose::observe
