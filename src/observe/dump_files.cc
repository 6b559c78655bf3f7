#include "observe/dump_files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <ctime>

#include "base/ascii.h"
#include "base/file.h"
#include "base/log.h"

namespace rose::observe {
namespace {

namespace fs = std::filesystem;

// number of dumps listed at the end; limited because a recorder runs permanently
constexpr std::size_t kMostWritten = 1000;
// blocks of the disk that are left free: directory entries need space, too, and the last block of a file is not full
constexpr std::uint64_t kSpared = 4;
constexpr std::uint64_t kLeastDump = 4096;  // bytes of events; a dump with fewer is not worth an attempt

bool disk_is_full(const Error& error) { return error.code == ENOSPC || error.code == EDQUOT || error.code == EFBIG; }

// Formats a time like "20261122T014501Z".
std::string stamp(std::int64_t wall_ns) {
  const auto seconds = static_cast<std::time_t>(wall_ns / 1'000'000'000);
  std::tm time{};
  ::gmtime_r(&seconds, &time);
  return fmt::format("{:04}{:02}{:02}T{:02}{:02}{:02}Z", time.tm_year + 1900, time.tm_mon + 1, time.tm_mday,
                     time.tm_hour, time.tm_min, time.tm_sec);
}
constexpr std::size_t kStamp = 16;

bool is_stamp(std::string_view text) {
  for (std::size_t i = 0; i < kStamp; ++i) {
    const bool right = i == 8 ? text[i] == 'T' : i == 15 ? text[i] == 'Z' : is_digit(text[i]);
    if (!right) return false;
  }
  return true;
}

// Moves recordings together with their dump. If `to` is "", removes them.
void move_recordings(const fs::path& from, const fs::path& to) {
  std::error_code error;
  if (!to.empty()) {
    fs::remove_all(recordings_folder(to), error);
    fs::rename(recordings_folder(from), recordings_folder(to), error);
  } else {
    fs::remove_all(recordings_folder(from), error);
  }
  if (error && error != std::errc::no_such_file_or_directory)
    log::warning("cannot move {}: {}", recordings_folder(from).string(), error.message());
}

bool same_file(const fs::path& a, const fs::path& b) {
  struct stat sa{}, sb{};
  return ::lstat(a.c_str(), &sa) == 0 && ::lstat(b.c_str(), &sb) == 0 && sa.st_ino == sb.st_ino &&
         sa.st_dev == sb.st_dev;
}

}  // namespace

std::vector<std::string> WrittenDump::recording_files() const {
  std::vector<std::string> files;
  for (const std::string& name : recordings) {
    if (!file.empty()) files.push_back((recordings_folder(file) / name).string());
  }
  return files;
}

std::string file_word(std::string_view host) {
  std::string out;
  for (const char c : host.substr(0, 64)) {
    const bool plain = is_alpha(c) || is_digit(c) || c == '.' || c == '-';
    out += plain ? c : '_';
  }
  return out.empty() ? "host" : out;
}

std::optional<DumpName> parse_dump_name(std::string_view file) {
  if (!file.starts_with("rose-") || !file.ends_with(".bin")) return std::nullopt;
  file.remove_prefix(5);
  file.remove_suffix(4);
  // A host's name may contain text that looks like a timestamp, so the last such text counts.
  for (std::size_t at = file.rfind('-'); at != std::string_view::npos && at > 0; at = file.rfind('-', at - 1)) {
    if (file.size() < at + 1 + kStamp + 2 || file[at + 1 + kStamp] != '-' || !is_stamp(file.substr(at + 1))) continue;
    return DumpName{std::string(file.substr(0, at)), std::string(file.substr(at + 1, kStamp)),
                    std::string(file.substr(at + kStamp + 2))};
  }
  return std::nullopt;
}

// The number among dumps of the same second: "crash" is 1, "crash-2" is 2.
int number_in_second(std::string_view trigger) {
  const std::string_view digits = trigger.substr(trigger.rfind('-') + 1);  // the whole text if there is no '-'
  int number = 1;
  std::from_chars(digits.data(), digits.data() + digits.size(), number);
  return number;
}

DumpTotals size_of(const trace::Trace& trace) {
  DumpTotals size{trace.events.size(), trace.meta.lost, trace.meta.suppressed, {}};
  for (const trace::Event& event : trace.events) size.by_type[static_cast<std::size_t>(event.type)] += event.count;
  return size;
}

Result<DumpFiles> DumpFiles::open(const fs::path& out, int keep, std::string host) {
  DumpFiles files;
  std::error_code error;
  if (out.empty()) return fail(ErrorKind::usage, "-o: the file's name is empty");
  files.out_ = out;
  files.folder_ = fs::is_directory(out, error) || out.string().back() == '/';
  files.keep_ = keep;
  files.host_ = file_word(host);
  if (files.folder_) {
    if (::mkdir(files.out_.c_str(), 0700) != 0 && errno != EEXIST)
      return fail(ErrorKind::usage,
                  fmt::format("-o: cannot create the folder {}: {}", out.string(), std::strerror(errno)));
    if (!fs::is_directory(files.out_, error))
      return fail(ErrorKind::usage, fmt::format("-o: {} is not a folder", out.string()));
  }
  const Result<AtomicFile> tried =
      AtomicFile::create(files.folder_ ? files.out_ / "rose" : files.out_);  // removed again by its destructor
  if (!tried) return fail(ErrorKind::usage, fmt::format("-o: {}", tried.error().message));
  if (struct stat status{}; !files.folder_ && ::lstat(out.c_str(), &status) == 0 && S_ISFIFO(status.st_mode)) {
    files.pipe_ = Fd(::open(out.c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC | O_NOFOLLOW));
    if (!files.pipe_)
      return fail(ErrorKind::usage,
                  fmt::format("-o: cannot write {}: {}", out.string(),
                              errno == ENXIO ? "nobody reads this pipe" : std::strerror(errno)),
                  "start what reads it first");
  }
  // Remove unfinished files of a recorder that was killed. Other hosts may write to the same folder.
  if (files.folder_) remove_unfinished(files.out_, fmt::format("rose-{}-", files.host_));
  else remove_unfinished(out.has_parent_path() ? out.parent_path() : ".", out.filename().string());
  return files;
}

fs::path DumpFiles::kept(int number) const { return fs::path(fmt::format("{}.{}", out_.string(), number)); }

// FILE keeps its name until the new dump replaces it, so that FILE always exists and is the newest dump. Dumps of
// earlier recorders are kept, too, because a recorder that was restarted after a crash no longer has the events of the
// last dump.
Result<bool> DumpFiles::make_room() {
  struct stat now{};
  if (keep_ == 0 || ::lstat(out_.c_str(), &now) != 0 || !S_ISREG(now.st_mode)) return false;
  if (same_file(out_, kept(1))) return true;  // the previous attempt had given the file both names and failed later
  moved(kept(keep_), {});
  for (int i = keep_ - 1; i >= 1; --i) {
    if (::rename(kept(i).c_str(), kept(i + 1).c_str()) != 0) continue;
    move_recordings(kept(i), kept(i + 1));
    moved(kept(i), kept(i + 1));
  }
  if (::linkat(AT_FDCWD, out_.c_str(), AT_FDCWD, kept(1).c_str(), 0) == 0) return true;
  if (::rename(out_.c_str(), kept(1).c_str()) != 0)  // the file system has no hard links
    return fail_errno(ErrorKind::input, fmt::format("cannot rename {} to {}", out_.string(), kept(1).string()), errno);
  moved(out_, kept(1));
  return true;
}

void DumpFiles::moved(const fs::path& from, const fs::path& to) {
  for (WrittenDump& dump : written_) {
    if (dump.file == from) dump.file = to;
  }
}

fs::path DumpFiles::fresh_name(const Cause& cause, std::int64_t wall_ns) const {
  const std::string name = fmt::format("rose-{}-{}-{}", host_, stamp(wall_ns), trigger_word(cause.kind));
  fs::path path = out_ / (name + ".bin");
  struct stat there{};
  for (int i = 2; ::lstat(path.c_str(), &there) == 0 && i < 1000; ++i) path = out_ / fmt::format("{}-{}.bin", name, i);
  return path;
}

std::vector<fs::path> DumpFiles::other_dumps(const fs::path& newest) const {
  std::vector<fs::path> paths;
  struct stat status{};
  if (!folder_) {
    for (int i = 0; i <= keep_; ++i) {
      const fs::path path = i == 0 ? out_ : kept(i);
      if (::lstat(path.c_str(), &status) == 0 && S_ISREG(status.st_mode)) paths.push_back(path);
    }
    return paths;
  }
  struct Found {
    std::string stamp;
    std::int64_t modified = 0;  // distinguishes files of the same second
    int number = 1;             // distinguishes files of the same tick of the kernel's clock, whose `modified` is equal
    fs::path path;
  };
  std::vector<Found> found;
  std::error_code error;
  for (fs::directory_iterator it(out_, error), end; !error && it != end; it.increment(error)) {
    const std::string name = it->path().filename().string();
    const auto parts = parse_dump_name(name);
    if (!parts || parts->host != host_) continue;
    if (it->path() == newest || ::lstat(it->path().c_str(), &status) != 0 || !S_ISREG(status.st_mode)) continue;
    found.push_back({parts->stamp, status.st_mtim.tv_sec * 1'000'000'000 + status.st_mtim.tv_nsec,
                     number_in_second(parts->trigger), it->path()});
  }
  std::sort(found.begin(), found.end(), [](const Found& a, const Found& b) {
    return std::tie(a.stamp, a.modified, a.number, a.path) > std::tie(b.stamp, b.modified, b.number, b.path);
  });
  for (Found& one : found) paths.push_back(std::move(one.path));
  return paths;
}

void DumpFiles::remove(const fs::path& dump) {
  if (::unlink(dump.c_str()) != 0) return log::warning("cannot remove {}: {}", dump.string(), std::strerror(errno));
  move_recordings(dump, {});
  moved(dump, {});
}

bool DumpFiles::prune(const fs::path& newest, std::size_t most) {
  const std::vector<fs::path> paths = other_dumps(newest);
  for (std::size_t i = most; i < paths.size(); ++i) remove(paths[i]);
  return paths.size() > most;
}

bool DumpFiles::remove_oldest() {
  const std::vector<fs::path> paths = other_dumps({});
  if (paths.empty()) return false;
  log::info("{} makes room for the newest dump", paths.back().string());
  // Until FILE is replaced, FILE.1 may be another name of the same file (make_room()). The disk's blocks are freed only
  // when both names are removed.
  const bool twice = paths.size() == 2 && same_file(paths[0], paths[1]);
  for (std::size_t i = paths.size(); i > (twice ? 0 : paths.size() - 1); --i) remove(paths[i - 1]);
  struct stat status{};
  return ::lstat(paths.back().c_str(), &status) != 0;
}

std::uint64_t DumpFiles::room_for(std::uint64_t bytes, std::uint64_t limit) {
  for (;;) {
    struct statvfs disk{};
    const fs::path folder = folder_ ? out_ : out_.has_parent_path() ? out_.parent_path() : fs::path(".");
    if (::statvfs(folder.c_str(), &disk) != 0 || disk.f_blocks == 0)
      return limit;  // the file system does not report its size
    // Root may use all free blocks, including those that the file system reserves for root.
    const std::uint64_t free = (::geteuid() == 0 ? disk.f_bfree : disk.f_bavail) * disk.f_frsize;
    const std::uint64_t spared = kSpared * disk.f_frsize;
    const std::uint64_t most = std::min(limit, free > spared ? free - spared : 0);
    if (bytes <= most || limit < bytes || !remove_oldest()) return most;
  }
}

Result<WrittenDump> DumpFiles::write(const Cause& cause, std::int64_t wall_ns, const Writer& writer) {
  const fs::path target = folder_ ? fresh_name(cause, wall_ns) : out_;
  bool keeps = false;
  if (!folder_) {
    ROSE_TRY(keeps, make_room());
  }
  const auto others = static_cast<std::size_t>(std::max(keep_, 1)) - 1;
  // The free space of pipes and devices cannot be queried.
  struct stat now{};
  const bool is_file = folder_ || ::lstat(out_.c_str(), &now) != 0 || S_ISREG(now.st_mode);
  std::uint64_t limit = UINT64_MAX, asked = 0;
  const DumpRoom room = [&](std::uint64_t bytes) {
    asked = std::min(bytes, room_for(bytes, limit));
    return asked;
  };
  Result<DumpTotals> size = writer(target, is_file ? room : DumpRoom());
  // Not every failure has an errno, so a full disk may not be recognised. Remove the oldest dumps, but keep at least
  // one.
  if (!size && folder_ && !disk_is_full(size.error()) && prune({}, std::max<std::size_t>(others, 1)))
    size = writer(target, room);
  // A disk may have less room than statvfs reports (a quota, other writers): remove the oldest dumps one by one, then
  // leave out events.
  while (!size && is_file && disk_is_full(size.error())) {
    if (!remove_oldest()) {
      if (asked < kLeastDump) break;
      limit = asked / 2;
    }
    asked = 0;
    size = writer(target, room);
  }
  if (!size) return Unexpected(std::move(size).error());
  if (size->left_out > 0)
    log::warning(
        "{}: the disk has too little room for the whole window: the newest {} events are written, {} older ones "
        "count as lost",
        target.string(), size->events, size->left_out);
  if (!folder_ && keeps) keeps = ::lstat(kept(1).c_str(), &now) == 0;  // room_for() may have removed it
  if (!folder_) {
    move_recordings(out_, keeps ? kept(1) : fs::path());
    moved(out_, keeps ? kept(1) : fs::path());
  }
  if (written_.size() >= kMostWritten) written_.erase(written_.begin());
  written_.push_back({target, cause.text(), std::move(*size), wall_ns, {}});
  if (sources_) {
    const CopiedRecordings copied = copy_recordings(sources_->open(), target);
    for (const fs::path& file : copied.files)
      written_.back().recordings.push_back(file.lexically_relative(recordings_folder(target)).string());
    for (const std::string& problem : copied.problems) log::warning("{}", problem);
  }
  if (folder_) prune(target, others);
  return written_.back();
}

}  // namespace rose::observe
