// What targets record of themselves with librose-rr (room rr): where their recordings are, found before privileges are
// given up, and copies of them beside a dump. A recording is copied while it is written; a process that was killed has
// left its own behind.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "base/fd.h"
#include "base/result.h"
#include "observe/tracer.h"

namespace rose::observe {

inline constexpr std::uint64_t kRecordingBytes = std::uint64_t{256} << 20;  // of all that go with one dump
inline constexpr std::size_t kMostLives = 4;  // the newest of one node, one for each life of its process

struct OpenRecording {
  std::string node, name;   // the name is fit for a file's
  std::uint64_t bytes = 0;  // that were written
  std::int64_t began_ns = 0;
  Fd file;  // for reading
};
struct OpenRecordings {
  std::vector<OpenRecording> all;  // newest lives of all nodes first
  std::vector<std::string> words;  // what could not be had, a sentence each
};

struct CopiedRecordings {
  std::vector<std::filesystem::path> files;
  std::vector<std::string> words;
};

// Names of files that ROSE_RR=record:NAME makes: %n and %p stand for numbers.
[[nodiscard]] bool fits_recording_name(std::string_view pattern, std::string_view name);

class RecordingSources {
 public:
  // `most`: bytes that the recordings beside one dump may have together; 0: none is taken along.
  explicit RecordingSources(std::uint64_t most = kRecordingBytes) : most_(most) {}
  // Those of the targets' processes that were started with ROSE_RR=record:..., now and again whenever recordings are
  // opened.
  void follow(const std::vector<Target>& targets);
  // Recordings in this folder, which may come later, whoever makes them; `pattern` "": of any name. ErrorKind::usage:
  // it is no folder.
  [[nodiscard]] Result<void> add(const std::string& node, const std::filesystem::path& folder,
                                 const std::string& pattern);
  [[nodiscard]] bool empty() const;
  [[nodiscard]] OpenRecordings open();

 private:
  struct Place {
    std::string node, pattern;
    std::filesystem::path name;  // as told
    Fd folder;                   // none: it is opened by its name
  };
  void look();
  void look_at(const Target& target, pid_t pid);
  void hold(const std::string& node, Fd folder, std::filesystem::path name, std::string pattern);

  mutable std::mutex mutex_;
  const std::uint64_t most_;
  std::vector<Target> targets_;
  std::vector<Place> places_;
};

// The whole file as it is at one moment, which its writer does not notice. Parts that were never written take no room.
[[nodiscard]] Result<void> copy_recording(const Fd& from, const std::filesystem::path& to);

// Into DUMP.recordings/NODE/, which takes the place of what was there; without recordings nothing is there.
[[nodiscard]] std::filesystem::path recordings_folder(const std::filesystem::path& dump);
[[nodiscard]] CopiedRecordings copy_recordings(OpenRecordings recordings, const std::filesystem::path& dump);

}  // namespace rose::observe
