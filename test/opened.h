// Detects whether a file was opened. Opening a device or a pipe has effects, so some files must never be opened.
#pragma once

#include <sys/inotify.h>

#include <array>
#include <catch2/catch.hpp>
#include <filesystem>

#include "base/fd.h"

namespace rose::test {

class Opened {
 public:
  explicit Opened(const std::filesystem::path& file) : events_(::inotify_init1(IN_NONBLOCK | IN_CLOEXEC)) {
    REQUIRE(::inotify_add_watch(events_.get(), file.c_str(), IN_OPEN) >= 0);
  }
  // True if the file was opened since the last call.
  [[nodiscard]] bool yes() const {
    std::array<char, 4096> events{};
    return ::read(events_.get(), events.data(), events.size()) > 0;
  }

 private:
  Fd events_;
};

}  // namespace rose::test
