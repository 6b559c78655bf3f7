#include "draft/secrets.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <vector>

#include "base/ascii.h"
#include "base/result.h"
#include "draft/words.h"

namespace rose::draft {
namespace {

// Splits a name into its words, in lower case: "aws.secretKey" into "aws", "secret" and "key".
std::vector<std::string> name_parts(std::string_view name) {
  std::vector<std::string> parts(1);
  for (std::size_t i = 0; i < name.size(); ++i) {
    const char c = name[i];
    if (!is_alpha(c) && !is_digit(c)) {
      parts.emplace_back();
      continue;
    }
    if (is_upper(c) && i > 0 && is_lower(name[i - 1])) parts.emplace_back();
    parts.back() += lower_case(c);
  }
  std::erase(parts, "");
  return parts;
}

bool is_one_of(std::string_view word, std::initializer_list<std::string_view> list) {
  return std::find(list.begin(), list.end(), word) != list.end();
}

// True for values that are hardly ever passwords, whatever the option's name is.
bool plain_value(std::string_view value) {
  const std::string low = lower_case(value);
  return value.empty() || value.front() == '/' || value.starts_with("./") || value.starts_with("${") ||
         is_one_of(low, {"true", "false", "yes", "no", "on", "off", "0", "1", "none", "null", "default"});
}

bool all_numbers(std::string_view value) { return std::all_of(value.begin(), value.end(), is_digit); }

bool has_key_name(std::string_view name) {
  const auto parts = name_parts(name);
  return !parts.empty() && parts.back().ends_with("key");
}

double entropy(std::string_view text) {  // bits per character
  std::array<double, 256> counts{};
  for (const char c : text) counts[static_cast<unsigned char>(c)] += 1;
  double bits = 0;
  for (const double count : counts)
    if (count > 0)
      bits -= count / static_cast<double>(text.size()) * std::log2(count / static_cast<double>(text.size()));
  return bits;
}

// Random base64 often switches between upper case, lower case and digits; names and versions do not.
bool looks_random(std::string_view value) {
  if (value.size() < 20) return false;
  std::size_t digits = 0;
  std::size_t changes = 0;
  bool has_upper = false;
  bool has_lower = false;
  const auto kind = [](char c) { return is_upper(c) ? 0 : is_lower(c) ? 1 : is_digit(c) ? 2 : 3; };
  for (std::size_t i = 0; i < value.size(); ++i) {
    const char c = value[i];
    if (kind(c) == 3 && c != '+' && c != '/' && c != '=' && c != '_') return false;
    digits += is_digit(c) ? 1 : 0;
    has_upper = has_upper || is_upper(c);
    has_lower = has_lower || is_lower(c);
    if (i > 0 && kind(c) != kind(value[i - 1])) ++changes;
  }
  return has_upper && has_lower && digits >= 2 && changes * 3 >= value.size() && entropy(value) >= 3.8;
}

}  // namespace

bool names_secret(std::string_view name) {
  const std::vector<std::string> parts = name_parts(name);
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const std::string& part = parts[i];
    // In "password_file", the value is a path and not a secret. masked() judges values of "key" and similar names by
    // their form.
    if (is_one_of(part, {"file", "path", "dir", "directory", "ttl", "timeout", "length", "policy", "type"}) &&
        i + 1 == parts.size())
      return false;
  }
  for (const std::string& part : parts) {
    if (part.find("passw") != std::string::npos || part.find("passphrase") != std::string::npos ||
        part.find("secret") != std::string::npos || part.find("credential") != std::string::npos ||
        part.find("apikey") != std::string::npos || part.find("accesskey") != std::string::npos ||
        part.find("privatekey") != std::string::npos)
      return true;
    if (part.ends_with("pass") && !is_one_of(part, {"bypass", "compass"})) return true;
    if (part.ends_with("token") || is_one_of(part, {"pwd", "pw", "masterauth", "authkey", "jwt"})) return true;
  }
  return false;
}

