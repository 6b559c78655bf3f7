#include "kernel/maps.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include "base/file.h"

namespace rose::kernel {
namespace {

bool take_number(std::string_view& line, std::uint64_t& into, int base) {
  const auto [end, error] = std::from_chars(line.data(), line.data() + line.size(), into, base);
  if (error != std::errc() || end == line.data()) return false;
  line.remove_prefix(static_cast<std::size_t>(end - line.data()));
  return true;
}

bool take_char(std::string_view& line, char c) {
  if (line.empty() || line.front() != c) return false;
  line.remove_prefix(1);
  return true;
}

std::string_view take_word(std::string_view& line) {
  const std::size_t end = line.find(' ');
  const std::string_view word = line.substr(0, end);
  line.remove_prefix(end == std::string_view::npos ? line.size() : end + 1);
  return word;
}

bool read_line(std::string_view line, MappedRange& range) {
  if (!take_number(line, range.begin, 16) || !take_char(line, '-') || !take_number(line, range.end, 16) ||
      !take_char(line, ' '))
    return false;
  range.access = take_word(line);
  if (!take_number(line, range.offset, 16) || !take_char(line, ' ')) return false;
  (void)take_word(line);  // skips the device
  if (!take_number(line, range.inode, 10)) return false;
  while (take_char(line, ' ')) {
  }
  range.name = line;
  return true;
}

}  // namespace

std::vector<MappedRange> read_maps(std::string_view text) {
  std::vector<MappedRange> all;
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    MappedRange range;
    if (read_line(line, range)) all.push_back(std::move(range));
  }
  return all;
}

std::vector<MappedRange> maps_of(pid_t pid) {
  return read_maps(read_file(fmt::format("/proc/{}/maps", pid)).value_or(""));
}

FilePlace own_place(const void* address) {
  const auto wanted = reinterpret_cast<std::uintptr_t>(address);
  for (MappedRange& range : read_maps(read_file("/proc/self/maps").value_or("")))
    if (wanted >= range.begin && wanted < range.end)
      return {std::move(range.name), wanted - range.begin + range.offset};
  return {};
}

}  // namespace rose::kernel
