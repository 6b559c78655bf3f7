// Reads the journal's export format (`journalctl -o export`): entries of KEY=VALUE lines, each entry followed by an
// empty line. A binary value is stored after its KEY: its length in 8 bytes, then its bytes.
// Source: https://systemd.io/JOURNAL_EXPORT_FORMATS
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "logs/line/form.h"
#include "logs/line/lines.h"
#include "logs/line/times.h"

namespace rose::logs {

struct JournalEntry {
  std::string message, identifier, unit, host;
  std::optional<TimeStamp> time;
  Level level = Level::none;
};

class JournalReader {
 public:
  // `first`: the first line of the file, which was read from `lines` already.
  JournalReader(LineReader& lines, std::string_view first) : lines_(lines), line_(first), has_line_(true) {}

  // Reads the next entry that has a message and a time. Returns false at the end. An entry without a host gets the host
  // of the entry before it.
  bool next(JournalEntry& entry);

  [[nodiscard]] std::uint64_t lines_read() const { return lines_read_; }
  // The reason why the file was not read to its end, in one sentence; "" if it was.
  [[nodiscard]] const std::string& problem() const { return problem_; }

 private:
  // Reads one line or one binary field. Returns false at the end of the entry.
  bool read_field(JournalEntry& entry);
  bool read_binary(std::string_view key, JournalEntry& entry);

  LineReader& lines_;
  std::string_view line_;
  bool has_line_;  // line_ was not used yet
  bool ended_ = false;
  std::uint64_t lines_read_ = 0;
  std::string problem_;
};

}  // namespace rose::logs
