#include "explain/kept.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <concepts>
#include <limits>
#include <optional>
#include <type_traits>

#include "base/text.h"
#include "base/zstd.h"
#include "trace/dump.h"
#include "trace/redact.h"

namespace rose::explain {
namespace {

constexpr std::string_view kMagic = "rose explained runs ";
constexpr std::size_t kMostUnpacked = std::size_t{1} << 30;

// Writes values. text() scrubs its argument. code() is for names of functions and source files: it replaces only the
// folders in its argument.
class Writer {
 public:
  static constexpr bool kReads = false;
  explicit Writer(const Scrub& scrub) : scrub_(scrub) {}

  void number(std::uint64_t value) {
    for (; value >= 0x80; value >>= 7) out_ += static_cast<char>(value | 0x80);
    out_ += static_cast<char>(value);
  }
  void bytes(std::string_view value) {
    number(value.size());
    out_ += value;
  }
  [[nodiscard]] std::string scrubbed(std::string_view value, bool redact) const {
    std::string text(value);
    for (const auto& [prefix, instead] : scrub_.prefixes)
      if (!prefix.empty() && text.find(prefix) != std::string::npos) text = replaced(std::move(text), prefix, instead);
    return redact && scrub_.redact != nullptr ? (*scrub_.redact)(text) : text;
  }
  void text(const std::string& value) { bytes(scrubbed(value, true)); }
  void code(const std::string& value) { bytes(scrubbed(value, false)); }
  [[nodiscard]] std::string take() { return std::move(out_); }
  [[nodiscard]] static constexpr std::uint32_t version() { return kKeptVersion; }

 private:
  const Scrub& scrub_;
  std::string out_;
};

struct Damaged {
  std::string what;
};

class Reader {
 public:
  static constexpr bool kReads = true;
  Reader(std::string_view bytes, std::uint32_t version) : left_(bytes), version_(version) {}
  [[nodiscard]] std::uint32_t version() const { return version_; }

  std::uint64_t number() {
    std::uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      if (left_.empty()) throw Damaged{"it ends too early"};
      const auto byte = static_cast<unsigned char>(left_.front());
      left_.remove_prefix(1);
      value |= std::uint64_t{byte & 0x7fU} << shift;
      if ((byte & 0x80U) == 0) return value;
    }
    throw Damaged{"a number is too long"};
  }
  // Reads the number of elements that follow. Each element takes at least one byte, which limits the number.
  std::size_t count() {
    const std::uint64_t value = number();
    if (value > left_.size()) throw Damaged{"it ends too early"};
    return value;
  }
  std::string_view bytes() {
    const std::size_t size = count();
    const std::string_view value = left_.substr(0, size);
    left_.remove_prefix(size);
    return value;
  }
  void text(std::string& value) { value = bytes(); }
  void code(std::string& value) { value = bytes(); }
  [[nodiscard]] bool all() const { return left_.empty(); }

