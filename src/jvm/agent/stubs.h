// The functions in the agent to which rose's BPF programs attach uprobes. They do nothing; their arguments are the
// message.
#pragma once

#include <cstdint>

extern "C" {
// A thread has reached a location of the schedule; `entries` are `count` entries of the condition list. The BPF program
// may kill or stop the process here, or send this thread `signal` n times: the nth exception in the list must then be
// thrown. `signal` 0: no signal is available.
__attribute__((visibility("default"))) void rose_jvm_visit(const std::uint32_t* entries, std::uint32_t count,
                                                           std::uint32_t signal);
// A thread enters a watched method. Called by the agent's own thread with `let_go`: entries are no longer reported.
__attribute__((visibility("default"))) void rose_jvm_enter(const char* name, std::uint32_t let_go);
// A requested value (the struct in agent/values.cc) and the number of its location.
__attribute__((visibility("default"))) void rose_jvm_value(const void* value, std::uint32_t place);
}
