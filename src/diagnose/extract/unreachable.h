// Partitions that no silence shows: a node that was partitioned before it had communicated for long, or that
// communicates rarely, leaves only calls to its peers that fail as unreachable. Private to diagnose.
#pragma once

#include <vector>

#include "diagnose/extract/causes.h"
#include "diagnose/extract/facts.h"
#include "diagnose/network.h"

namespace rose::diagnose {

// A call between two nodes.
struct Contact {
  const Event* event = nullptr;
  int from = -1;
  int to = -1;
  double plain = 0;  // how clearly its error indicates a partition; 0: they did reach each other
  bool out = false;  // only outgoing traffic is dropped; incoming may still arrive
};

// In their order; without those that also fail like that in fault-free runs.
[[nodiscard]] std::vector<Contact> contacts(const Given& given);
// Unreachable calls as silences: from clear errors, or else from ambiguous ones; not where something else explains
// them.
[[nodiscard]] std::vector<Silence> unreachable(const Given& given, const Times& times,
                                               const std::vector<Contact>& contacts, const Causes& causes,
                                               bool clearly);
// Whether calls alone, without a silence, are sufficient evidence for the partition.
[[nodiscard]] bool is_sufficient(const Partition& partition);

}  // namespace rose::diagnose
