// How surprising a failed call is: distinguishes a broken environment from everyday failures when there is no profile.
// Tables and pure functions.
#pragma once

#include <string_view>

namespace rose::diagnose {

// Errors of a file system or resource, certain or possible: besides kernel::resource_error() EACCES, ENOBUFS, ... which
// may mean something else.
[[nodiscard]] bool resource_error(int err);
// True for errors that last until an administrator frees something: a full disk, no descriptors left.
[[nodiscard]] bool lasting_error(int err);
// ECONNREFUSED, EPIPE, ...: the consequences of a failure on the other side.
[[nodiscard]] bool connection_error(int err, std::string_view syscall, bool has_peer);
// Failures that healthy programs make all the time: ENOENT while looking for a library, EAGAIN, ENOTTY, ...
[[nodiscard]] bool usual_noise(int err, std::string_view syscall, std::string_view path);
// 0: resource and disk errors; 1: others; 2: everyday errors (ENOENT, EEXIST, EINTR, ...); 3: usual noise.
[[nodiscard]] int ordinariness(int err, std::string_view syscall, std::string_view path, bool has_peer);
// Calls that look up a name: open, stat, access, execve, ...
[[nodiscard]] bool lookup_call(std::string_view syscall);
// Calls that programs make all the time, so that the first of them is not special.
[[nodiscard]] bool hot_call(std::string_view syscall);
// True for the name of a file, not of a pipe, socket or anonymous inode.
[[nodiscard]] bool file_path(std::string_view path);
// Paths that are the same on every machine: /proc, /sys, /dev, /etc, /usr, ...
[[nodiscard]] bool system_path(std::string_view path);

}  // namespace rose::diagnose
