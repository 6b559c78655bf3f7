// Linux capabilities: which are needed and missing, and giving up those that are no longer needed.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"

namespace rose::kernel {

// By their numbers in <linux/capability.h>, as bits of a set.
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

// "CAP_BPF, CAP_NET_ADMIN"; "none".
[[nodiscard]] std::string to_text(Capabilities capabilities);

// Of the calling thread.
[[nodiscard]] Capabilities effective_capabilities();

// One that something cannot do without, and what for.
struct Need {
  int capability = 0;
  std::string what_for;  // "to load programs into the kernel"
};
// ErrorKind::environment that names each missing one, and how to give it. CAP_SYS_ADMIN stands in for
// CAP_BPF and CAP_PERFMON.
[[nodiscard]] Result<void> check_capabilities(const std::vector<Need>& needs);

enum class Commands {
  as_weak,  // programs that are executed later get no more than what is kept
  as_root,  // for root only: they get what root's programs get, though rose itself keeps little
};

// Every thread of this process keeps of its capabilities only these (those it lacks it does not get), in every set,
// and so do threads made later.
[[nodiscard]] Result<void> drop_capabilities(Capabilities keep, Commands commands = Commands::as_weak);

// The calling thread alone drops everything for good, to try what works without. Threads that try should end soon.
void weaken_thread();

}  // namespace rose::kernel
