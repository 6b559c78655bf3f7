// Failed calls as extract_calls.cc brings them together and extract_call_faults.cc makes faults of them. Inside this room only.
#pragma once

#include <cstdint>
#include <string>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "diagnose/extractor.h"

namespace rose::diagnose {

struct ScfKey {
  std::int32_t node = 0;
  std::int16_t syscall = 0;
  std::int16_t err = 0;
  std::uint32_t pattern = 0;
  std::uint32_t peer = 0;
  bool explained = false;
  bool operator==(const ScfKey&) const = default;
};

struct ScfHash {
  std::size_t operator()(const ScfKey& key) const {
    std::uint64_t h = (static_cast<std::uint64_t>(static_cast<std::uint32_t>(key.node)) << 32) ^
                      (static_cast<std::uint64_t>(static_cast<std::uint16_t>(key.syscall)) << 17) ^
                      (static_cast<std::uint64_t>(static_cast<std::uint16_t>(key.err)) << 1) ^ (key.explained ? 1 : 0);
    h ^= ((static_cast<std::uint64_t>(key.pattern) << 32) | key.peer) * 0x9e3779b97f4a7c15ULL;
    h ^= h >> 29;
    return static_cast<std::size_t>(h * 0xbf58476d1ce4e5b9ULL);
  }
};

// Failed calls that are told apart by nothing but their time.
struct ScfGroup {
  ScfKey key;
  Peer peer;               // of key.peer
  const trace::Trace* trace = nullptr;
  const Event* first = nullptr;
  std::uint64_t count = 0;
  std::int64_t first_ts = 0;
  std::int64_t last_ts = 0;
  bool nameless = true;    // every event on an unlinked or cut path
  const Cause* cause = nullptr;
  std::vector<std::int64_t> times;  // of its first kMostNoted events
};

// A group that is not benign.
struct Failure {
  const ScfGroup* group = nullptr;
  std::string syscall;
  bool far_more = false;   // the profile has it, but far rarer
  double normal = 0;       // times a run
  int ordinariness = 0;
  bool recovered = false;
  bool newborn = false;    // on a file that was made only after the workload began
  std::string follows;     // what it always follows; "" nothing
  std::uint64_t nth = 0;   // of its node's calls of that kind since the node's start; 0: the dump does not tell

  [[nodiscard]] std::tuple<bool, bool, int, std::int64_t> order() const {
    return {group->key.explained || !follows.empty(), far_more, ordinariness, group->first_ts};
  }
};

// Strings as small numbers, over all dumps.
class Interner {
 public:
  std::uint32_t id(std::string text) {
    const auto [it, fresh] = ids_.try_emplace(std::move(text), static_cast<std::uint32_t>(texts_.size()));
    if (fresh) texts_.push_back(&it->first);
    return it->second;
  }
  const std::string& text(std::uint32_t id) const { return *texts_[id]; }

 private:
  std::unordered_map<std::string, std::uint32_t> ids_;
  std::vector<const std::string*> texts_;
};

}  // namespace rose::diagnose
