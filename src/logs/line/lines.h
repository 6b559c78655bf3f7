// Lines of a log, whatever stands in it: a line of 100 MB is cut, zero bytes and other control characters do not end a
// line, a text without a newline is one line. Memory is bounded by the longest line that is kept.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "logs/line/bytes.h"

namespace rose::logs {

class LineReader {
 public:
  static constexpr std::size_t kLongestLine = std::size_t{64} << 10;  // the rest of a longer one is left out

  explicit LineReader(Bytes bytes);

  // The next line without its newline (nor a carriage return before it); false: there is none. Valid until the next
  // call.
  bool next(std::string_view& line);
  // The next `count` bytes as they are, newlines included (a binary field of the journal's export form); false: there
  // are fewer or more than kLongestLine are asked for, which are skipped.
  bool take(std::uint64_t count, std::string_view& bytes);

  // The file is a JSON document, whose records are the lines.
  [[nodiscard]] bool of_document() const { return of_document_; }
  [[nodiscard]] std::uint64_t cut() const { return cut_; }           // lines that were longer than is kept
  [[nodiscard]] std::uint64_t bytes() const { return bytes_read_; }  // so far, unpacked
  [[nodiscard]] const Bytes& source() const { return source_; }

 private:
  bool fill();
  std::size_t read(std::span<char> into);
  void unroll();

  Bytes source_;
  std::vector<char> buffer_;
  std::size_t begin_ = 0, end_ = 0;  // what is in the buffer and not yet given
  bool of_document_ = false;
  std::string document_;  // its lines, of which so many bytes were read
  std::size_t document_read_ = 0;
  std::uint64_t cut_ = 0;
  std::uint64_t bytes_read_ = 0;
};

}  // namespace rose::logs
