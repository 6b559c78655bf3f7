// Names and rotates the dumps of a flight recorder. If the target is a file, the newest dump gets the file's name, and
// earlier dumps, including those of earlier recorders, are kept as FILE.1, FILE.2, ... If the target is a folder, each
// dump has its own name, and the oldest dumps are removed. Recordings are kept with their dump.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/fd.h"
#include "base/result.h"
#include "observe/dump_plan.h"
#include "observe/recordings.h"
#include "observe/tracer.h"
#include "trace/event.h"

namespace rose::observe {

[[nodiscard]] DumpTotals size_of(const trace::Trace& trace);

// A host's name in the form used in file names.
[[nodiscard]] std::string file_word(std::string_view host);
// The name of a dump in a folder: "rose-HOST-20261122T014501Z-crash.bin".
struct DumpName {
  std::string host;     // in the form of file_word
  std::string stamp;    // UTC; sorts chronologically
  std::string trigger;  // trigger_word, with "-2" for the second dump of the same second
};
[[nodiscard]] std::optional<DumpName> parse_dump_name(std::string_view file);

struct WrittenDump {
  std::filesystem::path file;  // current path; empty if it was removed to make room
  std::string trigger;
  DumpTotals size;
  std::int64_t ts_ns = 0;
  std::vector<std::string> recordings;                             // in FILE.recordings, as NODE/NAME
  [[nodiscard]] std::vector<std::string> recording_files() const;  // current paths; empty if the dump was removed
};

class DumpFiles {
 public:
  // If `out` is a folder or ends in '/', dumps are written to that folder, which is created if its parent exists.
  // `keep`: the number of dumps to keep. For a file, the newest dump is not counted; for a folder, it is.
  [[nodiscard]] static Result<DumpFiles> open(const std::filesystem::path& out, int keep, std::string host);

  // `writer` writes a dump to the given path atomically. If `room` is set, the writer calls it first.
  using Writer = std::function<Result<DumpTotals>(const std::filesystem::path&, const DumpRoom& room)>;
  // Writes a dump. If the disk has no room for it, removes the oldest dumps. If there is still too little room, writes
  // only the newest events, with a warning.
  Result<WrittenDump> write(const Cause& cause, std::int64_t wall_ns, const Writer& writer);

  // From now on, the targets' recordings are copied with each dump.
  void take_along(std::shared_ptr<RecordingSources> sources) { sources_ = std::move(sources); }
  [[nodiscard]] const std::shared_ptr<RecordingSources>& sources() const { return sources_; }

  [[nodiscard]] const std::vector<WrittenDump>& written() const { return written_; }

 private:
  [[nodiscard]] std::filesystem::path kept(int number) const;
  // Keeps FILE as FILE.1: the file has both names until the new dump replaces FILE, or is renamed if the file system
  // has no hard links. Returns false if there is nothing to keep.
  [[nodiscard]] Result<bool> make_room();
  [[nodiscard]] std::filesystem::path fresh_name(const Cause& cause, std::int64_t wall_ns) const;
  // Keeps `newest` and `most` other dumps, and removes older ones. Returns false if there was nothing to remove.
  bool prune(const std::filesystem::path& newest, std::size_t most);
  // All dumps except `newest`, the newest first; if dumps are written to a file, FILE, FILE.1, FILE.2, ...
  [[nodiscard]] std::vector<std::filesystem::path> other_dumps(const std::filesystem::path& newest) const;
  // Returns false if there is none left.
  bool remove_oldest();
  void remove(const std::filesystem::path& dump);
  // Removes old dumps until there is room for `bytes`, and returns the number of bytes that may be written. `limit`: an
  // upper bound known from a failed attempt.
  std::uint64_t room_for(std::uint64_t bytes, std::uint64_t limit);
  void moved(const std::filesystem::path& from, const std::filesystem::path& to);

  std::filesystem::path out_;
  Fd pipe_;  // if FILE is a pipe: keeps it open between two dumps, so that its reader sees no end of file
  bool folder_ = false;
  int keep_ = 5;
  std::string host_;
  std::vector<WrittenDump> written_;
  std::shared_ptr<RecordingSources> sources_;
};

}  // namespace rose::observe
