// What agents told of the code of watched methods: where they call, and what. Of many runs, from several threads.
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
  // Reads what the node's JVMs left in the folder (jvm/session.h). The files are the node's own: nothing in them is
  // trusted.
  void learn(const std::string& node, const std::filesystem::path& folder);
  void learn_text(const std::string& node, std::string_view text);
  // All that is known, by node, as learn_text() reads it.
  [[nodiscard]] std::map<std::string, std::string> texts() const;

  struct Place {
    CallSite site;
    bool syscall = false;  // it asks the operating system, itself or through methods that are known here
  };
  // Of the method with this name; nothing when no run has told of it.
  [[nodiscard]] std::vector<Place> places(const std::string& node, const std::string& method) const;
  [[nodiscard]] bool knows(const std::string& node, const std::string& method) const;

 private:
  using Methods = std::map<std::string, std::vector<CallSite>, std::less<>>;
  [[nodiscard]] static bool reaches_system(const Methods& methods, const std::string& callee, int depth);
  mutable std::mutex mutex_;
  std::map<std::string, Methods> nodes_;
};

// A method of the JDK's that makes system calls: "java.io.FileOutputStream.write".
[[nodiscard]] bool calls_system(std::string_view method);

}  // namespace rose::jvm
