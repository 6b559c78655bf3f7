// Collects what the nodes' JVMs reported about locations in methods: why a condition was not met or an exception not
// thrown.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "inject/plan.h"
#include "jvm/session.h"
#include "jvm/state.h"

namespace rose::inject {

class MethodReports {
 public:
  // Reads the current reports of the JVMs.
  void read(const Plan& plan, const jvm::Session& jvms);

  // Why no thread can have reached the location; "" if a JVM found the location, or if no reason is known.
  [[nodiscard]] std::string unreachable(std::uint32_t entry) const;
  // Why an exception was not thrown although it was due; "" if it was thrown.
  [[nodiscard]] std::string not_thrown(std::uint32_t entry) const;
  // The method in which the location was found; "" if it was not found.
  [[nodiscard]] std::string found_in(std::uint32_t entry) const;

 private:
  struct Node {
    std::string name;
    std::vector<std::uint32_t> entries;
    std::vector<jvm::JvmState> jvms;
  };
  std::vector<Node> nodes_;
};

}  // namespace rose::inject
