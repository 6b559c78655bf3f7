#include "base/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "base/ascii.h"
#include "base/utf8.h"

namespace rose {

std::string closest(std::string_view word, const std::vector<std::string>& candidates) {
  std::string best;
  if (word.size() > 64) return best;  // too long for a typing error, and the search below is quadratic in the length
  // In a word of up to three letters, two edits would already give a different word.
  std::size_t best_distance = (word.size() <= 3 ? 1 : std::max<std::size_t>(2, word.size() / 3)) + 1;
  // Edit distance in which a transposition of neighbours counts as one edit (optimal string alignment).
  std::vector<std::size_t> older;
  std::vector<std::size_t> last;
  std::vector<std::size_t> row;
  for (const std::string& candidate : candidates) {
    last.assign(candidate.size() + 1, 0);
    row.resize(candidate.size() + 1);
    std::iota(row.begin(), row.end(), std::size_t{0});
    for (std::size_t i = 1; i <= word.size(); ++i) {
      older.swap(last);
      last = row;
      older.resize(row.size());
      row[0] = i;
      for (std::size_t j = 1; j <= candidate.size(); ++j) {
        const std::size_t substituted = last[j - 1] + (word[i - 1] == candidate[j - 1] ? 0 : 1);
        row[j] = std::min({last[j] + 1, row[j - 1] + 1, substituted});
        if (i > 1 && j > 1 && word[i - 1] == candidate[j - 2] && word[i - 2] == candidate[j - 1])
          row[j] = std::min(row[j], older[j - 2] + 1);
      }
    }
    if (row.back() < best_distance) {
      best_distance = row.back();
      best = candidate;
    }
  }
  return best;
}

std::string did_you_mean(std::string_view word, const std::vector<std::string>& candidates) {
  const std::string found = closest(word, candidates);
  return found.empty() ? std::string{} : fmt::format("did you mean '{}'?", found);
}

std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  std::size_t start = 0;
  for (;;) {
    const std::size_t end = text.find(separator, start);
    parts.emplace_back(text.substr(start, end - start));
    if (end == std::string_view::npos) return parts;
    start = end + 1;
  }
}

std::string replaced(std::string text, std::string_view what, std::string_view by) {
  for (std::size_t at = 0; (at = text.find(what, at)) != std::string::npos; at += by.size())
    text.replace(at, what.size(), by);
  return text;
}

std::string shell_quoted(std::string_view text) { return "'" + replaced(std::string(text), "'", "'\\''") + "'"; }

std::string shell_word(std::string_view text) {
  const bool plain = !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    return is_alpha(c) || is_digit(c) || std::string_view("_-./:=,@%+").find(c) != std::string_view::npos;
  });
  return plain ? std::string(text) : shell_quoted(text);
}

std::string ordinal_text(std::int64_t n) {
  const std::int64_t tens = n % 100;
  const char* suffix = "th";
  if (tens < 11 || tens > 13) {
    if (n % 10 == 1) suffix = "st";
    if (n % 10 == 2) suffix = "nd";
    if (n % 10 == 3) suffix = "rd";
  }
  return fmt::format("{}{}", n, suffix);
}

std::string variable_name(std::string_view node) {
  std::string name(node);
  std::replace_if(name.begin(), name.end(), [](char c) { return c == '-' || c == '.'; }, '_');
  return name;
}

std::string printable(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const std::size_t length = utf8_length(text);
    const std::string_view character = text.substr(0, std::max<std::size_t>(length, 1));
    if (length == 0 || is_control(character)) {
      for (const char c : character) out += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
    } else {
      out += character;
    }
    text.remove_prefix(character.size());
  }
  return out;
}

}  // namespace rose
