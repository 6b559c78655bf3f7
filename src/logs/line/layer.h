// What a collector, a container runtime or a terminal adds around a program's line: a time, a host, a service, quotes,
// a JSON object, a CSV row. Layers are removed one after the other, outermost first. Each is recognised by its own
// structure, so that they may be nested in any order.
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

// The fields that a layer adds to the line inside it. Views into the line, or into the layer's buffers: valid until the
// layer reads its next line.
struct LayerFields {
  std::optional<TimeStamp> time;
  Level level = Level::none;
  std::string_view host, logger, text;
  bool partial = false;  // the line was split here and continues in the next one
  bool whole = false;    // the line is a message of its own, whatever it looks like
  bool nothing = false;  // the layer's own line, such as the header of a table
  bool rest = false;     // the line continues the message before
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

  // The outermost layer of a file, which most lines of `sample` have; nothing if there is none. `sample` must not be
  // empty. `is_node` returns true for the host name of a node; the function object may be empty.
  [[nodiscard]] static std::optional<Layer> choose(std::span<const std::string> sample, const IsNode& is_node = {});

  // Removes the layer from the line. False if the line does not have it.
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
  std::unordered_map<std::string, std::size_t> indents_;  // syslog: by program, the least indentation of its messages
  // csv: the columns that are used; nothing if the rows have no such column.
  std::string head_;  // the header row; "" if there is none
  std::optional<std::size_t> time_column_, text_column_, host_column_, level_column_;
  bool in_quotes_ = false;  // the text of the last row continues in the next line
  std::size_t blanks_ = 0;  // indent: the number of blanks
};

// The host, pod or service that a JSON object names, also in nested objects ({"kubernetes":{"pod_name":..}},
// {"resource":{"labels":{"pod_name":..}}}); "" if it names none. `depth` limits how deep nested objects are searched.
// Named::inside: search nested objects only, because a top-level member such as "host" may name a peer.
enum class Named { anywhere, inside };
[[nodiscard]] std::string nested_host(const std::vector<JsonMember>& members, Named named = Named::anywhere,
                                      int depth = 3);

[[nodiscard]] Level level_of_severity(int severity);  // `severity`: of syslog, from 0 (emergency) to 7 (debug)
// The line without terminal escape sequences ("ESC[31m", "ESC]0;title BEL"). `buffer` holds the result if the line has
// any.
[[nodiscard]] std::string_view without_colours(std::string_view line, std::string& buffer);

}  // namespace rose::logs
