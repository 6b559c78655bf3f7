// Finds the places at which a run of the test deployment can throw an exception that a log reports. They are in the
// node's own methods, so that the callers of these methods see the same exception as in production. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "config/config.h"
#include "logs/thrown.h"

namespace rose::evidence {

struct ThrowSite {
  std::string throws;                 // "java.io.IOException"
  std::string message;                // the exception's own message; "" if it has none
  std::string function;               // "org.x.Store.read"
  std::optional<std::uint64_t> line;  // throw at the first call on this line; without a line, at the method's entry
  std::string frame;                  // the stack frame as it is printed: "org.x.Store.read(Store.java:50)"
};

// The most likely site first. Empty if the node runs no JVM, or if no method in the trace belongs to one of the node's
// programs. `elsewhere`: use the exceptions that a peer threw and sent to the node that wrote the log; `node` is then
// that peer.
[[nodiscard]] std::vector<ThrowSite> throw_sites(const logs::StackTrace& trace, const config::Node& node,
                                                 bool elsewhere = false);

}  // namespace rose::evidence
