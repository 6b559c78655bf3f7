// Reads the stacks that Python processes store (python/stacks_layout.h). A process can write anything there, so the
// content may be arbitrary.
#include <catch2/catch.hpp>
#include <cstring>
#include <random>

#include "python/session.h"
#include "python/stacks_layout.h"

namespace rose::python {
namespace {

StacksFile valid() {
  StacksFile file{};
  std::memcpy(file.magic, kStacksMagic, sizeof kStacksMagic);
  file.functions = 3;
  std::strcpy(file.function[1].name, "spool.main");
  std::strcpy(file.function[1].file, "/srv/spool.py");
  file.function[1].line = 80;
  std::strcpy(file.function[2].name, "spool.Spool.compact");
  std::strcpy(file.function[2].file, "/srv/spool.py");
  file.function[2].line = 46;
  StackThread& thread = file.thread[4711 % kThreads];
  thread.tid = 4711;
  thread.depth = 2;
  thread.functions[0] = 1;
  thread.functions[1] = 2;
  return file;
}
std::string_view bytes_of(const StacksFile& file) { return {reinterpret_cast<const char*>(&file), sizeof file}; }

}  // namespace

TEST_CASE("the stack of a Python thread is read innermost first") {
  const auto file = std::make_unique<StacksFile>(valid());
  const auto frames = parse_stack(bytes_of(*file), 4711);
  REQUIRE(frames.size() == 2);
  CHECK(frames[0].function == "spool.Spool.compact");
  CHECK(frames[0].file == "/srv/spool.py");
  CHECK(frames[0].line == 46);
  CHECK(frames[1].function == "spool.main");
  // this thread uses the same slot, but the slot contains the stack of another one
  CHECK(parse_stack(bytes_of(*file), 4711 + kThreads).empty());
  CHECK(parse_stack(bytes_of(*file).substr(1), 4711).empty());
  CHECK(parse_stack("", 4711).empty());
}

TEST_CASE("a damaged file of stacks is read safely") {
  const auto file = std::make_unique<StacksFile>(valid());
  StackThread& thread = file->thread[4711 % kThreads];
  thread.depth = 0xffffffff;
  for (std::uint32_t& function : thread.functions) function = 0xffffffff;
  CHECK(parse_stack(bytes_of(*file), 4711).empty());
  thread.functions[3] = kMostFunctions - 1;
  // the texts of this function have no terminating NUL
  std::memset(&file->function[kMostFunctions - 1], '\x1b', sizeof(StackFunction));
  const auto frames = parse_stack(bytes_of(*file), 4711);
  REQUIRE(frames.size() == 1);
  CHECK(frames[0].function.find('\x1b') == std::string::npos);
  CHECK(frames[0].line >= 0);
  std::minstd_rand random(7);
  for (int round = 0; round < 20; ++round) {
    for (std::size_t i = sizeof kStacksMagic; i < sizeof(StacksFile); i += 4) {
      const auto word = static_cast<std::uint32_t>(random());
      std::memcpy(reinterpret_cast<char*>(file.get()) + i, &word, sizeof word);
    }
    thread.tid = 4711;
    CHECK(parse_stack(bytes_of(*file), 4711).size() <= kFrames);
  }
}

TEST_CASE("CPython interpreters are recognised by name") {
  for (const char* name : {"/usr/bin/python3.11", "python", "/opt/python3.13/bin/python3"}) CHECK(is_python(name));
  for (const char* name : {"/usr/bin/pypy3", "/usr/bin/python3.11-config", "python3-wrapper", "/srv/python/run", ""})
    CHECK_FALSE(is_python(name));
}

}  // namespace rose::python
