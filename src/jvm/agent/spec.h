// What rose asks of one node's JVMs: a text file, read once when a JVM begins. Written by jvm/session.cc. Private to the agent.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "jvm/names.h"

namespace rose::jvm {

// Where in the methods of a name.
enum class Where { entry, offset, line };

// An exception that is thrown when the kernel's program says so.
struct Throw {
  std::uint32_t entry = 0;
  std::string class_name;  // "java/io/IOException"
  std::string message;
};

struct PlaceSpec {
  std::uint32_t entry = 0;  // what the kernel's program is told
  Where where = Where::entry;
  std::int64_t number = 0;  // the offset or line
  const Throw* thrown = nullptr;
  NamePattern pattern;
  bool method_seen = false;  // a class had such a method
  bool placed = false;       // ... and the place in it
  bool told = false;         // it was found somewhere, and rose was told so
};

struct Spec {
  std::string state;  // folder
  std::vector<PlaceSpec*> places;
  bool damaged = false;
};

[[nodiscard]] Spec parse_spec(std::string_view text);

}  // namespace rose::jvm
