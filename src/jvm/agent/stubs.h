// The functions in the agent to which rose's BPF programs attach uprobes. They do nothing; their arguments are what is
// reported.
#pragma once

#include <cstdint>

extern "C" {
// A thread has reached a location of the schedule; `entries` are `count` entries of the condition list. The BPF program
// may kill or stop the process here. Or it may order an exception: it sends `signal` to this thread n times for the nth
// exception among the entries. If `signal` is 0, it cannot order exceptions here.
__attribute__((visibility("default"))) void rose_jvm_visit(const std::uint32_t* entries, std::uint32_t count,
                                                           std::uint32_t signal);
// A thread enters a watched method. The agent's own thread calls this function with `let_go` 1 when the agent stops
// watching the method.
__attribute__((visibility("default"))) void rose_jvm_enter(const char* name, std::uint32_t let_go);
// Reports a requested value (the struct Report in agent/values.cc) and the number of the location.
__attribute__((visibility("default"))) void rose_jvm_value(const void* value, std::uint32_t place);
}
