#include "logs/line/json_line.h"

#include <cstdint>

#include "base/ascii.h"
#include "base/utf8.h"

namespace rose::logs {
namespace {

constexpr std::size_t kMostMembers = 256;

void skip_blanks(std::string_view line, std::size_t& at) {
  while (at < line.size() && (line[at] == ' ' || line[at] == '\t')) ++at;
}

// The value of the four hexadecimal digits after "\u"; -1 if there are no such digits.
int code_unit(std::string_view line, std::size_t at) {
  if (at + 4 > line.size()) return -1;
  int value = 0;
  for (std::size_t i = 0; i < 4; ++i) {
    const int digit = hex_digit(line[at + i]);
    if (digit < 0) return -1;
    value = value * 16 + digit;
  }
  return value;
}

}  // namespace

bool JsonLine::string(std::string_view line, std::size_t& at, std::string_view& value) {
  const std::size_t begin = ++at;
  while (at < line.size() && line[at] != '"' && line[at] != '\\') ++at;
  if (at >= line.size()) return false;
  if (line[at] == '"') {  // nothing is escaped, so no copy is needed
    value = line.substr(begin, at - begin);
    ++at;
    return true;
  }
  const std::size_t from = used_;
  for (std::size_t i = begin; i < at; ++i) buffer_[used_++] = line[i];
  while (at < line.size() && line[at] != '"') {
    if (line[at] != '\\') {
      buffer_[used_++] = line[at++];
      continue;
    }
    if (at + 1 >= line.size()) return false;
    const char c = line[at + 1];
    at += 2;
    if (c != 'u') {
      buffer_[used_++] = c == 'n' ? '\n' : c == 't' ? '\t' : c == 'r' ? '\r' : c == 'b' ? '\b' : c == 'f' ? '\f' : c;
      continue;
    }
    const int high = code_unit(line, at);
    if (high < 0) return false;
    at += 4;
    std::uint32_t code = static_cast<std::uint32_t>(high);
    if (high >= 0xd800 && high < 0xdc00) {
      const int low = line.substr(at, 2) == "\\u" ? code_unit(line, at + 2) : -1;
      if (low >= 0xdc00 && low < 0xe000) {
        code =
            0x10000 + ((static_cast<std::uint32_t>(high) - 0xd800) << 10) + (static_cast<std::uint32_t>(low) - 0xdc00);
        at += 6;
      } else {
        code = '?';
      }
    } else if (high >= 0xdc00 && high < 0xe000) {
      code = '?';
    }
    used_ += put_utf8(code, buffer_.data() + used_);
  }
  if (at >= line.size()) return false;
  value = std::string_view(buffer_).substr(from, used_ - from);
  ++at;
  return true;
}

// Reads a number, a literal, or a nested value up to its closing bracket.
bool JsonLine::other(std::string_view line, std::size_t& at, std::string_view& value) {
  const std::size_t begin = at;
  std::size_t depth = 0;
  for (; at < line.size(); ++at) {
    const char c = line[at];
    if (c == '"') {
      for (++at; at < line.size() && line[at] != '"'; ++at) at += line[at] == '\\' ? 1 : 0;
      if (at >= line.size()) return false;
    } else if (c == '{' || c == '[') {
      ++depth;
    } else if (c == '}' || c == ']') {
      if (depth == 0) break;
      --depth;
    } else if (depth == 0 && (c == ',' || c == ' ')) {
      break;
    }
  }
  value = line.substr(begin, at - begin);
  return at < line.size() && !value.empty();
}

const JsonMember* JsonLine::find(std::string_view key) const {
  for (const JsonMember& member : members_) {
    if (member.key == key) return &member;
  }
  return nullptr;
}

bool JsonLine::parse(std::string_view line) {
  members_.clear();
  std::size_t at = 0;
  skip_blanks(line, at);
  if (at >= line.size() || line[at] != '{') return false;
  ++at;
  if (buffer_.size() < line.size()) buffer_.resize(line.size());
  used_ = 0;
  for (;;) {
    skip_blanks(line, at);
    if (at >= line.size()) return false;
    if (line[at] == '}') return true;
    if (!members_.empty()) {
      if (line[at] != ',') return false;
      ++at;
      skip_blanks(line, at);
    }
    if (at >= line.size() || line[at] != '"' || members_.size() == kMostMembers) return false;
    JsonMember member;
    if (!string(line, at, member.key)) return false;
    skip_blanks(line, at);
    if (at >= line.size() || line[at] != ':') return false;
    ++at;
    skip_blanks(line, at);
    if (at >= line.size()) return false;
    member.text = line[at] == '"';
    if (member.text ? !string(line, at, member.value) : !other(line, at, member.value)) return false;
    members_.push_back(member);
  }
}

}  // namespace rose::logs
