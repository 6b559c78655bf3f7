// Classifies failed calls without a profile: distinguishes errors of a broken environment from everyday failures.
// Tables and pure functions.
#pragma once

#include <string_view>

namespace rose::evidence {

// True for errors of a file system or a resource: those of kernel::resource_error(), and EACCES, ENOBUFS, ..., which
// may also have other reasons.
[[nodiscard]] bool resource_error(int err);
// True for errors that last until an administrator frees something: a full disk, no descriptors left.
[[nodiscard]] bool lasting_error(int err);
// True for ECONNREFUSED, EPIPE, ...: consequences of a failure at the other end of a connection.
[[nodiscard]] bool connection_error(int err, std::string_view syscall, bool has_peer);
// True for failures that occur in healthy programs all the time: ENOENT in the search for a library, EAGAIN, ENOTTY,
// ...
[[nodiscard]] bool usual_noise(int err, std::string_view syscall, std::string_view path);
// How ordinary a failure is. 0: an error of a resource or disk; 1: another error; 2: an everyday error (ENOENT, EEXIST,
// ...); 3: usual_noise().
[[nodiscard]] int ordinariness(int err, std::string_view syscall, std::string_view path, bool has_peer);
// True for calls that look up a name: open, stat, access, execve, ...
[[nodiscard]] bool lookup_call(std::string_view syscall);
// True for calls that programs make all the time, so that their first occurrence means nothing.
[[nodiscard]] bool hot_call(std::string_view syscall);
// True for the path of a file; false for the name of a pipe, socket or anonymous inode ("pipe:[7]").
[[nodiscard]] bool file_path(std::string_view path);
// True for paths that are the same on every machine: /proc, /sys, /dev, /etc, /usr, ...
[[nodiscard]] bool system_path(std::string_view path);

}  // namespace rose::evidence
