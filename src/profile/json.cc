#include <cmath>
#include <initializer_list>
#include <limits>

#include "base/file.h"
#include "base/json.h"
#include "base/json_shape.h"
#include "base/text.h"
#include "base/zstd.h"
#include "profile/profile.h"

namespace rose::profile {
namespace {

constexpr std::uint32_t kVersion = 1;
constexpr std::size_t kMostProfileBytes = std::size_t{256} << 20;
constexpr std::string_view kHint = "create it again with `rose profile -c rose.toml`";

Json text_or_null(const std::string& text) { return text.empty() ? Json() : Json(text); }

Json call_to_json(const CallKind& kind, bool failure) {
  Json out;
  out["node"] = kind.node;
  out["syscall"] = kind.syscall;
  if (failure) out["errno"] = kind.error;
  out["path"] = text_or_null(kind.path);
  out["peer"] = text_or_null(kind.peer);
  out["count"] = kind.count;
  return out;
}

// Reads values and keeps the first error, so that fields can be read one after the other without a check after each.
class Reader {
 public:
  explicit Reader(std::string_view file) : file_(file) {}

  [[nodiscard]] const std::optional<Error>& error() const { return error_; }

  void complain(const std::string& where, std::string_view what, const Json* found = nullptr) {
    if (error_) return;
    std::string message = fmt::format("{}: {}{}{}", file_, where, where.empty() ? "" : ": ", what);
    if (found != nullptr) {
      std::string quoted = json_text(*found);
      if (quoted.size() > 60) quoted = quoted.substr(0, 57) + "...";
      message += fmt::format(", found {}", quoted);
    }
    error_ = Error{ErrorKind::input, std::move(message), std::string(kHint)};
  }

  // Checks that the value is an object without other keys than these.
  bool object(const Json& value, const std::string& where, std::initializer_list<const char*> keys) {
    if (!value.is_object()) {
      complain(where, "expected an object", &value);
      return false;
    }
    for (const auto& [key, ignored] : value.items()) {
      if (std::find(keys.begin(), keys.end(), key) != keys.end()) continue;
      complain(where, fmt::format("unknown key '{}'; known are {}", key, fmt::join(keys, ", ")));
      return false;
    }
    return true;
  }

  void text(const Json& object, const std::string& where, const char* key, std::string& out, bool optional = false) {
    const auto found = object.find(key);
    if (found == object.end() || found->is_null()) {
      if (!optional) complain(where, fmt::format("'{}' is missing", key));
      return;
    }
    if (!found->is_string()) return complain(at(where, key), "expected a string", &*found);
    out = found->get<std::string>();
  }

  template <typename Number>
  void whole(const Json& object, const std::string& where, const char* key, Number& out, std::int64_t least,
             std::uint64_t most, bool optional = false) {
    const auto found = object.find(key);
    if (found == object.end() || found->is_null()) {
      if (!optional) complain(where, fmt::format("'{}' is missing", key));
      return;
    }
    const bool fits = found->is_number_unsigned() ? found->get<std::uint64_t>() <= most
                                                  : found->is_number_integer() && found->get<std::int64_t>() >= least;
    if (!fits) {
      return complain(at(where, key), fmt::format("expected a whole number from {} to {}", least, most), &*found);
    }
    out = found->get<Number>();
  }

  void real(const Json& object, const std::string& where, const char* key, double& out, bool optional = false) {
    const auto found = object.find(key);
    if (found == object.end() || found->is_null()) {
      if (!optional) complain(where, fmt::format("'{}' is missing", key));
      return;
    }
    if (!found->is_number() || !std::isfinite(found->get<double>()) || found->get<double>() < 0) {
      return complain(at(where, key), "expected a number of 0 or more", &*found);
    }
    out = found->get<double>();
  }

  void truth(const Json& object, const std::string& where, const char* key, bool& out, bool optional = false) {
    const auto found = object.find(key);
    if (found == object.end()) {
      if (!optional) complain(where, fmt::format("'{}' is missing", key));
      return;
    }
    if (!found->is_boolean()) return complain(at(where, key), "expected true or false", &*found);
    out = found->get<bool>();
  }

