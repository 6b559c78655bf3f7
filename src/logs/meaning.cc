#include "logs/meaning.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <csignal>
#include <cstring>
#include <span>

#include "base/ascii.h"
#include "kernel/syscalls.h"
#include "logs/spans.h"

namespace rose::logs {
namespace {

constexpr std::size_t kMostMeant = 8000;  // characters of a message
constexpr std::size_t kOfVolume = 16;     // characters between a volume and the words that it is full
constexpr double kLeastSlowDisk = 100e6;  // ns: a disk with moving parts takes less under load

struct ErrorText {
  std::string_view text;  // in small letters
  int error;
};

// Texts of the C library (strerror), of Go, Java, Rust, Python and of servers. What is more special stands first.
constexpr std::array kErrorWords = std::to_array<ErrorText>({
    {"no space left", ENOSPC},
    {"disk is full", ENOSPC},
    {"disk full", ENOSPC},
    {"out of disk space", ENOSPC},
    {"enough space", ENOSPC},
    {"database or disk is full", ENOSPC},
    {"out of space", ENOSPC},
    {"diskoutofspaceexception", ENOSPC},
    {"disk space is insufficient", ENOSPC},
    {"insufficient disk space", ENOSPC},
    {"exceeds available storage space", ENOSPC},
    {"exceeds available space", ENOSPC},
    {"storagefull", ENOSPC},
    {"flood stage disk watermark", ENOSPC},
    {"disk is critically full", ENOSPC},
    {"spacequotaexceeded", EDQUOT},
    {"nsquotaexceeded", EDQUOT},
    {"disk quota exceeded", EDQUOT},
    {"file too large", EFBIG},
    {"read-only file system", EROFS},
    {"filesystem read-only", EROFS},
    {"critical medium error", EIO},
    {"bad_alloc", ENOMEM},
    {"failed to allocate memory", ENOMEM},
    {"unable to allocate memory", ENOMEM},
    {"pthread_create failed", EAGAIN},
    {"readonlyfilesystemexception", EROFS},
    {"read only file system", EROFS},
    {"input/output error", EIO},
    {"i/o error", EIO},
    {"io error", EIO},  // RocksDB and its relatives: "IO error: While pread ..."; a text behind it may say more
    {"disk i/o error", EIO},
    {"stale file handle", ESTALE},
    {"too many open files in system", ENFILE},
    {"too many open files", EMFILE},
    {"no file descriptors available", EMFILE},
    {"out of file descriptors", EMFILE},
    {"out of descriptors", EMFILE},
    {"file descriptor limit", EMFILE},
    {"file descriptors exhausted", EMFILE},
    {"cannot allocate memory", ENOMEM},
    {"not enough memory", ENOMEM},
    {"unable to create native thread", EAGAIN},
    {"unable to create new native thread", EAGAIN},
    {"can't start new thread", EAGAIN},
    {"no such file or directory", ENOENT},
    {"nosuchfileexception", ENOENT},
    {"filenotfounderror", ENOENT},
    {"no such file", ENOENT},
    {"permission denied", EACCES},
    {"accessdeniedexception", EACCES},
    {"permissionerror", EACCES},
    {"operation not permitted", EPERM},
    {"file exists", EEXIST},
    {"filealreadyexistsexception", EEXIST},
    {"not a directory", ENOTDIR},
    {"is a directory", EISDIR},
    {"directory not empty", ENOTEMPTY},
    {"text file busy", ETXTBSY},
    {"device or resource busy", EBUSY},
    {"no such device", ENODEV},
    {"connection refused", ECONNREFUSED},
    {"connectionrefusederror", ECONNREFUSED},
    {"connection reset", ECONNRESET},
    {"connectionreseterror", ECONNRESET},
    {"broken pipe", EPIPE},
    {"brokenpipeerror", EPIPE},
    {"connection aborted", ECONNABORTED},
    {"software caused connection abort", ECONNABORTED},
    {"no route to host", EHOSTUNREACH},
    {"network is unreachable", ENETUNREACH},
    {"network is down", ENETDOWN},
    {"host is down", EHOSTDOWN},
    {"address already in use", EADDRINUSE},
    {"cannot assign requested address", EADDRNOTAVAIL},
    {"connection timed out", ETIMEDOUT},
    {"operation timed out", ETIMEDOUT},
    {"esockettimedout", ETIMEDOUT},
    {"und_err_connect_timeout", ETIMEDOUT},
    {"und_err_headers_timeout", ETIMEDOUT},
    {"und_err_socket", ECONNRESET},
    {"socket hang up", ECONNRESET},
    {"sockettimeoutexception", ETIMEDOUT},
    {"connect timed out", ETIMEDOUT},
    {"i/o timeout", ETIMEDOUT},
    {"resource temporarily unavailable", EAGAIN},
    {"interrupted system call", EINTR},
    {"bad file descriptor", EBADF},
    {"invalid argument", EINVAL},
    {"cross-device link", EXDEV},
    {"invalid cross-device link", EXDEV},
    {"protocol error", EPROTO},
    {"message too long", EMSGSIZE},
    {"no buffer space available", ENOBUFS},
    {"transport endpoint is not connected", ENOTCONN},
    {"exec format error", ENOEXEC},
    {"too many links", EMLINK},
    {"file name too long", ENAMETOOLONG},
    {"value too large for defined data type", EOVERFLOW},
    {"too many levels of symbolic links", ELOOP},
    {"function not implemented", ENOSYS},
    {"operation not supported", EOPNOTSUPP},
    // Java's classes, where no text says more.
    {"java.io.filenotfoundexception", ENOENT},
    {"nio.file.directorynotemptyexception", ENOTEMPTY},
    {"java.net.noroutetohostexception", EHOSTUNREACH},
    {"java.net.bindexception", EADDRINUSE},
    {"java.net.connectexception", ECONNREFUSED},
    {"java.net.portunreachableexception", ECONNREFUSED},
});

// Names a class of errors, and the error only where nothing else does.
constexpr std::string_view kErrorClass = "io error";

struct Word {
  std::string_view text;
  Operation operation;
};

// Names of calls, then what people write. The one nearest before the error counts, else the first of the message.
constexpr std::array kOperations = std::to_array<Word>({
    {"fdatasync", Operation::sync},
    {"fsync", Operation::sync},
    {"msync", Operation::sync},
    {"flush", Operation::sync},
    {"syncing", Operation::sync},
    {"sync", Operation::sync},
    {"openat", Operation::open},
    {"open", Operation::open},
    {"access file", Operation::open},
    {"creat", Operation::open},
    {"pwrite", Operation::write},
    {"writev", Operation::write},
    {"write", Operation::write},
    {"writing", Operation::write},
    {"append", Operation::write},
    {"sav", Operation::write},
    {"stor", Operation::write},
    {"persist", Operation::write},
    {"dump", Operation::write},
    {"fallocate", Operation::truncate},
    {"truncat", Operation::truncate},
    {"preallocat", Operation::truncate},
    {"pread", Operation::read},
    {"read", Operation::read},
    {"load", Operation::read},
    {"seek", Operation::read},
    {"size of", Operation::open},
    {"stat", Operation::open},
    {"list", Operation::open},
    {"renam", Operation::rename},
    {"unlink", Operation::unlink},
    {"remov", Operation::unlink},
    {"delet", Operation::unlink},
    {"mkdir", Operation::mkdir},
    {"make directory", Operation::mkdir},
    {"create directory", Operation::mkdir},
    {"connect", Operation::connect},
    {"dial", Operation::connect},
    {"accept", Operation::accept},
    {"listen", Operation::listen},
    {"bind", Operation::listen},
    {"send", Operation::send},
    {"recv", Operation::receive},
    {"receiv", Operation::receive},
    {"socket()", Operation::socket},
    {"socket: ", Operation::socket},
    {"extend", Operation::write},
    {"force0", Operation::sync},
    {"os.replace", Operation::rename},
    {"shutil.move", Operation::rename},
    {"fork", Operation::spawn},
    {"spawn", Operation::spawn},
    {"native thread", Operation::spawn},
    {"new thread", Operation::spawn},
    {"pthread_create", Operation::spawn},
    {"execve", Operation::spawn},
    {"exec:", Operation::spawn},
    {"exec ", Operation::spawn},
    {"exec()", Operation::spawn},
    {"exec(", Operation::spawn},
    {"mmap", Operation::memory},
    {"malloc", Operation::memory},
    {"allocate memory", Operation::memory},
});

constexpr std::array kLost = std::to_array<std::string_view>({"lost connection",
                                                              "connection lost",
                                                              "lost leader",
                                                              "leader lost",
                                                              "lost contact",
                                                              "unreachable",
                                                              "not reachable",
                                                              "peer became inactive",
                                                              "is lost",
                                                              "disconnected",
                                                              "node down",
                                                              "is down",
                                                              "marking it as down",
                                                              "as failing",
                                                              "fail message received",
                                                              "marked as failing",
                                                              "failing state",
                                                              "no response from",
                                                              "did not respond",
                                                              "not responding",
                                                              "stale connection",
                                                              "heartbeat failed",
                                                              "failed to reach",
                                                              "failed to send out heartbeat",
                                                              "cannot connect",
                                                              "can't connect",
                                                              "failed to connect",
                                                              "cannot open channel",
                                                              "error trying to connect",
                                                              "connection broken",
                                                              "connection with",
                                                              "peer is gone",
                                                              "dropped out",
                                                              "prober detected unhealthy",
                                                              "server is down",
                                                              "now down",
                                                              "rs_down",
                                                              "has failed, no acks",
                                                              "no acks received",
                                                              "no reply from",
                                                              "could not be established",
                                                              "node-left",
                                                              "no live upstreams",
                                                              "not able to reach",
                                                              "error reconnecting",
                                                              "lost leading",
                                                              "memberfailed",
                                                              "missed heartbeats",
                                                              "layer4 timeout",
                                                              "layer4 connection problem",
                                                              "running_partitioned_network",
                                                              "nodenotready",
                                                              "marked as dead",
                                                              "dead node",
                                                              "lost heartbeat",
                                                              "unable to connect",
                                                              "could not connect",
                                                              "couldn't connect",
                                                              "wait connect timeout",
                                                              "error while dialing",
                                                              "no such host",
                                                              "name or service not known",
                                                              "temporary failure in name resolution",
                                                              "unknownhostexception",
                                                              "connection loss",
                                                              "has been disconnected",
                                                              "+sdown",
                                                              "+odown",
                                                              "upstream timed out",
                                                              "i/o timeout",
                                                              "is offline",
                                                              "now offline",
                                                              "went offline",
                                                              "went away",
                                                              "gone away",
                                                              "eai_again",
                                                              "getaddrinfo enotfound",
                                                              "suspecting ",
                                                              " suspected",
                                                              "node failed: ",
                                                              "has not responded",
                                                              "is unavailable",
                                                              "removed {{",
                                                              "error connecting",
                                                              "declared dead",
                                                              "considered dead",
                                                              "no longer reachable",
                                                              "is now lost",
                                                              "is dead",
                                                              "members left",
                                                              "member left",
                                                              "processor failed"});
// Lost, too.
constexpr std::array kClosed = std::to_array<std::string_view>(
    {"connection closed", "closed the connection", "closed by peer", "prematurely closed", "connection was closed",
     "unexpected eof", "end of stream", "eofexception"});
constexpr std::array kLate = std::to_array<std::string_view>({"timed out",         "timeout",
                                                              "deadline exceeded", "took too long",
                                                              "slow fdatasync",    "slow fsync",
                                                              "heartbeat",         "clock jump",
                                                              "clock drift",       "detected pause",
                                                              "jvm pause",         "process paused",
                                                              "local pause",       "disk stall",
                                                              "disk slowness",     "is lagging",
                                                              "gc overhead",       "clock unsynchronized",
                                                              "clock skew",        "overloaded",
                                                              "stalled",           "tilt"});
constexpr std::array kPanic = std::to_array<std::string_view>({"panic:",
                                                               "panic(",
                                                               "panicked at",
                                                               "fatal error:",
                                                               "segmentation fault",
                                                               "assertion failed",
                                                               "assertion `",
                                                               "assert failed",
                                                               "aborted (core",
                                                               "uncaught exception",
                                                               "exception in thread \"main\"",
                                                               "unhandled exception",
                                                               "terminate called",
                                                               "stack smashing",
                                                               "sigsegv",
                                                               "sigabrt",
                                                               "sigbus",
                                                               "bus error",
                                                               "fatal assertion",
                                                               "aborting after",
                                                               "check failed:",
                                                               "check failure stack trace",
                                                               "fatal error in thread",
                                                               "caught signal",
                                                               "segfault at",
                                                               "received signal segmentation",
                                                               "received signal aborted",
                                                               "core dumped",
                                                               "java.lang.outofmemoryerror",
                                                               "terminating due to java.lang",
                                                               "severe unrecoverable error",
                                                               "going to shut down",
                                                               "panic:  "});
constexpr std::array kStopping = std::to_array<std::string_view>(
    {"shutting down", "shut down", "shutdown", "sigterm", "signal 15", "sigint", "received signal", "terminating",
     "exiting", "stopping", "bye bye", "server exiting", "ready to exit", "initiating shutdown", "fast shutdown"});
constexpr std::array kStarting =
    std::to_array<std::string_view>({"starting", "started", "booting", "version", "initializing", "begins", "listening",
                                     "ready to accept", "opened log file"});
constexpr std::array kServing = std::to_array<std::string_view>({"awaiting socket connections",
                                                                 "awaiting connections",
                                                                 "waiting for connections",
                                                                 "accepting connections",
                                                                 "accept connections",
                                                                 "ready for connections",
                                                                 "ready to serve",
                                                                 "server is ready",
                                                                 "serving client",
                                                                 "serving peer",
                                                                 "serving insecure",
                                                                 "serving requests",
                                                                 "serving traffic",
                                                                 "now serving",
                                                                 "listening",
                                                                 "server started",
                                                                 "started server",
                                                                 "server is started",
                                                                 "startup complete",
                                                                 "binding to port",
                                                                 "service started",
                                                                 "is up and running"});
constexpr std::array kNotServing = std::to_array<std::string_view>({"not ", "stop", "no longer", "before "});

// In vain, and what: a message that has both, and no error, leaves the error to be guessed.
constexpr std::array kInVain =
    std::to_array<std::string_view>({"could not", "couldn't", "cannot", "can't", "can not", "unable to", "failed",
                                     "failure", "error saving", "error writing", "error opening", "error reading",
                                     "error creating", "error renaming", "error while", "error during"});
// What has not happened, but may.
constexpr std::array kMayFail = std::to_array<std::string_view>(
    {"may fail", "might fail", "could fail", "can fail", "cause failure", "may cause", "can cause"});
constexpr std::array kOnDisk = std::to_array<std::string_view>(
    {"file",       "disk",     "snapshot", "database", "segment",   "journal", "wal",
     "checkpoint", "index",    "table",    "folder",   "directory", "storage", "rdb",
     "aof",        "manifest", "block",    "page",     "dump",      "backup",  "volume"});

// Where the first of the words that stands there ends; 0: none does.
std::size_t behind_any(std::string_view low, std::span<const std::string_view> words) {
  for (const std::string_view word : words)
    if (const std::size_t at = low.find(word); at != std::string_view::npos) return at + word.size();
  return 0;
}

bool has(std::string_view low, std::span<const std::string_view> words) { return behind_any(low, words) != 0; }

// As a word of its own, or of an exception's name: "election-timeout": "1s", minSessionTimeout, "negotiated timeout =
// 10000" and, in a row of such, "to 10.0.0.1:5701, timeout: 0" are settings.
bool says_late(std::string_view low) {
  for (const std::string_view word : kLate)
    for (std::size_t at = low.find(word); at != std::string_view::npos; at = low.find(word, at + 1)) {
      const std::string_view behind = low.substr(at + word.size());
      const bool listed =
          low.substr(0, at).ends_with(", ") && behind.starts_with(": ") && behind.size() > 2 && is_digit(behind[2]);
      const bool key = listed || behind.starts_with("\":") || behind.starts_with('=') || behind.starts_with(" = ") ||
                       behind.starts_with('-') || behind.starts_with('_');
      if (behind.starts_with("exception") || behind.starts_with("error") ||
          (!key && (at == 0 || !is_name_char(low[at - 1]))))
        return true;
    }
  return false;
}

bool word_char(char c) { return is_digit(c) || is_alpha(c) || c == '_'; }

bool has_word(std::string_view low, std::span<const std::string_view> words) {
  return std::any_of(words.begin(), words.end(), [&](std::string_view word) {
    for (std::size_t at = low.find(word); at != std::string_view::npos; at = low.find(word, at + 1))
      if (at == 0 || !word_char(low[at - 1])) return true;
    return false;
  });
}

// The program says of itself that it begins. The words stand alone, and are no value of a field: "status = started" and
// "starting_partitioned_network" say something of something else. A version is one where its number follows.
bool says_start(std::string_view low) {
  for (const std::string_view word : kStarting)
    for (std::size_t at = low.find(word); at != std::string_view::npos; at = low.find(word, at + 1)) {
      const std::size_t end = at + word.size();
      if ((at != 0 && word_char(low[at - 1])) || (end < low.size() && word_char(low[end]))) continue;
      std::string_view before = low.substr(0, at);
      while (!before.empty() && (before.back() == ' ' || before.back() == '"')) before.remove_suffix(1);
      if (before.ends_with('=')) continue;
      if (word == "version") {
        const std::size_t digit = low.find_first_of("0123456789", end);
        if (digit == std::string_view::npos || digit > end + 4) continue;
      }
      return true;
    }
  return false;
}

// How long a disk, or a call that waits for one, took, where a message says that this was too long; 0: it says no such
// thing. Three parts, in any order: something that waits for a disk, that it was slow, and a span of time.
std::int64_t find_slow_disk(std::string_view low) {
  constexpr std::array kWaits = std::to_array<std::string_view>(
      {"fsync", "fdatasync", "disk", "wal sync", "syncing", "sync duration", "write latency", "io latency",
       "i/o latency", "writing to wal", "storage device", "log sync", "journal write", "flush"});
  constexpr std::array kSlow =
      std::to_array<std::string_view>({"slow", "stall", "took too long", "takes too long", "taking too long",
                                       "ongoing for", "took longer", "has been blocked", "exceeded", "high latency"});
  constexpr std::array kOther = std::to_array<std::string_view>({"slow query", "slow request", "slow log", "slowlog"});
  if (!has(low, kWaits) || !has(low, kSlow) || has(low, kOther)) return 0;
  double longest = 0;
  for (std::size_t at = low.find_first_of("0123456789"); at != std::string_view::npos;) {
    const Span span = read_span(low, at);
    const bool word = at != 0 && (word_char(low[at - 1]) || low[at - 1] == '.' || low[at - 1] == '/');
    if (!word && span.ns > longest) longest = span.ns;
    at = low.find_first_of("0123456789", std::max(at + 1, span.end));
  }
  return longest >= kLeastSlowDisk && longest < 3600e9 ? std::llround(longest) : 0;
}

bool on_files(Operation operation) {
  switch (operation) {
    case Operation::open:
    case Operation::read:
    case Operation::write:
    case Operation::sync:
    case Operation::truncate:
    case Operation::rename:
    case Operation::unlink:
    case Operation::mkdir: return true;
    default: return false;
  }
}

int number_at(std::string_view text, std::size_t at) {
  int number = -1;
  for (; at < text.size() && is_digit(text[at]) && number < 10'000; ++at)
    number = (number < 0 ? 0 : number * 10) + (text[at] - '0');
  return number;
}

// "signal 9", "errno 28", "os error 28": the number behind the words; -1: they are not there. `place`: where the words
// that it stands behind begin.
int number_behind(std::string_view low, std::string_view words, std::size_t* place = nullptr) {
  for (std::size_t at = low.find(words); at != std::string_view::npos; at = low.find(words, at + 1)) {
    std::size_t from = at + words.size();
    while (from < low.size() && (low[from] == ' ' || low[from] == ':' || low[from] == '=' || low[from] == '(')) ++from;
    if (const int number = number_at(low, from); number >= 0) {
      if (place != nullptr) *place = at;
      return number;
    }
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

// What names the error, and where.
struct Found {
  int error = 0;
  std::size_t at = std::string_view::npos;
  std::size_t length = 0;

  [[nodiscard]] bool of_space() const { return error == ENOSPC || error == EDQUOT; }
  [[nodiscard]] bool covers(std::size_t i) const { return at != std::string_view::npos && i >= at && i < at + length; }
};

// "{error,enospc}": Erlang's atoms, whole words between signs.
Found error_atom(std::string_view low) {
  for (std::size_t at = low.find('e'); at != std::string_view::npos; at = low.find('e', at + 1)) {
    if (at == 0 || std::string_view("{,(['\"").find(low[at - 1]) == std::string_view::npos) continue;
    std::size_t end = at;
    while (end < low.size() && word_char(low[end])) ++end;
    if (end == low.size() || end - at < 3 || end - at > 16 ||
        std::string_view("},)]'\"").find(low[end]) == std::string_view::npos)
      continue;
    std::string name(low.substr(at, end - at));
    for (char& c : name) c = static_cast<char>(c >= 'a' && c <= 'z' ? c - 'a' + 'A' : c);
    if (const std::optional<int> error = kernel::errno_number(name);
        error && *error > 0 && *error < 134 && !is_digit(name[1]))
      return {*error, at, end - at};
  }
  return {};
}

// "Can't connect to MySQL server on '10.0.0.2' (111)": a number alone, of a message that says that something failed.
Found error_in_brackets(std::string_view low) {
  constexpr std::array kFailed =
      std::to_array<std::string_view>({"can't", "cannot", "could not", "couldn't", "failed", "unable to"});
  if (!has(low, kFailed)) return {};
  for (std::size_t at = low.find('('); at != std::string_view::npos; at = low.find('(', at + 1)) {
    const int number = number_at(low, at + 1);
    const std::size_t end = at + 1 + (number < 10 ? 1 : number < 100 ? 2 : 3);
    if (number > 0 && number < 134 && at > 0 && low[at - 1] == ' ' && end < low.size() && low[end] == ')')
      return {number, at, end + 1 - at};
  }
  return {};
}

Found find_error(std::string_view text, std::string_view low) {
  for (const std::string_view words : {"errno", "os error", "system error number", "error number"}) {
    std::size_t place = 0;
    const int number = number_behind(low, words, &place);
    if (number <= 0 || number >= 134) continue;
    // What the number says in words may follow: "[Errno 28] No space left on device".
    std::size_t end = low.find_first_of("0123456789", place);
    for (const ErrorText& one : kErrorWords)
      if (const std::size_t at = low.find(one.text, end);
          one.error == number && at != std::string_view::npos && at - end < 8)
        end = at + one.text.size();
    return {number, place, end - place};
  }
  // "IO error: /x.sst: Too many open files": the class of the error stands before the error itself.
  Found of_class;
  for (const ErrorText& one : kErrorWords) {
    const std::size_t at = low.rfind(one.text);  // the cause stands last: "Caused by: ...", "cannot save: open x: ..."
    if (at == std::string_view::npos) continue;
    const Found found{one.error, at, one.text.size()};
    if (one.text != kErrorClass) return found;
    of_class = found;
  }
  std::size_t at = 0;
  if (const int error =
          named(text, "E", at,
                [](std::string_view name) { return is_digit(name[1]) ? std::nullopt : kernel::errno_number(name); });
      error > 0 && error < 134)
    return {error, at, 1};
  if (const Found atom = error_atom(low); atom.error != 0) return atom;
  if (const Found number = error_in_brackets(low); number.error != 0) return number;
  return of_class;
}

// "ready" is no read, "connection" no connect.
bool another_word(std::string_view low) {
  return low.starts_with("connection") || low.starts_with("readi") || low.starts_with("ready") ||
         low.starts_with("read-only") || low.starts_with("read only");
}

Operation find_operation(std::string_view low, const Found& error) {
  Operation best = Operation::unknown;
  std::size_t best_at = 0;
  bool before = false;
  for (const Word& word : kOperations) {
    for (std::size_t at = low.find(word.text); at != std::string_view::npos; at = low.find(word.text, at + 1)) {
      if (at != 0 && word_char(low[at - 1]) && word.text != "sync") continue;
      if (error.covers(at) || another_word(low.substr(at))) continue;  // "connection refused" is no connect
      // Of the words before the error the nearest; else the first behind it.
      const bool here_before = error.at != std::string_view::npos && at < error.at;
      const bool better = best == Operation::unknown || (here_before && (!before || at > best_at)) ||
                          (!here_before && !before && at < best_at);
      if (!better) continue;
      best = word.operation;
      best_at = at;
      before = here_before;
    }
  }
  return best;
}

// A line of a stack trace names code, not what it worked on: Java's "\tat x.Y.z(", Python's "  File \"x.py\", line 3".
bool code_line(std::string_view line) {
  line.remove_prefix(std::min(line.find_first_not_of(" \t"), line.size()));
  return line.starts_with("at ") || line.starts_with("File \"");
}

// Names of calls, of operations of Go's os package, and of the JDK's native methods.
Operation operation_of_call(std::string_view name) {
  struct Call {
    std::string_view names;  // between spaces
    Operation operation;
  };
  static constexpr std::array kCalls = std::to_array<Call>({
      {" open openat open64 creat open0 ", Operation::open},
      {" write pwrite pwrite64 writev pwritev write0 writev0 pwrite0 writebytes writebytes0 ", Operation::write},
      {" read pread pread64 readv read0 readv0 pread0 readbytes readbytes0 ", Operation::read},
      {" fsync fdatasync sync sync_file_range force0 ", Operation::sync},
      {" ftruncate truncate fallocate posix_fallocate truncate0 setlength0 ", Operation::truncate},
      {" rename renameat renameat2 rename0 ", Operation::rename},
      {" unlink unlinkat unlink0 ", Operation::unlink},
      {" mkdir mkdirat mkdir0 ", Operation::mkdir},
      {" accept accept4 ", Operation::accept},
      {" connect ", Operation::connect},
  });
  if (name.size() < 4 || name.find(' ') != std::string_view::npos) return Operation::unknown;
  for (const Call& call : kCalls)
    for (std::size_t at = call.names.find(name); at != std::string_view::npos; at = call.names.find(name, at + 1))
      if (call.names[at - 1] == ' ' && call.names[at + name.size()] == ' ') return call.operation;
  return Operation::unknown;
}

// What the JDK's native methods call.
std::string_view call_of_native(std::string_view method) {
  constexpr std::array kNatives =
      std::to_array<std::pair<std::string_view, std::string_view>>({{"pwrite0", "pwrite64"},
                                                                    {"pread0", "pread64"},
                                                                    {"write0", "write"},
                                                                    {"writebytes", "write"},
                                                                    {"writebytes0", "write"},
                                                                    {"writev0", "writev"},
                                                                    {"read0", "read"},
                                                                    {"readbytes", "read"},
                                                                    {"readbytes0", "read"},
                                                                    {"readv0", "readv"},
                                                                    {"truncate0", "ftruncate"},
                                                                    {"setlength0", "ftruncate"},
                                                                    {"rename0", "rename"},
                                                                    {"unlink0", "unlink"},
                                                                    {"mkdir0", "mkdir"}});
  const auto found =
      std::find_if(kNatives.begin(), kNatives.end(), [&](const auto& one) { return one.first == method; });
  return found == kNatives.end() ? std::string_view() : found->second;
}

// The operation of the first method of java.nio or java.io among the next frames that stands for one: an exception of
// UnixException names no native method. Methods as in the JDK's sources (sun.nio.fs, sun.nio.ch).
Operation operation_of_jdk(std::string_view frames) {
  constexpr std::size_t kFrames = 8;
  struct Method {
    std::string_view name;
    Operation operation;
  };
  static constexpr std::array kMethods = std::to_array<Method>({
      {"newdirectorystream", Operation::open},
      {"newbytechannel", Operation::open},
      {"newfilechannel", Operation::open},
      {"implopen", Operation::open},
      {"newasynchronousfilechannel", Operation::open},
      {"readattributes", Operation::open},
      {"implforce", Operation::sync},
      {"filechannelimpl.force", Operation::sync},
      {"filedispatcherimpl.force", Operation::sync},
      {"impldelete", Operation::unlink},
      {"createdirectory", Operation::mkdir},
      {"unixfilesystem.move", Operation::rename},
      {"unixcopyfile.move", Operation::rename},
      {"filechannelimpl.write", Operation::write},
      {"filechannelimpl.read", Operation::read},
      {"filechannelimpl.truncate", Operation::truncate},
  });
  for (std::size_t n = 0; n < kFrames && !frames.empty(); ++n) {
    const std::string_view frame = frames.substr(0, frames.find('\n'));
    if (!code_line(frame)) break;
    const std::size_t open = frame.find('(');
    const std::string_view name = frame.substr(0, open);
    if (name.find(" sun.nio.") != std::string_view::npos || name.find("/sun.nio.") != std::string_view::npos)
      for (const Method& method : kMethods)
        if (name.ends_with("." + std::string(method.name))) return method.operation;
    frames.remove_prefix(std::min(frame.size() + 1, frames.size()));
  }
  return Operation::unknown;
}

// The call that a message names as a call, in the forms of Go ("write /x: no space left on device"), perror ("fsync:
// ..."), nginx
// ("pwrite() "/x" failed (28: ..."), Node.js ("ENOSPC: no space left on device, write") and in the JDK's native
// methods.
Operation named_call(std::string_view low, const Found& error, std::string_view& native) {
  if (error.at == std::string_view::npos) return Operation::unknown;
  const std::size_t line = error.at == 0 ? 0 : low.rfind('\n', error.at - 1) + 1;  // npos + 1: the first one
  const std::string_view before = low.substr(line, error.at - line),
                         behind = low.substr(std::min(low.size(), error.at + error.length));
  if (before.ends_with(": ")) {
    std::string_view rest = before.substr(0, before.size() - 2);
    for (int words = 0; words < 3 && !rest.empty(); ++words) {  // the call itself, or one or two paths behind it
      const std::size_t space = rest.rfind(' ');
      const std::string_view word = rest.substr(space == std::string_view::npos ? 0 : space + 1);
      std::size_t begin = word.size();
      while (begin > 0 && word_char(word[begin - 1])) --begin;
      const std::string_view said = begin > 0                         ? word.substr(0, begin)
                                    : space == std::string_view::npos ? std::string_view(": ")
                                                                      : rest.substr(0, space + 1);
      // "failed to write /x: ...": what it was for, perhaps not the call.
      const bool apart = said.ends_with(": ") || said.ends_with(" - ") || said.ends_with('"') || said.ends_with('\'') ||
                         said.ends_with('(') || said.ends_with('[') || said.ends_with('=');
      if (const Operation named = operation_of_call(word.substr(begin)); named != Operation::unknown && apart)
        return named;
      if (word.find('/') == std::string_view::npos || space == std::string_view::npos) break;
      rest = rest.substr(0, space);
    }
  }
  for (std::size_t at = before.rfind('('); at != std::string_view::npos && at > 0; at = before.rfind('(', at - 1)) {
    std::size_t begin = at;
    while (begin > 0 && word_char(before[begin - 1])) --begin;
    const Operation named = operation_of_call(before.substr(begin, at - begin));
    if (named != Operation::unknown && (begin == 0 || before[begin - 1] != '.')) return named;
  }
  std::size_t comma = 0;  // behind the rest of the error's words
  while (comma < behind.size() && (is_alpha(behind[comma]) || behind[comma] == ' ')) ++comma;
  if (behind.substr(comma).starts_with(", ")) {
    std::size_t end = comma + 2;
    while (end < behind.size() && word_char(behind[end])) ++end;
    if (const Operation named = operation_of_call(behind.substr(comma + 2, end - comma - 2));
        named != Operation::unknown)
      return named;
  }
  if (const std::size_t next = behind.find('\n'); next != std::string_view::npos) {
    std::string_view frame = behind.substr(next + 1, behind.find('\n', next + 1) - next - 1);
    const std::size_t open = frame.find("(native method)");
    if (code_line(frame) && open != std::string_view::npos) {
      frame = frame.substr(0, open);
      frame = frame.substr(frame.rfind('.') + 1);
      native = call_of_native(frame);
      return operation_of_call(frame);
    }
    return operation_of_jdk(behind.substr(next + 1));
  }
  // The error names its class only, and the call stands behind it in quotes: "IO Error: Custom { error: "pread" }".
  if (low.substr(error.at, error.length) == kErrorClass)
    for (std::size_t quote = behind.find('"'); quote != std::string_view::npos; quote = behind.find('"', quote + 1)) {
      const std::size_t end = behind.find_first_of("\\\"", quote + 1);
      if (end == std::string_view::npos) break;
      if (const Operation named = operation_of_call(behind.substr(quote + 1, end - quote - 1));
          named != Operation::unknown)
        return named;
    }
  return Operation::unknown;
}

bool path_char(char c) {
  return word_char(c) || c == '/' || c == '.' || c == '-' || c == '+' || c == '@' || c == '%' || c == '~' || c == '#' ||
         c == '=';
}

// "in dir /x", "volume /x": files below it are meant.
bool names_directory(std::string_view before) {
  while (!before.empty() && std::string_view(" =:'\"").find(before.back()) != std::string_view::npos)
    before.remove_suffix(1);
  for (const std::string_view word : {"dir", "directory", "folder", "volume", "dirs", "datadir"}) {
    const std::size_t at = before.size() - std::min(before.size(), word.size());
    if (lower_case(before.substr(at)) == word && (at == 0 || !word_char(before[at - 1]))) return true;
  }
  return false;
}

// Where a path goes on, or ends, at a colon: "topic:channel.dat" and "job:42.json" are names, "x/y.go:17" is a place in
// the source and
// "/x: no such file" says what became of it.
bool colon_of_path(std::string_view behind) {
  std::size_t end = 1, dot = 0;
  while (end < behind.size() && path_char(behind[end])) {
    if (behind[end] == '.' && end > 1) dot = end;
    ++end;
  }
  return dot != 0 && dot + 1 < end && is_alpha(behind[dot + 1]) &&
         behind.substr(1, end - 1).find('/') == std::string_view::npos;
}

// The rest of a path in quotes, with blanks and colons: '/srv/data/order: 7.json'. npos: what is in them is more than a
// path.
std::size_t quoted_path_end(std::string_view text, std::size_t begin) {
  if (begin == 0 || text[begin] != '/' || (text[begin - 1] != '"' && text[begin - 1] != '\''))
    return std::string_view::npos;
  const std::size_t end = text.find(text[begin - 1], begin);
  const std::string_view inside = text.substr(begin, end == std::string_view::npos ? 0 : end - begin);
  const bool plain = !inside.empty() && inside.find('\n') == std::string_view::npos &&
                     inside.find(" -") == std::string_view::npos && inside.find(" /") == std::string_view::npos;
  return plain ? end : std::string_view::npos;
}

// What stands before a path that a client asked for.
bool is_request(std::string_view before) {
  for (const std::string_view verb : {"GET ", "PUT ", "POST ", "HEAD ", "PATCH ", "DELETE ", "OPTIONS "})
    if (before.ends_with(verb)) return true;
  return false;
}

// A file that is named without its folder: in quotes or brackets behind the word "file" or the name of a call, or a
// word that ends like a file's name ("CommitLog-1-2.log", "collection-2.wt"); it matches in any folder. "": none is
// named.
std::string bare_file_name(std::string_view text, const Found& error) {
  if (error.at == std::string_view::npos) return {};
  const std::string low = lower_case(text.substr(0, text.find('\n')));
  const auto of_name = [](char c) { return word_char(c) || c == '-' || c == '.' || c == '+' || c == '~'; };
  for (const std::string_view word : {"file", "segment", "files"})
    for (std::size_t at = low.find(word); at != std::string::npos; at = low.find(word, at + 1)) {
      std::size_t begin = at + word.size();
      if (at != 0 && word_char(low[at - 1])) continue;
      while (begin < low.size() && (low[begin] == ' ' || low[begin] == ':')) ++begin;
      if (begin >= low.size() || (low[begin] != '"' && low[begin] != '\'' && low[begin] != '`')) continue;
      const std::size_t end = low.find(low[begin] == '`' ? '\'' : low[begin], begin + 1);
      if (end == std::string::npos) continue;
      const std::string_view name = text.substr(begin + 1, end - begin - 1);
      if (name.size() >= 3 && name.size() <= 255 && std::all_of(name.begin(), name.end(), of_name))
        return std::string(name);
    }
  // Endings that files of databases, logs and configurations have; a host's or a class's name has others.
  constexpr std::array kEndings = std::to_array<std::string_view>(
      {".log",   ".wal", ".db",   ".dat",     ".data", ".sst",  ".wt",  ".snap", ".snapshot",
       ".index", ".idx", ".rdb",  ".aof",     ".tmp",  ".json", ".bin", ".ldb",  ".frm",
       ".ibd",   ".toc", ".ckpt", ".journal", ".meta", ".lock", ".pid", ".txn"});
  for (std::size_t at = 0; at < low.size();) {
    if (!of_name(low[at])) {
      ++at;
      continue;
    }
    const std::size_t begin = at;
    while (at < low.size() && of_name(low[at])) ++at;
    std::string_view name = std::string_view(low).substr(begin, at - begin);
    while (name.ends_with('.')) name.remove_suffix(1);
    const bool file = std::any_of(kEndings.begin(), kEndings.end(),
                                  [&](std::string_view ending) { return name.ends_with(ending) && name != ending; });
    if (file && !error.covers(begin)) return std::string(text.substr(begin, name.size()));
  }
  return {};
}

// The path nearest to the error: quoted, or a word with a slash.
std::string find_path(std::string_view text, const Found& error) {
  std::string_view best;
  bool best_is_directory = false;
  std::size_t best_distance = std::string_view::npos;
  std::size_t line = 0;  // where it begins
  bool code = code_line(text.substr(0, text.find('\n')));
  for (std::size_t at = 0; at < text.size();) {
    if (text[at] == '\n') {
      line = at + 1;
      code = code_line(text.substr(line, text.find('\n', line) - line));
    }
    if (code || !path_char(text[at]) || error.covers(at)) {
      ++at;
      continue;
    }
    const std::size_t begin = at;
    if (const std::size_t end = quoted_path_end(text, begin); end != std::string_view::npos) {
      at = end;
    } else {
      bool folder = false;
      while (at < text.size() && (path_char(text[at]) || (text[at] == ':' && folder && colon_of_path(text.substr(at)))))
        folder = text[at++] == '/' || folder;
    }
    std::string_view word = text.substr(begin, at - begin);
    const std::string_view before = text.substr(line, begin - line), behind = text.substr(at);
    const bool url = begin >= 1 && text[begin - 1] == ':' && word.starts_with("//");
    const bool quoted = begin > 0 && (text[begin - 1] == '"' || text[begin - 1] == '\'');
    while (!word.empty() && (word.back() == '.' || word.back() == '=')) word.remove_suffix(1);
    const std::size_t slash = word.find('/');
    const std::size_t equals = word.rfind('=', std::min(slash, word.size()));
    if (equals != std::string_view::npos && equals < slash) word.remove_prefix(equals + 1);
    if (url || is_request(before) || word.find('/') == std::string_view::npos || word.size() < 3 ||
        word.find("//") == 0)
      continue;
    const std::size_t letters = static_cast<std::size_t>(
        std::count_if(word.begin(), word.end(), [](char c) { return word_char(c) && !is_digit(c); }));
    if (letters < 2 || word == "I/O" || word == "i/o") continue;  // "3/5", "1/0/0"
    if (word[0] != '/' && !quoted) {
      const std::size_t first = word.find('/');
      const bool subject = behind.starts_with(": ") && before.ends_with(": ");  // "cannot save: data/db: write failed"
      if (word.find('.') == std::string_view::npos && !subject) continue;       // "and/or"
      if (is_digit(word[std::min(word.size() - 1, first + 1)])) continue;       // a program's version: "HTTP/1.1"
      if (word[0] != '.' && word.substr(0, first).find('.') != std::string_view::npos)
        continue;  // code: "google.golang.org/grpc"
    }
    if (behind.size() > 1 && behind[0] == ':' && (is_digit(behind[1]) || behind.starts_with(":line ")))
      continue;  // a place in the source: "x/y.go:17"
    const std::size_t distance = error.at == std::string_view::npos ? begin
                                 : error.at > begin                 ? error.at - begin
                                                                    : begin - error.at + 40;
    if (distance >= best_distance) continue;
    best = word;
    // "/x is out of space", "/x has no space left", "/x ran out of space": a volume or a folder is meant, no file.
    const bool volume = error.of_space() && error.at >= at && error.at - at < kOfVolume &&
                        (behind.starts_with(" is ") || behind.starts_with(" has ") || behind.starts_with(" ran "));
    best_is_directory = volume || (!error.covers(begin - std::min<std::size_t>(begin, 4)) && names_directory(before));
    best_distance = distance;
  }
  if (best.empty()) return bare_file_name(text, error);
  std::string path;
  for (const char c : best)  // "data//x.db" is the kernel's data/x.db
    if (c != '/' || !path.ends_with('/')) path += c;
  if (best_is_directory) path += path.ends_with('/') ? "*" : "/*";
  return path;
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
      for (++end; end < text.size() && is_digit(text[end]); ++end) {
      }
    if (text.substr(at, i - at) != "0.0.0.0") best = text.substr(at, end - at);
    at = end;
  }
  return best;
}

// Python's and Node's form of calls with two paths: "[Errno 18] ...: 'a' -> 'b'".
bool moved(std::string_view low) { return low.find("' -> '") != std::string_view::npos; }

// How long it stood still, as it says itself: "local pause of 8123456789ns", "We slept 35000ms instead of 3000ms"; 0:
// no word of that.
std::int64_t find_standstill(std::string_view low) {
  constexpr std::array kStandstills = std::to_array<std::string_view>({"local pause of ",
                                                                       "pause of approximately ",
                                                                       "we slept ",
                                                                       "slept for ",
                                                                       "paused for ",
                                                                       "was paused ",
                                                                       "detected jvm pause",
                                                                       "jvm pause (ms) ",
                                                                       "jvm pause: ",
                                                                       "not been scheduled for ",
                                                                       "not scheduled for ",
                                                                       "duration [",
                                                                       "overhead, spent [",
                                                                       "application threads were stopped: ",
                                                                       "has been blocked for ",
                                                                       "stopped for ",
                                                                       "clock jump detected, ",
                                                                       "clock-jump: ",
                                                                       "clock leap detected (housekeeper delta=",
                                                                       "since last heartbeat (+",
                                                                       "exceeded-duration",
                                                                       "ms timeout for "});
  for (const std::string_view words : kStandstills) {
    const std::size_t found = low.find(words);
    if (found == std::string_view::npos) continue;
    const bool of_heartbeat =
        words == "exceeded-duration" || words == "ms timeout for ";  // etcd's, as structure and as text
    if (of_heartbeat && low.find("failed to send out heartbeat on time") == std::string_view::npos) continue;
    if (words.ends_with('[') && low.find("[gc]") == std::string_view::npos) continue;  // Elasticsearch's collections
    const std::size_t at = low.find_first_of("0123456789", found + words.size());
    if (at == std::string_view::npos || at >= found + words.size() + 24) continue;
    const Span span = read_span(low, at);
    const double ns = span.ns == 0 && words == "jvm pause (ms) " ? span.number * 1e6 : span.ns;
    if (ns >= 1 && ns < 3600e9) return std::llround(ns);
  }
  return 0;
}

using Calls = std::vector<std::string_view>;

const Calls& calls_of(Operation operation) {
  static const Calls none;
  static const std::array<Calls, 17> all = {{
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
      {"socket"},
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

// Which calls can return an error at all (man 2 of each call). What only some calls return is listed; other errors are
// taken to be possible everywhere.
bool can_return(std::string_view call, int error) {
  const auto one_of = [&](std::initializer_list<std::string_view> names) {
    return std::find(names.begin(), names.end(), call) != names.end();
  };
  const bool reads = one_of({"read", "pread64", "readv", "preadv", "recvfrom", "recvmsg"});
  const bool of_socket =
      one_of({"connect", "accept", "accept4", "bind", "listen", "sendto", "sendmsg", "recvfrom", "recvmsg", "socket"});
  switch (error) {
    case EMFILE:
    case ENFILE:  // only what makes a descriptor
      return one_of({"openat", "open", "creat", "accept", "accept4", "socket", "pipe", "pipe2", "dup", "epoll_create1",
                     "eventfd2", "memfd_create", "inotify_init1", "mmap", "execve"});
    case ENOSPC:
    case EDQUOT: return !reads && !of_socket && !one_of({"unlink", "unlinkat", "rmdir", "lseek", "mmap"});
    case EFBIG:
      return one_of({"write", "pwrite64", "writev", "pwritev", "ftruncate", "truncate", "fallocate", "openat", "open"});
    case EIO: return !of_socket && !one_of({"clone", "clone3", "vfork", "brk"});
    case EEXIST:
      return one_of(
          {"openat", "open", "creat", "mkdir", "mkdirat", "link", "linkat", "symlink", "rename", "renameat2"});
    case ENOTEMPTY: return one_of({"rmdir", "rename", "renameat", "renameat2", "unlinkat"});
    case EXDEV: return one_of({"rename", "renameat", "renameat2", "link", "linkat", "copy_file_range"});
    case EADDRINUSE:
    case EADDRNOTAVAIL: return one_of({"bind", "listen", "connect"});
    case ECONNABORTED: return one_of({"accept", "accept4", "read", "recvfrom", "write", "sendto", "connect"});
    default: return true;
  }
}

}  // namespace

Meaning read_meaning(std::string_view text) {
  text = text.substr(0, kMostMeant);
  const std::string low = lower_case(text);
  Meaning meaning;
  const Found error = find_error(text, low);
  meaning.error = error.error;
  const std::size_t closed_at = behind_any(low, kClosed), lost_at = behind_any(low, kLost);
  meaning.closed = closed_at != 0;
  meaning.lost_at = lost_at != 0 ? lost_at : closed_at;
  meaning.lost = meaning.lost_at != 0;
  meaning.late = says_late(low);
  meaning.panic = has(low, kPanic);
  meaning.traceback = low.find("traceback (most recent call last)") != std::string::npos;
  meaning.stopping = has(low, kStopping);
  meaning.gave_up = meaning.stopping &&
                    (meaning.error != 0 || has_word(low, kInVain) || low.find("fatal error") != std::string::npos);
  meaning.stopping = meaning.stopping && !meaning.gave_up;
  meaning.starting = says_start(low);
  meaning.serving = has(low, kServing) && !has(low, kNotServing) && !has_word(low, kInVain);
  meaning.stood_ns = find_standstill(low);
  meaning.slow_disk_ns = find_slow_disk(low);
  meaning.clock = read_clock_words(low);
  constexpr std::array kOutOfMemory = std::to_array<std::string_view>(
      {"out of memory: kill", "oom-kill:", "oom killer", "oomkill", "oom_kill", "oom-killed"});
  meaning.out_of_memory = has(low, kOutOfMemory);
  std::size_t at = 0;
  int signal = named(text, "SIG", at, [](std::string_view name) { return kernel::signal_number(name); });
  if (signal == 0) signal = std::max(0, number_behind(low, "signal"));
  const bool gone = low.find("terminated by") != std::string::npos || low.find("killed by") != std::string::npos ||
                    low.find("was killed") != std::string::npos || low.find("exited") != std::string::npos ||
                    low.find("exit status") != std::string::npos || low.find("exit code") != std::string::npos ||
                    low.find("crashed") != std::string::npos || low.find("code=killed") != std::string::npos ||
                    low.find("code=dumped") != std::string::npos;
  if (signal == 0 && (low.find("code=killed") != std::string::npos || low.find("code=dumped") != std::string::npos))
    signal = std::max(0, number_behind(low, "status="));
  if (gone && signal > 0 && signal < 65 && signal != SIGCHLD) {
    meaning.ended = true;
    meaning.signal = signal;
  } else if (gone) {
    for (const std::string_view words : {"exit code", "exit status", "exitcode", "exited with code",
                                         "exited with status", "exited with exit code", "status=", "code"}) {
      const int code = number_behind(low, words);
      if (code > 0 && code < 256) {
        meaning.ended = true;
        meaning.exit_code = code;
        if (code == 128 + SIGKILL || code == 128 + SIGTERM) meaning.signal = code - 128;
        break;
      }
    }
  }
  constexpr std::array kHelper =
      std::to_array<std::string_view>({"worker", "child", "subprocess", "background", "helper", "process (pid"});
  constexpr std::array kNoHelper =
      std::to_array<std::string_view>({"main process", ".service", "container", "last state"});
  meaning.helper = meaning.ended && has(low, kHelper) && !has(low, kNoHelper);
  // "server process (PID 88) was terminated by signal 6: Aborted": the one that writes lives on.
  if (meaning.helper) meaning.panic = false;
  if (meaning.out_of_memory) {
    meaning.ended = true;
    meaning.signal = SIGKILL;
  }
  if (meaning.error != 0 || meaning.lost || meaning.late) {
    meaning.peer = find_peer(text);
    meaning.operation = moved(low) ? Operation::rename : named_call(low, error, meaning.call);
    meaning.exact = meaning.operation != Operation::unknown;
    if (!meaning.exact) meaning.operation = find_operation(low, error);
    meaning.path = find_path(text, error);
  } else if (!meaning.ended && has_word(low, kInVain) && !has(low, kMayFail)) {
    // "Error saving the database, unable to open x.new": the last thing that is told to be in vain is what failed.
    std::size_t last = 0;
    for (const std::string_view word : kInVain)
      if (const std::size_t here = low.rfind(word); here != std::string_view::npos) last = std::max(last, here);
    meaning.operation = find_operation(std::string_view(low).substr(last), {});
    if (meaning.operation == Operation::unknown) meaning.operation = find_operation(low, {});
    meaning.path = find_path(text, error);
    const std::string peer = find_peer(text);
    meaning.failed = on_files(meaning.operation) && peer.empty() && (!meaning.path.empty() || has_word(low, kOnDisk));
    // "failure trying primary 10.0.0.1#53": what was in vain had to do with that one.
    if (!peer.empty()) {
      meaning.lost = true;
      meaning.peer = peer;
    }
  }
  switch (meaning.error) {
    case ECONNREFUSED:
    case ECONNRESET:
    case EPIPE: meaning.lost = meaning.closed = true; break;
    case ETIMEDOUT:
    case EHOSTUNREACH:
    case ENETUNREACH:
    case EHOSTDOWN:
      meaning.lost = true;
      meaning.closed = false;
      break;
    case EINVAL:  // what a route that is a black hole answers
      if (!meaning.peer.empty()) meaning.lost = true;
      break;
    default: break;
  }
  return meaning;
}

std::vector<std::string_view> calls_that_fail(int error, Operation operation, bool exact) {
  Calls by_error = calls_by_error(error);
  const Calls& by_word = calls_of(operation);
  if (by_word.empty()) return by_error;
  // Both agree on some, mostly; those first. "save" may have failed in its open.
  Calls all;
  const auto add = [&](std::string_view call) {
    if (can_return(call, error) && std::find(all.begin(), all.end(), call) == all.end()) all.push_back(call);
  };
  for (const std::string_view call : by_word)
    if (std::find(by_error.begin(), by_error.end(), call) != by_error.end()) add(call);
  for (const std::string_view call : by_word) add(call);
  if (exact) return all;
  for (const std::string_view call : by_error) add(call);
  return all;
}

std::vector<std::string_view> calls_of_operation(Operation operation) { return calls_of(operation); }

std::vector<int> errors_of(std::string_view syscall) {
  if (syscall.starts_with("open") || syscall == "creat") return {EIO, ENOSPC, EMFILE, EACCES};
  if (syscall.starts_with("fsync") || syscall.starts_with("fdatasync") || syscall == "sync_file_range" ||
      syscall == "syncfs")
    return {EIO, ENOSPC};
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
