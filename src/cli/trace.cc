// rose trace: the flight recorder. Attaches to what runs, starts a command, or (-c) stands in for
// production: starts the deployment, runs its workload with an incident beside it, and dumps.
#include <fcntl.h>
#include <linux/capability.h>
#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <thread>

#include "base/cancel.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/units.h"
#include "cli/command.h"
#include "cli/targets.h"
#include "kernel/privilege.h"
#include "observe/control.h"
#include "observe/tracer.h"
#include "replay/repeat.h"
#include "trace/dump.h"

namespace rose::cli {
namespace {

struct Options {
  TargetOptions targets;
  std::vector<std::string> command;
  std::string config;
  std::string incident;
  std::string profile;
  std::optional<std::uint64_t> window;
  std::string memory;
  std::vector<std::string> interfaces;
  std::string network_delay;
  std::string pause;
  std::string control;
  std::string out = "dump.bin";
  std::string duration;
  std::vector<std::string> functions;
  std::vector<std::string> binaries;
  bool keep = false;
};

Result<void> override_options(const Options& options, observe::TracerOptions& tracer) {
  if (options.window) tracer.window = *options.window;
  if (!options.memory.empty()) {
    Result<std::uint64_t> bytes = parse_size(options.memory);
    if (!bytes) return Unexpected(Error{ErrorKind::usage, "--memory: " + bytes.error().message, bytes.error().hint});
    if (*bytes < (std::uint64_t{1} << 20))
      return fail(ErrorKind::usage, fmt::format("--memory: {} is too little", options.memory), "1MiB is the least");
    tracer.memory = *bytes;
  }
  if (!options.network_delay.empty()) {
    ROSE_TRY(tracer.network_delay_ns, duration_option("--network-delay", options.network_delay));
  }
  if (!options.pause.empty()) {
    ROSE_TRY(tracer.pause_ns, duration_option("--pause", options.pause));
  }
  tracer.interfaces = options.interfaces;
  return {};
}

// Writes the window to -o at each SIGUSR1 while a tracer runs.
class DumpOnSignal {
 public:
  DumpOnSignal(observe::Tracer& tracer, std::filesystem::path out)
      : stop_(::eventfd(0, EFD_CLOEXEC)), thread_([this, &tracer, out = std::move(out)] {
          for (;;) {
            pollfd watched[2] = {{cancel::dump_fd(), POLLIN, 0}, {stop_.get(), POLLIN, 0}};
            ::poll(watched, 2, -1);
            if ((watched[1].revents & POLLIN) != 0) return;
            std::uint64_t count = 0;
            if (::read(cancel::dump_fd(), &count, sizeof count) <= 0) continue;
            const Result<observe::DumpTotals> written = tracer.write_dump(out);
            if (written)
              log::info("wrote {}", out.string());
            else
              log::error(written.error().message, written.error().hint);
          }
        }) {}
  DumpOnSignal(const DumpOnSignal&) = delete;
  DumpOnSignal& operator=(const DumpOnSignal&) = delete;
  ~DumpOnSignal() {
    const std::uint64_t one = 1;
    [[maybe_unused]] const ssize_t n = ::write(stop_.get(), &one, sizeof one);
    thread_.join();
  }

 private:
  Fd stop_;
  std::thread thread_;
};

// SIGUSR1 and the control socket, for as long as a tracer runs.
struct Triggers {
  std::unique_ptr<observe::ControlServer> control;
  std::unique_ptr<DumpOnSignal> signal;

