// Recordings that targets make with librose-rr (rr): finds them before privileges are dropped and copies them to a
// folder next to a dump. A recording may be copied while its process writes it. Recordings of killed processes remain,
// and are copied, too.
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

inline constexpr std::uint64_t kRecordingBytes = std::uint64_t{256} << 20;  // limit per dump
// per node; each process lifetime has its own recording, and the newest ones are copied
inline constexpr std::size_t kMostLives = 4;

struct OpenRecording {
  std::string node, name;   // the name is valid as a file name
  std::uint64_t bytes = 0;  // number of bytes that were written
  std::int64_t began_ns = 0;
  Fd file;  // open for reading
};
struct OpenRecordings {
  std::vector<OpenRecording> all;     // the newest recording of each node, then the second newest of each, and so on
  std::vector<std::string> problems;  // what could not be opened, one sentence each
};

struct CopiedRecordings {
  std::vector<std::filesystem::path> files;
  std::vector<std::string> problems;
};

// Matches file names that ROSE_RR=record:NAME produces: %n and %p stand for numbers.
[[nodiscard]] bool fits_recording_name(std::string_view pattern, std::string_view name);

class RecordingSources {
 public:
  // `most`: limit in bytes for the recordings of one dump; 0: none are copied.
  explicit RecordingSources(std::uint64_t most = kRecordingBytes) : most_(most) {}
  // From now on, open() also returns the recordings of target processes that were started with ROSE_RR=record:...
  void follow(const std::vector<Target>& targets);
  // Adds the recordings in a folder, whatever process makes them. The folder may be created later. `pattern` "": any
  // name. Returns ErrorKind::usage if the path is not a folder.
  [[nodiscard]] Result<void> add(const std::string& node, const std::filesystem::path& folder,
                                 const std::string& pattern);
  [[nodiscard]] bool empty() const;
  [[nodiscard]] OpenRecordings open();

 private:
  struct Place {
    std::string node, pattern;
    std::filesystem::path name;  // the path as given
    Fd folder;                   // if not open, the folder is opened by its name, because it may be created later
  };
  void look();
  void look_at(const Target& target, pid_t pid);
  void hold(const std::string& node, Fd folder, std::filesystem::path name, std::string pattern);

  mutable std::mutex mutex_;
  const std::uint64_t most_;
  std::vector<Target> targets_;
  std::vector<Place> places_;
};

// Copies a consistent state of a recording although its process may be writing it. Parts that were never written stay
// sparse.
[[nodiscard]] Result<void> copy_recording(const Fd& from, const std::filesystem::path& to);

// Recordings are copied to DUMP.recordings/NODE/, which replaces the existing content. Without recordings, this folder
// does not exist.
[[nodiscard]] std::filesystem::path recordings_folder(const std::filesystem::path& dump);
[[nodiscard]] CopiedRecordings copy_recordings(OpenRecordings recordings, const std::filesystem::path& dump);

}  // namespace rose::observe
