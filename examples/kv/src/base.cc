#include "base.h"

#include <unistd.h>

#include <array>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>

#include "rr/rose_rr.h"

namespace kv {
namespace {

std::string log_name = "-";

void log_line(const char* level, const char* format, va_list args) {
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  tm parts{};
  gmtime_r(&now.tv_sec, &parts);
  std::array<char, 1024> line{};
  int length = std::snprintf(line.data(), line.size(), "%02d:%02d:%02d.%03ld %s %s: ", parts.tm_hour, parts.tm_min,
                             parts.tm_sec, now.tv_nsec / 1000000, log_name.c_str(), level);
  const std::size_t room = line.size() - static_cast<std::size_t>(length) - 1;
  const int text = std::vsnprintf(line.data() + length, room, format, args);
  if (text > 0) length += std::min(text, static_cast<int>(room) - 1);
  line[static_cast<std::size_t>(length++)] = '\n';
  // Nothing can be done about a log that cannot be written.
  [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, line.data(), static_cast<std::size_t>(length));
}

}  // namespace

Status Status::from_errno(std::string_view what, int err) {
  return error(std::string(what) + ": " + std::strerror(err));
}

void set_log_name(std::string name) { log_name = std::move(name); }

void info(const char* format, ...) {
  va_list args;
  va_start(args, format);
  log_line("info", format, args);
  va_end(args);
}

void warning(const char* format, ...) {
  va_list args;
  va_start(args, format);
  log_line("warning", format, args);
  va_end(args);
}

void fatal(const char* format, ...) {
  va_list args;
  va_start(args, format);
  log_line("fatal", format, args);
  va_end(args);
  rose_rr_end();  // the position of the end in the recorded order
  std::_Exit(1);
}

void broken(const char* format, ...) {
  va_list args;
  va_start(args, format);
  log_line("assertion failed", format, args);
  va_end(args);
  rose_rr_end();
  std::abort();
}

std::uint32_t crc32(std::string_view bytes) {
  static const std::array<std::uint32_t, 256> table = [] {
    std::array<std::uint32_t, 256> result{};
    for (std::uint32_t i = 0; i < 256; ++i) {
      std::uint32_t value = i;
      for (int bit = 0; bit < 8; ++bit) value = (value & 1) != 0 ? (value >> 1) ^ 0xedb88320U : value >> 1;
      result[i] = value;
    }
    return result;
  }();
  std::uint32_t crc = ~0U;
  for (const char byte : bytes) crc = table[(crc ^ static_cast<std::uint8_t>(byte)) & 0xff] ^ (crc >> 8);
  return ~crc;
}

std::uint64_t Reader::integer(std::size_t size) {
  if (rest_.size() < size) {
    good_ = false;
    rest_ = {};
    return 0;
  }
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < size; ++i) {
    value |= static_cast<std::uint64_t>(static_cast<std::uint8_t>(rest_[i])) << (8 * i);
  }
  rest_.remove_prefix(size);
  return value;
}

std::string_view Reader::view() {
  const std::uint32_t size = u32();
  if (!good_ || rest_.size() < size) {
    good_ = false;
    rest_ = {};
    return {};
  }
  const std::string_view value = rest_.substr(0, size);
  rest_.remove_prefix(size);
  return value;
}

}  // namespace kv
