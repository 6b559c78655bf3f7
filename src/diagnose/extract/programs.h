// Which programs the processes in the dumps ran, and whether the test deployment runs them too. A dump of a whole host
// also has events of package management, cron jobs and other servers. Private to diagnose.
#pragma once

#include <cstdint>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "diagnose/extract/given.h"

namespace rose::diagnose {

class Programs {
 public:
  explicit Programs(const Given& given);

  // Whether the last program that the process started before `ts` (nanoseconds) is one that no run of the profile
  // started on any node. False where the dump does not contain that start, or the profile contains no starts at all.
  [[nodiscard]] bool foreign(int node, std::int32_t pid, std::int64_t ts) const;

 private:
  [[nodiscard]] bool known(std::string_view path) const;

  std::unordered_set<std::string_view> names_;  // of the profile's programs, without their folders
  std::vector<std::string_view> patterns_;      // those of them that contain a '*'
  // By node and process: when a program was started, and whether it is a foreign one, sorted by time.
  std::unordered_map<std::uint64_t, std::vector<std::pair<std::int64_t, bool>>> started_;
};

}  // namespace rose::diagnose
