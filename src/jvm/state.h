// Reads what agents reported in their state files (jvm/state_layout.h), even while the agents write these files. Nodes
// can write the files, so their content is not trusted.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "jvm/state_layout.h"

namespace rose::jvm {

struct Note {
  std::uint32_t entry = 0;  // the location that the note concerns; kNoEntry: none
  std::string text;
};

// A method whose entries are watched.
struct WatchedMethod {
  std::string name;  // "org.x.Learner.sync"; with parameters if the class has several methods with that name
  // number of entries that were observed, plus an estimate for the time in which the method was detached
  double calls = 0;
  bool known = true;    // false: the method was not watched long enough to know its number of calls
  bool watched = true;  // true: the method is being watched at present
};

// A requested value.
struct AskedNote {
  std::uint32_t fetch = 0;
  // Whether the value is read. If so, `text` is the method in which it is read, '|', and the value's type; otherwise,
  // `text` is the reason why it is not read.
  bool placed = false;
  std::string text;
};

// One JVM.
struct JvmState {
  int pid = 0;               // in the JVM's own PID namespace
  bool breakpoints = false;  // whether the agent could set breakpoints; if not, the reason is among the notes
  std::string version;
  std::vector<Note> notes;
  std::vector<Note> places;  // methods in which locations were found
  std::vector<WatchedMethod> methods;
  std::vector<AskedNote> asked;
};

// The states of all JVMs that left a file in the folder. Damaged files are skipped.
[[nodiscard]] std::vector<JvmState> read_states(const std::filesystem::path& folder);
// All methods that these JVMs watch, by name. Methods of equal names in several JVMs or class loaders are combined.
[[nodiscard]] std::map<std::string, WatchedMethod> watched_methods(const std::vector<JvmState>& states);
// The problems of a node whose methods were to be watched, one sentence each. Empty if there are none.
[[nodiscard]] std::vector<std::string> complaints(const std::string& node, const std::vector<JvmState>& states);
// Parses the bytes of one state file. Returns false if they are no state file.
[[nodiscard]] bool parse_state(std::string_view bytes, JvmState& into);

}  // namespace rose::jvm
