// A layer is what a collector, a container runtime or a terminal adds around a program's line: a time, a host, a
// service, quotes, a JSON object, a CSV row. Layers are removed one after the other, the outermost first. Each is
// recognised by its own structure, so that layers may be nested in any order.
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

// The fields that a layer adds to the line inside it. They are views into the line or into the layer's buffers, and are
// valid until the layer reads its next line.
struct LayerFields {
  std::optional<TimeStamp> time;
  Level level = Level::none;
  std::string_view host, logger, text;
  bool partial = false;  // the line was split at its end and continues in the next one
  bool whole = false;    // the line is a separate message, whatever it looks like
  bool nothing = false;  // the line belongs to the layer, such as the header of a table
  bool rest = false;     // the line continues the message before it
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

  // The outermost layer of a file, which most lines of `sample` have. Nothing if there is none. `sample` must not be
  // empty. `is_node` returns true for the host name of a node; it may be an empty function object.
  [[nodiscard]] static std::optional<Layer> choose(std::span<const std::string> sample, const IsNode& is_node = {});

  // Removes the layer from the line. Returns false if the line does not have the layer.
  [[nodiscard]] bool take(std::string_view line, LayerFields& out);

  [[nodiscard]] Kind kind() const { return kind_; }
  [[nodiscard]] std::string_view name() const;

 private:
  explicit Layer(Kind kind) : kind_(kind) {}
  [[nodiscard]] bool fits(std::span<const std::string> sample, const IsNode& is_node);
  [[nodiscard]] bool is_journal() const;
  [[nodiscard]] bool read(std::string_view line, LayerFields& out);
  [[nodiscard]] bool read_csv(std::string_view line, LayerFields& out);
  [[nodiscard]] bool read_envelope(std::string_view line, LayerFields& out);
  [[nodiscard]] bool read_journal_json(std::string_view line, LayerFields& out);
  bool find_columns(std::string_view head);
  bool derive_columns(std::span<const std::string> sample, const IsNode& is_node);

  Kind kind_;
  JsonLine json_, nested_;
  std::string host_, text_;
  // syslog: the least indentation of the messages of each program
  std::unordered_map<std::string, std::size_t> indents_;
  // csv: the columns that are used; nothing if the rows have no such column.
  std::string head_;  // the header row; "" if there is none
  std::optional<std::size_t> time_column_, text_column_, host_column_, level_column_;
  bool in_quotes_ = false;  // the text of the last row continues in the next line
  std::size_t blanks_ = 0;  // indent: the number of blanks
};

// The host, pod or service that a JSON object names, in the object itself or in nested objects
// ({"kubernetes":{"pod_name":..}}, {"resource":{"labels":{"pod_name":..}}}); "" if it names none. `depth`: how deep
// nested objects are searched. Named::inside: search only nested objects, because a top-level member such as "host" may
// name a peer.
enum class Named { anywhere, inside };
[[nodiscard]] std::string nested_host(const std::vector<JsonMember>& members, Named named = Named::anywhere,
                                      int depth = 3);

[[nodiscard]] Level level_of_severity(int severity);  // `severity` is one of syslog, from 0 (emergency) to 7 (debug)
// The line without the escape sequences of terminals ("ESC[31m", "ESC]0;title BEL"). If the line contains any, the
// result is in `buffer`.
[[nodiscard]] std::string_view without_colours(std::string_view line, std::string& buffer);

}  // namespace rose::logs
