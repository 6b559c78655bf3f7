// The cgroups of targets.
#pragma once

#include <cstdint>

#include "kernel/cgroup2.h"
#include "kernel/processes.h"

namespace rose::observe {

using kernel::Cgroup;
using kernel::cgroup_id;
using kernel::cgroup_of;
using kernel::find_cgroup;

// A cgroup, and the node to which it belongs or whose processes are in it, as an index into the targets.
struct NodeCgroup {
  Cgroup cgroup;
  std::uint32_t node = 0;
};

}  // namespace rose::observe
