// The frames of a dump (dump.cc describes the format), without their content. A reader that receives a dump in pieces
// can tell early that the bytes are not a dump, or that they go on after its end.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "trace/block.h"

namespace rose::trace {

inline constexpr std::size_t kMostBlockBytes = std::size_t{1} << 24;  // before compression
// Deflate can compress 1000:1, so a small hostile file could demand gigabytes. Readers refuse blocks above this ratio,
// so that the memory for reading a file is proportional to its size. Writers store blocks above this ratio
// uncompressed.
inline constexpr std::size_t kMostRatio = 128;

// What is wrong with the header of a block, if anything. Its checksum is not examined.
[[nodiscard]] std::optional<std::string> header_fault(const BlockHeader& header);

// A reader needs this many bytes after those that DumpFrames takes to say what is wrong with them.
inline constexpr std::size_t kTellingBytes = 64;

class DumpFrames {
 public:
  // Takes the next bytes, and returns how many of them may be part of a dump. If that is not all of them, the dump is
  // complete, or no dump continues with the next byte; no more bytes may be given then.
  [[nodiscard]] std::size_t take(std::string_view bytes);
  [[nodiscard]] bool complete() const { return complete_; }

 private:
  std::string head_;          // the incomplete header of the file or of a block
  std::uint64_t inside_ = 0;  // bytes of the current block that are still to come
  bool began_ = false;        // the file's header is complete
  bool last_ = false;         // the current block is the last one
  bool complete_ = false;
};

}  // namespace rose::trace
