#include "logs/read/journal.h"

#include <utility>

#include "base/ascii.h"
#include "base/text.h"
#include "logs/reader.h"

namespace rose::logs {
namespace {

constexpr std::uint64_t kLongestField = std::uint64_t{768} << 20;  // bytes; the journal's own limit for a field
constexpr std::size_t kLongestKey = 256;

void take_field(std::string_view key, std::string_view value, JournalEntry& entry) {
  if (key == "__REALTIME_TIMESTAMP") {
    TimeStamp stamp;
    stamp.zoned = true;
    for (const char c : value.substr(0, 16)) stamp.ns = is_digit(c) ? stamp.ns * 10 + (c - '0') : stamp.ns;
    stamp.ns *= 1000;
    entry.time = stamp;
  } else if (key == "MESSAGE") {
    entry.message.assign(value.substr(0, kLongestText));
  } else if (key == "SYSLOG_IDENTIFIER") {
    entry.identifier.assign(value);
  } else if (key == "_SYSTEMD_UNIT") {
    entry.unit.assign(value);
  } else if (key == "_HOSTNAME") {
    entry.host.assign(value);
  } else if (key == "PRIORITY" && value.size() == 1 && value[0] >= '0' && value[0] <= '7') {
    entry.level = level_of_severity(value[0] - '0');
  }
}

}  // namespace

bool JournalReader::next(JournalEntry& entry) {
  while (!ended_) {
    entry = {.message = {}, .identifier = {}, .unit = {}, .host = std::move(entry.host), .time = {}, .level = {}};
    while (read_field(entry)) {
    }
    if (entry.time && !entry.message.empty()) return true;
  }
  return false;
}

bool JournalReader::read_field(JournalEntry& entry) {
  if (!std::exchange(has_line_, false) && !lines_.next(line_)) {
    ended_ = true;
    return false;
  }
  ++lines_read_;
  if (line_.empty()) return false;
  const std::size_t equals = line_.find('=');
  if (equals != std::string_view::npos) {
    take_field(line_.substr(0, equals), line_.substr(equals + 1), entry);
    return true;
  }
  const std::string key(line_.substr(0, kLongestKey));
  ended_ = !read_binary(key, entry);
  return !ended_;
}

bool JournalReader::read_binary(std::string_view key, JournalEntry& entry) {
  std::string_view bytes;
  if (!lines_.take(8, bytes)) return false;
  std::uint64_t length = 0;
  for (std::size_t i = 8; i-- > 0;) length = length << 8 | static_cast<unsigned char>(bytes[i]);
  if (length > kLongestField) {
    problem_ = fmt::format("a field of the journal claims to have {} bytes, so nothing was read from there on", length);
    return false;
  }
  if (lines_.take(length, bytes)) take_field(key, bytes, entry);
  return lines_.next(line_);  // skip the newline after the bytes
}

}  // namespace rose::logs
