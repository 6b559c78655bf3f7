// Go's table of functions, made by hand in each of its layouts, intact or damaged.
#include <catch2/catch.hpp>

#include <cstring>
#include <random>
#include <string>

#include "symbols/go_library.h"
#include "symbols/go_prologue.h"
#include "symbols/gopclntab.h"
#include "symbols_go_table.h"

using namespace rose::symbols;
using namespace rose::symbols::test;

namespace {

std::span<const std::uint8_t> span(const std::string& bytes) {
  return {reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size()};
}

}  // namespace

TEST_CASE("every layout of Go's function table is read") {
  for (const int version : {2, 16, 18, 20}) {
    CAPTURE(version);
    const std::string bytes = table(version);
    const auto header = go_header(span(bytes));
    REQUIRE(header);
    CHECK(header->version == version);
    CHECK(header->functions == 2);
    CHECK(header->text == (version >= 18 ? 0x401000U : 0U));
    const auto functions = go_functions(span(bytes), version >= 18 ? 0x1000 : 0, true);
    REQUIRE(functions.size() == 2);
    CHECK(functions[0].name == "main.a");
    CHECK(functions[0].source == "a.go");
    CHECK(functions[0].address == 0x1000);
    CHECK(functions[0].size == 0x40);
    CHECK(functions[1].name == "main.(*B).c");
    CHECK(functions[1].source == "b.go");
    CHECK(functions[1].address == 0x1040);
    const std::string within = std::string(16, 'x') + bytes;
    CHECK(go_table_candidates(span(within)) == std::vector<std::size_t>{16});
  }
}

TEST_CASE("damaged function tables are read safely") {
  std::mt19937 random(1);
  for (const int version : {2, 16, 18, 20}) {
    const std::string whole = table(version);
    for (std::size_t size = 0; size < whole.size(); ++size) {
      CHECK(go_functions(span(whole.substr(0, size)), 0x1000, true).size() <= 2);
    }
    for (int round = 0; round < 20'000; ++round) {
      std::string bytes = whole;
      for (int change = 0; change < 3; ++change) {
        const std::size_t at = random() % bytes.size();
        const std::uint32_t odd[] = {0, 1, 0x7fffffff, 0x80000000, 0xffffffff, static_cast<std::uint32_t>(random())};
        if (random() % 2 == 0 || at + 4 > bytes.size()) bytes[at] = static_cast<char>(random());
        else put_at(bytes, at, odd[random() % 6]);
      }
      for (const auto& function : go_functions(span(bytes), 0x1000, true)) {
        if (function.name.size() > whole.size() || function.source.size() > whole.size()) FAIL("a text from nowhere");
      }
    }
  }
}

