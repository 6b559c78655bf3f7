// Determines whether a node is ready. Each start of a node (an incarnation) has its own probe, which is polled without
// blocking.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>

#include "config/config.h"
#include "deploy/deployment.h"

namespace rose::deploy {

class Probe {
 public:
  virtual ~Probe() = default;
  // Returns true once the node is ready. An error ends the waiting (for example, the readiness command cannot be
  // executed).
  [[nodiscard]] virtual Result<bool> ready() = 0;
  // What is still missing: "nothing accepts connections at 10.77.0.1:7000".
  [[nodiscard]] virtual std::string missing() const = 0;
};

[[nodiscard]] std::unique_ptr<Probe> tcp_probe(int netns_fd, const std::string& ip, std::uint16_t port);

// The position in a log file at which the output of the node's current incarnation begins.
struct LogStart {
  std::filesystem::path path;
  std::uint64_t offset = 0;
  std::filesystem::path folder{};  // the node's folder, which contains the file (base/folder.h)
};
// Returns ErrorKind::input if the pattern is not a regular expression.
[[nodiscard]] Result<std::unique_ptr<Probe>> log_probe(const std::string& pattern, std::vector<LogStart> logs);

using SpawnReady = std::function<Result<std::unique_ptr<RunningCommand>>()>;
[[nodiscard]] std::unique_ptr<Probe> command_probe(const config::Command& command, SpawnReady spawn);

// The last lines of a log, at most `most` bytes, with tabs as spaces; "" if there are none.
[[nodiscard]] std::string tail(const std::filesystem::path& path, std::size_t lines, std::size_t most = 2048);

struct LastWords {
  std::string log;
  std::string text;  // "": it printed nothing
};
// The last lines that a node printed to stderr or, if there are none, to stdout. A JVM's message on stderr that it has
// loaded the agent is ignored.
[[nodiscard]] LastWords last_words(const std::filesystem::path& node);

}  // namespace rose::deploy
