#include "draft/text.h"

#include <algorithm>

#include "base/toml.h"
#include "base/utf8.h"

namespace rose::draft {
namespace {

constexpr std::size_t kWidth = 118;
constexpr std::size_t kMostComment = 1200;  // bytes per comment

// Comments may not contain control characters or bytes that are not UTF-8.
std::string comment_text(std::string_view text) {
  std::string out;
  while (!text.empty() && out.size() < kMostComment) {
    const std::size_t length = utf8_length(text);
    const unsigned char c = static_cast<unsigned char>(text.front());
    if (length == 0 || (length == 1 && (c < 0x20 || c == 0x7f)))
      out += length == 1 && (c == '\n' || c == '\t') ? ' ' : '?';
    else out += text.substr(0, length);
    text.remove_prefix(std::max<std::size_t>(length, 1));
  }
  return text.empty() ? out : out + " ...";
}

std::string one_word(std::string_view word) {
  const bool script = word.find('\n') != std::string_view::npos && word.find("'''") == std::string_view::npos &&
                      !word.ends_with('\'') && is_utf8(word) && std::all_of(word.begin(), word.end(), [](char c) {
                        return c == '\n' || c == '\t' || (static_cast<unsigned char>(c) >= 0x20 && c != 0x7f);
                      });
  return script ? fmt::format("'''\n{}'''", word) : toml::literal(word);
}

std::string list_of(const std::vector<std::string>& words, std::size_t indent) {
  std::string text;
  std::size_t column = indent;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string word = one_word(words[i]) + (i + 1 < words.size() ? "," : "");
    if (i > 0 && column + word.size() + 2 > kWidth) {
      text += "\n" + std::string(indent + 1, ' ');
      column = indent + 1;
    } else if (i > 0) {
      text += ' ';
      ++column;
    }
    text += word;
    const std::size_t newline = word.rfind('\n');
    column = newline == std::string::npos ? column + word.size() : word.size() - newline;
  }
  return "[" + text + "]";
}

class Text {
 public:
  void line(std::string_view text = {}) {
    out_ += text;
    out_ += '\n';
    lines_ += 1 + static_cast<int>(std::count(text.begin(), text.end(), '\n'));
  }
  // Wraps the text; lines after the first are indented by `hang`.
  void comment(std::string_view text, std::string_view lead = "# ", std::size_t hang = 0) {
    const std::string clean = comment_text(text);
    std::string at(lead);
    bool begun = false;
    for (std::size_t i = 0; i < clean.size();) {
      const std::size_t end = std::min(clean.find(' ', i), clean.size());
      if (begun && at.size() + 1 + (end - i) > kWidth) {
        line(at);
        at = std::string(lead) + std::string(hang, ' ');
        begun = false;
      }
      at += (begun ? " " : "") + clean.substr(i, end - i);
      begun = true;
      i = end + 1;
    }
    line(at);
  }
  void key(std::string_view name, std::size_t width, const std::string& value, const std::string& comment = {}) {
    const std::string head = fmt::format("{:<{}} = {}", name, width, value);
    if (comment.empty()) line(head);
    else if (head.size() + comment.size() + 6 <= kWidth + 20) line(head + "   # " + comment_text(comment));
    else {
      this->comment(comment);
      line(head);
    }
  }
  [[nodiscard]] int next_line() const { return lines_ + 1; }
  std::string take() { return std::move(out_); }

