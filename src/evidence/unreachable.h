// Finds partitions that no silence shows: if a node was partitioned before it had communicated for long, or
// communicates rarely, the dump only contains calls to its peers that failed as unreachable.
#pragma once

#include <vector>

#include "evidence/causes.h"
#include "evidence/facts.h"
#include "evidence/network.h"

namespace rose::evidence {

// A call from one node to another that failed as unreachable, that remained unanswered, or that succeeded.
struct Contact {
  const Observation* event = nullptr;
  int from = -1;
  int to = -1;
  double plain = 0;     // 0..1: how clearly the call's error indicates a partition; 0: the call succeeded
  bool out = false;     // only outgoing traffic is dropped; incoming may still arrive
  int port = 0;         // of a connect in progress: the port of the service
  bool unseen = false;  // a connect whose arrival the other node's tracer did not record
};

// The contacts of all dumps by time, without failures that also occur in fault-free runs.
[[nodiscard]] std::vector<Contact> contacts(const Given& given);
// Turns the failed calls that no cause explains into silences. If `clearly`, uses the calls with unambiguous errors,
// otherwise the calls with other errors.
[[nodiscard]] std::vector<Silence> unreachable(const Given& given, const Times& times,
                                               const std::vector<Contact>& contacts, const Causes& causes,
                                               bool clearly);
// True if the failed calls are sufficient evidence for the partition, although no silence shows it.
[[nodiscard]] bool is_sufficient(const Partition& partition);

}  // namespace rose::evidence
