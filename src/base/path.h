// How the path of a call is spelled, by whoever records calls, matches them or looks for them: a schedule is made of what a
// trace says, so all must spell alike. (In the kernel, bpf/inject/look.h does the same.)
#pragma once

#include <string>
#include <string_view>

namespace rose {

// What has no path: "anon_inode:[eventpoll]", as in /proc/PID/fd.
inline constexpr std::string_view kAnonInode = "anon_inode:";

// Without ".", doubled and last slashes, and with ".." taken back as written, whatever links may say: "/a/./b/../c/" is "/a/c".
// At the root ".." is the root; in front of what is relative it stays.
[[nodiscard]] std::string resolve_dots(std::string_view path);

// The absolute path that `path` means in the folder `base`, which may be empty for the root.
[[nodiscard]] std::string join_path(std::string_view base, std::string_view path);

}  // namespace rose
