// How the path of a call, and whom it speaks to, is spelled, by whoever records calls, matches them or looks for them:
// a schedule is made of what a trace says, so all must spell alike. (In the kernel, bpf/inject/call_text.h does the
// same.)
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace rose {

// What has no path: "anon_inode:[eventpoll]", as in /proc/PID/fd.
inline constexpr std::string_view kAnonInode = "anon_inode:";

// Without ".", doubled and last slashes, and with ".." taken back as written, whatever links may say: "/a/./b/../c/" is
// "/a/c". At the root ".." is the root; in front of what is relative it stays.
[[nodiscard]] std::string resolve_dots(std::string_view path);

// The absolute path that `path` means in the folder `base`, which may be empty for the root.
[[nodiscard]] std::string join_path(std::string_view base, std::string_view path);

// ".class"; "" where its last part has none.
[[nodiscard]] std::string_view extension_of(std::string_view path);

// A socket's name, the bytes of its sun_path: "unix:/run/x", "unix:@abstract" as ss has it. What stands behind a NUL is
// padding.
[[nodiscard]] std::string unix_text(std::string_view sun_path);
// The kernel, which is at the other end of a netlink socket, by its protocol.
[[nodiscard]] std::string netlink_text(std::uint64_t protocol);

}  // namespace rose
