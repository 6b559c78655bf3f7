#include "replay/ask.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <tuple>

#include "base/text.h"
#include "bpf/tracer.h"
#include "jvm/names.h"
#include "jvm/node.h"
#include "jvm/state.h"

namespace rose::replay {
namespace {

// Number of arguments of a Java method that rose queries on its own. Those that a method lacks are not reported.
constexpr int kJavaArguments = 3;

// The programs of the deployment, and for each program the first node that runs it.
std::map<std::string, std::string> programs_of(const config::Config& config) {
  std::map<std::string, std::string> programs;
  for (const config::Node& node : config.nodes)
    for (const std::string& binary : node.binaries) programs.emplace(binary, node.name);
  return programs;
}

// Collects the answers that the files of all programs give to one query.
class QueryPlaces {
 public:
  QueryPlaces(ValueQueries& asked, std::uint32_t question) : asked_(asked), question_(question) {}

  void take(const std::string& binary, const symbols::Answer& answer) {
    ValueQueries::Question& question = asked_.questions[question_];
    for (const std::string& remark : answer.remarks)
      if (std::find(question.remarks.begin(), question.remarks.end(), remark) == question.remarks.end())
        question.remarks.push_back(remark);
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
    while (at < asked_.places.size() &&
           (asked_.places[at].binary != binary || asked_.places[at].offset != site.offset ||
            asked_.places[at].fetches.size() == ROSE_FETCHES_AT_ONCE))
      ++at;
    if (at == asked_.places.size()) {
      asked_.places.push_back({binary, site.offset, {}});
      asked_.meanings.emplace_back();
    }
    asked_.places[at].fetches.push_back(site.fetch);
    asked_.meanings[at].push_back({question_, site.form});
  }

