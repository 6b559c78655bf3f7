// The contents of the dumps except calls, as typed lists, and the times that they cover: read in one pass. Private to
// diagnose.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "diagnose/extract/extracted.h"
#include "diagnose/extract/given.h"

namespace rose::diagnose {

struct Times {
  std::int64_t begin = 0;
  std::int64_t end = 0;
  std::int64_t workload = 0;  // when it began; 0: unknown
  bool of_logs = false;       // there is no dump

  // "3.2s after the workload began"
  [[nodiscard]] std::string at(std::int64_t ts) const;
  // How many times as long as one of the profile's runs; 1 at least.
  [[nodiscard]] double longer_than_a_run(const profile::Profile& profile) const;
  // The same for things that a workload does a fixed number of times per run, however long it is delayed: only windows
  // of another order of magnitude count.
  [[nodiscard]] double runs_in_window(const profile::Profile& profile) const;
};

struct ProcessEvent {
  const Event* event = nullptr;
  int node = -1;
  int signal = 0;  // that ended it; 0: exited
  int exit_code = -1;
  bool main = false;
  bool main_known = false;  // some event of the node identifies the main process
  std::uint64_t weight = 1;
  std::int64_t began = 0;  // of an end: when the signal that ended the process was sent, if the dump has it
  bool foreign = false;    // its program is one that the test deployment does not run
};

// When a process began to end: at its signal if that is known. A record that stands for many ends has no such time.
[[nodiscard]] std::int64_t end_began(const Event& event);

struct Facts {
  Times times;
  std::vector<std::vector<std::int64_t>> starts;               // by node, of its main process; by time
  std::vector<ProcessEvent> processes;                         // ends and pauses, by time
  std::vector<std::pair<std::size_t, const Event*>> silences;  // the silences, each with the dump that reported it
  std::uint64_t failures = 0;                                  // SCF, ND and PS events
  Discards discards;
  std::vector<std::string> notes;

  // When the node started next; kNever if it did not.
  [[nodiscard]] std::int64_t back_after(int node, std::int64_t ts) const;
};

[[nodiscard]] Facts read_facts(const Given& given);

}  // namespace rose::diagnose
