// Writes the agent's state file (jvm/state_layout.h). Records never move. If there is no file, the records are in
// ordinary memory, which nobody reads. Not thread-safe, except for the counters in the records.
#pragma once

#include <string>
#include <string_view>

#include "jvm/state_layout.h"

namespace rose::jvm {

class State {
 public:
  // Creates the file in `folder`. Its name is unique among JVMs.
  void open(std::string_view folder);
  // The path of the file without ".jvm"; "" if there is none.
  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] StateHead& head() { return *head_; }
  // Returns nullptr if there is no room for another record.
  [[nodiscard]] StateRecord* add(RecordKind kind, std::string_view text);
  void note(std::string_view text, std::uint32_t entry = kNoEntry) {
    if (StateRecord* record = add(RecordKind::note, text)) record->entry = entry;
  }

 private:
  void* more(std::size_t bytes);
  std::string path_;
  int fd_ = -1;
  std::uint64_t end_ = 0;
  StateHead* head_ = nullptr;
  StateRecord* chunk_ = nullptr;
  std::uint32_t left_ = 0;
};

}  // namespace rose::jvm
