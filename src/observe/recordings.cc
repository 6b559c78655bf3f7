#include "observe/recordings.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <map>
#include <set>

#include "base/ascii.h"
#include "base/file.h"
#include "base/log.h"
#include "base/read_at.h"
#include "base/text.h"
#include "base/units.h"
#include "kernel/maps.h"
#include "kernel/processes.h"
#include "observe/binaries.h"
#include "observe/dump_files.h"
#include "rr/reading.h"

namespace rose::observe {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMostNames = 10000;  // names examined in a folder
constexpr std::size_t kMostFolders = 256;
constexpr std::size_t kPiece = 64 << 10;

// Opens the folder `path` as the process sees it. Links in it cannot lead outside its root directory.
Fd open_in_root(pid_t pid, const fs::path& path) {
  if (!kernel::trusts_mounts_of(pid)) return {};
  const Fd root(::open(fmt::format("/proc/{}/root", pid).c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!root) return {};
  open_how how{};
  how.flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC;
  how.resolve = RESOLVE_IN_ROOT;
  return Fd(static_cast<int>(::syscall(SYS_openat2, root.get(), path.c_str(), &how, sizeof how)));
}

// The text after "record:" in the ROSE_RR that the process was started with.
std::string recorded_to(pid_t pid) {
  Result<std::string> environment = read_file(fmt::format("/proc/{}/environ", pid), 4 << 20);
  if (!environment) return {};
  constexpr std::string_view kWanted = "ROSE_RR=record:";
  for (std::size_t at = 0; at < environment->size();) {
    const std::size_t end = std::min(environment->find('\0', at), environment->size());
    const std::string_view one = std::string_view(*environment).substr(at, end - at);
    if (one.starts_with(kWanted)) return std::string(one.substr(kWanted.size()));
    at = end + 1;
  }
  return {};
}

// The path, as in the maps of the process, of a recording that the process has mapped.
fs::path mapped_recording(pid_t pid, std::string_view pattern) {
  for (kernel::MappedRange& range : kernel::maps_of(pid)) {
    if (range.access == "rw-s" && range.name.starts_with('/') &&
        fits_recording_name(pattern, fs::path(range.name).filename().string()))
      return std::move(range.name);
  }
  return {};
}

std::string file_name(std::string_view name) {
  std::string out;
  for (const char c : name.substr(0, 120))
    out += is_alpha(c) || is_digit(c) || c == '.' || c == '-' || c == '_' ? c : '_';
  if (out.empty() || out.front() == '.') out.insert(0, "_");
  return out;
}

std::uint64_t position_at(const char* head, std::size_t offset) {
  std::uint64_t value = 0;
  std::memcpy(&value, head + offset, sizeof value);
  return value;
}

}  // namespace

bool fits_recording_name(std::string_view pattern, std::string_view name) {
  while (!pattern.empty()) {
    if (pattern.starts_with("%n") || pattern.starts_with("%p")) {
      if (name.empty() || !is_digit(name.front())) return false;
      while (!name.empty() && is_digit(name.front())) name.remove_prefix(1);
      pattern.remove_prefix(2);
      continue;
    }
    if (name.empty() || name.front() != pattern.front()) return false;
    name.remove_prefix(1);
    pattern.remove_prefix(1);
  }
  return name.empty();
}

void RecordingSources::follow(const std::vector<Target>& targets) {
  if (most_ == 0) return;
  const std::lock_guard lock(mutex_);
  targets_ = targets;
  look();
}

Result<void> RecordingSources::add(const std::string& node, const fs::path& folder, const std::string& pattern) {
  if (most_ == 0) return {};
  struct stat there{};
  if (::stat(folder.c_str(), &there) == 0 && !S_ISDIR(there.st_mode))
    return fail(ErrorKind::usage, fmt::format("{} is not a folder", folder.string()),
                "recordings are searched in folders");
  const std::lock_guard lock(mutex_);
  std::error_code ignored;
  places_.push_back({node, pattern, fs::absolute(folder, ignored), {}});
  return {};
}

bool RecordingSources::empty() const {
  const std::lock_guard lock(mutex_);
  return places_.empty();
}

void RecordingSources::hold(const std::string& node, Fd folder, fs::path name, std::string pattern) {
  struct stat here{}, there{};
  if (places_.size() >= kMostFolders || ::fstat(folder.get(), &here) != 0) return;
  for (const Place& place : places_) {
    if (place.pattern == pattern && place.folder && ::fstat(place.folder.get(), &there) == 0 &&
        here.st_ino == there.st_ino && here.st_dev == there.st_dev)
      return;
  }
  log::debug("{} records to {}", node, printable((name / pattern).string()));
  places_.push_back({node, std::move(pattern), std::move(name), std::move(folder)});
}

void RecordingSources::look_at(const Target& target, pid_t pid) {
  const std::string given = recorded_to(pid);
  if (given.empty()) return;
  const fs::path wanted(given);
  const std::string pattern = wanted.filename().string();
  if (pattern.empty()) return;
  // The process may have changed its working directory since it started, but its mappings show where it writes.
  if (const fs::path mapped = mapped_recording(pid, pattern); !mapped.empty()) {
    if (Fd folder = open_in_root(pid, mapped.parent_path()))
      return hold(target.node, std::move(folder), mapped.parent_path(), pattern);
  }
  std::string folder = wanted.parent_path().string();
  for (std::size_t at = folder.find("%p"); at != std::string::npos; at = folder.find("%p", at))
    folder.replace(at, 2, std::to_string(kernel::own_number(pid)));
  Fd opened;
  if (wanted.is_absolute()) {
    opened = open_in_root(pid, folder);
  } else if (kernel::trusts_mounts_of(pid)) {
    const Fd own(::open(fmt::format("/proc/{}/cwd", pid).c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
    opened =
        Fd(own ? ::openat(own.get(), folder.empty() ? "." : folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1);
  }
  if (opened) hold(target.node, std::move(opened), folder, pattern);
}

void RecordingSources::look() {
  for (const Target& target : targets_) {
    for (const pid_t pid : processes_of(target)) look_at(target, pid);
  }
}

OpenRecordings RecordingSources::open() {
  OpenRecordings found;
  if (most_ == 0) return found;
  const std::lock_guard lock(mutex_);
  look();
  std::map<std::string, std::vector<OpenRecording>> lives;
  std::set<std::pair<dev_t, ino_t>> seen;
  for (const Place& place : places_) {
    const int again = place.folder ? ::openat(place.folder.get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC)
                                   : ::open(place.name.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR* folder = again < 0 ? nullptr : ::fdopendir(again);
    if (folder == nullptr) {
      const int err = errno;
      if (again >= 0) ::close(again);
      // A missing folder that the user named is not a problem, because it may be created later.
      if (place.folder || err != ENOENT)
        found.problems.push_back(
            fmt::format("the folder {} cannot be read: {}", printable(place.name.string()), std::strerror(err)));
      continue;
    }
    std::size_t names = 0;
    for (const dirent* entry = ::readdir(folder); entry != nullptr && names < kMostNames;
         entry = ::readdir(folder), ++names) {
      const std::string name = entry->d_name;
      if (name == "." || name == ".." || (!place.pattern.empty() && !fits_recording_name(place.pattern, name)))
        continue;
      const std::string label = printable((place.name / name).string());
      OpenRecording one;
      one.file = open_regular_at(::dirfd(folder), name, O_NOFOLLOW);
      const int err = errno;
      struct stat info{};
      alignas(8) char head[rr::kHeadBytes];
      const char* why = nullptr;
      if (!one.file) {
        if (!place.pattern.empty() && err != ENOENT)
          found.problems.push_back(fmt::format("{} cannot be opened: {}", label,
                                               err == EINVAL ? "it is not a regular file" : std::strerror(err)));
        continue;
      }
      if (::fstat(one.file.get(), &info) != 0 || !seen.emplace(info.st_dev, info.st_ino).second) continue;
      one.bytes = static_cast<std::uint64_t>(info.st_size);
      const bool whole = read_at(one.file.get(), head, sizeof head, 0) == sizeof head;
      if (!whole || rr::Reading::ring_bytes(head, one.bytes, &why) == 0) {
        if (!place.pattern.empty())
          found.problems.push_back(
              fmt::format("{}: {}", label, why != nullptr ? why : "it is too short for a recording"));
        continue;
      }
      // Only this part has to be copied. The rest was never written.
      one.bytes = std::min(one.bytes, rr::kHeadBytes + position_at(head, offsetof(rr::FileHead, reserved)));
      std::memcpy(&one.began_ns, head + offsetof(rr::FileHead, began_ns), sizeof one.began_ns);
      one.node = place.node;
      one.name = file_name(name);
      lives[one.node].push_back(std::move(one));
    }
    ::closedir(folder);
  }
  for (auto& [node, all] : lives) {
    std::sort(all.begin(), all.end(),
              [](const OpenRecording& a, const OpenRecording& b) { return a.began_ns > b.began_ns; });
    if (all.size() > kMostLives) {
      found.problems.push_back(
          fmt::format("{} older recordings of {} are not copied: only the newest {} of each node are",
                      all.size() - kMostLives, node, kMostLives));
      all.resize(kMostLives);
    }
  }
  std::uint64_t left = most_;
  for (std::size_t life = 0; life < kMostLives; ++life) {
    for (auto& [node, all] : lives) {
      if (life >= all.size()) continue;
      OpenRecording& one = all[life];
      if (one.bytes > left) {
        found.problems.push_back(
            fmt::format("the recording {} of {} is not copied: its {} exceed what is left of the limit for a dump "
                        "(--recordings-size)",
                        one.name, node, format_size(one.bytes)));
        continue;
      }
      left -= one.bytes;
      found.all.push_back(std::move(one));
    }
  }
  return found;
}

// The writer continues during the copy. The parts are read in this order: the count of completed bytes, then the
// reserved position, then the ring. Therefore the copy looks as if the process had been killed when `reserved` was
// read. Records that the writer has overwritten since then are erased in the copy.
Result<void> copy_recording(const Fd& from, const fs::path& to) {
  constexpr int kTries = 3;
  const auto cut = [] {
    return fail(ErrorKind::input, errno == 0 ? "it shrank while it was read" : std::strerror(errno));
  };
  for (int attempt = 1;; ++attempt) {
    struct stat info{};
    alignas(8) char head[rr::kHeadBytes];
    alignas(8) char finished[sizeof rr::FileHead::finished];
    const char* why = nullptr;
    if (read_at(from.get(), finished, sizeof finished, offsetof(rr::FileHead, finished)) != sizeof finished ||
        read_at(from.get(), head, sizeof head, 0) != sizeof head)
      return cut();
    std::memcpy(head + offsetof(rr::FileHead, finished), finished, sizeof finished);
    if (::fstat(from.get(), &info) != 0) return cut();
    const std::uint64_t ring = rr::Reading::ring_bytes(head, static_cast<std::uint64_t>(info.st_size), &why);
    if (ring == 0) return fail(ErrorKind::input, why);
    const std::uint64_t before = position_at(head, offsetof(rr::FileHead, reserved));

    ROSE_TRY(AtomicFile file, AtomicFile::create(to));
    ROSE_CHECK(file.resize(rr::kHeadBytes + ring));
    ROSE_CHECK(file.write_at(0, {head, sizeof head}));
    std::vector<char> piece(kPiece);
    const bool wrapped = before / (ring / rr::kSegments) >= rr::kSegments;
    for (std::uint64_t at = 0; at < (wrapped ? ring : before); at += kPiece) {
      if (read_at(from.get(), piece.data(), kPiece, rr::kHeadBytes + at) != kPiece) return cut();
      const bool written = std::any_of(piece.begin(), piece.end(), [](char c) { return c != '\0'; });
      if (written) ROSE_CHECK(file.write_at(rr::kHeadBytes + at, {piece.data(), kPiece}));
    }
    char now[sizeof(std::uint64_t)];
    if (read_at(from.get(), now, sizeof now, offsetof(rr::FileHead, reserved)) != sizeof now) return cut();
    const std::uint64_t after = position_at(now, 0);
    if (after < before || after - before > (attempt < kTries ? ring / 2 : ring) || (!wrapped && after > ring)) {
      if (attempt < kTries) continue;
      return fail(ErrorKind::input, "it was written to faster than it could be copied");
    }
    if (wrapped) {
      std::fill(piece.begin(), piece.end(), '\0');
      for (std::uint64_t at = before; at < after;) {
        const std::uint64_t place = at & (ring - 1);
        const std::uint64_t length = std::min({after - at, ring - place, std::uint64_t{kPiece}});
        ROSE_CHECK(file.write_at(rr::kHeadBytes + place, {piece.data(), length}));
        at += length;
      }
    }
    return file.commit();
  }
}

fs::path recordings_folder(const fs::path& dump) { return dump.string() + ".recordings"; }

CopiedRecordings copy_recordings(OpenRecordings recordings, const fs::path& dump) {
  CopiedRecordings copied;
  copied.problems = std::move(recordings.problems);
  struct stat there{};
  if (::lstat(dump.c_str(), &there) != 0 || !S_ISREG(there.st_mode)) {
    if (!recordings.all.empty())
      copied.problems.push_back(fmt::format("no recording is copied: {} is not a file", dump.string()));
    return copied;
  }
  const fs::path folder = recordings_folder(dump), fresh = folder.string() + ".new";
  std::error_code error;
  fs::remove_all(fresh, error);
  std::vector<fs::path> names;
  for (OpenRecording& one : recordings.all) {
    const std::string label = fmt::format("the recording {} of {}", one.name, one.node);
    const fs::path into = fresh / file_word(one.node);
    fs::path name = one.name;
    for (int same = 2; fs::exists(into / name, error); ++same) name = fmt::format("{}-{}", same, one.name);
    Result<void> done;
    for (const fs::path& made : {fresh, into}) {
      if (done && ::mkdir(made.c_str(), 0700) != 0 && errno != EEXIST)
        done = fail_errno(ErrorKind::input, fmt::format("cannot create {}", made.string()), errno);
    }
    if (done) done = copy_recording(one.file, into / name);
    if (!done) {
      copied.problems.push_back(fmt::format("{} is not copied: {}", label, done.error().message));
      continue;
    }
    names.push_back(fs::path(file_word(one.node)) / name);
  }
  fs::remove_all(folder, error);
  if (names.empty()) {
    fs::remove_all(fresh, error);
    return copied;
  }
  if (::rename(fresh.c_str(), folder.c_str()) != 0) {
    copied.problems.push_back(
        fmt::format("no recording is copied: cannot create {}: {}", folder.string(), std::strerror(errno)));
    fs::remove_all(fresh, error);
    return copied;
  }
  for (const fs::path& name : names) copied.files.push_back(folder / name);
  return copied;
}

}  // namespace rose::observe
