#include "kernel/own_limits.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdint>
#include <string_view>

#include "base/file.h"
#include "base/text.h"
#include "kernel/controllers.h"

namespace rose::kernel {
namespace {

// True if the end of the file's name shows that the file holds a limit. Writing to other files may have side effects.
bool says_how_much(std::string_view file) {
  if (file.starts_with("cgroup.")) return false;
  for (const std::string_view end :
       {".max", ".high", ".low", ".min", ".weight", ".latency", ".cpus", ".mems", ".max.burst", ".oom.group"})
    if (file.ends_with(end)) return true;
  return false;
}

// True for the values of a new folder: "max", "max 100000", "rdma0 hca_handle=max" or no line at all. In files that
// protect memory (such as memory.min), the default is 0.
bool is_default(std::string_view file, std::string_view line) {
  if (file.ends_with(".low") || file.ends_with(".min") || file.ends_with(".burst") || file.ends_with(".group"))
    return line == "0";
  if (file.ends_with(".weight")) return line == "100" || line == "default 100";
  // Instead of "max", hugetlb uses the largest number of pages that the kernel can count.
  std::uint64_t number = 0;
  if (std::from_chars(line.data(), line.data() + line.size(), number).ec == std::errc() && number >= std::uint64_t{1}
                                                                                                         << 62)
    return true;
  if (line == "max" || (file == "cpu.max" && line.starts_with("max "))) return true;
  const auto words = split(line, ' ');
  return words.size() > 1 && std::all_of(words.begin() + 1, words.end(), [](const std::string& word) {
           return word == "max" || word.ends_with("=max");
         });
}

}  // namespace

std::vector<OwnLimit> own_limits(const std::filesystem::path& folder) {
  std::vector<OwnLimit> limits;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    const std::string file = entry.path().filename();
    struct stat status{};
    if (!says_how_much(file) || ::stat(entry.path().c_str(), &status) != 0 || !S_ISREG(status.st_mode) ||
        (status.st_mode & S_IWUSR) == 0)
      continue;
    OwnLimit limit{file, {}};
    for (const std::string& line : split(read_file(entry.path(), 1U << 20).value_or(""), '\n'))
      if (!line.empty() && !is_default(file, line)) limit.lines.push_back(line);
    if (!limit.lines.empty()) limits.push_back(std::move(limit));
  }
  std::sort(limits.begin(), limits.end(), [](const OwnLimit& a, const OwnLimit& b) { return a.file < b.file; });
  return limits;
}

Result<void> take_over(const std::vector<OwnLimit>& limits, const std::filesystem::path& mount,
                       const std::filesystem::path& folder) {
  for (const OwnLimit& limit : limits)
    ROSE_CHECK(pass_on(limit.file.substr(0, limit.file.find('.')), mount, folder.parent_path()));
  if (::mkdir(folder.c_str(), 0755) != 0 && errno != EEXIST)
    return fail_errno(ErrorKind::environment, fmt::format("cannot create cgroup {}", folder.string()), errno);
  for (const OwnLimit& limit : limits)
    for (const std::string& line : limit.lines)
      if (auto written = write_control(folder / limit.file, line); !written)
        return Unexpected(std::move(written).error().in(fmt::format("limit {} = {}", limit.file, line)));
  return {};
}

}  // namespace rose::kernel
