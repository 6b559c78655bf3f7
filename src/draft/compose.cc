#include "draft/compose.h"

#include <algorithm>
#include <charconv>
#include <set>

#include "base/address.h"
#include "base/ascii.h"
#include "base/subprocess.h"
#include "base/text.h"
#include "base/toml.h"
#include "base/units.h"
#include "base/yaml.h"
#include "draft/net_tables.h"
#include "draft/systems.h"

namespace rose::draft {
namespace {

constexpr std::size_t kMostServices = 200;
constexpr std::size_t kMostOfOne = 1000;  // ports, volumes or variables per service
constexpr int kMostReplicas = 64;

template <typename Number>
bool whole_number(std::string_view text, Number& into) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), into);
  return error == std::errc() && end == text.data() + text.size() && !text.empty();
}

bool name_letter(char c) { return is_alpha(c) || is_digit(c) || c == '_'; }

// The rule of container engines.
bool is_container_name(std::string_view name) {
  return !name.empty() &&
         std::all_of(name.begin(), name.end(), [](char c) { return name_letter(c) || c == '-' || c == '.'; });
}

class ComposeReader {
 public:
  ComposeReader(std::string_view file, const Lookup& lookup) : name_(file), lookup_(lookup) {}

  Result<ComposeFile> read(const Yaml& root) {
    if (!root.is_map()) return wrong(root, "a Compose file is a map with 'services'");
    const Yaml* services = root.find("services");
    if (services == nullptr || !services->is_map() || services->members.empty())
      return wrong(root, "'services' is missing", "a Compose file names them under 'services:'");
    if (services->members.size() > kMostServices)
      return wrong(*services,
                   fmt::format("{} services, up to {} are drafted", services->members.size(), kMostServices));
    for (const auto& [name, value] : services->members) {
      if (!value.is_map()) return wrong(value, fmt::format("service '{}' is not a map", name.substr(0, 60)));
      if (!is_container_name(name))
        return wrong(
            value, fmt::format("service '{}': names consist of letters, digits, '_', '-' and '.'", name.substr(0, 60)));
      read_service(name, value);
    }
    mark_one_shots(*services);
    if (root.find("include") != nullptr) file_.not_followed.push_back("include");
    if (const Yaml* volumes = root.find("volumes"); volumes != nullptr && volumes->is_map())
      for (const auto& [name, value] : volumes->members)
        if (value.is_map() && (value.find("external") != nullptr || value.find("name") != nullptr))
          file_.shared_volumes.push_back(name);
    return std::move(file_);
  }

 private:
  [[nodiscard]] Unexpected wrong(const Yaml& at, std::string what, std::string hint = {}) const {
    return fail(ErrorKind::input, fmt::format("{}:{}: {}", name_, std::max(at.line, 1), what), std::move(hint));
  }
  std::string resolved(const std::string& text) { return compose::interpolated(text, lookup_, file_.unresolved); }
  std::string resolved(const Yaml& map, std::string_view key) { return resolved(map.scalar(key)); }

  std::vector<std::string> texts(const Yaml* value) {
    std::vector<std::string> found;
    if (value == nullptr) return found;
    if (value->is_scalar()) found = compose::shell_words(resolved(value->text));
    for (const Yaml& item : value->items)
      if (item.is_scalar() && found.size() < kMostOfOne) found.push_back(resolved(item.text));
    return found;
  }

  void read_service(const std::string& name, const Yaml& value);
  void read_ports(const Yaml* value, Service& service);
  void read_volumes(const Yaml* value, Service& service);
  void read_depends(const Yaml* value, Service& service);
  void mark_one_shots(const Yaml& services);

  std::string name_;
  const Lookup& lookup_;
  ComposeFile file_;
};

// "127.0.0.1:8080:80/tcp", "8080:80", "80", or "9000-9001:80-81", of which the first port is used.
std::optional<PublishedPort> read_port(std::string text) {
  if (text.ends_with("/udp") || text.ends_with("/sctp")) return std::nullopt;
  if (text.ends_with("/tcp")) text.resize(text.size() - 4);
  PublishedPort port;
  const std::size_t last = text.rfind(':');
  const auto first_of_range = [](std::string_view range) { return range.substr(0, range.find('-')); };
  if (!whole_number(first_of_range(std::string_view(text).substr(last == std::string::npos ? 0 : last + 1)),
                    port.target))
    return std::nullopt;
  if (last == std::string::npos) return port;
  const std::string before = text.substr(0, last);
  const std::size_t colon = before.rfind(':');
  const std::string host = colon == std::string::npos ? before : before.substr(colon + 1);
  if (!host.empty() && !whole_number(first_of_range(host), port.host)) return std::nullopt;
  if (colon != std::string::npos) port.address = before.substr(0, colon);
  return port;
}

