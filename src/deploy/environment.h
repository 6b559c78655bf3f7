// What commands are given: placeholders replaced, ROSE_* variables, the program found. Pure, apart
// from looking for files.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "base/result.h"
#include "config/config.h"
#include "deploy/deployment.h"

namespace rose::deploy {

// In the run's folder: where `rose exec` finds the run. There only while a schedule wants something of such a node.
inline constexpr const char* kExecSocket = "rose.exec.sock";

// In the folder of a node with `record`: what librose-rr makes of it, n being 1, 2, ... from start to start.
inline constexpr const char* kRecordingName = "recording.%n.rr";

using Variables = std::map<std::string, std::string>;

// What a run's commands are told.
struct RunFacts {
  std::filesystem::path run_dir;
  std::filesystem::path config_dir;
  int run_number = 0;
  bool host_network = false;
};

// ${node} ${ip} ${ips} ${ip_NODE} ${dir} ${run_dir} ${config_dir}; the first, second and fifth only with a node. "$${"
// stands for "${". Any other ${...} stays as it is: it may be a shell's.
[[nodiscard]] std::string expand(std::string_view text, const RunFacts& facts, const std::vector<NodeInfo>& nodes,
                                 const NodeInfo* node);
[[nodiscard]] config::Command expand(const config::Command& command, const RunFacts& facts,
                                     const std::vector<NodeInfo>& nodes, const NodeInfo* node);

// rose's own environment.
[[nodiscard]] Variables inherited();
// ROSE_RUN_DIR, ROSE_NODES, ROSE_IP_<node>, ...; with a node also ROSE_NODE and ROSE_IP.
void add_rose_variables(Variables& variables, const RunFacts& facts, const std::vector<NodeInfo>& nodes,
                        const NodeInfo* node);
// A folder to the end of PATH unless `program` is found already: scripts call `rose node`.
void offer_program(Variables& variables, const std::filesystem::path& folder, std::string_view program);

// The address others reach the node at: its own, or 127.0.0.1 in a host network without one.
[[nodiscard]] std::string reachable_ip(const NodeInfo& node);

// command[0] as an absolute path: with a slash relative to `directory`, without one by PATH of `variables`.
// ErrorKind::input naming `what` when it does not exist or is not executable.
[[nodiscard]] Result<std::string> find_program(const std::string& name, const std::filesystem::path& directory,
                                               const Variables& variables, std::string_view what);

// Only a command's first word is taken relative to the configuration's folder. Of a command that went wrong: the word
// behind it that names a file there, and none in the folder that it ran in; "" where there is none.
[[nodiscard]] std::string misplaced_word(const config::Command& command, const std::filesystem::path& config_dir,
                                         const std::filesystem::path& ran_in);

}  // namespace rose::deploy
