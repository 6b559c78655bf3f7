#include "explain/values.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "explain/explain.h"
#include "symbols/values.h"

namespace rose::explain {
namespace {

// Further distinct values are not counted, because it is certain by then that they are reported in classes.
constexpr std::size_t kMostDistinct = 4 * kFewValues;
constexpr double kAddress = 1ULL << 40;  // a number from here on is probably an address

struct Counting {
  std::map<std::string, ValueCount> counts;
  std::set<std::pair<std::string, int>> seen;  // value and run
};

std::vector<ValueCount> sorted(const Counting& counting, std::size_t& unlisted) {
  std::vector<ValueCount> out;
  for (const auto& [value, count] : counting.counts) out.push_back(count);
  std::stable_sort(out.begin(), out.end(), [](const ValueCount& a, const ValueCount& b) {
    return std::tuple(b.runs, b.times, b.before) < std::tuple(a.runs, a.times, a.before);
  });
  if (out.size() > kMostCounts) {
    unlisted += out.size() - kMostCounts;
    out.resize(kMostCounts);
  }
  return out;
}

// The first step of that kind after the fault of the run.
std::optional<ValueTable::First> first_of(const Run& run, std::uint32_t kind) {
  for (const Step& step : run.steps) {
    if (step.kind != kind || step.ts_ns <= run.cut_ns || step.ts_ns > run.end_ns) continue;
    const schedule::Value& value = run.values[step.source];
    return ValueTable::First{value.node, value.text, value.tid, value.ts_ns - run.zero_ns};
  }
  return std::nullopt;
}

}  // namespace

ValueSorts::ValueSorts(const std::vector<Run>& runs, std::size_t questions) : few_(questions, true) {
  std::vector<std::set<std::string>> distinct(questions);
  for (const Run& run : runs)
    for (const schedule::Value& value : run.values)
      if (value.question < questions && distinct[value.question].size() < kMostDistinct)
        distinct[value.question].insert(value.text);
  for (std::size_t i = 0; i < questions; ++i) few_[i] = distinct[i].size() <= kFewValues;
}

std::string ValueSorts::of(const schedule::Value& value) const {
  if (value.is_pointer) return value.number == 0 ? value.text : "an address";
  if (value.is_number && value.number >= kAddress) return "an address or a large number";
  if (value.question >= few_.size() || few_[value.question] || value.is_named) return value.text;
  if (value.is_number) return value.number == 0 ? value.text : value.number < 0 ? "less than 0" : "more than 0";
  if (value.text.starts_with('(') || value.text == "\"\"") return value.text;
  return "a text";
}

bool is_error(const Question& question, const schedule::Value& value) {
  if (!question.about_result() || value.is_pointer) return false;
  if (question.text.ends_with(".error")) return value.text != symbols::kNoError;
  return value.is_named ? value.text == "Err" : value.is_number && value.number < 0;
}

void add_values(std::vector<Run>& runs, const std::vector<Question>& questions, const ValueSorts& sorts, Kinds& kinds) {
  for (Run& run : runs) {
    if (run.values.empty()) continue;
    for (std::size_t i = 0; i < run.values.size(); ++i) {
      const schedule::Value& value = run.values[i];
      if (value.question >= questions.size()) continue;
      const Question& question = questions[value.question];
      Kind kind{.what = StepKind::value,
                .node = value.node,
                // Of "store (inlined into main)", use "store", because an inlined copy is no separate function.
                .function = question.function.substr(0, question.function.find(" (inlined into ")),
                .words = fmt::format("{} is {}", question.text, sorts.of(value))};
      kind.question = value.question;
      if (question.about_calls()) {
        // The C library's function that returns the address of errno. Reading errno decides nothing.
        if (value.text.starts_with("__errno_location")) continue;
        // A call in an inlined function is one of that function, and not of the function that contains it.
        const std::size_t end = std::min(value.text.find(symbols::kInInlined), value.text.size());
        const std::string call = value.text.substr(0, end);
        if (end < value.text.size()) kind.function = value.text.substr(end + symbols::kInInlined.size());
        kind.words = fmt::format(
            "{} calls {}", end < value.text.size() ? kind.function : question.text.substr(0, question.text.size() - 6),
            call);
        kind.callee = call.substr(0, call.rfind(" ("));
      }
      if (question.about_callers()) {
        kind.words =
            question.about_receivers()
                ? fmt::format("{} returns to {}", question.text.substr(0, question.text.size() - 15), value.text)
                : fmt::format("{} is called by {}", question.text.substr(0, question.text.size() - 8), value.text);
        kind.function = caller_in(value.text);  // the caller made the decision
      }
      run.steps.push_back({.ts_ns = value.ts_ns,
                           .kind = kinds.of(std::move(kind)),
                           .pid = value.pid,
                           .tid = value.tid,
                           .source = static_cast<std::uint32_t>(i)});
    }
    std::stable_sort(run.steps.begin(), run.steps.end(),
                     [](const Step& a, const Step& b) { return a.ts_ns < b.ts_ns; });
  }
}

std::vector<ValueTable> value_tables(const std::vector<Run>& runs, const std::vector<Question>& questions,
                                     const ValueSorts& sorts, const Kinds& kinds, const Comparison& comparison,
                                     const Run& story, bool merged) {
  // by query and node; the arrays are indexed by group of runs
  std::map<std::pair<std::uint32_t, std::string>, std::array<Counting, 3>> all;
  for (const Run& run : runs) {
    if (run.group == Group::shorter) continue;
    const auto group = static_cast<std::size_t>(run.group);
    for (const schedule::Value& value : run.values) {
      if (value.question >= questions.size()) continue;
      Counting& counting = all[{value.question, merged ? std::string() : value.node}][group];
      const std::string words = sorts.of(value);
      ValueCount& count = counting.counts[words];
      count.value = words;
      if (value.ts_ns > run.end_ns) continue;
      if (value.ts_ns <= run.cut_ns) {
        ++count.before;
        continue;
      }
      ++count.times;
      if (counting.seen.emplace(words, run.number).second) ++count.runs;
    }
  }
  std::vector<ValueTable> tables;
  for (std::uint32_t i = 0; i < questions.size(); ++i) {
    const Question& question = questions[i];
    const std::size_t before = tables.size();
    const ValueTable empty{.question = i,
                           .query = question.text,
                           .function = question.function,
                           .type = question.type,
                           .node = {},
                           .failing = {},
                           .sound = {},
                           .near = {},
                           .differs = {},
                           .undecided = comparison.undecided.contains(i),
                           .first = {},
                           .refused = question.refused,
                           .remarks = question.remarks};
    for (const auto& [key, counting] : all) {
      if (key.first != i) continue;
      ValueTable table = empty;
      table.node = key.second;
      table.failing = sorted(counting[static_cast<std::size_t>(Group::failing)], table.unlisted);
      table.sound = sorted(counting[static_cast<std::size_t>(Group::sound)], table.unlisted);
      table.near = sorted(counting[static_cast<std::size_t>(Group::near)], table.unlisted);
      for (const Difference& d : comparison.differences) {  // heaviest first
        const Kind& kind = kinds[d.kind];
        if (kind.what != StepKind::value || kind.question != i || kind.node != table.node || d.next != kNoKind)
          continue;
        table.score = d.weight;
        table.clean = d.clean;
        table.only_bug = d.only_bug;
        table.differs = fmt::format("{} in {} failing and {} correct runs", kind.words,
                                    of_runs(d.failing, d.failing_runs), of_runs(d.sound, d.sound_runs));
        if (!d.missing) table.first = first_of(story, d.kind);
        break;
      }
      tables.push_back(std::move(table));
    }
    if (tables.size() == before) tables.push_back(empty);
  }
  return tables;
}

}  // namespace rose::explain
