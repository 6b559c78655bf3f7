#include "replay/ask.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "base/text.h"
#include "bpf/tracer.h"

namespace rose::replay {
namespace {

// The programs of the deployment, each once, with the first node that runs it.
std::map<std::string, std::string> programs_of(const config::Config& config) {
  std::map<std::string, std::string> programs;
  for (const config::Node& node : config.nodes)
    for (const std::string& binary : node.binaries) programs.emplace(binary, node.name);
  return programs;
}

// Of one query: what all files that know it answer.
class Asking {
 public:
  Asking(Asked& asked, std::uint32_t question) : asked_(asked), question_(question) {}

  void take(const std::string& binary, const symbols::Answer& answer) {
    Asked::Question& question = asked_.questions[question_];
    for (const std::string& remark : answer.remarks)
      if (std::find(question.remarks.begin(), question.remarks.end(), remark) == question.remarks.end()) question.remarks.push_back(remark);
    if (!answer.refused.empty() && question.refused.empty()) question.refused = answer.refused;
    for (const symbols::Site& site : answer.sites) {
      if (question.function.empty()) question.function = site.function;
      if (question.type.empty()) question.type = site.form.type;
      place(binary, site);
    }
    any_ = any_ || !answer.sites.empty();
  }
  void done() {
    if (any_) asked_.questions[question_].refused.clear();
  }

 private:
  void place(const std::string& binary, const symbols::Site& site) {
    std::size_t at = 0;
    while (at < asked_.places.size() && (asked_.places[at].binary != binary || asked_.places[at].offset != site.offset ||
                                         asked_.places[at].fetches.size() == ROSE_FETCHES_AT_ONCE))
      ++at;
    if (at == asked_.places.size()) {
      asked_.places.push_back({binary, site.offset, {}});
      asked_.meanings.emplace_back();
    }
    asked_.places[at].fetches.push_back(site.fetch);
    asked_.meanings[at].push_back({question_, site.form});
  }

  Asked& asked_;
  std::uint32_t question_;
  bool any_ = false;
};

}  // namespace

Result<Asked> ask(const config::Config& config, const std::vector<std::string>& queries) {
  Asked asked;
  if (queries.empty()) return asked;
  if (queries.size() > kMostQueries) return fail(ErrorKind::usage, fmt::format("{} queries are more than the {} that are asked at once", queries.size(), kMostQueries));
  const std::map<std::string, std::string> programs = programs_of(config);
  std::map<std::string, symbols::ValueFile> files;
  std::optional<Error> unread;
  for (const auto& [binary, node] : programs) {
    Result<symbols::ValueFile> file = symbols::ValueFile::open(binary);
    if (file) files.emplace(binary, *std::move(file));
    else if (!unread) unread = file.error();
  }
  std::set<std::string> known;
  for (const std::string& text : queries) {
    ROSE_TRY(const symbols::Query query, symbols::parse_query(text));
    if (!known.insert(query.text).second) continue;
    if (files.empty()) {
      Error error = unread ? *unread : Error{ErrorKind::input, "no node has a native program that can be read", {}};
      error.kind = ErrorKind::input;
      error.message = fmt::format("'{}' cannot be asked for: {}", text, error.message);
      error.hint = "values are read in native programs (C, C++, Rust, Go), which `binary` of a node names; not in Java, Python or scripts";
      return Unexpected(std::move(error));
    }
    asked.questions.push_back({.text = query.text, .function = {}, .type = {}, .refused = {}, .remarks = {}});
    Asking asking(asked, static_cast<std::uint32_t>(asked.questions.size() - 1));
    std::optional<Error> missing;
    bool found = false;
    for (auto& [binary, file] : files) {
      Result<symbols::Answer> answer = file.answer(query);
      if (answer) found = true, asking.take(binary, *answer);
      // What only lacks a member knows more of it than what lacks the function.
      else if (!missing || missing->message.size() < answer.error().message.size()) missing = answer.error();
    }
    if (!found) {
      missing->message = fmt::format("'{}' cannot be asked for: {}", text, missing->message);
      return Unexpected(*std::move(missing));
    }
    asking.done();
  }
  return asked;
}

Askable::Askable(const config::Config& config) {
  for (const auto& [binary, node] : programs_of(config))
    if (Result<symbols::ValueFile> file = symbols::ValueFile::open(binary); file) files_.push_back(*std::move(file));
}
Askable::Askable(Askable&&) noexcept = default;
Askable::~Askable() = default;

std::vector<std::string> Askable::about(const std::string& function) {
  for (symbols::ValueFile& file : files_)
    if (std::vector<std::string> questions = file.questions(function); !questions.empty()) return questions;
  return {};
}

std::vector<schedule::Value> told(const Asked& asked, const observe::SeenValues& seen, const std::vector<std::string>& nodes, std::int64_t wall_offset_ns) {
  std::vector<schedule::Value> out;
  out.reserve(seen.values.size());
  for (const observe::SeenValue& value : seen.values) {
    if (value.place >= asked.meanings.size() || value.fetch >= asked.meanings[value.place].size() || value.node >= nodes.size()) continue;
    const Asked::Meaning& meaning = asked.meanings[value.place][value.fetch];
    schedule::Value one;
    one.ts_ns = value.ts_ns + wall_offset_ns;
    one.node = nodes[value.node];
    one.question = meaning.question;
    one.pid = value.pid;
    one.tid = value.tid;
    if (value.unreadable) {
      one.text = "(not readable)";
    } else if (value.null) {
      one.text = "null";
    } else {
      symbols::ToldValue words = symbols::tell_value(meaning.form, value.bits, value.text);
      one.text = std::move(words.text);
      one.is_number = words.is_number;
      one.number = words.number;
      one.is_pointer = meaning.form.kind == symbols::Form::Kind::pointer;
      one.is_named = meaning.form.kind == symbols::Form::Kind::enumeration || meaning.form.kind == symbols::Form::Kind::boolean;
    }
    out.push_back(std::move(one));
  }
  return out;
}

}  // namespace rose::replay
