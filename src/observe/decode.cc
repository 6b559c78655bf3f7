#include "observe/decode.h"

#include <fmt/format.h>
#include <sys/socket.h>

#include <algorithm>
#include <csignal>
#include <cstring>
#include <iterator>
#include <string_view>
#include <vector>

#include "base/path.h"

namespace rose::observe {
namespace {

// A path argument: the caller's text, and the folder to which the text is relative.
struct PathParts {
  std::string_view text, base;
  bool has_text = false, has_base = false, cut = false;
};

// Converts names in reverse order (leaf first) to a path. A truncated path (`cut`) does not begin with '/'.
void append_fragments(std::string_view fragments, bool cut, std::string& out) {
  std::string_view names[512];
  std::size_t count = 0;
  while (!fragments.empty() && count < std::size(names)) {
    const auto end = fragments.find('\0');
    if (end == std::string_view::npos) break;
    names[count++] = fragments.substr(0, end);
    fragments.remove_prefix(end + 1);
  }
  if (count == 0) {
    out += '/';
    return;
  }
  for (std::size_t i = count; i-- > 0;) {
    if (!(cut && i == count - 1)) out += '/';
    out += names[i];
  }
}

// Appends a path, but leaves out "." components and repeated slashes.
void append_clean(std::string_view text, std::string& out) {
  while (!text.empty()) {
    const auto slash = text.find('/');
    const auto part = text.substr(0, slash);
    if (!part.empty() && part != ".") {
      if (out.empty() || out.back() != '/') out += '/';
      out += part;
    }
    if (slash == std::string_view::npos) break;
    text.remove_prefix(slash + 1);
  }
}

void join(const PathParts& parts, std::string& out, bool& truncated) {
  out.clear();
  truncated = parts.cut;
  if (parts.text.starts_with('/')) {
    append_clean(parts.text, out);
    if (out.empty()) out = "/";
  } else if (parts.has_base) {
    append_fragments(parts.base, parts.cut, out);
    append_clean(parts.text, out);
  } else {
    out = parts.text;
  }
  if (out.find("..") != std::string::npos && (parts.text.starts_with('/') || parts.has_base)) out = resolve_dots(out);
  if (out.size() > ROSE_PATH_BYTES - 1) {
    out.erase(0, out.size() - (ROSE_PATH_BYTES - 1));
    truncated = true;
  }
}

std::string peer_text(const rose_address& address) {
  if (address.family == AF_INET)
    return Address::ipv4({address.bytes[0], address.bytes[1], address.bytes[2], address.bytes[3]})
        .with_port(address.port);
  return address_of(address.bytes).with_port(address.port);
}

template <typename T>
bool read_as(std::span<const std::byte> bytes, T& out) {
  if (bytes.size() < sizeof(T)) return false;
  std::memcpy(&out, bytes.data(), sizeof(T));
  return true;
}

std::string_view text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

bool take_mark(std::span<const std::byte> bytes, Decoded& out) {
  rose_storm_mark mark;
  if (!read_as(bytes, mark) || mark.key == 0) return false;
  out.storm = mark.key;
  out.represent(mark.count, static_cast<std::int64_t>(mark.first_ns));
  return true;
}

// Collects the paths and the peer in the parts of a call's record.
class CallPieces {
 public:
  explicit CallPieces(Decoded& out) : out_(out) {}

  // Returns false if the part does not belong to a call.
  bool take(const rose_piece& piece, std::span<const std::byte> body) {
    switch (piece.kind) {
      case ROSE_PATH: return text(first_, piece, body);
      case ROSE_PATH2: return text(second_, piece, body);
      case ROSE_BASE: return base(first_, piece, body);
      case ROSE_BASE2: return base(second_, piece, body);
      case ROSE_FILE: return file(piece, body);
      case ROSE_PIPE: {
        std::uint64_t inode = 0;
        return read_as(body, inode) && path(fmt::format("pipe:[{}]", inode));
      }
      case ROSE_ANON: return path(std::string(kAnonInode).append(text_of(body)));
      case ROSE_NETLINK: {
        std::uint64_t protocol = 0;
        return read_as(body, protocol) && peer(netlink_text(protocol));
      }
      case ROSE_PEER: {
        rose_address address;
        return read_as(body, address) && peer(peer_text(address));
      }
      case ROSE_UNIX: return peer(unix_text(text_of(body)));
      case ROSE_STORM: return take_mark(body, out_);
      default: return false;
    }
  }

