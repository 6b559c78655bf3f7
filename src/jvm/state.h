// What agents told, read from their state files (jvm/state_layout.h), also while they write them. The files are the
// nodes' own: nothing in them is trusted.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "jvm/state_layout.h"

namespace rose::jvm {

struct Note {
  std::uint32_t entry = 0;  // of the place that it is about; kNoEntry: of none
  std::string text;
};

// A method whose entries are watched.
struct WatchedMethod {
  std::string name;     // "org.x.Learner.sync"; with parameters where the class has several of that name
  double calls = 0;     // seen, and those that it probably had while it was let go of
  bool known = true;    // false: it was not watched for long enough to say
  bool watched = true;  // now
};

// A value that was asked for.
struct AskedNote {
  std::uint32_t fetch = 0;
  bool placed = false;  // `text`: the method that it is read in, '|', its type; else why it is not read
  std::string text;
};

// One JVM.
struct JvmState {
  int pid = 0;               // as it saw it
  bool breakpoints = false;  // it could set them; else why not is among the notes
  std::string version;
  std::vector<Note> notes;
  std::vector<Note> places;  // the methods that places were found in
  std::vector<WatchedMethod> methods;
  std::vector<AskedNote> asked;
};

// Every JVM that left a file in the folder; files that make no sense are left out.
[[nodiscard]] std::vector<JvmState> read_states(const std::filesystem::path& folder);
// All methods that they watch, by name; those of several JVMs, and of several class loaders, are one.
[[nodiscard]] std::map<std::string, WatchedMethod> watched_methods(const std::vector<JvmState>& states);
// What people should know of a node's JVMs whose methods were to be watched, a sentence each; none when all is well.
[[nodiscard]] std::vector<std::string> complaints(const std::string& node, const std::vector<JvmState>& states);
// One file's bytes; false when it is none.
[[nodiscard]] bool parse_state(std::string_view bytes, JvmState& into);

}  // namespace rose::jvm
