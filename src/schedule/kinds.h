// Reads, writes and describes the keys of all faults except syscall faults, process faults and partitions. Only for the
// files that read, write and describe schedules.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "base/toml.h"
#include "schedule/schedule.h"

namespace rose::schedule {

// Pairs "key = value". Each is a line, or a part of an inline table.
using Parts = std::vector<std::pair<std::string, std::string>>;

// Reads `times`, which is a number from 1 to `most`, or "forever" (stored as -1).
void read_times(toml::Table& table, std::int64_t& times, std::int64_t most);

void read_bad_link(toml::Table& table, Fault& fault);
void add_bad_link(Parts& parts, const Fault& fault);
// Describes the fault: "delay packets by 50ms and drop 10% of them".
[[nodiscard]] std::string bad_link_words(const Fault& fault);

void read_clock(toml::Table& table, Fault& fault);
void add_clock(Parts& parts, const Fault& fault);
// Describes the fault: "set the clock of n1 forward by 1h".
[[nodiscard]] std::string clock_words(const Fault& fault, const std::string& node);

// In power.cc: reads what is lost in a crash with power loss.
void read_loss(toml::Table& table, Fault& fault);
void add_loss(Parts& parts, const Fault& fault);
// Describes the loss: " (with power loss: unsynced data is lost)". "" if nothing is lost.
[[nodiscard]] std::string loss_words(const Fault& fault);

// In resources.cc: reads `path`, which is a folder below the node's own folder, or any folder in the node's container.
void read_folder(toml::Table& table, Resource& resource);
// For faults of the kinds descriptors, memory, cpu, disk-full and disk-slow.
void read_resource(toml::Table& table, Fault& fault);
void add_resource(Parts& parts, const Fault& fault);
// Describes the fault: "let no process of n1 have more than 64 descriptors".
[[nodiscard]] std::string resource_words(const Fault& fault, const std::string& node);

// In block.cc: reads `at` and `count`. `read_call` reads the keys of a call.
void read_block(toml::Table& table, Fault& fault, const std::function<void(toml::Table&, CallMatch&)>& read_call);
void add_block(Parts& parts, const Fault& fault);
// Describes the fault: "block the 2nd thread of n1 that reaches f".
[[nodiscard]] std::string block_words(const Fault& fault, const std::string& node);

// Reads `offset` or `line`, which are positions in a function.
void read_place(toml::Table& table, std::optional<std::uint64_t>& offset, std::optional<std::uint64_t>& line);
// In write.cc.
void add_call(Parts& parts, const CallMatch& call);
[[nodiscard]] std::string inline_table(const Parts& parts);
// In words.cc: the text that follows the name of the call, such as " of snapshot.* with peer 10.77.0.2:7000".
[[nodiscard]] std::string call_details(const CallMatch& call);

// The duration, which may have fractions of a millisecond: "12s".
[[nodiscard]] std::string duration_text(std::int64_t ns);
// Joins words: "a, b and c".
[[nodiscard]] std::string enumerate(const std::vector<std::string>& words);

}  // namespace rose::schedule
