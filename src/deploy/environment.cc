#include "deploy/environment.h"

#include <sys/stat.h>

#include <algorithm>
#include <cstring>

#include "base/program.h"
#include "base/text.h"

namespace rose::deploy {
namespace {

std::string search_path(const Variables& variables) {
  const auto found = variables.find("PATH");
  return found == variables.end() ? std::string(kUsualPath) : found->second;
}

std::string join_ips(const std::vector<NodeInfo>& nodes) {
  std::string ips;
  for (const NodeInfo& node : nodes) ips += (ips.empty() ? "" : ",") + reachable_ip(node);
  return ips;
}

// The node to whose address a variable such as "ip_n1" refers.
const NodeInfo* node_of_variable(std::string_view name, const std::vector<NodeInfo>& nodes) {
  if (!name.starts_with("ip_")) return nullptr;
  const auto found = std::find_if(nodes.begin(), nodes.end(),
                                  [&](const NodeInfo& each) { return variable_name(each.name) == name.substr(3); });
  return found == nodes.end() ? nullptr : &*found;
}

}  // namespace

std::string reachable_ip(const NodeInfo& node) { return node.ip.empty() ? "127.0.0.1" : node.ip; }

std::string expand(std::string_view text, const RunFacts& facts, const std::vector<NodeInfo>& nodes,
                   const NodeInfo* node) {
  std::string out;
  while (!text.empty()) {
    const std::size_t open = text.find("${");
    if (open == std::string_view::npos) break;
    if (open > 0 && text[open - 1] == '$') {
      out += text.substr(0, open - 1);
      out += "${";
      text.remove_prefix(open + 2);
      continue;
    }
    const std::size_t close = text.find('}', open);
    if (close == std::string_view::npos) break;
    const std::string_view name = text.substr(open + 2, close - open - 2);
    out += text.substr(0, open);
    if (name == "ips") out += join_ips(nodes);
    else if (name == "run_dir") out += facts.run_dir.string();
    else if (name == "config_dir") out += facts.config_dir.string();
    else if (name == "node" && node != nullptr) out += node->name;
    else if (name == "ip" && node != nullptr) out += reachable_ip(*node);
    else if (name == "dir" && node != nullptr) out += node->dir.string();
    else if (const NodeInfo* other = node_of_variable(name, nodes)) out += reachable_ip(*other);
    else {
      // Only "${" is copied, because a placeholder may follow inside, as in "${x:-${ip}}".
      out += "${";
      text.remove_prefix(open + 2);
      continue;
    }
    text.remove_prefix(close + 1);
  }
  out += text;
  return out;
}

config::Command expand(const config::Command& command, const RunFacts& facts, const std::vector<NodeInfo>& nodes,
                       const NodeInfo* node) {
  config::Command out;
  for (const std::string& word : command) out.push_back(expand(word, facts, nodes, node));
  return out;
}

Variables inherited() {
  Variables variables;
  for (char** entry = environ; *entry != nullptr; ++entry)
    if (const char* equals = std::strchr(*entry, '='))
      variables.emplace(std::string(*entry, static_cast<std::size_t>(equals - *entry)), equals + 1);
  return variables;
}

void add_rose_variables(Variables& variables, const RunFacts& facts, const std::vector<NodeInfo>& nodes,
                        const NodeInfo* node) {
  // If rose itself was started by another run's workload, that run's variables must not be passed on.
  std::erase_if(variables, [](const auto& entry) {
    return entry.first == "ROSE_NODE" || entry.first == "ROSE_IP" || entry.first.starts_with("ROSE_IP_") ||
           entry.first.starts_with("ROSE_NETNS_") || entry.first.starts_with("ROSE_CGROUP_") ||
           entry.first.starts_with("ROSE_PIDFILE_") || entry.first.starts_with("ROSE_CONTAINER_");
  });
  std::string names;
  for (const NodeInfo& each : nodes) {
    names += (names.empty() ? "" : " ") + each.name;
    const std::string suffix = variable_name(each.name);
    variables["ROSE_IP_" + suffix] = reachable_ip(each);
    if (!each.netns.empty()) variables["ROSE_NETNS_" + suffix] = each.netns;
    if (!each.cgroup.empty()) variables["ROSE_CGROUP_" + suffix] = each.cgroup.string();
    if (!each.container.empty()) variables["ROSE_CONTAINER_" + suffix] = each.container;
    variables["ROSE_PIDFILE_" + suffix] = each.pid_file.string();
  }
  variables["ROSE_NODES"] = names;
  variables["ROSE_RUN_DIR"] = facts.run_dir.string();
  variables["ROSE_EXEC_SOCKET"] = (facts.run_dir / kExecSocket).string();
  variables["ROSE_RUN"] = std::to_string(facts.run_number);
  if (node != nullptr) {
    variables["ROSE_NODE"] = node->name;
    variables["ROSE_IP"] = reachable_ip(*node);
  }
}

void offer_program(Variables& variables, const std::filesystem::path& folder, std::string_view program) {
  if (!program_in(search_path(variables), program).empty() || !is_program((folder / program).string())) return;
  variables["PATH"] = fmt::format("{}:{}", search_path(variables), folder.string());
}

void prefer_programs(Variables& variables, const std::filesystem::path& folder) {
  variables["PATH"] = fmt::format("{}:{}", folder.string(), search_path(variables));
}

Result<std::string> find_program(const std::string& name, const std::filesystem::path& directory,
                                 const Variables& variables, std::string_view what) {
  if (name.empty()) return fail(ErrorKind::input, fmt::format("{}: the command is empty", what));
  if (name.find('/') == std::string::npos) {
    std::string path = program_in(search_path(variables), name);
    if (!path.empty()) return path;
    return fail(
        ErrorKind::input, fmt::format("{}: command '{}' is not in PATH ({})", what, name, search_path(variables)),
        is_program((directory / name).string()) ? fmt::format("for the one beside the configuration write './{}'", name)
                                                : "install it, or give its path");
  }
  const std::string path = (directory / name).lexically_normal().string();
  if (is_program(path)) return path;
  struct stat info{};
  if (::stat(path.c_str(), &info) != 0)
    return fail(ErrorKind::input, fmt::format("{}: command {} cannot be found: {}", what, path, std::strerror(errno)),
                name.front() == '/' ? "" : "relative paths are relative to the configuration file's folder");
  return fail(
      ErrorKind::input,
      fmt::format("{}: command {} is {}", what, path, S_ISREG(info.st_mode) ? "not executable" : "not a regular file"),
      S_ISREG(info.st_mode) ? fmt::format("chmod +x {}", path) : "");
}

std::string misplaced_word(const config::Command& command, const std::filesystem::path& config_dir,
                           const std::filesystem::path& ran_in) {
  for (std::size_t i = 1; i < command.size(); ++i) {
    const std::string& word = command[i];
    std::error_code unreadable;
    if (word.empty() || word.size() > 4096 || word.front() == '/' || word.front() == '-' ||
        word.find("${") != std::string::npos)
      continue;
    if (!std::filesystem::is_regular_file(config_dir / word, unreadable) ||
        std::filesystem::exists(ran_in / word, unreadable))
      continue;
    return fmt::format(
        "'{0}' names no file in {1}, where the command ran, but one beside the configuration: write "
        "'${{config_dir}}/{0}' for that",
        word, ran_in.string());
  }
  return {};
}

}  // namespace rose::deploy
