// Collects the windows of many hosts at once: from tracers over ssh or in pods, and from folders to which tracers
// write.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace rose::observe {

// A source of dumps: "HOST", "USER@HOST" or "ssh:HOST"; "kubectl:[NAMESPACE/]POD[:CONTAINER]"; a folder with a slash in
// its name: "/var/incident/".
struct DumpSource {
  enum class Kind { ssh, pod, folder };
  Kind kind = Kind::ssh;
  std::string name;  // the source as given
  std::string host;  // for ssh
  std::string space, pod, container;
  std::filesystem::path folder;
};

[[nodiscard]] Result<DumpSource> parse_source(std::string_view text);
// Reads a file with one source per line; empty lines and '#' comments are ignored.
[[nodiscard]] Result<std::vector<DumpSource>> read_sources(const std::filesystem::path& file);

struct CollectOptions {
  std::int64_t deadline_ns = 30'000'000'000;  // per host
  std::size_t at_once = 64;
  std::string ssh = "ssh", kubectl = "kubectl";  // programs; without a slash they are searched in PATH
  std::string rose = "rose";                     // on the remote host
  std::string control;                           // on the remote host; "": the default
  std::string after;                             // value of the option --after on the remote host; "": none
};

struct Collected {
  std::string source;
  std::filesystem::path file;  // empty if there is no dump; `problem` then has the reason
  std::string problem;
  double seconds = 0;  // time until the dump was received
};

// The command for a source that is not a folder.
[[nodiscard]] std::vector<std::string> collect_command(const DumpSource& source, const CollectOptions& options);

// Fetches the dump of each source into `folder`, which belongs to the caller. If a source is a folder, the newest dump
// of each host in it is used in place, without a copy. The results are in the order of the sources.
[[nodiscard]] Result<std::vector<Collected>> collect(const std::vector<DumpSource>& sources,
                                                     const CollectOptions& options,
                                                     const std::filesystem::path& folder);

}  // namespace rose::observe
