// Decides when a flight recorder writes its window: the delay after a trigger and the minimum interval. Pure: the
// caller supplies the clock.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace rose::observe {

enum class TriggerKind { signal, control, oracle, crash, log, together, end };

// Why a dump is written.
struct Cause {
  TriggerKind kind = TriggerKind::end;
  std::string what;  // "n1: process 41 was killed by SIGSEGV"; may be empty

  [[nodiscard]] std::string text() const;  // "crash: n1: process 41 ..."
};
[[nodiscard]] std::string_view trigger_word(TriggerKind kind);  // "crash"
// True if the user requested the dump; requests are not limited in frequency.
[[nodiscard]] inline bool on_request(TriggerKind kind) {
  return kind == TriggerKind::signal || kind == TriggerKind::control || kind == TriggerKind::end;
}

class DumpPlan {
 public:
  DumpPlan(std::int64_t after_ns, std::int64_t cooldown_ns) : after_ns_(after_ns), cooldown_ns_(cooldown_ns) {}

  // `planned`: a dump will be written; `joined`: a dump that is already planned will also serve this trigger;
  // `cooling`: the last automatic dump was too recent.
  enum class Answer { planned, joined, cooling };
  Answer trigger(Cause cause, std::int64_t now);

  // Removes and returns a planned dump that is due; nothing if there is none.
  [[nodiscard]] std::optional<Cause> due(std::int64_t now);
  // Call this if writing failed. The dump is due again after one second, then after twice as long each time, up to a
  // minute. Returns the delay in nanoseconds.
  std::int64_t failed(Cause cause, std::int64_t now);
  void succeeded() { retry_ns_ = kFirstRetry; }
  [[nodiscard]] std::optional<std::int64_t> next_ns() const;
  // The reason of a planned dump that is not due yet. When the recorder ends, the last dump is written for this reason.
  [[nodiscard]] std::optional<Cause> pending() const;

  // The number of triggers without their own dump: left_out() returns the total, and take_left_out() the number since
  // its last call.
  [[nodiscard]] std::uint64_t left_out() const { return left_out_; }
  [[nodiscard]] std::uint64_t take_left_out();

 private:
  static constexpr std::int64_t kFirstRetry = 1'000'000'000, kLastRetry = 60'000'000'000;
  struct Planned {
    Cause cause;
    std::int64_t at_ns = 0;
  };
  std::int64_t after_ns_, cooldown_ns_;
  std::vector<Planned> planned_;  // at most one requested and one automatic dump
  std::int64_t retry_ns_ = kFirstRetry;
  std::optional<std::int64_t> last_ns_;
  std::uint64_t left_out_ = 0, reported_left_out_ = 0;
};

// Interprets the exit statuses of an oracle that is run repeatedly. After a hit, the oracle must report "no" once
// before another hit counts.
class OracleAnswers {
 public:
  enum class Meaning { hit, nothing, unclear };
  Meaning take(std::optional<int> exit_status);  // no status: it was killed or timed out

  std::uint64_t asked = 0, hits = 0, unclear = 0;

 private:
  bool armed_ = true;
};

}  // namespace rose::observe
