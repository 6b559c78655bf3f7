// Errors as values. Functions that may fail return Result<T>. An Error has a kind, which determines the exit code, one
// sentence and optionally a hint. Callers add context; only `cli` prints it, once.
#pragma once

#include <fmt/format.h>

#include <concepts>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "base/join.h"

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
  int code = 0;         // errno of the system call that failed; 0 if there was none

  // Prefixes the message with "what: ".
  [[nodiscard]] Error in(std::string_view what) &&;
};

// The error with which a failed Result is constructed.
template <typename E>
class UnexpectedOf {
 public:
  explicit UnexpectedOf(E error) : error_(std::move(error)) {}
  [[nodiscard]] const E& error() const& { return error_; }
  [[nodiscard]] E&& error() && { return std::move(error_); }

 private:
  E error_;
};

// A value or an error: the part of C++23's std::expected that rose uses. The overloads of std::expected are left out
// because they are slow to compile.
template <typename T, typename E>
class Expected {
 public:
  using value_type = T;
  using error_type = E;

  Expected()
    requires std::default_initializable<T>
      : has_(true), value_() {}
  template <typename U = T>
    requires(!std::same_as<std::remove_cvref_t<U>, Expected> && std::convertible_to<U, T>)
  Expected(U&& value) : has_(true), value_(std::forward<U>(value)) {}
  template <typename U>
    requires(!std::same_as<U, T> && std::convertible_to<U, T>)
  Expected(Expected<U, E>&& other) : has_(other.has_value()) {
    if (has_) std::construct_at(&value_, *std::move(other));
    else std::construct_at(&error_, std::move(other).error());
  }
  Expected(const UnexpectedOf<E>& unexpected) : has_(false), error_(unexpected.error()) {}
  Expected(UnexpectedOf<E>&& unexpected) : has_(false), error_(std::move(unexpected).error()) {}
  Expected(const Expected& other)
    requires std::copy_constructible<T>
      : has_(other.has_) {
    if (has_) std::construct_at(&value_, other.value_);
    else std::construct_at(&error_, other.error_);
  }
  Expected(Expected&& other) noexcept : has_(other.has_) {
    if (has_) std::construct_at(&value_, std::move(other.value_));
    else std::construct_at(&error_, std::move(other.error_));
  }
  Expected& operator=(const Expected& other)
    requires std::copy_constructible<T>
  {
    if (this != &other) *this = Expected(other);
    return *this;
  }
  Expected& operator=(Expected&& other) noexcept {
    if (this != &other) {
      std::destroy_at(this);
      std::construct_at(this, std::move(other));
    }
    return *this;
  }
  ~Expected() {
    if (has_) value_.~T();
    else error_.~E();
  }

  [[nodiscard]] bool has_value() const { return has_; }
  [[nodiscard]] explicit operator bool() const { return has_; }
  [[nodiscard]] T& operator*() & { return value_; }
  [[nodiscard]] const T& operator*() const& { return value_; }
  [[nodiscard]] T&& operator*() && { return std::move(value_); }
  [[nodiscard]] T* operator->() { return &value_; }
  [[nodiscard]] const T* operator->() const { return &value_; }
  // Throws if there is no value. For tests: the exception makes the test fail.
  [[nodiscard]] T& value() & { return require(), value_; }
  [[nodiscard]] const T& value() const& { return require(), value_; }
  [[nodiscard]] T&& value() && { return require(), std::move(value_); }
  template <typename U>
  [[nodiscard]] T value_or(U&& other) const& {
    return has_ ? value_ : static_cast<T>(std::forward<U>(other));
  }
  template <typename U>
  [[nodiscard]] T value_or(U&& other) && {
    return has_ ? std::move(value_) : static_cast<T>(std::forward<U>(other));
  }
  [[nodiscard]] E& error() & { return error_; }
  [[nodiscard]] const E& error() const& { return error_; }
  [[nodiscard]] E&& error() && { return std::move(error_); }

  // Applies a function to the value, or to the error.
  template <typename F>
  [[nodiscard]] auto map(F&& change) && -> Expected<std::remove_cvref_t<std::invoke_result_t<F, T>>, E> {
    if (!has_) return UnexpectedOf<E>(std::move(error_));
    if constexpr (std::is_void_v<std::invoke_result_t<F, T>>)
      return std::invoke(change, std::move(value_)), Expected<void, E>();
    else return std::invoke(change, std::move(value_));
  }
  template <typename F>
  [[nodiscard]] Expected map_error(F&& change) && {
    if (has_) return std::move(*this);
    return UnexpectedOf<E>(std::invoke(change, std::move(error_)));
  }

 private:
  void require() const {
    if (!has_) throw std::logic_error("a failed result has no value");
  }

  bool has_;
  union {
    T value_;
    E error_;
  };
};

template <typename E>
class Expected<void, E> {
 public:
  using value_type = void;
  using error_type = E;

  Expected() = default;
  Expected(const UnexpectedOf<E>& unexpected) : error_(unexpected.error()) {}
  Expected(UnexpectedOf<E>&& unexpected) : error_(std::move(unexpected).error()) {}

  [[nodiscard]] bool has_value() const { return !error_; }
  [[nodiscard]] explicit operator bool() const { return !error_; }
  void value() const {
    if (error_) throw std::logic_error("a failed result has no value");
  }
  void operator*() const {}
  [[nodiscard]] E& error() & { return *error_; }
  [[nodiscard]] const E& error() const& { return *error_; }
  [[nodiscard]] E&& error() && { return std::move(*error_); }

  template <typename F>
  [[nodiscard]] auto map(F&& change) && -> Expected<std::remove_cvref_t<std::invoke_result_t<F>>, E> {
    if (error_) return UnexpectedOf<E>(std::move(*error_));
    return std::invoke(change);
  }
  template <typename F>
  [[nodiscard]] Expected map_error(F&& change) && {
    if (!error_) return {};
    return UnexpectedOf<E>(std::invoke(change, std::move(*error_)));
  }

 private:
  std::optional<E> error_;
};

template <typename T = void>
using Result = Expected<T, Error>;
using Unexpected = UnexpectedOf<Error>;

[[nodiscard]] Unexpected fail(ErrorKind kind, std::string message, std::string hint = {});
// For system calls: "what: strerror(err)". EPERM and EACCES become ErrorKind::environment
// whatever `kind` says, with a hint to run as root.
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

// ROSE_TRY and ROSE_CHECK return the error of a failed Result from the enclosing function.
#define ROSE_CONCAT_(a, b) a##b
#define ROSE_CONCAT(a, b) ROSE_CONCAT_(a, b)
#define ROSE_TRY_ASSIGN_(tmp, target, expr)                    \
  auto tmp = (expr);                                           \
  if (!tmp) return ::rose::Unexpected(std::move(tmp).error()); \
  target = std::move(*tmp)
// ROSE_TRY(auto x, f()): declares x with the value of f(), or returns the error of f().
#define ROSE_TRY(target, expr) ROSE_TRY_ASSIGN_(ROSE_CONCAT(rose_try_, __LINE__), target, expr)
// ROSE_CHECK(f()): the same for a Result<void>.
#define ROSE_CHECK(expr)                                                                                    \
  do {                                                                                                      \
    if (auto rose_check_ = (expr); !rose_check_) return ::rose::Unexpected(std::move(rose_check_).error()); \
  } while (false)
