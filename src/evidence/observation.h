// Observations: the one form of evidence. The readers of dumps and of logs both produce them. The stages that interpret
// them use what happened, when, and how it is known, but not which reader an observation came from.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "trace/event.h"

namespace rose::evidence {

// The source of the knowledge about a fault: the kernel recorded it, a message states it, or it is inferred from a gap,
// a silence, a restart or a failure that it caused.
enum class Known { seen, stated, inferred };
[[nodiscard]] std::string_view known_name(Known known);  // "seen"

// How an observation is known, and where it was found.
struct Origin {
  Known known = Known::seen;
  double reliability = 1;     // 0..1: how clearly the evidence states the observation; 1: the kernel recorded it
  std::string words{};        // for people: the message that states it, or the reason why it is assumed
  std::int64_t since_ns = 0;  // it happened between this time and its timestamp; 0: at its timestamp
  std::string by{};           // of a silence: the node whose log reports it; "": unknown
  bool assumed = false;       // no evidence mentions it; it is only a possible explanation
};

// What happened, in the terms of the kernel (trace/event.h), and how it is known.
struct Observation : trace::Event {
  Observation() = default;
  explicit Observation(const trace::Event& event) : trace::Event(event) {}

  [[nodiscard]] const Origin& how() const { return *origin_; }
  [[nodiscard]] bool seen() const { return origin_->known == Known::seen; }  // the kernel recorded it

 private:
  friend struct Source;
  static const Origin kRecorded;
  const Origin* origin_ = &kRecorded;  // belongs to the source
};

// The observations of one dump, or of all logs of an incident.
struct Source : trace::TraceBase {
  std::vector<Observation> observations;  // by time
  // True if the source contains everything that happened to its nodes in its time span, so that what it does not
  // contain did not happen. False for logs.
  bool complete = true;

  // States how an observation of this source is known. `origin` is kept as long as a copy of the source exists.
  void set_origin(Observation& observation, Origin origin);

 private:
  std::shared_ptr<std::deque<Origin>> origins_;
};

[[nodiscard]] Source of_dump(trace::Trace dump);

// As trace::node_names().
[[nodiscard]] std::vector<std::string> node_names(const Source& source);

}  // namespace rose::evidence
