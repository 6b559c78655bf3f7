// Collects what agents report about the calls in watched methods, over many runs. Thread-safe.
#pragma once

#include <filesystem>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "jvm/call_sites.h"

namespace rose::jvm {

class CodeBook {
 public:
  // Reads the code files of the node's JVMs in the folder (jvm/session.h). The node can write these files, so their
  // content is not trusted.
  void learn(const std::string& node, const std::filesystem::path& folder);
  void learn_text(const std::string& node, std::string_view text);
  // Everything that is known, by node, in the form that learn_text() reads.
  [[nodiscard]] std::map<std::string, std::string> texts() const;

  struct Place {
    CallSite site;
    bool syscall = false;  // the called method makes a system call, directly or through methods that are known here
  };
  // The calls in the method with this name; empty if no run has reported it.
  [[nodiscard]] std::vector<Place> places(const std::string& node, const std::string& method) const;
  [[nodiscard]] bool contains(const std::string& node, const std::string& method) const;

 private:
  using Methods = std::map<std::string, std::vector<CallSite>, std::less<>>;
  [[nodiscard]] static bool reaches_system(const Methods& methods, const std::string& callee, int depth);
  mutable std::mutex mutex_;
  std::map<std::string, Methods> nodes_;
};

// True for a method of the JDK that makes system calls: "java.io.FileOutputStream.write".
[[nodiscard]] bool calls_system(std::string_view method);

}  // namespace rose::jvm