 private:
  std::string out_;
  int lines_ = 0;
};

void example_lines(Text& text, const std::string& script) {
  text.line("#: command = [\"sh\", \"-c\", '''");
  std::size_t at = 0;
  while (at < script.size()) {
    const std::size_t end = std::min(script.find('\n', at), script.size());
    text.line("#: " + script.substr(at, end - at));
    at = end + 1;
  }
  text.line("#: ''']");
}

void write_node(Text& text, const NodeDraft& node, Draft& draft) {
  text.line();
  for (std::size_t i = 0; i < node.about.size(); ++i) text.comment(node.about[i], i == 0 ? "# --- " : "# ");
  for (const std::string& doubt : node.doubts) {
    text.comment("LOOK: " + doubt, "# ", 6);
    draft.doubts.push_back(fmt::format("{}: {}", node.name, comment_text(doubt)));
  }
  text.line("[[node]]");
  text.key("name", 7, toml::literal(node.name));
  if (!node.ip.empty()) text.key("ip", 7, toml::literal(node.ip));
  for (const std::string& change : node.changes) text.comment("changed: " + change, "# ", 9);
  if (node.service) {
    // The Compose file defines how the node is started.
  } else if (!node.attach.empty()) {
    text.key("attach", 7, node.attach);
  } else if (!node.image.empty()) {
    text.key("image", 7, toml::literal(node.image));
    const auto list = [&text](const char* key, const std::vector<std::string>& words) {
      const std::string head = fmt::format("{:<7} = ", key);
      if (!words.empty()) text.line(head + list_of(words, head.size()));
    };
    list("entrypoint", node.entrypoint);
    list("command", node.command);
    list("volumes", node.volumes);
    list("options", node.options);
    list("aliases", node.aliases);
  } else if (node.command.empty()) {
    text.comment("QUESTION: how is it started? " + node.question + ".", "# ", 10);
    draft.questions.push_back({text.next_line(), "node.command",
                               fmt::format("how is {} started? {}", node.name, comment_text(node.question)), true});
    text.key("command", 7, "\"?\"");
  } else {
    text.line("command = " + list_of(node.command, 10));
  }
  for (const Variable& variable : node.env)
    text.key("env." + (is_variable_name(variable.name) ? variable.name : '"' + variable.name + '"'), 7,
             toml::literal(variable.value), variable.comment);
  for (const std::string& left : node.env_left) text.comment("not in env: " + left);
  if (!node.ready.empty()) text.key("ready", 7, node.ready);
  else if (!node.ready_note.empty()) text.comment(node.ready_note);
  else text.comment("no 'ready': the workload starts as soon as the node is started");
  if (!node.restart.empty()) text.key("restart", 7, node.restart, node.restart_note);
  else if (!node.restart_note.empty()) text.key("# restart", 7, "{ delay = \"1s\", max = 5 }", node.restart_note);
  if (!node.user.empty()) text.key("user", 7, toml::literal(node.user));
  if (node.begins_as_root) text.key("begins_as_root", 7, "true", "its command changes to that user by itself");
  if (!node.binary.empty()) text.key("binary", 7, toml::literal(node.binary), "where functions are looked up");
  if (!node.functions.empty()) text.comment(node.functions);
}

}  // namespace

std::vector<std::string> folder_setup(const std::vector<NodeDraft>& nodes) {
  std::vector<std::string> commands;
  for (const NodeDraft& node : nodes) {
    if (node.folders.empty()) continue;
    // The node's user creates the folders, in the folder that belongs to the node. Root must not create them, because
    // another process of that user may put a link there, which root would follow.
    std::string command = "install -d";
    if (!node.user.empty())
      command = fmt::format("setpriv --reuid {0} --regid $(id -g {0}) --init-groups mkdir -p", node.user);
    else if (!node.owner.empty()) command += fmt::format(" -o {}", node.owner);
    for (const std::string& folder : node.folders) command += fmt::format(" {}/{}", node.name, folder);
    commands.push_back(std::move(command));
  }
  if (commands.empty()) return {};
  return {"sh", "-ec", fmt::format("{}", fmt::join(commands, "\n"))};
}

ValueQueries example_for(const std::vector<NodeDraft>& nodes) {
  for (const bool any : {false, true})
    for (const NodeDraft& node : nodes) {
      if (node.system == nullptr || (node.follows && !any) || node.port == 0) continue;
      Example example = node.system->example(node);
      if (!example.workload.empty()) return {std::move(example), std::string(node.system->title())};
    }
  return {};
}

