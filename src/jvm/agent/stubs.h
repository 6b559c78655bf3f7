// What rose's kernel programs are attached to (uprobes on these functions in the agent's file). They do nothing
// themselves; their arguments are the message.
#pragma once

#include <cstdint>

extern "C" {
// A thread comes by a place that a schedule is about: `count` entries of its condition list. The kernel's program may
// end or stop the process here, or send this thread `signal` n times: the nth exception of the list is to be thrown. 0:
// there is none.
__attribute__((visibility("default"))) void rose_jvm_visit(const std::uint32_t* entries, std::uint32_t count,
                                                           std::uint32_t signal);
// A thread enters a watched method; or, by the agent's own thread: from here on its entries are not told.
__attribute__((visibility("default"))) void rose_jvm_enter(const char* name, std::uint32_t let_go);
// A value that was asked for (agent/values.cc: Told), and the number of its place.
__attribute__((visibility("default"))) void rose_jvm_value(const void* value, std::uint32_t place);
}
