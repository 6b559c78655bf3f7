// What the nodes' JVMs told of the places in their methods: why a condition was not met, or an exception not thrown.
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
  // Reads what the JVMs have told so far.
  void read(const Plan& plan, const jvm::Session& jvms);

  // Why nobody can have come by the place, on those of the nodes that have it; "" when nothing speaks against it.
  [[nodiscard]] std::string unreachable(std::uint32_t entry) const;
  // Why an exception was not thrown although its time had come; "" when it was.
  [[nodiscard]] std::string not_thrown(std::uint32_t entry) const;
  // The method that the place was found in, "" when it was not.
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
