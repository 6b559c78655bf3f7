// Finds the node of the deployment that a production host corresponds to, by behaviour: the calls it makes and their
// targets, its connections to and from other hosts, and the functions it enters, compared with the profile of each
// node. Used for hosts that neither name nor address identifies. Private to diagnose.
#pragma once

#include <string>
#include <vector>

#include "diagnose/diagnose.h"

namespace rose::diagnose {

struct SimilarNode {
  std::string host;  // as the dumps name it
  int node = -1;     // index into the configuration's nodes
  double share = 0;  // share of what the host did that this node does as well, weighted by how few nodes do it
  std::vector<int>
      replicas;  // the nodes that do as much of it, including this one: replicas, which cannot be distinguished
};

// The `hosts` that certainly play a node. `taken`: nodes that other hosts have already. Replicas are assigned one by
// one, to the hosts with the latest faults first; when there are more hosts than replicas, several play one.
[[nodiscard]] std::vector<SimilarNode> find_similar_nodes(const Inputs& inputs, const std::vector<std::string>& hosts,
                                                          const std::vector<bool>& taken);

}  // namespace rose::diagnose
