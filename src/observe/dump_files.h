// Where a flight recorder's dumps go. Into one file: the newest is always there, and those before it, of earlier
// recorders too, are kept beside it as FILE.1, FILE.2, ... Or into a folder, each under a name of its own; the oldest
// go. With each its recordings.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "observe/dump_plan.h"
#include "observe/recordings.h"
#include "observe/tracer.h"
#include "trace/event.h"

namespace rose::observe {

[[nodiscard]] DumpTotals size_of(const trace::Trace& trace);

// A host's name as part of a file's.
[[nodiscard]] std::string file_word(std::string_view host);
// Of a dump in a folder: "rose-HOST-20261122T014501Z-crash.bin".
struct DumpName {
  std::string host;     // as file_word made it
  std::string stamp;    // UTC; sorts by time
  std::string trigger;  // trigger_word, and "-2" for the second of a moment
};
[[nodiscard]] std::optional<DumpName> parse_dump_name(std::string_view file);

struct WrittenDump {
  std::filesystem::path file;  // where it is now; empty once it made room for newer ones
  std::string trigger;
  DumpTotals size;
  std::int64_t ts_ns = 0;
  std::vector<std::string> recordings;                             // beside it: in FILE.recordings, as NODE/NAME
  [[nodiscard]] std::vector<std::string> recording_files() const;  // where they are now; none once the dump made room
};

class DumpFiles {
 public:
  // A folder when `out` is one or ends in '/': it is made when its parent is there. `keep`: how many are kept,
  // beside the newest for a file, in all for a folder.
  [[nodiscard]] static Result<DumpFiles> open(const std::filesystem::path& out, int keep, std::string host);

  // `writer` writes a whole dump to the name it is given (beside and renamed).
  using Writer = std::function<Result<DumpTotals>(const std::filesystem::path&)>;
  Result<WrittenDump> write(const Cause& cause, std::int64_t wall_ns, const Writer& writer);

  // From here on each dump has the recordings of the targets beside it.
  void take_along(std::shared_ptr<RecordingSources> sources) { sources_ = std::move(sources); }
  [[nodiscard]] const std::shared_ptr<RecordingSources>& sources() const { return sources_; }

  [[nodiscard]] const std::vector<WrittenDump>& written() const { return written_; }

 private:
  [[nodiscard]] std::filesystem::path kept(int number) const;
  // True: FILE.1 is what FILE is, until the new one is there.
  [[nodiscard]] Result<bool> make_room();
  [[nodiscard]] std::filesystem::path fresh_name(const Cause& cause, std::int64_t wall_ns) const;
  // Removes the oldest but `most`, beside `newest`. False: there was none to remove.
  bool prune(const std::filesystem::path& newest, std::size_t most);
  void moved(const std::filesystem::path& from, const std::filesystem::path& to);

  std::filesystem::path out_;
  bool folder_ = false;
  int keep_ = 5;
  std::string host_;
  std::vector<WrittenDump> written_;
  std::shared_ptr<RecordingSources> sources_;
};

}  // namespace rose::observe
