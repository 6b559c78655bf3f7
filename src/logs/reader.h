// Log files in, timed messages out: each message has its kind (template), its stream (thread, else logger, else none)
// and, within a budget, its own words. How each file was read is reported. Bounded whatever the files hold: memory by
// the budgets below, time by the files' size.
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

// What is kept of all files together.
inline constexpr std::size_t kMostMessages = 8'000'000;  // beyond it, of each kind the first ones; the rest are counted
inline constexpr std::size_t kMostTextBytes = std::size_t{192}
                                              << 20;  // beyond it, of each kind the first kTextsPerKind
inline constexpr std::size_t kTextsPerKind = 8;
inline constexpr std::size_t kLongestText = std::size_t{16} << 10;  // of one message, its stack trace included

struct Message {
  std::int64_t ts_ns =
      kNoTime;             // wall clock; of a line without a time that of the line before, kNoTime where there is none
  std::uint64_t line = 0;  // in its file, from 1
  TemplateId kind = 0;
  std::uint32_t stream = 0;  // index into Logs::streams
  std::uint32_t text = 0;    // 1 + its index among the texts of its source; 0: not kept
  std::uint16_t source = 0;  // index into Logs::sources
  Level level = Level::none;
};

// One file, and how it was read.
struct Source {
  std::filesystem::path path, folder;  // of its Input
  std::string node;                    // as given; "" unknown
  std::string log;                     // name without what rotation and packing add: files of one log share it
  std::string host;                    // that the lines themselves name; "" none
  bool shared = false;                 // of a file with lines of several nodes, those of this one
  std::vector<std::string> strangers;  // hosts that its lines name and that are no node, the first ones
  std::string form;                    // in words
  std::string packing;
  std::string trouble;                       // damage, binary content: one sentence; ""
  std::uint64_t bytes = 0, lines = 0;        // unpacked
  std::uint64_t messages = 0;                // counted
  std::uint64_t kept = 0;                    // of them
  std::uint64_t timed = 0;                   // lines with a time of their own
  std::uint64_t rest = 0;                    // lines that belong to the message before
  std::uint64_t cut = 0;                     // lines longer than is kept
  std::uint64_t overflow = 0;                // messages of no kind: there were too many
  bool zoned = false;                        // times say their zone
  bool newest_first = false;                 // its lines stood in the opposite order
  TimeKind time_kind = TimeKind::date_time;  // the poorest form of time it has
  std::int64_t shifted_ns = 0;               // added to its times so that they meet those of the other files
  std::int64_t first_ns = kNoTime, last_ns = kNoTime;
};

// The messages of one node, or of one log whose node is not known, in order.
struct NodeLog {
  std::string node;  // "" unknown
  std::string name;  // node, else host, else the log's name: what messages call it
  std::vector<Message> messages;
  std::vector<std::uint64_t> counts;  // by kind: all, also those not kept
  bool aligned = false;               // its times are those of another run: gaps in it say nothing
};

class Logs {
 public:
  std::vector<Source> sources;
  std::vector<std::string> streams;  // "": of messages that name neither a thread nor a logger
  std::vector<NodeLog> nodes;
  std::vector<ClockJump> jumps;  // by time; the messages' times are as if the clocks had been right

  // Its own words; "" where they were not kept.
  [[nodiscard]] std::string_view text(const Message& message) const;

  struct Texts {
    std::string bytes;
    std::vector<std::uint32_t> ends;
  };
  std::vector<Texts> texts;  // by source
};

struct Input {
  std::filesystem::path path;
  std::string node;  // "" unknown
  std::filesystem::path folder{};  // one that another user may write, which the file is in; empty: the user's own path
};

struct ReadOptions {
  std::vector<CustomForm> custom;  // the first whose glob fits a file counts
  std::int64_t zone_ns = 0;        // of times that say none
  // Which node a host is that lines of a file without a node name; "" none. Without it a file is of one node.
  std::function<std::string(std::string_view host)> node_of;
  unsigned threads = 0;  // 0: as many as there are processors, at most 8
};

// Reads all files; kinds go into `templates`, which may already hold those of other logs. ErrorKind::input when a file
// can't be opened; whatever its content, it is read as far as it goes.
[[nodiscard]] Result<Logs> read_logs(std::span<const Input> inputs, const ReadOptions& options, Templates& templates);
// The same from memory: one file's content.
[[nodiscard]] Logs read_text(std::string content, const Input& input, const ReadOptions& options, Templates& templates);

// "server.log.2.gz" -> "server.log", "app-20261122.log" -> "app.log".
[[nodiscard]] std::string log_name(const std::filesystem::path& path);

// One sentence a file: "server.log: 120 lines, 118 messages (118 timed) as '...', gzip; ...".
[[nodiscard]] std::string words(const Source& source);

}  // namespace rose::logs
