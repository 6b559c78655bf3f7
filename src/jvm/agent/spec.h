// The instructions for a node's JVMs: a text file that jvm/session.cc writes and the agent reads when a JVM starts.
// Private to the agent.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "jvm/names.h"

namespace rose::jvm {

// Where in a method a location is.
enum class Where { entry, offset, line };

// An exception that is thrown if the BPF program orders it.
struct Throw {
  std::uint32_t entry = 0;
  std::string class_name;  // "java/io/IOException"
  std::string message;
};

struct PlaceSpec {
  std::uint32_t entry = 0;  // the number reported to the BPF program
  Where where = Where::entry;
  std::int64_t number = 0;  // the offset or the line, depending on where the location is
  const Throw* thrown = nullptr;
  NamePattern pattern;
  // if set, there is no location: report whenever an exception of this class leaves the method
  std::string escaping = {};
  bool noted = false;        // record the thread's stack before reporting a visit (Visit::noted)
  bool method_seen = false;  // the class that was prepared last has such a method
  bool placed = false;       // the location exists in such a method of this class
  bool reported = false;     // rose was informed where the location is
};

// Methods whose entries are watched. All lists except the patterns are sorted.
struct WatchSpec {
  bool on = false;
  bool count = false;    // count entries; otherwise report each one
  bool code = false;     // also write the calls in the methods to the code file
  bool lasting = false;  // the JVM is expected to run for long
  // When counting: a method with fewer entries per second is infrequent. When reporting: a method with at least this
  // many entries per second is detached; 0: no method is detached for its own rate.
  double rate = 0;
  double share = 0;  // when reporting: share of one CPU that all watched methods together may cost
  std::vector<const NamePattern*> functions;
  std::vector<std::string> sources;  // file names
  std::vector<std::string> methods,
      classes;  // methods by their exact names, as in records, and the classes of these methods
  std::vector<const NamePattern*> throwers;  // methods whose exceptions are watched too
  std::vector<std::string> thrower_sources;  // source files whose exceptions are watched too
  bool catchers = false;                     // the methods that catch these exceptions are reported, too
  [[nodiscard]] bool exceptions() const { return !throwers.empty() || !thrower_sources.empty(); }
};

// A requested value.
enum class AskWhere { argument, returned, caller, line };
struct AskSpec {
  std::uint32_t fetch = 0, place = 0;  // numbers of request and location in reports to rose
  AskWhere where = AskWhere::argument;
  std::int64_t number = 0;           // number of the line or of the argument; 0: the argument is given by name
  NamePattern pattern;               // pattern for the methods; not used for a line
  std::string file;                  // for a line: the end of the source file's path
  std::string name;                  // name of the variable
  std::vector<std::string> members;  // fields to follow, beginning at the variable
  bool reported = false;             // rose was informed where the value is read
  // Atomic:
  std::int64_t second_ns = 0;
  std::uint64_t in_second = 0;
  bool complained = false;
};

struct Spec {
  std::string state;  // the folder for state files
  WatchSpec watch;
  std::vector<PlaceSpec*> places;
  std::vector<AskSpec*> asks;
  bool stacks = false;  // report stacks
  bool damaged = false;
};

[[nodiscard]] Spec parse_spec(std::string_view text);

}  // namespace rose::jvm
