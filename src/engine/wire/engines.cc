#include "engine/wire/engines.h"

#include <unistd.h>

#include <algorithm>
#include <set>

#include "base/text.h"

namespace rose::engine {
namespace {

constexpr int kMostWorkers = 1000;

bool looks_like_option(const std::string& text) { return text.empty() || text[0] == '-'; }

}  // namespace

Result<std::vector<std::string>> words_of(const std::string& command) {
  std::vector<std::string> words;
  std::string word;
  bool any = false;
  char quote = 0;
  for (std::size_t i = 0; i < command.size(); ++i) {
    const char c = command[i];
    if (quote == '\'') {
      if (c == quote) quote = 0;
      else word += c;
    } else if (c == '\\' &&
               (quote == 0 || (i + 1 < command.size() && (command[i + 1] == '"' || command[i + 1] == '\\')))) {
      if (++i == command.size())
        return fail(ErrorKind::usage, fmt::format("engine: nothing follows the last \\ of '{}'", printable(command)));
      word += command[i];
      any = true;
    } else if (c == quote) {
      quote = 0;
    } else if (quote == 0 && (c == '\'' || c == '"')) {
      quote = c;
      any = true;
    } else if (quote == 0 && (c == ' ' || c == '\t' || c == '\n')) {
      if (any) words.push_back(std::exchange(word, {}));
      any = false;
    } else {
      word += c;
      any = true;
    }
  }
  if (quote != 0) return fail(ErrorKind::usage, fmt::format("engine: a quote has no end in '{}'", printable(command)));
  if (any) words.push_back(word);
  if (words.empty() || words[0].empty())
    return fail(
        ErrorKind::usage, "engine: the command is empty",
        "accepted are slurm, ssh, kubernetes, local, or a command that starts one worker, such as 'rose worker'");
  return words;
}

Result<Engine> Engine::make(const EngineOptions& options) {
  Engine engine;
  engine.options_ = options;
  if (options.engine == "local") engine.kind_ = EngineKind::local;
  else if (options.engine == "slurm") engine.kind_ = EngineKind::slurm;
  else if (options.engine == "ssh") engine.kind_ = EngineKind::ssh;
  else if (options.engine == "kubernetes") engine.kind_ = EngineKind::kubernetes;
  else engine.kind_ = EngineKind::command;
  const bool asks_for_options =
      engine.kind_ == EngineKind::slurm || engine.kind_ == EngineKind::ssh || engine.kind_ == EngineKind::kubernetes;
  if (!options.options.empty() && !asks_for_options)
    return fail(ErrorKind::usage,
                fmt::format("engine_options are for the engines slurm, ssh and kubernetes, not for '{}'",
                            printable(options.engine)),
                "put the options into the command");
  if (engine.kind_ == EngineKind::local) {
    if (options.workers > 0)
      return fail(ErrorKind::usage, "--workers needs an engine that starts workers",
                  "name it with --engine slurm|ssh|kubernetes|'COMMAND', or use --jobs N on this machine");
    return engine;
  }
  if (options.worker.empty() || options.worker[0] == '-')
    return fail(ErrorKind::usage, fmt::format("worker: '{}' is not the path of a program", printable(options.worker)));
  if (!options.hosts.empty() && engine.kind_ != EngineKind::ssh)
    return fail(ErrorKind::usage, fmt::format("hosts are for the engine ssh, not for '{}'", printable(options.engine)));
  engine.workers_ =
      options.workers > 0
          ? options.workers
          : static_cast<int>(std::max<std::size_t>(1, std::min<std::size_t>(options.hosts.size(), kMostWorkers)));
  if (engine.workers_ > kMostWorkers)
    return fail(ErrorKind::usage, fmt::format("{} workers are more than {}", engine.workers_, kMostWorkers));
  if (engine.kind_ == EngineKind::ssh) {
    if (options.hosts.empty())
      return fail(ErrorKind::usage, "the engine ssh needs hosts: [diagnose] hosts is empty",
                  "hosts = [\"lab-1\", \"root@lab-2\"]");
    for (const std::string& host : options.hosts)
      if (looks_like_option(host))
        return fail(ErrorKind::usage, fmt::format("hosts: '{}' is not a host name", printable(host)));
  }
  if (options.apart && engine.workers_ > 1) {
    const std::set<std::string> hosts(options.hosts.begin(), options.hosts.end());
    if (engine.kind_ == EngineKind::command ||
        (engine.kind_ == EngineKind::ssh &&
         (hosts.size() != options.hosts.size() || static_cast<int>(hosts.size()) < engine.workers_)))
      return fail(
          ErrorKind::usage,
          fmt::format(
              "{} workers could run on one host, and with network = \"host\" their nodes would conflict for its ports",
              engine.workers_),
          "use network = \"netns\", or the engine ssh with a host for each worker");
  }
  if (engine.kind_ == EngineKind::kubernetes &&
      std::none_of(options.options.begin(), options.options.end(),
                   [](const std::string& one) { return one == "--image" || one.starts_with("--image="); }))
    return fail(ErrorKind::usage, "the engine kubernetes needs an image with rose and the nodes' programs",
                "engine_options = [\"--image=registry.example/lab:7\"]");
  if (engine.kind_ == EngineKind::command) {
    ROSE_TRY(engine.command_, words_of(options.engine));
  }
  return engine;
}

std::string Engine::place(int worker, int start) const {
  switch (kind_) {
    case EngineKind::local: return "here";
    case EngineKind::slurm: return "slurm";
    case EngineKind::ssh:
      return options_.hosts[static_cast<std::size_t>(options_.apart ? worker : worker + start) % options_.hosts.size()];
    case EngineKind::kubernetes: return "kubernetes";
    case EngineKind::command: return command_[0];
  }
  return {};
}

std::vector<std::string> Engine::argv(int worker, int start, int number) const {
  std::vector<std::string> argv;
  const auto add = [&](std::initializer_list<std::string> words) { argv.insert(argv.end(), words); };
  const auto add_options = [&] { argv.insert(argv.end(), options_.options.begin(), options_.options.end()); };
  switch (kind_) {
    case EngineKind::slurm:
      // --unbuffered is not used, because it would make the worker's output a terminal.
      add({"srun", "--ntasks=1", "--nodes=1", "--quiet", "--kill-on-bad-exit=1",
           fmt::format("--job-name=rose-worker-{}", number)});
      if (options_.apart) add({"--exclusive"});
      add_options();
      add({options_.worker, "worker"});
      break;
    case EngineKind::ssh:
      add({"ssh", "-T", "-o", "BatchMode=yes", "-o", "ServerAliveInterval=15", "-o", "ServerAliveCountMax=4"});
      add_options();
      add({"--", place(worker, start), shell_word(options_.worker), "worker"});
      break;
    case EngineKind::kubernetes:
      // The pod uses the host's PID namespace, because BPF programs see the host's process ids.
      add({"kubectl", "run", fmt::format("rose-worker-{}-{}", ::getpid(), number), "--restart=Never", "--stdin", "--rm",
           "--quiet", "--privileged", R"(--overrides={"spec":{"hostPID":true}})", "--pod-running-timeout=24h"});
      add_options();
      add({"--command", "--", options_.worker, "worker"});
      break;
    case EngineKind::command:
    case EngineKind::local: argv = command_; break;
  }
  return argv;
}

}  // namespace rose::engine
