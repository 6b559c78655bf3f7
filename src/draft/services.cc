#include "draft/services.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <set>

#include "base/ascii.h"
#include "base/text.h"
#include "base/toml.h"
#include "draft/asks.h"
#include "draft/secrets.h"
#include "draft/systems.h"
#include "draft/words.h"

namespace rose::draft {
namespace {

constexpr std::string_view kBetweenCommands = ";&|()`\n";
constexpr std::string_view kBetweenWords = " \t'\"";

std::vector<std::string> parts_of(std::string_view text, std::string_view separators) {
  std::vector<std::string> parts(1);
  for (const char c : text)
    if (separators.find(c) == std::string_view::npos) parts.back() += c;
    else if (!parts.back().empty()) parts.emplace_back();
  if (parts.back().empty()) parts.pop_back();
  return parts;
}

// The commands that a service runs, as words, including those in a script that it gives to a shell.
std::vector<std::vector<std::string>> lines_of(const config::Node& taken) {
  std::vector<std::string> all = taken.container->entrypoint.value_or(config::Command());
  all.insert(all.end(), taken.command.begin(), taken.command.end());
  std::vector<std::vector<std::string>> lines;
  for (const std::string& command : parts_of(fmt::format("{}", fmt::join(all, " ")), kBetweenCommands))
    lines.push_back(parts_of(command, kBetweenWords));
  return lines;
}

// The commands of lines_of(), without folders. Each begins with its program.
std::vector<std::vector<std::string>> commands_of(const config::Node& taken) {
  std::vector<std::vector<std::string>> commands;
  for (std::vector<std::string>& words : lines_of(taken)) {
    // Skip what precedes the program: "sh -c", "exec", "gosu USER" and the like, and words of the shell.
    std::size_t first = 0;
    const auto leads = [](const std::string& word) {
      return word.starts_with('-') || word.find('=') != std::string::npos ||
             std::set<std::string>{"sh",   "bash", "ash",   "env",   "exec", "tini", "nohup",     "if",  "then",
                                   "else", "do",   "while", "until", "!",    "{",    "dumb-init", "sudo"}
                 .contains(word.substr(word.rfind('/') + 1));
    };
    while (first < words.size() && leads(words[first])) ++first;
    if (first < words.size() && (words[first] == "gosu" || words[first] == "su-exec"))
      first = std::min(first + 2, words.size());
    words.erase(words.begin(), words.begin() + static_cast<std::ptrdiff_t>(first));
    for (std::string& word : words)
      if (!word.starts_with('-')) word.erase(0, word.rfind('/') + 1);
    if (!words.empty()) commands.push_back(std::move(words));
  }
  return commands;
}

// In images of these systems, the program with the image's name is the client.
bool is_client(std::string_view program) { return program == "mongo" || program == "mysql" || program == "mariadb"; }

// Compose files often use a server's image to start a client, a producer or a one-time task, with a command of its own.
// Such a service has no port of its own, and its command names neither the server nor a word with which servers are
// started.
bool runs_the_server(const config::Node& taken, const System* system) {
  const config::Container& container = *taken.container;
  if (!container.ports.empty() || (taken.command.empty() && !container.entrypoint)) return true;
  if (!container.entrypoint && taken.command.front().starts_with('-')) return true;  // an option of the entrypoint
  const std::string image = image_name(container.image);
  const auto serves = [&](const std::string& word) {
    if (system != nullptr && system->is(word)) return true;
    for (const char* part : {"server", "entrypoint", "start", "sentinel"})
      if (lower_case(word).find(part) != std::string::npos) return true;
    for (const std::string& known : {image, image + "d", std::string("run"), std::string("agent")})
      if (word == known || word == known + ".sh") return !is_client(word);
    return false;
  };
  const auto commands = commands_of(taken);
  return std::any_of(commands.begin(), commands.end(), [&](const std::vector<std::string>& words) {
    // The second word may be the one that names the server, as in "minio server".
    return serves(words[0]) || (words.size() > 1 && !words[1].starts_with('-') && serves(words[1]));
  });
}

// The port that a text such as "8000" names; 0 if it names none.
std::uint16_t port_of(std::string_view text) {
  std::uint16_t port = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), port);
  return error == std::errc() && end == text.data() + text.size() ? port : std::uint16_t{0};
}

// The port of an address at which a server listens: "0.0.0.0:8000", ":8000", "[::]:8000", "*:8000".
std::uint16_t port_of_address(std::string_view text) {
  if (const std::size_t scheme = text.find("://"); scheme != std::string_view::npos) text.remove_prefix(scheme + 3);
  const std::size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) return 0;
  const std::string_view host = text.substr(0, colon);
  return host.empty() || host == "0.0.0.0" || host == "*" || host == "[::]" ? port_of(text.substr(colon + 1))
                                                                            : std::uint16_t{0};
}

