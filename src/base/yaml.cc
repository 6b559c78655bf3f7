#include "base/yaml.h"

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/parser.h>

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <sstream>

namespace rose {
namespace {

struct Refused {
  int line;
  int column;
  std::string why;
};

[[noreturn]] void refuse(const YAML::Mark& mark, std::string why) {
  throw Refused{mark.line + 1, mark.column + 1, std::move(why)};
}

std::size_t count_values(const Yaml& value) {
  std::size_t count = 1;
  for (const Yaml& item : value.items) count += count_values(item);
  for (const auto& [key, member] : value.members) count += count_values(member);
  return count;
}

std::size_t depth_of(const Yaml& value) {
  std::size_t depth = 0;
  for (const Yaml& item : value.items) depth = std::max(depth, depth_of(item));
  for (const auto& [key, member] : value.members) depth = std::max(depth, depth_of(member));
  return depth + 1;
}

Yaml::Tag tag_of(const std::string& tag) {
  return tag == "!reset" ? Yaml::Tag::reset : tag == "!override" ? Yaml::Tag::override : Yaml::Tag::none;
}

class Builder : public YAML::EventHandler {
 public:
  void OnDocumentStart(const YAML::Mark&) override {}
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    Yaml value;
    value.line = mark.line + 1;
    add(mark, std::move(value), anchor);
  }
  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& text) override {
    Yaml value;
    value.line = mark.line + 1;
    // Unquoted "~" and "null" are null values; quoted ones are strings.
    value.plain = tag == "?";
    value.tag = tag_of(tag);
    value.kind = value.plain && (text == "~" || text == "null" || text.empty()) ? Yaml::Kind::null : Yaml::Kind::scalar;
    value.text = text;
    add(mark, std::move(value), anchor);
  }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    const auto known = anchors_.find(anchor);
    if (known == anchors_.end()) refuse(mark, "an alias inside the value that it refers to");
    if (known->second.values > kMostYamlValues - std::min(values_, kMostYamlValues))
      refuse(mark, fmt::format("its aliases expand to more than {} values", kMostYamlValues));
    if (stack_.size() + known->second.depth > kMostYamlDepth)
      refuse(mark, fmt::format("nested deeper than {} levels", kMostYamlDepth));
    values_ += known->second.values;
    place(mark, Yaml(*known->second.value));
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    open(mark, Yaml::Kind::list, tag, anchor);
  }
  void OnSequenceEnd() override { close(); }
  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    open(mark, Yaml::Kind::map, tag, anchor);
  }
  void OnMapEnd() override { close(); }

  // Returns the next document. Anchors are valid only within one document.
  Yaml take() {
    anchors_.clear();
    return std::exchange(root_, Yaml());
  }

 private:
  struct Frame {
    Yaml value;
    YAML::Mark mark;
    YAML::anchor_t anchor;
    bool has_key = false;
    std::string key;
    YAML::Mark key_mark;
    std::set<std::string> keys;
    std::vector<Yaml> merged;  // values of "<<"
  };
  struct Anchor {
    std::shared_ptr<const Yaml> value;
    std::size_t values;
    std::size_t depth;
  };

  void add(const YAML::Mark& mark, Yaml value, YAML::anchor_t anchor) {
    if (++values_ > kMostYamlValues) refuse(mark, fmt::format("more than {} values", kMostYamlValues));
    keep(mark, anchor, value);
    place(mark, std::move(value));
  }
  void keep(const YAML::Mark& mark, YAML::anchor_t anchor, const Yaml& value) {
    if (anchor == YAML::NullAnchor) return;
    // Each anchor keeps a copy of its value, so the values of a nested anchor are stored, and counted, once for each
    // level.
    const std::size_t values = count_values(value);
    anchored_ += values;
    if (anchored_ > kMostYamlValues) refuse(mark, fmt::format("more than {} values with anchors", kMostYamlValues));
    anchors_[anchor] = {std::make_shared<const Yaml>(value), values, depth_of(value)};
  }
  void open(const YAML::Mark& mark, Yaml::Kind kind, const std::string& tag, YAML::anchor_t anchor) {
    if (++values_ > kMostYamlValues) refuse(mark, fmt::format("more than {} values", kMostYamlValues));
    if (stack_.size() >= kMostYamlDepth) refuse(mark, fmt::format("nested deeper than {} levels", kMostYamlDepth));
    Frame frame;
    frame.value.kind = kind;
    frame.value.tag = tag_of(tag);
    frame.value.line = mark.line + 1;
    frame.mark = mark;
    frame.anchor = anchor;
    stack_.push_back(std::move(frame));
  }
  void close() {
    Frame frame = std::move(stack_.back());
    stack_.pop_back();
    // Explicit keys override merged ones, and earlier merges override later ones.
    for (const Yaml& merged : frame.merged)
      for (const auto& [key, member] : merged.members)
        if (frame.keys.insert(key).second) frame.value.members.emplace_back(key, member);
    keep(frame.mark, frame.anchor, frame.value);
    place(frame.mark, std::move(frame.value));
  }
  void place(const YAML::Mark& mark, Yaml value) {
    if (stack_.empty()) {
      root_ = std::move(value);
      return;
    }
    Frame& frame = stack_.back();
    if (frame.value.kind == Yaml::Kind::list) {
      frame.value.items.push_back(std::move(value));
      return;
    }
    if (!frame.has_key) {
      if (value.kind == Yaml::Kind::list || value.kind == Yaml::Kind::map)
        refuse(mark, "a key that is a list or a map");
      frame.key = std::move(value.text);
      frame.key_mark = mark;
      frame.has_key = true;
      return;
    }
    frame.has_key = false;
    if (frame.key == "<<") {
      if (value.kind == Yaml::Kind::map) frame.merged.push_back(std::move(value));
      else if (value.kind == Yaml::Kind::list)
        for (Yaml& item : value.items) frame.merged.push_back(std::move(item));
      return;
    }
    if (!frame.keys.insert(frame.key).second)
      refuse(frame.key_mark, fmt::format("the key '{}' occurs twice", frame.key.substr(0, 60)));
    frame.value.members.emplace_back(std::move(frame.key), std::move(value));
  }

  std::vector<Frame> stack_;
  std::map<YAML::anchor_t, Anchor> anchors_;
  std::size_t values_ = 0;
  std::size_t anchored_ = 0;
  Yaml root_;
};

}  // namespace

