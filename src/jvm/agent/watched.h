// Methods whose entries are counted, or told one by one: chosen by name and source file as classes come, and let go of
// where they are hot (base/function_rates decides). Private to the agent.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/function_rates.h"
#include "jvm/agent/interface.h"
#include "jvm/agent/spec.h"
#include "jvm/agent/state.h"

namespace rose::jvm {

struct Place;

// One of them. Never freed: threads may be on their way to it.
struct Watched {
  std::size_t index = 0;
  const char* name = nullptr;
  StateRecord* record = nullptr;
  MethodId method = nullptr;
  Place* place = nullptr;  // its entry; under the lock; of an exception: none
  bool gaps = false;       // it was let go of at least once
};

// Under the agent's lock, but for entered().
class WatchedMethods {
 public:
  // After that, methods may be added.
  void begin(const WatchSpec& spec);
  [[nodiscard]] bool on() const { return spec_ != nullptr; }

  // Could a class of this name, from this source file ("": not known yet), have some?
  [[nodiscard]] bool may_be_in(std::string_view class_name, std::string_view source) const;
  // `display`: its name as records have it.
  [[nodiscard]] bool wants(const Method& method, std::string_view display) const;

  // One more, of what has no place in the code; nullptr: there are as many as there may be.
  [[nodiscard]] Watched* add(std::string_view display, State& state);
  // The one that stands for the method, made when there is none; nullptr: so.
  [[nodiscard]] Watched* of(MethodId method, std::string_view display, State& state);
  [[nodiscard]] bool is_held(const Watched& watched) const { return rates_->is_attached(watched.index); }
  void held(Watched& watched);

  // A thread enters it.
  void entered(const Watched& watched) const;

  // Which to let go of now, and which to watch again.
  struct Changes {
    std::vector<Watched*> gone, again;
  };
  [[nodiscard]] Changes look();

 private:
  void write_estimates(std::int64_t now);

  const WatchSpec* spec_ = nullptr;
  FunctionRates* rates_ = nullptr;
  std::vector<Watched*> all_;
  std::vector<std::uint64_t> counts_;
  std::vector<std::pair<MethodId, Watched*>> by_method_;  // sorted
  std::int64_t estimated_ns_ = 0;
  bool full_ = false;
};

}  // namespace rose::jvm
