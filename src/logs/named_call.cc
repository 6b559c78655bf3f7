#include <algorithm>
#include <array>
#include <utility>

#include "base/ascii.h"
#include "logs/found.h"

namespace rose::logs {
namespace {

// The operation of the call with this name, which is a system call, a function in Go's os package, or a native method
// in the JDK.
Operation operation_of_call(std::string_view name) {
  struct Call {
    std::string_view names;  // each name is between spaces
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
      {" chmod fchmod fchmodat ", Operation::set_mode},
      {" chown fchown fchownat lchown ", Operation::set_owner},
  });
  if (name.size() < 4 || name.find(' ') != std::string_view::npos) return Operation::unknown;
  for (const Call& call : kCalls)
    for (std::size_t at = call.names.find(name); at != std::string_view::npos; at = call.names.find(name, at + 1))
      if (call.names[at - 1] == ' ' && call.names[at + name.size()] == ' ') return call.operation;
  return Operation::unknown;
}

// Go writes the kind of the network between the call and the address: "accept unix /run/kv.sock: ...".
bool is_go_network(std::string_view word) {
  constexpr std::array kNetworks = std::to_array<std::string_view>(
      {"tcp", "tcp4", "tcp6", "udp", "udp4", "udp6", "ip", "ip4", "ip6", "unix", "unixgram", "unixpacket"});
  return std::find(kNetworks.begin(), kNetworks.end(), word) != kNetworks.end();
}

// The system call that a native method of the JDK makes.
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
      std::find_if(kNatives.begin(), kNatives.end(), [&](const auto& entry) { return entry.first == method; });
  return found == kNatives.end() ? std::string_view() : found->second;
}

// The operation of the first frame, among the first kFrames, whose method is in kMethods. This is needed for exceptions
// whose stack traces contain no native method: UnixException of Java and IOException of .NET. The names are those in
// the sources of the JDK (sun.nio.fs, sun.nio.ch) and of dotnet/runtime (System.Private.CoreLib).
Operation operation_of_frames(std::string_view frames) {
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
      {"safefilehandle.open", Operation::open},
      {"randomaccess.writeatoffset", Operation::write},
      {"randomaccess.readatoffset", Operation::read},
      {"randomaccess.setfilelength", Operation::truncate},
      {"filestreamhelpers.flushtodisk", Operation::sync},
      {"filesystem.movefile", Operation::rename},
      {"filesystem.deletefile", Operation::unlink},
      {"filesystem.createdirectory", Operation::mkdir},
  });
  for (std::size_t n = 0; n < kFrames && !frames.empty(); ++n) {
    const std::string_view frame = frames.substr(0, frames.find('\n'));
    const std::size_t indent = std::min(frame.find_first_not_of(" \t"), frame.size());
    const bool separates = frame.substr(indent).starts_with("--- end of inner exception");
    if (!is_code_line(frame) && !separates) break;
    const std::size_t open = frame.find('(');
    const std::string_view name = frame.substr(0, open);
    const bool of_library = name.find(" sun.nio.") != std::string_view::npos ||
                            name.find("/sun.nio.") != std::string_view::npos ||
                            name.find(" system.io.") != std::string_view::npos ||
                            name.find(" microsoft.win32.safehandles.") != std::string_view::npos;
    if (of_library)
      for (const Method& method : kMethods)
        if (name.ends_with("." + std::string(method.name))) return method.operation;
    frames.remove_prefix(std::min(frame.size() + 1, frames.size()));
  }
  return Operation::unknown;
}

// The operation of a function or method of Python's library. Buffered files write when they are flushed or closed.
Operation operation_of_python(std::string_view name) {
  struct Function {
    std::string_view name;
    Operation operation;
  };
  static constexpr std::array kFunctions = std::to_array<Function>({
      {"open", Operation::open},        {"fdopen", Operation::open},       {"read", Operation::read},
      {"readline", Operation::read},    {"readlines", Operation::read},    {"readinto", Operation::read},
      {"read_text", Operation::read},   {"read_bytes", Operation::read},   {"write", Operation::write},
      {"writelines", Operation::write}, {"flush", Operation::write},       {"close", Operation::write},
      {"write_text", Operation::write}, {"write_bytes", Operation::write}, {"fsync", Operation::sync},
      {"fdatasync", Operation::sync},   {"truncate", Operation::truncate}, {"ftruncate", Operation::truncate},
      {"rename", Operation::rename},    {"replace", Operation::rename},    {"remove", Operation::unlink},
      {"unlink", Operation::unlink},    {"mkdir", Operation::mkdir},       {"makedirs", Operation::mkdir},
      {"chmod", Operation::set_mode},   {"chown", Operation::set_owner},   {"connect", Operation::connect},
      {"accept", Operation::accept},
  });
  const auto found = std::find_if(kFunctions.begin(), kFunctions.end(),
                                  [&](const Function& function) { return function.name == name; });
  return found == kFunctions.end() ? Operation::unknown : found->operation;
}

