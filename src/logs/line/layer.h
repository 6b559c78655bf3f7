// What a collector, a container runtime or a terminal puts around a program's line: a time, a host, a service, quotes,
// an object of JSON, a row of CSV. Layers are removed one after the other, outermost first, each recognised by its own
// structure, so that any of them may stand around any other.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "logs/line/form.h"
#include "logs/line/json_line.h"

namespace rose::logs {

// What a layer says of the line inside it. Views into the line, or into the layer's buffers: valid until its next line.
struct Outside {
  std::optional<TimeStamp> time;
  Level level = Level::none;
  std::string_view host, logger, text;
  bool partial = false;  // the line was cut here and continues in the next one
  bool whole = false;    // a message of its own, whatever it looks like
  bool nothing = false;  // the layer's own line, such as the head of a table
  bool rest = false;     // more of the message before
};

class Layer {
 public:
  enum class Kind {
    docker,
    cri,
    syslog_5424,
    syslog,
    journal_json,
    envelope,
    csv,
    quote,
    indent,
    prefix,
    stern,
    stream,
    origin,
    file_name,
    timestamp,
  };

  // The outermost layer of most lines of `sample`, which is not empty; nothing: there is none. `is_node` tells whether
  // a host's name is that of a node; it may be empty.
  [[nodiscard]] static std::optional<Layer> choose(std::span<const std::string> sample, const IsNode& is_node = {});

  // False: the line does not have this layer.
  [[nodiscard]] bool take(std::string_view line, Outside& out);

  [[nodiscard]] Kind kind() const { return kind_; }
  [[nodiscard]] std::string_view name() const;

 private:
  explicit Layer(Kind kind) : kind_(kind) {}
  [[nodiscard]] bool fits(std::span<const std::string> sample, const IsNode& is_node);
  [[nodiscard]] bool is_journal() const;
  [[nodiscard]] bool read(std::string_view line, Outside& out);
  [[nodiscard]] bool read_csv(std::string_view line, Outside& out);
  [[nodiscard]] bool read_envelope(std::string_view line, Outside& out);
  [[nodiscard]] bool read_journal_json(std::string_view line, Outside& out);
  bool find_columns(std::string_view head);
  bool guess_columns(std::span<const std::string> sample, const IsNode& is_node);

  Kind kind_;
  JsonLine json_, nested_;
  std::string host_, text_;
  std::unordered_map<std::string, std::size_t> indents_;  // syslog: the fewest blanks before a program's messages
  // csv: the columns that count; nothing: there is no such column.
  std::string head_;  // "": the rows have none
  std::optional<std::size_t> time_column_, text_column_, host_column_, level_column_;
  bool in_quotes_ = false;  // the last row's text goes on in the next line
  std::size_t blanks_ = 0;  // indent
};

// The host, pod or service that an object of JSON names, looked for in nested objects too
// ({"kubernetes":{"pod_name":..}},
// {"resource":{"labels":{"pod_name":..}}}); "" when it names none. `depth` bounds the nesting that is looked into.
// Named::inside: only objects among the members count, since a member such as "host" may be a peer's.
enum class Named { anywhere, inside };
[[nodiscard]] std::string nested_host(const std::vector<JsonMember>& members, Named named = Named::anywhere,
                                      int depth = 3);

[[nodiscard]] Level level_of_severity(int severity);  // of syslog: 0 emergency to 7 debug
// "ESC[31m", "ESC]0;title BEL": the line without commands to a terminal. `buffer` holds the result where it has any.
[[nodiscard]] std::string_view without_colours(std::string_view line, std::string& buffer);

}  // namespace rose::logs
