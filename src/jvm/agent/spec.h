// What rose asks of one node's JVMs: a text file, read once when a JVM begins. Written by jvm/session.cc. Private to
// the agent.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "jvm/names.h"

namespace rose::jvm {

// Where in the methods of a name.
enum class Where { entry, offset, line };

// An exception that is thrown when the kernel's program says so.
struct Throw {
  std::uint32_t entry = 0;
  std::string class_name;  // "java/io/IOException"
  std::string message;
};

struct PlaceSpec {
  std::uint32_t entry = 0;  // what the kernel's program is told
  Where where = Where::entry;
  std::int64_t number = 0;  // the offset or line
  const Throw* thrown = nullptr;
  NamePattern pattern;
  std::string escaping = {};  // not a place in the code: whenever an exception of this class leaves the method
  bool noted = false;         // where the thread is is noted ahead of the visit
  bool method_seen = false;   // a class had such a method
  bool placed = false;        // ... and the place in it
  bool told = false;          // it was found somewhere, and rose was told so
};

// Methods whose entries matter. All lists but the patterns are sorted.
struct WatchSpec {
  bool on = false;
  bool count = false;    // they are counted; else each is told as it happens
  bool code = false;     // where they call is told too
  bool lasting = false;  // the JVM is to run for long
  double rate =
      0;  // counting: rarer ones are infrequent; telling: what is entered so often a second is let go of, 0: nothing
  double share = 0;  // telling: of one CPU, that all together may cost
  std::vector<const NamePattern*> functions;
  std::vector<std::string> sources;  // file names
  std::vector<std::string> methods,
      classes;  // exactly these, by the names that records have; the classes that they are in
  std::vector<const NamePattern*> throwers;  // methods whose exceptions matter, too
  std::vector<std::string> thrower_sources;  // ... by source file
  [[nodiscard]] bool exceptions() const { return !throwers.empty() || !thrower_sources.empty(); }
};

// A value that is asked for.
enum class AskWhere { argument, returned, caller, line };
struct AskSpec {
  std::uint32_t fetch = 0, place = 0;  // what rose is told
  AskWhere where = AskWhere::argument;
  std::int64_t number = 0;           // of the argument, 0: by name; or the line
  NamePattern pattern;               // of the methods; of a line: any
  std::string file;                  // line: the end of a source file's path
  std::string name;                  // of the variable
  std::vector<std::string> members;  // fields to go down
  bool told = false;                 // where it is read, rose was told
  // Atomic:
  std::int64_t second_ns = 0;
  std::uint64_t in_second = 0;
  bool complained = false;
};

struct Spec {
  std::string state;  // folder
  WatchSpec watch;
  std::vector<PlaceSpec*> places;
  std::vector<AskSpec*> asks;
  bool stacks = false;  // where threads are is told
  bool damaged = false;
};

[[nodiscard]] Spec parse_spec(std::string_view text);

}  // namespace rose::jvm
