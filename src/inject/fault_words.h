// Describes in words what a fault does.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "inject/plan.h"
#include "inject/programs.h"

namespace rose::inject {

// What happens to an affected thread: "write(/data/log) fails with ENOSPC", "waits at the entry of f". `call`: the call
// at which the fault fired; "" if there is none.
[[nodiscard]] std::string what_happens(const Plan& plan, std::size_t chain, const std::string& call);
// "1 process", "3 processes"
[[nodiscard]] std::string processes_text(std::uint64_t count);
// True if the bad link lost, duplicated or corrupted no packet, and delayed none noticeably.
[[nodiscard]] bool is_unharmed(const Programs::Carried& carried);
// For example "of 40 packets 12 held back, 3 lost".
[[nodiscard]] std::string link_detail(const Programs::Carried& carried);

}  // namespace rose::inject
