// The systems that rose knows: how to keep them in the foreground and away from running data, which clients they have,
// and how to detect a lost write. Other systems are drafted only from what was observed. Pure.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "draft/facts.h"
#include "draft/node.h"

namespace rose::draft {

// Scripts for `sh -c` in a run; "" if none.
struct Example {
  std::string workload;
  std::string oracle;
  std::string oracle_says;  // completes "the bug is there if ...": "a request failed"
  std::string tool;         // tool that the scripts need
};

class System {
 public:
  System() = default;
  System(const System&) = delete;
  System& operator=(const System&) = delete;
  virtual ~System() = default;

  [[nodiscard]] virtual std::string_view name() const = 0;   // for node names: "redis"
  [[nodiscard]] virtual std::string_view title() const = 0;  // "Redis"
  // `program` is the file name without folders.
  [[nodiscard]] virtual bool is(std::string_view program) const = 0;
  [[nodiscard]] virtual std::uint16_t usual_port() const = 0;
  // The configuration file that it reads if its command line names none; "" if none.
  [[nodiscard]] virtual std::string_view usual_settings() const { return {}; }
  // Reconstructs the command line of a program that overwrote it with a title, and records in node.changes what was
  // done. Returns nothing if that is impossible; node.question then has the reason.
  [[nodiscard]] virtual std::optional<std::vector<std::string>> recover(Making&) const { return std::nullopt; }
  // Called before addresses and folders are replaced.
  virtual void adapt(Making&) const {}
  // Called at the end. It may prepend a shell script that prepares the start.
  virtual void finish(Making&) const {}
  // Variables of the system's images that set the password of the user in example(), the most usual first.
  [[nodiscard]] virtual std::vector<std::string> password_variables() const { return {}; }
  [[nodiscard]] virtual Example example(const NodeDraft&) const { return {}; }
};

// Lets examples log in with the server's password if `has` returns true for a variable that sets it. Secrets are not
// copied to the draft: an example reads the password from the environment of the running server.
void take_password(NodeDraft& node, const std::function<bool(const std::string& variable)>& has);

// Returns null if rose does not know the system.
[[nodiscard]] const System* find_system(const Seen& seen);
// The image's name without registry, folders, tag and digest: "etcd" for "quay.io/coreos/etcd:v3.5@sha256:...".
[[nodiscard]] std::string image_name(std::string_view image);
// Finds the system by the file name of a program: "redis-server".
[[nodiscard]] const System* find_system_of_program(std::string_view program);
// Finds the system by the name of an image: "docker.io/library/redis:7", "bitnami/postgresql".
[[nodiscard]] const System* find_system_of_image(std::string_view image);

}  // namespace rose::draft
