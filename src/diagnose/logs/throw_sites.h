// Where an exception that a log tells of can be thrown in the test deployment: the places in the node's own methods
// from which it looks to its callers as it did in production. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "config/config.h"
#include "logs/thrown.h"

namespace rose::diagnose {

struct ThrowSite {
  std::string throws;                 // "java.io.IOException"
  std::string message;                // as it was; "" none
  std::string function;               // "org.x.Store.read"
  std::optional<std::uint64_t> line;  // at the first call on it; else at the method's entry
  std::string frame;                  // of the trace, for people: "org.x.Store.read(Store.java:50)"
};

// The likeliest first; none: the node runs no JVM, or no method of the trace is one of a program's. `elsewhere`: of
// what a peer of the one that wrote the log threw and sent it, `node` being that peer.
[[nodiscard]] std::vector<ThrowSite> throw_sites(const logs::StackTrace& trace, const config::Node& node,
                                                 bool elsewhere = false);

}  // namespace rose::diagnose