  void finish() {
    bool cut = false;
    if (first_.has_text) {
      join(first_, out_.path, cut);
      out_.has_path = true;
      truncated_ |= cut;
    }
    if (second_.has_text) {
      join(second_, out_.path2, cut);
      out_.has_path2 = true;
      truncated_ |= cut;
    }
    if (truncated_) out_.event.flags |= trace::kTruncated;
  }

 private:
  static bool is_cut(const rose_piece& piece) { return (piece.flags & ROSE_CUT) != 0; }

  bool text(PathParts& parts, const rose_piece& piece, std::span<const std::byte> body) {
    parts.text = text_of(body);
    parts.has_text = true;
    parts.cut |= is_cut(piece);
    return true;
  }
  bool base(PathParts& parts, const rose_piece& piece, std::span<const std::byte> body) {
    // A truncated text is a suffix of the path, so it must not be joined with a folder.
    parts.base = text_of(body);
    parts.has_base = !parts.cut;
    parts.cut |= is_cut(piece);
    // If the folder was removed, files in it have no path either.
    if ((piece.flags & ROSE_UNLINKED) != 0) out_.event.flags |= trace::kUnlinked;
    return true;
  }
  bool file(const rose_piece& piece, std::span<const std::byte> body) {
    if (out_.has_path) return true;
    out_.path.clear();
    append_fragments(text_of(body), is_cut(piece), out_.path);
    out_.has_path = true;
    truncated_ |= is_cut(piece);
    if ((piece.flags & ROSE_UNLINKED) != 0) out_.event.flags |= trace::kUnlinked;
    return true;
  }
  bool path(std::string text) {
    out_.path = std::move(text);
    return out_.has_path = true;
  }
  bool peer(std::string text) {
    out_.peer = std::move(text);
    return out_.has_peer = true;
  }

