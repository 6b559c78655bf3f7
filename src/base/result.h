// Errors as values. Functions that may fail return Result<T>. An Error has a kind, which determines the exit code, one
// sentence and optionally a hint. Callers add context; only `cli` prints it, once.
#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <utility>

namespace rose {

enum class ErrorKind {
  usage,         // invalid command line: exit 2
  input,         // invalid configuration, schedule, dump or other input file: exit 2
  environment,   // this machine lacks something required: exit 3
  inconclusive,  // no verdict was reached: exit 4
  cancelled,     // Ctrl-C or SIGTERM: exit 4
  bug,           // a broken invariant in rose itself: exit 70
};

struct Error {
  ErrorKind kind = ErrorKind::bug;
  std::string message;  // one sentence, without a full stop
  std::string hint;     // how to fix it; may be empty

  // Prefixes the message with "what: ".
  [[nodiscard]] Error in(std::string_view what) && {
    message = fmt::format("{}: {}", what, message);
    return std::move(*this);
  }
};

template <typename T = void>
using Result = tl::expected<T, Error>;
using Unexpected = tl::unexpected<Error>;

[[nodiscard]] inline Unexpected fail(ErrorKind kind, std::string message, std::string hint = {}) {
  return Unexpected(Error{kind, std::move(message), std::move(hint)});
}
// For failed system calls: "what: strerror(err)". EPERM and EACCES always become ErrorKind::environment, with a hint to
// run as root, because missing privilege is the usual cause.
[[nodiscard]] Unexpected fail_errno(ErrorKind kind, std::string_view what, int err);

// The exit code that the command-line contract assigns to the kind: 2, 3, 4 or 70.
[[nodiscard]] int exit_code(ErrorKind kind);

// Prints the condition, its location and the last log lines, then exits with code 70.
[[noreturn]] void rose_bug(const char* condition, const char* file, int line);

}  // namespace rose

#define ROSE_BUG(message) ::rose::rose_bug(message, __FILE__, __LINE__)
#define ROSE_ASSERT(condition)              \
  do {                                      \
    if (!(condition)) ROSE_BUG(#condition); \
  } while (false)

// TRY(expr): unwraps a Result or returns its error from the enclosing function.
#define ROSE_CONCAT_(a, b) a##b
#define ROSE_CONCAT(a, b) ROSE_CONCAT_(a, b)
#define ROSE_TRY_ASSIGN_(tmp, target, expr)                    \
  auto tmp = (expr);                                           \
  if (!tmp) return ::rose::Unexpected(std::move(tmp).error()); \
  target = std::move(*tmp)
// ROSE_TRY(auto x, f()): declares x, or returns f's error.
#define ROSE_TRY(target, expr) ROSE_TRY_ASSIGN_(ROSE_CONCAT(rose_try_, __LINE__), target, expr)
// ROSE_CHECK(f()): for Result<void>.
#define ROSE_CHECK(expr)                                                                                    \
  do {                                                                                                      \
    if (auto rose_check_ = (expr); !rose_check_) return ::rose::Unexpected(std::move(rose_check_).error()); \
  } while (false)
