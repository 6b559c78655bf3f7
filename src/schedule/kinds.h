// The keys of faults that are neither calls, processes nor cuts: read from a table, written to one, said in words. Used
// by the three files of the schedule's own form only.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "base/toml.h"
#include "schedule/schedule.h"

namespace rose::schedule {

// One line of "key = value", or one part of an inline table.
using Parts = std::vector<std::pair<std::string, std::string>>;

// "a number from 1 up or "forever"".
void read_times(toml::Table& table, std::int64_t& times, std::int64_t most);

void read_bad_link(toml::Table& table, Fault& fault);
void add_bad_link(Parts& parts, const Fault& fault);
// "delay packets by 50ms and drop 10% of them"
[[nodiscard]] std::string bad_link_words(const Fault& fault);

void read_clock(toml::Table& table, Fault& fault);
void add_clock(Parts& parts, const Fault& fault);
// "set the clock of n1 forward by 1h"
[[nodiscard]] std::string clock_words(const Fault& fault, const std::string& node);

// Of power.cc: what a crash loses.
void read_loss(toml::Table& table, Fault& fault);
void add_loss(Parts& parts, const Fault& fault);
// " (power goes too: what was not synced is gone)"; "" where nothing is lost
[[nodiscard]] std::string loss_words(const Fault& fault);

// Of resources.cc: `path`, a folder in the node's own.
void read_folder(toml::Table& table, Resource& resource);
// descriptors, memory, cpu, disk-full, disk-slow.
void read_resource(toml::Table& table, Fault& fault);
void add_resource(Parts& parts, const Fault& fault);
// "let no process of n1 have more than 64 descriptors"
[[nodiscard]] std::string resource_words(const Fault& fault, const std::string& node);

// Of block.cc: `at` and `count`. `read_call` reads a call's keys.
void read_block(toml::Table& table, Fault& fault, const std::function<void(toml::Table&, CallMatch&)>& read_call);
void add_block(Parts& parts, const Fault& fault);
// "let the 2nd thread of n1 that comes to f wait there"
[[nodiscard]] std::string block_words(const Fault& fault, const std::string& node);

// `offset` or `line` in a function.
void read_place(toml::Table& table, std::optional<std::uint64_t>& offset, std::optional<std::uint64_t>& line);
// Of write.cc.
void add_call(Parts& parts, const CallMatch& call);
[[nodiscard]] std::string inline_table(const Parts& parts);
// Of words.cc: " of */snapshot.* with peer 10.77.0.2:7000", what follows the call's name.
[[nodiscard]] std::string call_details(const CallMatch& call);

// "12s", also where that is no whole number of milliseconds.
[[nodiscard]] std::string duration_text(std::int64_t ns);
// "3rd"
// "a, b and c"
[[nodiscard]] std::string enumerate(const std::vector<std::string>& words);

}  // namespace rose::schedule