  Decoded& out_;
  PathParts first_, second_;
  bool truncated_ = false;
};

bool decode_call(std::span<const std::byte> record, Decoded& out) {
  rose_call call;
  if (!read_as(record, call)) return false;
  auto& event = out.event;
  const bool failed = call.head.kind == ROSE_FAILED;
  event.type = failed ? trace::EventType::scf : trace::EventType::sys;
  event.syscall = static_cast<std::int16_t>(call.nr);
  if (failed) {
    event.err = static_cast<std::int16_t>(call.result < 0 ? -call.result : 0);
    if ((call.flags & ROSE_DYING) != 0) event.flags |= trace::kDying;
    event.result = call.result < 0 ? call.operation : call.result;  // for io_uring: the operation
    event.requested = call.requested;
    if ((call.flags & ROSE_BUS) != 0) event.signal = SIGBUS;
  } else {
    event.result = call.result;
    event.open_flags = call.open_flags;
  }
  event.fd = call.fd;

  CallPieces pieces(out);
  std::span<const std::byte> rest = record.subspan(sizeof call);
  rose_piece piece;
  while (read_as(rest, piece)) {
    rest = rest.subspan(sizeof piece);
    if (piece.length > rest.size() || !pieces.take(piece, rest.first(piece.length))) return false;
    rest = rest.subspan(std::min<std::size_t>(rest.size(), (piece.length + 7U) & ~7U));
  }
  pieces.finish();
  return true;
}

// Decodes the name of a function of Java, Python or JavaScript into `path`.
bool decode_name(std::span<const std::byte> rest, Decoded& out) {
  rose_piece piece;
  if (!read_as(rest, piece) || piece.kind != ROSE_NAME) return false;
  rest = rest.subspan(sizeof piece);
  if (piece.length == 0 || piece.length > rest.size()) return false;
  out.path = text_of(rest.first(piece.length));
  std::replace_if(
      out.path.begin(), out.path.end(), [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; }, '?');
  out.has_path = true;
  if (out.link != 0) out.event.flags |= trace::kTruncated;
  return true;
}

void take_sender(const rose_process& process, Decoded& out) {
  switch (process.origin) {
    case ROSE_BY_PROCESS: {
      const auto* name = reinterpret_cast<const char*>(process.by_name);
      out.by = fmt::format("{} ({})", std::string_view(name, ::strnlen(name, sizeof process.by_name)), process.by);
      break;
    }
    case ROSE_BY_KERNEL: out.by = "kernel"; break;
    case ROSE_BY_ITSELF: out.by = "itself"; break;
    default: return;
  }
  out.has_by = true;
}

}  // namespace

Address address_of(const std::uint8_t (&bytes)[16]) {
  Address address;
  std::copy(std::begin(bytes), std::end(bytes), address.bytes.begin());
  return address;
}

void describe_pair(const rose_pair& pair, Decoded& out) {
  out.src = address_of(pair.src).text();
  out.dst = address_of(pair.dst).text();
  out.event.protocol = pair.protocol == 6    ? trace::Protocol::tcp
                       : pair.protocol == 17 ? trace::Protocol::udp
                                             : trace::Protocol::none;
  (pair.from_service != 0 ? out.event.sport : out.event.dport) = pair.port;
}

void Decoded::represent(std::uint32_t count, std::int64_t since_ns) {
  event.count = std::max(count, 1U);
  first_ns = since_ns;
  if (event.count > 1)
    event.duration_ms =
        static_cast<std::int32_t>(std::clamp<std::int64_t>((event.ts_ns - since_ns) / 1'000'000, 0, INT32_MAX));
}

bool decode(std::span<const std::byte> record, Decoded& out) {
  rose_head head;
  out.event = {};
  out.storm = 0;
  out.counted = false;
  out.has_path = out.has_path2 = out.has_peer = out.has_by = false;
  if (!read_as(record, head) || head.size < sizeof head || head.size > record.size()) return false;
  record = record.first(head.size);
  out.node = head.node;
  out.event.ts_ns = static_cast<std::int64_t>(head.ts_ns);
  out.event.pid = static_cast<std::int32_t>(head.tgid);
  out.event.tid = static_cast<std::int32_t>(head.tid);
  switch (head.kind) {
    case ROSE_FAILED:
    case ROSE_CHANGED: return decode_call(record, out);
    case ROSE_COUNTED: {
      rose_counted counted;
      if (!read_as(record, counted) || counted.mark.key == 0) return false;
      out.storm = counted.mark.key;
      out.counted = true;
      out.represent(counted.mark.count, static_cast<std::int64_t>(counted.mark.first_ns));
      return true;
    }
    case ROSE_ENTERED: {
      rose_entered entered;
      if (!read_as(record, entered)) return false;
      out.event.type = trace::EventType::af;
      out.function = entered.function;
      out.link = entered.link;
      return entered.function != ROSE_NAMED || decode_name(record.subspan(sizeof entered), out);
    }
    case ROSE_SILENT: {
      rose_silent silent;
      if (!read_as(record, silent)) return false;
      out.event.type = trace::EventType::nd;
      out.event.duration_ms =
          static_cast<std::int32_t>(std::min<std::uint64_t>(silent.duration_ns / 1'000'000, INT32_MAX));
      out.event.packets = silent.packets;
      describe_pair(silent.pair, out);
      return true;
    }
    case ROSE_PROCESS: {
      rose_process process;
      if (!read_as(record, process)) return false;
      if (process.state < ROSE_CRASHED || process.state > ROSE_STARTED) return false;
      auto& event = out.event;
      event.type = trace::EventType::ps;
      event.state = static_cast<trace::ProcessState>(process.state);
      event.signal = process.signal;
      event.exit_code = process.exit_code;
      take_sender(process, out);
      if (process.state == ROSE_PAUSED || process.origin != ROSE_BY_UNKNOWN) {
        event.duration_ms =
            static_cast<std::int32_t>(std::min<std::uint64_t>(process.duration_ns / 1'000'000, INT32_MAX));
      }
      if ((process.flags & ROSE_MAIN) != 0) event.flags |= trace::kMain;
      if ((process.flags & ROSE_PLANNED) != 0) event.flags |= trace::kPlanned;
      if ((process.flags & ROSE_CORE) != 0) event.flags |= trace::kCoreDumped;
      if ((process.flags & ROSE_OUT_OF_MEMORY) != 0) event.flags |= trace::kOutOfMemory;
      // If the record belongs to a storm, the storm's mark follows.
      if (const auto rest = record.subspan(sizeof process); !rest.empty()) {
        rose_piece piece;
        return read_as(rest, piece) && piece.kind == ROSE_STORM && take_mark(rest.subspan(sizeof piece), out);
      }
      return true;
    }
    default: return false;
  }
}

}  // namespace rose::observe
