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

#include "logs/line/csv.h"
#include "logs/line/form.h"
#include "logs/line/json_line.h"
#include "logs/line/layer_fields.h"

namespace rose::logs {

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

  // Returns the outermost layer of a file, which most lines of `sample` have; nothing if there is none. `sample` must
  // not be empty. `is_node` returns true for the host name of a node; it may be an empty function object.
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
  [[nodiscard]] bool read_envelope(std::string_view line, LayerFields& out);

  Kind kind_;
  JsonLine json_;
  CsvTable csv_;
  std::string host_, text_;
  // syslog: the least indentation of the messages of each program
  std::unordered_map<std::string, std::size_t> indents_;
  std::size_t blanks_ = 0;  // indent: the number of blanks
};

}  // namespace rose::logs
