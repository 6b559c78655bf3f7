#include "logs/line/document.h"

#include <algorithm>
#include <array>
#include <span>
#include <vector>

#include "base/json.h"
#include "base/json_shape.h"
#include "logs/line/chars.h"

namespace rose::logs {
namespace {

constexpr int kDeepest = 12;  // deepest nesting of objects and arrays in which records are looked for
// deepest nesting of a whole document, because the text of a record may contain further objects
constexpr int kDeepestText = 64;

// Names of the fields that contain the program's line, the time and the severity. In each list, the most specific name
// comes first.
constexpr std::array kTexts = std::to_array<const char*>(
    {"textPayload", "log", "line", "_raw", "message", "msg", "@message", "MESSAGE", "body", "Body", "text"});
constexpr std::array kTimes = std::to_array<const char*>({"@timestamp", "timestamp", "timeUnixNano", "time", "ts",
                                                          "_time", "date", "observedTimeUnixNano", "receiveTimestamp"});
constexpr std::array kSeverities =
    std::to_array<const char*>({"severity", "severityText", "level", "levelname", "log.level", "lvl"});
// The keys of the lists of records in a document.
constexpr std::array kContainers = std::to_array<std::string_view>(
    {"\"resourceLogs\"", "\"hits\":", "\"resultType\"", "\"logRecords\"", "\"events\":[", "\"streams\":["});
// The objects in a record that hold the program's own fields.
constexpr std::array kPayloads = std::to_array<const char*>({"jsonPayload", "_source", "body", "protoPayload"});

bool is_text(const Json& value) { return value.is_string() || (value.is_object() && value.contains("stringValue")); }
std::string text_of(const Json& value) {
  if (value.is_string()) return value.get<std::string>();
  if (value.is_object())
    for (const char* key : {"stringValue", "intValue", "doubleValue", "boolValue"})
      if (value.contains(key)) return text_of(value[key]);
  return json_text(value);
}

// Names and values that describe where a record comes from. Those of the record itself come before those of the objects
// around it.
using Origin = std::vector<std::pair<std::string, std::string>>;

// Collects the scalar values in `value`. The field "name" of an object is stored under the key of the object:
// {"pod":{"name":"n1"}} becomes pod = n1.
void flatten(const Json& value, const std::string& prefix, Origin& out, int depth = 0) {
  if (depth > kDeepest) return;
  if (value.is_array()) {  // OTLP: [{"key":"k8s.pod.name","value":{"stringValue":"n1"}}]
    for (const Json& element : value)
      if (element.is_object() && element.contains("key") && element.contains("value") && element["key"].is_string())
        out.emplace_back(element["key"].get<std::string>(), text_of(element["value"]));
    return;
  }
  if (!value.is_object()) return;
  for (const auto& [key, one] : value.items()) {
    if (one.is_object() || one.is_array()) {
      flatten(one, key, out, depth + 1);
    } else if (key == "name" && !prefix.empty()) {
      out.emplace_back(prefix, text_of(one));
    } else {
      out.emplace_back(key, text_of(one));
    }
  }
}

// Converts the records of a document to lines.
class Unroller {
 public:
  void walk(const Json& value, const Origin& origin, int depth = 0) {
    if (depth > kDeepest) return;
    if (value.is_array()) {
      for (const Json& element : value) walk(element, origin, depth + 1);
      return;
    }
    if (!value.is_object() || take_stream(value, origin)) return;
    if (const std::string* text = text_in(value)) {
      emit(value, *text, origin);
      return;
    }
    Origin here = origin;
    for (const auto& [key, one] : value.items())
      if (!has_records(one)) flatten(Json{{key, one}}, "", here);
    for (const auto& [key, one] : value.items())
      if (one.is_object() || one.is_array()) walk(one, here, depth + 1);
  }

  std::string lines;

 private:
  // Loki: {"stream":{"pod":"n1"},"values":[["1717588801123000000","the line"]]}
  bool take_stream(const Json& value, const Origin& origin) {
    if (!value.contains("values") || !value["values"].is_array()) return false;
    Origin here = origin;
    for (const char* key : {"stream", "metric"})
      if (value.contains(key)) flatten(value[key], "", here);
    bool any = false;
    for (const Json& pair : value["values"]) {
      if (!pair.is_array() || pair.size() < 2 || !pair[0].is_string() || !pair[1].is_string()) continue;
      put(pair[0].get<std::string>(), "", pair[1].get<std::string>(), here);
      any = true;
    }
    return any;
  }

