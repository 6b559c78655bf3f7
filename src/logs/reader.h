// Reads log files into messages with timestamps. Each message has a kind (template) and a stream: its thread, or its
// logger if the message names no thread. Its text is kept within a budget. Source records how each file was read. For
// any input, the limits below bound the memory, and the time is proportional to the size of the files.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "logs/clock_jumps.h"
#include "logs/line/form.h"
#include "logs/line/times.h"
#include "logs/template.h"

namespace rose::logs {

// Limits for all files together. Beyond kMostMessages, only the first messages of each kind are kept, and the others
// are only counted.
inline constexpr std::size_t kMostMessages = 8'000'000;
// Beyond this size, only the texts of the first kTextsPerKind messages of each kind are kept.
inline constexpr std::size_t kMostTextBytes = std::size_t{192} << 20;
inline constexpr std::size_t kTextsPerKind = 8;
inline constexpr std::size_t kLongestText = std::size_t{16} << 10;  // bytes of one message, including its stack trace

struct Message {
  // Wall clock. A line without a timestamp has the time of the line before it. kNoTime if no line before it has one.
  std::int64_t ts_ns = kNoTime;
  std::uint64_t line = 0;  // number of the line in its file, from 1
  TemplateId kind = 0;
  std::uint32_t stream = 0;  // index into Logs::streams
  std::uint32_t text = 0;    // 1 + index into the texts of its source; 0: the text was not kept
  std::uint16_t source = 0;  // index into Logs::sources
  Level level = Level::none;
};

// One file, and how it was read. If the file has lines of several nodes, there is one Source for each of these nodes.
struct Source {
  std::filesystem::path path, folder;  // see Input
  std::string node;  // the node given for the file; in a shared file, the node of these lines; "": unknown
  // file name without suffixes of rotation and compression, so that the files of one log have the same name
  std::string log;
  std::string host;     // the host that the lines name; "": none
  bool shared = false;  // the file has lines of several nodes, and this Source is about the lines of `node`
  std::vector<std::string> unknown_hosts;  // hosts that the lines name and that are no nodes; only the first few
  std::string form;                        // the result of Form::words()
  std::string packing;
  // the reason why the file was not read completely (damage, binary content), in one sentence; "" if it was
  std::string problem;
  std::uint64_t bytes = 0, lines = 0;  // size of the uncompressed content
  std::uint64_t messages = 0;          // number of all messages, whether kept or not
  std::uint64_t kept = 0;              // number of messages that were kept
  std::uint64_t timed = 0;             // number of lines with a timestamp of their own
  std::uint64_t rest = 0;              // number of lines that continue the message before them
  std::uint64_t cut = 0;               // number of lines that were truncated
  std::uint64_t overflow = 0;  // number of messages without a kind of their own, because there were too many kinds
  bool zoned = false;          // the timestamps state their zone
  bool newest_first = false;   // the newest line came first in the file; the messages were put in the usual order
  TimeKind time_kind = TimeKind::date_time;  // the least complete kind of timestamp in the file
  bool dated = false;                        // at least one timestamp states its year
  bool year_of_others = false;               // the timestamps have no year, and got the year of the other files
  std::int64_t shifted_ns = 0;  // added to the timestamps to align them with those of other files; see align_zones()
  std::int64_t first_ns = kNoTime, last_ns = kNoTime;
};

// The messages of one node, in order; or those of one log, if it is unknown which node wrote it.
struct NodeLog {
  std::string node;  // "": unknown
  std::string name;  // the name in reports: the node; if unknown, the host; if unknown, the name of the log
  std::vector<Message> messages;
  std::vector<std::uint64_t> counts;  // number of messages by kind, including those that were not kept
  bool aligned = false;               // the log has no timestamps; align() took times from another run, so gaps
                                      // between them mean nothing
};

class Logs {
 public:
  std::vector<Source> sources;
  std::vector<std::string> streams;  // names; "" is the stream of messages with neither a thread nor a logger
  std::vector<NodeLog> nodes;
  std::vector<ClockJump> jumps;  // sorted by time; the timestamps of the messages were corrected already

  // The message's text; "" if it was not kept.
  [[nodiscard]] std::string_view text(const Message& message) const;

  struct Texts {
    std::string bytes;
    std::vector<std::uint32_t> ends;
  };
  std::vector<Texts> texts;  // indexed by source
};

struct Input {
  std::filesystem::path path;
  std::string node;  // "": unknown
  // A folder that contains the file and to which another user may write. Empty if the path is trusted.
  std::filesystem::path folder{};
};

struct ReadOptions {
  std::vector<CustomForm> custom;  // the first of these forms whose glob matches a file is used for that file
  std::int64_t zone_ns = 0;        // ns east of Greenwich, for times without a zone
  // Maps a host that a line names to a node; "" if the host is no node. Used for files whose node was not given. If the
  // function is empty, all lines of a file are assumed to come from one node.
  std::function<std::string(std::string_view host)> node_of;
  unsigned threads = 0;  // 0: one for each processor, at most 8
};

// Reads all files. Kinds are added to `templates`, which may already contain those of other logs. Fails with
// ErrorKind::input if a file cannot be opened. Damaged content is no error; it is read as far as possible.
[[nodiscard]] Result<Logs> read_logs(std::span<const Input> inputs, const ReadOptions& options, Templates& templates);
// Reads one file whose content is in memory.
[[nodiscard]] Logs read_text(std::string content, const Input& input, const ReadOptions& options, Templates& templates);

// The name of the log that a file belongs to: "server.log" for "server.log.2.gz", "app.log" for "app-20261122.log".
[[nodiscard]] std::string log_name(const std::filesystem::path& path);

// Says in one sentence how the file was read: "server.log: 120 lines, 118 messages, all timed, read as '...' (gzip);
// ...".
[[nodiscard]] std::string words(const Source& source);

}  // namespace rose::logs
