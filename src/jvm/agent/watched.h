// Watches the entries of methods, which are counted or reported one by one. Methods are chosen by name and source file
// when their class is loaded. Hot methods are detached; base/function_rates decides which are hot. Private to the
// agent.
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

// A watched method, or an exception of one class that leaves a method. It is never freed, because threads may use it at
// any time.
struct Watched {
  std::size_t index = 0;
  const char* name = nullptr;
  StateRecord* record = nullptr;
  MethodId method = nullptr;
  Place* place = nullptr;  // the breakpoint at the method's entry, protected by the lock; null for an exception
  bool gaps = false;       // the method was detached at least once
};

// Call under the agent's lock, except for entered().
class WatchedMethods {
 public:
  // Call this first. It adds no methods.
  void begin(const WatchSpec& spec);
  [[nodiscard]] bool on() const { return spec_ != nullptr; }

  // True if a class with this name and this source file ("": not known yet) may contain methods to watch.
  [[nodiscard]] bool may_be_in(std::string_view class_name, std::string_view source) const;
  // `display`: the method's name as used in records.
  [[nodiscard]] bool wants(const Method& method, std::string_view display) const;

  // Adds a Watched that is not bound to the entry of a method, such as an exception that leaves a method. Returns
  // nullptr if there are too many already.
  [[nodiscard]] Watched* add(std::string_view display, State& state);
  // Returns the Watched of this method, and adds it if necessary. Returns nullptr if there are too many already.
  [[nodiscard]] Watched* of(MethodId method, std::string_view display, State& state);
  [[nodiscard]] bool is_held(const Watched& watched) const { return rates_->is_attached(watched.index); }
  void held(Watched& watched);

  // Call this when a thread enters the method.
  void entered(const Watched& watched) const;

  // The methods to detach now, and those to watch again.
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
