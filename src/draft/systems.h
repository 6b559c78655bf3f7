// Systems that rose knows: how they are kept in the foreground and away from what runs, what their clients say, what a
// lost write looks like. A system that is none of them is drafted from what was seen alone. Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "draft/facts.h"
#include "draft/node.h"

namespace rose::draft {

// Scripts for `sh -c` in a run; "" none.
struct Example {
  std::string workload;
  std::string oracle;
  std::string oracle_says;  // what a hit means
  std::string tool;         // that they use
};

class System {
 public:
  System() = default;
  System(const System&) = delete;
  System& operator=(const System&) = delete;
  virtual ~System() = default;

  [[nodiscard]] virtual std::string_view name() const = 0;   // of nodes: "redis"
  [[nodiscard]] virtual std::string_view title() const = 0;  // "Redis"
  // `program` is the file's name without folders.
  [[nodiscard]] virtual bool is(std::string_view program) const = 0;
  [[nodiscard]] virtual std::uint16_t usual_port() const = 0;
  // The configuration file it reads when its command line names none; "" none.
  [[nodiscard]] virtual std::string_view usual_settings() const { return {}; }
  // The command line of a program that wrote a title over it, put together from what is seen; what was done is told in
  // node.changes. Nothing: it cannot be known, node.question says why.
  [[nodiscard]] virtual std::optional<std::vector<std::string>> recover(Making&) const { return std::nullopt; }
  // Before addresses and folders are replaced.
  virtual void adapt(Making&) const {}
  // Behind all that, for what a shell has to do first.
  virtual void finish(Making&) const {}
  [[nodiscard]] virtual Example example(const NodeDraft&) const { return {}; }
};

// Null when rose does not know it.
[[nodiscard]] const System* find_system(const Seen& seen);
// By an image's name: "docker.io/library/redis:7", "bitnami/postgresql".
[[nodiscard]] const System* find_system_of_image(std::string_view image);

}  // namespace rose::draft