// The operation in the line of source code that Python prints before the error: "File "x.py", line 7, in f",
// "f.flush()". Without it, `flush` would be read as a word of plain language, which may also mean that a disk is
// synchronised. `before`: the lines before the one with the error. The result is Operation::unknown if the line calls
// functions of several operations, or is a `with` statement: Python prints the line of this statement, too, if closing
// the file fails.
Operation operation_of_python_line(std::string_view before) {
  const auto take_line = [&] {
    while (before.ends_with('\n')) before.remove_suffix(1);
    const std::size_t begin = before.rfind('\n') + 1;  // npos + 1 is 0
    std::string_view line = before.substr(begin);
    before = before.substr(0, begin);
    line.remove_prefix(std::min(line.find_first_not_of(" \t"), line.size()));
    return line;
  };
  std::string_view code = take_line();
  // Skip a line that only marks a part of the line above.
  if (code.find_first_not_of("^~ ") == std::string_view::npos) code = take_line();
  if (code.empty() || code.starts_with("with ") || code.starts_with("async with ") ||
      !take_line().starts_with("file \""))
    return Operation::unknown;
  Operation only = Operation::unknown;
  for (std::size_t at = code.find('('); at != std::string_view::npos; at = code.find('(', at + 1)) {
    std::size_t begin = at;
    while (begin > 0 && word_char(code[begin - 1])) --begin;
    const Operation named = operation_of_python(code.substr(begin, at - begin));
    if (named == Operation::unknown) continue;
    if (only != Operation::unknown && only != named) return Operation::unknown;
    only = named;
  }
  return only;
}

}  // namespace

bool is_code_line(std::string_view line) {
  line.remove_prefix(std::min(line.find_first_not_of(" \t"), line.size()));
  return line.starts_with("at ") || line.starts_with("File \"");
}

Operation named_call(std::string_view low, const Found& error, std::string_view& native) {
  if (error.at == std::string_view::npos) return Operation::unknown;
  // npos + 1 is 0, the beginning of the first line
  const std::size_t line = error.at == 0 ? 0 : low.rfind('\n', error.at - 1) + 1;
  const std::string_view before = low.substr(line, error.at - line),
                         following = low.substr(std::min(low.size(), error.at + error.length));
  if (before.ends_with(": ")) {
    std::string_view rest = before.substr(0, before.size() - 2);
    // the call, then up to two paths, or a network and a path
    for (int words = 0; words < 3 && !rest.empty(); ++words) {
      const std::size_t space = rest.rfind(' ');
      const std::string_view word = rest.substr(space == std::string_view::npos ? 0 : space + 1);
      std::size_t begin = word.size();
      while (begin > 0 && word_char(word[begin - 1])) --begin;
      const std::string_view lead = begin > 0                         ? word.substr(0, begin)
                                    : space == std::string_view::npos ? std::string_view(": ")
                                                                      : rest.substr(0, space + 1);
      // In "failed to write /x: ...", the word names the purpose and not the call, so the name of a call must stand
      // apart from other words.
      const bool apart = lead.ends_with(": ") || lead.ends_with(" - ") || lead.ends_with('"') || lead.ends_with('\'') ||
                         lead.ends_with('(') || lead.ends_with('[') || lead.ends_with('=') ||
                         lead.find_first_not_of(" \t") == std::string_view::npos;
      if (const Operation named = operation_of_call(word.substr(begin)); named != Operation::unknown && apart)
        return named;
      if ((word.find('/') == std::string_view::npos && !is_go_network(word)) || space == std::string_view::npos) break;
      rest = rest.substr(0, space);
    }
  }
  for (std::size_t at = before.rfind('('); at != std::string_view::npos && at > 0; at = before.rfind('(', at - 1)) {
    std::size_t begin = at;
    while (begin > 0 && word_char(before[begin - 1])) --begin;
    const Operation named = operation_of_call(before.substr(begin, at - begin));
    if (named != Operation::unknown && (begin == 0 || before[begin - 1] != '.')) return named;
  }
  std::size_t comma = 0;  // offset after the remaining text of the error
  while (comma < following.size() && (is_alpha(following[comma]) || following[comma] == ' ')) ++comma;
  if (following.substr(comma).starts_with(", ")) {
    std::size_t end = comma + 2;
    while (end < following.size() && word_char(following[end])) ++end;
    if (const Operation named = operation_of_call(following.substr(comma + 2, end - comma - 2));
        named != Operation::unknown)
      return named;
  }
  if (const Operation named = operation_of_python_line(low.substr(0, line)); named != Operation::unknown) return named;
  if (const std::size_t next = following.find('\n'); next != std::string_view::npos) {
    std::string_view frame = following.substr(next + 1, following.find('\n', next + 1) - next - 1);
    const std::size_t open = frame.find("(native method)");
    if (is_code_line(frame) && open != std::string_view::npos) {
      frame = frame.substr(0, open);
      frame = frame.substr(frame.rfind('.') + 1);
      native = call_of_native(frame);
      return operation_of_call(frame);
    }
    return operation_of_frames(following.substr(next + 1));
  }
  // If the error is only a class of errors, the call may follow in quotes: "IO Error: Custom { error: "pread" }".
  if (error.vague)
    for (std::size_t quote = following.find('"'); quote != std::string_view::npos;
         quote = following.find('"', quote + 1)) {
      const std::size_t end = following.find_first_of("\\\"", quote + 1);
      if (end == std::string_view::npos) break;
      if (const Operation named = operation_of_call(following.substr(quote + 1, end - quote - 1));
          named != Operation::unknown)
        return named;
    }
  return Operation::unknown;
}

}  // namespace rose::logs
