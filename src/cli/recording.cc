#include "cli/recording.h"

#include <chrono>
#include <thread>

#include "base/cancel.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/log.h"
#include "base/units.h"
#include "cli/command.h"
#include "cli/targets.h"

namespace rose::cli {
namespace {

constexpr std::int64_t kLastPatience = 60'000'000'000;

}  // namespace

std::vector<Option> recording_options(RecordingOptions& options) {
  const std::string group = "When to write the window (always on SIGUSR1, 'rose dump' and at the end)";
  return {
      {.names = "--dump-when",
       .slot = &options.when,
       .value = "CMD",
       .help = "When this shell command exits with 0; 1 means no, and anything else means that it could not decide. "
               "After a hit, it must exit with 1 before it can trigger another dump",
       .group = group,
       .completes = Completes::file},
      {.names = "--dump-every",
       .slot = &options.every,
       .value = "DURATION",
       .help = "How often to run --dump-when",
       .group = group,
       .otherwise = "5s"},
      {.names = "--dump-timeout",
       .slot = &options.timeout,
       .value = "DURATION",
       .help = "How long --dump-when may take",
       .group = group,
       .otherwise = "30s"},
      {.names = "--dump-on-crash",
       .slot = &options.on_crash,
       .help = "When a signal killed a process of a target, or a main process (given by pid, or started by -c) exited "
               "with a status other than 0; stops by 'rose node' do not count",
       .group = group},
      {.names = "--dump-on-log",
       .slot = &options.on_log,
       .value = "FILE:REGEX",
       .help = "When a new line of this file matches (RE2: ECMAScript syntax without back references and lookaround); "
               "the file may be rotated or created later",
       .group = group,
       .one_each = true,
       .completes = Completes::file},
      {.names = "--dump-together",
       .slot = &options.together,
       .help = "When a trigger on another host made the tracer there write a dump to the folder of -o, which the hosts "
               "share. A failure on one host is then recorded on all hosts",
       .group = group},
      {.names = "--after",
       .slot = &options.after,
       .value = "DURATION",
       .help = "Wait this long after the trigger before writing, so that the window also contains what follows the "
               "trigger",
       .group = group},
      {.names = "--dump-cooldown",
       .slot = &options.cooldown,
       .value = "DURATION",
       .help = "At most one dump by --dump-when, --dump-on-crash, --dump-on-log and --dump-together in this time",
       .group = group,
       .otherwise = "60s"},
      {.names = "-o,--output",
       .slot = &options.out,
       .value = "FILE",
       .help = "Where to write the window: the newest dump is FILE, earlier ones are FILE.1, FILE.2, ...; in a folder "
               "(a name that ends in '/') each dump has its own name",
       .group = group,
       .completes = Completes::file},
      {.names = "--keep-dumps",
       .slot = &options.keep,
       .value = "N",
       .help = "How many earlier dumps to keep; in a folder, how many dumps of this host",
       .group = group,
       .range = {{0, 1000}}},
      {.names = "--recordings",
       .slot = &options.recordings,
       .value = "[NODE=]FOLDER",
       .help = "Recordings of librose-rr to copy to FILE.recordings/NODE when the window is written; recordings of "
               "processes that run when tracing starts are found automatically",
       .group = group,
       .one_each = true,
       .completes = Completes::folder},
      {.names = "--recordings-size",
       .slot = &options.recordings_size,
       .value = "SIZE",
       .help = "Limit for the recordings of one dump; 0B: none is copied",
       .group = group,
       .otherwise = "256MiB"},
      {.names = "--control",
       .slot = &options.control,
       .value = "SOCK",
       .help = "Control socket for 'rose dump'",
       .group = group,
       .completes = Completes::file},
  };
}

Result<observe::TriggerOptions> trigger_options(const RecordingOptions& options) {
  observe::TriggerOptions triggers;
  triggers.oracle = options.when;
  triggers.on_crash = options.on_crash;
  if (options.when.empty() && !options.every.empty())
    return fail(ErrorKind::usage, "--dump-every needs --dump-when: the command to run");
  if (options.when.empty() && !options.timeout.empty())
    return fail(ErrorKind::usage, "--dump-timeout needs --dump-when: the command to run");
  if (!options.cooldown.empty() && options.when.empty() && !options.on_crash && options.on_log.empty() &&
      !options.together)
    return fail(ErrorKind::usage,
                "--dump-cooldown needs --dump-when, --dump-on-crash, --dump-on-log or --dump-together: requested dumps "
                "are never delayed");
  if (!options.every.empty()) {
    ROSE_TRY(triggers.every_ns, duration_option("--dump-every", options.every));
    if (triggers.every_ns < 10'000'000)
      return fail(ErrorKind::usage, fmt::format("--dump-every: {} is too often", options.every), "10ms is the least");
  }
  if (!options.timeout.empty()) {
    ROSE_TRY(triggers.oracle_timeout_ns, duration_option("--dump-timeout", options.timeout));
  }
  if (!options.after.empty()) {
    ROSE_TRY(triggers.after_ns, duration_option("--after", options.after));
  }
  if (!options.cooldown.empty()) {
    ROSE_TRY(triggers.cooldown_ns, duration_option("--dump-cooldown", options.cooldown));
  }
  if (options.together) {
    std::error_code ignored;
    triggers.together = options.out;
    if (options.out.empty() || (options.out.back() != '/' && !std::filesystem::is_directory(options.out, ignored)))
      return fail(
          ErrorKind::usage,
          fmt::format("--dump-together needs a folder that the hosts share, and -o names the file '{}'", options.out),
          "write -o /net/incidents/ or the like");
  }
  for (const std::string& text : options.on_log) {
    ROSE_TRY(triggers.logs.emplace_back(), observe::parse_log_watch("--dump-on-log", text));
  }
  return triggers;
}

Result<observe::DumpFiles> open_dump_files(const RecordingOptions& options) {
  return observe::DumpFiles::open(options.out, options.keep, host_name());
}

Result<std::shared_ptr<observe::RecordingSources>> recording_sources(const RecordingOptions& options,
                                                                     const std::vector<std::string>& nodes) {
  std::uint64_t most = observe::kRecordingBytes;
  if (!options.recordings_size.empty()) {
    Result<std::uint64_t> bytes = parse_size(options.recordings_size);
    if (!bytes)
      return Unexpected(Error{ErrorKind::usage, "--recordings-size: " + bytes.error().message, bytes.error().hint});
    most = *bytes;
  }
  if (most == 0 && !options.recordings.empty())
    return fail(ErrorKind::usage, "--recordings and --recordings-size 0B exclude each other");
  auto sources = std::make_shared<observe::RecordingSources>(most);
  for (const std::string& text : options.recordings) {
    const std::size_t equals = text.find('=');
    const std::string node = equals == std::string::npos ? nodes.front() : text.substr(0, equals);
    const std::string folder = equals == std::string::npos ? text : text.substr(equals + 1);
    if (node.empty() || folder.empty())
      return fail(ErrorKind::usage, fmt::format("--recordings '{}' is not [NODE=]FOLDER", text));
    if (equals == std::string::npos ? nodes.size() > 1 : std::find(nodes.begin(), nodes.end(), node) == nodes.end())
      return fail(ErrorKind::usage,
                  equals == std::string::npos ? fmt::format("--recordings {}: NODE is missing", folder)
                                              : fmt::format("--recordings: no node '{}' is traced", node),
                  fmt::format("write NODE=FOLDER, NODE being one of {}", fmt::join(nodes, ", ")));
    std::error_code ignored;
    if (!std::filesystem::exists(folder, ignored)) log::info("--recordings: {} does not exist yet", folder);
    if (auto added = sources->add(node, folder, ""); !added)
      return Unexpected(std::move(added).error().in("--recordings"));
  }
  return sources;
}

Result<std::unique_ptr<Recording>> Recording::start(const RecordingOptions& options,
                                                    const std::filesystem::path& own_socket,
                                                    const observe::TriggerOptions& triggers, observe::Tracer& tracer,
                                                    observe::DumpFiles files) {
  std::unique_ptr<Recording> recording(new Recording(tracer, std::move(files)));
  const std::filesystem::path socket = options.control.empty() ? own_socket : std::filesystem::path(options.control);
  Result<std::unique_ptr<observe::ControlServer>> control = observe::ControlServer::start(
      socket,
      [&tracer](const trace::DumpWriter::Sink& sink) -> Result<std::string> {
        ROSE_TRY(const observe::DumpTotals totals, tracer.write_dump(sink, [](trace::Meta& meta) {
          meta.trigger = observe::Cause{observe::TriggerKind::control, "rose dump"}.text();
        }));
        return fmt::format("{} events, {} lost", totals.events, totals.lost);
      },
      [sources = recording->files().sources()] { return sources ? sources->open() : observe::OpenRecordings(); });
  if (control) recording->control_ = std::move(*control);
  else if (!options.control.empty() || control.error().kind != ErrorKind::usage)
    return Unexpected(std::move(control).error());
  else log::warning("{}; this tracer reacts to SIGUSR1 only", control.error().message);
  ROSE_TRY(recording->triggers_, observe::Triggers::start(triggers, tracer, recording->recorder_));
  return recording;
}

void Recording::stop() {
  control_.reset();
  if (!triggers_) return;
  tally_ = triggers_->stop();
  triggers_.reset();
}

Result<observe::WrittenDump> write_last(const std::filesystem::path& out,
                                        const std::function<Result<observe::WrittenDump>()>& write) {
  const unsigned asked = cancel::times();
  const cancel::Patience listening;  // a further Ctrl-C ends this wait but not rose
  const std::int64_t until = monotonic_ns() + kLastPatience;
  for (bool reported = false;;) {
    Result<observe::WrittenDump> written = write();
    std::error_code missing;
    const std::filesystem::file_status there = std::filesystem::status(out, missing);
    const bool may_pass = !std::filesystem::exists(there) || std::filesystem::is_regular_file(there) ||
                          std::filesystem::is_directory(there);
    if (written || !may_pass || monotonic_ns() >= until) return written;
    if (!reported) {
      log::error(written.error().message,
                 fmt::format("nothing else contains this window: trying again for {}, or until Ctrl-C",
                             format_duration(kLastPatience)));
    }
    reported = true;
    for (int tenth = 0; tenth < 10; ++tenth) {
      if (cancel::times() != asked) return written;
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
    }
  }
}

observe::Cause Recording::last_cause(observe::Cause otherwise) const {
  if (!tally_.pending) return otherwise;
  observe::Cause cause = *tally_.pending;
  cause.what += "; written at the end";
  return cause;
}

void add_recorded(Json& json, const std::vector<observe::WrittenDump>& dumps, const observe::TriggerTally& tally) {
  json["dumps"] = Json::array();
  for (const observe::WrittenDump& dump : dumps) {
    json["dumps"].push_back({{"file", dump.file.empty() ? Json(nullptr) : Json(dump.file.string())},
                             {"trigger", dump.trigger},
                             {"events", dump.size.events},
                             {"lost", dump.size.lost},
                             {"ts", dump.ts_ns},
                             {"recordings", dump.recording_files()}});
  }
  json["left_out"] = tally.left_out;
  if (tally.oracle.asked != 0)
    json["oracle"] = {{"asked", tally.oracle.asked}, {"hits", tally.oracle.hits}, {"unclear", tally.oracle.unclear}};
}

}  // namespace rose::cli
