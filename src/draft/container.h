// Containers, as `docker inspect` and its like describe them, and the nodes that are made of them: fresh ones of the
// same image, in a network of their own, so that nothing is done to what runs.
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
  std::string source;  // a bind's folder, a volume's name
  std::string target;
  bool writable = true;
};

struct Container {
  std::string tool;  // "docker"; "" when none tells of it
  std::string id;
  std::string name;
  std::string image;
  std::vector<std::string> args;                       // behind the entry point
  std::optional<std::vector<std::string>> entrypoint;  // when it is not the image's
  Variables env;                                       // that the image does not set to the same
  std::string user;
  std::string folder;                // working directory, when not the image's
  std::vector<std::string> aliases;  // further names by which others know it
  std::vector<Mount> mounts;
  std::vector<std::string> addresses;
  std::vector<std::string> capabilities;  // added ones
  std::uint64_t memory = 0;               // bytes, 0: no limit
  bool privileged = false;
  bool host_network = false;
  bool health = false;
  std::string restart;  // "always", ...; "" or "no": never
  pid_t pid = 0;
};

// Pure. `image_json` may be empty. ErrorKind::input when it is no inspection of a container.
[[nodiscard]] Result<Container> read_container(std::string_view json, std::string_view image_json, std::string tool);

// `what` as locate_container takes it. ErrorKind::usage when there is none, or it does not run.
[[nodiscard]] Result<Container> ask_container(const std::string& what);

// One Seen a container, in order. Pure.
struct Drafted {
  std::vector<NodeDraft> nodes;
  Surroundings around;
};
[[nodiscard]] Drafted draft_containers(const std::vector<Container>& containers, const std::vector<Seen>& seen,
                                       const Host& host, Secrets& secrets);

}  // namespace rose::draft
