// Code shared by faults of disks: which file systems they concern. Crashes with power loss and slow disks need separate
// disks (deploy/disk.h).
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "config/config.h"
#include "schedule/schedule.h"

namespace rose::inject {

// Checks the fault's `path`: only containers have folders of their own at absolute paths.
[[nodiscard]] Result<void> check_folder(const schedule::Fault& fault, const config::Node& node);
// "n1", "n1/data", "/data of n1"
[[nodiscard]] std::string place_words(const std::string& node, const std::string& folder);

// What to append where a fault of the disks of a container changed nothing; "" if its `path` says what it concerns.
[[nodiscard]] std::string elsewhere_words(bool container, const schedule::Fault& fault);

// Checks that the fault's folder can have a separate disk, given the rest of the schedule. `otherwise`: an alternative
// for the message.
[[nodiscard]] Result<void> check_own_disk(const schedule::Schedule& schedule, const schedule::Fault& fault,
                                          const config::Node& node, std::string_view otherwise);

}  // namespace rose::inject
