// Java's stack traces in messages: which exceptions, of what cause, and where they came from. Knows the forms that the
// JVM, log4j, logback and java.util.logging write; what is none of them stays unsaid. Pure; bounded by the numbers
// below.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace rose::logs {

inline constexpr std::size_t kMostTraces = 4;           // of one message
inline constexpr std::size_t kMostCauses = 16;          // of one trace
inline constexpr std::size_t kMostFrames = 256;         // of one exception, the innermost
inline constexpr std::size_t kLongestThrownText = 300;  // bytes of an exception's own message

struct Frame {
  std::string class_name;  // "org.x.Store$Reader", without module and class loader
  std::string method;      // "read", "<init>", "lambda$run$0"
  std::string file;        // "Store.java"; "" unknown
  std::uint32_t line = 0;  // 0 unknown
  bool generated = false;  // at run time: no class file has this method

  friend bool operator==(const Frame&, const Frame&) = default;
};

struct Thrown {
  std::string class_name;     // "java.io.IOException"
  std::string message;        // one line; "" none
  std::vector<Frame> frames;  // the innermost first
  // The number of frames, at the end, that this exception shares with the one that it became: it was caught inside of
  // these.
  std::size_t common = 0;
  // A peer threw it, and sent it along in its answer (Hadoop's RemoteException): the frames are that one's.
  bool elsewhere = false;
};

// As they were thrown last: each is the one that the next one caused, the root cause stands last. Suppressed ones are
// left out.
using StackTrace = std::vector<Thrown>;

[[nodiscard]] std::vector<StackTrace> read_traces(std::string_view text);

// "\tat java.base/java.io.FileInputStream.open0(Native Method)", "at app//org.x.Y.z(Y.java:12) ~[y.jar:1.0]".
[[nodiscard]] bool read_frame(std::string_view line, Frame& frame);

// How an exception's class reads: what is to be made of one.
enum class ThrownKind : std::uint8_t {
  outside,   // something outside the program: a disk, a format, a time that ran out
  network,   // a connection that ended: usually caused by the other side
  stopping,  // of threads that are asked to end
  program,   // the program's own mistake: what comes of a cause, hardly the cause
};
[[nodiscard]] ThrownKind kind_of(std::string_view class_name);

}  // namespace rose::logs