void ComposeReader::read_ports(const Yaml* value, Service& service) {
  if (value == nullptr) return;
  for (const Yaml& item : value->items) {
    if (service.ports.size() >= kMostOfOne) return;
    if (item.is_scalar()) {
      if (auto port = read_port(resolved(item.text))) service.ports.push_back(std::move(*port));
    } else if (item.is_map() && item.scalar("protocol") != "udp") {
      PublishedPort port;
      const std::string published = resolved(item, "published");
      whole_number(published.substr(0, published.find('-')), port.host);
      port.address = resolved(item, "host_ip");
      if (whole_number(resolved(item, "target"), port.target)) service.ports.push_back(std::move(port));
    }
  }
}

void ComposeReader::read_volumes(const Yaml* value, Service& service) {
  if (value == nullptr) return;
  for (const Yaml& item : value->items) {
    if (service.mounts.size() >= kMostOfOne) return;
    Mount mount;
    if (item.is_map()) {
      mount.type = item.scalar("type");
      mount.source = resolved(item, "source");
      mount.target = resolved(item, "target");
      mount.writable = item.scalar("read_only") != "true";
    } else if (item.is_scalar()) {
      const std::vector<std::string> parts = split(resolved(item.text), ':');
      mount.target = parts.size() > 1 ? parts[1] : parts[0];
      mount.source = parts.size() > 1 ? parts[0] : "";
      mount.writable = parts.size() < 3 || parts[2].find("ro") == std::string::npos;
      const bool path = mount.source.starts_with('/') || mount.source.starts_with('.') || mount.source.starts_with('~');
      mount.type = path ? "bind" : "volume";
    }
    if (!mount.target.empty()) service.mounts.push_back(std::move(mount));
  }
}

void ComposeReader::read_depends(const Yaml* value, Service& service) {
  if (value == nullptr) return;
  for (const Yaml& item : value->items)
    if (item.is_scalar() && service.depends_on.size() < kMostOfOne) service.depends_on.push_back(item.text);
  for (const auto& [name, how] : value->members)
    if (service.depends_on.size() < kMostOfOne) service.depends_on.push_back(name);
}

void ComposeReader::mark_one_shots(const Yaml& services) {
  std::set<std::string> awaited;
  for (const auto& [name, value] : services.members)
    if (const Yaml* depends = value.find("depends_on"); depends != nullptr)
      for (const auto& [other, how] : depends->members)
        if (how.scalar("condition") == "service_completed_successfully") awaited.insert(other);
  for (Service& service : file_.services) service.one_shot = awaited.contains(service.name);
}

void ComposeReader::read_service(const std::string& name, const Yaml& value) {
  Service service;
  service.name = name;
  service.line = value.line;
  service.image = resolved(value, "image");
  service.build = value.find("build") != nullptr;
  service.container_name = resolved(value, "container_name");
  if (!is_container_name(service.container_name)) service.container_name.clear();
  service.command = texts(value.find("command"));
  service.restart = resolved(value, "restart");
  service.host_network = value.scalar("network_mode") == "host";
  if (const Yaml* environment = value.find("environment"); environment != nullptr) {
    for (const auto& [key, unused] : environment->members)
      if (service.environment.size() < kMostOfOne) service.environment.push_back(key);
    for (const Yaml& item : environment->items)
      if (item.is_scalar() && service.environment.size() < kMostOfOne)
        service.environment.push_back(item.text.substr(0, item.text.find('=')));
  }
  read_ports(value.find("ports"), service);
  if (const Yaml* expose = value.find("expose"); expose != nullptr)
    for (const Yaml& item : expose->items)
      if (std::uint16_t port = 0; whole_number(item.text, port) && service.expose.size() < kMostOfOne)
        service.expose.push_back(port);
  read_volumes(value.find("volumes"), service);
  read_depends(value.find("depends_on"), service);
  if (const Yaml* health = value.find("healthcheck"); health != nullptr && health->is_map())
    service.health = health->find("test") != nullptr && health->scalar("disable") != "true";
  if (const Yaml* networks = value.find("networks"); networks != nullptr)
    for (const auto& [network, how] : networks->members)
      if (const std::string address = resolved(how, "ipv4_address"); parse_address(address) && service.address.empty())
        service.address = address;
  if (const Yaml* profiles = value.find("profiles"); profiles != nullptr) service.profiled = !profiles->items.empty();
  std::string replicas = resolved(value, "scale");
  if (const Yaml* deploy = value.find("deploy"); deploy != nullptr && replicas.empty())
    replicas = resolved(*deploy, "replicas");
  if (int count = 0; whole_number(replicas, count)) service.replicas = std::clamp(count, 0, kMostReplicas);
  for (const char* key : {"extends", "env_file"})
    if (value.find(key) != nullptr) service.not_followed.emplace_back(key);
  file_.services.push_back(std::move(service));
}

