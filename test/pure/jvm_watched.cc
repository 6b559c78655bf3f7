#include <catch2/catch.hpp>
#include <cstring>
#include <string>
#include <vector>

#include "jvm/call_sites.h"
#include "jvm/code_book.h"
#include "jvm/node.h"
#include "jvm/session.h"
#include "jvm/state.h"

using namespace rose::jvm;

namespace {

std::string state_of(const std::vector<StateRecord>& records, bool breakpoints = true) {
  StateHead head;
  head.record_bytes = sizeof(StateRecord);
  head.used = static_cast<std::uint32_t>(records.size());
  head.breakpoints = breakpoints ? 1 : 0;
  std::string bytes(reinterpret_cast<const char*>(&head), sizeof head);
  for (const StateRecord& one : records) bytes.append(reinterpret_cast<const char*>(&one), sizeof one);
  return bytes;
}

StateRecord record(RecordKind kind, std::string_view text, std::uint64_t count = 0, std::uint64_t unseen = 0,
                   std::uint32_t flags = kMethodWatched) {
  StateRecord one;
  one.kind = static_cast<std::uint32_t>(kind);
  one.entry = kNoEntry;
  one.length = static_cast<std::uint32_t>(text.size());
  std::memcpy(one.text, text.data(), text.size());
  one.count = count;
  one.unseen = unseen;
  one.flags = flags;
  return one;
}

JvmState read(const std::vector<StateRecord>& records, bool breakpoints = true) {
  JvmState state;
  REQUIRE(parse_state(state_of(records, breakpoints), state));
  return state;
}

// The constant pool of a class file. Its entries (Utf8, Class and the like) are added in their order.
struct Pool {
  std::vector<unsigned char> bytes;
  std::size_t count = 1;
  std::size_t text(std::string_view text) {
    put({1, static_cast<unsigned char>(text.size() >> 8), static_cast<unsigned char>(text.size())});
    bytes.insert(bytes.end(), text.begin(), text.end());
    return count++;
  }
  std::size_t one(unsigned char tag, std::size_t a) {
    put({tag, static_cast<unsigned char>(a >> 8), static_cast<unsigned char>(a)});
    return count++;
  }
  std::size_t two(unsigned char tag, std::size_t a, std::size_t b) {
    put({tag, static_cast<unsigned char>(a >> 8), static_cast<unsigned char>(a), static_cast<unsigned char>(b >> 8),
         static_cast<unsigned char>(b)});
    return count++;
  }
  void eight() {  // adds a long, which occupies two entries
    put({5, 0, 0, 0, 0, 0, 0, 0, 1});
    count += 2;
  }
  void put(std::initializer_list<unsigned char> more) { bytes.insert(bytes.end(), more); }
};

}  // namespace

TEST_CASE("method entries are summed over JVMs and class loaders") {
  const auto one = read({record(RecordKind::method, "x.A.m", 3), record(RecordKind::method, "x.A.m", 1),
                         record(RecordKind::method, "x.B.n", 10, 2500, 0)});
  const auto two =
      read({record(RecordKind::method, "x.A.m", 5), record(RecordKind::method, "x.C.o", 0, 0, kMethodUnknown)});
  const auto all = watched_methods({one, two});
  REQUIRE(all.size() == 3);
  CHECK(all.at("x.A.m").calls == 9);
  CHECK(all.at("x.A.m").watched);
  CHECK(all.at("x.B.n").calls == 12.5);
  CHECK_FALSE(all.at("x.B.n").watched);
  CHECK(all.at("x.B.n").known);
  CHECK_FALSE(all.at("x.C.o").known);
}

TEST_CASE("the reason why methods are not watched is reported") {
  const auto says = [](const std::vector<JvmState>& states, std::string_view word) {
    const auto all = complaints("n1", states);
    return all.size() == 1 && all[0].find(word) != std::string::npos && all[0].find("n1") != std::string::npos;
  };
  CHECK(says({}, "JAVA_TOOL_OPTIONS"));
  CHECK(says({read({record(RecordKind::note, "a debugger")}, false)}, "a debugger"));
  CHECK(says({read({})}, "no class"));
  CHECK(complaints("n1", {read({record(RecordKind::method, "x.A.m")})}).empty());
  // The first JVM is a tool that the start script ran before the server, so its note is not reported.
  CHECK(complaints("n1",
                   {read({record(RecordKind::note, "a debugger")}, false), read({record(RecordKind::method, "x.A.m")})})
            .empty());
  CHECK(says({read({record(RecordKind::method, "x.A.m"), record(RecordKind::note, "too many")})}, "too many"));
}

