// The values that are requested in the runs of an explanation. Parses the queries, finds the locations in the nodes'
// programs, and formats the recorded values by their types.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "config/config.h"
#include "jvm/session.h"
#include "observe/tracer.h"
#include "schedule/outcome.h"
#include "symbols/query.h"
#include "symbols/values.h"

namespace rose::replay {

inline constexpr std::size_t kMostQueries = 64;  // the most queries at the same time

struct ValueQueries {
  struct Question {
    std::string text;                  // as the user wrote it
    std::string function;              // full name of the function; "" if unknown
    std::string type;                  // "int"; "" if unknown: a raw integer
    std::string refused;               // why nothing can be recorded; "" if something can
    std::vector<std::string> remarks;  // in which cases nothing is recorded
  };
  struct Meaning {
    std::uint32_t question = 0;
    symbols::Form form;
  };
  // A query about Java methods. Only the running JVMs know whether such methods exist.
  struct OfJava {
    std::uint32_t question = 0;
    jvm::AskRequest request;
    std::vector<std::string> nodes;
  };
  std::vector<Question> questions;
  std::vector<OfJava> java;
  std::vector<observe::ValuePlace> places;
  std::vector<std::vector<Meaning>> meanings;  // by location and fetch
};

// Looks up every query in the programs of all nodes. Fails with ErrorKind::usage or ErrorKind::input if a query is
// invalid, or if no program contains what it names. With `proposed`, which means that rose chose the queries itself,
// such a query is only marked as refused. `outer`: also record the callers of the callers.
[[nodiscard]] Result<ValueQueries> ask(const config::Config& config, const std::vector<std::string>& queries,
                                       bool proposed = false, bool outer = false);

// Finds the queries that are possible for a function in the programs of all nodes; see symbols::ValueFile. For a Java
// method, these are the return value and the first arguments. Opens each program once. Keeps a reference to `config`.
class QueryFinder {
 public:
  explicit QueryFinder(const config::Config& config);
  QueryFinder(QueryFinder&&) noexcept;
  ~QueryFinder();
  [[nodiscard]] std::vector<std::string> about(const std::string& function);

 private:
  const config::Config* config_;
  std::vector<symbols::ValueFile> files_;
};

// A JVM's report on a query.
struct JavaAnswer {
  std::uint32_t question = 0;
  std::string function, type;  // where the value is read, and its type; "" if it is not read
  std::string why;             // why the value is not read
};
// Returns what the JVMs of a node have reported on the queries, as their state files contain it.
[[nodiscard]] std::vector<JavaAnswer> java_answers(const ValueQueries& asked, const std::filesystem::path& state);
// The reason why no JVM answered a query, as a sentence. `answers`: what the JVMs reported on the query.
[[nodiscard]] std::string unanswered(const ValueQueries& asked, std::uint32_t question,
                                     const std::vector<JavaAnswer>& answers);

// The recorded values, sorted by time. `nodes`: the tracer's targets. `wall_offset_ns` is added to the times.
[[nodiscard]] std::vector<schedule::Value> recorded_values(const ValueQueries& asked, const observe::SeenValues& seen,
                                                           const std::vector<std::string>& nodes,
                                                           std::int64_t wall_offset_ns);

}  // namespace rose::replay
