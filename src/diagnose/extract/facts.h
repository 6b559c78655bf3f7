// The contents of the dumps except calls, in their form, and the times that they cover: read in one pass. Private to
// diagnose.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "diagnose/extract/given.h"
#include "diagnose/extract/sifted.h"

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
  // The same for what a workload does so many times a run, however long it is held up: windows of another order only.
  [[nodiscard]] double runs_in_window(const profile::Profile& profile) const;
};

struct ProcessEvent {
  const Event* event = nullptr;
  int node = -1;
  int signal = 0;  // that ended it; 0: exited
  int exit_code = -1;
  bool main = false;
  bool main_known = false;  // some event of the node says which process is the main one
  std::uint64_t weight = 1;
  std::int64_t began = 0;  // of an end: when the signal that ended the process was sent, where the dump says so
  bool foreign = false;    // its program is one that the test deployment does not run
};

// When a process began to end: at its signal, where that is known. A record of many ends has no such time.
[[nodiscard]] std::int64_t end_began(const Event& event);

struct Facts {
  Times times;
  std::vector<std::vector<std::int64_t>> starts;               // by node, of its main process; by time
  std::vector<ProcessEvent> processes;                         // ends and pauses, by time
  std::vector<std::pair<std::size_t, const Event*>> silences;  // and whose dump says so
  std::uint64_t failures = 0;                                  // SCF, ND and PS events
  Discards discards;
  std::vector<std::string> notes;

  // When the node started next; kNever: not any more.
  [[nodiscard]] std::int64_t back_after(int node, std::int64_t ts) const;
};

[[nodiscard]] Facts read_facts(const Given& given);

}  // namespace rose::diagnose
