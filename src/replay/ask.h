// What is asked for in the runs of an explanation: queries, the places in the nodes' programs that answer them, and
// what was seen there in the words of the program's types.
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

inline constexpr std::size_t kMostQueries = 64;  // asked at once

struct Asked {
  struct Question {
    std::string text;                  // as it was asked
    std::string function;              // that it is about, by its full name; "" not known
    std::string type;                  // "int"; "" not known: a raw integer
    std::string refused;               // why nothing can be seen; "" when something can
    std::vector<std::string> remarks;  // what of it is not seen
  };
  struct Meaning {
    std::uint32_t question = 0;
    symbols::Form form;
  };
  // Of methods of Java: whether there is such a thing the JVMs tell, once they run.
  struct OfJava {
    std::uint32_t question = 0;
    jvm::AskRequest request;
    std::vector<std::string> nodes;
  };
  std::vector<Question> questions;
  std::vector<OfJava> java;
  std::vector<observe::ValuePlace> places;
  std::vector<std::vector<Meaning>> meanings;  // by place and fetch
};

// Looks every query up in the programs of all nodes. ErrorKind::usage or input: it can't be read, or no program has
// what it names.
[[nodiscard]] Result<Asked> ask(const config::Config& config, const std::vector<std::string>& queries);

// What may be asked about a function, in the programs of all nodes: see symbols::ValueFile. Of a method of Java what it
// returns, and its first arguments, as many as it may have. Opens each program once. `config` is kept by reference.
class Askable {
 public:
  explicit Askable(const config::Config& config);
  Askable(Askable&&) noexcept;
  ~Askable();
  [[nodiscard]] std::vector<std::string> about(const std::string& function);

 private:
  const config::Config* config_;
  std::vector<symbols::ValueFile> files_;
};

// What a JVM said of a question.
struct JavaAnswer {
  std::uint32_t question = 0;
  std::string function, type;  // where it is read, and what it is; "": it isn't
  std::string why;             // it isn't
};
// What the JVMs of a node left in their files.
[[nodiscard]] std::vector<JavaAnswer> java_answers(const Asked& asked, const std::filesystem::path& state);
// Why a question that no JVM answered is not answered, in a sentence. `said`: what the JVMs said of it.
[[nodiscard]] std::string unanswered(const Asked& asked, std::uint32_t question, const std::vector<JavaAnswer>& said);

// What was seen, by time. `nodes`: the tracer's targets. `wall_offset_ns` is added to its times.
[[nodiscard]] std::vector<schedule::Value> told(const Asked& asked, const observe::SeenValues& seen,
                                                const std::vector<std::string>& nodes, std::int64_t wall_offset_ns);

}  // namespace rose::replay
