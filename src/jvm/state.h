// Reads what agents reported in their state files (jvm/state_layout.h), also while they write them. Nodes can write
// these files, so their content is not trusted.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "jvm/state_layout.h"

namespace rose::jvm {

struct Note {
  std::uint32_t entry = 0;  // the location that it concerns; kNoEntry: none
  std::string text;
};

// A method whose entries are watched.
struct WatchedMethod {
  std::string name;     // "org.x.Learner.sync"; with parameters if the class has several methods with that name
  double calls = 0;     // observed, plus an estimate for the time it was detached
  bool known = true;    // false: it was not watched long enough to know
  bool watched = true;  // at present
};

// A requested value.
struct AskedNote {
  std::uint32_t fetch = 0;
  bool placed = false;  // `text`: the method in which it is read, '|', its type; otherwise why it is not read
  std::string text;
};

// One JVM.
struct JvmState {
  int pid = 0;               // in its own PID namespace
  bool breakpoints = false;  // whether it could set breakpoints; if not, the reason is among the notes
  std::string version;
  std::vector<Note> notes;
  std::vector<Note> places;  // methods in which locations were found
  std::vector<WatchedMethod> methods;
  std::vector<AskedNote> asked;
};

// All JVMs that left a file in the folder. Damaged files are skipped.
[[nodiscard]] std::vector<JvmState> read_states(const std::filesystem::path& folder);
// All methods that they watch, by name; equal names in several JVMs or class loaders are combined.
[[nodiscard]] std::map<std::string, WatchedMethod> watched_methods(const std::vector<JvmState>& states);
// Problems with the JVMs of a node whose methods were to be watched, one sentence each; empty if there are none.
[[nodiscard]] std::vector<std::string> complaints(const std::string& node, const std::vector<JvmState>& states);
// Parses the bytes of one file. Returns false if they are not a state file.
[[nodiscard]] bool parse_state(std::string_view bytes, JvmState& into);

}  // namespace rose::jvm
