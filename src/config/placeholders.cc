#include "config/placeholders.h"

#include <algorithm>

#include "base/text.h"
#include "base/toml.h"

namespace rose::config {
namespace {

const std::vector<std::string>& placeholders(Where where) {
  static const std::vector<std::string> node{"node", "ip", "ips", "dir", "run_dir", "config_dir"};
  static const std::vector<std::string> run{"ips", "run_dir", "config_dir"};
  return where == Where::node ? node : run;
}

constexpr std::string_view kIpOf = "ip_";  // ${ip_n1}: address of node n1

}  // namespace

std::optional<PlaceholderProblem> placeholder_problem(std::string_view text, Where where,
                                                      std::vector<std::string>& named) {
  const std::vector<std::string>& known = placeholders(where);
  for (std::size_t i = text.find("${"); i != std::string_view::npos; i = text.find("${", i + 2)) {
    if (i > 0 && text[i - 1] == '$') continue;  // "$${" stands for a literal "${"
    const std::size_t end = text.find('}', i);
    const std::string name(text.substr(i + 2, end == std::string_view::npos ? 0 : end - i - 2));
    if (std::find(known.begin(), known.end(), name) != known.end()) continue;
    if (name.starts_with(kIpOf) && name.size() > kIpOf.size()) {
      named.push_back(name.substr(kIpOf.size()));
      continue;
    }
    std::string accepted;
    for (const std::string& placeholder : known) accepted += fmt::format("${{{}}}, ", placeholder);
    accepted += "${ip_NODE}";
    if (end == std::string_view::npos)
      return PlaceholderProblem{
          fmt::format("{} has a '${{' without '}}', accepted placeholders are {}", toml::quoted(text), accepted),
          "for a shell's variable write $NAME or $${NAME}"};
    const std::vector<std::string>& all = placeholders(Where::node);
    if (std::find(all.begin(), all.end(), name) != all.end())
      return PlaceholderProblem{
          fmt::format("'${{{}}}' has a value only in a node's command, ready command and env, accepted here are {}",
                      name, accepted),
          {}};
    const std::string near = closest(name, known);
    return PlaceholderProblem{
        fmt::format("{} is an unknown placeholder, accepted are {}", toml::quoted("${" + name + "}"), accepted),
        near.empty() ? "for a shell's variable write $NAME or $${NAME}" : fmt::format("did you mean '${{{}}}'?", near)};
  }
  return std::nullopt;
}

std::optional<std::string> with_config_dir(std::string_view text, std::string_view config_dir) {
  constexpr std::string_view kConfigDir = "${config_dir}";
  std::string out;
  for (std::size_t open = text.find("${"); open != std::string_view::npos; open = text.find("${")) {
    std::size_t end = open + kConfigDir.size();
    if (open > 0 && text[open - 1] == '$') {
      end = open + 2;
      out += text.substr(0, open - 1);
      out += "${";
    } else if (text.substr(open).starts_with(kConfigDir)) {
      out += text.substr(0, open);
      out += config_dir;
    } else {
      return std::nullopt;
    }
    text.remove_prefix(end);
  }
  out += text;
  return out;
}

}  // namespace rose::config
