// Values that were queried in the compared runs: as steps among the others, so that they are scored and reported in the
// same way, and as a table for each query. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "explain/compare.h"
#include "explain/runs.h"

namespace rose::explain {

struct Question {
  std::string text;  // "store(len)"
  // "store:calls": its values are the functions that it calls, and where: "write@plt (store.c:71)".
  [[nodiscard]] bool about_calls() const { return text.ends_with(":calls"); }
  // "store:callers": its values are the callers, and where: "request (store.c:71)"; of Java "org.x.C.request (line
  // 71)", of a long name its last 64 bytes.
  [[nodiscard]] bool about_callers() const { return text.ends_with(":callers"); }
  std::string function, type;        // "" not known
  std::string refused;               // why it could not be seen; "" when it could
  std::vector<std::string> remarks;  // which part of it is not visible
};

// A value, or a class of values if there are many, in the runs of one side.
struct ValueCount {
  std::string value;
  std::size_t runs = 0;    // number of runs that have it after the fault
  std::size_t times = 0;   // number of occurrences after the fault, in all of these runs
  std::size_t before = 0;  // number of occurrences before the fault
};

// The answers to one query on one node.
struct ValueTable {
  std::uint32_t question = 0;
  std::string query, function, type;
  std::string node;                              // "": whichever node the fault hit, or no node
  std::vector<ValueCount> failing, sound, near;  // most frequent first; at most kMostCounts
  std::size_t unlisted = 0;                      // further values
  double score = 0;     // of the value that separates the runs best, scored like suspects; 0: none does
  std::string differs;  // the value that differs, as text; "": none does
  bool clean = false, only_bug = false;  // as in Difference
  struct First {
    std::string node, value;
    std::int32_t tid = 0;
    std::int64_t at_ns = 0;  // since the workload began
  };
  std::optional<First> first;  // the first time it differs, in the run whose story is reported
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

// Turns values into steps. Call before merge_nodes().
void add_values(std::vector<Run>& runs, const std::vector<Question>& questions, const ValueSorts& sorts, Kinds& kinds);

// Call after compare(). `story`: the run whose story is reported. A query without any answer has one table, without a
// node.
[[nodiscard]] std::vector<ValueTable> value_tables(const std::vector<Run>& runs, const std::vector<Question>& questions,
                                                   const ValueSorts& sorts, const Kinds& kinds,
                                                   const Comparison& comparison, const Run& story, bool merged);

}  // namespace rose::explain
