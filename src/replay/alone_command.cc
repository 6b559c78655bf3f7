#include <algorithm>

#include "base/ascii.h"
#include "base/text.h"
#include "deploy/environment.h"
#include "replay/alone.h"

namespace rose::replay {

namespace fs = std::filesystem;
namespace {

// The word, in quotes if a shell would interpret it.
std::string shell_word(const std::string& text) {
  const bool plain = !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    return is_alpha(c) || is_digit(c) || std::string_view("_./:,=@%+-").find(c) != std::string_view::npos;
  });
  return plain ? text : shell_quoted(text);
}

}  // namespace

std::string alone_command(const config::Config& config, const fs::path& run_dir, const fs::path& recording) {
  const fs::path inside = recording.lexically_relative(run_dir);
  const std::string name = inside.empty() ? "" : inside.begin()->string();
  std::vector<deploy::NodeInfo> infos;
  for (const config::Node& node : config.nodes) {
    deploy::NodeInfo& info = infos.emplace_back();
    info.name = node.name;
    info.index = infos.size() - 1;
    info.ip = node.ip;
    info.dir = run_dir / node.name;
  }
  for (const config::Node& node : config.nodes) {
    if (node.name != name || node.command.empty() || node.container) continue;
    const deploy::NodeInfo& info = infos[static_cast<std::size_t>(&node - config.nodes.data())];
    const deploy::RunFacts facts{run_dir, config.directory, 1, config.deployment.network == config::Network::host};
    config::Command command = deploy::expand(node.command, facts, infos, &info);
    if (command.front().find('/') != std::string::npos)
      command.front() = (config.directory / command.front()).lexically_normal().string();
    std::string text;
    // Pass the node's variables, except those of librose-rr, which do not apply to a replay.
    for (const auto& [key, value] : node.env)
      if (!key.starts_with("ROSE_RR"))
        text += fmt::format("{}={} ", key, shell_word(deploy::expand(value, facts, infos, &info)));
    text += fmt::format("rose replay --recording {} --node {} --", shell_word(recording.string()), shell_word(name));
    for (const std::string& word : command) text += " " + shell_word(word);
    return text;
  }
  return {};
}

}  // namespace rose::replay
