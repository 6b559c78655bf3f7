// Failed calls of all dumps, grouped (calls in a group differ only in time), and what successful calls show about them.
// Private to diagnose.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "diagnose/extract/causes.h"
#include "diagnose/extract/extracted.h"
#include "diagnose/extract/facts.h"
#include "diagnose/extract/programs.h"

namespace rose::diagnose {

struct Peer {
  int node = NodeMap::kNone;
  int port = 0;          // 0: ephemeral or unknown
  std::uint32_t id = 0;  // the id of its text; 0: there is none
  std::string address;
};

struct FailedCall {
  int node = 0;
  std::int16_t syscall = 0;
  std::int16_t err = 0;         // 0: it failed without an error
  std::int64_t done = 0;        // then: bytes that it moved
  std::uint32_t requested = 0;  // the number of bytes requested; 0: an access to a mapped file ended in SIGBUS
  std::string pattern;          // of its path
  Peer peer;
  const Cause* cause = nullptr;  // that explains it
  const trace::Trace* trace = nullptr;
  const Event* first = nullptr;
  std::uint64_t count = 0;
  std::int64_t first_ts = 0;
  std::int64_t last_ts = 0;
  bool without_name = true;         // every event on an unlinked or cut path
  bool searched = true;             // every event is a step of a search in one folder after the other
  std::vector<std::int64_t> times;  // of its first events, at most a few dozen
  bool foreign = false;             // of processes whose program the test deployment does not run
  bool recovered = false;           // the same call succeeded afterwards
  bool on_new_file = false;         // on a file that was made only after the workload began
  // its ordinal among its node's calls of that kind since the node's start; 0: the dump does not show it
  std::uint64_t nth = 0;
};

// A short read or write of a file, or an access to a mapped file that failed.
[[nodiscard]] inline bool failed_silently(const Event& event) {
  return event.type == EventType::scf && event.err == 0 && (event.requested != 0 || event.signal != 0);
}

struct FailedCalls {
  std::vector<FailedCall> groups;  // in the order of their first events, one dump after the other
  Discards discards;
};

// `causes` must outlive the result.
[[nodiscard]] FailedCalls read_failed_calls(const Given& given, const Facts& facts, const Programs& programs,
                                            const Causes& causes);

}  // namespace rose::diagnose