TEST_CASE("Go's stack checks are recognised by their instructions") {
  struct Case {
    const char* code;
    std::size_t bytes;
  };
  const auto code_of = [](std::string_view text) {
    std::vector<std::uint8_t> bytes;
    for (std::size_t at = 0; at < text.size(); at += 3)
      bytes.push_back(static_cast<std::uint8_t>(std::stoi(std::string(text.substr(at, 2)), nullptr, 16)));
    return bytes;
  };
  const Case cases[] = {
      {"49 3b 66 10 76 29 55 48 89 e5", 6},  // a function with a small frame
      {"49 3b 66 10 0f 86 9f 01 00 00 55", 10},
      {"4c 8d 64 24 d8 4d 3b 66 10 76 40 55", 11},  // a function with a larger frame
      {"4c 8d a4 24 68 fe ff ff 4d 3b 66 10 0f 86 9f 00 00 00 55", 18},
      // a function with one of the largest frames
      {"49 89 e4 49 81 ec a0 7f 00 00 0f 82 d6 00 00 00 4d 3b 66 10 0f 86 cc 00 00 00 55", 26},
      {"64 48 8b 0c 25 f8 ff ff ff 48 3b 61 10 76 29 48", 15},  // until Go 1.16
      {"64 48 8b 0c 25 f8 ff ff ff 48 8d 44 24 e0 48 3b 41 10 0f 86 9f 00 00 00 48", 24},
      {"64 48 8b 0c 25 f8 ff ff ff 48 8d 84 24 68 fe ff ff 48 3b 41 10 0f 86 9f 00 00 00 48", 27},
      {"55 48 89 e5 48 83 ec 10", 0},           // there is no check
      {"49 3b 66 10 77 29 55", 0},              // the jump is of another kind
      {"49 3b 66 10 76 f9 55", 0},              // the jump leads backwards
      {"4c 8d 64 24 d8 49 3b 66 10 76 40", 0},  // the check uses another register
      {"49 3b 66 18 76 29 55", 0},              // the check uses another limit
  };
  const Case arm64[] = {
      {"90 0b 40 f9 ff 63 30 eb a9 02 00 54 fe 0f 1e f8", 12},              // a function with a small frame
      {"90 0b 40 f9 f1 c3 01 d1 3f 02 10 eb a9 02 00 54 fe 0f 1e f8", 16},  // a function with a larger frame
      {"81 0b 40 f9 f1 03 00 91 3f 02 01 eb a9 02 00 54 fe 0f 1e f8", 16},  // until Go 1.18
      {"fe 0f 1e f8 fd 83 1f f8 fd 23 00 d1", 0},                           // there is no check
      {"90 0b 40 f9 ff 63 30 eb a8 02 00 54", 0},                           // the jump is of another kind
      {"90 0b 40 f9 ff 63 30 eb 89 ff ff 54", 0},                           // the jump leads backwards
      {"90 0f 40 f9 ff 63 30 eb a9 02 00 54", 0},                           // the check uses another limit
  };
  const auto check = [&](const Case& one, const Machine& machine) {
    CAPTURE(one.code);
    const auto code = code_of(one.code);
    CHECK(stack_check_bytes(code, machine) == one.bytes);
    // A check that is cut off anywhere is not recognised.
    for (std::size_t size = 0; size < one.bytes; ++size)
      CHECK(stack_check_bytes(std::span(code).first(size), machine) == 0);
  };
  for (const Case& one : cases) check(one, machine::kX86);
  for (const Case& one : arm64) check(one, machine::kArm64);
}

TEST_CASE("packages of Go's library are distinguished from modules, wherever they were built") {
  CHECK(of_go_library("crypto/sha256.(*digest).Write", "/usr/local/go/src/crypto/sha256/sha256.go"));
  CHECK(
      of_go_library("crypto/sha256.Sum256",
                    "/home/x/go/pkg/mod/golang.org/toolchain@v0.0.1-go1.23.1.linux-amd64/src/crypto/sha256/sha256.go"));
  CHECK(of_go_library("net/http.(*Server).Serve", "net/http/server.go"));  // built with -trimpath
  CHECK(of_go_library("sync/atomic.(*Pointer[go.shape.struct { main.x/y.Z }]).Load", "sync/atomic/type.go"));
  CHECK(of_go_library("os/signal.signal_recv", "runtime/sigqueue.go"));
  CHECK(of_go_library("vendor/golang.org/x/net/http/httpguts.ValidHostHeader",
                      "vendor/golang.org/x/net/http/httpguts/httplex.go"));
  CHECK(of_go_library("indexbytebody", "internal/bytealg/indexbyte_amd64.s"));
  CHECK(of_go_library("gogo", "/usr/lib/go-1.19/src/runtime/asm_amd64.s"));
  // These functions were inlined into one of the application, so their names contain its package.
  CHECK(of_go_library("go.etcd.io/etcd/raft/v3.(*DefaultLogger).Info.(*Logger).Output.func1", "log/log.go"));
  CHECK(of_go_library("main.reports.Printf.func2", "/usr/local/go/src/log/log.go"));
  CHECK(of_go_library("main.reports.Printf.func2",
                      "/home/x/go/pkg/mod/golang.org/toolchain@v0.0.1-go1.23.1.linux-amd64/src/log/log.go"));
  // Without a file, the name alone decides.
  CHECK(of_go_library("sort.insertionSort_func", ""));
  CHECK(of_go_library("slices.pdqsortCmpFunc[go.shape.struct { main.x string }]", ""));
  CHECK(of_go_library("net/http.(*conn).serve", ""));
  CHECK(of_go_library("html/template.(*Template).Execute", ""));
  CHECK(of_go_library("crosscall1", ""));
  CHECK(of_go_library("_cgo_sys_thread_start", ""));
  // The file is given without a folder.
  CHECK(of_go_library("runtime.main", "proc.go"));
  CHECK(of_go_library("runtime.goexit.abi0", "asm_amd64.s"));
  CHECK_FALSE(of_go_library("main.main", "main.go"));
  CHECK_FALSE(of_go_library("example.com/log.Write", "log.go"));
  CHECK_FALSE(of_go_library("sum", "sum_amd64.s"));
  CHECK_FALSE(of_go_library("sort.constprop.0", ""));
  CHECK_FALSE(of_go_library("log.part.0.cold", ""));
  CHECK_FALSE(of_go_library("main.sort.func1", ""));
  CHECK_FALSE(of_go_library("sort", ""));
  CHECK_FALSE(of_go_library("log::Sink::write(log.x)", ""));
  CHECK_FALSE(of_go_library("main.reports.func2", "/home/x/src/log/log.go"));
  CHECK_FALSE(of_go_library("sumBlocks", "/home/x/go/pkg/mod/example.com/sum@v1.0.0/sum_amd64.s"));
  CHECK_FALSE(of_go_library("main.main", "/home/x/src/time/main.go"));
  CHECK_FALSE(of_go_library("kv/time.Now", "kv/time/time.go"));
  CHECK_FALSE(of_go_library("golang.org/x/net/http2.(*Framer).ReadFrame", "golang.org/x/net@v0.1.0/http2/frame.go"));
  CHECK_FALSE(of_go_library("crypto_hash", "/src/crypto/hash.c"));
}

