// What one run asks of the JVMs of its nodes: the agent and its instructions as files in the run's folder, and what a
// node's environment must say for its JVMs to load them. The node's command stays as it is.
//
//   RUN/rose.jvm/rose-jvm.so      the agent; kernel programs are attached to this very file, so runs don't disturb each
//   other RUN/rose.jvm/NODE.spec        what it is to do in that node's JVMs, read when one begins
//   RUN/rose.jvm/NODE/*.jvm       what they tell (jvm/state.h)
//   RUN/rose.jvm/NODE/*.stacks    where their threads are (jvm/stacks.h)
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"

namespace rose::jvm {

enum class At { entry, offset, line };

// A place in methods of a name, of which the kernel's program is told by a number (bpf/inject.h).
struct PlaceRequest {
  std::uint32_t entry = 0;
  At at = At::entry;
  std::uint64_t number = 0;  // offset or line
  std::string pattern;
  std::string throws;  // "": nothing; else the class of an exception
  std::string message;
  bool noted = false;  // where a thread that comes by is, is noted ahead: its process may end there
};

// Methods of a node whose entries matter.
struct WatchRequest {
  bool count = false;  // they are counted; else each is told to the tracer as it happens
  bool code = false;   // where they call is told too (jvm/code_book.h)
  bool lasting =
      false;        // in JVMs that run for long: without those that return an object, which slow their callers down
  double rate = 0;  // counting: rarer ones are infrequent; telling: what is entered so often a second is let go of, 0:
                    // only all together count
  double share = 0.01;                          // telling: of one CPU, that all of a JVM's methods together may cost
  std::vector<std::string> functions, sources;  // by name or glob, by source file
  std::vector<std::string> methods;             // by the names that a profile has
  std::vector<std::string> throwers = {}, thrower_sources = {};  // exceptions that leave these methods are watched like
                                                                 // entries: "org.x.A.m throws java.io.EOFException"
};

// A value that is asked for: an argument (by name, or by number where that is not 0), what a method returns, who calls
// it, a variable at a line.
struct AskRequest {
  enum class Where { argument, returned, caller, line };
  std::uint32_t fetch = 0, place = 0;  // as the tracer knows it
  Where where = Where::argument;
  std::uint64_t number = 0;  // of the argument, or the line
  std::string what;          // the method, or the end of a source file's path
  std::string name;
  std::vector<std::string> members;  // fields to go down
};

// The text of an agent's instructions (jvm/agent/spec.h). `state`: the folder for what it tells.
[[nodiscard]] std::string instructions(const std::filesystem::path& state, const std::vector<PlaceRequest>& places,
                                       const std::optional<WatchRequest>& watch, bool stacks = false,
                                       const std::vector<AskRequest>& asks = {});

class Session {
 public:
  // Writes the agent into the run's folder, which must exist. ErrorKind::environment when programs there may not be
  // executed.
  [[nodiscard]] static Result<std::unique_ptr<Session>> open(const std::filesystem::path& run_dir);

  [[nodiscard]] const std::filesystem::path& agent() const { return agent_; }
  void add_places(const std::string& node, const std::vector<PlaceRequest>& places);
  // Its JVMs tell where their threads are.
  void tell_stacks(const std::string& node) { asked_[node].stacks = true; }
  void watch(const std::string& node, WatchRequest request) { asked_[node].watch = std::move(request); }
  void ask(const std::string& node, const AskRequest& request) { asked_[node].asks.push_back(request); }
  // Once all is asked for, and before the nodes start. Their folders exist, and belong to their users.
  [[nodiscard]] Result<void> write();

  // JAVA_TOOL_OPTIONS, with what `own` has there already; nothing for nodes of which nothing is asked.
  using Variables = std::map<std::string, std::string>;
  [[nodiscard]] Variables environment(const std::string& node, const Variables& own) const;
  [[nodiscard]] std::filesystem::path state(const std::string& node) const;

 private:
  struct Asked {
    std::vector<PlaceRequest> places;
    std::optional<WatchRequest> watch;
    bool stacks = false;
    std::vector<AskRequest> asks;
  };
  std::filesystem::path run_dir_, folder_, agent_;
  std::map<std::string, Asked> asked_;
};

}  // namespace rose::jvm
