// The values that queries found in the compared runs. They become steps among the other steps, so that they are scored
// and reported in the same way, and there is a table for each query. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "explain/compare.h"
#include "explain/runs.h"

namespace rose::explain {

// True for the queries about what a function returns, and to whom: "store:return", "main.store:return.error",
// "store:return:callers".
[[nodiscard]] inline bool is_about_result(std::string_view query) { return query.find(":return") != std::string::npos; }

struct Question {
  std::string text;  // "store(len)"
  // A query such as "store:calls" has as its values the functions that `store` calls, with the position: "write@plt
  // (store.c:71)".
  [[nodiscard]] bool about_calls() const { return text.ends_with(":calls"); }
  // A query such as "store:callers" has as its values the callers of `store`, with the position: "request
  // (store.c:71)"; for Java "org.x.C.request (line 71)". Only the last 64 bytes of a long name are recorded.
  [[nodiscard]] bool about_callers() const { return text.ends_with(":callers"); }
  // A query such as "store:return:callers" has as its values the callers to which `store` returns.
  [[nodiscard]] bool about_receivers() const { return text.ends_with(":return:callers"); }
  [[nodiscard]] bool about_argument() const { return text.ends_with(')'); }  // "store(len)"
  [[nodiscard]] bool about_result() const { return is_about_result(text) && !about_callers(); }
  std::string function, type;        // "": not known
  std::string refused;               // why the query could not be answered; "" if it could
  std::vector<std::string> remarks;  // which parts of the answers are missing
};

// A value, or a class of values if there are many, in the runs of one side.
struct ValueCount {
  std::string value;
  std::size_t runs = 0;    // number of runs in which the value occurs after the fault
  std::size_t times = 0;   // number of occurrences after the fault, in all of these runs
  std::size_t before = 0;  // number of occurrences before the fault
};

// The answers to one query on one node.
struct ValueTable {
  std::uint32_t question = 0;
  std::string query, function, type;
  std::string node;                              // "": the node that the fault hit, whichever it was, or no node
  std::vector<ValueCount> failing, sound, near;  // most frequent first; at most kMostCounts
  std::size_t unlisted = 0;                      // number of further values, which are not listed
  double score = 0;                              // score of the value that separates the runs best; 0: none does
  std::string differs;                           // the value that differs, in words; "": none does
  bool clean = false, only_bug = false;          // as in Difference
  bool undecided = false;                        // see Comparison
  struct First {
    std::string node, value;
    std::int32_t tid = 0;
    std::int64_t at_ns = 0;  // since the workload began
  };
  std::optional<First> first;  // the first occurrence of the value that differs, in the run whose story is reported
  std::string refused;
  std::vector<std::string> remarks;
};

inline constexpr std::size_t kMostCounts = 12;
// Up to this many values of one query, in all runs, are reported individually; more are reported in classes.
inline constexpr std::size_t kFewValues = 16;

// How the values of each query are reported: individually, or in classes.
class ValueSorts {
 public:
  ValueSorts(const std::vector<Run>& runs, std::size_t questions);
  [[nodiscard]] std::string of(const schedule::Value& value) const;

 private:
  std::vector<bool> few_;  // by question
};

// True for a result that reports an error to the caller: an `error` of Go, Err of Rust, a number less than 0.
[[nodiscard]] bool is_error(const Question& question, const schedule::Value& value);

// Turns values into steps. Call this before merge_nodes().
void add_values(std::vector<Run>& runs, const std::vector<Question>& questions, const ValueSorts& sorts, Kinds& kinds);

// Call after compare(). `story`: the run whose story is reported. For a query without any answer, there is one table,
// which has no node.
[[nodiscard]] std::vector<ValueTable> value_tables(const std::vector<Run>& runs, const std::vector<Question>& questions,
                                                   const ValueSorts& sorts, const Kinds& kinds,
                                                   const Comparison& comparison, const Run& story, bool merged);

}  // namespace rose::explain
