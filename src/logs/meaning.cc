#include "logs/meaning.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>

#include "base/ascii.h"
#include "kernel/syscalls.h"

namespace rose::logs {
namespace {

constexpr std::size_t kMostMeant = 8000;  // characters of a message

struct ErrorText {
  std::string_view text;  // in small letters
  int error;
};

// Texts of the C library (strerror), of Go, Java, Rust, Python and of servers. What is more special stands first.
constexpr std::array kErrorWords = std::to_array<ErrorText>({
    {"no space left", ENOSPC}, {"disk is full", ENOSPC}, {"disk full", ENOSPC}, {"out of disk space", ENOSPC}, {"enough space", ENOSPC},
    {"database or disk is full", ENOSPC}, {"disk quota exceeded", EDQUOT}, {"file too large", EFBIG},
    {"read-only file system", EROFS}, {"readonlyfilesystemexception", EROFS}, {"read only file system", EROFS},
    {"input/output error", EIO}, {"i/o error", EIO}, {"disk i/o error", EIO}, {"stale file handle", ESTALE},
    {"too many open files in system", ENFILE}, {"too many open files", EMFILE}, {"no file descriptors available", EMFILE},
    {"cannot allocate memory", ENOMEM}, {"not enough memory", ENOMEM}, {"unable to create native thread", EAGAIN},
    {"unable to create new native thread", EAGAIN}, {"can't start new thread", EAGAIN},
    {"no such file or directory", ENOENT}, {"nosuchfileexception", ENOENT}, {"filenotfounderror", ENOENT}, {"no such file", ENOENT},
    {"permission denied", EACCES}, {"accessdeniedexception", EACCES}, {"permissionerror", EACCES}, {"operation not permitted", EPERM},
    {"file exists", EEXIST}, {"filealreadyexistsexception", EEXIST}, {"not a directory", ENOTDIR}, {"is a directory", EISDIR},
    {"directory not empty", ENOTEMPTY}, {"text file busy", ETXTBSY}, {"device or resource busy", EBUSY}, {"no such device", ENODEV},
    {"connection refused", ECONNREFUSED}, {"connectionrefusederror", ECONNREFUSED}, {"connection reset", ECONNRESET},
    {"connectionreseterror", ECONNRESET}, {"broken pipe", EPIPE}, {"brokenpipeerror", EPIPE}, {"connection aborted", ECONNABORTED},
    {"software caused connection abort", ECONNABORTED}, {"no route to host", EHOSTUNREACH}, {"network is unreachable", ENETUNREACH},
    {"network is down", ENETDOWN}, {"host is down", EHOSTDOWN}, {"address already in use", EADDRINUSE},
    {"cannot assign requested address", EADDRNOTAVAIL}, {"connection timed out", ETIMEDOUT}, {"operation timed out", ETIMEDOUT},
    {"sockettimeoutexception", ETIMEDOUT}, {"connect timed out", ETIMEDOUT}, {"i/o timeout", ETIMEDOUT},
    {"resource temporarily unavailable", EAGAIN}, {"interrupted system call", EINTR}, {"bad file descriptor", EBADF},
    {"invalid argument", EINVAL}, {"cross-device link", EXDEV}, {"invalid cross-device link", EXDEV}, {"protocol error", EPROTO},
    {"message too long", EMSGSIZE}, {"no buffer space available", ENOBUFS}, {"transport endpoint is not connected", ENOTCONN},
    {"exec format error", ENOEXEC}, {"too many links", EMLINK}, {"file name too long", ENAMETOOLONG},
    {"value too large for defined data type", EOVERFLOW}, {"too many levels of symbolic links", ELOOP},
    {"function not implemented", ENOSYS}, {"operation not supported", EOPNOTSUPP},
    // Java's classes, where no text says more.
    {"java.io.filenotfoundexception", ENOENT}, {"nio.file.directorynotemptyexception", ENOTEMPTY}, {"java.net.noroutetohostexception", EHOSTUNREACH},
    {"java.net.bindexception", EADDRINUSE}, {"java.net.connectexception", ECONNREFUSED}, {"java.net.portunreachableexception", ECONNREFUSED},
});

struct Word {
  std::string_view text;
  Operation operation;
};

// Names of calls, then what people write. The one nearest before the error counts, else the first of the message.
constexpr std::array kOperations = std::to_array<Word>({
    {"fdatasync", Operation::sync}, {"fsync", Operation::sync}, {"msync", Operation::sync}, {"flush", Operation::sync}, {"syncing", Operation::sync},
    {"sync", Operation::sync},
    {"openat", Operation::open}, {"open", Operation::open}, {"creat", Operation::open},
    {"pwrite", Operation::write}, {"writev", Operation::write}, {"write", Operation::write}, {"writing", Operation::write},
    {"append", Operation::write}, {"sav", Operation::write}, {"stor", Operation::write}, {"persist", Operation::write}, {"dump", Operation::write},
    {"fallocate", Operation::truncate}, {"truncat", Operation::truncate}, {"preallocat", Operation::truncate},
    {"pread", Operation::read}, {"read", Operation::read}, {"load", Operation::read},
    {"renam", Operation::rename}, {"unlink", Operation::unlink}, {"remov", Operation::unlink}, {"delet", Operation::unlink},
    {"mkdir", Operation::mkdir}, {"make directory", Operation::mkdir}, {"create directory", Operation::mkdir},
    {"connect", Operation::connect}, {"dial", Operation::connect}, {"accept", Operation::accept}, {"listen", Operation::listen}, {"bind", Operation::listen},
    {"send", Operation::send}, {"recv", Operation::receive}, {"receiv", Operation::receive},
    {"fork", Operation::spawn}, {"spawn", Operation::spawn}, {"native thread", Operation::spawn}, {"new thread", Operation::spawn}, {"exec", Operation::spawn},
    {"mmap", Operation::memory}, {"malloc", Operation::memory}, {"allocate memory", Operation::memory},
});

constexpr std::array kLost = std::to_array<std::string_view>({
    "lost connection", "connection lost", "lost leader", "leader lost", "lost contact", "unreachable", "not reachable", "peer became inactive",
    "is lost", "disconnected", "connection closed", "closed by peer", "client connection closed", "node down", "is down", "marking it as down",
    "marked as failing", "failing state", "no response from", "did not respond", "not responding", "stale connection", "heartbeat failed",
    "failed to reach", "failed to send out heartbeat", "cannot connect", "can't connect", "failed to connect", "cannot open channel",
    "error trying to connect", "connection broken", "connection with", "peer is gone", "dropped out", "prober detected unhealthy",
    "server is down", "+sdown", "+odown", "upstream timed out", "i/o timeout", "unexpected eof", "end of stream", "eofexception"});
constexpr std::array kLate = std::to_array<std::string_view>({
    "timed out", "timeout", "deadline exceeded", "took too long", "slow fdatasync", "slow fsync", "heartbeat", "clock jump", "clock drift", "detected pause",
    "jvm pause", "process paused", "overloaded", "stalled", "tilt"});
constexpr std::array kPanic = std::to_array<std::string_view>({
    "panic:", "panic(", "panicked at", "fatal error:", "segmentation fault", "assertion failed", "assertion `", "assert failed", "aborted (core",
    "uncaught exception", "unhandled exception", "terminate called", "stack smashing", "sigsegv", "sigabrt", "sigbus", "bus error",
    "traceback (most recent call last)", "severe unrecoverable error", "going to shut down", "panic:  "});
constexpr std::array kStopping = std::to_array<std::string_view>({
    "shutting down", "shut down", "shutdown", "sigterm", "signal 15", "sigint", "received signal", "terminating", "exiting", "stopping", "bye bye",
    "server exiting", "ready to exit", "initiating shutdown", "fast shutdown"});
constexpr std::array kStarting = std::to_array<std::string_view>({
    "starting", "is starting", "started", "booting", "version", "initializing", "begins", "listening", "ready to accept"});

bool has(std::string_view low, std::span<const std::string_view> words) {
  return std::any_of(words.begin(), words.end(), [&](std::string_view word) { return low.find(word) != std::string_view::npos; });
}

bool word_char(char c) { return is_digit(c) || is_alpha(c) || c == '_'; }

int number_at(std::string_view text, std::size_t at) {
  int number = -1;
  for (; at < text.size() && is_digit(text[at]) && number < 10'000; ++at) number = (number < 0 ? 0 : number * 10) + (text[at] - '0');
  return number;
}

// "signal 9", "errno 28", "os error 28": the number behind the words; -1: they are not there.
int number_behind(std::string_view low, std::string_view words) {
  for (std::size_t at = low.find(words); at != std::string_view::npos; at = low.find(words, at + 1)) {
    std::size_t from = at + words.size();
    while (from < low.size() && (low[from] == ' ' || low[from] == ':' || low[from] == '=' || low[from] == '(')) ++from;
    if (const int number = number_at(low, from); number >= 0) return number;
  }
  return -1;
}

// "ENOSPC", "SIGKILL" as words of their own.
template <typename Find>
int named(std::string_view text, std::string_view prefix, std::size_t& at, const Find& find) {
  for (at = text.find(prefix); at != std::string_view::npos; at = text.find(prefix, at + 1)) {
    if (at != 0 && word_char(text[at - 1])) continue;
    std::size_t end = at;
    while (end < text.size() && ((text[end] >= 'A' && text[end] <= 'Z') || is_digit(text[end]))) ++end;
    if (end - at < 3 || end - at > 16 || (end < text.size() && word_char(text[end]))) continue;
    if (const std::optional<int> number = find(text.substr(at, end - at)); number && *number > 0) return *number;
  }
  return 0;
}

struct Found {
  int error = 0;
  std::size_t at = std::string_view::npos;
};

Found find_error(std::string_view text, std::string_view low) {
  Found found;
  for (const ErrorText& one : kErrorWords) {
    const std::size_t at = low.rfind(one.text);  // the cause stands last: "Caused by: ...", "cannot save: open x: ..."
    if (at != std::string_view::npos && found.error == 0) found = {one.error, at};
  }
  if (found.error != 0) return found;
  std::size_t at = 0;
  if (const int error = named(text, "E", at, [](std::string_view name) { return is_digit(name[1]) ? std::nullopt : kernel::errno_number(name); });
      error > 0 && error < 134)
    return {error, at};
  for (const std::string_view words : {"errno", "os error", "error code"}) {
    const int number = number_behind(low, words);
    if (number > 0 && number < 134 && words != "error code") return {number, low.find(words)};
  }
  return found;
}

Operation find_operation(std::string_view low, std::size_t error_at) {
  Operation best = Operation::unknown;
  std::size_t best_at = 0;
  bool before = false;
  for (const Word& word : kOperations) {
    for (std::size_t at = low.find(word.text); at != std::string_view::npos; at = low.find(word.text, at + 1)) {
      if (at != 0 && word_char(low[at - 1]) && word.text != "sync") continue;
      // Of the words before the error the nearest; else the first behind it.
      const bool here_before = error_at != std::string_view::npos && at < error_at;
      const bool better = best == Operation::unknown || (here_before && (!before || at > best_at)) || (!here_before && !before && at < best_at);
      if (!better) continue;
      best = word.operation;
      best_at = at;
      before = here_before;
    }
  }
  return best;
}

bool path_char(char c) { return word_char(c) || c == '/' || c == '.' || c == '-' || c == '+' || c == '@' || c == '%' || c == '~' || c == '#' || c == '='; }

// The path nearest to the error: quoted, or a word with a slash.
std::string find_path(std::string_view text, std::size_t error_at) {
  std::string_view best;
  std::size_t best_distance = std::string_view::npos;
  for (std::size_t at = 0; at < text.size();) {
    if (!path_char(text[at])) {
      ++at;
      continue;
    }
    const std::size_t begin = at;
    while (at < text.size() && path_char(text[at])) ++at;
    std::string_view word = text.substr(begin, at - begin);
    const bool url = begin >= 1 && text[begin - 1] == ':' && word.starts_with("//");
    while (!word.empty() && (word.back() == '.' || word.back() == '=')) word.remove_suffix(1);
    const std::size_t slash = word.find('/');
    const std::size_t equals = word.rfind('=', std::min(slash, word.size()));
    if (equals != std::string_view::npos && equals < slash) word.remove_prefix(equals + 1);
    if (url || word.find('/') == std::string_view::npos || word.size() < 3 || word.find("//") == 0) continue;
    const std::size_t letters = static_cast<std::size_t>(std::count_if(word.begin(), word.end(), [](char c) { return word_char(c) && !is_digit(c); }));
    if (letters < 2) continue;                                   // "3/5", "1/0/0"
    if (word[0] != '/' && word.find('.') == std::string_view::npos && !(begin > 0 && (text[begin - 1] == '"' || text[begin - 1] == '\''))) continue;  // "and/or", "i/o"
    if (text.substr(begin + word.size()).starts_with(":") && is_digit(text[std::min(text.size() - 1, begin + word.size() + 1)])) continue;  // a place in the source: "x/y.go:17"
    const std::size_t distance = error_at == std::string_view::npos ? begin : error_at > begin ? error_at - begin : begin - error_at + 40;
    if (distance < best_distance) {
      best = word;
      best_distance = distance;
    }
  }
  return std::string(best);
}

// "10.0.0.1:7000", "[fe80::1]:7000"; the last one of the line: "local -> peer".
std::string find_peer(std::string_view text) {
  std::string best;
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (!is_digit(text[at]) || (at != 0 && (word_char(text[at - 1]) || text[at - 1] == '.'))) continue;
    int parts = 0;
    std::size_t i = at;
    for (; parts < 4; ++parts) {
      const int number = number_at(text, i);
      if (number < 0 || number > 255) break;
      while (i < text.size() && is_digit(text[i])) ++i;
      if (parts < 3) {
        if (i >= text.size() || text[i] != '.') break;
        ++i;
      }
    }
    if (parts != 4) {
      while (at + 1 < text.size() && is_digit(text[at + 1])) ++at;
      continue;
    }
    std::size_t end = i;
    if (i + 1 < text.size() && text[i] == ':' && is_digit(text[i + 1]))
      for (++end; end < text.size() && is_digit(text[end]); ++end) {}
    best = text.substr(at, end - at);
    at = end;
  }
  return best;
}

using Calls = std::vector<std::string_view>;

const Calls& calls_of(Operation operation) {
  static const Calls none;
  static const std::array<Calls, 16> all = {{
      {},
      {"openat", "open", "creat"},
      {"read", "pread64", "readv"},
      {"write", "pwrite64", "writev", "pwritev"},
      {"fsync", "fdatasync", "sync_file_range"},
      {"ftruncate", "fallocate", "truncate"},
      {"rename", "renameat", "renameat2"},
      {"unlink", "unlinkat"},
      {"mkdir", "mkdirat"},
      {"connect"},
      {"accept4", "accept"},
      {"bind", "listen"},
      {"sendto", "write", "sendmsg", "writev"},
      {"read", "recvfrom", "recvmsg"},
      {"clone", "clone3", "vfork", "execve"},
      {"mmap", "brk"},
  }};
  const auto i = static_cast<std::size_t>(operation);
  return i < all.size() ? all[i] : none;
}

// What returns the error where the message names no call.
Calls calls_by_error(int error) {
  switch (error) {
    case ENOSPC:
    case EDQUOT: return {"write", "pwrite64", "openat", "fsync", "fallocate", "ftruncate", "writev", "mkdir"};
    case EFBIG: return {"write", "pwrite64", "ftruncate", "fallocate", "writev"};
    case EIO: return {"write", "fsync", "pwrite64", "fdatasync", "read", "pread64", "openat"};
    case EROFS: return {"openat", "write", "mkdir", "rename", "unlink"};
    case EMFILE:
    case ENFILE: return {"accept4", "accept", "openat", "socket"};
    case ENOENT:
    case EACCES:
    case EPERM:
    case ESTALE:
    case EISDIR:
    case ENOTDIR: return {"openat", "open", "rename", "unlink", "mkdir"};
    case EEXIST: return {"openat", "mkdir"};
    case EBUSY:
    case ENOTEMPTY: return {"rename", "unlink", "rmdir"};
    case ECONNREFUSED:
    case EHOSTUNREACH:
    case ENETUNREACH:
    case ENETDOWN:
    case EHOSTDOWN: return {"connect"};
    case ECONNRESET: return {"read", "recvfrom", "write", "sendto", "recvmsg"};
    case EPIPE: return {"write", "sendto", "sendmsg", "writev"};
    case ETIMEDOUT: return {"connect", "read", "recvfrom"};
    case EADDRINUSE:
    case EADDRNOTAVAIL: return {"bind", "connect"};
    case ENOMEM: return {"mmap", "clone", "clone3"};
    case EAGAIN: return {"clone", "clone3"};
    case ECONNABORTED: return {"accept4", "accept"};
    case EXDEV: return {"rename", "link"};
    case ENOBUFS: return {"sendto", "sendmsg"};
    case EINVAL: return {"openat", "write"};
    default: return {};
  }
}

}  // namespace

Meaning read_meaning(std::string_view text) {
  text = text.substr(0, kMostMeant);
  const std::string low = lower_case(text);
  Meaning meaning;
  const Found error = find_error(text, low);
  meaning.error = error.error;
  meaning.lost = has(low, kLost);
  meaning.late = has(low, kLate);
  meaning.panic = has(low, kPanic);
  meaning.stopping = has(low, kStopping);
  meaning.starting = has(low, kStarting);
  meaning.out_of_memory = low.find("out of memory: kill") != std::string::npos || low.find("oom-kill") != std::string::npos ||
                          low.find("oom killer") != std::string::npos;
  std::size_t at = 0;
  int signal = named(text, "SIG", at, [](std::string_view name) { return kernel::signal_number(name); });
  if (signal == 0) signal = std::max(0, number_behind(low, "signal"));
  const bool gone = low.find("terminated by") != std::string::npos || low.find("killed by") != std::string::npos ||
                    low.find("was killed") != std::string::npos || low.find("exited") != std::string::npos || low.find("exit status") != std::string::npos ||
                    low.find("exit code") != std::string::npos || low.find("crashed") != std::string::npos;
  if (gone && signal > 0 && signal < 65 && signal != SIGCHLD) {
    meaning.ended = true;
    meaning.signal = signal;
  } else if (gone) {
    for (const std::string_view words : {"exit code", "exit status", "exited with code", "exited with status", "exited with exit code", "status=", "code"}) {
      const int code = number_behind(low, words);
      if (code > 0 && code < 256) {
        meaning.ended = true;
        meaning.exit_code = code;
        if (code == 128 + SIGKILL || code == 128 + SIGTERM) meaning.signal = code - 128;
        break;
      }
    }
  }
  if (meaning.out_of_memory) {
    meaning.ended = true;
    meaning.signal = SIGKILL;
  }
  if (meaning.error != 0 || meaning.lost || meaning.late) {
    meaning.peer = find_peer(text);
    meaning.operation = find_operation(low, error.at);
    meaning.path = find_path(text, error.at);
  }
  switch (meaning.error) {
    case ECONNREFUSED:
    case ECONNRESET:
    case EPIPE:
    case ETIMEDOUT:
    case EHOSTUNREACH:
    case ENETUNREACH:
    case EHOSTDOWN: meaning.lost = true; break;
    default: break;
  }
  return meaning;
}

std::vector<std::string_view> calls_that_fail(int error, Operation operation) {
  Calls by_error = calls_by_error(error);
  const Calls& by_word = calls_of(operation);
  if (by_word.empty()) return by_error;
  // Both agree on some, mostly; those first. "save" may have failed in its open.
  Calls all;
  const auto add = [&](std::string_view call) {
    if (std::find(all.begin(), all.end(), call) == all.end()) all.push_back(call);
  };
  for (const std::string_view call : by_word)
    if (std::find(by_error.begin(), by_error.end(), call) != by_error.end()) add(call);
  for (const std::string_view call : by_word) add(call);
  for (const std::string_view call : by_error) add(call);
  return all;
}

std::vector<int> errors_of(std::string_view syscall) {
  if (syscall.starts_with("open") || syscall == "creat") return {EIO, ENOSPC, EMFILE, EACCES};
  if (syscall.starts_with("fsync") || syscall.starts_with("fdatasync") || syscall == "sync_file_range" || syscall == "syncfs") return {EIO, ENOSPC};
  if (syscall.find("write") != std::string_view::npos) return {ENOSPC, EIO};
  if (syscall.find("read") != std::string_view::npos) return {EIO};
  if (syscall.starts_with("rename") || syscall.starts_with("link")) return {EIO, ENOSPC};
  if (syscall.starts_with("unlink") || syscall == "rmdir") return {EIO, EACCES};
  if (syscall.starts_with("mkdir")) return {ENOSPC, EACCES};
  if (syscall.find("truncate") != std::string_view::npos || syscall == "fallocate") return {ENOSPC, EIO};
  if (syscall == "connect") return {ECONNREFUSED, ETIMEDOUT};
  if (syscall.starts_with("accept")) return {EMFILE, ECONNABORTED};
  if (syscall.starts_with("exec") || syscall.starts_with("clone")) return {EAGAIN, ENOMEM};
  return {};
}

}  // namespace rose::logs
