// Compose files: services as plain data, and the nodes that they are. The file itself stays as it is: setup brings it
// up as a project of its own. Pure, apart from compose_tool.
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
  std::uint16_t host = 0;  // 0: one that the engine chooses
  std::uint16_t target = 0;
  std::string address;  // of the host it is bound to; "" all
};

struct Service {
  std::string name;
  int line = 0;
  std::string image;
  bool build = false;
  std::string container_name;
  std::vector<std::string> command;      // one word when the file has it as a string
  std::vector<std::string> environment;  // names alone
  std::vector<PublishedPort> ports;      // TCP
  std::vector<std::uint16_t> expose;
  std::vector<Mount> mounts;
  std::vector<std::string> depends_on;
  std::string restart;
  std::string address;  // a fixed one in a network
  bool health = false;
  bool host_network = false;
  bool profiled = false;  // not started unless its profile is named
  bool one_shot = false;  // others wait for its successful end
  int replicas = 1;
  std::vector<std::string> not_followed;  // "extends", "env_file", ...: what was not looked at
};

struct ComposeFile {
  std::vector<Service> services;
  std::vector<std::string> shared_volumes;  // external or with a name of their own: not the project's
  std::vector<std::string> not_followed;    // of the file: "include"
  std::vector<std::string> unresolved;      // variables without a value
};

using compose::interpolated;
using compose::Lookup;
using compose::read_dot_env;

// ErrorKind::input with "file:line: ..." for what is no Compose file.
[[nodiscard]] Result<ComposeFile> parse_compose(std::string_view text, std::string_view file, const Lookup& lookup);

// The words before "up", and how containers are named.
struct ComposeTool {
  std::vector<std::string> command = {"docker", "compose"};
  std::string engine = "docker";
  char separator = '-';  // project-service-1
  bool waits = true;     // knows `up --wait`
  bool works = true;     // was tried
};
[[nodiscard]] ComposeTool compose_tool();

// `path`: of the file as it will stand in rose.toml.
[[nodiscard]] Drafted draft_compose(const ComposeFile& file, const std::string& path, const ComposeTool& tool);

}  // namespace rose::draft
