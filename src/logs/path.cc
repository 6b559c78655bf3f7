#include <algorithm>
#include <array>
#include <cctype>
#include <optional>

#include "base/address.h"
#include "base/ascii.h"
#include "logs/found.h"

namespace rose::logs {
namespace {

constexpr std::size_t kOfVolume = 16;  // fewer characters are between a volume and the words that report it as full

bool path_char(char c) {
  return word_char(c) || c == '/' || c == '.' || c == '-' || c == '+' || c == '@' || c == '%' || c == '~' || c == '#' ||
         c == '=';
}

// True if the files in a directory are meant: "in dir /x", "volume /x".
bool names_directory(std::string_view before) {
  while (!before.empty() && std::string_view(" =:'\"").find(before.back()) != std::string_view::npos)
    before.remove_suffix(1);
  for (const std::string_view word : {"dir", "directory", "folder", "volume", "dirs", "datadir"}) {
    const std::size_t at = before.size() - std::min(before.size(), word.size());
    if (lower_case(before.substr(at)) == word && (at == 0 || !word_char(before[at - 1]))) return true;
  }
  return false;
}

// True if the colon at the beginning of the text is part of a path, as in "topic:channel.dat" and "job:42.json". It is
// not part of the path in "x/y.go:17", which is a position in source code, nor in "/x: no such file", where the error
// follows.
bool colon_of_path(std::string_view following) {
  std::size_t end = 1, dot = 0;
  while (end < following.size() && path_char(following[end])) {
    if (following[end] == '.' && end > 1) dot = end;
    ++end;
  }
  return dot != 0 && dot + 1 < end && is_alpha(following[dot + 1]) &&
         following.substr(1, end - 1).find('/') == std::string_view::npos;
}

// The end of a quoted path. Such a path may contain blanks and colons: '/srv/data/order: 7.json'. npos if the quotes
// contain more than a path.
std::size_t quoted_path_end(std::string_view text, std::size_t begin) {
  if (begin == 0 || text[begin] != '/' || (text[begin - 1] != '"' && text[begin - 1] != '\''))
    return std::string_view::npos;
  const std::size_t end = text.find(text[begin - 1], begin);
  const std::string_view inside = text.substr(begin, end == std::string_view::npos ? 0 : end - begin);
  const bool plain = !inside.empty() && inside.find('\n') == std::string_view::npos &&
                     inside.find(" -") == std::string_view::npos && inside.find(" /") == std::string_view::npos;
  return plain ? end : std::string_view::npos;
}

// True if a line number follows: "x/y.go:17", "x/y.cs:line 17", "x/Y.pm line 17" (Perl), "x/y.php on line 17".
bool names_line(std::string_view following) {
  for (const std::string_view words : {":", ":line ", " line ", " on line "})
    if (following.starts_with(words) && following.size() > words.size() && is_digit(following[words.size()]))
      return true;
  return false;
}

// True if the path is a position in source code. For a language in kCompiled, every path is a position, in whatever
// form the line number follows ("x/Device.cc: 604:", "x/device.cpp(604)"), because programs in these languages never
// read or write their source files. A program may read a script, so a path to a script is a position only if a line
// number follows.
bool is_position(std::string_view path, std::string_view following) {
  constexpr std::array<std::string_view, 14> kCompiled{".c",  ".cc",  ".cpp",   ".cxx", ".h",  ".hpp", ".hh",
                                                       ".go", ".erl", ".scala", ".kt",  ".rs", ".ml",  ".java"};
  return names_line(following) ||
         std::ranges::any_of(kCompiled, [&](std::string_view extension) { return path.ends_with(extension); });
}

// True if the path after `before` is that of a client's request: "GET /x".
bool is_request(std::string_view before) {
  for (const std::string_view verb : {"GET ", "PUT ", "POST ", "HEAD ", "PATCH ", "DELETE ", "OPTIONS "})
    if (before.ends_with(verb)) return true;
  return false;
}

// A file name without a folder, which matches in any folder. It is in quotes after the word "file" or "segment", or it
// is a word with the extension of a data file ("CommitLog-1-2.log", "collection-2.wt"). "" if there is none.
std::string bare_file_name(std::string_view text, const Found& error) {
  if (error.at == std::string_view::npos) return {};
  const std::string low = lower_case(text.substr(0, text.find('\n')));
  const auto of_name = [](char c) { return word_char(c) || c == '-' || c == '.' || c == '+' || c == '~'; };
  for (const std::string_view word : {"file", "segment", "files"})
    for (std::size_t at = low.find(word); at != std::string::npos; at = low.find(word, at + 1)) {
      std::size_t begin = at + word.size();
      if (at != 0 && word_char(low[at - 1])) continue;
      while (begin < low.size() && (low[begin] == ' ' || low[begin] == ':')) ++begin;
      if (begin >= low.size() || (low[begin] != '"' && low[begin] != '\'' && low[begin] != '`')) continue;
      const std::size_t end = low.find(low[begin] == '`' ? '\'' : low[begin], begin + 1);
      if (end == std::string::npos) continue;
      const std::string_view name = text.substr(begin + 1, end - begin - 1);
      if (name.size() >= 3 && name.size() <= 255 && std::all_of(name.begin(), name.end(), of_name))
        return std::string(name);
    }
  // Extensions of data files, logs and configuration files. Names of hosts and classes do not end like this.
  constexpr std::array kEndings = std::to_array<std::string_view>(
      {".log",   ".wal", ".db",   ".dat",     ".data", ".sst",  ".wt",  ".snap", ".snapshot",
       ".index", ".idx", ".rdb",  ".aof",     ".tmp",  ".json", ".bin", ".ldb",  ".frm",
       ".ibd",   ".toc", ".ckpt", ".journal", ".meta", ".lock", ".pid", ".txn"});
  for (std::size_t at = 0; at < low.size();) {
    if (!of_name(low[at])) {
      ++at;
      continue;
    }
    const std::size_t begin = at;
    while (at < low.size() && of_name(low[at])) ++at;
    std::string_view name = std::string_view(low).substr(begin, at - begin);
    while (name.ends_with('.')) name.remove_suffix(1);
    const bool file = std::any_of(kEndings.begin(), kEndings.end(),
                                  [&](std::string_view ending) { return name.ends_with(ending) && name != ending; });
    if (file && !error.covers(begin)) return std::string(text.substr(begin, name.size()));
  }
  return {};
}

// Fields that describe the request of a client. An address in them is the client's, and not that of a peer that the
// node needs.
constexpr std::array kOfRequest =
    std::to_array<std::string_view>({"version", "client", "clientip", "clientaddr", "clientaddress", "remoteaddr",
                                     "remoteip", "userip", "xforwardedfor"});

// True if the text at `at` is the value of such a field: "remoteAddr=10.1.2.3", ", client: 10.1.2.3,".
bool of_request(std::string_view text, std::size_t at) {
  std::string_view before = text.substr(0, at);
  const auto strip = [&](std::string_view chars) {
    const bool there = !before.empty() && chars.find(before.back()) != std::string_view::npos;
    if (there) before.remove_suffix(1);
    return there;
  };
  strip("\"'");
  const bool listed = strip(" ");
  if (!(listed ? strip(":") : strip("=:"))) return false;
  strip("\"'");
  std::string key;
  for (; !before.empty() && (word_char(before.back()) || before.back() == '-'); before.remove_suffix(1))
    if (before.back() != '_' && before.back() != '-') key += lower_case(before.back());
  std::ranges::reverse(key);
  return (!listed || before.ends_with(", ")) && std::ranges::find(kOfRequest, key) != kOfRequest.end();
}

}  // namespace

std::string find_path(std::string_view text, const Found& error) {
  std::string_view best;
  bool best_is_directory = false;
  std::size_t best_distance = std::string_view::npos;
  std::size_t line = 0;  // offset at which the line begins
  bool code = is_code_line(text.substr(0, text.find('\n')));
  for (std::size_t at = 0; at < text.size();) {
    if (text[at] == '\n') {
      line = at + 1;
      code = is_code_line(text.substr(line, text.find('\n', line) - line));
    }
    if (code || !path_char(text[at]) || error.covers(at)) {
      ++at;
      continue;
    }
    const std::size_t begin = at;
    if (const std::size_t end = quoted_path_end(text, begin); end != std::string_view::npos) {
      at = end;
    } else {
      bool folder = false;
      while (at < text.size() && (path_char(text[at]) || (text[at] == ':' && folder && colon_of_path(text.substr(at)))))
        folder = text[at++] == '/' || folder;
    }
    std::string_view word = text.substr(begin, at - begin);
    const std::string_view before = text.substr(line, begin - line), following = text.substr(at);
    const bool frame = before.ends_with("{file,\"");  // Erlang's stack trace: {file,"src/x.erl"},{line,7}
    const bool url = begin >= 1 && text[begin - 1] == ':' && word.starts_with("//");
    const bool quoted = begin > 0 && (text[begin - 1] == '"' || text[begin - 1] == '\'');
    while (!word.empty() && (word.back() == '.' || word.back() == '=')) word.remove_suffix(1);
    const std::size_t slash = word.find('/');
    const std::size_t equals = word.rfind('=', std::min(slash, word.size()));
    if (equals != std::string_view::npos && equals < slash) word.remove_prefix(equals + 1);
    if (url || frame || is_request(before) || word.find('/') == std::string_view::npos || word.size() < 3 ||
        (word.starts_with("//") && !quoted))
      continue;
    const std::size_t letters = static_cast<std::size_t>(
        std::count_if(word.begin(), word.end(), [](char c) { return word_char(c) && !is_digit(c); }));
    if (letters < 2 || word == "I/O" || word == "i/o") continue;  // such as "3/5" or "1/0/0"
    if (word[0] != '/' && !quoted) {
      const std::size_t first = word.find('/');
      // "cannot save: data/db: write failed"
      const bool subject = following.starts_with(": ") && before.ends_with(": ");
      if (word.find('.') == std::string_view::npos && !subject) continue;  // such as "and/or"
      if (is_digit(word[std::min(word.size() - 1, first + 1)])) continue;  // a version: "HTTP/1.1"
      if (word[0] != '.' && word.substr(0, first).find('.') != std::string_view::npos)
        continue;  // code: "google.golang.org/grpc"
    }
    if (is_position(word, following)) continue;
    const std::size_t distance = error.at == std::string_view::npos ? begin
                                 : error.at > begin                 ? error.at - begin
                                                                    : begin - error.at + 40;
    if (distance >= best_distance) continue;
    best = word;
    // True if a volume or a folder is meant: "/x is out of space", "/x has no space left", "/x ran out of space".
    const bool volume =
        error.is_disk_full() && error.at >= at && error.at - at < kOfVolume &&
        (following.starts_with(" is ") || following.starts_with(" has ") || following.starts_with(" ran "));
    best_is_directory = volume || (!error.covers(begin - std::min<std::size_t>(begin, 4)) && names_directory(before));
    best_distance = distance;
  }
  if (best.empty()) return bare_file_name(text, error);
  std::string path;
  for (const char c : best)  // "data//x.db" and "data/x.db" are the same file
    if (c != '/' || !path.ends_with('/')) path += c;
  if (best_is_directory) path += path.ends_with('/') ? "*" : "/*";
  return path;
}

namespace {

// An IPv6 address at the beginning of a text, such as "fd00::2" or "[fd00::2]:7000". `length`: characters of the
// address; 0 if there is none.
struct LongAddress {
  std::string peer;  // "" if the address is that of no host: "[::]:7000"
  std::size_t length = 0;
};
LongAddress read_long_address(std::string_view text) {
  const bool bracket = text.starts_with('[');
  const std::size_t begin = bracket ? 1 : 0;
  std::size_t end = std::min(text.find_first_not_of("0123456789abcdefABCDEF:.", begin), text.size());
  std::string_view digits = text.substr(begin, end - begin);
  if (end < text.size() && text[end] == '%')  // the interface follows: "fe80::1%eth0"
    while (++end < text.size() && is_name_char(text[end])) {
    }
  // The last character may be punctuation: "fd00::2: connection refused", "lost fd00::2."
  if (!bracket && (digits.ends_with('.') || (digits.ends_with(':') && !digits.ends_with("::"))))
    digits.remove_suffix(1), --end;
  if (std::count(digits.begin(), digits.end(), ':') < 2 || (end < text.size() && word_char(text[end])) ||
      (bracket && (end == text.size() || text[end] != ']')))
    return {};
  const std::optional<Address> address = parse_address(digits);
  if (!address) return {};
  end += begin;
  int port = -1;
  if (bracket && end + 1 < text.size() && text[end] == ':') port = number_at(text, end + 1);
  if (port > 0 && port < 65536) end = std::min(text.find_first_not_of("0123456789", end + 1), text.size());
  if (*address == Address()) return {{}, end};
  return {port > 0 && port < 65536 ? address->with_port(static_cast<std::uint16_t>(port)) : address->text(), end};
}

}  // namespace

std::string find_peer(std::string_view text) {
  std::string best;
  for (std::size_t at = 0; at < text.size(); ++at) {
    if ((std::isxdigit(static_cast<unsigned char>(text[at])) != 0 || text[at] == ':' || text[at] == '[') &&
        (at == 0 || (!word_char(text[at - 1]) && text[at - 1] != ':' && text[at - 1] != '.'))) {
      const LongAddress address = read_long_address(text.substr(at));
      if (address.length != 0) {
        if (!address.peer.empty() && (address.peer.starts_with('[') || !of_request(text, at))) best = address.peer;
        at += address.length - 1;
        continue;
      }
    }
    // A letter may precede an address, as in "S10.0.0.1:11111" or "ip10.0.0.1", unless it is the "v" of a version.
    if (!is_digit(text[at]) ||
        (at != 0 && (is_digit(text[at - 1]) || std::string_view("._-vV").find(text[at - 1]) < 5)))
      continue;
    int parts = 0;
    std::size_t i = at;
    for (; parts < 4; ++parts) {
      const int number = number_at(text, i);
      if (number < 0 || number > 255) break;
      while (i < text.size() && is_digit(text[i])) ++i;
      if (parts < 3) {
        if (i >= text.size() || text[i] != '.') break;
        ++i;
      }
    }
    if (parts != 4) {
      while (at + 1 < text.size() && is_digit(text[at + 1])) ++at;
      continue;
    }
    std::size_t end = i;
    if ((i >= text.size() || text[i] != ':') && of_request(text, at)) {
      at = i;
      continue;
    }
    if (i + 1 < text.size() && text[i] == ':' && is_digit(text[i + 1]))
      for (++end; end < text.size() && is_digit(text[end]); ++end) {
      }
    if (text.substr(at, i - at) != "0.0.0.0") best = text.substr(at, end - at);
    at = end;
  }
  return best;
}

}  // namespace rose::logs
