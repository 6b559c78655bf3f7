#include "base/redact.h"

#include <fmt/format.h>
#include <pwd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdlib>

namespace rose {
namespace {

// in characters; keys, cookies and digests are at least that long, words are shorter
constexpr std::size_t kLongToken = 24;
constexpr std::size_t kLongHex = 16;
constexpr int kLastByte = 254;

bool alnum(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0; }
bool digit(char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; }
bool hex(char c) { return std::isxdigit(static_cast<unsigned char>(c)) != 0; }
// Characters of addresses, host names and tokens.
bool of_word(char c) { return alnum(c) || c == '.' || c == '-' || c == '_' || c == ':' || c == '+' || c == '='; }

bool ipv4(std::string_view text) {
  int parts = 0;
  while (true) {
    std::size_t n = 0;
    while (n < text.size() && digit(text[n])) ++n;
    if (n == 0 || n > 3 || std::atoi(std::string(text.substr(0, n)).c_str()) > 255) return false;
    ++parts;
    text.remove_prefix(n);
    if (text.empty()) return parts == 4;
    if (text.front() != '.' || parts == 4) return false;
    text.remove_prefix(1);
  }
}

bool ipv6(std::string_view text) {
  const auto colons = std::count(text.begin(), text.end(), ':');
  // "10:31:44" is a time: two colons and nothing but digits.
  const bool letters = std::any_of(text.begin(), text.end(), [](char c) { return hex(c) && !digit(c); });
  return colons >= 2 && (letters || text.find("::") != std::string_view::npos || colons >= 5) &&
         std::all_of(text.begin(), text.end(), [](char c) { return hex(c) || c == ':'; });
}

bool own_address(std::string_view text) {
  return text.starts_with("127.") || text == "0.0.0.0" || text == "::" || text == "::1";
}

bool host_name(std::string_view text) {
  static constexpr std::array<std::string_view, 12> kEnds{".com",  ".net",      ".org", ".io",  ".local",   ".internal",
                                                          ".corp", ".intranet", ".lan", ".dev", ".example", ".cloud"};
  return std::count(text.begin(), text.end(), '.') >= 1 &&
         std::any_of(kEnds.begin(), kEnds.end(), [&](std::string_view end) {
           return text.size() > end.size() && text.ends_with(end) && alnum(text[0]);
         });
}

bool long_token(std::string_view text) {
  const bool digits = std::any_of(text.begin(), text.end(), digit);
  const bool letters = std::any_of(text.begin(), text.end(), [](char c) { return alnum(c) && !digit(c); });
  if (!digits || !letters) return false;
  if (text.size() >= kLongHex && std::all_of(text.begin(), text.end(), hex)) return true;
  return text.size() >= kLongToken && text.find('.') == std::string_view::npos &&
         text.find(':') == std::string_view::npos;
}

}  // namespace

Redactor Redactor::of_this_machine() {
  std::vector<std::string> hosts, users;
  std::array<char, 256> name{};
  if (::gethostname(name.data(), name.size() - 1) == 0 && name[0] != '\0' &&
      std::string_view(name.data()) != "localhost")
    hosts.emplace_back(name.data());
  const auto add_user = [&](const char* user) {
    if (user != nullptr && *user != '\0' && std::string_view(user) != "root" && std::string_view(user) != "nobody")
      users.emplace_back(user);
  };
  add_user(std::getenv("SUDO_USER"));
  if (const passwd* entry = ::getpwuid(::getuid()); entry != nullptr) add_user(entry->pw_name);
  return {std::move(hosts), std::move(users)};
}

void Redactor::add_host(std::string_view name) {
  if (!name.empty() && name != "localhost") hosts_.emplace_back(name);
}

const std::string& Redactor::known(std::string_view what, std::string_view text) {
  const auto [at, fresh] = replaced_.try_emplace(fmt::format("{} {}", what, text));
  if (fresh) {
    const int n = ++count_[std::string(what)];
    if (what == "address") {
      // Addresses from the ranges reserved for documentation; when these are used up, from the range of carriers'
      // networks (100.64.0.0/10), which no test deployment uses.
      static constexpr std::array<std::string_view, 3> kRanges{"192.0.2.", "198.51.100.", "203.0.113."};
      const int range = (n - 1) / kLastByte, last = (n - 1) % kLastByte + 1;
      at->second = range < 3 ? fmt::format("{}{}", kRanges[static_cast<std::size_t>(range)], last)
                             : fmt::format("100.{}.{}.{}", 64 + range / 256 % 64, range % 256, last);
    } else if (what == "address6") {
      at->second = fmt::format("2001:db8::{:x}", n);
    } else {
      at->second = fmt::format("{}-{}", what, n);
    }
    made_.insert(at->second);
  }
  return at->second;
}

// Redacts one word. Punctuation around it that does not belong to it is kept.
std::string Redactor::word(std::string_view text) {
  const auto outside = [](char c) { return c == '.' || c == '-' || c == '_' || c == '+' || c == '='; };
  std::string before, after;
  while (!text.empty() && outside(text.front())) before += text.front(), text.remove_prefix(1);
  while (!text.empty() && (outside(text.back()) || (text.back() == ':' && !text.ends_with("::"))))
    after.insert(after.begin(), text.back()), text.remove_suffix(1);
  const auto whole = [&](const std::string& made) { return before + made + after; };
  if (text.empty() || own_address(text) || made_.contains(text) || kept_.contains(text))
    return whole(std::string(text));
  if (ipv6(text)) return whole(known("address6", text));
  // "HOST:PORT", "key=VALUE" and similar forms are redacted part by part.
  for (const char sign : {'=', ':'})
    if (const std::size_t at = text.find(sign); at != std::string_view::npos)
      return whole(word(text.substr(0, at)) + sign + word(text.substr(at + 1)));
  if (ipv4(text)) return whole(known("address", text));
  if (std::find(hosts_.begin(), hosts_.end(), text) != hosts_.end() || host_name(text))
    return whole(known("host", text));
  if (std::find(users_.begin(), users_.end(), text) != users_.end()) return whole(known("user", text));
  if (long_token(text)) return whole(known("token", text));
  return whole(std::string(text));
}

std::string Redactor::operator()(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t i = 0; i < text.size();) {
    if (!of_word(text[i])) {
      out += text[i++];
      continue;
    }
    std::size_t end = i;
    while (end < text.size() && of_word(text[end])) ++end;
    std::string_view one = text.substr(i, end - i);
    // The name after "/home/" is that of a user.
    if (out.ends_with("/home/") && !made_.contains(one)) out += known("user", one);
    else out += word(one);
    i = end;
  }
  return out;
}

}  // namespace rose
