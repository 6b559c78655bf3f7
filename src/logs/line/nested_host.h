// Finds the host that wrote a line in the JSON objects that collectors add.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "logs/line/json_line.h"

namespace rose::logs {

// The fields that name the host or pod which wrote a line, the most specific first. "host" may also name a peer, so it
// is used only in objects that describe the origin of a line.
inline constexpr std::array kHostNames = std::to_array<std::string_view>(
    {"pod_name", "pod", "podName", "k8s.pod.name", "kubernetes.pod_name", "kubernetes.pod.name", "hostname",
     "host.name", "node_name", "host", "nodename", "instance", "instance_id", "container_name", "container",
     "logStreamName", "service"});

// The host, pod or service that a JSON object names, in the object itself or in nested objects
// ({"kubernetes":{"pod_name":..}}, {"resource":{"labels":{"pod_name":..}}}); "" if it names none. `depth`: how deep
// nested objects are searched. Named::inside: search only nested objects, because a top-level member such as "host" may
// name a peer.
enum class Named { anywhere, inside };
[[nodiscard]] std::string nested_host(const std::vector<JsonMember>& members, Named named = Named::anywhere,
                                      int depth = 3);

}  // namespace rose::logs
