// Collects the messages of one node in one file: joins the lines of each message, and keeps messages and texts within
// the limits.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "logs/line/form.h"
#include "logs/read/kind_cache.h"
#include "logs/reader.h"
#include "logs/time_keeper.h"

namespace rose::logs {

// The messages of one node in one file. They use kinds and streams of the file.
struct FileResult {
  Source source;
  Templates kinds;
  std::vector<Message> messages;
  std::vector<std::string> streams;
  std::vector<std::uint64_t> counts;
  Logs::Texts texts;
};

// An amount of data of one file, for all nodes together: the amount that may be kept, or that was kept so far.
struct Share {
  std::size_t messages = 0, text = 0;  // number of messages; bytes of text
};

// Collects the messages of one node in one file.
class Sink {
 public:
  // `parts`: the parts of the line that take() adds.
  Sink(Parts& parts, const TimeKeeper& clock, Share most, Share& kept, FileResult& out)
      : parts_(parts), clock_(clock), most_(most), kept_(kept), out_(out) {}

  [[nodiscard]] Source& source() { return out_.source; }

  // Adds a line. Corrects the role `took` if it depends on the message before the line, which is still open.
  void take(LineRole took, std::uint64_t line);

  // Call this after the last line of the file.
  void close();

 private:
  void append(std::string_view between, std::string_view text);

  // Tracks whether a Python traceback has begun. It ends with its exception, unless the traceback of another exception
  // follows, which was raised while the first one was handled. Later lines on the same output come from other programs.
  void note_traceback(std::string_view line);
  static bool ends_traceback(std::string_view line);

  // True if the line reports a failure and follows a message of an ordinary level. Such a line may be the last output
  // of a program: it has no timestamp, but is not part of the message before it.
  bool is_own_failure(std::string_view line);

  // True if the open message is the first line of two that java.util.logging writes: "Jan 2, 2026 3:04:05 AM
  // com.example.Server run". The second line has level and text: "INFO: up".
  bool is_place_line() const;
  void merge_with_place();

  // Opens a message with the line in `parts_`. head_ receives the text that determines the message's kind.
  void begin_message();

  // The stream of the current line: by the name of its thread, or of its logger if the thread has only a number. A
  // name is the same in each run, and a number is not.
  std::uint32_t stream_of();

  // Counts the open message. Keeps the message and its text if the limits permit.
  void finish_message();

  // True if most timestamps decrease, as in the output of `journalctl -r` and in what web pages show and export. A
  // clock that was set back causes only a single decrease.
  [[nodiscard]] bool is_newest_first() const;

  // Completes the timestamps, and puts the messages in the order in which they were written.
  void finish_source();

  Parts& parts_;
  TimeKeeper clock_;
  Share most_;
  Share& kept_;
  FileResult& out_;
  KindCache cache_;
  std::unordered_map<std::string, std::uint32_t> stream_ids_;
  std::vector<std::pair<std::size_t, TimeKind>> incomplete_;

  std::uint64_t line_ = 0;
  Message now_;
  bool open_ = false, long_text_ = false;
  std::string text_, head_, logger_, masked_, masked_logger_, last_stream_name_;
  bool stream_known_ = false;
  std::uint32_t last_stream_ = 0;
  // The state of a Python traceback: it has begun; its exception was read; another traceback of the same message
  // follows.
  bool traceback_ = false, raised_ = false, chained_ = false;
  std::size_t exceptions_ = 0;
  std::uint64_t strays_read_ = 0;
  std::int64_t last_ns_ = kNoTime;
  TimeKind last_kind_ = TimeKind::date_time, kind_of_time_ = TimeKind::date_time;
};

}  // namespace rose::logs
