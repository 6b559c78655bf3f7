// What one run asks of the JVMs of its nodes: the agent and its instructions as files in the run's folder, and what a node's
// environment must say for its JVMs to load them. The node's command stays as it is.
//
//   RUN/rose.jvm/rose-jvm.so      the agent; kernel programs are attached to this very file, so runs don't disturb each other
//   RUN/rose.jvm/NODE.spec        what it is to do in that node's JVMs, read when one begins
//   RUN/rose.jvm/NODE/*.jvm       what they tell (jvm/state.h)
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"

namespace rose::jvm {

enum class At { entry, offset, line };

// A place in methods of a name, of which the kernel's program is told by a number (bpf/inject.h).
struct PlaceRequest {
  std::uint32_t entry = 0;
  At at = At::entry;
  std::uint64_t number = 0;  // offset or line
  std::string pattern;
  std::string throws;        // "": nothing; else the class of an exception
  std::string message;
};

class Session {
 public:
  // Writes the agent into the run's folder, which must exist. ErrorKind::environment when programs there may not be executed.
  [[nodiscard]] static Result<std::unique_ptr<Session>> open(const std::filesystem::path& run_dir);

  [[nodiscard]] const std::filesystem::path& agent() const { return agent_; }
  void add_places(const std::string& node, const std::vector<PlaceRequest>& places);
  // Once all is asked for, and before the nodes start. Their folders exist, and belong to their users.
  [[nodiscard]] Result<void> write();

  // JAVA_TOOL_OPTIONS, with what `own` has there already; nothing for nodes of which nothing is asked.
  using Variables = std::map<std::string, std::string>;
  [[nodiscard]] Variables environment(const std::string& node, const Variables& own) const;
  [[nodiscard]] std::filesystem::path state(const std::string& node) const;

 private:
  std::filesystem::path run_dir_, folder_, agent_;
  std::map<std::string, std::vector<PlaceRequest>> asked_;
};

}  // namespace rose::jvm
