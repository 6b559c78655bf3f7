// The agent's side of its state file (jvm/state_layout.h): records that stay where they are. Without a file they stand
// in plain memory, and nobody reads them. Not for several threads at a time, but for the counters in them.
#pragma once

#include <string>
#include <string_view>

#include "jvm/state_layout.h"

namespace rose::jvm {

class State {
 public:
  // In `folder`, under a name that no other JVM has.
  void open(std::string_view folder);
  // Of the file, without ".jvm"; "": there is none.
  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] StateHead& head() { return *head_; }
  // nullptr: there are as many as there may be.
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
