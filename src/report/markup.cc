#include "report/markup.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/utf8.h"

namespace rose::report {
namespace {

bool allowed(std::string_view character) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(character[i]); };
  switch (character.size()) {
    case 1: return byte(0) >= 0x20 ? byte(0) != 0x7f : character == "\n" || character == "\t";
    case 2: return !(byte(0) == 0xc2 && byte(1) < 0xa0) && character != "\u061c";  // C1 controls, Arabic letter mark
    case 3:
      if (byte(0) == 0xef && byte(1) == 0xbf && byte(2) >= 0xbe) return false;  // U+FFFE, U+FFFF
      if (byte(0) == 0xe2 && byte(1) == 0x80)                                   // U+200E, 200F, 2028 to 202E
        return byte(2) != 0x8e && byte(2) != 0x8f && !(byte(2) >= 0xa8 && byte(2) <= 0xae);
      if (byte(0) == 0xe2 && byte(1) == 0x81) return !(byte(2) >= 0xa6 && byte(2) <= 0xa9);  // U+2066 to 2069
      return true;
    default: return true;
  }
}

}  // namespace

std::string escape(std::string_view text) {
  std::string out;
  out.reserve(text.size() + text.size() / 8);
  while (!text.empty()) {
    const std::size_t length = utf8_length(text);
    const std::string_view character = text.substr(0, std::max<std::size_t>(length, 1));
    if (length == 0 || !allowed(character)) {
      for (const char c : character) out += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
    } else {
      switch (character.front()) {
        case '&': out += "&amp;"; break;
        case '<': out += "&lt;"; break;
        case '>': out += "&gt;"; break;
        case '"': out += "&quot;"; break;
        case '\'': out += "&#39;"; break;
        default: out += character;
      }
    }
    text.remove_prefix(character.size());
  }
  return out;
}

std::string shorten(std::string_view text, std::size_t most) {
  if (text.size() <= most) return std::string(text);
  std::size_t end = 0;
  while (true) {
    const std::size_t length = std::max<std::size_t>(utf8_length(text.substr(end)), 1);
    if (end + length + 3 > most) break;
    end += length;
  }
  return std::string(text.substr(0, end)) + "...";
}

namespace {

// The tag of an element. In attributes that people read, the values are redacted.
std::string redacted_tag(std::string_view tag, Redactor& redactor) {
  std::string out(tag);
  for (const std::string_view attribute : {" title=\"", " aria-label=\"", " href=\""}) {
    const std::size_t begin = out.find(attribute);
    if (begin == std::string::npos) continue;
    const std::size_t value = begin + attribute.size(), end = out.find('"', value);
    if (end == std::string::npos) continue;
    out.replace(value, end - value, redactor(std::string_view(out).substr(value, end - value)));
  }
  return out;
}

}  // namespace

std::string redacted(std::string_view html, Redactor& redactor) {
  std::string out;
  out.reserve(html.size());
  for (std::size_t at = 0; at < html.size();) {
    std::size_t end = std::min(html.find('<', at), html.size());
    out += redactor(html.substr(at, end - at));
    at = end;
    if (at == html.size()) break;
    end = html.find('>', at);
    if (end == std::string_view::npos) break;  // rose did not write this page
    const std::string_view tag = html.substr(at, end + 1 - at);
    out += redacted_tag(tag, redactor);
    at = end + 1;
    for (const auto& [begins, ends] : {std::pair<std::string_view, std::string_view>{"<style", "</style>"},
                                       std::pair<std::string_view, std::string_view>{"<script", "</script>"}}) {
      if (!tag.starts_with(begins)) continue;
      end = std::min(html.find(ends, at), html.size());
      out += html.substr(at, end - at);
      at = end;
    }
  }
  return out;
}

}  // namespace rose::report