// The ports at which its command line lets the server listen, in the order of the words. If they were ignored, `ready`
// would try the system's usual port, at which nothing may listen. Assumption: "--port" and "-p" with a number, "port="
// and an address of all interfaces are meant for clients, unless the option says otherwise. A port alone may be that of
// a server to which the program connects, so it counts only for a known server or beside the address of all interfaces.
std::vector<std::uint16_t> ports_in_command(const config::Node& taken, bool server) {
  std::vector<std::uint16_t> ports;
  for (const std::vector<std::string>& words : lines_of(taken)) {
    const bool serves = server || std::any_of(words.begin(), words.end(), [](const std::string& word) {
                          return word.ends_with("0.0.0.0") || word == "::" || word == "[::]";
                        });
    for (std::size_t i = 0; i < words.size(); ++i) {
      std::string_view option = words[i].starts_with('-') ? std::string_view(words[i]) : std::string_view();
      std::string_view value = words[i];
      if (const std::size_t equals = option.find('='); equals != std::string_view::npos) {
        value = option.substr(equals + 1);
        option = option.substr(0, equals);
      } else if (!option.empty()) {
        continue;  // its value is the next word
      } else if (i > 0 && words[i - 1].starts_with('-') && words[i - 1].find('=') == std::string::npos) {
        option = words[i - 1];
      }
      const std::string lower = lower_case(option);
      const auto says = [&lower](std::initializer_list<std::string_view> parts) {
        return std::any_of(parts.begin(), parts.end(),
                           [&lower](std::string_view part) { return lower.find(part) != std::string::npos; });
      };
      if (says({"peer", "cluster", "gossip", "console", "admin", "metric", "advertise", "debug", "stats", "manag",
                "bus", "announce", "upstream", "connect", "forward", "remote"}))
        continue;
      std::uint16_t port = port_of_address(value);
      if (port == 0 && serves && value.starts_with("port=")) port = port_of(value.substr(5));
      if (port == 0 && serves && (lower == "--port" || lower == "-port" || lower == "-p")) port = port_of(value);
      if (port != 0 && std::find(ports.begin(), ports.end(), port) == ports.end()) ports.push_back(port);
    }
  }
  return ports;
}

// The port for clients; 0 if unknown. `set`: the ports that the command line sets. Prefers one that is both declared
// and set; then the system's usual port, if it is set; then the first port that is set, unless the service declares
// others and the system is unknown; then the first declared port; and last the system's usual port.
std::uint16_t choose_port(const std::vector<std::uint16_t>& declared, const std::vector<std::uint16_t>& set,
                          const System* system) {
  const std::uint16_t usual = system != nullptr ? system->usual_port() : std::uint16_t{0};
  for (const std::uint16_t port : declared)
    if (std::find(set.begin(), set.end(), port) != set.end()) return port;
  if (std::find(set.begin(), set.end(), usual) != set.end()) return usual;
  if (!set.empty() && (declared.empty() || system != nullptr)) return set.front();
  return !declared.empty() ? declared.front() : usual;
}

// For programs that open no port: the line that they log when they are ready.
struct ReadyLine {
  std::string_view program, word, line;
};
constexpr ReadyLine kReadyLines[] = {{"celery", "worker", "celery@[^ ]+ ready"}, {"celery", "beat", "beat: Starting"}};

std::string line_when_ready(const config::Node& taken) {
  for (const std::vector<std::string>& words : commands_of(taken))
    for (const ReadyLine& known : kReadyLines)
      if (words[0] == known.program && std::find(words.begin(), words.end(), known.word) != words.end())
        return std::string(known.line);
  return "";
}

