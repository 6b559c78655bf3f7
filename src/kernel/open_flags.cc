#include "kernel/open_flags.h"

#include <fmt/format.h>

#include <charconv>

namespace rose::kernel {
namespace {

struct Flag {
  std::string_view name;
  std::uint32_t bits;
};

// Flags whose values differ between processors. O_TMPFILE creates a file in a folder, so its value contains
// O_DIRECTORY.
struct OwnFlags {
  std::uint32_t direct, largefile, directory, nofollow;
};
constexpr OwnFlags kPortableFlags = {040000, 0100000, 0200000, 0400000};
#ifdef __aarch64__
constexpr OwnFlags kNativeFlags = {0200000, 0400000, 040000, 0100000};
#else
constexpr OwnFlags kNativeFlags = kPortableFlags;
#endif

// Values from asm-generic/fcntl.h. A flag that consists of several bits comes before the flags that it contains.
constexpr std::uint32_t kAccess = 3;
constexpr Flag kAccessModes[] = {{"O_RDONLY", 0}, {"O_WRONLY", 1}, {"O_RDWR", 2}, {"O_ACCMODE", 3}};
constexpr Flag kFlags[] = {
    {"O_CREAT", 0100},
    {"O_EXCL", 0200},
    {"O_NOCTTY", 0400},
    {"O_TRUNC", 01000},
    {"O_APPEND", 02000},
    {"O_NONBLOCK", 04000},
    {"O_SYNC", 04010000},
    {"O_DSYNC", 010000},
    {"O_ASYNC", 020000},
    {"O_DIRECT", kNativeFlags.direct},
    {"O_LARGEFILE", kNativeFlags.largefile},
    {"O_TMPFILE", 020000000 | kNativeFlags.directory},
    {"O_DIRECTORY", kNativeFlags.directory},
    {"O_NOFOLLOW", kNativeFlags.nofollow},
    {"O_NOATIME", 01000000},
    {"O_CLOEXEC", 02000000},
    {"O_PATH", 010000000},
};

std::uint32_t translated(std::uint32_t flags, const OwnFlags& from, const OwnFlags& to) {
  std::uint32_t out = flags & ~(from.direct | from.largefile | from.directory | from.nofollow);
  if ((flags & from.direct) != 0) out |= to.direct;
  if ((flags & from.largefile) != 0) out |= to.largefile;
  if ((flags & from.directory) != 0) out |= to.directory;
  if ((flags & from.nofollow) != 0) out |= to.nofollow;
  return out;
}

}  // namespace

std::uint32_t portable_open_flags(std::uint32_t flags) { return translated(flags, kNativeFlags, kPortableFlags); }

std::uint32_t native_open_flags(std::uint32_t portable) { return translated(portable, kPortableFlags, kNativeFlags); }

std::string open_flags_text(std::uint32_t flags) {
  std::string out(kAccessModes[flags & kAccess].name);
  flags &= ~kAccess;
  for (const auto& flag : kFlags) {
    if ((flags & flag.bits) != flag.bits) continue;
    flags &= ~flag.bits;
    out += '|';
    out += flag.name;
  }
  if (flags != 0) out += fmt::format("|0x{:x}", flags);
  return out;
}

std::optional<int> open_flags_argument(std::string_view syscall) {
  if (syscall == "open") return 1;
  return syscall == "openat" || syscall == "openat2" ? std::optional(2) : std::nullopt;
}

std::optional<std::uint32_t> open_flags_number(std::string_view text) {
  std::uint32_t flags = 0;
  for (;;) {
    const auto bar = text.find('|');
    const auto word = text.substr(0, bar);
    bool known = false;
    const auto look = [&](const Flag& flag) {
      if (word != flag.name) return;
      flags |= flag.bits;
      known = true;
    };
    for (const auto& mode : kAccessModes) look(mode);
    for (const auto& flag : kFlags) look(flag);
    if (!known) {
      std::uint32_t bits = 0;
      if (!word.starts_with("0x") || word.size() == 2) return std::nullopt;
      const auto [stop, error] = std::from_chars(word.data() + 2, word.data() + word.size(), bits, 16);
      if (error != std::errc() || stop != word.data() + word.size()) return std::nullopt;
      flags |= bits;
    }
    if (bar == std::string_view::npos) return flags;
    text.remove_prefix(bar + 1);
  }
}

}  // namespace rose::kernel