Draft write_draft(const std::vector<std::string>& origins, const std::vector<NodeDraft>& nodes,
                  const Surroundings& around, const ValueQueries& asked, const Host& host) {
  Draft draft;
  Text text;
  const Example& example = asked.example;
  text.comment(fmt::format("Drafted by 'rose init' from {}.", fmt::join(origins, ", ")));
  text.comment(
      "QUESTION marks unknown values, and LOOK marks what you should check. Lines that begin with '#:' are suitable "
      "examples: remove the '#: ' to use them. Every key is described in configs/rose.toml.");
  if (!nodes.empty())
    text.key("name", 4,
             toml::literal(nodes.front().system != nullptr ? std::string(nodes.front().system->name())
                                                           : nodes.front().name));
  text.line();
  for (const std::string& line : around.about) text.comment(line);
  for (const std::string& doubt : around.doubts) {
    text.comment("LOOK: " + doubt + ".", "# ", 6);
    draft.doubts.push_back(fmt::format("deployment: {}", comment_text(doubt)));
  }
  text.line("[deployment]");
  text.key("network", 8, toml::literal(around.network),
           around.network == "netns" ? "each node has its own address and network: ports may stay as they are" : "");
  if (around.compose.size() == 1) text.key("compose", 8, toml::literal(around.compose.front()));
  else if (!around.compose.empty()) text.line("compose  = " + list_of(around.compose, 11));
  if (!around.compose_profiles.empty()) text.line("compose_profiles = " + list_of(around.compose_profiles, 19));
  for (const auto& [name, value] : around.compose_env)
    text.key("compose_env." + name, 8, toml::literal(value), "as it was set for 'rose init'");
  if (!around.engine.empty()) text.key("engine", 8, toml::literal(around.engine));
  if (!around.setup.empty()) text.line("setup    = " + list_of(around.setup, 11));
  if (!around.form.empty()) text.line("form     = " + list_of(around.form, 11));
  if (!around.teardown.empty()) text.line("teardown = " + list_of(around.teardown, 11));

  for (const NodeDraft& node : nodes) {
    write_node(text, node, draft);
    draft.nodes.push_back(node.name);
  }

  text.line();
  text.comment(
      "QUESTION: what do your clients do? Name a command that uses the system for some seconds as they would. It runs "
      "in the run's folder, finds the nodes by name and at $ROSE_IP_<node> (ROSE_NODES has their names), and records "
      "what the oracle will need.");
  if (!example.tool.empty() && !host.has(example.tool))
    text.comment(
        fmt::format("(The example needs {}, which is not in PATH here.{})", example.tool,
                    nodes.front().service || !nodes.front().image.empty()
                        ? fmt::format(" The node's container may have it: podman exec $ROSE_CONTAINER_{} {} ...",
                                      nodes.front().variable, example.tool)
                        : ""));
  text.line("[workload]");
  draft.questions.push_back({0, "workload.command", "what do your clients do?", true});
  if (example.workload.empty()) {
    text.comment("for example: command = [\"./workload.sh\"]");
  } else {
    text.comment(
        fmt::format("An example for {}: sequential writes, and a list of those that were acknowledged.", asked.system));
    example_lines(text, example.workload);
  }
  draft.questions.back().line = text.next_line();
  text.line("command = \"?\"");
  text.line("timeout = \"60s\"");

  text.line();
  text.comment(
      "QUESTION: how can one tell that the bug is there? Name a command that exits with 0 if it is, with 1 if it is "
      "not, and with anything else if it cannot decide, as grep does. It runs in the run's folder, where each node has "
      "a folder with stdout.log and stderr.log. 'rose profile' works without this command, 'rose diagnose' does not.");
  const std::string grep =
      fmt::format("[\"grep\", \"-q\", \"panic\", \"{}/stderr.log\"]", nodes.empty() ? "n1" : nodes.front().name);
  draft.questions.push_back({text.next_line(), "oracle.command", "how can one tell that the bug is there?", false});
  if (example.oracle.empty()) {
    text.line("# [oracle]");
    text.line("# command = " + grep);
  } else {
    text.comment(fmt::format("An example for {}: the bug is there if {}.", asked.system, example.oracle_says));
    text.line("#: [oracle]");
    example_lines(text, example.oracle);
    text.comment(fmt::format("Another: command = {}", grep));
  }
  if (!around.next.empty()) text.line();
  for (const std::string& line : around.next) text.comment(line);
  draft.text = text.take();
  return draft;
}

}  // namespace rose::draft
