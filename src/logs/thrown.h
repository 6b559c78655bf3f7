// Parses Java stack traces in messages: the exceptions, their causes and their frames. Reads the forms that the JVM,
// log4j, logback and java.util.logging write, and ignores anything else. Pure; bounded by the limits below.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace rose::logs {

inline constexpr std::size_t kMostTraces = 4;           // traces of one message
inline constexpr std::size_t kMostCauses = 16;          // exceptions of one trace
inline constexpr std::size_t kMostFrames = 256;         // frames of one exception; only the innermost ones are kept
inline constexpr std::size_t kLongestThrownText = 300;  // bytes of the message of one exception

struct Frame {
  std::string class_name;  // "org.x.Store$Reader", without module and class loader
  std::string method;      // "read", "<init>", "lambda$run$0"
  std::string file;        // "Store.java"; "": unknown
  std::uint32_t line = 0;  // 0: unknown
  bool generated = false;  // generated at run time: no class file contains this method

  friend bool operator==(const Frame&, const Frame&) = default;
};

struct Thrown {
  std::string class_name;     // "java.io.IOException"
  std::string message;        // in one line; "": none
  std::vector<Frame> frames;  // innermost first
  // The number of outer frames that this exception shares with the exception that wrapped it. The exception was caught
  // in a frame inside of these, so the methods of the shared frames saw only the wrapper.
  std::size_t common = 0;
  // A peer threw the exception and sent it in its answer (Hadoop's RemoteException). The frames are then those of the
  // peer.
  bool elsewhere = false;
};

// A chain of exceptions. Each exception was caused by the next one, and the last one is the root cause. Suppressed
// exceptions are left out.
using StackTrace = std::vector<Thrown>;

[[nodiscard]] std::vector<StackTrace> read_traces(std::string_view text);

// Parses a frame such as "\tat java.base/java.io.FileInputStream.open0(Native Method)" or "at app//org.x.Y.z(Y.java:12)
// ~[y.jar:1.0]".
[[nodiscard]] bool read_frame(std::string_view line, Frame& frame);

// The kind of cause that the class of an exception indicates.
enum class ThrownKind : std::uint8_t {
  outside,   // something outside the program: a disk, a format, a timeout
  network,   // a connection ended: usually caused by the other side
  stopping,  // thrown in a thread that was asked to end
  program,   // a programming error: usually a consequence and not the cause
};
[[nodiscard]] ThrownKind kind_of(std::string_view class_name);

}  // namespace rose::logs
