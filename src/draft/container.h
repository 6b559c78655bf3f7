// Reads the output of `docker inspect` and similar commands and drafts nodes: new containers of the same image, in
// their own network, so that the running ones are not touched.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "draft/facts.h"
#include "draft/node.h"
#include "draft/secrets.h"
#include "draft/text.h"

namespace rose::draft {

struct Mount {
  std::string type;    // "volume", "bind", "tmpfs"
  std::string source;  // folder of a bind mount, name of a volume
  std::string target;
  bool writable = true;
};

struct Container {
  std::string tool;  // "docker"; "" if no tool knows the container
  std::string id;
  std::string name;
  std::string image;
  std::vector<std::string> args;                       // arguments of the entry point
  std::optional<std::vector<std::string>> entrypoint;  // if it differs from the image's
  Variables env;                                       // variables whose value differs from the image's
  std::string user;
  std::string folder;                // working directory, if it differs from the image's
  std::vector<std::string> aliases;  // further host names
  std::vector<Mount> mounts;
  std::vector<std::string> addresses;
  std::vector<std::string> capabilities;  // capabilities that were added
  std::uint64_t memory = 0;               // in bytes, 0: no limit
  bool privileged = false;
  bool host_network = false;
  bool health = false;
  std::string restart;  // "always", ...; "" or "no": never restarted
  pid_t pid = 0;
};

// Pure. `image_json` may be empty. Returns ErrorKind::input if the text is not the inspection of a container.
[[nodiscard]] Result<Container> read_container(std::string_view json, std::string_view image_json, std::string tool);

// `what` as in locate_container. Returns ErrorKind::usage if it does not exist or is not running.
[[nodiscard]] Result<Container> ask_container(const std::string& what);

// The nodes, and the settings of their deployment.
struct Drafted {
  std::vector<NodeDraft> nodes;
  Surroundings around;
};
// Drafts a node for each container. `seen` has what was observed of each container, in the same order. Pure.
[[nodiscard]] Drafted draft_containers(const std::vector<Container>& containers, const std::vector<Seen>& seen,
                                       const Host& host, Secrets& secrets);

}  // namespace rose::draft
