// Compose files: reads services as plain data and drafts nodes for them. The file itself is not changed; the setup
// command starts it as a separate project. Pure, except for compose_tool.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "config/compose_words.h"
#include "draft/container.h"
#include "draft/facts.h"

namespace rose::draft {

struct PublishedPort {
  std::uint16_t host = 0;  // 0: chosen by the engine
  std::uint16_t target = 0;
  std::string address;  // host address it is bound to; "": all
};

struct Service {
  std::string name;
  int line = 0;
  std::string image;
  bool build = false;
  std::string container_name;
  std::vector<std::string> command;      // one word if the file has it as a string
  std::vector<std::string> environment;  // names only
  std::vector<PublishedPort> ports;      // TCP
  std::vector<std::uint16_t> expose;
  std::vector<Mount> mounts;
  std::vector<std::string> depends_on;
  std::string restart;
  std::string address;  // a fixed address in a network
  bool health = false;
  bool host_network = false;
  bool profiled = false;  // started only if its profile is named
  bool one_shot = false;  // another service waits for its successful end
  int replicas = 1;
  std::vector<std::string> not_followed;  // keys such as "extends" and "env_file" that were not evaluated
};

struct ComposeFile {
  std::vector<Service> services;
  std::vector<std::string> shared_volumes;  // external or explicitly named volumes, which other projects may share
  std::vector<std::string> not_followed;    // keys of the file that were not evaluated: "include"
  std::vector<std::string> unresolved;      // variables that are not set
};

using compose::interpolated;
using compose::Lookup;
using compose::read_dot_env;

// Returns ErrorKind::input with "file:line: ..." if it is not a Compose file.
[[nodiscard]] Result<ComposeFile> parse_compose(std::string_view text, std::string_view file, const Lookup& lookup);

// The Compose command and its conventions.
struct ComposeTool {
  std::vector<std::string> command = {"docker", "compose"};
  std::string engine = "docker";
  char separator = '-';  // project-service-1
  bool waits = true;     // supports `up --wait`
  bool works = true;     // it was tried successfully
};
[[nodiscard]] ComposeTool compose_tool();

// `path`: the path of the file as written in rose.toml.
[[nodiscard]] Drafted draft_compose(const ComposeFile& file, const std::string& path, const ComposeTool& tool);

}  // namespace rose::draft
