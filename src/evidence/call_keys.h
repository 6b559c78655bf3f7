// Keys by which failed_calls.h groups failed calls and counts successful ones.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "evidence/observation.h"

namespace rose::evidence {

// Failed calls with equal keys differ only in time. `pattern` and `peer` are the numbers that an Interner assigned to
// the pattern of the path and to the text of the peer.
struct ScfKey {
  std::int32_t node = 0;
  std::int16_t syscall = 0;
  std::int16_t err = 0;
  std::uint32_t pattern = 0;
  std::uint32_t peer = 0;
  bool explained = false;
  bool foreign = false;
  bool operator==(const ScfKey&) const = default;
};

struct ScfHash {
  std::size_t operator()(const ScfKey& key) const {
    std::uint64_t h = (static_cast<std::uint64_t>(static_cast<std::uint32_t>(key.node)) << 32) ^
                      (static_cast<std::uint64_t>(static_cast<std::uint16_t>(key.syscall)) << 17) ^
                      (static_cast<std::uint64_t>(static_cast<std::uint16_t>(key.err)) << 1) ^ (key.explained ? 1 : 0) ^
                      (key.foreign ? std::uint64_t{1} << 63 : 0);
    h ^= ((static_cast<std::uint64_t>(key.pattern) << 32) | key.peer) * 0x9e3779b97f4a7c15ULL;
    h ^= h >> 29;
    return static_cast<std::size_t>(h * 0xbf58476d1ce4e5b9ULL);
  }
};

// A kind of successful call: node, system call, path pattern, process, descriptor. A call of accept has no path (0);
// process and descriptor identify its listening socket. For other calls, process and descriptor are 0.
using SameCall = std::tuple<int, std::int16_t, std::uint32_t, std::int32_t, std::int32_t>;

struct SameCallHash {
  std::size_t operator()(const SameCall& c) const {
    const auto [node, call, pattern, pid, fd] = c;
    std::uint64_t h =
        (static_cast<std::uint64_t>(static_cast<std::uint32_t>(node)) << 32 | pattern) * 0x9e3779b97f4a7c15ULL;
    h ^= (static_cast<std::uint64_t>(static_cast<std::uint32_t>(pid)) << 32 | static_cast<std::uint32_t>(fd)) +
         static_cast<std::uint16_t>(call);
    h ^= h >> 29;
    return static_cast<std::size_t>(h * 0xbf58476d1ce4e5b9ULL);
  }
};

// The key by which successful calls of the same kind are counted; nullopt if they cannot be counted, because dumps do
// not contain all of them, or because the call has no path.
[[nodiscard]] std::optional<SameCall> same_call(int node, const trace::Event& event, std::string_view call,
                                                std::uint32_t pattern);

// Assigns numbers to strings. Equal strings of different dumps get the same number; "" gets 0.
class Interner {
 public:
  Interner() { id(""); }
  std::uint32_t id(std::string text) {
    const auto [it, fresh] = ids_.try_emplace(std::move(text), static_cast<std::uint32_t>(texts_.size()));
    if (fresh) texts_.push_back(&it->first);
    return it->second;
  }
  [[nodiscard]] const std::string& text(std::uint32_t id) const { return *texts_[id]; }

 private:
  std::unordered_map<std::string, std::uint32_t> ids_;
  std::vector<const std::string*> texts_;
};

}  // namespace rose::evidence
