// A failed call as a candidate: how it can be matched, and the shapes in which it may be tried. Private to diagnose.
#pragma once

#include <cstdint>
#include <string>
#include <tuple>
#include <vector>

#include "diagnose/extract/extracted.h"
#include "diagnose/extract/facts.h"
#include "diagnose/failed_calls.h"

namespace rose::diagnose {

// One that is not benign.
struct Failure {
  const FailedCall* group = nullptr;
  std::string syscall;
  bool far_more = false;  // the profile has it, but far more rarely
  double normal = 0;      // times a run
  int ordinariness = 0;
  std::string follows;  // what it always follows; "": nothing

  // The access to a mapping failed, not a call: there is no call to fail.
  [[nodiscard]] bool of_mapping() const { return group->err == 0 && group->requested == 0; }
  [[nodiscard]] bool symptom() const { return group->cause != nullptr || !follows.empty(); }
  [[nodiscard]] std::tuple<bool, bool, int, std::int64_t> order() const {
    return {symptom(), far_more, ordinariness, group->first_ts};
  }
};

// "failing with EIO"; of what failed without an error "doing only 512 of 4096 bytes" and "ending in SIGBUS".
[[nodiscard]] std::string how_failed(const FailedCall& group);

// A full disk as a candidate, for each node that had a short write to a file or could not write to a mapped one: a
// program may notice no more of a full disk than that.
[[nodiscard]] std::vector<Candidate> full_disks(const Given& given, const Times& times,
                                                const std::vector<Failure>& failures);

// `with_shapes`: it is likely enough to be tried, so all its shapes are needed.
[[nodiscard]] Candidate call_candidate(const Given& given, const Times& times, const Failure& failure, bool with_shapes,
                                       Ids& ids);

}  // namespace rose::diagnose
