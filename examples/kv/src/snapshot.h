// Snapshots: the whole state as of one log entry, each in a separate file.
#pragma once

#include <filesystem>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "base.h"

namespace kv {

using State = std::map<std::string, std::string>;

struct Snapshot {
  Index index = 0;  // the last entry it covers
  Term term = 0;
  State state;

  std::string encode() const;
  static std::optional<Snapshot> decode(std::string_view bytes);
};

class SnapshotStore {
 public:
  void open(const std::filesystem::path& folder);
  // The newest complete one; index 0 if there is none.
  Snapshot load() const;
  // Durable on success; older ones are then removed.
  Status save(const Snapshot& snapshot);

 private:
  std::filesystem::path folder_;
  std::mutex mutex_;  // one save at a time
};

}  // namespace kv
