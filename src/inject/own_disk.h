// Code shared by disk faults: checks their folders and names them in messages. Crashes with power loss and slow disks
// need separate disks (deploy/disk.h).
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "config/config.h"
#include "schedule/schedule.h"

namespace rose::inject {

// Checks the fault's `path`, which may be absolute only for a node in a container.
[[nodiscard]] Result<void> check_folder(const schedule::Fault& fault, const config::Node& node);
// "n1", "n1/data", "/data of n1"
[[nodiscard]] std::string place_words(const std::string& node, const std::string& folder);

// A text to append to the message that a disk fault had no effect. It explains that in a container such a fault affects
// only volumes. "" if the node is in no container or the fault has a `path`.
[[nodiscard]] std::string elsewhere_words(bool container, const schedule::Fault& fault);

// Checks that the fault's folder can have a separate disk, given the rest of the schedule. `otherwise`: an alternative
// that the error message suggests.
[[nodiscard]] Result<void> check_own_disk(const schedule::Schedule& schedule, const schedule::Fault& fault,
                                          const config::Node& node, std::string_view otherwise);

}  // namespace rose::inject
