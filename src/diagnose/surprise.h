// How much a failed call surprises: what tells a broken environment from everyday failures when no
// profile does. Tables and pure functions.
#pragma once

#include <string_view>

namespace rose::diagnose {

// A file system or resource that fails, or may: besides kernel::resource_error() EACCES, ENOBUFS, ... which may mean
// something else.
[[nodiscard]] bool resource_error(int err);
// True for errors that last until an administrator frees something: a full disk, no descriptors left.
[[nodiscard]] bool lasting_error(int err);
// ECONNREFUSED, EPIPE, ...: what the other side's trouble looks like from here.
[[nodiscard]] bool connection_error(int err, std::string_view syscall, bool has_peer);
// Failures that healthy programs make all the time: ENOENT while looking for a library, EAGAIN, ENOTTY, ...
[[nodiscard]] bool usual_noise(int err, std::string_view syscall, std::string_view path);
// 0: resource and disk errors; 1: others; 2: everyday errors (ENOENT, EEXIST, EINTR, ...); 3: usual noise.
[[nodiscard]] int ordinariness(int err, std::string_view syscall, std::string_view path, bool has_peer);
// Calls that ask for what has a name: open, stat, access, execve, ...
[[nodiscard]] bool lookup_call(std::string_view syscall);
// Calls that programs make all the time: the first of them is nothing special.
[[nodiscard]] bool hot_call(std::string_view syscall);
// Is it the name of a file, not of a pipe, socket or anonymous inode?
[[nodiscard]] bool file_path(std::string_view path);
// Paths that are the same on every machine: /proc, /sys, /dev, /etc, /usr, ...
[[nodiscard]] bool system_path(std::string_view path);

}  // namespace rose::diagnose