  ValueQueries& asked_;
  std::uint32_t question_;
  bool any_ = false;
};

// The nodes whose JVMs are queried.
std::vector<std::string> java_nodes(const config::Config& config, const symbols::Query& query) {
  std::vector<std::string> nodes;
  for (const config::Node& node : config.nodes) {
    const bool variable = query.kind == symbols::Query::Kind::variable;
    if (variable ? jvm::is_jvm_source(query.file) && jvm::may_run_java(node) : jvm::is_method(node, query.function))
      nodes.push_back(node.name);
  }
  return nodes;
}

void ask_java(ValueQueries& asked, const symbols::Query& query, std::vector<std::string> nodes) {
  using Kind = symbols::Query::Kind;
  const auto question = static_cast<std::uint32_t>(asked.questions.size());
  asked.questions.push_back({.text = query.text, .function = query.function, .type = {}, .refused = {}, .remarks = {}});
  std::string& refused = asked.questions.back().refused;
  if (query.kind == Kind::calls)
    refused =
        "the calls that a Java method makes are not recorded: ask for its arguments, its return value, or variables at "
        "its lines";
  if (query.contents) refused = "Java has no pointers: ask for a field, as in f(name.field)";
  if (!refused.empty()) return;
  jvm::AskRequest request;
  using Where = jvm::AskRequest::Where;
  request.where = query.kind == Kind::argument  ? Where::argument
                  : query.kind == Kind::result  ? Where::returned
                  : query.kind == Kind::callers ? Where::caller
                                                : Where::line;
  request.number = static_cast<std::uint64_t>(query.kind == Kind::variable ? query.line : query.number);
  request.what = query.kind == Kind::variable ? query.file : query.function;
  request.name = query.name;
  request.members = query.members;
  request.place = static_cast<std::uint32_t>(asked.places.size());
  asked.places.push_back({.binary = {}, .offset = 0, .fetches = {symbols::Fetch{}}, .by_agent = true});
  asked.meanings.push_back({{question, symbols::Form{}}});
  asked.java.push_back({question, std::move(request), std::move(nodes)});
}

// Formats a value according to the type that the JVM's agent reported.
void format_java_value(const observe::SeenValue& value, schedule::Value& one) {
  using Kind = symbols::Form::Kind;
  const auto as = [&](Kind kind, std::uint8_t size) {
    symbols::Form form;
    form.kind = kind;
    form.size = size;
    symbols::FormattedValue words = symbols::format_value(form, value.bits, value.text);
    one.text = std::move(words.text);
    one.is_number = words.is_number;
    one.number = words.number;
  };
  switch (value.form) {
    case ROSE_FORM_BOOLEAN: as(Kind::boolean, 1), one.is_named = true; break;
    case ROSE_FORM_CHARACTER: as(value.bits < 0x80 ? Kind::character : Kind::natural, value.bits < 0x80 ? 1 : 2); break;
    case ROSE_FORM_FLOAT: as(Kind::real, 4); break;
    case ROSE_FORM_DOUBLE: as(Kind::real, 8); break;
    case ROSE_FORM_TEXT: as(Kind::text, 8); break;
    case ROSE_FORM_OBJECT: one.text = "(" + printable(value.text) + ")"; break;
    case ROSE_FORM_CONSTANT: one.text = printable(value.text), one.is_named = true; break;
    case ROSE_FORM_CALLER:
      one.text = printable(value.text) + (value.bits != 0 ? fmt::format(" (line {})", value.bits) : "");
      one.is_named = true;
      break;
    default: as(Kind::integer, 8); break;
  }
}

// If the recorded caller is the runtime, because the function was started as a goroutine, replaces it by the function
// that started the goroutine. `with`: a value of the same time, thread and query.
void take_creator(std::string creator, const schedule::Value& with, std::vector<schedule::Value>& values) {
  for (auto value = values.rbegin(); value != values.rend() && value->ts_ns == with.ts_ns; ++value)
    if (value->tid == with.tid && value->question == with.question &&
        value->text.starts_with(symbols::kGoroutineBegins))
      value->text = std::move(creator);
}

}  // namespace

Result<ValueQueries> ask(const config::Config& config, const std::vector<std::string>& queries, bool proposed,
                         bool outer) {
  ValueQueries asked;
  if (queries.empty()) return asked;
  if (queries.size() > kMostQueries)
    return fail(ErrorKind::usage,
                fmt::format("{} queries are more than the {} that are possible at once", queries.size(), kMostQueries));
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
    ROSE_TRY(symbols::Query query, symbols::parse_query(text));
    query.outer = outer;
    query.of_watched = proposed;
    if (!known.insert(query.text).second) continue;
    if (std::vector<std::string> nodes = java_nodes(config, query); !nodes.empty()) {
      ask_java(asked, query, std::move(nodes));
      continue;
    }
    if (files.empty()) {
      Error error = unread ? *unread : Error{ErrorKind::input, "no node has a native program that can be read", {}};
      error.kind = ErrorKind::input;
      error.message = fmt::format("invalid query '{}': {}", text, error.message);
      error.hint =
          "values are read in native programs (C, C++, Rust, Go), which `binary` of a node names, and in JVMs that "
          "rose starts; not in Python or scripts";
      return Unexpected(std::move(error));
    }
    asked.questions.push_back({.text = query.text, .function = {}, .type = {}, .refused = {}, .remarks = {}});
    QueryPlaces asking(asked, static_cast<std::uint32_t>(asked.questions.size() - 1));
    std::optional<Error> missing;
    bool found = false;
    for (auto& [binary, file] : files) {
      Result<symbols::Answer> answer = file.answer(query);
      if (answer) found = true, asking.take(binary, *answer);
      // Keep the shortest message: if only a member is missing, the message about it is shorter and more helpful than
      // the one about an unknown function.
      else if (!missing || missing->message.size() < answer.error().message.size()) missing = answer.error();
    }
    if (!found && proposed) {
      asked.questions.back().refused = missing->message;
      continue;
    }
    if (!found) {
      missing->message = fmt::format("invalid query '{}': {}", text, missing->message);
      return Unexpected(*std::move(missing));
    }
    asking.done();
  }
  std::vector<std::uint32_t> first;  // by location: index of the location's first fetch
  std::uint32_t fetches = 0;
  for (const observe::ValuePlace& place : asked.places)
    first.push_back(fetches), fetches += static_cast<std::uint32_t>(place.fetches.size());
  for (ValueQueries::OfJava& one : asked.java) one.request.fetch = first[one.request.place];
  return asked;
}

std::vector<JavaAnswer> java_answers(const ValueQueries& asked, const std::filesystem::path& state) {
  std::vector<JavaAnswer> out;
  for (const jvm::JvmState& jvm : jvm::read_states(state)) {
    for (const jvm::AskedNote& note : jvm.asked) {
      const auto one = std::find_if(asked.java.begin(), asked.java.end(),
                                    [&](const auto& java) { return java.request.fetch == note.fetch; });
      if (one == asked.java.end()) continue;
      const std::size_t bar = note.text.rfind('|');
      if (note.placed && bar != std::string::npos)
        out.push_back({one->question, note.text.substr(0, bar), note.text.substr(bar + 1), {}});
      else if (!note.placed) out.push_back({one->question, {}, {}, note.text});
    }
    // A JVM that cannot set breakpoints reports the reason.
    if (jvm.breakpoints) continue;
    for (const jvm::Note& note : jvm.notes)
      for (const ValueQueries::OfJava& one : asked.java)
        if (note.entry == jvm::kNoEntry) out.push_back({one.question, {}, {}, note.text});
  }
  return out;
}

