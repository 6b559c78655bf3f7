// Groups the failed calls of all dumps. The calls of a group differ only in time. Successful calls are read, too: they
// show whether the same call succeeded later, and they are counted to find the ordinal of the failed call.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "evidence/causes.h"
#include "evidence/discards.h"
#include "evidence/facts.h"
#include "evidence/programs.h"

namespace rose::evidence {

struct Peer {
  int node = NodeMap::kNone;
  int port = 0;          // 0: ephemeral or unknown
  std::uint32_t id = 0;  // equal for equal peers (ScfKey::peer); 0: the call has no peer
  std::string address;
};

struct FailedCall {
  int node = 0;
  std::int16_t syscall = 0;
  std::int16_t err = 0;   // 0: the call did less than requested, without an error
  std::int64_t done = 0;  // if `err` is 0: the number of bytes that the call transferred
  std::uint32_t requested =
      0;                // if `err` is 0: the number of bytes requested; 0: an access to a mapped file ended in SIGBUS
  std::string pattern;  // the pattern of the call's path
  Peer peer;
  const Cause* cause = nullptr;    // the cause that explains the failure; nullptr: none
  const Source* source = nullptr;  // the source of its first event
  const Observation* first = nullptr;
  std::uint64_t count = 0;
  std::int64_t first_ts = 0;
  std::int64_t last_ts = 0;
  bool without_name = true;         // all its events have the path of a deleted file, or only the end of a path
  bool searched = true;             // all its events are steps of a search in several folders (search_steps())
  std::vector<std::int64_t> times;  // the timestamps of its first events, up to a limit
  bool foreign = false;             // made by processes whose program the test deployment does not run
  bool recovered = false;           // the same call succeeded later
  bool on_new_file = false;         // its file was created after the workload began
  // the ordinal of its first event among the node's calls of that kind since the node's start; 0: unknown
  std::uint64_t nth = 0;
};

// True for a short read or write of a file, and for an access to a mapped file that ended in SIGBUS.
[[nodiscard]] inline bool failed_silently(const Event& event) {
  return event.type == EventType::scf && event.err == 0 && (event.requested != 0 || event.signal != 0);
}

struct FailedCalls {
  std::vector<FailedCall> groups;  // ordered by dump, then by first event
  Discards discards;
};

// `causes` must outlive the result, which points to them.
[[nodiscard]] FailedCalls read_failed_calls(const Given& given, const Facts& facts, const Programs& programs,
                                            const Causes& causes);

}  // namespace rose::evidence
