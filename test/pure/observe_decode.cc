// Decodes records as the BPF programs write them, and malformed ones.
#include <catch2/catch.hpp>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "kernel/syscalls.h"
#include "observe/call_signatures.h"
#include "observe/decode.h"

using namespace rose;
using namespace rose::observe;

namespace {

class Record {
 public:
  Record(std::uint16_t kind, int nr, std::int64_t result) {
    rose_call call{};
    call.head.kind = kind;
    call.head.node = 3;
    call.head.ts_ns = 42;
    call.head.tgid = 7;
    call.head.tid = 8;
    call.nr = static_cast<std::uint16_t>(nr);
    call.result = result;
    call.fd = -1;
    append(&call, sizeof call);
  }
  Record& piece(int kind, std::string_view body, int flags = 0) {
    rose_piece piece{};
    piece.length = static_cast<std::uint16_t>(body.size());
    piece.kind = static_cast<std::uint8_t>(kind);
    piece.flags = static_cast<std::uint8_t>(flags);
    append(&piece, sizeof piece);
    append(body.data(), body.size());
    bytes_.resize((bytes_.size() + 7) & ~std::size_t{7});
    return *this;
  }
  [[nodiscard]] std::vector<std::byte> bytes() const {
    auto out = bytes_;
    const auto size = static_cast<std::uint32_t>(out.size());
    std::memcpy(out.data(), &size, sizeof size);
    return out;
  }

 private:
  void append(const void* data, std::size_t size) {
    const auto* begin = static_cast<const std::byte*>(data);
    bytes_.insert(bytes_.end(), begin, begin + size);
  }
  std::vector<std::byte> bytes_;
};

Decoded decoded(const Record& record) {
  Decoded out;
  REQUIRE(decode(record.bytes(), out));
  return out;
}

using namespace std::string_literals;

}  // namespace

TEST_CASE("paths are joined from folder and text") {
  struct Case {
    std::string text, base, want;
    int text_flags = 0, base_flags = 0;
    bool truncated = false;
  };
  const std::string deep = "x\0lib\0var\0"s;
  for (const auto& c :
       {Case{"/etc/passwd", "", "/etc/passwd"}, Case{"/a//b/./c/", "", "/a/b/c"}, Case{"/", "", "/"},
        Case{"snap.0", deep, "/var/lib/x/snap.0"}, Case{"./a/../b", deep, "/var/lib/x/b"}, Case{"", deep, "/var/lib/x"},
        Case{".", deep, "/var/lib/x"}, Case{"f", ""s, "f"}, Case{"tail", deep, "tail", ROSE_CUT, 0, true},
        Case{"f", deep, "var/lib/x/f", 0, ROSE_CUT, true}}) {
    INFO(c.text << " in " << c.want);
    Record record(ROSE_FAILED, 257, -2);
    record.piece(ROSE_PATH, c.text, c.text_flags);
    if (!c.base.empty()) record.piece(ROSE_BASE, c.base, c.base_flags);
    const auto out = decoded(record);
    CHECK(out.path == c.want);
    CHECK(((out.event.flags & trace::kTruncated) != 0) == c.truncated);
  }
  // If the base is the root folder, its record contains no name.
  CHECK(decoded(Record(ROSE_FAILED, 257, -2).piece(ROSE_PATH, "etc").piece(ROSE_BASE, "")).path == "/etc");
}

TEST_CASE("a path longer than the kernel's limit keeps its end") {
  const auto out = decoded(Record(ROSE_FAILED, 257, -2)
                               .piece(ROSE_PATH, std::string(3000, 'b') + "/leaf")
                               .piece(ROSE_BASE, std::string(200, 'a') + "\0"s + std::string(2000, 'c') + "\0"s));
  CHECK(out.path.size() == 4095);
  CHECK(out.path.ends_with("bbb/leaf"));
  CHECK((out.event.flags & trace::kTruncated) != 0);
}

