// Finds connections that a node began and the other node never accepted. If the program gives up such an attempt by a
// timer of its own, no call fails. If it opens a new connection for each attempt, no connection is silent for long
// either. So neither failed calls nor silences show the problem.
#pragma once

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "evidence/unreachable.h"

namespace rose::evidence {

// What the dumps show of the nodes' services.
struct Services {
  std::map<std::pair<int, int>, std::int64_t> listening;  // by node and port: when the node began to listen there
  std::map<int, std::int64_t> last_seen;                  // by node: its last connect or accept, with any peer
};

// `begun`: connects in progress between nodes, in any order. `contacts`: what contacts() has found so far; only the
// accepts in it are used. Returns the connects that remained unanswered, as contacts that failed.
//
// Assumption: if tracers record the connects of one node and the accepts of the other node, an attempt without an
// accept did not arrive, or its answer did not arrive. (If the other node had ended or was paused, that is a cause of
// its own, which explains the attempt.) An attempt counts only under three conditions. First, the service was open: an
// earlier attempt of the node was accepted, or the other node listened and had accepted a connection. Second, one of
// the two nodes later accepts a connection of the other. This excludes a server that will never accept again, because
// its thread for connections has ended. It also excludes a partition that has not healed, which sooner or later appears
// as a silence anyway. Third, the dump of the other node continues after the attempt. A server may accept connections
// in any order, so each accept is matched with the latest attempt before it.
[[nodiscard]] std::vector<Contact> unanswered(std::vector<Contact> begun, const std::vector<Contact>& contacts,
                                              const Services& services);

}  // namespace rose::evidence
