// rose dump: asks a running tracer to write its window; shows, merges and imports dumps.
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/cancel.h"
#include "base/file.h"
#include "base/folder.h"
#include "base/json.h"
#include "base/log.h"
#include "base/text.h"
#include "cli/command.h"
#include "cli/page.h"
#include "cli/replay_recording.h"
#include "observe/collect.h"
#include "observe/control.h"
#include "observe/dump_files.h"
#include "replay/runs_folder.h"
#include "report/dump/perfetto.h"
#include "report/dump/show.h"
#include "report/dump/summary.h"
#include "trace/dump.h"
#include "trace/frames.h"
#include "trace/jsonl.h"
#include "trace/merge.h"
#include "trace/redact.h"

namespace rose::cli {
namespace {

struct DumpOptions {
  std::string control;
  std::string out = "dump.bin";
  std::string after;
  bool all = false;
};

struct CollectCommand {
  std::vector<std::string> sources;
  bool all = false;
  std::string hosts = "/etc/rose/hosts";
  std::string out = "dump.bin";
  std::string deadline;
  std::string after;
  std::optional<int> at_once;
  observe::CollectOptions how;
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
  bool redact = false;
};

struct ImportOptions {
  std::string file;
  std::string out;
};

void print_written(const Common& common, const std::string& out, const trace::Trace& trace) {
  if (common.json) print(json_line({{"dump", out}, {"events", trace.events.size()}, {"lost", trace.meta.lost}}));
  else if (!common.quiet) print(fmt::format("{}: {} events\n", printable(out), trace.events.size()));
}

// The tracer of the run if this command is called inside a run; else the tracer with the default socket; else the only
// running `rose trace -c`.
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
  if (sockets.empty()) return usual;  // the attempt to connect to this socket will produce the error message
  std::string list;
  for (const auto& socket : sockets) list += (list.empty() ? "" : ", ") + socket.string();
  return fail(ErrorKind::usage, fmt::format("{} tracers run: {}", sockets.size(), list), "choose one with --control");
}

// Writes a dump to stdout, where nothing else may be printed.
Result<void> to_stdout(std::string_view bytes) {
  if (const int error = write_bytes(STDOUT_FILENO, bytes); error != 0)
    return fail_errno(ErrorKind::input, "cannot write the dump to stdout", error);
  return {};
}

Result<int> dump_to_stdout(const std::filesystem::path& socket, std::int64_t after_ns, const Common& common) {
  if (common.json) return fail(ErrorKind::usage, "--json and -o - exclude each other: both write to stdout");
  if (::isatty(STDOUT_FILENO) == 1)
    return fail(ErrorKind::usage, "a dump is binary and not written to a terminal",
                "redirect stdout to a file or a pipe, or name a file with -o");
  ROSE_TRY(const std::string answer, observe::request_dump(socket, to_stdout, after_ns));
  log::info(printable(answer));
  if (const auto open = observe::request_recordings(socket); open && !open->all.empty())
    log::info(
        "{} recordings of librose-rr are not copied, because stdout takes only the dump ('rose dump -o FILE' copies "
        "them)",
        open->all.size());
  return 0;
}

struct Brought {
  observe::Collected from;
  std::size_t events = 0;
};

// Writes each dump to its own file, or all to one.
Result<void> keep(std::vector<Brought>& brought, const CollectCommand& options,
                  const std::vector<trace::Trace>& traces) {
  std::error_code ignored;
  const bool folder = options.out.back() == '/' || std::filesystem::is_directory(options.out, ignored);
  if (!folder) {
    ROSE_TRY(const trace::Trace merged, trace::merge(traces, trace::MergeOptions{}));
    return trace::write_dump(merged, options.out);
  }
  std::filesystem::create_directory(options.out, ignored);
  std::size_t next = 0;
  std::set<std::string> taken;  // "db:1" and "db_1" give the same file name
  for (Brought& one : brought) {
    if (one.from.file.empty()) continue;
    std::string word = observe::file_word(one.from.source);
    for (std::size_t same = 1; !taken.insert(word).second;)
      word = fmt::format("{}-{}", observe::file_word(one.from.source), ++same);
    one.from.file = std::filesystem::path(options.out) / (word + ".bin");
    ROSE_CHECK(trace::write_dump(traces[next++], one.from.file));
  }
  return {};
}

// Reads a dump from a folder to which others may write. They may have replaced the file by a pipe, which must not be
// opened.
Result<trace::ReadDump> read_regular(const std::filesystem::path& path) {
  const Fd fd = open_regular(path);
  if (!fd) return fail_errno(ErrorKind::input, fmt::format("cannot open {}", path.string()), errno);
  // Only what may be part of a dump is read, however long the file is.
  trace::DumpFrames frames;
  std::string content;
  std::vector<char> buffer(std::size_t{1} << 18);
  for (bool more = true; more;) {
    const ssize_t n = ::read(fd.get(), buffer.data(), buffer.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return fail_errno(ErrorKind::input, fmt::format("cannot read {}", path.string()), errno);
    const std::string_view bytes(buffer.data(), static_cast<std::size_t>(n));
    const std::size_t taken = frames.take(bytes);
    content += bytes.substr(0, taken + trace::kTellingBytes);
    more = n > 0 && taken == bytes.size() && content.size() <= kMostFileBytes;
  }
  return trace::parse_dump(std::as_bytes(std::span(content)), path.string());
}

Result<int> collect(CollectCommand options, const Common& common) {
  std::vector<observe::DumpSource> sources;
  if (options.all == !options.sources.empty())
    return fail(ErrorKind::usage, options.all ? "--all and names of hosts exclude each other" : "no host is named",
                "name hosts, or --all for those of --hosts FILE");
  if (options.all) {
    ROSE_TRY(sources, observe::read_sources(options.hosts));
  }
  for (const std::string& text : options.sources) {
    ROSE_TRY(sources.emplace_back(), observe::parse_source(text));
  }
  if (options.out.empty()) return fail(ErrorKind::usage, "-o: the file's name is empty");
  if (!options.deadline.empty()) {
    ROSE_TRY(options.how.deadline_ns, duration_option("--deadline", options.deadline));
    if (options.how.deadline_ns <= 0)
      return fail(ErrorKind::usage, "--deadline: hosts need some time to respond", "1s or more");
  }
  if (!options.after.empty()) {
    ROSE_TRY(const std::int64_t after_ns, duration_option("--after", options.after));
    options.how.after = options.after;
    options.how.deadline_ns += after_ns;
  }
  if (options.at_once) options.how.at_once = static_cast<std::size_t>(*options.at_once);
  ROSE_CHECK(cancel::install());

  ROSE_TRY(const TemporaryFolder folder, TemporaryFolder::make("rose-collect"));
  ROSE_TRY(std::vector<observe::Collected> collected, observe::collect(sources, options.how, folder.path()));
  std::vector<Brought> brought;
  std::vector<trace::Trace> traces;
  for (observe::Collected& one : collected) {
    Brought& here = brought.emplace_back(Brought{std::move(one), 0});
    if (here.from.file.empty()) continue;
    Result<trace::ReadDump> read = read_regular(here.from.file);
    if (read && read->damage) here.from.problem = read->damage->message + "; the readable part is kept";
    if (!read) {
      here.from.file.clear();
      here.from.problem = read.error().message;
      continue;
    }
    here.events = read->trace.events.size();
    traces.push_back(std::move(read->trace));
  }
  if (!traces.empty()) ROSE_CHECK(keep(brought, options, traces));

  const auto answered = static_cast<std::size_t>(
      std::count_if(brought.begin(), brought.end(), [](const Brought& one) { return one.from.problem.empty(); }));
  if (common.json) {
    Json hosts = Json::array();
    for (const Brought& one : brought) {
      Json host{{"host", printable(one.from.source)}, {"events", one.events}, {"seconds", one.from.seconds}};
      host["problem"] = one.from.problem.empty() ? Json(nullptr) : Json(one.from.problem);
      hosts.push_back(std::move(host));
    }
    print(json_line({{"dump", traces.empty() ? Json(nullptr) : Json(options.out)},
                     {"answered", answered},
                     {"hosts", std::move(hosts)}}));
  } else {
    for (const Brought& one : brought) {
      if (!one.from.problem.empty()) log::warning("{}: {}", printable(one.from.source), one.from.problem);
      else if (!common.quiet) print(fmt::format("{}: {} events\n", printable(one.from.source), one.events));
    }
    if (!traces.empty() && !common.quiet)
      print(fmt::format("{}: {} of {} answered\n", printable(options.out), answered, brought.size()));
  }
  if (traces.empty())
    return fail(ErrorKind::environment, "no host responded: nothing is written",
                "see the line about each; running 'ssh HOST rose dump -o -' by hand shows more");
  return answered == brought.size() ? 0 : exit_code(ErrorKind::inconclusive);
}

Result<int> dump(const DumpOptions& options, const Common& common) {
  if (options.all) {
    CollectCommand every;
    every.all = true;
    every.out = options.out;
    every.after = options.after;
    every.how.control = options.control;
    return collect(std::move(every), common);
  }
  std::int64_t after_ns = 0;
  if (!options.after.empty()) {
    ROSE_TRY(after_ns, duration_option("--after", options.after));
  }
  std::filesystem::path socket = options.control;
  if (options.control.empty()) {
    ROSE_TRY(socket, tracer_to_ask());
  }
  if (options.out == "-") return dump_to_stdout(socket, after_ns, common);
  ROSE_TRY(const std::string answer, observe::request_dump(socket, std::filesystem::path(options.out), after_ns));
  std::vector<std::string> recordings;
  if (auto open = observe::request_recordings(socket); !open) {
    log::warning("no recording is copied: {}", open.error().message);
  } else {
    const observe::CopiedRecordings copied = observe::copy_recordings(std::move(*open), options.out);
    for (const auto& file : copied.files) recordings.push_back(file.string());
    for (const std::string& problem : copied.problems) log::warning("{}", problem);
  }
  if (common.json) print(json_line({{"dump", options.out}, {"answer", answer}, {"recordings", recordings}}));
  else if (!common.quiet) {
    print(fmt::format("{}: {}\n", printable(options.out), printable(answer)));
    for (const std::string& file : recordings) print(fmt::format("{}: a recording\n", printable(file)));
  }
  return 0;
}

Result<int> show(const ShowOptions& options, const Common& common) {
  if (!options.profile.empty() && !options.summary)
    return fail(ErrorKind::usage, "--profile needs --summary, which shows what is new compared with the profile");
  if (options.summary && options.format)
    return fail(ErrorKind::usage,
                "--summary and --format exclude each other: the summary is text, or JSON with --json");
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
  if (options.summary && common.json) report::show_summary_json(read.trace, filter, normal, print);
  else if (options.summary) report::show_summary(read.trace, filter, normal, print);
  else if (format == "jsonl") report::show_jsonl(read.trace, filter, print);
  else if (format == "perfetto") report::show_perfetto(read.trace, filter, print);
  else if (format == "html") print(report::dump_html(read.trace, filter, options.file, page_context({})));
  else report::show_text(read.trace, filter, print);
  if (format == "text" && !common.json) print(recordings_beside(options.file));
  if (read.damage) return Unexpected(*read.damage);
  return 0;
}

// Parses "HOST=+12.5ms".
Result<std::pair<std::string, std::int64_t>> clock_option(const std::string& text) {
  const auto equals = text.rfind('=');
  if (equals == std::string::npos || equals == 0)
    return fail(ErrorKind::usage, fmt::format("--clock '{}': no host is named", text),
                "write how far a host's clock is ahead of the first dump's, e.g. --clock db2=+12.5ms or db2=-3s");
  std::string amount = text.substr(equals + 1);
  const bool behind = amount.starts_with('-');
  if (behind || amount.starts_with('+')) amount.erase(0, 1);
  ROSE_TRY(const std::int64_t ns, duration_option("--clock", amount));
  return std::pair(text.substr(0, equals), behind ? -ns : ns);
}

// An event is written twice if its dump is named twice, or if the files contain the output of an earlier `rose dump
// merge *.bin -o all.bin`. Warns of the first case; returns an error if the output is among the files.
Result<void> check_distinct(const MergeOptions& options) {
  std::error_code other;
  for (std::size_t i = 0; i < options.files.size(); ++i) {
    const std::string& file = options.files[i];
    if (std::filesystem::equivalent(file, options.out, other))
      return fail(
          ErrorKind::usage,
          fmt::format("-o: {} is one of the dumps to be merged: its content would be duplicated by the next merge",
                      options.out),
          "write the merged dump to another folder, or remove it from the list");
    for (std::size_t j = 0; j < i; ++j)
      if (std::filesystem::equivalent(file, options.files[j], other))
        log::warning("{} is named twice: its content would be duplicated", file);
  }
  return {};
}

Result<int> merge(const MergeOptions& options, const Common& common) {
  trace::MergeOptions how;
  how.estimate_clocks = !options.no_clock;
  for (const std::string& text : options.clocks) {
    ROSE_TRY(how.ahead_ns.emplace_back(), clock_option(text));
  }
  ROSE_CHECK(check_distinct(options));
  std::vector<trace::Trace> traces;
  for (const std::string& file : options.files) {
    ROSE_TRY(traces.emplace_back(), load_trace(file));
  }
  std::vector<trace::MergedClock> clocks;
  ROSE_TRY(trace::Trace merged, trace::merge(traces, how, &clocks));
  if (options.redact) {
    Redactor redactor = Redactor::of_this_machine();
    for (const trace::Trace& one : traces) redactor.add_host(one.meta.host);
    merged = trace::redacted(merged, redactor);
    for (trace::MergedClock& clock : clocks) clock.host = redactor(clock.host), clock.text = redactor(clock.text);
  }
  ROSE_CHECK(trace::write_dump(merged, options.out));
  if (!common.json) {
    print_written(common, options.out, merged);
    for (const auto& clock : clocks)
      if (!clock.text.empty() && !common.quiet) print(clock.text + "\n");
    return 0;
  }
  Json clocks_json = Json::array();
  for (const auto& clock : clocks) {
    Json one{{"host", clock.host}, {"known", clock.known}, {"given", clock.given}};
    one["ahead_ms"] = clock.known ? Json(static_cast<double>(clock.ahead_ns) / 1e6) : nullptr;
    one["error_ms"] = clock.known && !clock.given ? Json(static_cast<double>(clock.error_ns) / 1e6) : nullptr;
    one["handshakes"] = clock.handshakes;
    clocks_json.push_back(std::move(one));
  }
  print(json_line(
      {{"dump", options.out}, {"events", merged.events.size()}, {"lost", merged.meta.lost}, {"clocks", clocks_json}}));
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
          "--summary shows what failed, how often and where, and the first and last time. The JSON Lines of --format "
          "jsonl are lossless: 'rose dump import' converts them back to a dump. --format perfetto is for "
          "ui.perfetto.dev; --format html prints a self-contained page with a time line. If a dump is damaged, rose "
          "prints the readable part and exits with 2.",
      .examples = {"rose dump show dump.bin --summary --profile profile.json",
                   "rose dump show dump.bin --format html > dump.html"},
      .options =
          {
              {.names = "file",
               .slot = &options->file,
               .value = "FILE",
               .help = "The dump",
               .required = true,
               .completes = Completes::file},
              {.names = "--format",
               .slot = &options->format,
               .value = "FORMAT",
               .help = "Output format",
               .otherwise = "text",
               .choices = {"text", "jsonl", "perfetto", "html"}},
              {.names = "--node",
               .slot = &options->node,
               .value = "NODE",
               .help = "Only events of this node",
               .completes = Completes::node},
              {.names = "--type",
               .slot = &options->types,
               .value = "TYPE",
               .help = "Only events of these types",
               .by_commas = true,
               .choices = {"scf", "af", "nd", "ps", "sys"}},
              {.names = "--since",
               .slot = &options->since,
               .value = "T",
               .help = "Show events from this time on: 2.5s is 2.5 s after the first event, -10s is 10 s before the "
                       "last event, and a number without unit is in nanoseconds of the wall clock"},
              {.names = "--until",
               .slot = &options->until,
               .value = "T",
               .help = "Show events up to this time, written as for --since"},
              {.names = "--summary",
               .slot = &options->summary,
               .help = "Show what failed, how often and where, instead of single events"},
              {.names = "--profile",
               .slot = &options->profile,
               .value = "FILE",
               .help = "With --summary: show what is new compared with this profile, what is more frequent, and what "
                       "is usual",
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
          "Tracers record when the packets of TCP handshakes arrive. From handshakes that were recorded at both ends, "
          "this command estimates the offset between the hosts' clocks. It puts all events on the first dump's time "
          "line. The offset, its error, and the number of handshakes are printed and stored.",
      .examples = {"rose dump merge n1.bin n2.bin -o all.bin", "rose dump merge hosts/*.bin -o all.bin"},
      .options =
          {
              {.names = "files",
               .slot = &options->files,
               .value = "FILE",
               .help = "Dumps or JSON Lines files",
               .required = true,
               .completes = Completes::file},
              {.names = "-o,--output",
               .slot = &options->out,
               .value = "FILE",
               .help = "Where to write the merged dump",
               .required = true,
               .completes = Completes::file},
              {.names = "--clock",
               .slot = &options->clocks,
               .value = "HOST=OFFSET",
               .help = "By how much a host's clock is ahead of the first dump's clock, e.g. db2=+12.5ms; this offset "
                       "is then not estimated"},
              {.names = "--no-clock",
               .slot = &options->no_clock,
               .help = "Leave the times unchanged: estimate no clock offsets"},
              {.names = "--redact",
               .slot = &options->redact,
               .help = "Replace host names, addresses, user names and long tokens; equal texts get equal replacements"},
          },
      .run = [options](const Common& common) { return merge(*options, common); },
  };
}

Command collect_command() {
  auto options = std::make_shared<CollectCommand>();
  return {
      .name = "collect",
      .summary = "Collect the windows of many hosts at once",
      .synopsis = {"HOST... [-o FILE]", "--all [--hosts FILE] [-o FILE]"},
      .description =
          "A HOST is a machine that is reached over ssh (HOST, USER@HOST), a pod "
          "(kubectl:[NAMESPACE/]POD[:CONTAINER]), or a folder to which tracers write (rose trace -o /net/incidents/). "
          "From such a folder, the newest dump of each host is taken. All hosts are asked in parallel. Their dumps "
          "are merged into one dump, as by 'rose dump merge'. If the output is a folder (a name that ends in '/'), "
          "each dump stays separate.\n\nFor each host that does not respond within the deadline it prints the reason. "
          "It exits with 0 when all hosts responded, with 4 when some did not (the dumps that arrived are written), "
          "with 3 when none did. Recordings of librose-rr stay on their hosts.\n\nssh must not ask for passwords: "
          "configure keys, ports and users in its own configuration.",
      .examples = {"rose dump collect db1 db2 db3 -o all.bin",
                   "rose dump collect kubectl:prod/db-0 kubectl:prod/db-1 -o all.bin",
                   "rose dump collect --all --after 10s -o /var/tmp/incident/"},
      .options =
          {
              {.names = "sources", .slot = &options->sources, .value = "HOST", .help = "Hosts, pods or folders"},
              {.names = "--all", .slot = &options->all, .help = "Ask all hosts that --hosts lists"},
              {.names = "--hosts",
               .slot = &options->hosts,
               .value = "FILE",
               .help = "File with one HOST per line; '#' begins a comment",
               .completes = Completes::file},
              {.names = "-o,--output",
               .slot = &options->out,
               .value = "FILE",
               .help = "Where to write the merged dump, or a folder of dumps",
               .completes = Completes::file},
              {.names = "--deadline",
               .slot = &options->deadline,
               .value = "DURATION",
               .help = "How long to wait for a host",
               .otherwise = "30s"},
              {.names = "--after",
               .slot = &options->after,
               .value = "DURATION",
               .help = "How long hosts wait before they write their dump"},
              {.names = "--at-once",
               .slot = &options->at_once,
               .value = "N",
               .help = "Hosts to ask in parallel",
               .otherwise = "64",
               .range = {{1, 1000}}},
              {.names = "--control",
               .slot = &options->how.control,
               .value = "SOCK",
               .help = "The tracers' control socket on the hosts"},
              {.names = "--rose",
               .slot = &options->how.rose,
               .value = "PROGRAM",
               .help = "The rose program on the hosts"},
              {.names = "--ssh",
               .slot = &options->how.ssh,
               .value = "PROGRAM",
               .help = "Program to run instead of ssh",
               .completes = Completes::program},
              {.names = "--kubectl",
               .slot = &options->how.kubectl,
               .value = "PROGRAM",
               .help = "Program to run instead of kubectl",
               .completes = Completes::program},
          },
      .files = {{"/etc/rose/hosts", "The hosts of --all, unless --hosts names another file."}},
      .run = [options](const Common& common) { return collect(*options, common); },
  };
}

Command import_command() {
  auto options = std::make_shared<ImportOptions>();
  return {
      .name = "import",
      .summary = "Convert JSON Lines, also from other tools, to a dump",
      .description =
          "Each line is one event, as 'rose dump show --format jsonl' prints it. Fields may be null or absent. "
          "Unknown fields are ignored with one warning; unknown types are refused.",
      .examples = {"rose dump import events.jsonl -o dump.bin", "rose dump show dump.bin --format jsonl | head"},
      .options =
          {
              {.names = "file",
               .slot = &options->file,
               .value = "EVENTS.jsonl",
               .help = "The events, one JSON object per line",
               .required = true,
               .completes = Completes::file},
              {.names = "-o,--output",
               .slot = &options->out,
               .value = "FILE",
               .help = "Where to write the dump",
               .required = true,
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
      .summary = "Write the window of a running tracer, or the windows of many hosts; show, merge and import dumps",
      .synopsis = {"[--control SOCK] [-o FILE] [--after DURATION]", "show|merge|import|collect ..."},
      .description =
          "Without a subcommand it asks the running 'rose trace' for its events and writes them to a file; the tracer "
          "continues. Only the owner can read the file; '-o -' writes to stdout. Recordings that the traced processes "
          "make with librose-rr are copied to FILE.recordings, unless the output is stdout.",
      .examples = {"rose dump -o dump.bin --after 10s", "rose dump show dump.bin --type scf,ps --since -30s"},
      .options =
          {
              {.names = "--control",
               .slot = &options->control,
               .value = "SOCK",
               .help = "The tracer's control socket",
               .completes = Completes::file},
              {.names = "-o,--output",
               .slot = &options->out,
               .value = "FILE",
               .help = "Where to write the dump",
               .completes = Completes::file},
              {.names = "--after",
               .slot = &options->after,
               .value = "DURATION",
               .help = "Wait this long first, so that the window contains what follows the trigger"},
              {.names = "--all",
               .slot = &options->all,
               .help = "Ask every host in /etc/rose/hosts, like 'rose dump collect --all'"},
          },
      .commands = {show_command(), merge_command(), import_command(), collect_command()},
      .environment = {{"ROSE_RUN_DIR", "Inside a run of 'rose trace -c': the tracer of this run is asked."}},
      .files = {{"/run/rose/trace.sock",
                 "The tracer's control socket, unless --control names another. If no tracer listens there, a running "
                 "'rose trace -c' is asked."}},
      .run = [options](const Common& common) { return dump(*options, common); },
  };
}

}  // namespace rose::cli