NodeDraft node_of(const config::Node& taken, const std::set<std::string>& completing, const Host& host) {
  const config::Container& container = *taken.container;
  NodeDraft node;
  node.name = taken.name;
  node.variable = variable_name(taken.name);
  node.service = true;
  // The image of a service that is built has a generated name, which does not identify the system.
  if (container.build.empty()) node.system = find_system_of_image(container.image);
  // If the image does not identify the system, the program in the service's command does.
  if (node.system == nullptr)
    for (const std::vector<std::string>& words : commands_of(taken))
      if (node.system == nullptr) node.system = find_system_of_program(words[0]);
  const bool serves = runs_the_server(taken, node.system);
  if (!serves) node.system = nullptr;
  take_password(node, [&](const std::string& variable) { return taken.env.contains(variable); });
  const std::string title = node.system != nullptr ? std::string(node.system->title()) : "a service";
  node.about.push_back(fmt::format("{}: {}, from line {}: {}", taken.name, title, taken.line,
                                   container.build.empty() ? "image " + container.image : "built as the file defines"));
  if (taken.restart)
    node.about.push_back(taken.restart->only_failures ? "Restarted when it fails, as the file defines."
                                                      : "Restarted whenever it ends, as the file defines.");
  // In the image of a known server, a command that does not start the server is a client.
  const bool client = !serves && container.build.empty() && find_system_of_image(container.image) != nullptr;
  const bool server = serves && (container.build.empty() || node.system != nullptr);
  const std::vector<std::uint16_t> set = client ? std::vector<std::uint16_t>() : ports_in_command(taken, server);
  node.port = choose_port(container.ports, set, node.system);
  if (completing.contains(taken.name)) node.ready_note = "it ends by itself, and others wait for its end: no 'ready'";
  else if (container.health && !container.health->disabled)
    node.ready_note = "it is ready when its health check passes";
  else if (container.build.empty() && serves)
    node.ready = ready_of_image(container.image, node.variable, node.port,
                                container.ports.empty() ? set : container.ports, host.has("curl"));
  if (!node.ready.empty()) node.about.push_back(kAsksItself);
  else if (node.ready_note.empty() && node.port != 0)
    node.ready = fmt::format("{{ tcp = {}, timeout = \"120s\" }}", node.port);
  else if (const std::string line = line_when_ready(taken); node.ready_note.empty() && !line.empty())
    node.ready = fmt::format("{{ log = {}, timeout = \"120s\" }}", toml::literal(line));
  return node;
}

}  // namespace

Drafted draft_services(const config::ComposeNodes& taken, const std::vector<std::string>& files, const Host& host) {
  Drafted drafted;
  std::set<std::string> completing;
  for (const config::Node& node : taken.nodes)
    for (const config::Dependency& one : node.container->after)
      if (one.when == config::Dependency::When::completed) completing.insert(one.node);
  bool shared = false;
  std::set<std::string> missing;
  for (const config::Node& node : taken.nodes) {
    drafted.nodes.push_back(node_of(node, completing, host));
    for (const std::string& volume : node.container->volumes) {
      const std::string source = volume.substr(0, volume.find(':'));
      std::error_code error;
      if (source.starts_with('/') && !std::filesystem::exists(source, error)) missing.insert(source);
    }
    shared = shared || node.container->host_network;
  }
  Surroundings& around = drafted.around;
  around.network = shared ? "host" : "netns";
  around.compose = files;
  around.compose_profiles = taken.profiles;
  around.about.push_back(
      "The Compose file is not changed. In each run its services are nodes, in the run's own containers, volumes and "
      "network; podman or docker creates them. A [[node]] with the name of a service adds what the file does not "
      "define.");
  for (const auto& [name, value] : taken.from_environment) {
    if (name == "COMPOSE_PROFILES" || name == "HOME" || name == "USER") continue;
    if (!fits_toml(value) || !is_variable_name(name))
      around.doubts.push_back(fmt::format("the value of {} cannot be written here: set it for every command", name));
    else if (Secrets().masked(name, value) != value)
      around.doubts.push_back(fmt::format(
          "{} looks like a secret and is not written: set it for every command, or add it to compose_env", name));
    else around.compose_env.push_back({name, value});
  }
  std::vector<std::string> unknown;
  for (const NodeDraft& node : drafted.nodes)
    if (node.ready.empty() && node.ready_note.empty()) unknown.push_back(node.name);
  if (!unknown.empty())
    around.doubts.push_back(fmt::format(
        "nothing shows when {} {} ready, so the workload begins as soon as {} started: ready = {{ log = \"REGEX\" }} "
        "waits for a line of the log",
        fmt::join(unknown, ", "), unknown.size() == 1 ? "is" : "are", unknown.size() == 1 ? "it is" : "they are"));
  if (shared)
    around.doubts.emplace_back(
        "services share this machine's network (network_mode: host), so all nodes do. Therefore runs are made one "
        "after the other, and partitions are not possible. All names mean 127.0.0.1, and services that listen on the "
        "same port collide");
  if (missing.size() == 1)
    around.doubts.push_back(
        fmt::format("{} does not exist: each run uses an empty folder instead; if it has to be a file, create it first",
                    *missing.begin()));
  else if (!missing.empty())
    around.doubts.push_back(
        fmt::format("these do not exist, and each run uses an empty folder instead; if one has to be a file, create it "
                    "first: {}",
                    fmt::join(missing, ", ")));
  for (const std::string& warning : taken.warnings) around.doubts.push_back(warning);
  for (const std::string& word : taken.words) around.about.push_back(fmt::format("({}.)", word));
  return drafted;
}

}  // namespace rose::draft
