// Finds connections that a node began and the other node never accepted. Programs give up such attempts by timers of
// their own, so no call fails, and a pair of nodes that connects anew for each attempt is on no connection silent for
// long.
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

// `begun`: connects in progress between nodes, in any order; `contacts`: what contacts() has found so far, from which
// the accepts are used. Returns the begun ones that remained unanswered, as contacts that failed.
//
// Assumption: if tracers record the connects of one node and the accepts of the other one, an attempt without an accept
// did not arrive, or its answer did not; an end or pause of the other node is a cause of its own and explains it. Only
// attempts at services that were open count: those at which an earlier attempt of the node was accepted, and those for
// which the other node listened and had accepted somebody. And one of the two must accept the other again later: a
// server whose thread for connections has ended never does, and a partition that has not healed is a silence sooner or
// later. Its dump must go on after the attempt. A server accepts in any order, so each accept is matched with the
// latest attempt before it.
[[nodiscard]] std::vector<Contact> unanswered(std::vector<Contact> begun, const std::vector<Contact>& contacts,
                                              const Services& services);

}  // namespace rose::evidence