TEST_CASE("descriptors, peers and path pairs are decoded") {
  auto out =
      decoded(Record(ROSE_CHANGED, 82, 0).piece(ROSE_PATH, "/a").piece(ROSE_PATH2, "b").piece(ROSE_BASE2, "d\0"s));
  CHECK(out.event.type == trace::EventType::sys);
  CHECK(out.path == "/a");
  CHECK(out.path2 == "/d/b");
  CHECK(out.node == 3);
  CHECK(out.event.pid == 7);
  CHECK(out.event.tid == 8);
  CHECK(out.event.ts_ns == 42);
  out = decoded(Record(ROSE_FAILED, 1, -5).piece(ROSE_FILE, "log\0data\0"s, ROSE_UNLINKED));
  CHECK(out.path == "/data/log");
  CHECK(out.event.err == 5);
  CHECK((out.event.flags & trace::kUnlinked) != 0);
  CHECK_FALSE(out.has_peer);
  out = decoded(Record(ROSE_FAILED, 1, -32).piece(ROSE_UNIX, "\0name"s));
  CHECK(out.peer == "unix:@name");
  out = decoded(Record(ROSE_FAILED, 1, -32).piece(ROSE_UNIX, "/run/x\0\0"s));
  CHECK(out.peer == "unix:/run/x");
  rose_address address{};
  address.family = 10;
  address.port = 80;
  address.bytes[15] = 1;
  const auto bytes = [&] { return std::string(reinterpret_cast<const char*>(&address), sizeof address); };
  CHECK(decoded(Record(ROSE_FAILED, 42, -111).piece(ROSE_PEER, bytes())).peer == "[::1]:80");
  address.bytes[10] = address.bytes[11] = 0xff;
  address.bytes[12] = 10;
  CHECK(decoded(Record(ROSE_FAILED, 42, -111).piece(ROSE_PEER, bytes())).peer == "10.0.0.1:80");
  address = {};
  address.family = 2;
  address.port = 7000;
  address.bytes[0] = 127;
  address.bytes[3] = 1;
  CHECK(decoded(Record(ROSE_FAILED, 42, -111).piece(ROSE_PEER, bytes())).peer == "127.0.0.1:7000");
}

TEST_CASE("invalid records are refused, whatever they contain") {
  Decoded out;
  CHECK_FALSE(decode({}, out));
  auto bytes = Record(ROSE_FAILED, 1, -5).piece(ROSE_FILE, "log\0"s).bytes();
  for (std::size_t cut = 0; cut < sizeof(rose_call); ++cut) CHECK_FALSE(decode(std::span(bytes).first(cut), out));
  bytes[4] = std::byte{99};  // no such kind of record exists
  CHECK_FALSE(decode(bytes, out));
  CHECK_FALSE(decode(Record(ROSE_FAILED, 1, -5).piece(77, "x").bytes(), out));
  CHECK_FALSE(decode(Record(ROSE_FAILED, 1, -5).piece(ROSE_PEER, "x").bytes(), out));
  auto lying = Record(ROSE_FAILED, 1, -5).piece(ROSE_FILE, "log\0"s).bytes();
  lying[sizeof(rose_call)] = std::byte{0xff};  // this length is beyond the end of the record
  CHECK_FALSE(decode(lying, out));

  std::mt19937 random(1);
  for (int i = 0; i < 20'000; ++i) {
    auto noise = Record(static_cast<std::uint16_t>(1 + i % 5), 1, -5)
                     .piece(1 + i % 9, std::string(random() % 64, 'x'))
                     .piece(1 + i % 7, "a\0b\0"s)
                     .bytes();
    for (int flips = 0; flips < 4; ++flips)
      noise[4 + random() % (noise.size() - 4)] ^= static_cast<std::byte>(random());
    (void)decode(noise, out);
  }
}

TEST_CASE("the tracer's tables agree with the system call table") {
  const auto tables = call_signatures(kernel::builtin_noise());
  const auto signature = [&](const char* name) {
    return tables.signatures[static_cast<std::size_t>(kernel::find_syscall(name)->number)];
  };
  const auto changing = [&](const char* name) {
    const auto nr = static_cast<std::size_t>(kernel::find_syscall(name)->number);
    return ((tables.changing[nr / 64] >> (nr % 64)) & 1) != 0;
  };
  CHECK(signature("openat").path == 1);
  CHECK(signature("openat").dirfd == 0);
  CHECK(signature("openat").flags == ROSE_FLAGS_2);
  CHECK(signature("read").flags == ROSE_AGAIN_NONBLOCK);
  const auto noisy = [&](const char* name, int err) {
    const auto nr = static_cast<std::size_t>(kernel::find_syscall(name)->number);
    return ((tables.noise[nr * ROSE_NOISE_WORDS + static_cast<std::size_t>(err) / 64] >> (err % 64)) & 1) != 0;
  };
  CHECK_FALSE(noisy("read", EAGAIN));
  CHECK(noisy("futex", EAGAIN));
  CHECK(noisy("futex", ETIMEDOUT));
  CHECK(noisy("connect", EINPROGRESS));
  CHECK_FALSE(noisy("connect", ETIMEDOUT));
  CHECK(signature("recvfrom").message_flags == 3);
  CHECK((signature("sendmsg").flags & ROSE_MESSAGE) != 0);
  CHECK((signature("sendmmsg").flags & ROSE_MESSAGE) != 0);
  CHECK((signature("recvmsg").flags & ROSE_MESSAGE) == 0);
  CHECK(signature("fsync").fd == 0);
  CHECK(signature("getpid").fd == -1);
  CHECK(signature("getpid").path == -1);
  CHECK(changing("openat"));
  CHECK(changing("fsync"));
  CHECK(changing("renameat2"));
  CHECK_FALSE(changing("write"));
  CHECK_FALSE(changing("read"));
  CHECK_FALSE(changing("execve"));  // because a separate event reports each exec
}
