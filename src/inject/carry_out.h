// Carries out a call of which seccomp has notified rose, in place of the thread that made it, in whole or in part. It
// uses a duplicate of the thread's descriptor, so that the file position and all other state of the open file change as
// if the thread had made the call.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "base/fd.h"
#include "inject/call.h"

namespace rose::inject {

// True if this system call can be carried out: completely (`effect = "full"`), or in part (`{ bytes = n }`).
[[nodiscard]] bool can_carry_out(int number);
[[nodiscard]] bool can_carry_out_partly(int number);

struct CarriedFile {
  Fd fd;              // a duplicate; invalid: the thread has no such descriptor
  int error = 0;      // -errno if `fd` is invalid
  bool quick = true;  // regular files and block devices; others may block for a long time
  bool unix_socket = false;
};
// The file on which a call acts. Returns nothing if rose must not act on it in the thread's place, so that the thread
// has to make the call itself. This concerns files on a file system that another user mounted, whose server could block
// rose for ever, and descriptors that have another meaning in another process (signalfd, netlink).
[[nodiscard]] std::optional<CarriedFile> carried_file(NotifiedCall& call);

// Carries out the call with the caller's rights, and resolves socket paths as the caller sees them. Returns what the
// kernel would have returned (-errno for errors). `most`: maximum number of bytes; -1: all (up to 64 MiB, or 8 MiB for
// pipes and sockets). `alive` returns whether the caller is still in that call. It is called after all memory of the
// caller has been read, before anything is written to it, and periodically while the call would block. If it returns
// false, the result is -EINTR.
[[nodiscard]] std::int64_t carry_out(NotifiedCall& call, const CarriedFile& file, std::int64_t most,
                                     const std::function<bool()>& alive);
// True if the call would have transferred more than `done` bytes without the limit `most`.
[[nodiscard]] bool was_cut(const NotifiedCall& call, std::int64_t most, std::int64_t done);

}  // namespace rose::inject
