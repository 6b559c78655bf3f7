// Turns failed calls into candidates: the call to match in a run, and the shapes in which it is tried. Private to
// diagnose.
#pragma once

#include <cstdint>
#include <string>
#include <tuple>
#include <vector>

#include "diagnose/extract/extracted.h"
#include "evidence/facts.h"
#include "evidence/failed_calls.h"

namespace rose::diagnose {

// A group of failed calls that is not benign.
struct Failure {
  const FailedCall* group = nullptr;
  std::string syscall;
  bool far_more = false;  // the profile contains the failure, but far more rarely
  double normal = 0;      // average number in a run of the profile
  int ordinariness = 0;
  std::string follows;    // for people: the event that it always follows; "": none
  std::int64_t torn = 0;  // bytes of the call's data that a short write had written right before the call; 0: none

  // True if an access to a mapped file failed, so that there is no call that can be made to fail.
  [[nodiscard]] bool of_mapping() const { return group->err == 0 && group->requested == 0; }
  [[nodiscard]] bool symptom() const { return group->cause != nullptr || !follows.empty(); }
  // The order in which failures are tried, smallest first.
  [[nodiscard]] std::tuple<bool, bool, int, std::int64_t> order() const {
    return {symptom(), far_more, ordinariness, group->first_ts};
  }
};

// For people: "failing with EIO", "doing only 512 of 4096 bytes", "ending in SIGBUS".
[[nodiscard]] std::string how_failed(const FailedCall& group);

// Returns a full disk as a candidate for each node with a short write to a file, or with an access to a mapped file
// that ended in SIGBUS, because a full disk may cause no other failures than these.
[[nodiscard]] std::vector<Candidate> full_disks(const Given& given, const Times& times,
                                                const std::vector<Failure>& failures);

// `with_shapes`: the candidate is likely enough to be tried, so it gets all its shapes.
[[nodiscard]] Candidate call_candidate(const Given& given, const Times& times, const Failure& failure, bool with_shapes,
                                       Ids& ids);

}  // namespace rose::diagnose
