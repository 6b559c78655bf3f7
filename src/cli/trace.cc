// rose trace: the flight recorder. Attaches to running processes or starts a command. With -c, no production system is
// needed: rose starts the test deployment, runs its workload together with an incident, and writes a dump.
#include <linux/capability.h>
#include <poll.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <set>

#include "base/cancel.h"
#include "base/clock.h"
#include "base/held_child.h"
#include "base/json.h"
#include "base/log.h"
#include "base/program.h"
#include "base/text.h"
#include "base/units.h"
#include "cli/command.h"
#include "cli/java_agent.h"
#include "cli/recording.h"
#include "cli/targets.h"
#include "deploy/environment.h"
#include "deploy/image_files.h"
#include "kernel/privilege.h"
#include "observe/binaries.h"
#include "observe/tracer.h"
#include "replay/alone.h"
#include "replay/repeat.h"
#include "trace/dump.h"
#include "trace/limits.h"

namespace rose::cli {
namespace {

// kHotFunctionRate: a function that is entered more often per second is detached, because production pays for every
// entry. kHotFunctionShare: with a profile, the limit is this multiple of the rate that the profile calls infrequent.
// Runs with -c are short, so for them only the total cost of all functions is limited.
constexpr double kHotFunctionRate = 100;
constexpr double kHotFunctionShare = 50;

struct TraceOptions {
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
  RecordingOptions recording;
  std::string duration;
  std::vector<std::string> noise;
  std::vector<std::string> functions;
  std::vector<std::string> binaries;
  std::string java_agent;
  std::vector<std::string> java_exceptions;
  bool keep = false;
};

Result<void> override_options(const TraceOptions& options, observe::TracerOptions& tracer) {
  if (options.window) tracer.window = *options.window;
  if (!options.memory.empty()) {
    Result<std::uint64_t> bytes = parse_size(options.memory);
    if (!bytes) return Unexpected(Error{ErrorKind::usage, "--memory: " + bytes.error().message, bytes.error().hint});
    if (*bytes < (std::uint64_t{1} << 20))
      return fail(ErrorKind::usage, fmt::format("--memory: {} is not enough", options.memory), "the minimum is 1MiB");
    tracer.memory = *bytes;
  }
  if (!options.network_delay.empty()) {
    ROSE_TRY(tracer.network_delay_ns, duration_option("--network-delay", options.network_delay));
  }
  if (!options.pause.empty()) {
    ROSE_TRY(tracer.pause_ns, duration_option("--pause", options.pause));
  }
  tracer.interfaces = options.interfaces;
  ROSE_TRY(tracer.labels, resolve_labels(options.targets));
  for (const std::string& rule : options.noise) {
    if (auto changed = kernel::change_noise(tracer.noise, rule); !changed)
      return Unexpected(std::move(changed).error().in("--noise"));
  }
  return {};
}

Json event_counts(const observe::DumpTotals& totals) {
  Json json;
  for (const auto type :
       {trace::EventType::scf, trace::EventType::af, trace::EventType::nd, trace::EventType::ps, trace::EventType::sys})
    json[std::string(trace::type_name(type))] = totals.by_type[static_cast<std::size_t>(type)];
  return json;
}

void print_result(const Common& common, Json json, const std::string& headline) {
  if (common.json) {
    print(json_line(json));
    return;
  }
  std::string counts;
  for (const auto& [type, count] : json["events"].items())
    counts += fmt::format(" {} {}", count.get<std::uint64_t>(), type);
  print(fmt::format("{}{}:{}; {} lost\n", headline, printable(json["dump"].get<std::string>()), counts,
                    json["lost"].get<std::uint64_t>()));
}

// True if root, without privileges, could write to the folder `file` or, if `file` is no folder, to the folder that
// contains it. ACLs may allow more than this function finds, but never less.
bool open_to_root(const std::filesystem::path& file) {
  struct stat folder{};
  std::error_code ignored;
  const auto parent = std::filesystem::is_directory(file, ignored) ? file
                      : file.has_parent_path()                     ? file.parent_path()
                                                                   : std::filesystem::path(".");
  if (::stat(parent.c_str(), &folder) != 0) return false;
  if (folder.st_uid == ::geteuid()) return (folder.st_mode & S_IWUSR) != 0;
  if (folder.st_gid == ::getegid()) return (folder.st_mode & S_IWGRP) != 0;
  return (folder.st_mode & S_IWOTH) != 0;
}

// Reduces privileges. A tracer runs permanently, so once attached it keeps only what it still needs, and the programs
// that it executes get no more. The command after `--` was forked before and keeps all privileges; --dump-when may do
// whatever the user who set it can do.
Result<void> give_up_privileges(observe::Tracer& tracer, const RecordingOptions& recording, bool has_command,
                                bool has_recordings) {
  kernel::Capabilities keep = tracer.still_needed();
  auto commands = kernel::Commands::as_weak;
  if (::geteuid() == 0) {
    // Without privileges, root is subject to ordinary permissions.
    if (!open_to_root(recording.out) || (!recording.control.empty() && !open_to_root(recording.control)))
      keep.add(CAP_DAC_OVERRIDE);
    // This capability is needed to open new files of other users: rotation replaces the log files of servers, and
    // restarted processes create new recordings.
    if (!recording.on_log.empty() || has_recordings) keep.add(CAP_DAC_READ_SEARCH);
    if (has_command || !recording.when.empty()) keep.add(CAP_KILL);
    if (!recording.when.empty()) commands = kernel::Commands::as_root;
  }
  keep = keep & kernel::effective_capabilities();
  ROSE_CHECK(kernel::drop_capabilities(keep, commands));
  log::debug("attached; capabilities kept: {}", kernel::to_text(keep));
  return {};
}

// The functions that the profile calls infrequent on the node. If the profile does not contain the name, it is the name
// of a host, which may run any of the profile's nodes.
std::vector<observe::ProfiledFunction> rare_functions(const profile::Profile& profile, const std::string& node) {
  std::vector<observe::ProfiledFunction> functions;
  for (const auto& [function, binary] : profile::rare_functions(profile, profile.syscalls.contains(node) ? node : ""))
    functions.push_back({function, binary});
  return functions;
}

Result<int> trace_running(const TraceOptions& options, const Common& common) {
  std::int64_t duration_ns = 0;
  if (!options.duration.empty()) {
    ROSE_TRY(duration_ns, duration_option("--duration", options.duration));
  }
  observe::TracerOptions tracer_options;
  ROSE_CHECK(override_options(options, tracer_options));
  tracer_options.host_node = host_name();
  tracer_options.hot_function_rate = kHotFunctionRate;
  ROSE_TRY(const observe::TriggerOptions triggers, trigger_options(options.recording));
  if (duration_ns != 0 && triggers.after_ns >= duration_ns)
    return fail(ErrorKind::usage,
                fmt::format("--after {} is not shorter than --duration {}", options.recording.after, options.duration));
  ROSE_TRY(observe::DumpFiles files, open_dump_files(options.recording));
  ROSE_TRY(const std::optional<profile::Profile> profile, load_profile(options.profile, profile::Part::functions));
  if (profile) tracer_options.hot_function_rate = kHotFunctionShare * profile->infrequent_below;
  ROSE_TRY(std::vector<observe::Target> targets, resolve_targets(options.targets));
  if (const std::size_t unnamed = options.targets.units.size() + options.targets.containers.size(); unnamed > 1)
    log::info("{} units and containers form one node, '{}'; --node NAME=container:ID or NAME=unit:UNIT separates them",
              unnamed, host_name());
  // A cgroup is the same in all PID namespaces; a process id is not.
  const bool by_number =
      std::any_of(targets.begin(), targets.end(), [](const observe::Target& target) { return !target.pids.empty(); });
  if (by_number || !options.command.empty()) ROSE_CHECK(need_process_ids("trace"));
  std::optional<HeldChild> command;
  if (!options.command.empty()) {
    // Fork before any thread exists.
    ROSE_TRY(HeldChild held, HeldChild::fork_held(options.command, HeldChild::Kind::shares_terminal));
    command.emplace(std::move(held));
    targets.emplace_back().node = host_name();
    targets.back().pids = {command->pid()};
  }
  for (observe::Target& target : targets) {
    for (const std::string& binary : options.binaries) target.binaries.emplace_back(binary);
    target.functions = options.functions;
    if (profile) target.profiled = rare_functions(*profile, target.node);
  }
  std::vector<std::string> nodes;
  for (const observe::Target& target : targets) nodes.push_back(target.node);
  ROSE_TRY(const auto sources, recording_sources(options.recording, nodes));
  sources->follow(targets);
  files.take_along(sources);
  if (!options.java_agent.empty()) {
    ROSE_TRY(std::filesystem::path agent, java_agent_in(options.java_agent));
    if (!observe::any_maps(targets, agent))
      log::warning("no traced process has loaded '{}' so far: Java methods are traced once a JVM is started with it",
                   agent.string());
    tracer_options.method_agents = {std::move(agent)};
  }
  ROSE_CHECK(cancel::install(true));

  const std::int64_t began = monotonic_ns();
  ROSE_TRY(const std::unique_ptr<observe::Tracer> tracer, observe::Tracer::start(tracer_options, targets));
  ROSE_CHECK(give_up_privileges(*tracer, options.recording, command.has_value(), !sources->empty()));
  ROSE_TRY(const std::unique_ptr<Recording> recording,
           Recording::start(options.recording, observe::default_control_socket(), triggers, *tracer, std::move(files)));
  log::info("tracing {} {}; ready: SIGUSR1{} writes the window, Ctrl-C writes {} and ends", targets.size(),
            targets.size() == 1 ? "node" : "nodes", recording->has_socket() ? " or 'rose dump'" : "",
            options.recording.out);
  if (command) ROSE_CHECK(command->release());

  bool ended = false;
  while (!cancel::requested() && !ended) {
    const std::int64_t left = duration_ns == 0 ? 3'600'000'000'000 : began + duration_ns - monotonic_ns();
    if (left <= 0) break;
    pollfd watched[2] = {{cancel::fd(), POLLIN, 0}, {command ? command->pidfd() : -1, POLLIN, 0}};
    const timespec ts{left / 1'000'000'000, left % 1'000'000'000};
    ::ppoll(watched, 2, &ts, nullptr);
    ended = (watched[1].revents & POLLIN) != 0;
  }
  recording->stop();
  observe::Cause why{observe::TriggerKind::end, cancel::requested() ? "interrupted" : "--duration is over"};
  std::string how;
  const auto end_command = [&] {
    const std::optional<int> status = command->end(5000);
    how = command->describe(status.value_or(0));
    if (!ended || !status) return;
    // The dump that follows is the first one after the end of the command, so the command's end is its cause.
    const bool failed = WIFSIGNALED(*status) || WEXITSTATUS(*status) != 0;
    why = {failed && triggers.on_crash ? observe::TriggerKind::crash : observe::TriggerKind::end, how};
  };
  if (command && ended) end_command();
  if (why.kind == observe::TriggerKind::end) why = recording->last_cause(why);
  ROSE_TRY(const observe::WrittenDump last, write_last(options.recording.out, [&] { return recording->write(why); }));
  if (command && !ended) end_command();
  if (command) log::info("{}", how);
  Json result = {{"dump", last.file.string()},
                 {"events", event_counts(last.size)},
                 {"lost", last.size.lost},
                 {"suppressed", last.size.suppressed},
                 {"seconds", static_cast<double>(monotonic_ns() - began) / 1e9}};
  add_recorded(result, recording->files().written(), recording->tally());
  print_result(common, std::move(result), "");
  return 0;
}

// The incident runs in the run directory, but a relative path to a script at its beginning refers to the current
// directory. Therefore this path is made absolute.
std::string from_here(const std::string& incident) {
  const std::size_t end = std::min(incident.find_first_of(" \t\n;&|<>()$`'\"\\*?["), incident.size());
  const std::string script = incident.substr(0, end);
  const bool whole =
      end == incident.size() || std::string_view(" \t\n;&|<>").find(incident[end]) != std::string_view::npos;
  std::error_code ignored;
  if (!whole || script.find('/') == std::string::npos || script.front() == '/' ||
      !std::filesystem::is_regular_file(script, ignored))
    return incident;
  return shell_quoted(std::filesystem::absolute(script, ignored).string()) + incident.substr(end);
}

// If the incident begins with the path of a script, the script must exist and be executable before anything starts.
Result<void> check_incident(const std::string& incident) {
  const std::string script = incident.substr(0, incident.find_first_of(" \t\n;&|<>()"));
  if (script.find_first_of("$`'\"\\*?[={") != std::string::npos) return {};
  if (script.find('/') == std::string::npos) {
    if (!is_program(script) || !program_in_path(script).empty()) return {};
    return fail(ErrorKind::usage, fmt::format("--incident: '{}' is not a command", script),
                fmt::format("for the file in this folder write './{}'", script));
  }
  if (::access(script.c_str(), X_OK) == 0 && !std::filesystem::is_directory(script)) return {};
  const bool there = std::filesystem::exists(script);
  // It is known only during the run whether a shell finds a name relative to the run directory.
  if (!there && script.front() != '/' && !script.starts_with("./") && !script.starts_with("../")) return {};
  return fail(ErrorKind::usage,
              fmt::format("--incident: {} {}", script, there ? "cannot be executed" : "does not exist"),
              there ? fmt::format("chmod +x {}, or name its interpreter: sh {}", script, script)
                    : "its path is relative to this folder, but it runs in the run directory");
}

// Leaves out the oldest events until the dump fits into the room, and counts them as lost. Each step drops the older
// half, because the packed size of a part is known only once it is packed.
Result<std::uint64_t> shorten(trace::Trace& trace, const observe::DumpRoom& room) {
  std::uint64_t left_out = 0;
  std::optional<std::uint64_t> granted;  // requested only once
  for (;;) {
    ROSE_TRY(const std::string bytes, trace::dump_to_bytes(trace));
    if (!granted) granted = room(bytes.size());
    if (bytes.size() <= *granted || trace.events.empty()) return left_out;
    const std::size_t fewer = (trace.events.size() + 1) / 2;
    trace.events.erase(trace.events.begin(), trace.events.begin() + static_cast<std::ptrdiff_t>(fewer));
    trace.meta.lost += fewer;
    left_out += fewer;
  }
}

// Why the incident may not have made the failure happen, or why a diagnosis will not find it in the dump.
std::string advice_on_incident(const replay::Run& run, bool kept) {
  const trace::Trace& trace = run.result.trace;
  constexpr std::int64_t kContinues_ns = 500'000'000;  // longer than the children of a killed process take to end
  std::set<std::string> planned, partly;
  std::set<std::pair<trace::StringId, std::int32_t>> seen;
  for (auto end = trace.events.begin(); end != trace.events.end(); ++end) {
    seen.emplace(end->node, end->pid);
    if (end->type != trace::EventType::ps) continue;
    const bool crashed = end->state == trace::ProcessState::crashed;
    if (!crashed && end->state != trace::ProcessState::exited) continue;
    const auto is_other = [&](const trace::Event& later) {
      return later.node == end->node && later.pid != end->pid && later.ts_ns > end->ts_ns + kContinues_ns &&
             later.type != trace::EventType::ps && seen.contains({later.node, later.pid});
    };
    if ((end->flags & trace::kPlanned) != 0) planned.emplace(trace.str(end->node));
    else if (crashed && (end->flags & trace::kMain) != 0 && std::any_of(end, trace.events.end(), is_other))
      partly.emplace(trace.str(end->node));
  }
  std::string text;
  if (!planned.empty())
    text += fmt::format(
        "stopped by 'rose node', which the dump records as planned and not as a failure: {}; if this was the "
        "incident and not the workload, send signals instead\n",
        fmt::join(planned, ", "));
  if (run.result.verdict == schedule::Verdict::reproduced) return text;
  if (!partly.empty())
    text += fmt::format(
        "only the main process was killed, and other processes of the node continued: {}; to end a node, kill all "
        "processes in $ROSE_CGROUP_NODE/cgroup.procs\n",
        fmt::join(partly, ", "));
  if (!run.oracle_line.empty()) text += fmt::format("the oracle printed: {}\n", printable(run.oracle_line));
  if (!kept) text += "--keep keeps the run's folder, with incident.log, oracle.log and the logs of the nodes\n";
  return text;
}

Result<int> trace_deployment(const TraceOptions& options, const Common& common) {
  ROSE_TRY(config::Config config, config::read_config(options.config));
  ROSE_TRY(const auto image_files, deploy::take_programs_out(config));
  ROSE_CHECK(check_incident(options.incident));
  ROSE_CHECK(replay::need_workload_and_oracle(config));
  ROSE_TRY(const std::optional<profile::Profile> profile, load_profile(options.profile, profile::Part::functions));
  replay::RunOptions run_options;
  run_options.tracer = replay::tracer_options(config);
  ROSE_CHECK(override_options(options, run_options.tracer));
  run_options.tracer.host_node = host_name();
  run_options.needs_work = true;
  run_options.cut_short_is_result = true;  // Ctrl-C ends the recording, and its result is written
  ROSE_TRY(const observe::TriggerOptions triggers, trigger_options(options.recording));
  ROSE_TRY(observe::DumpFiles files, open_dump_files(options.recording));
  std::vector<std::string> nodes;
  for (const config::Node& node : config.nodes) nodes.push_back(node.name);
  ROSE_TRY(const auto sources, recording_sources(options.recording, nodes));
  ROSE_CHECK(need_root("trace"));
  ROSE_CHECK(need_process_ids("trace"));
  ROSE_CHECK(cancel::install(true));
  export_own_name();
  if (profile) run_options.profile = &*profile;
  if (!options.incident.empty()) run_options.incident = from_here(options.incident);
  std::unique_ptr<Recording> recording;
  std::optional<Error> recording_error;
  run_options.tracer_ready = [&](observe::Tracer& tracer, const std::filesystem::path& run_dir) {
    for (const config::Node& node : config.nodes) {
      if (!node.record) continue;
      if (auto added = sources->add(node.name, run_dir / node.name, deploy::kRecordingName); !added)
        log::warning("{}", added.error().message);
    }
    files.take_along(sources);
    // The socket is in the run's folder, so that several recordings can run in parallel.
    const std::filesystem::path socket = run_dir / observe::kRunSocket;
    Result<std::unique_ptr<Recording>> started =
        Recording::start(options.recording, socket, triggers, tracer, std::move(files));
    if (started) recording = std::move(*started);
    else recording_error = std::move(started).error();
    log::info("tracing {} {} of {}; ready", config.nodes.size(), config.nodes.size() == 1 ? "node" : "nodes",
              config.name);
    if (recording && options.recording.control.empty())
      log::debug("'rose dump --control {}' writes this tracer's window", socket.string());
  };
  run_options.tracer_gone = [&] {
    if (recording) recording->stop();
  };

  // Recordings of nodes are in the run's directory. The user asked for them, so keep the directory whatever the verdict
  // is.
  const bool records =
      std::any_of(config.nodes.begin(), config.nodes.end(), [](const config::Node& node) { return node.record; });
  ROSE_TRY(replay::RunStore store, replay::RunStore::open(std::nullopt, options.keep || records, "trace", config.file));
  schedule::Schedule no_faults;
  no_faults.name = config.name;
  ROSE_TRY(replay::Run made, replay::run_in(store, config, no_faults, run_options));
  if (recording_error) return Unexpected(std::move(*recording_error));
  observe::DumpFiles& dumps = recording ? recording->files() : files;
  const observe::Cause end{observe::TriggerKind::end, cancel::requested() ? "interrupted" : "the run is over"};
  const observe::Cause why = recording ? recording->last_cause(end) : end;
  made.result.trace.meta.trigger = why.text();
  const auto write = [&](const std::filesystem::path& file,
                         const observe::DumpRoom& room) -> Result<observe::DumpTotals> {
    std::uint64_t left_out = 0;
    if (room) {
      ROSE_TRY(left_out, shorten(made.result.trace, room));
    }
    ROSE_CHECK(trace::write_dump(made.result.trace, file));
    observe::DumpTotals totals = observe::size_of(made.result.trace);
    totals.left_out = left_out;
    return totals;
  };
  ROSE_TRY(const observe::WrittenDump last,
           write_last(options.recording.out, [&] { return dumps.write(why, wall_ns(), write); }));
  // The workload may be the reason why the oracle could not decide.
  if (!made.workload.ok() && made.result.verdict == schedule::Verdict::inconclusive)
    log::warning("the workload {}", made.workload.note);
  else if (!made.workload.ok()) log::info("the workload {}", made.workload.note);
  if (made.incident && !made.incident->ok()) log::warning("the incident {}", made.incident->note);

  // No fault is planned here, so the oracle alone decides.
  const schedule::Verdict verdict = made.result.verdict;
  Json result = {{"verdict", schedule::verdict_name(verdict)},
                 {"dump", last.file.string()},
                 {"events", event_counts(last.size)},
                 {"lost", last.size.lost},
                 {"seconds", made.result.seconds},
                 {"reason", made.result.reason},
                 {"workload", made.workload.note},
                 {"incident", made.incident ? Json(made.incident->note) : Json(nullptr)}};
  add_recorded(result, dumps.written(), recording ? recording->tally() : observe::TriggerTally{});
  std::string text = fmt::format("{}: {}\n", schedule::verdict_name(verdict), made.result.reason);
  if (made.incident) text += advice_on_incident(made, options.keep || records);
  if (records) {
    result["recordings"] = Json::array();
    for (const auto& path : replay::recordings_of(config, made.result.directory)) {
      result["recordings"].push_back(path.string());
      text += fmt::format("recording: {}\n", path.string());
    }
  }
  print_result(common, std::move(result), text);
  switch (verdict) {
    case schedule::Verdict::reproduced: return 0;
    case schedule::Verdict::not_reproduced: return 1;
    case schedule::Verdict::inconclusive: return 4;
  }
  ROSE_BUG("a verdict that is none");
}

// Prints the built-in list as changed by --noise and -c.
Result<int> list_noise(TraceOptions options) {
  std::erase(options.noise, "list");
  observe::TracerOptions tracer;
  if (!options.config.empty()) {
    ROSE_TRY(const config::Config config, config::read_config(options.config));
    tracer = replay::tracer_options(config);
  }
  ROSE_CHECK(override_options(options, tracer));
  for (const std::string& line : kernel::describe_noise(tracer.noise)) print(line + "\n");
  return 0;
}

// Writes the agent for JVMs that rose will trace later.
Result<int> write_agent(const TraceOptions& options, const Common& common) {
  if (options.profile.empty())
    return fail(
        ErrorKind::usage,
        "--java-agent without targets writes the agent, and needs --profile, which determines the methods to watch",
        "name what to trace, or give a profile");
  ROSE_TRY(const std::optional<profile::Profile> profile, load_profile(options.profile, profile::Part::functions));
  return write_java_agent(options.java_agent, *profile, kHotFunctionShare * profile->infrequent_below,
                          options.java_exceptions, common);
}

Result<int> run_trace(const TraceOptions& options, const Common& common) {
  if (std::find(options.noise.begin(), options.noise.end(), "list") != options.noise.end()) return list_noise(options);
  const bool deployment = !options.config.empty();
  const int chosen = (deployment ? 1 : 0) + (options.command.empty() ? 0 : 1) + (options.targets.empty() ? 0 : 1);
  if (deployment && !options.java_agent.empty())
    return fail(
        ErrorKind::usage,
        "--java-agent and -c rose.toml exclude each other: there, rose itself gives the agent to the nodes' JVMs");
  if (chosen == 0 && !options.java_agent.empty()) return write_agent(options, common);
  if (!options.java_exceptions.empty())
    return fail(ErrorKind::usage,
                "--java-exceptions requires --java-agent without targets, which writes the agent's instructions");
  if (chosen == 0)
    return fail(ErrorKind::usage, "nothing to trace",
                "name a target: --pid, --cgroup, --unit, --container, --node NAME=..., -c rose.toml, or -- CMD ARG...");
  if (chosen > 1)
    return fail(ErrorKind::usage, "-c rose.toml, running targets (--pid, --cgroup, ...) and -- CMD exclude each other");
  if (!deployment && !options.incident.empty())
    return fail(ErrorKind::usage, "--incident needs -c rose.toml: it runs beside the deployment's workload");
  if (deployment && !options.duration.empty())
    return fail(ErrorKind::usage, "--duration and -c rose.toml exclude each other: tracing ends with the workload");
  if (deployment && !options.binaries.empty())
    return fail(ErrorKind::usage,
                "--binary and -c rose.toml exclude each other: the file names functions and binaries");
  if (!options.functions.empty() && options.binaries.empty())
    return fail(ErrorKind::usage, "--function needs --binary: the file with the function");
  if (!options.binaries.empty() && options.functions.empty() && options.profile.empty())
    return fail(ErrorKind::usage, "--binary without --function: nothing is watched in it",
                "name functions, or give a --profile");
  return deployment ? trace_deployment(options, common) : trace_running(options, common);
}

}  // namespace

Command trace_command() {
  auto options = std::make_shared<TraceOptions>();
  TargetOptions& targets = options->targets;
  const std::string what = "What to trace";
  Command command = {
      .name = "trace",
      .summary = "Record failures and rare events of running systems in a window that 'rose dump' writes",
      .synopsis =
          {"(--pid PID... | --cgroup PATH... | --unit UNIT... | --container ID... | --node NAME=WHAT...) [OPTION...]",
           "-c rose.toml [--incident CMD] [OPTION...]", "[OPTION...] -- CMD [ARG...]",
           "--java-agent DIR --profile FILE"},
      .description =
          "It traces a system in production at very low cost, and keeps the last events in memory: system calls that "
          "failed, connections that fell silent, processes that crashed, exited or were paused, rare state-changing "
          "calls, and rare functions. It prints one line when it is ready. At SIGUSR1, when 'rose dump' requests it, "
          "and at the triggers below, it writes the window and continues; at SIGINT and SIGTERM, it writes the window "
          "and ends.\n\n--unit, --container and --cgroup select a cgroup by its path: tracing continues when the unit "
          "or container is restarted. A unit may be given before it runs. --pid follows a process and its "
          "descendants. All targets without a name form one node, which has the name of the host.\n\nWith -c, no "
          "production system is needed: the command starts the deployment and its workload, traces every node, runs "
          "the incident in parallel to the workload, runs the oracle at the end, and always writes the "
          "dump.\n\nTracing running processes does not need root: CAP_BPF, CAP_PERFMON and CAP_NET_ADMIN are enough. "
          "When 'rose trace' has attached its programs, it drops the capabilities that it no longer needs.",
      .examples = {"rose trace --unit my-database -o dump.bin",
                   "rose trace --pid $(pidof redis-server) -o dump.bin --dump-on-crash",
                   "rose trace -c rose.toml --incident ./incident.sh -o dump.bin"},
      .options =
          {
              {.names = "--pid",
               .slot = &targets.pids,
               .value = "PID",
               .help = "Processes and their descendants",
               .group = what,
               .completes = Completes::pid},
              {.names = "--cgroup",
               .slot = &targets.cgroups,
               .value = "PATH",
               .help = "Everything in these cgroups (v2), also after they are removed and created again",
               .group = what,
               .completes = Completes::folder},
              {.names = "--unit",
               .slot = &targets.units,
               .value = "UNIT",
               .help = "systemd units, also those that do not run yet; followed through restarts",
               .group = what,
               .completes = Completes::unit},
              {.names = "--container",
               .slot = &targets.containers,
               .value = "ID",
               .help = "Containers: an id or its beginning (docker, podman, containerd, CRI-O), a name, or pod:UID",
               .group = what,
               .completes = Completes::container},
              {.names = "--node",
               .slot = &targets.nodes,
               .value = "NAME=WHAT",
               .help = "A node by name: NAME=pid:PID, cgroup:PATH, unit:UNIT or container:ID",
               .group = what},
              {.names = "--label",
               .slot = &targets.labels,
               .value = "KEY=VALUE",
               .help = "A further name of the nodes, for example cluster=east, to write into the dump beside the names "
                       "of units, containers and pods",
               .group = what,
               .one_each = true},
              {.names = "-c,--config",
               .slot = &options->config,
               .value = "FILE",
               .help = "Start this deployment and its workload, and trace every node",
               .group = what,
               .completes = Completes::file},
              {.names = "--incident",
               .slot = &options->incident,
               .value = "CMD",
               .help =
                   "With -c: a shell command that makes the failure happen; it runs in parallel to the workload, in "
                   "the run directory",
               .group = what,
               .completes = Completes::file},
              {.names = "command",
               .slot = &options->command,
               .value = "CMD",
               .help = "After --: start this command and trace it",
               .group = what,
               .completes = Completes::program},
              {.names = "--profile",
               .slot = &options->profile,
               .value = "FILE",
               .help = "Watch the functions that are infrequent in this profile: those of the node with the target's "
                       "name, or those of all nodes if the profile contains no such node",
               .completes = Completes::file},
              {.names = "--binary",
               .slot = &options->binaries,
               .value = "FILE",
               .help =
                   "Files that contain the functions of --function. For --profile: files to search if the program's "
                   "path in the profile does not exist on this host",
               .completes = Completes::file},
              {.names = "--function",
               .slot = &options->functions,
               .value = "NAME",
               .help = "Functions to watch: names or globs"},
              {.names = "--java-agent",
               .slot = &options->java_agent,
               .value = "DIR",
               .help = "Watch methods of JVMs that were started with the agent in this folder. Without targets: write "
                       "the agent to this folder, for the methods that are infrequent in --profile and return no "
                       "object, and print how to start JVMs with it",
               .completes = Completes::folder},
              {.names = "--java-exceptions",
               .slot = &options->java_exceptions,
               .value = "NAME",
               .help = "When --java-agent writes the agent: also record exceptions that leave these methods (names "
                       "or globs)"},
              {.names = "--window",
               .slot = &options->window,
               .value = "N",
               .help = "Events to keep",
               .otherwise = "1000000",
               .range = {{1000, trace::kMostWindow}}},
              {.names = "--memory",
               .slot = &options->memory,
               .value = "SIZE",
               .help = "Memory for these events",
               .otherwise = "64MiB"},
              {.names = "--interface",
               .slot = &options->interfaces,
               .value = "IF",
               .help = "Watch the network at this interface instead of at the targets' sockets",
               .completes = Completes::interface},
              {.names = "--network-delay",
               .slot = &options->network_delay,
               .value = "DURATION",
               .help = "Shortest silence of a connection that is recorded",
               .otherwise = "5s"},
              {.names = "--pause",
               .slot = &options->pause,
               .value = "DURATION",
               .help = "Shortest pause of a process that is recorded",
               .otherwise = "3s"},
              {.names = "--duration", .slot = &options->duration, .value = "DURATION", .help = "End after this time"},
              {.names = "--keep", .slot = &options->keep, .help = "With -c: keep the run directory"},
              {.names = "--noise",
               .slot = &options->noise,
               .value = "RULE",
               .help = "Expected failures, which are counted and not recorded: CALL:ERROR adds to the built-in list "
                       "('*:ENOENT': every call), -CALL:ERROR removes from it, 'none' clears it, and 'list' prints it",
               .one_each = true},
          },
      .environment = {{"XDG_RUNTIME_DIR", "Folder of the control socket of a user other than root."}},
      .files = {{"/run/rose/trace.sock",
                 "The control socket for 'rose dump', unless --control names another. With -c it is trace.sock in the "
                 "run's folder."}},
      .run = [options](const Common& common) { return run_trace(*options, common); },
  };
  for (Option& option : recording_options(options->recording)) command.options.push_back(std::move(option));
  return command;
}

}  // namespace rose::cli