  // Calls `read(element, "key[3]")` for each element of the list `key`. An absent list is empty.
  template <typename Read>
  void list(const Json& object, const char* key, Read read) {
    const auto found = object.find(key);
    if (found == object.end()) return;
    if (!found->is_array()) return complain(key, "expected a list", &*found);
    std::size_t index = 0;
    for (const Json& element : *found) {
      read(element, fmt::format("{}[{}]", key, index++));
      if (error_) return;
    }
  }

 private:
  static std::string at(const std::string& where, const char* key) {
    return where.empty() ? std::string(key) : fmt::format("{}.{}", where, key);
  }
  std::string_view file_;
  std::optional<Error> error_;
};

constexpr std::uint64_t kMostCount = UINT64_MAX;

// A profile is nested four levels deep. Deeper nesting than this is refused, because the JSON library's writer is
// recursive and a million brackets would overflow the stack.
constexpr int kMostDepth = 16;

void read_calls(Reader& reader, const Json& root, const char* key, bool failure, std::vector<CallKind>& out) {
  reader.list(root, key, [&](const Json& element, const std::string& where) {
    const bool known = failure ? reader.object(element, where, {"node", "syscall", "errno", "path", "peer", "count"})
                               : reader.object(element, where, {"node", "syscall", "path", "peer", "count"});
    if (!known) return;
    CallKind kind;
    reader.text(element, where, "node", kind.node);
    reader.text(element, where, "syscall", kind.syscall);
    if (failure) reader.text(element, where, "errno", kind.error);
    reader.text(element, where, "path", kind.path, true);
    reader.text(element, where, "peer", kind.peer, true);
    reader.whole(element, where, "count", kind.count, 0, kMostCount);
    out.push_back(std::move(kind));
  });
}

Result<Profile> read_root(const Json& root, std::string_view name) {
  Reader reader(name);
  Profile profile;
  if (!root.is_object()) {
    reader.complain("", "expected a profile, one JSON object", &root);
    return Unexpected(*reader.error());
  }
  // Read the version first: a later version may have other keys.
  reader.whole(root, "", "version", profile.version, 0, UINT32_MAX);
  if (reader.error()) return Unexpected(*reader.error());
  if (profile.version != kVersion) {
    reader.complain("", fmt::format("profile of version {}; this rose knows version {}", profile.version, kVersion));
    return Unexpected(*reader.error());
  }
  if (!reader.object(root, "",
                     {"version", "name", "runs", "seconds", "infrequent_below", "failures", "state_changes", "syscalls",
                      "functions", "processes", "silences", "workload", "restarts"})) {
    return Unexpected(*reader.error());
  }
  reader.text(root, "", "name", profile.name, true);
  reader.whole(root, "", "runs", profile.runs, 0, INT32_MAX);
  reader.real(root, "", "seconds", profile.seconds);
  reader.real(root, "", "infrequent_below", profile.infrequent_below, true);
  read_calls(reader, root, "failures", true, profile.failures);
  read_calls(reader, root, "state_changes", false, profile.state_changes);

  if (const auto syscalls = root.find("syscalls"); syscalls != root.end() && !reader.error()) {
    if (!syscalls->is_object()) reader.complain("syscalls", "expected an object", &*syscalls);
    for (const auto& [node, calls] : syscalls->items()) {
      const std::string where = "syscalls." + node;
      if (reader.error()) break;
      if (!calls.is_object()) {
        reader.complain(where, "expected an object", &calls);
        break;
      }
      for (const auto& [call, ignored] : calls.items()) {
        reader.whole(calls, where, call.c_str(), profile.syscalls[node][call], 0, kMostCount);
      }
    }
  }
  reader.list(root, "functions", [&](const Json& element, const std::string& where) {
    if (!reader.object(element, where, {"node", "function", "binary", "count", "per_second", "infrequent"})) return;
    FunctionRate rate;
    reader.text(element, where, "node", rate.node);
    reader.text(element, where, "function", rate.function);
    reader.text(element, where, "binary", rate.binary, true);
    reader.whole(element, where, "count", rate.count, 0, kMostCount);
    reader.real(element, where, "per_second", rate.per_second);
    reader.truth(element, where, "infrequent", rate.infrequent);
    profile.functions.push_back(std::move(rate));
  });
  reader.list(root, "processes", [&](const Json& element, const std::string& where) {
    if (!reader.object(element, where, {"node", "state", "signal", "exit_code", "main", "count"})) return;
    ProcessKind kind;
    reader.text(element, where, "node", kind.node);
    reader.text(element, where, "state", kind.state);
    if (!reader.error() && kind.state != "crashed" && kind.state != "exited" && kind.state != "paused") {
      reader.complain(where + ".state", "expected crashed, exited or paused", &element["state"]);
    }
    reader.text(element, where, "signal", kind.signal, true);
    reader.whole(element, where, "exit_code", kind.exit_code, -1, INT32_MAX, true);
    reader.truth(element, where, "main", kind.main);
    reader.whole(element, where, "count", kind.count, 0, kMostCount);
    profile.processes.push_back(std::move(kind));
  });
  reader.list(root, "silences", [&](const Json& element, const std::string& where) {
    if (!reader.object(element, where, {"src", "dst", "longest_ms", "port", "open", "answers", "idle_ms"})) return;
    Silence silence;
    reader.text(element, where, "src", silence.src);
    reader.text(element, where, "dst", silence.dst);
    reader.whole(element, where, "longest_ms", silence.longest_ms, 0, INT64_MAX);
    reader.whole(element, where, "port", silence.port, 0, 65535, true);
    reader.truth(element, where, "open", silence.open, true);
    reader.whole(element, where, "idle_ms", silence.idle_ms, 0, INT64_MAX, true);
    if (element.contains("answers")) reader.truth(element, where, "answers", silence.answers.emplace());
    profile.silences.push_back(std::move(silence));
  });
  if (const auto workload = root.find("workload"); workload != root.end() && !reader.error()) {
    if (reader.object(*workload, "workload", {"runs", "failed", "sent", "received", "longest_ms", "idle_ms", "hits"})) {
      WorkloadUse& use = profile.workload.emplace();
      reader.whole(*workload, "workload", "runs", use.runs, 0, INT32_MAX);
      reader.whole(*workload, "workload", "failed", use.failed, 0, INT32_MAX);
      reader.whole(*workload, "workload", "longest_ms", use.longest_ms, 0, INT64_MAX, true);
      reader.whole(*workload, "workload", "idle_ms", use.idle_ms, 0, INT64_MAX, true);
      reader.whole(*workload, "workload", "hits", use.hits, 0, INT32_MAX, true);
      const auto bytes = [&](const char* key, std::optional<std::uint64_t>& into) {
        if (const auto found = workload->find(key); found != workload->end() && !found->is_null())
          reader.whole(*workload, "workload", key, into.emplace(), 0, kMostCount);
      };
      bytes("sent", use.sent);
      bytes("received", use.received);
    }
  }
  if (const auto restarts = root.find("restarts"); restarts != root.end() && !reader.error()) {
    if (reader.object(*restarts, "restarts", {"nodes", "failures"})) {
      if (const auto nodes = restarts->find("nodes"); nodes == restarts->end() || !nodes->is_object())
        reader.complain("restarts.nodes", "expected an object");
      else
        for (const auto& [node, ignored] : nodes->items())
          reader.whole(*nodes, "restarts.nodes", node.c_str(), profile.restarts.nodes[node], 0, INT32_MAX);
      if (!reader.error()) read_calls(reader, *restarts, "failures", true, profile.restarts.failures);
    }
  }
  if (reader.error()) return Unexpected(*reader.error());
  return profile;
}

}  // namespace

std::string to_json(const Profile& profile) {
  Json root;
  root["version"] = kVersion;
  root["name"] = profile.name;
  root["runs"] = profile.runs;
  root["seconds"] = profile.seconds;
  root["infrequent_below"] = profile.infrequent_below;
  root["failures"] = Json::array();
  for (const CallKind& kind : profile.failures) root["failures"].push_back(call_to_json(kind, true));
  root["state_changes"] = Json::array();
  for (const CallKind& kind : profile.state_changes) root["state_changes"].push_back(call_to_json(kind, false));
  root["syscalls"] = Json::object();
  for (const auto& [node, calls] : profile.syscalls) root["syscalls"][node] = calls;
  root["functions"] = Json::array();
  for (const FunctionRate& rate : profile.functions) {
    Json out;
    out["node"] = rate.node;
    out["function"] = rate.function;
    out["binary"] = text_or_null(rate.binary);
    out["count"] = rate.count;
    out["per_second"] = rate.per_second;
    out["infrequent"] = rate.infrequent;
    root["functions"].push_back(std::move(out));
  }
  root["processes"] = Json::array();
  for (const ProcessKind& kind : profile.processes) {
    Json out;
    out["node"] = kind.node;
    out["state"] = kind.state;
    out["signal"] = text_or_null(kind.signal);
    out["exit_code"] = kind.exit_code < 0 ? Json() : Json(kind.exit_code);
    out["main"] = kind.main;
    out["count"] = kind.count;
    root["processes"].push_back(std::move(out));
  }
  root["silences"] = Json::array();
  for (const Silence& silence : profile.silences) {
    root["silences"].push_back(
        {{"src", silence.src}, {"dst", silence.dst}, {"longest_ms", silence.longest_ms}, {"port", silence.port}});
    if (silence.open) root["silences"].back()["open"] = true;
    if (silence.idle_ms != 0) root["silences"].back()["idle_ms"] = silence.idle_ms;
    if (silence.answers) root["silences"].back()["answers"] = *silence.answers;
  }
  if (profile.workload) {
    const WorkloadUse& use = *profile.workload;
    root["workload"] = {{"runs", use.runs},
                        {"failed", use.failed},
                        {"sent", use.sent ? Json(*use.sent) : Json()},
                        {"received", use.received ? Json(*use.received) : Json()},
                        {"longest_ms", use.longest_ms},
                        {"idle_ms", use.idle_ms},
                        {"hits", use.hits}};
  }
  if (!profile.restarts.nodes.empty()) {
    Json& out = root["restarts"];
    out["nodes"] = profile.restarts.nodes;
    out["failures"] = Json::array();
    for (const CallKind& kind : profile.restarts.failures) out["failures"].push_back(call_to_json(kind, true));
  }
  // Paths may contain any bytes, but JSON is Unicode. Bytes that are not UTF-8 become U+FFFD instead of an exception.
  return json_text(root, 1) + "\n";
}

Result<Profile> parse_profile(std::string_view text, std::string_view name, Part part) {
  if (!json_within(text, kMostDepth, std::numeric_limits<std::size_t>::max())) {
    return fail(ErrorKind::input,
                fmt::format("{}: not a profile: its JSON is nested more than {} levels deep", name, kMostDepth),
                std::string(kHint));
  }
  Json root;
  try {
    const Json::parser_callback_t wanted = [](int depth, Json::parse_event_t event, const Json& key) {
      return event != Json::parse_event_t::key || depth != 1 || (key != "failures" && key != "state_changes");
    };
    root = parse_json_or_throw(text, part == Part::all ? nullptr : wanted);
  } catch (const Json::parse_error& problem) {
    // The library's message has the form "[json.exception.parse_error.101] parse error at line 3, column 7: ...".
    std::string_view what = problem.what();
    if (const std::size_t bracket = what.find("] "); bracket != std::string_view::npos) what.remove_prefix(bracket + 2);
    std::string shown;
    for (const char c : what.substr(0, 240)) shown += c >= 0x20 && c < 0x7f ? c : '?';
    return fail(ErrorKind::input, fmt::format("{}: not a profile: {}", name, shown), std::string(kHint));
  } catch (const Json::exception& problem) {
    return fail(ErrorKind::input, fmt::format("{}: not a profile: {}", name, problem.what()), std::string(kHint));
  }
  return read_root(root, name);
}

Result<Profile> read_profile(const std::filesystem::path& path, Part part) {
  Result<std::string> text = read_file(path, kMostProfileBytes);
  std::error_code unreadable;
  if (!text && !std::filesystem::exists(path, unreadable))
    text.error().hint = "'rose profile -c rose.toml' makes a profile";
  if (text && is_zstd(*text)) text = zstd_unpack(*text, kMostProfileBytes, path.native());
  if (!text) return Unexpected(std::move(text).error());
  return parse_profile(*text, path.native(), part);
}

Result<void> write_profile(const Profile& profile, const std::filesystem::path& path) {
  return write_file(path, to_json(profile));
}

}  // namespace rose::profile
