#include "base/log_follow.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/folder.h"
#include "base/read_at.h"

namespace rose {
namespace {

constexpr std::size_t kMostAtOnce = std::size_t{8} << 20;

}  // namespace

void LogFollower::begin_at(std::uint64_t offset) {
  if (open_now()) offset_ = offset;
}

void LogFollower::begin_at_end() {
  struct stat status{};
  if (!open_now() || ::fstat(file_.get(), &status) != 0) return;
  offset_ = static_cast<std::uint64_t>(status.st_size);
  // A line that is incomplete at the start offset is reported once it is complete.
  char block[4096];
  const std::uint64_t back = std::min<std::uint64_t>(offset_, sizeof block);
  const ssize_t got = ::pread(file_.get(), block, back, static_cast<off_t>(offset_ - back));
  for (ssize_t at = got; at > 0 && block[at - 1] != '\n'; --at) partial_.insert(partial_.begin(), block[at - 1]);
}

bool LogFollower::open_now() {
  file_ = open_inside(folder_, path_);
  struct stat status{};
  if (!file_ || ::fstat(file_.get(), &status) != 0) return false;
  device_ = status.st_dev;
  inode_ = status.st_ino;
  offset_ = 0;
  partial_.clear();
  return true;
}

// A missing name does not mean a new file yet: rotation renames the old file first and creates the new one later.
bool LogFollower::replaced() const {
  const auto status = status_inside(folder_, path_);
  return status && (status->st_ino != inode_ || status->st_dev != device_);
}

bool LogFollower::read(const std::function<bool(std::string_view)>& line) {
  std::size_t budget = kMostAtOnce;
  for (int files = 0; files < 8; ++files) {
    if (!file_ && !open_now()) return false;
    // Checked before reading, so that everything written before the replacement is read.
    const bool old = replaced();
    const Took took = take(line, budget);
    if (took != Took::all) return true;
    if (!old) return false;
    const bool more = partial_.empty() || line(partial_);
    partial_.clear();
    file_.reset();
    if (!more) return true;
  }
  return true;
}

LogFollower::Took LogFollower::take(const std::function<bool(std::string_view)>& line, std::size_t& budget) {
  struct stat status{};
  if (::fstat(file_.get(), &status) != 0) return Took::all;
  if (static_cast<std::uint64_t>(status.st_size) < offset_) {  // truncated
    offset_ = 0;
    partial_.clear();
  }
  // Skip a hole, which may be far larger than the disk. Either no data follows it yet, or a line begins where the data
  // begins.
  const auto data = next_data(file_.get(), offset_);
  if (!data) return Took::all;
  if (std::exchange(offset_, *data) != *data) partial_.clear();
  char block[std::size_t{16} << 10];
  while (budget >= sizeof block) {
    const ssize_t got = ::pread(file_.get(), block, sizeof block, static_cast<off_t>(offset_));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return Took::all;
    budget -= sizeof block;
    const std::string_view bytes(block, static_cast<std::size_t>(got));
    std::size_t begin = 0;
    for (;;) {
      const std::size_t end = std::min(bytes.find('\n', begin), bytes.size());
      partial_.append(bytes.substr(begin, std::min(end - begin, kLongestLine - partial_.size())));
      if (end == bytes.size()) break;
      begin = end + 1;
      const bool more = line(partial_);
      partial_.clear();
      if (more) continue;
      offset_ += begin;
      return Took::stopped;
    }
    offset_ += bytes.size();
  }
  return Took::again;
}

}  // namespace rose