TEST_CASE("the module of a Go source file is determined from its path") {
  CHECK(go_module("/home/x/go/pkg/mod/github.com/tendermint/tendermint@v0.34.0/node/node.go") ==
        "github.com/tendermint/tendermint");
  CHECK(go_module("github.com/nats-io/nats-server/v2@v2.10.22/server/jetstream.go") ==
        "github.com/nats-io/nats-server");
  CHECK(go_module("go.etcd.io/etcd/raft/raft.go") == "go.etcd.io/etcd");
  CHECK(go_module("github.com/coreos/go-systemd/daemon/sdnotify.go") == "github.com/coreos/go-systemd");
  CHECK(go_module("gopkg.in/yaml.v2@v2.4.0/decode.go") == "gopkg.in/yaml.v2");
  CHECK(go_module("/home/x/kv/main.go") == "");
  CHECK(go_module("kv/store/store.go") == "");
  CHECK(go_module("main.go") == "");
  CHECK(go_module("net/http/server.go") == "");
  CHECK(go_module("/srv/a.b/x.c") == "");
}

TEST_CASE("the offset of a goroutine's creator is read from the function that prints the creator") {
  const auto offset = [](std::string_view code, const Machine& machine) {
    return go_creator_offset({reinterpret_cast<const std::uint8_t*>(code.data()), code.size()}, machine);
  };
  // The code is: the stack check, the set-up of the frame, mov %rax,0x50(%rsp), mov 0x120(%rax),%rax.
  const std::string frame("\x49\x3b\x66\x10\x0f\x86\x86\0\0\0\x55\x48\x89\xe5\x48\x83\xec\x40\x48\x89\x44\x24\x50", 23);
  CHECK(offset(frame + std::string("\x48\x8b\x80\x20\1\0\0", 7), machine::kX86) == 0x120);
  CHECK(offset(frame + std::string("\x4c\x8b\x80\x18\1\0\0", 7), machine::kX86) == 0x118);  // loads into %r8
  // loads from an address in %rcx
  CHECK(offset(frame + std::string("\x48\x8b\x81\x20\1\0\0", 7), machine::kX86) == std::nullopt);
  CHECK(offset(frame + std::string("\x48\x8b\x80\x20\1\0", 6), machine::kX86) == std::nullopt);
  CHECK(offset(frame, machine::kX86) == std::nullopt);
  // The code is: ldr x16,[x28,#16], str x0,[sp,#8], ldr x1,[x0,#288].
  const std::string arm("\x90\x0b\x40\xf9\xe0\x07\0\xf9\x01\x90\x40\xf9\0\0\0\0", 16);
  CHECK(offset(arm, machine::kArm64) == 288);
}
