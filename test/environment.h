// A variable of this process's environment, which is restored at the end of the scope.
#pragma once

#include <cstdlib>
#include <optional>
#include <string>
#include <utility>

namespace rose::test {

class Environment {
 public:
  Environment(std::string name, const std::string& value) : name_(std::move(name)) {
    if (const char* before = std::getenv(name_.c_str()); before != nullptr) before_ = before;
    ::setenv(name_.c_str(), value.c_str(), 1);
  }
  Environment(const Environment&) = delete;
  Environment& operator=(const Environment&) = delete;
  ~Environment() {
    if (before_) ::setenv(name_.c_str(), before_->c_str(), 1);
    else ::unsetenv(name_.c_str());
  }

 private:
  std::string name_;
  std::optional<std::string> before_;
};

}  // namespace rose::test
