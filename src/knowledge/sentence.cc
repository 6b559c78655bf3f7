#include "knowledge/sentence.h"

#include <algorithm>
#include <array>

#include "base/ascii.h"

namespace rose::knowledge {
namespace {

bool letter(char c) { return is_alpha(c) || is_digit(c); }
bool blank(char c) { return c == ' ' || c == '\t' || c == '\r'; }

// True for a line of a stack trace, which names code: "\tat x.Y.z(Y.java:3)", "  File \"x.py\", line 3".
bool stack_frame(std::string_view line) {
  line.remove_prefix(std::min(line.find_first_not_of(" \t"), line.size()));
  return line.starts_with("at ") || line.starts_with("File \"") || line.starts_with("goroutine ") ||
         line.starts_with("created by ");
}

// True for "store/n2" and "group@host/n2": one slash with a name before and after it.
bool is_qualified(std::string_view compound) {
  compound.remove_prefix(std::min(compound.find_first_not_of("\"'`([{<"), compound.size()));
  while (!compound.empty() && std::string_view("\"'`)]}>,;:.").find(compound.back()) != std::string_view::npos)
    compound.remove_suffix(1);
  const std::size_t slash = compound.find('/');
  const auto of_name = [](char c) { return letter(c) || c == '-'; };
  return slash != std::string_view::npos && slash != 0 && is_alpha(compound[0]) && slash + 1 < compound.size() &&
         std::all_of(compound.begin() + static_cast<std::ptrdiff_t>(slash) + 1, compound.end(), of_name);
}

// A verb and its "not" become one word, whether they are contracted ("can't") or not ("can not").
struct Denied {
  std::string_view verb, shortened, whole;
};
constexpr std::array kDenied = std::to_array<Denied>({
    {"can", "can't", "cannot"},
    {"could", "couldn't", "couldnot"},
    {"is", "isn't", "isnot"},
    {"was", "wasn't", "wasnot"},
    {"does", "doesn't", "doesnot"},
    {"did", "didn't", "didnot"},
    {"will", "won't", "willnot"},
    {"has", "hasn't", "hasnot"},
    {"have", "haven't", "havenot"},
    {"are", "aren't", "arenot"},
    {"do", "don't", "donot"},
});

}  // namespace

Sentence::Sentence(std::string_view text, const NamesOfNodes* nodes)
    : text_(text.substr(0, kMost)), nodes_(nodes), low_(lower_case(text_)) {
  words_.reserve(32);
  for (std::size_t at = 0; at < text_.size();) {
    const std::size_t end = std::min(text_.find('\n', at), text_.size());
    read_line(at, end);
    ++clause_;
    at = end + 1;
  }
}

void Sentence::read_line(std::size_t begin, std::size_t end) {
  const bool frame = stack_frame(text_.substr(begin, end - begin));
  for (std::size_t at = begin; at < end;) {
    if (blank(text_[at])) {
      ++at;
      continue;
    }
    std::size_t stop = at;
    while (stop < end && !blank(text_[stop])) ++stop;
    if (nodes_ == nullptr || frame || !read_name(at, stop, frame)) read_compound(at, stop, frame);
    // After a word that ends with '.', ';', '!' or '?', the next word begins a new clause.
    const char last = text_[stop - 1];
    // The dot at the end of a fully qualified host name ends no sentence: "SERVFAIL <www.example.org. A IN>".
    const bool host = last == '.' && stop - at > 2 && is_alpha(text_[stop - 2]) &&
                      std::count(text_.begin() + static_cast<std::ptrdiff_t>(at),
                                 text_.begin() + static_cast<std::ptrdiff_t>(stop), '.') > 2;
    if ((last == '.' && stop - at > 2 && !host) || last == ';' || last == '!' || last == '?') ++clause_;
    // In a chain of errors, each error is a clause, unless it tells what failed: "starting server: failed to open log".
    if (last == ':' && !words_.empty() && words_.back().node.empty() && says_what_failed(stop)) ++clause_;
    at = stop;
  }
}

// Reads text between blanks that contains a node's name or address: "n2:", "[n2]", "peer=10.0.0.2:7000",
// "tcp://10.0.0.2:7000", "n2.cluster.local". Returns false if it contains none. A name in a path is that of a folder,
// and does not count. A name after a single slash is qualified: "store/n2" of Kubernetes, "group@host/n2" of XMPP.
bool Sentence::read_name(std::size_t begin, std::size_t end, bool in_frame) {
  const auto of_name = [](char c) { return letter(c) || c == '_' || c == '.' || c == '-'; };
  const std::string_view compound = text_.substr(begin, end - begin);
  if (compound.find('/') != std::string_view::npos && compound.find("://") == std::string_view::npos &&
      !is_qualified(compound) &&
      !is_digit(compound[std::min(compound.find_first_not_of("\"'`([{<=/"), compound.size() - 1)]))
    return false;
  for (std::size_t at = begin; at < end;) {
    if (!of_name(text_[at])) {
      ++at;
      continue;
    }
    std::size_t stop = at;
    while (stop < end && of_name(text_[stop])) ++stop;
    std::string_view name = text_.substr(at, stop - at);
    while (!name.empty() && (name.back() == '.' || name.back() == '-')) name.remove_suffix(1);
    auto known = nodes_->find(std::string(name));
    if (known == nodes_->end() && !name.empty() && is_alpha(name[0]))  // the first part of a fully qualified host name
      known = nodes_->find(std::string(name.substr(0, name.find('.'))));
    if (known == nodes_->end() || (stop < end && text_[stop] == '=')) {
      at = stop;
      continue;
    }
    const std::size_t last = at + name.size();
    stop = last;
    if (stop + 1 < end && text_[stop] == ':' && is_digit(text_[stop + 1]))  // the port
      for (++stop; stop < end && is_digit(text_[stop]);) ++stop;
    std::size_t before = at;  // the scheme of a URL is no word: "dead peers: tcp://10.0.0.2:7000"
    if (text_.substr(begin, at - begin).ends_with("://"))
      for (before -= 3; before > begin && (letter(text_[before - 1]) || is_digit(text_[before - 1]));) --before;
    if (before > begin) read_compound(begin, before, in_frame);
    add(at, last, true, false);
    words_.back().node = known->second ? kOwnNode : kOtherNode;
    words_.back().after = next_char(stop);
    if (stop < end && !read_name(stop, end, in_frame)) read_compound(stop, end, in_frame);
    return true;
  }
  return false;
}

// Reads text between blanks that contains no node's name.
void Sentence::read_compound(std::size_t begin, std::size_t end, bool in_frame) {
  const std::string_view compound = text_.substr(begin, end - begin);
  const std::size_t first = std::min(compound.find_first_not_of("\"'`([{<"), compound.size());
  const std::string_view bare = compound.substr(first);
  const auto slashes = std::count(bare.begin(), bare.end(), '/');
  const auto dots = static_cast<std::size_t>(std::count(bare.begin(), bare.end(), '.'));
  // A path, URL or address becomes one word that matches nothing.
  // In a list of fields ("mems=0,cpuset=/,task_memcg=/kvd"), the values that begin with a slash do not make it a path.
  std::ptrdiff_t values = 0;
  for (std::size_t at = bare.find("=/"); at != std::string_view::npos; at = bare.find("=/", at + 2)) ++values;
  const bool path = (!bare.empty() && (bare[0] == '/' || bare.starts_with("./"))) || slashes - values > 1 ||
                    (slashes > 1 && values == 1);
  const bool address = dots >= 3 && bare.substr(0, 15).find_first_not_of("0123456789.:") >= 7 && is_digit(bare[0]);
  if (path || address) {
    add(begin, end, false, false);
    return;
  }
  // Of a qualified class name, only the class matches: "java.net.NoRouteToHostException".
  if (dots >= 2 && slashes == 0) {
    std::size_t sign = first;
    while (sign < compound.size() && (letter(compound[sign]) || std::string_view("._$-@").find(compound[sign]) < 5))
      ++sign;
    const std::size_t dot = compound.substr(0, sign).rfind('.');
    if (dot != std::string_view::npos && dot > first && dot + 1 < sign) {
      add(begin + first, begin + dot, false, false);
      begin += dot + 1;
    }
  }
  // An identifier that begins with a lower-case letter is the name of a setting or variable: "minSessionTimeout 1000".
  // If a verb follows that says how something ended, the identifier is the name of an operation: "flushOrSync took 9
  // s".
  bool identifier = first < compound.size() && is_lower(compound[first]) && dots == 0 && !verb_of_end_at(end);
  std::size_t humps = 0;
  for (std::size_t i = first + 1; i < compound.size() && letter(compound[i]); ++i)
    humps += is_upper(compound[i]) && is_lower(compound[i - 1]) ? 1 : 0;
  identifier = identifier && humps > 0;
  for (std::size_t at = begin; at < end;) {
    if (!letter(text_[at])) {
      ++at;
      continue;
    }
    if (at + 2 < end && low_[at] == 'i' && low_[at + 1] == '/' && low_[at + 2] == 'o' &&
        (at == 0 || !letter(text_[at - 1])) && (at + 3 == end || !letter(text_[at + 3]))) {  // "I/O"
      low_.replace(at, 3, "io ");
      add(at, at + 2, !in_frame, false);
      words_.back().end = at + 3;
      at += 3;
      continue;
    }
    std::size_t stop = at + 1;
    while (stop < end) {
      const char c = text_[stop], before = text_[stop - 1];
      if (c == '\'' && stop + 1 < end && text_[stop + 1] == 't' && before == 'n') {
        ++stop;
        continue;
      }
      if (!letter(c)) break;
      if (is_upper(c) && (is_lower(before) || is_digit(before))) break;                     // "socketTimeout"
      if (is_lower(c) && is_upper(before) && stop - at > 1 && is_upper(text_[stop - 2])) {  // "IOError"
        --stop;
        break;
      }
      ++stop;
    }
    // The name of a setting: "timeout=3s", "\"timeout\":5", "timeout => 5".
    std::size_t key_end = stop;
    while (key_end < end && (letter(text_[key_end]) || text_[key_end] == '_' || text_[key_end] == '-' ||
                             (text_[key_end] == '.' && key_end + 1 < end && letter(text_[key_end + 1]))))
      ++key_end;
    const std::string_view rest = text_.substr(key_end);
    std::size_t key_begin = at;  // in a list: ", retries: 3, auth_timeout: 60"
    while (key_begin > begin && (letter(text_[key_begin - 1]) || text_[key_begin - 1] == '_')) --key_begin;
    const bool listed = key_begin > 2 && text_[key_begin - 1] == ' ' && text_[key_begin - 2] == ',' &&
                        rest.size() > 2 && rest[0] == ':' && rest[1] == ' ' && is_digit(rest[2]);
    // "  timeout: 30" on a line of its own, in a list of settings.
    const std::size_t line = text_.find_last_of('\n', begin) + 1;
    const bool item = line != 0 && begin > line && rest.size() > 1 && rest[0] == ':' && blank(rest[1]) &&
                      is_lower(text_[begin]) &&
                      text_.substr(line, begin - line).find_first_not_of(" \t") == std::string_view::npos;
    const bool key = listed || item || identifier || rest.starts_with('=') || rest.starts_with("\":") ||
                     rest.starts_with(" = ") || rest.starts_with(" => ") || rest.starts_with("\\\":");
    add(at, stop, !in_frame, key);
    at = stop;
  }
}

bool Sentence::says_what_failed(std::size_t at) const {
  constexpr auto kFailed = std::to_array<std::string_view>({" failed to ", " unable to ", " cannot ", " could not "});
  const std::string_view rest = std::string_view(low_).substr(at);
  return std::any_of(kFailed.begin(), kFailed.end(), [&](std::string_view words) { return rest.starts_with(words); });
}

bool Sentence::verb_of_end_at(std::size_t at) const {
  constexpr auto kVerbs = std::to_array<std::string_view>(
      {"took", "failed", "timed", "stalled", "blocked", "hung", "lasted", "returned", "exceeded"});
  while (at < low_.size() && low_[at] == ' ') ++at;
  std::size_t end = at;
  while (end < low_.size() && is_lower(low_[end])) ++end;
  return std::find(kVerbs.begin(), kVerbs.end(), std::string_view(low_).substr(at, end - at)) != kVerbs.end();
}

char Sentence::next_char(std::size_t at) const {
  while (at < low_.size() && blank(low_[at])) ++at;
  return at < low_.size() && low_[at] != '\n' ? low_[at] : '\0';
}

void Sentence::add(std::size_t begin, std::size_t end, bool matches, bool key) {
  std::string_view text = std::string_view(low_).substr(begin, end - begin);
  for (const Denied& denied : kDenied)
    if (text == denied.shortened) text = denied.whole;
  if (text == "not" && !words_.empty() && words_.back().clause == clause_)
    for (const Denied& denied : kDenied)
      if (words_.back().text == denied.verb && words_.back().end + 1 == begin) {
        words_.back().text = denied.whole;
        words_.back().end = end;
        words_.back().after = next_char(end);
        return;
      }
  words_.push_back({text, begin, end, clause_, matches, key, begin > 0 ? low_[begin - 1] : '\0', next_char(end), {}});
}

}  // namespace rose::knowledge