 private:
  std::string_view left_;
  std::uint32_t version_;
};

std::uint64_t zigzag(std::int64_t value) {
  return (static_cast<std::uint64_t>(value) << 1) ^ static_cast<std::uint64_t>(value >> 63);
}
std::int64_t unzigzag(std::uint64_t value) {
  return static_cast<std::int64_t>(value >> 1) ^ -static_cast<std::int64_t>(value & 1);
}

// One list of fields serves both reading and writing: A is Reader or Writer.
template <class A, std::integral T>
void value(A& a, T& v) {
  if constexpr (!A::kReads) {
    if constexpr (std::is_signed_v<T>) a.number(zigzag(v));
    else a.number(v);
  } else if constexpr (std::is_same_v<T, bool>) {
    const std::uint64_t read = a.number();
    if (read > 1) throw Damaged{"a flag is neither 0 nor 1"};
    v = read == 1;
  } else if constexpr (std::is_signed_v<T>) {
    const std::int64_t read = unzigzag(a.number());
    if (read < std::numeric_limits<T>::min() || read > std::numeric_limits<T>::max())
      throw Damaged{"a number is too large"};
    v = static_cast<T>(read);
  } else {
    const std::uint64_t read = a.number();
    if (read > std::numeric_limits<T>::max()) throw Damaged{"a number is too large"};
    v = static_cast<T>(read);
  }
}

template <class A>
void value(A& a, double& v) {
  std::uint64_t bits = std::bit_cast<std::uint64_t>(v);
  value(a, bits);
  v = std::bit_cast<double>(bits);
}

template <class A>
void value(A& a, std::string& v) {
  a.text(v);
}

template <class A, class E>
void choice(A& a, E& v, E last) {
  auto number = static_cast<std::uint32_t>(v);
  value(a, number);
  if (number > static_cast<std::uint32_t>(last)) throw Damaged{"an unknown kind"};
  v = static_cast<E>(number);
}

template <class A, class T, class Each>
void list(A& a, std::vector<T>& all, Each each) {
  if constexpr (A::kReads) {
    const std::size_t size = a.count();
    all.clear();
    all.reserve(std::min<std::size_t>(size, 4096));
    for (std::size_t i = 0; i < size; ++i) each(all.emplace_back());
  } else {
    a.number(all.size());
    for (T& one : all) each(one);
  }
}

template <class A>
void texts(A& a, std::vector<std::string>& all) {
  list(a, all, [&](std::string& one) { a.text(one); });
}

template <class A>
void codes(A& a, std::vector<std::string>& all) {
  list(a, all, [&](std::string& one) { a.code(one); });
}

template <class A, class T, class Each>
void each_of(A& a, std::set<T>& all, Each each) {
  std::vector<T> sorted(all.begin(), all.end());
  list(a, sorted, each);
  if constexpr (A::kReads) all = {sorted.begin(), sorted.end()};
}

template <class A, class T, class Each>
void perhaps(A& a, std::optional<T>& v, Each each) {
  bool there = v.has_value();
  value(a, there);
  if constexpr (A::kReads) v = there ? std::optional<T>(T{}) : std::nullopt;
  if (v) each(*v);
}

template <class A>
void fields(A& a, schedule::Frame& v) {
  a.code(v.function);
  a.code(v.file);
  value(a, v.line);
  a.code(v.module);
  value(a, v.offset);
}

template <class A>
void fields(A& a, schedule::Stack& v) {
  value(a, v.node);
  value(a, v.thread);
  value(a, v.pid);
  value(a, v.tid);
  value(a, v.ns);
  value(a, v.why);
  list(a, v.frames, [&](schedule::Frame& one) { fields(a, one); });
  value(a, v.incomplete);
}

template <class A>
void fields(A& a, schedule::ConditionOutcome& v) {
  value(a, v.met);
  value(a, v.met_ns);
  value(a, v.seen);
  value(a, v.wanted);
  value(a, v.node);
  value(a, v.pid);
  value(a, v.tid);
  value(a, v.words);
}

template <class A>
void fields(A& a, schedule::FaultOutcome& v) {
  value(a, v.id);
  value(a, v.armed);
  value(a, v.fired);
  value(a, v.withdrawn);
  value(a, v.fired_ns);
  perhaps(a, v.ended_ns, [&](std::int64_t& ns) { value(a, ns); });
  value(a, v.seen);
  value(a, v.injected);
  value(a, v.pid);
  value(a, v.tid);
  value(a, v.node);
  value(a, v.detail);
  value(a, v.why_not);
  value(a, v.no_effect);
  list(a, v.conditions, [&](schedule::ConditionOutcome& one) { fields(a, one); });
  list(a, v.stacks, [&](schedule::Stack& one) { fields(a, one); });
}

template <class A>
void fields(A& a, schedule::Value& v) {
  value(a, v.ts_ns);
  value(a, v.node);
  value(a, v.question);
  value(a, v.pid);
  value(a, v.tid);
  value(a, v.text);
  value(a, v.is_number);
  value(a, v.is_pointer);
  value(a, v.is_named);
  value(a, v.number);
}

template <class A>
void fields(A& a, Exchanged& v) {
  value(a, v.ts_ns);
  value(a, v.taken_ns);
  value(a, v.from);
  value(a, v.to);
  value(a, v.port);
  value(a, v.answer);
  value(a, v.bytes);
  value(a, v.pid);
  value(a, v.tid);
  value(a, v.taken_pid);
  value(a, v.taken_tid);
  value(a, v.words);
}

template <class A>
void fields(A& a, LogLine& v) {
  value(a, v.ts_ns);
  value(a, v.node);
  value(a, v.kind);
  choice(a, v.level, logs::Level::fatal);
  value(a, v.text);
  value(a, v.place);
  list(a, v.frames, [&](schedule::Frame& one) { fields(a, one); });
}

template <class A>
void fields(A& a, Kind& v) {
  choice(a, v.what, StepKind::caught);
  value(a, v.node);
  a.code(v.function);
  // The words of these kinds consist of names in the code, which are not redacted.
  if (v.what == StepKind::function || v.what == StepKind::thrown || v.what == StepKind::caught) a.code(v.words);
  else a.text(v.words);
  value(a, v.message);
  value(a, v.question);
  a.code(v.callee);
  value(a, v.lookup);
  value(a, v.out_of_memory);
  value(a, v.unsure);
  value(a, v.sampled);
  value(a, v.peer);
  value(a, v.as_sent);
  if (a.version() >= 6) value(a, v.changes_file);
  else v.changes_file = v.what == StepKind::call && v.words.find("(*/") != std::string::npos;
}

template <class A>
void fields(A& a, Question& v) {
  a.code(v.text);
  a.code(v.function);
  a.code(v.type);
  value(a, v.refused);
  texts(a, v.remarks);
}

template <class A>
void fields(A& a, Call& v) {
  a.code(v.function);
  a.code(v.caller);
  value(a, v.node);
  a.code(v.file);
  value(a, v.line);
  if (a.version() >= 4) value(a, v.starts);
}

template <class A>
void fields(A& a, Round& v) {
  codes(a, v.functions);
  value(a, v.asked);
  value(a, v.differing);
  value(a, v.runs);
  value(a, v.seconds);
  value(a, v.share);
}

template <class A>
void view(A& a, std::string_view& v, Kept::Texts& pool) {
  std::string text(v);
  value(a, text);
  if constexpr (A::kReads) v = *pool.pool.insert(std::move(text)).first;
}

// There are many steps. Similar fields are stored together, which compresses best: all times, as differences in
// microseconds (no comparison needs more precision), then all kinds, and so on.
constexpr std::int64_t kTick = 1000;  // ns

template <class A, class Get>
void column(A& a, std::vector<Step>& steps, Get get) {
  for (Step& one : steps) value(a, get(one));
}

void later(std::int64_t& ts, std::int64_t by) {
  if (__builtin_add_overflow(ts, by, &ts)) throw Damaged{"a time is too large"};
}
void further(std::int64_t& source, std::int64_t by) {
  if (__builtin_add_overflow(source, by, &source) || source < 0 || source > std::numeric_limits<std::uint32_t>::max())
    throw Damaged{"a step stands nowhere"};
}

// Reads version 1: the steps are stored one after the other, with times in nanoseconds.
void steps_of_1(Reader& a, std::vector<Step>& v) {
  std::int64_t ts = 0, source = 0;
  list(a, v, [&](Step& one) {
    std::int64_t by = 0;
    value(a, by);
    later(ts, by);
    one.ts_ns = ts;
    value(a, one.kind);
    value(a, one.in);
    value(a, one.pid);
    value(a, one.tid);
    value(a, by);
    further(source, by);
    one.source = static_cast<std::uint32_t>(source);
  });
}

template <class A>
void steps(A& a, std::vector<Step>& v) {
  if constexpr (A::kReads)
    if (a.version() == 1) return steps_of_1(a, v);
  if constexpr (A::kReads) v.resize(a.count());
  else a.number(v.size());
  std::int64_t ts = 0, source = 0;
  for (Step& one : v) {
    std::int64_t by = one.ts_ns / kTick - ts;
    value(a, by);
    later(ts, by);
    if constexpr (A::kReads)
      if (__builtin_mul_overflow(ts, kTick, &one.ts_ns)) throw Damaged{"a time is too large"};
  }
  column(a, v, [](Step& one) -> auto& { return one.kind; });
  column(a, v, [](Step& one) -> auto& { return one.in; });
  column(a, v, [](Step& one) -> auto& { return one.pid; });
  column(a, v, [](Step& one) -> auto& { return one.tid; });
  for (Step& one : v) {
    std::int64_t by = static_cast<std::int64_t>(one.source) - source;
    value(a, by);
    further(source, by);
    if constexpr (A::kReads) one.source = static_cast<std::uint32_t>(source);
  }
}

template <class A>
void fields(A& a, Run& v, Kept::Texts& pool) {
  choice(a, v.group, Group::shorter);
  value(a, v.number);
  value(a, v.zero_ns);
  value(a, v.end_ns);
  value(a, v.cut_ns);
  value(a, v.known_ns);
  value(a, v.found_cut);
  list(a, v.faults, [&](schedule::FaultOutcome& one) { fields(a, one); });
  steps(a, v.steps);
  each_of(a, v.let_go, [&](std::uint32_t& one) { value(a, one); });
  list(a, v.values, [&](schedule::Value& one) { fields(a, one); });
  if (a.version() >= 5) each_of(a, v.unasked, [&](std::uint32_t& one) { value(a, one); });
  value(a, v.cut_short);
  list(a, v.recorded, [&](RecordedMessage& one) {
    value(a, one.ts_ns);
    view(a, one.node, pool);
    view(a, one.key, pool);
    view(a, one.what, pool);
    value(a, one.record);
    view(a, one.file, pool);
  });
  each_of(a, v.recorded_late, [&](std::string& one) { value(a, one); });
  list(a, v.exchanged, [&](Exchanged& one) { fields(a, one); });
  texts(a, v.talkative);
}

// The trace of the run whose story is reported. Its texts are scrubbed, and its header is reduced to what the story
// needs.
trace::Trace scrubbed(const trace::Trace& trace, const Writer& to) {
  trace::Trace out = trace::rewritten(
      trace, [&](std::string_view one) { return to.scrubbed(one, true); },
      [&](std::string_view one) { return to.scrubbed(one, false); });
  out.meta.node = to.scrubbed(trace.meta.node, true);
  for (const std::string& one : trace.meta.nodes) out.meta.nodes.push_back(to.scrubbed(one, true));
  for (const std::string& one : trace.meta.addresses) out.meta.addresses.push_back(to.scrubbed(one, true));
  out.meta.workload_ts = trace.meta.workload_ts;
  out.meta.begin_ns = trace.meta.begin_ns;
  out.meta.end_ns = trace.meta.end_ns;
  return out;
}

template <class A>
void fields(A& a, schedule::RunResult& v) {
  choice(a, v.verdict, schedule::Verdict::inconclusive);
  value(a, v.reason);
  choice(a, v.oracle, schedule::OracleAnswer::unknown);
  list(a, v.faults, [&](schedule::FaultOutcome& one) { fields(a, one); });
  list(a, v.order, [&](schedule::OrderOutcome& one) {
    value(a, one.name);
    value(a, one.kind);
    value(a, one.came);
    value(a, one.ns);
    value(a, one.why_not);
    value(a, one.held_ns);
  });
  value(a, v.order_broken);
  perhaps(a, v.workload_end_ns, [&](std::int64_t& ns) { value(a, ns); });
  perhaps(a, v.oracle_ns, [&](std::int64_t& ns) { value(a, ns); });
  value(a, v.seconds);
  value(a, v.number);
  list(a, v.values, [&](schedule::Value& one) { fields(a, one); });
}

template <class A>
void fields(A& a, Kept& v) {
  value(a, v.name);
  value(a, v.schedule_path);
  value(a, v.config_path);
  value(a, v.runs);
  value(a, v.reproduced);
  value(a, v.missed);
  value(a, v.inconclusive);
  value(a, v.seconds);
  value(a, v.comparable);
  choice(a, v.verdict, Verdict::inconclusive);
  value(a, v.reason);
  texts(a, v.limits);
  if (!v.comparable) return;
  Input& input = v.input;
  list(a, input.runs, [&](Run& one) { fields(a, one, *v.texts); });
  fields(a, input.story);
  list(a, input.lines, [&](LogLine& one) { fields(a, one); });
  value(a, input.story_run);
  value(a, input.run_dir);
  value(a, input.oracle_output);
  value(a, input.workload_ended);
  list(a, input.questions, [&](Question& one) { fields(a, one); });
  texts(a, input.unseen);
  texts(a, input.limits);
  value(a, v.deepened);
  codes(a, v.own_questions);
  list(a, v.rounds, [&](Round& one) { fields(a, one); });
  value(a, v.deepen_ended);
  list(a, v.calls, [&](Call& one) { fields(a, one); });
  list(a, v.outer_calls, [&](Call& one) { fields(a, one); });
  codes(a, v.outer);
  texts(a, v.caller_limits);
  if (a.version() >= 3) list(a, v.lost_calls, [&](Call& one) { fields(a, one); });
}

struct NamedPlace {
  std::string node, function;
  Place place;
};

template <class A>
void fields(A& a, NamedPlace& v) {
  value(a, v.node);
  a.code(v.function);
  a.code(v.place.file);
  value(a, v.place.line);
}

std::vector<NamedPlace> places_of(const Input& input) {
  std::map<std::pair<std::string, std::string>, Place> found;
  if (input.place)
    for (std::uint32_t id = 0; id < input.kinds.size(); ++id) {
      const Kind& kind = input.kinds[id];
      if (kind.function.empty() || kind.node.empty()) continue;
      if (Place place = input.place(kind.node, kind.function); !place.file.empty())
        found[{kind.node, kind.function}] = std::move(place);
    }
  std::vector<NamedPlace> out;
  for (auto& [key, place] : found) out.push_back({key.first, key.second, std::move(place)});
  return out;
}

std::map<std::uint32_t, std::string> messages_of(const Input& input) {
  std::map<std::uint32_t, std::string> out;
  if (!input.message) return out;
  for (std::uint32_t id = 0; id < input.kinds.size(); ++id)
    if (const Kind& kind = input.kinds[id]; kind.what == StepKind::message)
      out.try_emplace(kind.message, input.message(kind.message));
  for (const LogLine& line : input.lines) out.try_emplace(line.kind, input.message(line.kind));
  return out;
}

// Checks the indices by which steps refer to events, lines, values and messages.
void check(const Input& input) {
  if (input.story_run >= input.runs.size()) throw Damaged{"the run of the story is not among the runs"};
  if (std::none_of(input.runs.begin(), input.runs.end(), [](const Run& run) { return run.group == Group::failing; }))
    throw Damaged{"there is no failing run"};
  for (std::size_t i = 0; i < input.runs.size(); ++i) {
    const Run& run = input.runs[i];
    for (const schedule::Value& value : run.values)
      if (value.question >= input.questions.size()) throw Damaged{"a value belongs to no query"};
    if (!run.unasked.empty() && *run.unasked.rbegin() >= input.questions.size())
      throw Damaged{"a run was not asked an unknown query"};
    for (const Step& step : run.steps) {
      if (step.kind >= input.kinds.size() || (step.in != kNoKind && step.in >= input.kinds.size()))
        throw Damaged{"a step has an unknown kind"};
      const StepKind what = input.kinds[step.kind].what;
      if (what == StepKind::value) {
        if (step.source >= run.values.size()) throw Damaged{"a step stands nowhere"};
      } else if (is_exchange(what)) {
        if (step.source >= run.exchanged.size()) throw Damaged{"a step stands nowhere"};
      } else if (i == input.story_run &&
                 step.source >= (what == StepKind::message ? input.lines.size() : input.story.trace.events.size())) {
        throw Damaged{"a step stands nowhere"};
      }
    }
  }
  for (std::uint32_t id = 0; id < input.kinds.size(); ++id) {
    const Kind& kind = input.kinds[id];
    if (kind.as_sent != kNoKind && kind.as_sent >= id) throw Damaged{"a kind has an unknown origin"};
    if (kind.what == StepKind::value && kind.question >= input.questions.size())
      throw Damaged{"a value belongs to no query"};
  }
}

// Names of functions are not redacted. A name of Go begins with the host of its module ("github.com/x/y.run"), and
// values and messages contain the name, too. If the host were redacted there, one function would have two names.
void keep_hosts_of_code(const Kept& kept, Redactor& redact) {
  const auto keep = [&](std::string_view function) {
    const std::size_t slash = function.find('/');
    if (slash != std::string_view::npos && function.substr(0, slash).find('.') != std::string_view::npos)
      redact.keep(function.substr(0, slash));
  };
  for (std::uint32_t id = 0; id < kept.input.kinds.size(); ++id) keep(kept.input.kinds[id].function);
  for (const std::vector<Call>* calls : {&kept.calls, &kept.outer_calls, &kept.lost_calls})
    for (const Call& call : *calls) keep(call.function), keep(call.caller);
}

}  // namespace

