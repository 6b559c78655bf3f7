#include "observe/collect.h"

#include <algorithm>
#include <map>
#include <optional>
#include <tuple>

#include "base/ascii.h"
#include "base/file.h"
#include "base/subprocess.h"
#include "base/text.h"
#include "base/trim.h"
#include "base/units.h"
#include "observe/dump_files.h"
#include "trace/frames.h"

namespace rose::observe {
namespace {

constexpr std::uint64_t kMostBytes = std::uint64_t{2} << 30;  // per dump
constexpr std::size_t kMostSources = 10'000;
constexpr std::size_t kLongestName = 300;

// True for names that are safe in a command line, where a leading '-' would make them options.
bool is_name(std::string_view text, std::string_view others) {
  return !text.empty() && text.size() <= kLongestName && text.front() != '-' &&
         std::all_of(text.begin(), text.end(), [&](char c) {
           return is_alpha(c) || is_digit(c) || c == '-' || c == '.' || c == '_' ||
                  others.find(c) != std::string_view::npos;
         });
}

Unexpected refused(std::string_view text) {
  return fail(ErrorKind::usage, fmt::format("'{}' is not a source of dumps", printable(text.substr(0, kLongestName))),
              "accepted: HOST or USER@HOST (asked over ssh), kubectl:[NAMESPACE/]POD[:CONTAINER], or a folder with a "
              "slash in its name");
}

std::string last_line(std::string_view text) {
  text = trimmed(text);
  if (const auto line = text.rfind('\n'); line != std::string_view::npos) text.remove_prefix(line + 1);
  return printable(text.substr(0, kLongestName));
}

// Extracts the error message, which rose prints on a line of its own, before the hint.
std::string problem_in(std::string_view errors) {
  constexpr std::string_view mark = "rose: error: ";
  if (const auto at = errors.rfind(mark); at != std::string_view::npos) {
    errors.remove_prefix(at + mark.size());
    return last_line(errors.substr(0, errors.find('\n')));
  }
  return last_line(errors);
}

std::string why_none(const Ended& end, const CollectOptions& options) {
  const std::string message = problem_in(end.err);
  if (!end.started) return message;
  if (end.refused) return fmt::format("its dump is larger than {}, or cannot be stored here", format_size(kMostBytes));
  if (end.timed_out)
    return fmt::format("no answer within {}{}", format_duration(options.deadline_ns),
                       message.empty() ? "" : ": " + message);
  if (!message.empty()) return message;
  return fmt::format("it ended with status {} without a message", end.exit_code);
}

// The newest dump of each host in a folder to which tracers write.
void from_folder(const DumpSource& source, std::vector<Collected>& out) {
  std::map<std::string, std::pair<std::pair<std::string, std::string>, std::filesystem::path>> newest;  // by host
  std::error_code error;
  for (std::filesystem::directory_iterator it(source.folder, error), end; !error && it != end; it.increment(error)) {
    const auto name = parse_dump_name(it->path().filename().string());
    std::error_code gone;
    // Others may write to this folder, and opening a pipe that they created would wait for ever.
    if (!name || !it->is_regular_file(gone)) continue;
    auto& [when, best] = newest[name->host];
    const auto this_one = std::pair(name->stamp, name->trigger);
    if (best.empty() || when < this_one) std::tie(when, best) = std::pair(this_one, it->path());
  }
  if (error) {
    out.push_back({source.name, {}, fmt::format("the folder cannot be read: {}", error.message()), 0});
  } else if (newest.empty()) {
    out.push_back({source.name, {}, "no tracer has written a dump there (rose trace -o FOLDER/)", 0});
  }
  for (const auto& [host, dump] : newest)
    out.push_back({fmt::format("{} ({})", source.name, host), dump.second, {}, 0});
}

}  // namespace

Result<DumpSource> parse_source(std::string_view text) {
  DumpSource source;
  source.name = std::string(text);
  if (text.starts_with("kubectl:")) {
    source.kind = DumpSource::Kind::pod;
    std::string_view rest = text.substr(8);
    if (const auto slash = rest.find('/'); slash != std::string_view::npos) {
      source.space = std::string(rest.substr(0, slash));
      rest.remove_prefix(slash + 1);
      if (!is_name(source.space, "")) return refused(text);
    }
    if (const auto colon = rest.find(':'); colon != std::string_view::npos) {
      source.container = std::string(rest.substr(colon + 1));
      rest = rest.substr(0, colon);
      if (!is_name(source.container, "")) return refused(text);
    }
    source.pod = std::string(rest);
    if (!is_name(source.pod, "")) return refused(text);
    return source;
  }
  if (!text.starts_with("ssh:") && text.find('/') != std::string_view::npos) {
    source.kind = DumpSource::Kind::folder;
    source.folder = std::filesystem::path(text);
    return source;
  }
  source.host = std::string(text.starts_with("ssh:") ? text.substr(4) : text);
  if (!is_name(source.host, "@:[]%")) return refused(text);
  return source;
}

Result<std::vector<DumpSource>> read_sources(const std::filesystem::path& file) {
  ROSE_TRY(const std::string text, read_file(file, std::size_t{1} << 20));
  std::vector<DumpSource> sources;
  int number = 0;
  for (const std::string& line : split(text, '\n')) {
    ++number;
    std::string_view name = std::string_view(line).substr(0, line.find('#'));
    name = trimmed(name);
    if (name.empty()) continue;
    Result<DumpSource> source = parse_source(name);
    if (!source) return Unexpected(std::move(source).error().in(fmt::format("{}:{}", file.string(), number)));
    sources.push_back(std::move(*source));
    if (sources.size() > kMostSources)
      return fail(ErrorKind::input, fmt::format("{} names more than {} hosts", file.string(), kMostSources));
  }
  if (sources.empty())
    return fail(ErrorKind::input, fmt::format("{} names no host", file.string()),
                "write one per line; '#' begins a comment");
  return sources;
}

std::vector<std::string> collect_command(const DumpSource& source, const CollectOptions& options) {
  std::vector<std::string> dump = {options.rose, "dump", "-o", "-"};
  if (!options.control.empty()) dump.insert(dump.end(), {"--control", options.control});
  if (!options.after.empty()) dump.insert(dump.end(), {"--after", options.after});
  std::vector<std::string> argv;
  if (source.kind == DumpSource::Kind::pod) {
    argv = {options.kubectl, "exec"};
    if (!source.space.empty()) argv.insert(argv.end(), {"-n", source.space});
    argv.push_back(source.pod);
    if (!source.container.empty()) argv.insert(argv.end(), {"-c", source.container});
    argv.push_back("--");
    argv.insert(argv.end(), dump.begin(), dump.end());
    return argv;
  }
  const std::int64_t seconds = std::max<std::int64_t>(options.deadline_ns / 1'000'000'000, 1);
  argv = {options.ssh, "-T", "-o", "BatchMode=yes", "-o", fmt::format("ConnectTimeout={}", seconds), source.host};
  // ssh passes a single line to the remote shell, so the words must be quoted.
  std::string line;
  for (const std::string& word : dump) line += (line.empty() ? "" : " ") + shell_word(word);
  argv.push_back(std::move(line));
  return argv;
}

Result<std::vector<Collected>> collect(const std::vector<DumpSource>& sources, const CollectOptions& options,
                                       const std::filesystem::path& folder) {
  std::vector<std::vector<std::string>> commands;
  std::vector<std::size_t> asked;  // by command: index of its source
  for (std::size_t i = 0; i < sources.size(); ++i) {
    if (sources[i].kind == DumpSource::Kind::folder) continue;
    commands.push_back(collect_command(sources[i], options));
    asked.push_back(i);
  }
  struct Arriving {
    std::optional<AtomicFile> file;
    std::filesystem::path path;
    std::uint64_t bytes = 0;
    std::string problem;
    trace::DumpFrames frames;
    bool cut = false;  // the source sent bytes that are not part of a dump
  };
  std::vector<Arriving> arriving(commands.size());
  SideBySide how;
  how.at_once = options.at_once;
  how.timeout_ns = options.deadline_ns;
  how.out = [&](std::size_t i, std::string_view bytes) {
    Arriving& one = arriving[i];
    if (!one.file) {
      one.path = folder / fmt::format("{}-{}.bin", i + 1, file_word(sources[asked[i]].name));
      Result<AtomicFile> made = AtomicFile::create(one.path);
      if (!made) {
        one.problem = made.error().message;
        return false;
      }
      one.file.emplace(std::move(*made));
    }
    // A host that sends something other than a dump, or sends without end, must not fill the disk that the other dumps
    // need. A few bytes after the dump are kept, so that the reader can describe what is wrong.
    const std::size_t taken = one.frames.take(bytes);
    one.cut = taken < bytes.size();
    bytes = bytes.substr(0, taken + trace::kTellingBytes);
    one.bytes += bytes.size();
    if (one.bytes > kMostBytes) return false;
    if (const Result<void> written = one.file->write(bytes); !written) {
      one.problem = written.error().message;
      return false;
    }
    return !one.cut;
  };
  ROSE_TRY(const std::vector<Ended> ended, run_side_by_side(commands, how));

  std::vector<Collected> out;
  std::size_t next = 0;
  for (const DumpSource& source : sources) {
    if (source.kind == DumpSource::Kind::folder) {
      from_folder(source, out);
      continue;
    }
    Arriving& one = arriving[next];
    const Ended& end = ended[next++];
    Collected got{source.name, {}, {}, end.seconds};
    const bool kept_part = end.refused && one.cut && one.problem.empty();
    if (!kept_part && (!end.started || end.timed_out || end.refused || end.exit_code != 0)) {
      got.problem = one.problem.empty() ? why_none(end, options) : one.problem;
    } else if (!one.file) {
      got.problem = "it sent nothing";
    } else if (const Result<void> kept = one.file->commit(); !kept) {
      got.problem = kept.error().message;
    } else {
      got.file = one.path;
    }
    out.push_back(std::move(got));
  }
  return out;
}

}  // namespace rose::observe
