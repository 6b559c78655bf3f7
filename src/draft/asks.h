// Drafts the `ready` of nodes: commands that determine whether a system serves requests. They check not only that a
// port is open, but also, for example, that there is a leader, that members have joined, or that the data is available.
// The checks are for systems in containers, and use the programs in the usual images of these systems. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace rose::draft {

// A node's `ready` as TOML, for an image such as "docker.io/bitnami/etcd:3.5"; "" if rose does not know the system.
// `variable`: the node's name in variables; `port`: the client port, or 0; `ports`: all declared ports; `curl`: whether
// this machine has curl.
[[nodiscard]] std::string ready_of_image(std::string_view image, std::string_view variable, std::uint16_t port,
                                         const std::vector<std::uint16_t>& ports, bool curl);

inline constexpr const char* kAsksItself =
    "'ready' asks the system itself whether it serves; { tcp = PORT } does not need the image's programs.";

}  // namespace rose::draft
