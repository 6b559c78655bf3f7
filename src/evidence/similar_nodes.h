// Finds the node of the deployment that a production host corresponds to by comparing its behaviour with the profile
// of each node: the calls that it makes and their targets, its connections to and from other hosts, and the
// functions that it enters. Used for hosts that neither a name nor an address identifies.
#pragma once

#include <string>
#include <vector>

#include "evidence/evidence.h"

namespace rose::evidence {

struct SimilarNode {
  std::string host;  // its name in the dumps
  int node = -1;     // index into the configuration's nodes
  // the share of the host's behaviour that the node's profile contains; what few nodes do has more weight
  double share = 0;
  std::vector<int> replicas;  // all nodes that match equally well, `node` included
};

// Matches `hosts` to nodes; hosts that match no node are left out. `taken`: by node, whether another host corresponds
// to it already. If several nodes are equally similar to a host, it gets the one that has the fewest hosts so far.
// Hosts with the latest faults are matched first. If there are more such hosts than nodes, several hosts correspond to
// one node.
[[nodiscard]] std::vector<SimilarNode> find_similar_nodes(const Evidence& inputs, const std::vector<std::string>& hosts,
                                                          const std::vector<bool>& taken);

}  // namespace rose::evidence