Result<std::string> pack(const Kept& kept, const Scrub& scrub) {
  if (scrub.redact != nullptr && kept.comparable) keep_hosts_of_code(kept, *scrub.redact);
  Writer to(scrub);
  // Nothing is changed here. The cast is needed because reading and writing share the lists of fields.
  auto& all = const_cast<Kept&>(kept);
  fields(to, all);
  to.text(schedule::to_toml(kept.input.schedule));
  if (kept.comparable) {
    to.number(kept.input.kinds.size());
    for (std::uint32_t id = 0; id < kept.input.kinds.size(); ++id) fields(to, all.input.kinds.at(id));
    const auto messages = messages_of(kept.input);
    to.number(messages.size());
    for (const auto& [kind, words] : messages) {
      to.number(kind);
      to.text(words);
    }
    std::vector<NamedPlace> places = places_of(kept.input);
    list(to, places, [&](NamedPlace& one) { fields(to, one); });
    ROSE_TRY(const std::string trace, trace::dump_to_bytes(scrubbed(kept.input.story.trace, to)));
    to.bytes(trace);
  }
  ROSE_TRY(const std::string packed, zstd_pack(to.take()));
  return fmt::format("{}{}\n{}", kMagic, kKeptVersion, packed);
}

Result<Plain> plain_of(std::string_view bytes, std::string_view name) {
  const std::size_t line = bytes.substr(0, 64).find('\n');
  if (!bytes.starts_with(kMagic) || line == std::string_view::npos)
    return fail(ErrorKind::input, fmt::format("{}: it does not hold the runs of an explanation", name),
                "'rose explain --report DIR' writes them");
  const std::string_view version = bytes.substr(kMagic.size(), line - kMagic.size());
  const auto number = static_cast<std::uint32_t>(version.size() == 1 ? version[0] - '0' : 0);
  if (number < 1 || number > kKeptVersion)
    return fail(ErrorKind::input, fmt::format("{}: it has version {}, versions 1 to {} can be read", name,
                                              printable(version), kKeptVersion));
  ROSE_TRY(std::string plain, zstd_unpack(bytes.substr(line + 1), kMostUnpacked, name));
  return Plain{number, std::move(plain)};
}

