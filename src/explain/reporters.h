// Finds the functions that reported to their callers what the fault did, and these callers. A function reports by a
// result that only failing runs return or, in JVMs and in Python, by an exception that leaves the function in failing
// runs only. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace rose::explain {

struct Input;
struct Comparison;
struct Question;
struct Run;

// If harmless runs also contain a report, it counts half, because the functions that get it do no harm there.
inline constexpr double kHarmlessResult = 0.5;

class Reporters {
 public:
  Reporters(const Input& input, const Comparison& comparison);

  // True if the function returned something that it returns in no correct run, or if an exception left it.
  [[nodiscard]] bool reported(const std::string& function) const;
  // The functions that returned an error, or passed on what was reported to them; their names by key_of().
  [[nodiscard]] const std::map<std::string, std::string>& errors() const { return errors_; }
  // True if it is known what the function returns. For a function that returns nothing, it suffices that its calls are
  // known.
  [[nodiscard]] bool known(const std::string& function) const;

  // True if the function makes calls in failing runs that it makes in no correct run.
  [[nodiscard]] bool acts(const std::string& function) const;

  // A function to which another function, `by`, reported. `share`: the share of the failing runs in which it did.
  struct Recipient {
    std::string function, node, by;
    double share = 0;
    double counts = 0;  // the highest weight of its reports
  };
  // Leaves out the functions that passed an error on. Functions that get a report which occurs only with the bug come
  // first. Otherwise, the sooner after the fault a function gets its report, the earlier it comes.
  [[nodiscard]] std::vector<Recipient> recipients() const;

 private:
  struct Receiver {
    Recipient recipient;
    std::set<std::string> texts;         // what was reported to it
    std::vector<std::int64_t> after_ns;  // after the fault, in each run
  };
  void take(const Run& run);

  const Input& input_;
  // kinds of results and exceptions that failing runs have and correct runs do not, and how much each counts
  std::map<std::uint32_t, double> fresh_;
  std::set<std::string> asked_, reporters_, left_, acting_;  // by key_of(); left_: an exception left it
  std::map<std::string, std::string> errors_;
  std::map<std::string, std::set<std::string>> texts_;  // results of each function that only failing runs have
  std::map<std::string, Receiver> receivers_;
  double asked_runs_ = 0;
};

}  // namespace rose::explain