  // The program's line in a record; null if the object is no record.
  const std::string* text_in(const Json& value) {
    for (const char* key : kTexts)
      if (value.contains(key) && is_text(value[key])) return &(text_ = text_of(value[key]));
    for (const char* payload : kPayloads)
      if (value.contains(payload) && value[payload].is_object())
        for (const char* key : kTexts)
          if (value[payload].contains(key) && is_text(value[payload][key]))
            return &(text_ = text_of(value[payload][key]));
    return nullptr;
  }

  static bool has_records(const Json& value) {
    return value.is_array() && std::any_of(value.begin(), value.end(), [](const Json& element) {
             return element.is_object() && !(element.contains("key") && element.contains("value"));
           });
  }

  static std::string first_of(const Json& value, std::span<const char* const> keys) {
    for (const char* key : keys)
      if (value.contains(key) && !value[key].is_structured()) return text_of(value[key]);
    for (const char* payload : kPayloads)
      if (value.contains(payload) && value[payload].is_object())
        for (const char* key : keys)
          if (value[payload].contains(key) && !value[payload][key].is_structured()) return text_of(value[payload][key]);
    return {};
  }

  void emit(const Json& record, std::string text, const Origin& origin) {
    Origin here;
    flatten(record, "", here);
    here.insert(here.end(), origin.begin(), origin.end());
    // A structured message has its error in a separate field. Append the error to the text, so that it is found there.
    for (const char* key : {"error", "err", "exception", "stack_trace"})
      for (const Json* in : {&record, record.contains("jsonPayload") ? &record["jsonPayload"] : nullptr})
        if (in != nullptr && in->is_object() && in->contains(key) && (*in)[key].is_string())
          text += std::string(" ") + key + "=" + (*in)[key].get<std::string>();
    put(first_of(record, kTimes), first_of(record, kSeverities), text, here);
  }

  void put(const std::string& time, const std::string& severity, const std::string& text, const Origin& origin) {
    Json line = Json::object();
    if (!time.empty()) line["timestamp"] = time;
    if (!severity.empty()) line["severity"] = severity;
    Json labels = Json::object();
    for (const auto& [key, value] : origin)
      if (value.size() < 200 && !labels.contains(key)) labels[key] = value;
    line["labels"] = std::move(labels);
    line["log"] = text;
    lines += json_line(line);
  }

  std::string text_;
};

// The offset after the object or array that begins at `at`; 0 if the text ends before the object or array does.
std::size_t end_of_value(std::string_view text, std::size_t at) {
  std::size_t depth = 0;
  for (; at < text.size(); ++at) {
    const char c = text[at];
    if (c == '"') {
      for (++at; at < text.size() && text[at] != '"'; ++at) at += text[at] == '\\' ? 1 : 0;
    } else if (c == '{' || c == '[') {
      ++depth;
    } else if ((c == '}' || c == ']') && --depth == 0) {
      return at + 1;
    }
  }
  return 0;
}

}  // namespace

bool begins_document(std::string_view head) {
  if (head.starts_with("\xef\xbb\xbf")) head.remove_prefix(3);
  const std::size_t first = head.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos) return false;
  head.remove_prefix(first);
  if (head[0] == '[') {
    const std::size_t next = head.find_first_not_of(" \t\r\n", 1);
    return next != std::string_view::npos && head[next] == '{';
  }
  if (head[0] != '{') return false;
  const std::string_view line = head.substr(0, head.find('\n'));
  // If an object is printed over several lines, nothing follows its first bracket.
  if (line.find_first_not_of(" \t\r", 1) == std::string_view::npos) return true;
  return std::any_of(std::begin(kContainers), std::end(kContainers),
                     [&](std::string_view key) { return line.substr(0, 512).find(key) != std::string_view::npos; });
}

std::optional<std::string> lines_of_document(std::string_view whole) {
  Unroller unroller;
  // Objects may follow each other without an array around them.
  for (std::size_t at = whole.find_first_of("{["); at != std::string_view::npos; at = whole.find_first_of("{[", at)) {
    const std::size_t end = end_of_value(whole, at);
    if (end == 0) break;  // the text is damaged here; keep the records before
    const std::string_view text = whole.substr(at, end - at);
    const Json value = json_within(text, kDeepestText) ? parse_json(text) : Json(Json::value_t::discarded);
    if (value.is_discarded()) break;
    unroller.walk(value, {});
    at = end;
  }
  if (unroller.lines.empty()) return std::nullopt;
  return std::move(unroller.lines);
}

}  // namespace rose::logs
