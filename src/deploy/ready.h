// Is a node ready? One probe a node and incarnation, asked again and again without blocking.
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
  // True once ready. An error ends the waiting (a readiness command that cannot be executed).
  [[nodiscard]] virtual Result<bool> ready() = 0;
  // What is still missing: "nothing accepts connections at 10.77.0.1:7000".
  [[nodiscard]] virtual std::string missing() const = 0;
};

[[nodiscard]] std::unique_ptr<Probe> tcp_probe(int netns_fd, const std::string& ip, std::uint16_t port);

// Where the current incarnation's output begins.
struct LogStart {
  std::filesystem::path path;
  std::uint64_t offset = 0;
};
// ErrorKind::input for a pattern that is not a regular expression.
[[nodiscard]] Result<std::unique_ptr<Probe>> log_probe(const std::string& pattern, std::vector<LogStart> logs);

using SpawnReady = std::function<Result<std::unique_ptr<RunningCommand>>()>;
[[nodiscard]] std::unique_ptr<Probe> command_probe(const config::Command& command, SpawnReady spawn);

// The last lines of a log, at most `most` bytes of it, tabs as spaces; "" when there is none.
[[nodiscard]] std::string tail(const std::filesystem::path& path, std::size_t lines, std::size_t most = 2048);

struct LastWords {
  std::string log;
  std::string text;  // "": it printed nothing
};
// Of a node's folder: its errors, else its output. That a JVM has loaded the agent, which it says on stderr, is no
// error.
[[nodiscard]] LastWords last_words(const std::filesystem::path& node);

}  // namespace rose::deploy
