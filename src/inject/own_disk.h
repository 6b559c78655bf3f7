// What crashes that lose and slow disks have in common: a disk of rose's own (deploy/disk.h) for a node's folder.
#pragma once

#include <string_view>

#include "base/result.h"
#include "config/config.h"
#include "schedule/schedule.h"

namespace rose::inject {

// May the node's folder have one, together with what else the schedule asks for? `otherwise`: what its author may do
// instead.
[[nodiscard]] Result<void> check_own_disk(const schedule::Schedule& schedule, const schedule::Fault& fault,
                                          const config::Node& node, std::string_view otherwise);

}  // namespace rose::inject