const Yaml* Yaml::find(std::string_view key) const {
  const auto found =
      std::find_if(members.begin(), members.end(), [&](const auto& member) { return member.key == key; });
  return found == members.end() ? nullptr : &found->value;
}

std::string Yaml::scalar(std::string_view key) const {
  const Yaml* value = find(key);
  return value != nullptr && value->is_scalar() ? value->text : "";
}

Result<std::vector<Yaml>> parse_yaml_documents(std::string_view text, std::string_view file) {
  const auto wrong = [&](int line, int column, std::string_view why) {
    return fail(ErrorKind::input, fmt::format("{}:{}:{}: {}", file, line, column, why));
  };
  if (text.size() > kMostYamlBytes)
    return fail(ErrorKind::input,
                fmt::format("{}: it has {} bytes, at most {} are read", file, text.size(), kMostYamlBytes));
  std::istringstream in{std::string(text)};
  Builder builder;
  std::vector<Yaml> documents;
  try {
    YAML::Parser parser(in);
    while (parser.HandleNextDocument(builder))
      if (Yaml document = builder.take(); document.kind != Yaml::Kind::null) documents.push_back(std::move(document));
  } catch (const Refused& refused) {
    return wrong(refused.line, refused.column, refused.why);
  } catch (const YAML::Exception& error) {
    return wrong(error.mark.line + 1, error.mark.column + 1, "not valid YAML: " + error.msg);
  }
  return documents;
}

Result<Yaml> parse_yaml(std::string_view text, std::string_view file) {
  ROSE_TRY(std::vector<Yaml> documents, parse_yaml_documents(text, file));
  if (documents.size() > 1)
    return fail(ErrorKind::input, fmt::format("{}:{}:1: a second document, one is read", file, documents[1].line));
  return documents.empty() ? Yaml() : std::move(documents.front());
}

}  // namespace rose
