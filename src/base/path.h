// Defines how the path or the peer address of a system call is written. Recording, matching and searching must write it
// in the same way, because schedules are built from recorded traces. (bpf/inject/call_text.h implements the same rules
// in the kernel.)
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace rose {

// Descriptors without a path are spelled "anon_inode:[eventpoll]", as in /proc/PID/fd.
inline constexpr std::string_view kAnonInode = "anon_inode:";

// Removes ".", doubled and trailing slashes, and resolves ".." textually, without following links: "/a/./b/../c/"
// becomes "/a/c". At the root, ".." is the root; at the start of a relative path it stays.
[[nodiscard]] std::string resolve_dots(std::string_view path);

// The absolute path of `path` relative to the folder `base`. An empty `base` means the root.
[[nodiscard]] std::string join_path(std::string_view base, std::string_view path);

// The extension with its dot (".class"), or "" if the last component has none.
[[nodiscard]] std::string_view extension_of(std::string_view path);

// The name of a Unix socket, from the bytes of its sun_path: "unix:/run/x", or "unix:@abstract" as in ss(8). Bytes
// after a NUL are padding.
[[nodiscard]] std::string unix_text(std::string_view sun_path);
// The peer of a netlink socket is the kernel, so its name is the number of the protocol: "netlink:0".
[[nodiscard]] std::string netlink_text(std::uint64_t protocol);

}  // namespace rose