TEST_CASE("the agent's instructions list what to watch, one per line") {
  const std::string text = instructions("/run/n1", {},
                                        WatchRequest{.count = true,
                                                     .code = false,
                                                     .rate = 2.5,
                                                     .functions = {"org.x.*"},
                                                     .sources = {"A.java"},
                                                     .methods = {"org.x.A.m(int)\nplace\t1"}});
  CHECK(text ==
        "rose-jvm\t3\nstate\t/run/"
        "n1\nwatch\tcount\t2500\t10\nfunction\torg.x.*\nsource\tA.java\nmethod\torg.x.A.m(int) place 1\n");
  CHECK(
      instructions(
          "/run/n1", {},
          WatchRequest{
              .count = false, .code = true, .rate = 0, .share = 0.05, .functions = {}, .sources = {}, .methods = {}}) ==
      "rose-jvm\t3\nstate\t/run/n1\nwatch\ttell\t0\t50\ncode\t1\n");
  CHECK(instructions("/run/n1", {},
                     WatchRequest{.count = true,
                                  .rate = 0,
                                  .functions = {},
                                  .sources = {},
                                  .methods = {},
                                  .throwers = {"org.x.*"},
                                  .thrower_sources = {"A.java"}}) ==
        "rose-jvm\t3\nstate\t/run/n1\nwatch\tcount\t0\t10\nthrower\torg.x.*\nthrower_source\tA.java\n");
  CHECK(instructions("/run/n1", {}, std::nullopt) == "rose-jvm\t3\nstate\t/run/n1\n");
}

TEST_CASE("a node's functions and sources are divided between its JVM and native code") {
  rose::config::Node node;
  node.command = {"java", "-jar", "x.jar"};
  node.functions = {"org.x.*", "Raft::apply"};
  node.sources = {"A.java", "b.cc"};
  CHECK(methods_of(node).functions == std::vector<std::string>{"org.x.*"});
  CHECK(methods_of(node).sources == std::vector<std::string>{"A.java"});
  CHECK(native_of(node).functions == std::vector<std::string>{"Raft::apply"});
  node.command = {"./raft"};
  node.sources = {"b.cc"};
  CHECK(methods_of(node).functions.empty());
}

TEST_CASE("call sites of a method have the callee's name and whether they are in a loop") {
  Pool pool;
  pool.eight();
  const auto owner = pool.one(7, pool.text("java/io/Writer"));
  const auto type = pool.two(12, pool.text("write"), pool.text("(Ljava/lang/String;)V"));
  const auto method = pool.two(10, owner, type);
  const auto dynamic = pool.two(18, 0, type);
  const ConstantPool parsed(pool.bytes, pool.count);
  CHECK(parsed.callee(method) == "java.io.Writer.write");
  CHECK(parsed.callee(dynamic) == "write");
  CHECK(parsed.callee(owner).empty());
  CHECK(parsed.callee(9999).empty());

  const auto high = static_cast<unsigned char>(method >> 8), low = static_cast<unsigned char>(method);
  // the code is: invokevirtual; nop; invokevirtual; goto -4; invokedynamic; return
  const std::vector<unsigned char> code{
      0xb6, high, low, 0x00, 0xb6, high, low, 0xa7, 0xff, 0xfc, 0xba, 0, static_cast<unsigned char>(dynamic),
      0,    0,    0xb1};
  const auto sites = call_sites(code, parsed);
  REQUIRE(sites.size() == 3);
  CHECK(sites[0].offset == 0);
  CHECK_FALSE(sites[0].loop);
  CHECK(sites[1].offset == 4);
  CHECK(sites[1].loop);
  CHECK(sites[1].callee == "java.io.Writer.write");
  CHECK(sites[2].callee == "write");
  CHECK_FALSE(sites[2].loop);

  // If the pool is truncated, everything before the cut is still read.
  for (std::size_t n = 0; n < pool.bytes.size(); ++n)
    (void)ConstantPool(std::span(pool.bytes).first(n), pool.count).callee(method);
}

TEST_CASE("the code book distinguishes system calls, also made through helpers, from other calls") {
  CHECK(calls_system("java.io.FileOutputStream.write"));
  CHECK(calls_system("java.nio.channels.FileChannel.force"));
  CHECK(calls_system("java.nio.file.Files.newBufferedWriter"));
  CHECK_FALSE(calls_system("java.io.IOException.<init>"));
  CHECK_FALSE(calls_system("java.util.Map.put"));

  CodeBook book;
  book.learn_text(
      "n1",
      "method\tx.A.save\ncall\t4\t10\t0\tjava.util.Map.put\ncall\t9\t11\t1\tx.A.helper\ncall\t20\t12\t0\tx.A.round\n"
      "method\tx.A.helper(int)\ncall\t0\t30\t0\tjava.io.Writer.write\n"
      "method\tx.A.round\ncall\t0\t40\t0\tx.A.round\n"
      "call\tbad\nnonsense\n");
  const auto places = book.places("n1", "x.A.save");
  REQUIRE(places.size() == 3);
  CHECK_FALSE(places[0].syscall);
  CHECK(places[1].syscall);
  CHECK(places[1].site.offset == 9);
  CHECK(places[1].site.line == 11);
  CHECK(places[1].site.loop);
  CHECK_FALSE(places[2].syscall);  // this place is a call of the method itself
  CHECK(book.places("n2", "x.A.save").empty());
  CHECK_FALSE(book.contains("n1", "x.A"));
  // The same text, from another run, must not be recorded again.
  book.learn_text("n1", "method\tx.A.save\ncall\t4\t10\t0\tjava.util.Map.put\n");
  CHECK(book.places("n1", "x.A.save").size() == 3);
}
