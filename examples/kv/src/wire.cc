#include "wire.h"

namespace kv {

std::string VoteRequest::encode() const {
  Writer out;
  out.u64(term);
  out.u32(static_cast<std::uint32_t>(candidate));
  out.u64(last_index);
  out.u64(last_term);
  return out.take();
}

std::optional<VoteRequest> VoteRequest::decode(std::string_view bytes) {
  Reader in(bytes);
  VoteRequest result;
  result.term = in.u64();
  result.candidate = static_cast<int>(in.u32());
  result.last_index = in.u64();
  result.last_term = in.u64();
  if (!in.good()) return std::nullopt;
  return result;
}

std::string AppendRequest::encode() const {
  Writer out;
  out.u64(term);
  out.u32(static_cast<std::uint32_t>(leader));
  out.u64(previous_index);
  out.u64(previous_term);
  out.u64(commit);
  out.u32(static_cast<std::uint32_t>(entries.size()));
  for (const Entry& entry : entries) {
    out.u64(entry.index);
    out.u64(entry.term);
    out.string(entry.command);
  }
  return out.take();
}

std::optional<AppendRequest> AppendRequest::decode(std::string_view bytes) {
  Reader in(bytes);
  AppendRequest result;
  result.term = in.u64();
  result.leader = static_cast<int>(in.u32());
  result.previous_index = in.u64();
  result.previous_term = in.u64();
  result.commit = in.u64();
  const std::uint32_t count = in.u32();
  for (std::uint32_t i = 0; i < count && in.good(); ++i) {
    Entry entry;
    entry.index = in.u64();
    entry.term = in.u64();
    entry.command = in.string();
    if (entry.index != result.previous_index + 1 + i) return std::nullopt;
    result.entries.push_back(std::move(entry));
  }
  if (!in.good()) return std::nullopt;
  return result;
}

std::string SnapshotRequest::encode() const {
  Writer out;
  out.u64(term);
  out.u32(static_cast<std::uint32_t>(leader));
  out.string(snapshot);
  return out.take();
}

std::optional<SnapshotRequest> SnapshotRequest::decode(std::string_view bytes) {
  Reader in(bytes);
  SnapshotRequest result;
  result.term = in.u64();
  result.leader = static_cast<int>(in.u32());
  result.snapshot = in.string();
  if (!in.good()) return std::nullopt;
  return result;
}

std::string Reply::encode() const {
  Writer out;
  out.u64(term);
  out.u8(static_cast<std::uint8_t>((ok ? 1 : 0) | (wants_snapshot ? 2 : 0)));
  out.u64(match);
  return out.take();
}

std::optional<Reply> Reply::decode(std::string_view bytes) {
  Reader in(bytes);
  Reply result;
  result.term = in.u64();
  const std::uint8_t flags = in.u8();
  result.ok = (flags & 1) != 0;
  result.wants_snapshot = (flags & 2) != 0;
  result.match = in.u64();
  if (!in.good()) return std::nullopt;
  return result;
}

}  // namespace kv
