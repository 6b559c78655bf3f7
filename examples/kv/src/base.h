// What every part of the store needs: errors as values, log lines, and the byte encoding shared by
// the wire and the files.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace kv {

using Index = std::uint64_t;  // the index of a log entry; the first entry has index 1
using Term = std::uint64_t;

// Success, or one sentence about what went wrong.
class [[nodiscard]] Status {
 public:
  static Status ok() { return Status(); }
  static Status error(std::string message) {
    Status status;
    status.failed_ = true;
    status.message_ = std::move(message);
    return status;
  }
  // "what: strerror(err)"
  static Status from_errno(std::string_view what, int err);

  explicit operator bool() const { return !failed_; }
  const std::string& message() const { return message_; }

 private:
  bool failed_ = false;
  std::string message_;
};

// One line on stderr, in one write: "12:01:02.345 n1 warning: text".
void set_log_name(std::string name);
void info(const char* format, ...) __attribute__((format(printf, 1, 2)));
void warning(const char* format, ...) __attribute__((format(printf, 1, 2)));
// For failures that a node must not survive, such as a log that cannot be written: ends the process.
[[noreturn]] void fatal(const char* format, ...) __attribute__((format(printf, 1, 2)));
// For conditions that must hold in this program whatever happens outside: aborts.
[[noreturn]] void broken(const char* format, ...) __attribute__((format(printf, 1, 2)));

std::uint32_t crc32(std::string_view bytes);

// Little-endian integers and length-prefixed strings.
class Writer {
 public:
  void u8(std::uint8_t value) { bytes_.push_back(static_cast<char>(value)); }
  void u32(std::uint32_t value) { integer(value, 4); }
  void u64(std::uint64_t value) { integer(value, 8); }
  void string(std::string_view value) {
    u32(static_cast<std::uint32_t>(value.size()));
    bytes_.append(value);
  }
  const std::string& bytes() const { return bytes_; }
  std::string take() { return std::move(bytes_); }

 private:
  void integer(std::uint64_t value, int size) {
    for (int i = 0; i < size; ++i) u8(static_cast<std::uint8_t>(value >> (8 * i)));
  }
  std::string bytes_;
};

// Reads what Writer wrote. Past the end everything is 0 or empty and good() is false.
class Reader {
 public:
  explicit Reader(std::string_view bytes) : rest_(bytes) {}
  std::uint8_t u8() { return static_cast<std::uint8_t>(integer(1)); }
  std::uint32_t u32() { return static_cast<std::uint32_t>(integer(4)); }
  std::uint64_t u64() { return integer(8); }
  std::string_view view();
  std::string string() { return std::string(view()); }
  bool good() const { return good_; }
  std::size_t left() const { return rest_.size(); }

 private:
  std::uint64_t integer(std::size_t size);
  std::string_view rest_;
  bool good_ = true;
};

}  // namespace kv