// Nodes

std::string container_of_service(const Service& service, const std::string& project, char separator, int number) {
  if (!service.container_name.empty()) return service.container_name;
  return fmt::format("{}{}{}{}{}", project, separator, service.name, separator, number);
}

std::string joined_list(const std::vector<std::string>& texts) { return fmt::format("{}", fmt::join(texts, ", ")); }

void describe_service(const Service& service, NodeDraft& node) {
  const std::string title = node.system != nullptr ? std::string(node.system->title()) : "a service";
  node.about.push_back(fmt::format("{}: {}, from line {}: {}", node.name, title, service.line,
                                   service.build           ? "built by the file"
                                   : service.image.empty() ? "no image"
                                                           : fmt::format("image {}", service.image)));
  std::string line;
  if (!service.depends_on.empty()) line += fmt::format("Starts behind {}. ", joined_list(service.depends_on));
  if (service.restart == "always" || service.restart == "unless-stopped" || service.restart.starts_with("on-failure"))
    line += fmt::format("Started again by the engine (restart: {}). ", service.restart);
  if (!service.environment.empty()) line += fmt::format("Variables: {}. ", joined_list(service.environment));
  if (!line.empty()) node.about.push_back(line);
  for (const Mount& mount : service.mounts)
    if (mount.type == "bind" && mount.writable)
      node.doubts.push_back(
          fmt::format("{} is a folder of this machine, mounted at {} and writable: the running system shares it, and "
                      "its content stays from run to run. A volume would be empty in each",
                      mount.source, mount.target));
  if (!service.container_name.empty())
    node.doubts.push_back(
        fmt::format("container_name: {} is the same in every project: the service cannot be started while another "
                    "container has that name",
                    service.container_name));
  for (const PublishedPort& port : service.ports)
    if (port.host != 0)
      node.doubts.push_back(
          fmt::format("it publishes port {} of this machine: stop what uses it before a run", port.host));
  for (const std::string& what : service.not_followed)
    node.about.push_back(fmt::format("(Its '{}' was not examined.)", what));
  if (service.host_network) node.doubts.push_back("it shares this machine's network: its ports must be free");
}

// Chooses how to detect that the service is ready.
void choose_service_ready(const Service& service, const ComposeTool& tool, const std::string& container,
                          NodeDraft& node) {
  const auto published = std::find_if(service.ports.begin(), service.ports.end(),
                                      [](const PublishedPort& port) { return port.host != 0; });
  const std::uint16_t inner = !service.ports.empty()    ? service.ports.front().target
                              : !service.expose.empty() ? service.expose.front()
                              : node.system != nullptr  ? node.system->usual_port()
                                                        : 0;
  if (service.health) {
    if (tool.engine == "podman")
      node.ready = fmt::format("{{ command = [\"podman\", \"healthcheck\", \"run\", {}], timeout = \"120s\" }}",
                               toml::literal(container));
    else
      node.ready = fmt::format(
          "{{ command = [\"sh\", \"-c\", {}], timeout = \"120s\" }}",
          toml::literal(fmt::format("test \"$(docker inspect -f '{{{{.State.Health.Status}}}}' {})\" = healthy",
                                    shell_word(escaped(container)))));
  } else if (!service.address.empty() && inner != 0) {
    node.ready = fmt::format("{{ tcp = {}, timeout = \"120s\" }}", inner);
  } else if (published != service.ports.end() &&
             (published->address.empty() || published->address == "0.0.0.0" || published->address == "127.0.0.1")) {
    node.ready = fmt::format("{{ tcp = {}, timeout = \"120s\" }}", published->host);
  }
  node.port = inner;
  node.run_in = fmt::format("{} exec {} ", tool.engine, shell_word(escaped(container)));
}

}  // namespace

