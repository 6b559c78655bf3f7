// One thing that messages of a node say, however often, and the hints that follow from it.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <tuple>

#include "logs/hint/findings.h"

namespace rose::logs {

struct Report : Repeated {
  Meaning meaning;  // of the first one
};

using FailedCall = std::tuple<int, std::string, std::string>;  // error, path, peer

// A message that runs without faults also have neither begins nor prolongs what only the failure reports.
void put(Report& report, const Message& message, const Meaning& meaning, double weight);
// The layers of a program tell of one failure in turn, each with as much of the path as it knows: "/srv/n1/data/db",
// "data/db".
void fold_paths(std::map<FailedCall, Report>& calls);

// That node `n` misses `other`. `unnamed`: the message names nobody.
void add_silence(Findings& found, std::size_t n, const std::string& other, const Report& report, double weight,
                 bool unnamed = false, bool answered = false);
// That something with a file was in vain: the errors that such calls return in practice.
void add_in_vain(Findings& found, std::size_t n, const Report& report);
// That a call failed with an error.
void add_call(Findings& found, std::size_t n, const Report& report);

}  // namespace rose::logs
