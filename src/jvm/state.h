// What agents told, read from their state files (jvm/state_layout.h), also while they write them. The files are the nodes' own:
// nothing in them is trusted.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "jvm/state_layout.h"

namespace rose::jvm {

struct Note {
  std::uint32_t entry = 0;  // of the place that it is about; kNoEntry: of none
  std::string text;
};

// One JVM.
struct JvmState {
  int pid = 0;               // as it saw it
  bool breakpoints = false;  // it could set them; else why not is among the notes
  std::string version;
  std::vector<Note> notes;
  std::vector<Note> places;  // the methods that places were found in
};

// Every JVM that left a file in the folder; files that make no sense are left out.
[[nodiscard]] std::vector<JvmState> read_states(const std::filesystem::path& folder);
// One file's bytes; false when it is none.
[[nodiscard]] bool parse_state(std::string_view bytes, JvmState& into);

}  // namespace rose::jvm