Result<ComposeFile> parse_compose(std::string_view text, std::string_view file, const Lookup& lookup) {
  ROSE_TRY(const Yaml root, parse_yaml(text, file));
  return ComposeReader(file, lookup).read(root);
}

ComposeTool compose_tool() {
  const auto works = [](const std::vector<std::string>& argv) {
    const auto answer = run_command(argv, {}, 15 * kSecond);
    return answer && answer->exit_code == 0;
  };
  // The client alone is not sufficient; the daemon must answer too.
  if (works({"docker", "compose", "version"}) && works({"docker", "info"})) return {};
  if (works({"podman", "--version"}) && works({"podman-compose", "--version"}))
    return {{"podman-compose"}, "podman", '_', false, true};
  if (works({"nerdctl", "compose", "version"})) return {{"nerdctl", "compose"}, "nerdctl", '-', false, true};
  ComposeTool none;
  none.works = false;
  return none;
}

Drafted draft_compose(const ComposeFile& file, const std::string& path, const ComposeTool& tool) {
  Drafted drafted;
  std::vector<Seen> named;
  std::vector<const System*> systems;
  std::vector<std::pair<const Service*, int>> members;
  std::vector<std::string> left;
  for (const Service& service : file.services) {
    if (service.profiled || service.one_shot || service.replicas == 0) {
      left.push_back(fmt::format("{} ({})", service.name,
                                 service.profiled   ? "has a profile"
                                 : service.one_shot ? "ends by itself before others start"
                                                    : "no replicas"));
      continue;
    }
    for (int number = 1; number <= service.replicas; ++number) {
      members.emplace_back(&service, number);
      Seen& seen = named.emplace_back();
      seen.unit = Unit{};
      seen.unit->name = service.name + ".service";
      systems.push_back(find_system_of_image(service.image));
    }
  }
  const std::vector<std::string> names = node_names(named, systems);
  const std::string project = "rose-" + (names.empty() ? std::string("none") : names.front());
  for (std::size_t i = 0; i < members.size(); ++i) {
    const auto& [service, number] = members[i];
    NodeDraft node;
    node.name = names[i];
    node.variable = variable_name(names[i]);
    node.system = systems[i];
    describe_service(*service, node);
    const std::string container = container_of_service(*service, project, tool.separator, number);
    node.attach = fmt::format("{{ container = {} }}", toml::literal(container));
    node.ip = service->address;
    choose_service_ready(*service, tool, container, node);
    drafted.nodes.push_back(std::move(node));
  }

  Surroundings& around = drafted.around;
  around.network = "host";
  around.about.push_back(
      fmt::format("The file is not changed: each run starts it as the project {}, with its own networks and volumes, "
                  "and removes them at the end.",
                  project));
  if (!tool.works)
    around.about.push_back(
        "LOOK: neither 'docker compose' with a running docker, podman-compose nor nerdctl was found here; docker's is "
        "used.");
  if (!left.empty()) around.about.push_back(fmt::format("No nodes: {}.", joined_list(left)));
  if (!file.shared_volumes.empty())
    around.about.push_back(fmt::format(
        "LOOK: the volumes {} are external or have an explicit name: a run shares them with the running system.",
        joined_list(file.shared_volumes)));
  if (!file.unresolved.empty())
    around.about.push_back(fmt::format("LOOK: these variables are not set here: {}.", joined_list(file.unresolved)));
  for (const std::string& what : file.not_followed)
    around.about.push_back(fmt::format("LOOK: '{}' was not followed: services that it adds are missing below.", what));
  std::vector<std::string> base = tool.command;
  for (const std::string& word : {std::string("-p"), project, std::string("-f"), "${config_dir}/" + escaped(path)})
    base.push_back(word);
  if (path.starts_with('/')) base.back() = escaped(path);
  around.setup = around.teardown = base;
  around.setup.insert(around.setup.end(), {"up", "-d"});
  if (tool.waits) around.setup.emplace_back("--wait");
  around.teardown.insert(around.teardown.end(), {"down", "-v"});
  around.next = {
      "'rose diagnose' and 'rose replay' require --allow-attached: the containers are those that setup starts. Syscall "
      "faults require that 'rose exec' starts the containers' commands (attach = { ..., exec = true }).",
      "Runs are made one after the other, because the project's name can be used only once at a time."};
  return drafted;
}

}  // namespace rose::draft
