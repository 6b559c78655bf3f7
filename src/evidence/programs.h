// Determines whether the test deployment runs the programs of the processes in the dumps, because a dump of a whole
// host also contains events of package management, cron jobs and other servers.
#pragma once

#include <cstdint>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "evidence/given.h"

namespace rose::evidence {

class Programs {
 public:
  explicit Programs(const Given& given);

  // True if the last program that the process executed before `ts` (nanoseconds) was not started on any node in any run
  // of the profile. False if the dump does not contain that exec, or the profile contains no execs.
  [[nodiscard]] bool foreign(int node, std::int32_t pid, std::int64_t ts) const;

 private:
  [[nodiscard]] bool known(std::string_view path) const;

  std::unordered_set<std::string_view> names_;  // file names of the profile's programs
  std::vector<std::string_view> patterns_;      // file names in the profile that contain a '*'
  // By node and process: timestamps of its execs, ascending, and whether the program is foreign.
  std::unordered_map<std::uint64_t, std::vector<std::pair<std::int64_t, bool>>> started_;
};

}  // namespace rose::evidence
