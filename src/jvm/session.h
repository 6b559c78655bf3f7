// The requests of one run to the JVMs of its nodes: writes the agent and its instructions to the run's folder, and
// supplies the environment that makes the JVMs load the agent. The node's command is not changed.
//
//   RUN/rose.jvm/rose-jvm.so     the agent. BPF programs are attached to this file, so runs do not disturb each other.
//   RUN/rose.jvm/NODE.spec       instructions for the node's JVMs, read when one starts
//   RUN/rose.jvm/NODE/*.jvm      reports (jvm/state.h)
//   RUN/rose.jvm/NODE/*.stacks   stacks (jvm/stacks.h)
//   RUN/rose.jvm/NODE/*.code     the calls in watched methods (jvm/code_book.h)
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

// A location in each method that matches a pattern. `entry` is the number by which the BPF program knows the location
// (bpf/inject.h).
struct PlaceRequest {
  std::uint32_t entry = 0;
  At at = At::entry;
  std::uint64_t number = 0;  // the offset or the line, depending on `at`
  std::string pattern;
  std::string throws;  // the class of an exception to throw; "": none
  std::string message;
  // Record the thread's stack before the location is reported to the BPF program, which may kill the process.
  bool noted = false;
};

// The methods of a node whose entries are watched.
struct WatchRequest {
  bool count = false;  // count entries; otherwise report each one to the tracer
  bool code = false;   // also record the calls in the methods (jvm/code_book.h)
  // The JVM is expected to run for long. Methods that return an object are then skipped, because watching them slows
  // their callers.
  bool lasting = false;
  // When counting: a method with fewer entries per second is infrequent. When reporting: a method with at least this
  // many entries per second is detached; 0: methods are detached only if all of them together cost too much (`share`).
  double rate = 0;
  double share = 0.01;  // when reporting: share of one CPU that all methods of a JVM together may cost
  std::vector<std::string> functions, sources;  // methods by name or glob, and by source file
  std::vector<std::string> methods;             // methods by the names that profiles contain
  // Exceptions that leave these methods are watched like entries of methods: "org.x.A.m throws java.io.EOFException".
  std::vector<std::string> throwers = {}, thrower_sources = {};
  bool catchers = false;  // also report the methods that catch these exceptions
};

// A requested value: an argument of a method, its return value or its caller, or a variable at a line. An argument is
// given by number, or by name if the number is 0.
struct AskRequest {
  enum class Where { argument, returned, caller, line };
  std::uint32_t fetch = 0, place = 0;  // numbers by which the tracer knows the request and the location
  Where where = Where::argument;
  std::uint64_t number = 0;  // number of the argument or of the line
  std::string what;          // the method; for a line, the end of the source file's path
  std::string name;
  std::vector<std::string> members;  // fields to follow, beginning at the variable
};

// Formats the instructions of an agent (jvm/agent/spec.h). `state`: the folder for its state files.
[[nodiscard]] std::string instructions(const std::filesystem::path& state, const std::vector<PlaceRequest>& places,
                                       const std::optional<WatchRequest>& watch, bool stacks = false,
                                       const std::vector<AskRequest>& asks = {});

class Session {
 public:
  // Writes the agent to the run's folder, which must exist. Fails with ErrorKind::environment if programs in that file
  // system cannot be executed.
  [[nodiscard]] static Result<std::unique_ptr<Session>> open(const std::filesystem::path& run_dir);

  [[nodiscard]] const std::filesystem::path& agent() const { return agent_; }
  void add_places(const std::string& node, const std::vector<PlaceRequest>& places);
  // Requests that the node's JVMs report stacks.
  void request_stacks(const std::string& node) { asked_[node].stacks = true; }
  void watch(const std::string& node, WatchRequest request) { asked_[node].watch = std::move(request); }
  void ask(const std::string& node, const AskRequest& request) { asked_[node].asks.push_back(request); }
  // Call this when all requests are known, and before the nodes start. The folders of the nodes must exist and belong
  // to the nodes' users.
  [[nodiscard]] Result<void> write();

  // The variable JAVA_TOOL_OPTIONS, whose value is the node's own value (in `own`) followed by the option that loads
  // the agent. Empty for a node without requests.
  using Variables = std::map<std::string, std::string>;
  [[nodiscard]] Variables environment(const std::string& node, const Variables& own) const;
  [[nodiscard]] bool asks(const std::string& node) const { return asked_.contains(node); }
  [[nodiscard]] const std::filesystem::path& folder() const { return folder_; }
  [[nodiscard]] std::filesystem::path state(const std::string& node) const;

 private:
  struct Requests {
    std::vector<PlaceRequest> places;
    std::optional<WatchRequest> watch;
    bool stacks = false;
    std::vector<AskRequest> asks;
  };
  std::filesystem::path run_dir_, folder_, agent_;
  std::map<std::string, Requests> asked_;
};

}  // namespace rose::jvm
