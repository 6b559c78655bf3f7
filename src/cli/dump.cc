// rose dump: asks a running tracer for its window; shows, merges and imports dumps.
#include <cstdlib>

#include "base/file.h"
#include "base/log.h"
#include "base/text.h"
#include "cli/command.h"
#include "cli/page.h"
#include "observe/control.h"
#include "replay/runs_folder.h"
#include "report/dump/perfetto.h"
#include "report/dump/show.h"
#include "report/dump/summary.h"
#include "trace/dump.h"
#include "trace/jsonl.h"
#include "trace/merge.h"

#include <nlohmann/json.hpp>

namespace rose::cli {
namespace {

struct DumpOptions {
  std::string control;
  std::string out = "dump.bin";
  std::string after;
};

struct ShowOptions {
  std::string file;
  std::optional<std::string> format;
  std::string node;
  std::vector<std::string> types;
  std::string since;
  std::string until;
  bool summary = false;
  std::string profile;
};

struct MergeOptions {
  std::vector<std::string> files;
  std::string out;
  std::vector<std::string> clocks;
  bool no_clock = false;
};

struct ImportOptions {
  std::string file;
  std::string out;
};

void print_written(const Common& common, const std::string& out, const trace::Trace& trace) {
  if (common.json)
    print(nlohmann::ordered_json{{"dump", out}, {"events", trace.events.size()}, {"lost", trace.meta.lost}}.dump() + "\n");
  else if (!common.quiet)
    print(fmt::format("{}: {} events\n", out, trace.events.size()));
}

// Inside a run that is traced, its tracer; else the one at the usual place; else a `rose trace -c` that runs, if there is but one.
Result<std::filesystem::path> tracer_to_ask() {
  if (const char* run = std::getenv("ROSE_RUN_DIR"); run != nullptr && *run != '\0') {
    std::filesystem::path socket = std::filesystem::path(run) / observe::kRunSocket;
    if (observe::answers(socket)) return socket;
  }
  std::filesystem::path usual = observe::default_control_socket();
  if (observe::answers(usual)) return usual;
  const char* base = std::getenv("TMPDIR");
  auto sockets = replay::in_runs_folders(base != nullptr && *base != '\0' ? base : "/tmp", observe::kRunSocket);
  std::erase_if(sockets, [](const std::filesystem::path& socket) { return !observe::answers(socket); });
  if (sockets.size() == 1) return sockets[0];
  if (sockets.empty()) return usual;  // asking it says what is wrong
  std::string list;
  for (const auto& socket : sockets) list += (list.empty() ? "" : ", ") + socket.string();
  return fail(ErrorKind::usage, fmt::format("{} tracers run: {}", sockets.size(), list), "choose one with --control");
}

Result<int> dump(const DumpOptions& options, const Common& common) {
  std::int64_t after_ns = 0;
  if (!options.after.empty()) {
    ROSE_TRY(after_ns, duration_option("--after", options.after));
  }
  std::filesystem::path socket = options.control;
  if (options.control.empty()) {
    ROSE_TRY(socket, tracer_to_ask());
  }
  ROSE_TRY(const std::string said, observe::request_dump(socket, options.out, after_ns));
  if (common.json)
    print(nlohmann::ordered_json{{"dump", options.out}, {"answer", said}}.dump() + "\n");
  else if (!common.quiet)
    print(fmt::format("{}: {}\n", printable(options.out), printable(said)));
  return 0;
}

Result<int> show(const ShowOptions& options, const Common& common) {
  if (!options.profile.empty() && !options.summary)
    return fail(ErrorKind::usage, "--profile needs --summary: it says what is new against the profile");
  if (options.summary && options.format)
    return fail(ErrorKind::usage, "--summary does not go with --format: it has a text form and, with --json, a JSON form");
  ROSE_TRY(const trace::ReadDump read, trace::read_dump(options.file));
  ROSE_TRY(const std::optional<profile::Profile> profile, load_profile(options.profile));
  report::ShowFilter filter;
  if (!options.node.empty()) filter.node = options.node;
  for (const std::string& name : options.types)
    for (const auto type : {trace::EventType::scf, trace::EventType::af, trace::EventType::nd, trace::EventType::ps,
                            trace::EventType::sys})
      if (name == trace::type_name(type)) filter.types.insert(type);
  if (!options.since.empty()) {
    ROSE_TRY(filter.since_ns, report::parse_moment("--since", options.since, read.trace));
  }
  if (!options.until.empty()) {
    ROSE_TRY(filter.until_ns, report::parse_moment("--until", options.until, read.trace));
  }
  ROSE_CHECK(report::check_filter(filter, read.trace));
  const std::string format = common.json ? "jsonl" : options.format.value_or("text");
  const profile::Profile* normal = profile ? &*profile : nullptr;
  if (options.summary && common.json)
    report::show_summary_json(read.trace, filter, normal, print);
  else if (options.summary)
    report::show_summary(read.trace, filter, normal, print);
  else if (format == "jsonl")
    report::show_jsonl(read.trace, filter, print);
  else if (format == "perfetto")
    report::show_perfetto(read.trace, filter, print);
  else if (format == "html")
    print(report::dump_html(read.trace, filter, options.file, page_context({})));
  else
    report::show_text(read.trace, filter, print);
  if (read.damage) return Unexpected(*read.damage);
  return 0;
}

// "HOST=+12.5ms"
Result<std::pair<std::string, std::int64_t>> clock_option(const std::string& text) {
  const auto equals = text.rfind('=');
  if (equals == std::string::npos || equals == 0)
    return fail(ErrorKind::usage, fmt::format("--clock '{}': no host is named", text),
                "give how far a host's clock is ahead of the first dump's, e.g. --clock db2=+12.5ms or db2=-3s");
  std::string amount = text.substr(equals + 1);
  const bool behind = amount.starts_with('-');
  if (behind || amount.starts_with('+')) amount.erase(0, 1);
  ROSE_TRY(const std::int64_t ns, duration_option("--clock", amount));
  return std::pair(text.substr(0, equals), behind ? -ns : ns);
}

Result<int> merge(const MergeOptions& options, const Common& common) {
  trace::MergeOptions how;
  how.estimate_clocks = !options.no_clock;
  for (const std::string& text : options.clocks) {
    ROSE_TRY(how.ahead_ns.emplace_back(), clock_option(text));
  }
  std::vector<trace::Trace> traces;
  for (const std::string& file : options.files) {
    ROSE_TRY(traces.emplace_back(), load_trace(file));
  }
  std::vector<trace::MergedClock> clocks;
  ROSE_TRY(const trace::Trace merged, trace::merge(traces, how, &clocks));
  ROSE_CHECK(trace::write_dump(merged, options.out));
  if (!common.json) {
    print_written(common, options.out, merged);
    for (const auto& clock : clocks)
      if (!clock.text.empty() && !common.quiet) print(clock.text + "\n");
    return 0;
  }
  nlohmann::ordered_json told = nlohmann::ordered_json::array();
  for (const auto& clock : clocks) {
    nlohmann::ordered_json one{{"host", clock.host}, {"known", clock.known}, {"given", clock.given}};
    one["ahead_ms"] = clock.known ? nlohmann::ordered_json(static_cast<double>(clock.ahead_ns) / 1e6) : nullptr;
    one["error_ms"] = clock.known && !clock.given ? nlohmann::ordered_json(static_cast<double>(clock.error_ns) / 1e6) : nullptr;
    one["handshakes"] = clock.handshakes;
    told.push_back(std::move(one));
  }
  print(nlohmann::ordered_json{
            {"dump", options.out}, {"events", merged.events.size()}, {"lost", merged.meta.lost}, {"clocks", told}}
            .dump() + "\n");
  return 0;
}

Result<int> import(const ImportOptions& options, const Common& common) {
  ROSE_TRY(const trace::Trace imported, trace::read_jsonl(options.file));
  ROSE_CHECK(trace::write_dump(imported, options.out));
  print_written(common, options.out, imported);
  return 0;
}

Command show_command() {
  auto options = std::make_shared<ShowOptions>();
  return {
      .name = "show",
      .summary = "Print the events of a dump",
      .description =
          "--summary says first what failed, how often, where, first and last. The JSON Lines of --format jsonl are lossless: 'rose dump "
          "import' makes a dump of them. --format perfetto is for ui.perfetto.dev, --format html a page with a time line that fetches "
          "nothing. Of a damaged dump it prints what is readable, then exits with 2.",
      .examples = {"rose dump show dump.bin --summary --profile profile.json", "rose dump show dump.bin --format html > dump.html"},
      .options =
          {
              {.names = "file", .slot = &options->file, .value = "FILE", .help = "The dump", .required = true, .completes = Completes::file},
              {.names = "--format", .slot = &options->format, .value = "FORMAT", .help = "How to print it", .otherwise = "text",
               .choices = {"text", "jsonl", "perfetto", "html"}},
              {.names = "--node", .slot = &options->node, .value = "NODE", .help = "Only events of this node", .completes = Completes::node},
              {.names = "--type", .slot = &options->types, .value = "TYPE", .help = "Only events of these types", .by_commas = true,
               .choices = {"scf", "af", "nd", "ps", "sys"}},
              {.names = "--since", .slot = &options->since, .value = "T",
               .help = "From here on: 2.5s after the first event, -10s before the last, or nanoseconds"},
              {.names = "--until", .slot = &options->until, .value = "T", .help = "Up to here: as --since"},
              {.names = "--summary", .slot = &options->summary, .help = "What failed, how often, where, instead of single events"},
              {.names = "--profile", .slot = &options->profile, .value = "FILE",
               .help = "With --summary: what is new against this profile, what happens more often than there, what is usual",
               .completes = Completes::file},
          },
      .run = [options](const Common& common) { return show(*options, common); },
  };
}

Command merge_command() {
  auto options = std::make_shared<MergeOptions>();
  return {
      .name = "merge",
      .summary = "Merge dumps of several hosts by timestamp",
      .description =
          "Tracers note when TCP handshakes arrive; from those of both ends it estimates how far the hosts' clocks are apart, and puts all "
          "events on the first dump's time line. The offset, its error, and how many handshakes it comes from are told and kept.",
      .examples = {"rose dump merge n1.bin n2.bin -o all.bin", "rose dump merge *.bin -o all.bin"},
      .options =
          {
              {.names = "files", .slot = &options->files, .value = "FILE", .help = "Dumps or JSON Lines files", .required = true,
               .completes = Completes::file},
              {.names = "-o,--output", .slot = &options->out, .value = "FILE", .help = "Where the merged dump is written", .required = true,
               .completes = Completes::file},
              {.names = "--clock", .slot = &options->clocks, .value = "HOST=OFFSET",
               .help = "How far a host's clock is ahead of the first dump's, e.g. db2=+12.5ms; instead of estimating it"},
              {.names = "--no-clock", .slot = &options->no_clock, .help = "Leave the times as they are: estimate no clock offsets"},
          },
      .run = [options](const Common& common) { return merge(*options, common); },
  };
}

Command import_command() {
  auto options = std::make_shared<ImportOptions>();
  return {
      .name = "import",
      .summary = "Turn JSON Lines, also of other tools, into a dump",
      .description =
          "A line is one event, as 'rose dump show --format jsonl' prints it. Fields may be null or absent. Unknown fields are left out "
          "with one warning, unknown types refused.",
      .examples = {"rose dump import events.jsonl -o dump.bin", "rose dump show dump.bin --format jsonl | head"},
      .options =
          {
              {.names = "file", .slot = &options->file, .value = "EVENTS.jsonl", .help = "The events, one JSON object a line",
               .required = true, .completes = Completes::file},
              {.names = "-o,--output", .slot = &options->out, .value = "FILE", .help = "Where the dump is written", .required = true,
               .completes = Completes::file},
          },
      .run = [options](const Common& common) { return import(*options, common); },
  };
}

}  // namespace

Command dump_command() {
  auto options = std::make_shared<DumpOptions>();
  return {
      .name = "dump",
      .summary = "Ask a running tracer for its window; show, merge and import dumps",
      .synopsis = {"[--control SOCK] [-o FILE] [--after DURATION]", "show|merge|import ..."},
      .description =
          "Without a command of its own it asks the running 'rose trace' for the events it has, and writes them to a file; the tracer goes "
          "on. The file is readable by its owner alone.",
      .examples = {"rose dump -o dump.bin --after 10s", "rose dump show dump.bin --type scf,ps --since -30s"},
      .options =
          {
              {.names = "--control", .slot = &options->control, .value = "SOCK", .help = "The tracer's control socket",
               .completes = Completes::file},
              {.names = "-o,--output", .slot = &options->out, .value = "FILE", .help = "Where the dump is written",
               .completes = Completes::file},
              {.names = "--after", .slot = &options->after, .value = "DURATION",
               .help = "Wait this long first, so the window holds what comes after the trigger"},
          },
      .commands = {show_command(), merge_command(), import_command()},
      .environment = {{"ROSE_RUN_DIR", "Inside a run of 'rose trace -c': the tracer of this run is asked."}},
      .files = {{"/run/rose/trace.sock", "The tracer's control socket, unless --control names another. If nobody answers there, a 'rose trace -c' that runs is asked."}},
      .run = [options](const Common& common) { return dump(*options, common); },
  };
}

}  // namespace rose::cli
