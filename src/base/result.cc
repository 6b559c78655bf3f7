#include "base/result.h"

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "base/log.h"

namespace rose {

Error Error::in(std::string_view what) && {
  message = fmt::format("{}: {}", what, message);
  return std::move(*this);
}

Unexpected fail(ErrorKind kind, std::string message, std::string hint) {
  return Unexpected(Error{kind, std::move(message), std::move(hint)});
}

Unexpected fail_errno(ErrorKind kind, std::string_view what, int err) {
  std::string message = fmt::format("{}: {}", what, std::strerror(err));
  Error error{kind, std::move(message), "", err};
  if (err == EPERM || err == EACCES) {
    error.kind = ErrorKind::environment;
    error.hint = "run as root, or see 'rose doctor' for what is missing";
  }
  return Unexpected(std::move(error));
}

int exit_code(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::usage:
    case ErrorKind::input: return 2;
    case ErrorKind::environment: return 3;
    case ErrorKind::inconclusive:
    case ErrorKind::cancelled: return 4;
    case ErrorKind::bug: return 70;
  }
  return 70;
}

void rose_bug(const char* condition, const char* file, int line) {
  std::fprintf(stderr, "rose: bug: %s:%d: %s\n", file, line, condition);
  for (const std::string& message : log::recent()) std::fprintf(stderr, "  %s\n", message.c_str());
  std::fflush(stderr);
  std::_Exit(70);
}

}  // namespace rose