Result<Kept> unpack(std::string_view bytes, std::string_view name) {
  ROSE_TRY(const Plain plain, plain_of(bytes, name));
  return unpack_plain(plain.bytes, name, plain.version);
}

Result<Kept> unpack_plain(std::string_view plain, std::string_view name, std::uint32_t version) {
  Reader from(plain, version);
  Kept kept;
  Input& input = kept.input;
  try {
    fields(from, kept);
    std::string schedule;
    from.text(schedule);
    ROSE_TRY(input.schedule, schedule::parse_schedule(schedule, name));
    if (kept.comparable) {
      const std::size_t kinds = from.count();
      for (std::uint32_t id = 0; id < kinds; ++id) {
        Kind kind;
        fields(from, kind);
        if (input.kinds.of(std::move(kind)) != id) throw Damaged{"two kinds are the same"};
      }
      for (std::size_t left = from.count(); left > 0; --left) {
        std::uint32_t kind = 0;
        value(from, kind);
        from.text(kept.texts->messages[kind]);
      }
      std::vector<NamedPlace> places;
      list(from, places, [&](NamedPlace& one) { fields(from, one); });
      for (NamedPlace& one : places)
        kept.texts->places[{std::move(one.node), std::move(one.function)}] = std::move(one.place);
      const std::string_view dump = from.bytes();
      ROSE_TRY(trace::ReadDump read, trace::parse_dump(std::as_bytes(std::span(dump.data(), dump.size())), name));
      if (read.damage) return Unexpected(*std::move(read.damage));
      input.story.trace = std::move(read.trace);
      check(input);
    }
    if (!from.all()) throw Damaged{"something follows its end"};
  } catch (const Damaged& damage) {
    return fail(ErrorKind::input, fmt::format("{}: damaged: {}", name, damage.what));
  }
  input.message = [texts = kept.texts](std::uint32_t kind) {
    const auto known = texts->messages.find(kind);
    return known == texts->messages.end() ? std::string() : known->second;
  };
  input.place = [texts = kept.texts](const std::string& node, const std::string& function) {
    const auto known = texts->places.find({node, function});
    return known == texts->places.end() ? Place{} : known->second;
  };
  return kept;
}

Explanation explain_kept(Kept& kept) {
  Explanation out;
  if (!kept.comparable) {
    out.verdict = kept.verdict;
    out.reason = kept.reason;
    out.limits = kept.limits;
    return out;
  }
  out = explain(kept.input);
  if (kept.deepened) {
    drop_silent_values(out, kept.own_questions);
    if (!kept.deepen_ended.empty()) out.limits.push_back(kept.deepen_ended);
    out.rounds = kept.rounds;
  }
  add_all_callers(kept, out);
  return out;
}

void add_all_callers(const Kept& kept, Explanation& out) {
  out.limits.insert(out.limits.end(), kept.caller_limits.begin(), kept.caller_limits.end());
  if (out.verdict != Verdict::explained) return;
  add_handlers(out, kept.calls);
  (void)add_callers(out, kept.calls);
  if (!kept.outer.empty()) add_outer_callers(out, kept.outer, kept.outer_calls);
  if (!kept.lost_calls.empty()) add_lost_callers(out, kept.lost_calls);
}

}  // namespace rose::explain
