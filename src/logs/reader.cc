#include "logs/reader.h"

#include <algorithm>
#include <atomic>
#include <deque>
#include <thread>

#include "base/ascii.h"
#include "base/text.h"
#include "base/units.h"
#include "logs/read/file_reader.h"
#include "logs/read/merge.h"

namespace rose::logs {
namespace {

constexpr std::size_t kLeastMessages = 20'000;  // each file may keep this many messages, even if its share is smaller

bool all_digit_chars(std::string_view text) { return !text.empty() && std::all_of(text.begin(), text.end(), is_digit); }

}  // namespace

std::string_view Logs::text(const Message& message) const {
  if (message.text == 0) return {};
  const Texts& of = texts[message.source];
  const std::size_t begin = message.text == 1 ? 0 : of.ends[message.text - 2];
  return std::string_view(of.bytes).substr(begin, of.ends[message.text - 1] - begin);
}

std::string log_name(const std::filesystem::path& path) {
  std::string name = path.filename().string();
  const auto strip = [&](std::string_view suffix) {
    if (!name.ends_with(suffix) || name.size() == suffix.size()) return false;
    name.resize(name.size() - suffix.size());
    return true;
  };
  for (bool more = true; more;) {
    more = strip(".gz") || strip(".xz") || strip(".zst") || strip(".bz2") || strip(".old");
    // Remove suffixes such as ".1", ".20261122" and "-20261122", also before an extension: "app-2026-11-22.log".
    const std::size_t dot = name.rfind('.');
    if (dot != std::string::npos && dot != 0 && all_digit_chars(std::string_view(name).substr(dot + 1))) {
      name.resize(dot);
      more = true;
    }
  }
  const std::size_t ending = std::min(name.rfind('.'), name.size());
  std::size_t begin = ending;
  while (begin > 0 && (all_digit_chars(name.substr(begin - 1, 1)) || name[begin - 1] == '-' || name[begin - 1] == '_'))
    --begin;
  if (ending - begin >= 8 && begin != 0 && !all_digit_chars(name.substr(begin, 1))) name.erase(begin, ending - begin);
  return name;
}

std::string words(const Source& source) {
  std::string out = fmt::format("{}{}: {} lines, {} messages", source.path.string(),
                                source.shared ? fmt::format(", {} ({})", source.node, source.host) : "", source.lines,
                                source.messages);
  if (source.messages == 0) return out + (source.problem.empty() ? "" : fmt::format("; {}", source.problem));
  out += fmt::format(", {} timed, read as {}", source.timed == source.messages ? "all" : std::to_string(source.timed),
                     source.form);
  if (!source.packing.empty()) out += fmt::format(" ({})", source.packing);
  if (source.timed == 0) out += "; if its lines have times, describe their form with [[log]] in rose.toml";
  if (source.rest != 0) out += fmt::format("; {} lines belong to the previous message", source.rest);
  if (source.newest_first) out += "; it begins with the newest message, so it is read from its end";
  if (source.timed != 0 && source.time_kind == TimeKind::no_date)
    out += "; times have no date: it follows from when the file was written";
  if (source.timed != 0 && source.time_kind == TimeKind::no_year)
    out += source.year_of_others ? "; times have no year: it follows from the other files"
                                 : "; times have no year: it follows from when the file was written";
  if (source.timed != 0 && source.time_kind == TimeKind::since_boot)
    out += "; times count from the start of the system or program: dates follow from when the file was written";
  if (source.timed != 0 && !source.zoned && source.time_kind != TimeKind::since_boot)
    out += source.shifted_ns != 0
               ? fmt::format("; times have no zone, and were moved by {}{} to match those of the other files",
                             source.shifted_ns < 0 ? "-" : "", format_duration(std::abs(source.shifted_ns)))
               : "; times have no zone and are taken as UTC";
  if (source.cut != 0)
    out += fmt::format("; {} lines were longer than {}", source.cut, format_size(LineReader::kLongestLine));
  if (source.kept < source.messages)
    out += fmt::format("; {} messages were only counted, not kept", source.messages - source.kept);
  if (source.overflow != 0)
    out += fmt::format("; {} messages have no kind, because there are more than {} kinds of messages", source.overflow,
                       Templates::kMost);
  if (!source.problem.empty()) out += fmt::format("; {}", source.problem);
  return out;
}

Result<Logs> read_logs(std::span<const Input> inputs, const ReadOptions& options, Templates& templates) {
  if (inputs.size() > 4096)
    return fail(ErrorKind::input, fmt::format("{} log files are given, at most 4096 can be read", inputs.size()));
  std::vector<Bytes> files;
  std::vector<double> weights;
  double whole = 0;
  for (const Input& input : inputs) {
    ROSE_TRY(Bytes bytes, Bytes::open(input.path, input.folder));
    // A compressed text is about ten times as large when it is decompressed.
    weights.push_back(1 + static_cast<double>(bytes.file_size()) * (bytes.packing().empty() ? 1 : 10));
    whole += weights.back();
    files.push_back(std::move(bytes));
  }
  std::vector<std::deque<FileResult>> results(inputs.size());
  std::vector<std::size_t> by_size(inputs.size());
  for (std::size_t i = 0; i < by_size.size(); ++i) by_size[i] = i;
  std::stable_sort(by_size.begin(), by_size.end(),
                   [&](std::size_t a, std::size_t b) { return weights[a] > weights[b]; });
  std::atomic<std::size_t> next = 0;
  const auto work = [&] {
    for (std::size_t n = next++; n < by_size.size(); n = next++) {
      const std::size_t i = by_size[n];
      const double share = weights[i] / whole;
      const auto messages = std::max(kLeastMessages, static_cast<std::size_t>(share * kMostMessages));
      const auto text = std::max(std::size_t{1} << 20, static_cast<std::size_t>(share * kMostTextBytes));
      FileReader(std::move(files[i]), inputs[i], options, {messages, text}, results[i]).read();
    }
  };
  const unsigned most =
      options.threads != 0 ? options.threads : std::clamp(std::thread::hardware_concurrency(), 1U, 8U);
  {
    std::vector<std::jthread> threads;
    for (unsigned i = 1; i < std::min<std::size_t>(most, inputs.size()); ++i) threads.emplace_back(work);
    work();
  }
  return put_together(results, templates);
}

Logs read_text(std::string content, const Input& input, const ReadOptions& options, Templates& templates) {
  std::vector<std::deque<FileResult>> results(1);
  FileReader(Bytes::of(std::move(content)), input, options, {kMostMessages, kMostTextBytes}, results[0]).read();
  return put_together(results, templates);
}

}  // namespace rose::logs
