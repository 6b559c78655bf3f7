#include "trace/frames.h"

#include <fmt/format.h>
#include <algorithm>
#include <cstring>

#include "trace/dump.h"

namespace rose::trace {
namespace {

constexpr std::size_t kFileHeader = 16;

}  // namespace

std::optional<std::string> header_fault(const BlockHeader& header) {
  if (header.kind != kMetaBlock && header.kind != kStringsBlock && header.kind != kEventsBlock &&
      header.kind != kDoneBlock)
    return fmt::format("no block of a known kind begins here (found {:#010x})", header.kind);
  if (header.raw > kMostBlockBytes)
    return fmt::format("a block claims {} bytes, the most is {}", header.raw, kMostBlockBytes);
  if (header.raw / kMostRatio > header.packed)
    return fmt::format("a block claims {} bytes from {} compressed ones", header.raw, header.packed);
  if (header.packed > header.raw + header.raw / 16 + 64)  // incompressible bytes need a little more than themselves
    return fmt::format("a block claims {} compressed bytes for {} bytes", header.packed, header.raw);
  return std::nullopt;
}

std::size_t DumpFrames::take(std::string_view bytes) {
  std::size_t taken = 0;
  while (taken < bytes.size() && !complete_) {
    if (inside_ > 0) {
      const auto skipped = std::min<std::uint64_t>(inside_, bytes.size() - taken);
      taken += static_cast<std::size_t>(skipped);
      inside_ -= skipped;
      complete_ = last_ && inside_ == 0;
      continue;
    }
    const std::size_t whole = began_ ? sizeof(BlockHeader) : kFileHeader;
    const std::string_view part = bytes.substr(taken, whole - head_.size());
    const std::size_t before = head_.size();
    head_ += part;
    if (!began_) {
      const std::size_t known = std::min(head_.size(), kDumpMagic.size());
      if (std::string_view(head_).substr(0, known) != kDumpMagic.substr(0, known)) return taken;
    }
    taken += part.size();
    if (head_.size() < whole) continue;
    if (began_) {
      BlockHeader header;
      std::memcpy(&header, head_.data(), sizeof header);
      if (header_fault(header)) return taken - (head_.size() - before);
      inside_ = header.packed;
      last_ = header.kind == kDoneBlock;
      complete_ = last_ && inside_ == 0;
    }
    began_ = true;
    head_.clear();
  }
  return taken;
}

}  // namespace rose::trace
