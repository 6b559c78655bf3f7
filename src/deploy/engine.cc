#include "deploy/engine.h"

#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <set>

#include "base/file.h"
#include "base/json.h"
#include "base/log.h"
#include "base/subprocess.h"
#include "base/text.h"
#include "base/units.h"
#include "deploy/enter/enter.h"
#include "deploy/environment.h"
#include "kernel/privilege.h"

namespace rose::deploy {
namespace {

constexpr std::int64_t kEngineAnswer = 20 * kSecond;
constexpr std::int64_t kPull = 600 * kSecond;

// True for variables by which engines find their storage, configuration and daemon.
bool is_engines(std::string_view variable) {
  for (const std::string_view beginning : {"CONTAINERS_", "DOCKER_", "STORAGE_", "XDG_RUNTIME_DIR="})
    if (variable.starts_with(beginning)) return true;
  return variable.starts_with("CONTAINER_HOST=");
}

// The last line of the engine's output. Engines print warnings first and the error last.
std::string last_words(const std::string& text) {
  std::string last;
  for (const std::string& line : split(text, '\n'))
    if (line.find_first_not_of(" \t\r") != std::string::npos) last = line;
  return printable(last.substr(0, 600));
}

std::vector<std::string> joined(std::vector<std::string> words, std::initializer_list<std::string> further) {
  words.insert(words.end(), further);
  return words;
}

Result<Engine> try_engine(const config::Command& words) {
  Engine engine;
  engine.command = words;
  ROSE_TRY(engine.command.front(), find_program(words.front(), "/", inherited(), "engine"));
  ROSE_TRY(const std::string answer,
           ask_engine(joined(engine.command, {"--version"}), "query its version", kEngineAnswer));
  engine.version = answer.substr(0, answer.find('\n'));
  std::string lower = engine.version;
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
  engine.podman = lower.find("podman") != std::string::npos;
  if (!engine.podman && lower.find("docker") == std::string::npos)
    return fail(ErrorKind::input, fmt::format("{} is neither podman nor docker: it reports '{}'", words.front(),
                                              printable(engine.version.substr(0, 80))));
  // An installed client is not sufficient: the daemon must answer, too.
  if (!engine.podman) {
    auto server = ask_engine(joined(engine.command, {"version", "--format", "{{.Server.Version}}"}),
                             "reach docker's daemon", kEngineAnswer);
    if (!server) return Unexpected(std::move(server).error());
  }
  return engine;
}

Result<Engine> look_for_engine(const config::Command& wanted) {
  if (!wanted.empty()) return try_engine(wanted);
  std::string why;
  for (const char* name : {"podman", "docker"}) {
    auto found = try_engine({name});
    if (found) return found;
    why += fmt::format("{}{}", why.empty() ? "" : "; ", found.error().message);
  }
  return fail(ErrorKind::environment, fmt::format("no container engine works here: {}", why),
              "install podman (apt install podman), or name one with [deployment] engine = \"...\"");
}

std::vector<std::string> strings_of(const Json& value) {
  std::vector<std::string> words;
  if (value.is_string()) words.push_back(value.get<std::string>());
  if (value.is_array())
    for (const Json& item : value)
      if (item.is_string()) words.push_back(item.get<std::string>());
  return words;
}

std::string string_of(const Json& map, const char* key) {
  const auto found = map.find(key);
  return found != map.end() && found->is_string() ? found->get<std::string>() : "";
}

// In docker's output, the health check is part of the configuration; in podman's, it is a member next to the
// configuration. Values that the image does not set are zero there.
std::optional<config::Health> health_of(const Json& image, const Json& config) {
  const Json* found = nullptr;
  for (const Json* map : {&config, &image})
    for (const char* key : {"Healthcheck", "HealthCheck"})
      if (found == nullptr && map->contains(key) && (*map)[key].is_object()) found = &(*map)[key];
  if (found == nullptr || !found->contains("Test")) return std::nullopt;
  const std::vector<std::string> words = strings_of((*found)["Test"]);
  config::Health health;
  if (words.size() < 2 || (words.front() != "CMD" && words.front() != "CMD-SHELL")) return std::nullopt;
  if (words.front() == "CMD-SHELL") health.test = {"/bin/sh", "-c"};
  health.test.insert(health.test.end(), words.begin() + 1, words.end());
  const auto number = [found](const char* key) -> std::optional<std::int64_t> {
    const auto at = found->find(key);
    if (at == found->end() || !at->is_number_integer() || at->get<std::int64_t>() <= 0) return std::nullopt;
    return at->get<std::int64_t>();
  };
  health.interval_ns = number("Interval");
  health.timeout_ns = number("Timeout");
  health.start_period_ns = number("StartPeriod");
  if (const auto retries = number("Retries"); retries && *retries <= 10'000)
    health.retries = static_cast<int>(*retries);
  return health;
}

// Adds the options by which each engine carries out `privileged` of a Compose build. BuildKit gives the privileges only
// to commands of the Dockerfile that request them.
void add_privileges(const Engine& engine, const config::Container& container, std::vector<std::string>& words) {
  if (!container.build_privileged) return;
  if (!engine.podman) {
    words.insert(words.end(), {"--allow", "security.insecure"});
    return;
  }
  words.insert(words.end(),
               {"--cap-add", "all", "--security-opt", "label=disable", "--security-opt", "seccomp=unconfined"});
  // Podman refuses this option on machines without AppArmor.
  if (const auto enabled = read_file("/sys/module/apparmor/parameters/enabled"); enabled && enabled->starts_with('Y'))
    words.insert(words.end(), {"--security-opt", "apparmor=unconfined"});
}

}  // namespace

Result<std::string> ask_engine(const std::vector<std::string>& words, std::string_view what, std::int64_t timeout_ns) {
  auto output = run_command(words, {}, timeout_ns);
  if (!output) return Unexpected(std::move(output).error().in(fmt::format("cannot {}", what)));
  if (output->exit_code == 0) return std::move(output->out);
  const std::string why = last_words(output->err);
  return fail(
      ErrorKind::environment,
      fmt::format("cannot {}: {}", what,
                  why.empty() ? fmt::format("{} exited with status {}", words.front(), output->exit_code) : why));
}

// An engine that was found is remembered for the lifetime of this process. If none was found, the next call searches
// again.
Result<Engine> find_engine(const config::Command& wanted) {
  static std::mutex mutex;
  static std::map<config::Command, Engine> known;
  const std::lock_guard lock(mutex);
  if (const auto found = known.find(wanted); found != known.end()) return found->second;
  ROSE_TRY(Engine engine, look_for_engine(wanted));
  known.emplace(wanted, engine);
  return engine;
}

Result<Image> parse_image(const std::string& text) {
  const Json json = parse_json(text);
  const Json* image = json.is_array() && !json.empty() ? &json.front() : nullptr;
  if (image == nullptr || !image->is_object() || !image->contains("Config") || !(*image)["Config"].is_object())
    return fail(ErrorKind::inconclusive, "the engine describes the image in an unknown form");
  const Json& config = (*image)["Config"];
  Image found;
  if (config.contains("Entrypoint")) found.entrypoint = strings_of(config["Entrypoint"]);
  if (config.contains("Cmd")) found.command = strings_of(config["Cmd"]);
  found.user = string_of(config, "User");
  found.stop_signal = string_of(config, "StopSignal");
  found.working_dir = string_of(config, "WorkingDir");
  found.env["PATH"] = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
  if (config.contains("Env"))
    for (const std::string& variable : strings_of(config["Env"]))
      if (const std::size_t end = variable.find('='); end != std::string::npos && end > 0)
        found.env[variable.substr(0, end)] = variable.substr(end + 1);
  found.health = health_of(*image, config);
  if (config.contains("ExposedPorts") && config["ExposedPorts"].is_object())
    for (const char* port : {"53/udp", "53/tcp"})
      found.name_server = found.name_server || config["ExposedPorts"].contains(port);
  if (config.contains("Volumes") && config["Volumes"].is_object())
    for (const auto& [folder, unused] : config["Volumes"].items()) found.volumes.push_back(folder);
  return found;
}

Result<Image> look_at_image(const Engine& engine, const std::string& image, const std::string& policy) {
  static std::set<std::string> fetched;  // protected by have_image's lock
  const std::vector<std::string> look = joined(engine.command, {"image", "inspect", image});
  if (policy == "always" && fetched.insert(image).second)
    if (auto pulled =
            ask_engine(joined(engine.command, {"pull", "--quiet", image}), fmt::format("get image '{}'", image), kPull);
        !pulled)
      return fail(ErrorKind::input, pulled.error().message, "the Compose file has 'pull_policy: always'");
  auto known = ask_engine(look, fmt::format("inspect image '{}'", image), kEngineAnswer);
  if (!known && policy == "never")
    return fail(ErrorKind::input,
                fmt::format("image '{}' is not on this machine, and the Compose file has 'pull_policy: never'", image));
  if (!known) {
    log::info("image '{}' is not on this machine and is pulled", image);
    auto pulled =
        ask_engine(joined(engine.command, {"pull", "--quiet", image}), fmt::format("get image '{}'", image), kPull);
    if (!pulled)
      return fail(ErrorKind::input, pulled.error().message,
                  fmt::format("'{} images' lists the images on this machine", engine.command.front()));
    ROSE_TRY(known, ask_engine(look, fmt::format("inspect image '{}'", image), kEngineAnswer));
  }
  return parse_image(*known);
}

Result<Image> have_image(const Engine& engine, const config::Container& container, bool may_change) {
  static std::mutex mutex;
  static std::set<std::string> built;
  static std::map<std::pair<std::vector<std::string>, std::string>, Image> known;
  const std::lock_guard lock(mutex);
  if (!container.build.empty() && !built.contains(container.image)) {
    log::info("building image '{}'", container.image);
    std::vector<std::string> words = joined(engine.command, {"build", "--tag", container.image});
    std::optional<TemporaryFolder> files;
    if (!container.dockerfile.empty() || !container.build_secrets.empty()) {
      ROSE_TRY(TemporaryFolder folder, TemporaryFolder::make("rose-dockerfile"));
      files.emplace(std::move(folder));
    }
    if (!container.dockerfile.empty()) {
      ROSE_CHECK(write_file(files->path() / "Dockerfile", container.dockerfile));
      words.insert(words.end(), {"--file", (files->path() / "Dockerfile").string()});
    }
    for (std::size_t i = 0; i < container.build_secrets.size(); ++i) {
      const auto& [id, content] = container.build_secrets[i];
      const std::filesystem::path file = files->path() / fmt::format("secret-{}", i);
      ROSE_CHECK(write_file(file, content, 0600));
      words.insert(words.end(), {"--secret", fmt::format("id={},src={}", id, file.string())});
    }
    add_privileges(engine, container, words);
    words.insert(words.end(), container.build.begin(), container.build.end());
    auto made = ask_engine(words, fmt::format("build image '{}'", container.image), kPull);
    if (!made)
      return fail(ErrorKind::input, made.error().message, fmt::format("'{}' tells more", fmt::join(words, " ")));
    built.insert(container.image);
  }
  const std::pair<std::vector<std::string>, std::string> key{engine.command, container.image};
  if (const auto before = known.find(key); before != known.end() && !may_change) return before->second;
  ROSE_TRY(Image image, look_at_image(engine, container.image, container.pull));
  known[key] = image;
  return image;
}

std::vector<std::string> holder_image_words(const Engine& engine, const std::string& archive,
                                            const std::string& image) {
  return joined(engine.command, {"import", archive, image});
}

std::vector<std::string> remove_image_words(const Engine& engine, const std::string& image) {
  return joined(engine.command, {"image", "rm", "--force", image});
}

std::vector<std::string> holder_words(const Engine& engine, const ContainerSpec& spec, const std::string& image) {
  std::vector<std::string> words = joined(
      engine.command,
      {"create", "--name", spec.holder, "--label", "rose=" + spec.run, "--log-driver", "none", "--network", "none"});
  if (!spec.hostname.empty()) words.insert(words.end(), {"--hostname", spec.hostname});
  for (const std::string& limit : spec.limits) words.insert(words.end(), {"--ulimit", limit});
  words.insert(words.end(), {"--volume", fmt::format("{}:{}:ro", spec.enter.string(), ROSE_ENTER_FOLDER),
                             "--security-opt", "label=disable", "--cap-drop", "ALL", "--entrypoint",
                             fmt::format("{}/{}", ROSE_ENTER_FOLDER, ROSE_ENTER_PROGRAM), image, ROSE_ENTER_HOLD});
  return words;
}

Result<std::vector<pid_t>> start_holders(const Engine& engine, const std::vector<std::string>& names) {
  std::vector<std::string> words = joined(engine.command, {"start"});
  words.insert(words.end(), names.begin(), names.end());
  ROSE_TRY([[maybe_unused]] const std::string started,
           ask_engine(words, "start the containers that hold the nodes' networks", kPull));
  words = joined(engine.command, {"inspect", "--format", "{{.State.Pid}}"});
  words.insert(words.end(), names.begin(), names.end());
  ROSE_TRY(const std::string answer,
           ask_engine(words, "inspect the containers that hold the nodes' networks", kEngineAnswer));
  std::vector<pid_t> pids;
  for (const std::string& line : split(answer, '\n'))
    if (const long pid = std::strtol(line.c_str(), nullptr, 10); pid > 0) pids.push_back(static_cast<pid_t>(pid));
  if (pids.size() != names.size())
    return fail(ErrorKind::environment,
                fmt::format("of {} containers that hold the nodes' networks, {} run on this machine", names.size(),
                            pids.size()),
                "the engine's daemon must run on this machine");
  return pids;
}

Result<std::vector<std::string>> making_words(const Engine& engine, const ContainerSpec& spec, bool starts) {
  std::vector<std::string> words = engine.command;
  const auto add = [&words](std::initializer_list<std::string> more) { words.insert(words.end(), more); };
  // The container has no log driver, because the node's output goes directly to the node's files.
  add({starts ? "run" : "create", "--name", spec.name, "--label", "rose=" + spec.run, "--log-driver", "none"});
  if (!spec.holder.empty()) {
    add({"--network", "container:" + spec.holder});
  } else {
    if (!spec.netns.empty() && !engine.podman)
      return fail(ErrorKind::input, "docker can only join the network namespace of a container");
    if (!spec.netns.empty()) add({"--network", "ns:" + spec.netns});
    else add({"--network", "host"});
    if (!spec.hostname.empty()) add({"--hostname", spec.hostname});
  }
  if (!spec.pid_of.empty()) add({"--pid", "container:" + spec.pid_of});
  if (!spec.ipc_of.empty()) add({"--ipc", "container:" + spec.ipc_of});
  // Without this option, podman would copy names of this machine into /etc/hosts. If the user mounts a volume at
  // /etc/hosts or /etc/resolv.conf, the volume takes precedence over rose's file.
  if (engine.podman) add({"--no-hosts"});
  for (const auto& [file, place] : {std::pair(spec.hosts, "/etc/hosts"), std::pair(spec.resolver, "/etc/resolv.conf")})
    if (!file.empty() &&
        std::none_of(spec.volumes.begin(), spec.volumes.end(), [&, at = place](const std::string& one) {
          const std::vector<std::string> parts = split(one, ':');
          return parts.size() > 1 && parts[1] == at;
        }))
      add({"--volume", fmt::format("{}:{}", file.string(), place)});
  for (const auto& [name, value] : spec.env) add({"--env", fmt::format("{}={}", name, value)});
  for (const std::string& volume : spec.volumes) add({"--volume", volume});
  add({"--volume", fmt::format("{}:{}:ro", spec.enter.string(), ROSE_ENTER_FOLDER), "--security-opt", "label=disable"});
  for (const std::string& limit : spec.limits) add({"--ulimit", limit});
  if (!spec.user.empty()) add({"--user", spec.user});
  words.insert(words.end(), spec.options.begin(), spec.options.end());
  // Without this option, the engine would run the image's health check in addition to rose's.
  add({"--no-healthcheck", "--entrypoint", fmt::format("{}/{}", ROSE_ENTER_FOLDER, ROSE_ENTER_PROGRAM), spec.image});
  return words;
}

std::vector<std::string> start_words(const Engine& engine, const std::string& name) {
  return joined(engine.command, {"start", "--attach", name});
}

std::vector<std::string> remove_words(const Engine& engine, const std::vector<std::string>& names, bool joined) {
  std::vector<std::string> words = rose::deploy::joined(engine.command, {"rm", "--force", "--volumes"});
  if (engine.podman && joined) words.emplace_back("--depend");
  if (engine.podman) words.insert(words.end(), {"--time", "0", "--ignore"});
  words.insert(words.end(), names.begin(), names.end());
  return words;
}

std::vector<std::string> make_volume_words(const Engine& engine, const std::string& name) {
  return joined(engine.command, {"volume", "create", name});
}

std::vector<std::string> find_volume_words(const Engine& engine, const std::string& name) {
  return joined(engine.command, {"volume", "inspect", "--format", "{{.Mountpoint}}", name});
}

std::vector<std::string> remove_volume_words(const Engine& engine, const std::string& name) {
  return joined(engine.command, {"volume", "rm", "--force", name});
}

namespace {

// Podman lowers two of its own limits (nofile and nproc) to 32768 before it starts a container, so a container could
// not get a higher value. The constant is just below that limit.
constexpr rlim_t kMostOfPodman = 32767;

}  // namespace

std::vector<std::string> permitted_limits(const std::vector<std::string>& asked,
                                          const std::map<std::string, std::uint64_t>& highest,
                                          std::vector<std::string>& lowered) {
  std::vector<std::string> limits;
  for (const std::string& limit : asked) {
    const std::size_t equals = limit.find('=');
    const std::string name = limit.substr(0, equals);
    const auto most = highest.find(name);
    if (equals == std::string::npos || most == highest.end()) {
      limits.push_back(limit);
      continue;
    }
    bool changed = false;
    std::string values;
    for (const std::string& word : split(std::string_view(limit).substr(equals + 1), ':')) {
      std::uint64_t value = 0;
      const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
      const bool number = error == std::errc() && end == word.data() + word.size();
      const bool endless = word == "-1" || word == "unlimited";
      const bool too_high = endless || error == std::errc::result_out_of_range || (number && value > most->second);
      changed = changed || too_high;
      values += (values.empty() ? "" : ":") + (too_high ? std::to_string(most->second) : word);
    }
    if (changed) lowered.push_back(fmt::format("{} is {} instead of {}", name, values, limit.substr(equals + 1)));
    limits.push_back(name + "=" + values);
  }
  return limits;
}

std::vector<std::string> permitted_limits(const Engine& engine, const std::vector<std::string>& asked,
                                          std::vector<std::string>& lowered) {
  if (!engine.podman || kernel::effective_capabilities().has(CAP_SYS_RESOURCE)) return asked;
  std::map<std::string, std::uint64_t> highest;
  const auto add = [&highest](const char* name, auto resource) {
    rlimit limit{};
    if (::getrlimit(resource, &limit) != 0) return;
    const bool lowers = resource == RLIMIT_NOFILE || resource == RLIMIT_NPROC;
    const rlim_t most = lowers ? std::min(limit.rlim_max, kMostOfPodman) : limit.rlim_max;
    if (most != RLIM_INFINITY) highest[name] = most;
  };
  add("as", RLIMIT_AS);
  add("core", RLIMIT_CORE);
  add("cpu", RLIMIT_CPU);
  add("data", RLIMIT_DATA);
  add("fsize", RLIMIT_FSIZE);
  add("locks", RLIMIT_LOCKS);
  add("memlock", RLIMIT_MEMLOCK);
  add("msgqueue", RLIMIT_MSGQUEUE);
  add("nice", RLIMIT_NICE);
  add("nofile", RLIMIT_NOFILE);
  add("nproc", RLIMIT_NPROC);
  add("rss", RLIMIT_RSS);
  add("rtprio", RLIMIT_RTPRIO);
  add("rttime", RLIMIT_RTTIME);
  add("sigpending", RLIMIT_SIGPENDING);
  add("stack", RLIMIT_STACK);
  return permitted_limits(asked, highest, lowered);
}

std::vector<std::string> inherited_limits() {
  if (kernel::effective_capabilities().has(CAP_SYS_RESOURCE)) return {};
  std::vector<std::string> limits;
  const auto add = [&limits](const char* name, auto resource) {
    rlimit limit{};
    if (::getrlimit(resource, &limit) != 0) return;
    const auto text = [](rlim_t value) { return std::to_string(std::min(value, kMostOfPodman)); };
    limits.push_back(fmt::format("{}={}:{}", name, text(limit.rlim_cur), text(limit.rlim_max)));
  };
  add("nofile", RLIMIT_NOFILE);
  add("nproc", RLIMIT_NPROC);
  return limits;
}

std::string undo_line(const std::vector<std::string>& words) {
  std::string line;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string variable = *entry;
    if (is_engines(variable) && variable.find_first_of("\t\n") == std::string::npos) line += variable + "\t";
  }
  for (const std::string& word : words) line += word + "\t";
  line.pop_back();
  return line;
}

std::vector<std::string> undo_words(const std::string& line, const std::string& id) {
  std::vector<std::string> words{"/usr/bin/env"};
  bool names = false;
  bool removes = false;
  for (const std::string& word : split(line, '\t')) {
    words.push_back(word);
    names = names || word.starts_with(id + "-");
    removes = removes || word == "rm";
  }
  if (!names || !removes) return {};
  return words;
}

}  // namespace rose::deploy
