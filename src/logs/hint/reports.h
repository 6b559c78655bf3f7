// Collects what the messages of one node report into one record for each fact. Adds the hints that follow from these
// records.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "logs/hint/findings.h"

namespace rose::logs {

struct Report : Repeated {
  Meaning meaning;              // the meaning of the first message
  bool timed_out = false;       // at least one message reports a timeout
  std::vector<Report> earlier;  // the best of the episodes that are over; at most one element. See put_episode().
};

using FailedCall = std::tuple<int, std::string, std::string>;  // error, path, peer

// Adds a message to the report. If two weights clearly differ, the greater one wins: a message that also occurs in runs
// without faults neither begins nor extends a report from messages that only the failure has.
void put(Report& report, const Message& message, const Meaning& meaning, double weight);
// Adds a message to the report that a peer is missing. Messages that are far apart belong to different episodes.
void put_episode(Report& report, const Message& message, const Meaning& meaning, double weight);
// Replaces the report by its best episode: the episode with the greatest weight; if several have this weight, the
// episode with the most messages, and of these the first. Call this after the last put_episode().
void settle(Report& report);
// Merges reports of the same failure. The layers of a program log a failure one after the other, each with the part of
// the path that it knows ("/srv/n1/data/db", "data/db").
void fold_paths(std::map<FailedCall, Report>& calls);

// Adds a hint that node `n` misses `other`. `unnamed`: the message does not name the peer. `answered`: a message
// reports that the peer's machine answered.
void add_silence(Findings& found, std::size_t n, const std::string& other, const Report& report, double weight,
                 bool unnamed = false, bool answered = false);
// Adds hints for an operation on a file that failed without a stated error. They assume the errors that the operation's
// calls return most often.
void add_in_vain(Findings& found, std::size_t n, const Report& report);
// Adds a hint for a call that failed with a stated error.
void add_call(Findings& found, std::size_t n, const Report& report);

}  // namespace rose::logs
