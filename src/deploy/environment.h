// Prepares commands: replaces placeholders, adds ROSE_* variables, finds the program. Pure, except that it searches for
// files.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "base/result.h"
#include "config/config.h"
#include "deploy/deployment.h"

namespace rose::deploy {

// The name of the socket for `rose exec` in the run's folder. The socket exists only in runs whose schedule
// has faults or conditions on system calls of a node that is started through `rose exec`.
inline constexpr const char* kExecSocket = "rose.exec.sock";

// The name of librose-rr's recording in the folder of a node with `record`. %n is the number of the start, counted from
// 1.
inline constexpr const char* kRecordingName = "recording.%n.rr";

using Variables = std::map<std::string, std::string>;

// The facts of a run that its commands receive.
struct RunFacts {
  std::filesystem::path run_dir;
  std::filesystem::path config_dir;
  int run_number = 0;
  bool host_network = false;
};

// Replaces ${node}, ${ip}, ${ips}, ${ip_NODE}, ${dir}, ${run_dir} and ${config_dir}; ${node}, ${ip} and ${dir} only if
// `node` is given. "$${" becomes "${". Other ${...} are kept, because they may belong to a shell.
[[nodiscard]] std::string expand(std::string_view text, const RunFacts& facts, const std::vector<NodeInfo>& nodes,
                                 const NodeInfo* node);
[[nodiscard]] config::Command expand(const config::Command& command, const RunFacts& facts,
                                     const std::vector<NodeInfo>& nodes, const NodeInfo* node);

// The environment of rose itself.
[[nodiscard]] Variables inherited();
// Adds ROSE_RUN_DIR, ROSE_NODES, ROSE_IP_<node>, ...; with a node also ROSE_NODE and ROSE_IP.
void add_rose_variables(Variables& variables, const RunFacts& facts, const std::vector<NodeInfo>& nodes,
                        const NodeInfo* node);
// Appends `folder`, which contains `program`, to PATH unless a folder in PATH already contains a program of this name.
// This is for scripts that call `rose node`.
void offer_program(Variables& variables, const std::filesystem::path& folder, std::string_view program);
// Puts a folder in front of PATH.
void prefer_programs(Variables& variables, const std::filesystem::path& folder);

// The address at which other nodes reach this node: its own, or 127.0.0.1 in a host network if it has none.
[[nodiscard]] std::string reachable_ip(const NodeInfo& node);

// Finds the program of a command as an absolute path: relative to `directory` if the name contains a slash, otherwise
// in the PATH of `variables`. Returns ErrorKind::input with `what` in the message if it does not exist or is not
// executable.
[[nodiscard]] Result<std::string> find_program(const std::string& name, const std::filesystem::path& directory,
                                               const Variables& variables, std::string_view what);

// A hint for a command that failed: a word that was probably meant as a file in the configuration's folder. rose looks
// up only the first word of a command there. The program looks up the other words in the folder in which it runs. The
// hint therefore names the first later word that is a file in `config_dir`, but not in `ran_in`. "" if there is none.
[[nodiscard]] std::string misplaced_word(const config::Command& command, const std::filesystem::path& config_dir,
                                         const std::filesystem::path& ran_in);

}  // namespace rose::deploy
