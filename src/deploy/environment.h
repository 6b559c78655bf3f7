// Prepares commands: replaces placeholders, adds ROSE_* variables, finds the program. Pure, except for searching files.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "base/result.h"
#include "config/config.h"
#include "deploy/deployment.h"

namespace rose::deploy {

// In the run's folder: the socket for `rose exec`. Exists only while a schedule needs something from such a node.
inline constexpr const char* kExecSocket = "rose.exec.sock";

// In the folder of a node with `record`: the recording of librose-rr, with n counting starts from 1.
inline constexpr const char* kRecordingName = "recording.%n.rr";

using Variables = std::map<std::string, std::string>;

// The facts of a run that its commands receive.
struct RunFacts {
  std::filesystem::path run_dir;
  std::filesystem::path config_dir;
  int run_number = 0;
  bool host_network = false;
};

// ${node} ${ip} ${ips} ${ip_NODE} ${dir} ${run_dir} ${config_dir}; the first, second and fifth only with a node. "$${"
// stands for "${". Other ${...} stay, because they may belong to a shell.
[[nodiscard]] std::string expand(std::string_view text, const RunFacts& facts, const std::vector<NodeInfo>& nodes,
                                 const NodeInfo* node);
[[nodiscard]] config::Command expand(const config::Command& command, const RunFacts& facts,
                                     const std::vector<NodeInfo>& nodes, const NodeInfo* node);

// The environment of rose itself.
[[nodiscard]] Variables inherited();
// ROSE_RUN_DIR, ROSE_NODES, ROSE_IP_<node>, ...; with a node also ROSE_NODE and ROSE_IP.
void add_rose_variables(Variables& variables, const RunFacts& facts, const std::vector<NodeInfo>& nodes,
                        const NodeInfo* node);
// Appends a folder to PATH unless `program` is found already, because scripts call `rose node`.
void offer_program(Variables& variables, const std::filesystem::path& folder, std::string_view program);
// Puts a folder in front of PATH.
void prefer_programs(Variables& variables, const std::filesystem::path& folder);

// The address at which others reach the node: its own, or 127.0.0.1 in a host network without one.
[[nodiscard]] std::string reachable_ip(const NodeInfo& node);

// command[0] as an absolute path: relative to `directory` if it contains a slash, otherwise searched in PATH of
// `variables`. Returns ErrorKind::input that names `what` if it does not exist or is not executable.
[[nodiscard]] Result<std::string> find_program(const std::string& name, const std::filesystem::path& directory,
                                               const Variables& variables, std::string_view what);

// Only the first word of a command is relative to the configuration's folder. For a failed command: a later word that
// names a file there but none in the folder in which it ran; "" if there is none.
[[nodiscard]] std::string misplaced_word(const config::Command& command, const std::filesystem::path& config_dir,
                                         const std::filesystem::path& ran_in);

}  // namespace rose::deploy
