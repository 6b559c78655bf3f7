// Matches calls: compiles a schedule::CallMatch by means of the system call table, and tests whether a call matches.
// CallFacts supplies the call's paths, addresses and process name, so this code itself reads nothing from the process.
#pragma once

#include <array>
#include <bitset>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "kernel/syscalls.h"
#include "schedule/schedule.h"

namespace rose::inject {

// Properties of a call that is being made. Each method may have to read memory of the process.
class CallFacts {
 public:
  virtual ~CallFacts() = default;
  [[nodiscard]] virtual int number() const = 0;
  // The argument with this number. Argument 2 of openat2 is the flags in its struct open_how.
  [[nodiscard]] virtual std::uint64_t argument(int index) const = 0;
  // Full paths of the call: one, two (rename) or none. For a call without a path argument, the path of its descriptor.
  virtual const std::vector<std::string>& paths() = 0;
  virtual const std::string& peer() = 0;  // "ip:port", "[ip6]:port", "unix:path"; "" if unknown
  virtual const std::string& local() = 0;
  virtual const std::string& process() = 0;  // name of the process (comm of its first thread)
};

// The wanted value or flags of an argument: "0x241", "-100", "O_CREAT|O_TRUNC" (all must be set), "SEEK_END" (must be
// equal).
struct ArgumentMatch {
  int index = 0;
  std::uint64_t value = 0;
  std::uint64_t mask = ~std::uint64_t{0};

  [[nodiscard]] bool matches(std::uint64_t argument) const { return (argument & mask) == value; }
};
[[nodiscard]] Result<ArgumentMatch> parse_argument(int index, std::string_view text);

class CallMatcher {
 public:
  // Returns ErrorKind::input for unknown names, with a suggestion, and for conditions that no call can meet.
  [[nodiscard]] static Result<CallMatcher> compile(const schedule::CallMatch& match);

  [[nodiscard]] bool selects(int number) const {
    return number >= 0 && number < kernel::kMostSyscalls && numbers_.test(static_cast<std::size_t>(number));
  }
  [[nodiscard]] std::vector<int> numbers() const;
  [[nodiscard]] bool matches(CallFacts& call) const;
  // The match as text: "openat(*/log.*)".
  [[nodiscard]] std::string describe() const;

  [[nodiscard]] const std::optional<std::string>& path() const { return path_; }
  [[nodiscard]] const std::optional<std::string>& path2() const { return path2_; }
  [[nodiscard]] const std::optional<std::string>& peer() const { return peer_; }
  [[nodiscard]] const std::optional<std::string>& local() const { return local_; }
  [[nodiscard]] const std::optional<std::string>& process() const { return process_; }
  [[nodiscard]] const std::vector<ArgumentMatch>& arguments() const { return arguments_; }

 private:
  std::bitset<kernel::kMostSyscalls> numbers_;
  std::string syscall_;
  std::optional<std::string> path_, path2_, peer_, local_, process_;
  std::vector<ArgumentMatch> arguments_;
};

// True if the address ("ip:port") matches the pattern, which is a glob. The pattern ":2888" matches every address with
// that port.
[[nodiscard]] bool address_matches(std::string_view pattern, std::string_view address);

}  // namespace rose::inject