  // Without --control, a deployment's tracer gives way when the default socket is taken: it is not
  // the one that production's operators talk to.
  static Result<Triggers> start(const Options& options, observe::Tracer& tracer) {
    Triggers triggers;
    const std::filesystem::path socket =
        options.control.empty() ? observe::default_control_socket() : std::filesystem::path(options.control);
    Result<std::unique_ptr<observe::ControlServer>> control =
        observe::ControlServer::start(socket, [&tracer](const trace::DumpWriter::Sink& sink) -> Result<std::string> {
          ROSE_TRY(const observe::DumpTotals totals, tracer.write_dump(sink));
          return fmt::format("{} events, {} lost", totals.events, totals.lost);
        });
    if (control)
      triggers.control = std::move(*control);
    else if (!options.control.empty() || control.error().kind != ErrorKind::usage)
      return Unexpected(std::move(control).error());
    else
      log::warning("{}; this tracer answers to SIGUSR1 only", control.error().message);
    triggers.signal = std::make_unique<DumpOnSignal>(tracer, options.out);
    return triggers;
  }
};

using Counts = std::array<std::uint64_t, 6>;  // by number of trace::EventType

Counts counts_of(const trace::Trace& trace) {
  Counts counts{};
  for (const trace::Event& event : trace.events) counts[static_cast<std::size_t>(event.type)] += event.count;
  return counts;
}

nlohmann::ordered_json event_counts(const Counts& counts) {
  nlohmann::ordered_json json;
  for (const auto type : {trace::EventType::scf, trace::EventType::af, trace::EventType::nd, trace::EventType::ps,
                          trace::EventType::sys})
    json[std::string(trace::type_name(type))] = counts[static_cast<std::size_t>(type)];
  return json;
}

void print_result(const Common& common, nlohmann::ordered_json json, const std::string& headline) {
  if (common.json) {
    print(json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n");
    return;
  }
  std::string counts;
  for (const auto& [type, count] : json["events"].items()) counts += fmt::format(" {} {}", count.get<std::uint64_t>(), type);
  print(fmt::format("{}{}:{}; {} lost\n", headline, json["dump"].get<std::string>(), counts, json["lost"].get<std::uint64_t>()));
}

// A child that waits for the word before it executes the command, so that not one call is missed.
class HeldCommand {
 public:
  // Called before any thread exists: only then may a fork do more than execute.
  static Result<HeldCommand> fork_held(const std::vector<std::string>& argv) {
    int go[2];
    int failed[2];
    if (::pipe2(go, O_CLOEXEC) != 0 || ::pipe2(failed, O_CLOEXEC) != 0)
      return fail_errno(ErrorKind::environment, "pipe", errno);
    HeldCommand command;
    command.name_ = argv.front();
    command.pid_ = ::fork();
    if (command.pid_ < 0) return fail_errno(ErrorKind::environment, "fork", errno);
    if (command.pid_ == 0) {
      char word = 0;
      ::close(go[1]);
      if (::read(go[0], &word, 1) != 1) ::_exit(127);  // rose gave up
      std::vector<char*> arguments;
      for (const std::string& argument : argv) arguments.push_back(const_cast<char*>(argument.c_str()));
      arguments.push_back(nullptr);
      ::execvp(arguments[0], arguments.data());
      const int error = errno;
      [[maybe_unused]] const ssize_t n = ::write(failed[1], &error, sizeof error);
      ::_exit(127);
    }
    ::close(go[0]);
    ::close(failed[1]);
    command.go_ = Fd(go[1]);
    command.failed_ = Fd(failed[0]);
    command.pidfd_ = Fd(static_cast<int>(::syscall(SYS_pidfd_open, command.pid_, 0)));
    return command;
  }
  HeldCommand(HeldCommand&& other) noexcept
      : name_(std::move(other.name_)), pid_(std::exchange(other.pid_, 0)), go_(std::move(other.go_)),
        failed_(std::move(other.failed_)), pidfd_(std::move(other.pidfd_)) {}
  HeldCommand& operator=(HeldCommand&&) = delete;
  ~HeldCommand() { end(); }

  [[nodiscard]] pid_t pid() const { return pid_; }
  [[nodiscard]] int pidfd() const { return pidfd_.get(); }

  Result<void> let_go() {
    if (::write(go_.get(), "g", 1) != 1) return fail_errno(ErrorKind::environment, "cannot start the command", errno);
    go_.reset();
    int error = 0;
    if (::read(failed_.get(), &error, sizeof error) == sizeof error)
      return fail(ErrorKind::usage, fmt::format("cannot run '{}': {}", name_, std::strerror(error)));
    return {};
  }

  // How it ended, in words; ends it first when it is still there.
  std::string end() {
    if (pid_ <= 0) return {};
    go_.reset();
    pollfd watched{pidfd_.get(), POLLIN, 0};
    if (::poll(&watched, 1, 0) == 0) {
      ::kill(pid_, SIGTERM);
      if (::poll(&watched, 1, 5000) == 0) ::kill(pid_, SIGKILL);
    }
    int status = 0;
    ::waitpid(pid_, &status, 0);
    pid_ = 0;
    return WIFSIGNALED(status) ? fmt::format("'{}' was ended by signal {}", name_, WTERMSIG(status))
                               : fmt::format("'{}' exited with status {}", name_, WEXITSTATUS(status));
  }

 private:
  HeldCommand() = default;
  std::string name_;
  pid_t pid_ = 0;
  Fd go_, failed_, pidfd_;
};

// Would root be let into this folder without privilege? ACLs may say yes where this says no, never the other way round.
bool open_to_root(const std::filesystem::path& file) {
  struct stat folder {};
  const auto parent = file.has_parent_path() ? file.parent_path() : std::filesystem::path(".");
  if (::stat(parent.c_str(), &folder) != 0) return false;
  if (folder.st_uid == ::geteuid()) return (folder.st_mode & S_IWUSR) != 0;
  if (folder.st_gid == ::getegid()) return (folder.st_mode & S_IWGRP) != 0;
  return (folder.st_mode & S_IWOTH) != 0;
}

// A tracer runs all year: once attached, it keeps what it still needs, and what it executes gets no more. -- CMD was
// made before and keeps everything.
Result<void> give_up_privileges(observe::Tracer& tracer, const std::filesystem::path& out, const std::filesystem::path& control,
                                bool has_command) {
  kernel::Capabilities keep = tracer.still_needed();
  if (::geteuid() == 0) {
    // Root without privilege is one user among others.
    if (!open_to_root(out) || (!control.empty() && !open_to_root(control))) keep.add(CAP_DAC_OVERRIDE);
    if (has_command) keep.add(CAP_KILL);
  }
  keep = keep & kernel::effective_capabilities();
  ROSE_CHECK(kernel::drop_capabilities(keep));
  log::debug("attached; capabilities kept: {}", kernel::to_text(keep));
  return {};
}

Result<int> trace_running(const Options& options, const Common& common) {
  std::int64_t duration_ns = 0;
  if (!options.duration.empty()) {
    ROSE_TRY(duration_ns, duration_option("--duration", options.duration));
  }
  observe::TracerOptions tracer_options;
  ROSE_CHECK(override_options(options, tracer_options));
  tracer_options.host_node = host_name();
  ROSE_CHECK(check_output("-o", options.out));
  ROSE_TRY(const std::optional<profile::Profile> profile, load_profile(options.profile));
  ROSE_TRY(std::vector<observe::Target> targets, resolve_targets(options.targets));
  std::optional<HeldCommand> command;
  if (!options.command.empty()) {
    ROSE_TRY(HeldCommand held, HeldCommand::fork_held(options.command));
    command.emplace(std::move(held));
    targets.emplace_back().node = host_name();
    targets.back().pids = {command->pid()};
  }
  for (observe::Target& target : targets) {
    for (const std::string& binary : options.binaries) target.binaries.emplace_back(binary);
    if (!target.binaries.empty()) target.functions = options.functions;
    if (!profile) continue;
    for (const profile::FunctionRate& function : profile->functions) {
      if (!function.infrequent || !(function.node == target.node || function.node == "*")) continue;
      if (std::find(target.binaries.begin(), target.binaries.end(), function.binary) == target.binaries.end())
        target.binaries.emplace_back(function.binary);
      target.functions.push_back(function.function);
    }
  }
  ROSE_CHECK(cancel::install(true));

  const std::int64_t began = monotonic_ns();
  ROSE_TRY(const std::unique_ptr<observe::Tracer> tracer, observe::Tracer::start(tracer_options, targets));
  ROSE_CHECK(give_up_privileges(*tracer, options.out, options.control, command.has_value()));
  ROSE_TRY(const Triggers triggers, Triggers::start(options, *tracer));
  log::info("tracing {} {}; ready: SIGUSR1 or 'rose dump' writes the window, Ctrl-C writes {} and ends", targets.size(),
            targets.size() == 1 ? "node" : "nodes", options.out);
  if (command) ROSE_CHECK(command->let_go());

  while (!cancel::requested()) {
    const std::int64_t left = duration_ns == 0 ? 3'600'000'000'000 : began + duration_ns - monotonic_ns();
    if (left <= 0) break;
    pollfd watched[2] = {{cancel::fd(), POLLIN, 0}, {command ? command->pidfd() : -1, POLLIN, 0}};
    const timespec ts{left / 1'000'000'000, left % 1'000'000'000};
    ::ppoll(watched, 2, &ts, nullptr);
    if ((watched[1].revents & POLLIN) != 0) break;
  }
  ROSE_TRY(const observe::DumpTotals totals, tracer->write_dump(options.out));
  if (command) log::info("{}", command->end());
  print_result(common,
               {{"dump", options.out},
                {"events", event_counts(totals.by_type)},
                {"lost", totals.lost},
                {"suppressed", totals.suppressed},
                {"seconds", static_cast<double>(monotonic_ns() - began) / 1e9}},
               "");
  return 0;
}

// The incident runs in the run directory; a script that is named at its beginning, relative to here, is meant from here.
std::string from_here(const std::string& incident) {
  const std::size_t end = std::min(incident.find_first_of(" \t\n;&|<>()$`'\"\\*?["), incident.size());
  const std::string script = incident.substr(0, end);
  const bool whole = end == incident.size() || std::string_view(" \t\n;&|<>").find(incident[end]) != std::string_view::npos;
  std::error_code ignored;
  if (!whole || script.find('/') == std::string::npos || script.front() == '/' ||
      !std::filesystem::is_regular_file(script, ignored))
    return incident;
  std::string quoted = "'";
  for (const char c : std::filesystem::absolute(script, ignored).string()) quoted += c == '\'' ? "'\\''" : std::string(1, c);
  return quoted + "'" + incident.substr(end);
}

Result<int> trace_deployment(const Options& options, const Common& common) {
  ROSE_TRY(const config::Config config, config::read_config(options.config));
  ROSE_CHECK(replay::need_workload_and_oracle(config));
  ROSE_TRY(const std::optional<profile::Profile> profile, load_profile(options.profile));
  replay::RunOptions run_options;
  run_options.tracer = replay::tracer_options(config);
  ROSE_CHECK(override_options(options, run_options.tracer));
  run_options.tracer.host_node = host_name();
  run_options.cut_short_is_result = true;  // Ctrl-C ends the recording, and what was recorded is written
  ROSE_CHECK(check_output("-o", options.out));
  ROSE_CHECK(need_root("trace"));
  ROSE_CHECK(cancel::install(true));
  export_own_name();
  if (profile) run_options.profile = &*profile;
  if (!options.incident.empty()) run_options.incident = from_here(options.incident);
  std::optional<Triggers> triggers;
  std::optional<Error> trigger_error;
  run_options.tracer_ready = [&](observe::Tracer& tracer) {
    Result<Triggers> started = Triggers::start(options, tracer);
    if (started)
      triggers.emplace(std::move(*started));
    else
      trigger_error = std::move(started).error();
    log::info("tracing {} {} of {}; ready", config.nodes.size(), config.nodes.size() == 1 ? "node" : "nodes", config.name);
  };
  run_options.tracer_gone = [&] { triggers.reset(); };

  ROSE_TRY(replay::RunStore store, replay::RunStore::open(std::nullopt, options.keep));
  schedule::Schedule no_faults;
  no_faults.name = config.name;
  ROSE_TRY(const replay::Run made, replay::run_in(store, config, no_faults, run_options));
  if (trigger_error) return Unexpected(std::move(*trigger_error));
  ROSE_CHECK(trace::write_dump(made.result.trace, options.out));
  if (!made.workload.ok()) log::info("the workload {}", made.workload.note);
  if (made.incident && !made.incident->ok()) log::warning("the incident {}", made.incident->note);

  // No fault is planned here: the oracle alone decides.
  const schedule::Verdict verdict = made.result.verdict;
  print_result(common,
               {{"verdict", schedule::verdict_name(verdict)},
                {"dump", options.out},
                {"events", event_counts(counts_of(made.result.trace))},
                {"lost", made.result.trace.meta.lost},
                {"seconds", made.result.seconds},
                {"reason", made.result.reason},
                {"workload", made.workload.note},
                {"incident", made.incident ? nlohmann::ordered_json(made.incident->note) : nlohmann::ordered_json(nullptr)}},
               fmt::format("{}: {}\n", schedule::verdict_name(verdict), made.result.reason));
  switch (verdict) {
    case schedule::Verdict::reproduced: return 0;
    case schedule::Verdict::not_reproduced: return 1;
    case schedule::Verdict::inconclusive: return 4;
  }
  ROSE_BUG("a verdict that is none");
}

Result<int> run(const Options& options, const Common& common) {
  const bool deployment = !options.config.empty();
  const int chosen = (deployment ? 1 : 0) + (options.command.empty() ? 0 : 1) + (options.targets.empty() ? 0 : 1);
  if (chosen == 0)
    return fail(ErrorKind::usage, "nothing to trace",
                "name it: --pid, --cgroup, --unit, --container, --node NAME=..., -c rose.toml, or -- CMD ARG...");
  if (chosen > 1)
    return fail(ErrorKind::usage, "only one of -c rose.toml, running targets (--pid, --cgroup, ...) and -- CMD can be traced");
  if (!deployment && !options.incident.empty())
    return fail(ErrorKind::usage, "--incident needs -c rose.toml: it runs beside the deployment's workload");
  if (deployment && !options.duration.empty())
    return fail(ErrorKind::usage, "--duration does not go with -c rose.toml: the workload's end decides");
  if (deployment && !options.binaries.empty())
    return fail(ErrorKind::usage, "--binary does not go with -c rose.toml: the file names functions and binaries");
  if (!options.functions.empty() && options.binaries.empty())
    return fail(ErrorKind::usage, "--function needs --binary: the file its functions are in");
  return deployment ? trace_deployment(options, common) : trace_running(options, common);
}

}  // namespace

void add_trace(CLI::App& app, Action& action) {
  auto options = std::make_shared<Options>();
  CLI::App* command = add_command(app, "trace", "Record what fails in running systems, in a window that 'rose dump' writes",
                                  "  rose trace --pid $(pidof redis-server) -o dump.bin\n"
                                  "  rose trace -c rose.toml --incident ./incident.sh -o dump.bin");
  command->add_option("--pid", options->targets.pids, "Processes and their descendants")->type_name("PID")->group("What to trace");
  command->add_option("--cgroup", options->targets.cgroups, "Everything in these cgroups (v2), also once they are made again")->type_name("PATH")->group("What to trace");
  command->add_option("--unit", options->targets.units, "systemd units, running or not yet; followed through restarts")->type_name("UNIT")->group("What to trace");
  command->add_option("--container", options->targets.containers, "Containers: an id or its beginning (docker, podman, containerd, CRI-O), a name, or pod:UID")->type_name("ID")->group("What to trace");
  command->add_option("--node", options->targets.nodes, "A node by name: NAME=pid:PID, cgroup:PATH, unit:UNIT or container:ID")
      ->type_name("NAME=WHAT")->group("What to trace");
  command->add_option("-c,--config", options->config, "Start this deployment and its workload, and trace every node")->type_name("FILE")->group("What to trace");
  command->add_option("--incident", options->incident, "With -c: a shell command beside the workload that makes the failure happen, in the run directory")
      ->type_name("CMD")->group("What to trace");
  command->add_option("command", options->command, "After --: start this command and trace it")->type_name("CMD")->group("What to trace");
  command->add_option("--profile", options->profile, "Watch the functions that this profile calls infrequent")->type_name("FILE");
  command->add_option("--binary", options->binaries, "Files whose functions --function names")->type_name("FILE");
  command->add_option("--function", options->functions, "Functions to watch: names or globs")->type_name("NAME");
  command->add_option("--window", options->window, "Events to keep")->check(CLI::Range(std::uint64_t{1000}, std::uint64_t{100'000'000}));
  command->add_option("--memory", options->memory, "Memory to keep them in (default 64MiB)")->type_name("SIZE");
  command->add_option("--interface", options->interfaces, "Watch the network here instead of at the targets' sockets")->type_name("IF");
  command->add_option("--network-delay", options->network_delay, "Silence of a connection that counts (default 5s)")->type_name("DURATION");
  command->add_option("--pause", options->pause, "Pause of a process that counts (default 3s)")->type_name("DURATION");
  command->add_option("--control", options->control, "Control socket that 'rose dump' talks to")->type_name("SOCK");
  command->add_option("-o,--output", options->out, "Where the window is written")->capture_default_str();
  command->add_option("--duration", options->duration, "End by itself after this long")->type_name("DURATION");
  command->add_flag("--keep", options->keep, "With -c: keep the run directory");
  command->callback([options, &action] { action = [options](const Common& c) { return run(*options, c); }; });
}

}  // namespace rose::cli
