// Splits a log into lines, whatever it contains. A line of 100 MB is truncated, zero bytes and other control characters
// do not end a line, and a text without a newline is one line. Memory is bounded by the longest line that is kept.
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
  static constexpr std::size_t kLongestLine = std::size_t{64} << 10;  // the rest of a longer line is discarded

  explicit LineReader(Bytes bytes);

  // Reads the next line, without the characters that end it ("\n" or "\r\n"). Returns false at the end. The line is
  // valid until the next call.
  bool next(std::string_view& line);
  // Reads the next `count` bytes as they are, including newlines (a binary field of the journal's export format).
  // Returns false if fewer bytes are left. Also returns false, and skips the bytes, if more than kLongestLine are
  // requested.
  bool take(std::uint64_t count, std::string_view& bytes);

  [[nodiscard]] std::uint64_t cut() const { return cut_; }  // number of lines that were longer than kLongestLine
  [[nodiscard]] std::uint64_t bytes() const { return bytes_read_; }  // number of bytes read so far, uncompressed
  [[nodiscard]] const Bytes& source() const { return source_; }

 private:
  bool fill();
  std::size_t read(std::span<char> into);
  void unroll();

  Bytes source_;
  std::vector<char> buffer_;
  std::size_t begin_ = 0, end_ = 0;  // the unread part of the buffer
  std::string document_;             // the lines of a JSON document, of which the first document_read_ bytes were read
  std::size_t document_read_ = 0;
  std::uint64_t cut_ = 0;
  std::uint64_t bytes_read_ = 0;
};

}  // namespace rose::logs
