// Which node of the deployment a host of production plays, by what it does: the calls it makes, on what, whether to
// another host and which of them come to it, and the functions it enters, compared with what the profile knows of each
// node. For hosts that no name and no address tells. Private to diagnose.
#pragma once

#include <string>
#include <vector>

#include "diagnose/diagnose.h"

namespace rose::diagnose {

struct Alike {
  std::string host;  // as the dumps name it
  int node = -1;     // index into the configuration's nodes
  double share = 0;  // share of what the host did that this node does as well, weighted by how few nodes do it
  std::vector<int>
      like;  // the nodes that do as much of it, itself among them: replicas, and which one is meant does not show
};

// The `hosts` that certainly play a node. `taken`: nodes that other hosts have already. Replicas are assigned one by
// one, to the hosts with the latest faults first; when there are more hosts than replicas, several play one.
[[nodiscard]] std::vector<Alike> find_alike(const Inputs& inputs, const std::vector<std::string>& hosts,
                                            const std::vector<bool>& taken);

}  // namespace rose::diagnose
