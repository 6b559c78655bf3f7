// Linux capabilities: checks which are missing, and drops those that are no longer needed.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"

namespace rose::kernel {

// A set with the bit numbers of <linux/capability.h>.
class Capabilities {
 public:
  Capabilities() = default;
  Capabilities(std::initializer_list<int> bits) {
    for (const int bit : bits) add(bit);
  }
  void add(int bit) { bits_ |= std::uint64_t{1} << bit; }
  void add(Capabilities other) { bits_ |= other.bits_; }
  [[nodiscard]] bool has(int bit) const { return ((bits_ >> bit) & 1) != 0; }
  [[nodiscard]] bool empty() const { return bits_ == 0; }
  [[nodiscard]] std::uint64_t bits() const { return bits_; }
  [[nodiscard]] Capabilities operator&(Capabilities other) const { return from(bits_ & other.bits_); }
  [[nodiscard]] bool operator==(const Capabilities&) const = default;
  [[nodiscard]] static Capabilities from(std::uint64_t bits) {
    Capabilities out;
    out.bits_ = bits;
    return out;
  }

 private:
  std::uint64_t bits_ = 0;
};

// "CAP_BPF, CAP_NET_ADMIN", or "none".
[[nodiscard]] std::string to_text(Capabilities capabilities);

// The effective set of the calling thread.
[[nodiscard]] Capabilities effective_capabilities();

// A capability that an operation requires, and the reason.
struct Need {
  int capability = 0;
  std::string what_for;  // "to load programs into the kernel"
};
// If a capability is missing, returns ErrorKind::environment. The error names every missing capability and how to grant
// it. CAP_SYS_ADMIN counts as CAP_BPF and CAP_PERFMON.
[[nodiscard]] Result<void> check_capabilities(const std::vector<Need>& needs);

enum class Commands {
  as_weak,  // programs executed later get no more than what is kept
  as_root,  // for root only: programs executed later get root's full set, although rose itself keeps little
};

// Reduces every capability set of every thread of this process, and of threads created later, to `keep`. Capabilities
// that a thread lacks are not added.
[[nodiscard]] Result<void> drop_capabilities(Capabilities keep, Commands commands = Commands::as_weak);

// Drops all capabilities of the calling thread permanently, to try what works without privilege. The thread should end
// soon.
void weaken_thread();

}  // namespace rose::kernel