std::string unanswered(const ValueQueries& asked, std::uint32_t question, const std::vector<JavaAnswer>& answers) {
  for (const JavaAnswer& one : answers)
    if (one.question == question && !one.why.empty()) return one.why;
  const auto java =
      std::find_if(asked.java.begin(), asked.java.end(), [&](const auto& one) { return one.question == question; });
  if (java == asked.java.end()) return {};
  const jvm::AskRequest& request = java->request;
  if (request.where == jvm::AskRequest::Where::line)
    return fmt::format("no class that was loaded has code of line {} of {} (JVMs are reached by JAVA_TOOL_OPTIONS)",
                       request.number, request.what);
  return fmt::format("no class that was loaded has a method '{}' (JVMs are reached by JAVA_TOOL_OPTIONS)",
                     request.what);
}

QueryFinder::QueryFinder(const config::Config& config) : config_(&config) {
  for (const auto& [binary, node] : programs_of(config))
    if (Result<symbols::ValueFile> file = symbols::ValueFile::open(binary); file) files_.push_back(*std::move(file));
}
QueryFinder::QueryFinder(QueryFinder&&) noexcept = default;
QueryFinder::~QueryFinder() = default;

std::vector<std::string> QueryFinder::about(const std::string& function) {
  // A query cannot contain the name of every parameter. For example, Go's compiler names unnamed parameters "~p2".
  const auto possible = [](std::vector<std::string> questions) {
    std::erase_if(questions, [](const std::string& text) { return !symbols::parse_query(text); });
    return questions;
  };
  for (symbols::ValueFile& file : files_)
    if (std::vector<std::string> questions = possible(file.questions(function)); !questions.empty()) return questions;
  const bool java = std::any_of(config_->nodes.begin(), config_->nodes.end(),
                                [&](const config::Node& node) { return jvm::is_method(node, function); });
  std::vector<std::string> questions;
  if (!java) return questions;
  questions.push_back(function + ":return");
  questions.push_back(function + ":callers");
  for (int i = 1; i <= kJavaArguments; ++i) questions.push_back(fmt::format("{}(arg{})", function, i));
  return possible(std::move(questions));
}

std::vector<schedule::Value> recorded_values(const ValueQueries& asked, const observe::SeenValues& seen,
                                             const std::vector<std::string>& nodes, std::int64_t wall_offset_ns) {
  std::vector<schedule::Value> out;
  out.reserve(seen.values.size());
  // Naming a piece of code reads debug information, which takes about a millisecond. There are few different callers,
  // so each is named once.
  std::map<std::tuple<std::uint32_t, std::uint32_t, std::uint64_t>, symbols::FormattedValue> named;
  const auto formatted = [&](const symbols::Form& form, const observe::SeenValue& value) -> symbols::FormattedValue {
    if (!form.code) return symbols::format_value(form, value.bits, value.text);
    const auto [known, fresh] = named.try_emplace({value.place, value.fetch, value.bits});
    if (fresh) known->second = symbols::format_value(form, value.bits, value.text);
    return known->second;
  };
  for (const observe::SeenValue& value : seen.values) {
    if (value.place >= asked.meanings.size() || value.fetch >= asked.meanings[value.place].size() ||
        value.node >= nodes.size())
      continue;
    const ValueQueries::Meaning& meaning = asked.meanings[value.place][value.fetch];
    schedule::Value one;
    one.ts_ns = value.ts_ns + wall_offset_ns;
    one.node = nodes[value.node];
    one.question = meaning.question;
    one.pid = value.pid;
    one.tid = value.tid;
    if (meaning.form.kind == symbols::Form::Kind::creator) {
      if (!value.unreadable) take_creator(formatted(meaning.form, value).text, one, out);
      continue;
    }
    if (value.unreadable) {
      one.text = schedule::kNotReadable;
    } else if (value.null) {
      one.text = "null";
    } else if (value.form != 0) {
      format_java_value(value, one);
    } else {
      symbols::FormattedValue words = formatted(meaning.form, value);
      one.text = std::move(words.text);
      one.is_number = words.is_number;
      one.number = words.number;
      one.is_pointer = meaning.form.kind == symbols::Form::Kind::pointer;
      const auto kind = meaning.form.kind;
      one.is_named = kind == symbols::Form::Kind::enumeration || kind == symbols::Form::Kind::boolean ||
                     kind == symbols::Form::Kind::code;
    }
    out.push_back(std::move(one));
  }
  return out;
}

}  // namespace rose::replay
