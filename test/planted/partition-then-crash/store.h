// A node's data, in a folder: all keys as of one position in the primary's log. Each file is replaced by a rename, so
// none of them is ever half written.
#pragma once

#include <cstdint>
#include <map>
#include <string>

struct Store {
  explicit Store(std::string folder);

  // Writes one entry of the log to the journal, and applies it to the keys.
  void apply(std::uint64_t position, const std::string& key, const std::string& value);
  // Replaces all keys by those as of `position`.
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