bool is_token(std::string_view value) {
  for (const std::string_view prefix : {"ghp_", "gho_", "ghs_", "github_pat_", "glpat-", "xoxb-", "xoxp-", "xoxa-",
                                        "sk_live_", "sk-", "AKIA", "ASIA", "AIza", "hvs.", "eyJ"})
    if (value.size() >= prefix.size() + 14 && value.starts_with(prefix) &&
        std::all_of(value.begin(), value.end(), is_name_char))
      return true;
  return value.find("PRIVATE KEY-----") != std::string_view::npos || looks_random(value);
}

std::string Secrets::stand_in(std::string_view secret) {
  if (const auto known = made_.find(secret); known != made_.end()) return known->second;
  return made_.emplace(secret, fmt::format("rose-secret-{}", made_.size() + 1)).first->second;
}

// Masks the secret in "scheme://user:secret@host", anywhere in the text.
std::string Secrets::masked_url(std::string_view text) {
  std::string out;
  for (;;) {
    const std::size_t begin = text.find("://");
    if (begin == std::string_view::npos) return out + std::string(text);
    const std::string_view rest = text.substr(begin + 3);
    const std::size_t end = std::min(rest.find_first_of("/?# \t\n\"'"), rest.size());
    const std::size_t at = rest.substr(0, end).rfind('@');
    const std::size_t colon = rest.substr(0, at == std::string_view::npos ? 0 : at).find(':');
    if (at == std::string_view::npos || colon == std::string_view::npos || colon + 1 >= at) {
      out += text.substr(0, begin + 3 + end);
    } else {
      out += text.substr(0, begin + 3 + colon + 1);
      out += stand_in(rest.substr(colon + 1, at - colon - 1));
      out += rest.substr(at, end - at);
    }
    text.remove_prefix(begin + 3 + end);
  }
}

// Masks secrets in scripts and lists: "PGPASSWORD=x exec db --token y", "host=a password=b", "user=a;password=b".
std::string Secrets::masked_words(std::string_view text) {
  std::string out;
  std::string option;  // the previous word, if it is an option that names a secret
  while (!text.empty()) {
    const std::size_t gap = std::min(text.find_first_not_of(" \t\n;,&|()'\"?"), text.size());
    out += text.substr(0, gap);
    text.remove_prefix(gap);
    const std::size_t end = std::min(text.find_first_of(" \t\n;,&|()'\"?"), text.size());
    const std::string_view word = text.substr(0, end);
    text.remove_prefix(end);
    const std::size_t equals = word.find('=');
    if (equals != std::string_view::npos && names_secret(word.substr(0, equals)) &&
        !plain_value(word.substr(equals + 1)) && !(word.ends_with('$') && text.starts_with('('))) {  // $(VARIABLE)
      out += word.substr(0, equals + 1);
      out += stand_in(word.substr(equals + 1));
    } else if (!option.empty() && !word.starts_with('-') && !plain_value(word)) {
      out += stand_in(word);
    } else if (is_token(word)) {
      out += stand_in(word);
    } else {
      out += word;
    }
    option = word.starts_with('-') && equals == std::string_view::npos && names_secret(word) ? std::string(word) : "";
  }
  return out;
}

std::string Secrets::masked(std::string_view name, std::string_view value) {
  if (plain_value(value)) return std::string(value);
  const bool spaces = value.find_first_of(" \t\n") != std::string_view::npos;
  if (!name.empty() && names_secret(name)) {
    // A number is usually a count or a limit (MAX_TOKENS=4096) and is not masked, but a password may be a number.
    const auto parts = name_parts(name);
    const bool counts = all_numbers(value) && std::none_of(parts.begin(), parts.end(), [](const std::string& part) {
                          return part.find("pass") != std::string::npos || part == "pwd" || part == "pw";
                        });
    if (!counts && value.find("://") == std::string_view::npos) return stand_in(value);
  }
  if (!name.empty() && !spaces && has_key_name(name) && value.size() >= 12 &&
      value.find_first_of("/.:,") == std::string_view::npos)
    return stand_in(value);
  if (is_token(value)) return stand_in(value);
  return masked_words(masked_url(value));
}

}  // namespace rose::draft
