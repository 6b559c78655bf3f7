#include "logs/line/wrap.h"

#include <algorithm>
#include <array>
#include <set>

#include "base/ascii.h"
#include "logs/line/chars.h"
#include "logs/line/continuation.h"

namespace rose::logs {
namespace {

// Widths at which lines are cut, in characters.
constexpr std::size_t kNarrowest = 60, kWidest = 400;
// The number of lines that must have been cut at the same width. In a file that was not wrapped, a line without a
// timestamp may follow the longest line by chance, and the same long message may occur twice. It is no chance if two
// different lines have exactly this length and both are continued.
constexpr std::size_t kLeastCut = 2;
// If the width is that of a terminal, one such line is enough.
constexpr std::array<std::size_t, 6> kOfTerminals = {80, 100, 120, 132, 160, 200};

// The number of characters in UTF-8, that is, of bytes that do not continue a character.
std::size_t columns(std::string_view line) {
  return static_cast<std::size_t>(
      std::count_if(line.begin(), line.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; }));
}

std::size_t first_word(std::string_view line) { return columns(line.substr(0, std::min(line.find(' '), line.size()))); }

// The letters of the line. Two messages of one kind usually differ only in other characters.
std::string letters_of(std::string_view line) {
  std::string letters;
  std::copy_if(line.begin(), line.end(), std::back_inserter(letters), is_alpha);
  return letters;
}

// True if the cut is within a sentence: "dial tcp 10.0.0.2:7000: connect: connection" and "refused". That is, nothing
// ends before the cut, and nothing begins after it.
bool within_sentence(std::string_view before, std::string_view line) {
  const char last = before.back();
  return is_lower(line[0]) && (is_alpha(last) || is_digit(last) || last == ',');
}

}  // namespace

bool Wrap::begins_message(std::string_view line) {
  if (objects_) return line.starts_with('{');
  if (begins_by_itself(line)) return true;
  Parts parts;
  return form_.take(line, parts) == LineRole::message && parts.time;
}

std::optional<Wrap> Wrap::find(std::span<const std::string> sample, const IsNode& is_node) {
  Wrap wrap(Form::choose(sample, nullptr, is_node));
  if (sample.size() < 2 || wrap.form_.is_journal_export()) return std::nullopt;
  wrap.objects_ = sample[0].starts_with('{');
  std::size_t timed = 0, further = 0, cut = 0, filled = 0, in_sentence = 0;
  for (const std::string& line : sample) wrap.width_ = std::max(wrap.width_, columns(line));
  std::set<std::string> cut_lines, filled_lines;
  std::string_view before;
  for (const std::string& line : sample) {
    const std::string_view previous = std::exchange(before, line);
    if (line.empty()) continue;
    if (wrap.begins_message(line)) {
      ++timed;
      continue;
    }
    // Stack frames and similar lines continue a message that was not cut.
    if (timed == 0 || looks_like_rest(line)) continue;
    ++further;
    if (previous.empty()) continue;
    const std::size_t width = columns(previous);
    if (width == wrap.width_) {
      ++cut;
      cut_lines.insert(letters_of(previous));
    }
    if (width + 1 + first_word(line) <= wrap.width_) continue;
    ++filled;
    filled_lines.insert(letters_of(previous));
    in_sentence += within_sentence(previous, line) ? 1 : 0;
  }
  if (further == 0) return std::nullopt;
  // Nine of ten further lines must follow a cut. The others may belong to messages of several lines that were not cut,
  // such as tracebacks.
  const auto mostly = [&](std::size_t count) { return count * 10 >= further * 9; };
  const bool usual_width = wrap.width_ >= kNarrowest && wrap.width_ <= kWidest;
  const bool of_terminal = std::find(kOfTerminals.begin(), kOfTerminals.end(), wrap.width_) != kOfTerminals.end();
  if (usual_width && cut_lines.size() >= (of_terminal ? 1 : kLeastCut) && mostly(cut)) wrap.kind_ = Kind::columns;
  else if (usual_width && filled >= kLeastCut && mostly(filled) &&
           (filled_lines.size() >= kLeastCut || in_sentence == filled))
    wrap.kind_ = Kind::words;
  else return std::nullopt;
  return wrap;
}

bool Wrap::continues(std::string_view before, std::string_view line) {
  if (before.empty() || line.empty() || line[0] == '\t' || begins_message(line)) return false;
  if (kind_ == Kind::columns) return columns(before) == width_;
  return !looks_like_rest(line) && columns(before) + 1 + first_word(line) > width_;
}

std::vector<std::string> Wrap::join(std::span<const std::string> lines) {
  std::vector<std::string> joined;
  std::string_view before;
  for (const std::string& line : lines) {
    if (!joined.empty() && continues(before, line)) joined.back().append(removed()).append(line);
    else joined.push_back(line);
    before = line;
  }
  return joined;
}

}  // namespace rose::logs
