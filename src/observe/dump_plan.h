// When a flight recorder writes its window: what triggers, how long after, and not too often. Pure: the clock is the
// caller's.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace rose::observe {

enum class TriggerKind { signal, control, oracle, crash, log, together, end };

// Why a dump was written.
struct Cause {
  TriggerKind kind = TriggerKind::end;
  std::string what;  // "n1: process 41 was killed by SIGSEGV"; may be empty

  [[nodiscard]] std::string text() const;  // "crash: n1: process 41 ..."
};
[[nodiscard]] std::string_view trigger_word(TriggerKind kind);  // "crash"
// Somebody asked for it: never too often.
[[nodiscard]] inline bool on_request(TriggerKind kind) {
  return kind == TriggerKind::signal || kind == TriggerKind::control || kind == TriggerKind::end;
}

class DumpPlan {
 public:
  DumpPlan(std::int64_t after_ns, std::int64_t cooldown_ns) : after_ns_(after_ns), cooldown_ns_(cooldown_ns) {}

  // `planned`: there will be a dump for it; `joined`: the one that is planned already will hold it too;
  // `cooling`: the last one that came by itself was not long ago.
  enum class Answer { planned, joined, cooling };
  Answer trigger(Cause cause, std::int64_t now);

  // The next dump whose time has come.
  [[nodiscard]] std::optional<Cause> due(std::int64_t now);
  // It could not be written, so it is due again: after a second, then twice as long each time, up to a minute. Returns
  // how long, in nanoseconds.
  std::int64_t failed(Cause cause, std::int64_t now);
  void succeeded() { retry_ns_ = kFirstRetry; }
  [[nodiscard]] std::optional<std::int64_t> next_ns() const;
  // What is planned and not yet due: whoever ends before writes it with the last dump.
  [[nodiscard]] std::optional<Cause> pending() const;

  // Triggers that made no dump of their own, and how many of them since last asked.
  [[nodiscard]] std::uint64_t left_out() const { return left_out_; }
  [[nodiscard]] std::uint64_t take_left_out();

 private:
  static constexpr std::int64_t kFirstRetry = 1'000'000'000, kLastRetry = 60'000'000'000;
  struct Planned {
    Cause cause;
    std::int64_t at_ns = 0;
  };
  std::int64_t after_ns_, cooldown_ns_;
  std::vector<Planned> planned_;  // at most one on request and one that came by itself
  std::int64_t retry_ns_ = kFirstRetry;
  std::optional<std::int64_t> last_ns_;
  std::uint64_t left_out_ = 0, told_ = 0;
};

// What an oracle's answers mean, one after the other: it must say no between two hits.
class OracleAnswers {
 public:
  enum class Meaning { hit, nothing, unclear };
  Meaning take(std::optional<int> exit_status);  // none: it could not tell (a signal, a timeout)

  std::uint64_t asked = 0, hits = 0, unclear = 0;

 private:
  bool armed_ = true;
};

}  // namespace rose::observe
