// rose dump: asks a running tracer for its window; shows, merges and imports dumps.
#include "base/file.h"
#include "base/log.h"
#include "cli/command.h"
#include "cli/page.h"
#include "observe/control.h"
#include "report/perfetto.h"
#include "report/show.h"
#include "report/summary.h"
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
  std::string format = "text";
  std::string node;
  std::vector<std::string> types;
  std::string since;
  std::string until;
  bool summary = false;
  std::string profile;
  bool format_given = false;
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

Result<int> dump(const DumpOptions& options, const Common& common) {
  std::int64_t after_ns = 0;
  if (!options.after.empty()) {
    ROSE_TRY(after_ns, duration_option("--after", options.after));
  }
  const std::filesystem::path socket =
      options.control.empty() ? observe::default_control_socket() : std::filesystem::path(options.control);
  ROSE_TRY(const std::string said, observe::request_dump(socket, options.out, after_ns));
  if (common.json)
    print(nlohmann::ordered_json{{"dump", options.out}, {"answer", said}}.dump() + "\n");
  else if (!common.quiet)
    print(fmt::format("{}: {}\n", options.out, said));
  return 0;
}

Result<int> show(const ShowOptions& options, const Common& common) {
  if (!options.profile.empty() && !options.summary)
    return fail(ErrorKind::usage, "--profile needs --summary: it says what is new against the profile");
  if (options.summary && options.format_given)
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
  const std::string format = common.json ? "jsonl" : options.format;
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

}  // namespace

void add_dump(CLI::App& app, Action& action) {
  auto options = std::make_shared<DumpOptions>();
  CLI::App* command = add_command(app, "dump", "Ask a running tracer for its window; show, merge and import dumps",
                                  "  rose dump -o dump.bin --after 10s\n  rose dump show dump.bin --type scf,ps --since -30s");
  command->add_option("--control", options->control, "The tracer's control socket")->type_name("SOCK");
  command->add_option("-o,--output", options->out, "Where the dump is written")->capture_default_str();
  command->add_option("--after", options->after, "Wait this long first, so the window holds what comes after the trigger")->type_name("DURATION");
  command->require_subcommand(0, 1);
  command->callback([command, options, &action] {
    if (command->get_subcommands().empty()) action = [options](const Common& c) { return dump(*options, c); };
  });

  auto show_options = std::make_shared<ShowOptions>();
  CLI::App* show_command = add_command(*command, "show", "Print the events of a dump",
                                       "  rose dump show dump.bin --summary --profile profile.json\n  rose dump show dump.bin --format html > dump.html");
  show_command->add_option("file", show_options->file, "The dump")->required()->type_name("FILE");
  show_command->add_option("--format", show_options->format, "How to print it")->capture_default_str()
      ->check(CLI::IsMember({"text", "jsonl", "perfetto", "html"}));
  show_command->add_option("--node", show_options->node, "Only events of this node")->type_name("NODE");
  show_command->add_option("--type", show_options->types, "Only these types: scf, af, nd, ps, sys")->delimiter(',')
      ->check(CLI::IsMember({"scf", "af", "nd", "ps", "sys"}));
  show_command->add_option("--since", show_options->since, "From here on: 2.5s after the first event, -10s before the last, or nanoseconds")->type_name("T");
  show_command->add_option("--until", show_options->until, "Up to here: as --since")->type_name("T");
  show_command->add_flag("--summary", show_options->summary, "What failed, how often, where, instead of single events");
  show_command->add_option("--profile", show_options->profile, "With --summary: what is new against this profile, what happens more often than there, what is usual")
      ->type_name("FILE");
  show_command->callback([show_options, show_command, &action] {
    show_options->format_given = show_command->count("--format") > 0;
    action = [show_options](const Common& c) { return show(*show_options, c); };
  });

  auto merge_options = std::make_shared<MergeOptions>();
  CLI::App* merge_command = add_command(*command, "merge", "Merge dumps of several hosts by timestamp",
                                        "  rose dump merge n1.bin n2.bin -o all.bin\n  rose dump merge *.bin -o all.bin");
  merge_command->add_option("files", merge_options->files, "Dumps or JSON Lines files")->required()->type_name("FILE");
  merge_command->add_option("-o,--output", merge_options->out, "Where the merged dump is written")->required();
  merge_command->add_option("--clock", merge_options->clocks,
                            "How far a host's clock is ahead of the first dump's, e.g. db2=+12.5ms; instead of estimating it")
      ->type_name("HOST=OFFSET");
  merge_command->add_flag("--no-clock", merge_options->no_clock, "Leave the times as they are: estimate no clock offsets");
  merge_command->callback([merge_options, &action] { action = [merge_options](const Common& c) { return merge(*merge_options, c); }; });

  auto import_options = std::make_shared<ImportOptions>();
  CLI::App* import_command = add_command(*command, "import", "Turn JSON Lines, also of other tools, into a dump",
                                         "  rose dump import events.jsonl -o dump.bin\n"
                                         "  rose dump show dump.bin --format jsonl | head");
  import_command->add_option("file", import_options->file, "The events, one JSON object a line")->required()->type_name("EVENTS.jsonl");
  import_command->add_option("-o,--output", import_options->out, "Where the dump is written")->required();
  import_command->callback([import_options, &action] { action = [import_options](const Common& c) { return import(*import_options, c); }; });
}

}  // namespace rose::cli
