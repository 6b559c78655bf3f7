// Partitions that no silence shows: a node that was partitioned before it had communicated for long, or that
// communicates rarely, leaves calls to its peers that fail as unreachable. Private to diagnose.
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
  double plain = 0;  // how plainly its error says that the network between was cut; 0: they did reach each other
  bool out = false;  // what is sent does not leave; what comes may still come
};

// In their order; without those that fail like that without faults, too.
[[nodiscard]] std::vector<Contact> contacts(const Given& given);
// As silences, of errors that say it plainly, or else of those that only may mean it; not where something else explains
// them.
[[nodiscard]] std::vector<Silence> unreachable(const Given& given, const Times& times,
                                               const std::vector<Contact>& contacts, const Causes& causes,
                                               bool plainly);
// Whether calls alone, without a silence, are enough to believe in it.
[[nodiscard]] bool believable(const Cut& cut);

}  // namespace rose::diagnose
