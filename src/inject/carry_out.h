// Carries out a call of which seccomp has notified rose, completely or in part, in place of the thread that made it.
// Uses a duplicate of the thread's descriptor, so that the file position and all other state of the open file change as
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
  bool quick = true;  // a regular file, folder or block device; calls on other files may block for a long time
  bool unix_socket = false;
};
// The file on which a call acts. Returns nothing if rose must not act on it in the thread's place, so that the thread
// has to make the call itself. This concerns files of file systems that cannot be trusted to answer (file_taker.h),
// which could block rose for ever, files whose content or effect depends on the calling process (for example in /proc),
// and descriptors that may have another meaning in another process (for example signalfd and netlink).
[[nodiscard]] std::optional<CarriedFile> carried_file(NotifiedCall& call);

// Carries out the call with the caller's rights, and resolves socket paths as the caller sees them. Returns what the
// kernel would have returned (-errno for errors). `most`: maximum number of bytes; -1: all. In either case, at most 64
// MiB are transferred, or 8 MiB if the file is not `quick`. `alive` returns whether the caller still waits in this
// call. It is called after all memory of the caller has been read, before anything is written to it, and periodically
// while the call would block. Once it returns false, the call is abandoned: the result is an error, or the number of
// bytes that have been written so far.
[[nodiscard]] std::int64_t carry_out(NotifiedCall& call, const CarriedFile& file, std::int64_t most,
                                     const std::function<bool()>& alive);
// True if the limit `most` was reached, and the caller wanted to transfer more bytes. For writev and pwritev, whose
// total is not computed here, true whenever the limit was reached.
[[nodiscard]] bool was_cut(const NotifiedCall& call, std::int64_t most, std::int64_t done);

}  // namespace rose::inject
