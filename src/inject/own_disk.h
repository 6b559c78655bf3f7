// Code shared by crashes with power loss and slow disks: a separate disk (deploy/disk.h) for a node's folder.
#pragma once

#include <string_view>

#include "base/result.h"
#include "config/config.h"
#include "schedule/schedule.h"

namespace rose::inject {

// Checks that the node's folder can have a separate disk, given the rest of the schedule. `otherwise`: an alternative
// for the message.
[[nodiscard]] Result<void> check_own_disk(const schedule::Schedule& schedule, const schedule::Fault& fault,
                                          const config::Node& node, std::string_view otherwise);

}  // namespace rose::inject
