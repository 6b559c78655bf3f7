// What a node keeps: all keys as of one position in the primary's log, in a folder. Each file is replaced by a
// rename, so none of them is ever half written.
#pragma once

#include <cstdint>
#include <map>
#include <string>

struct Store {
  explicit Store(std::string folder);

  // One entry of the log: into the journal, and into the keys.
  void apply(std::uint64_t position, const std::string& key, const std::string& value);
  // All keys as of `position`, in place of what is there.
  void install(std::uint64_t position, std::map<std::string, std::string> keys);

  std::map<std::string, std::string> keys;
  std::uint64_t position = 0;

 private:
  void load();
  void save_position();
  void begin_journal();
  void save_keys();
  std::string path(const char* name) const { return folder_ + "/" + name; }

  std::string folder_;
  int journal_ = -1;
};
