// Helpers for the tests of binaries: a folder that is removed when the test ends, and a function that runs a program
// until it ends.
#pragma once

#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "folder.h"

namespace rose::symbols::test {

using rose::test::Folder;

inline void run(std::vector<std::string> arguments) {
  CAPTURE(arguments);
  std::vector<char*> argv;
  for (std::string& argument : arguments) argv.push_back(argument.data());
  argv.push_back(nullptr);
  pid_t pid = 0;
  REQUIRE(::posix_spawnp(&pid, argv[0], nullptr, nullptr, argv.data(), ::environ) == 0);
  int status = 0;
  REQUIRE(::waitpid(pid, &status, 0) == pid);
  REQUIRE(status == 0);
}

}  // namespace rose::symbols::test
