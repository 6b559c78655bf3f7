#include "trace/jsonl.h"

#include <fcntl.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <chrono>
#include <cstdio>

#include "base/log.h"
#include "trace/dump.h"
#include "trace_random.h"
#include "trace_same.h"

using namespace rose;
using namespace rose::trace;
using rose::trace::test::random_trace;
using rose::trace::test::require_same;

namespace {

std::string to_text(const Trace& trace) {
  std::string text;
  write_jsonl(trace, [&](std::string_view lines) {
    REQUIRE(!lines.empty());
    REQUIRE(lines.back() == '\n');
    text += lines;
  });
  return text;
}

Trace parsed(std::string_view text) {
  auto trace = parse_jsonl(text, "e.jsonl");
  if (!trace) FAIL(trace.error().message);
  return std::move(*trace);
}

// Everything that the process writes to stderr while `work` runs.
template <typename F>
std::string stderr_of(F&& work) {
  std::FILE* file = std::tmpfile();
  REQUIRE(file != nullptr);
  std::fflush(stderr);
  const int saved = dup(2);
  dup2(fileno(file), 2);
  work();
  std::fflush(stderr);
  dup2(saved, 2);
  close(saved);
  std::string text(1 << 16, '\0');
  std::rewind(file);
  text.resize(std::fread(text.data(), 1, text.size(), file));
  std::fclose(file);
  return text;
}

constexpr const char* kContract =
    R"({"meta":{"version":1,"node":"n1","window":1000000,"lost":0}}
{"ts":1763755200123456789,"node":"n1","type":"scf","pid":41,"tid":44,"syscall":"openat","errno":"ENOENT","fd":null,"path":"/var/lib/x/snapshot.0","peer":null}
{"ts":1763755200123456790,"node":"n1","type":"sys","pid":41,"tid":44,"syscall":"rename","result":0,"fd":null,"path":"/var/lib/x/epoch.tmp","path2":"/var/lib/x/epoch","peer":null}
{"ts":1763755200123456791,"node":"n1","type":"af","pid":41,"tid":44,"function":"RaftLogCreate"}
{"ts":1763755200123456792,"node":"n1","type":"nd","src":"10.77.0.2","dst":"10.77.0.1","duration_ms":7300,"packets":412,"open":false,"outstanding":true}
{"ts":1763755200123456793,"node":"n1","type":"ps","pid":41,"state":"crashed","signal":"SIGKILL","exit_code":null,"duration_ms":null,"planned":false}
)";

}  // namespace

TEST_CASE("the contract's lines are read and written unchanged", "[jsonl]") {
  const Trace trace = parsed(kContract);
  REQUIRE(trace.events.size() == 5);
  CHECK(trace.meta.node == "n1");
  CHECK(trace.meta.window == 1'000'000);
  const Event& scf = trace.events[0];
  CHECK(scf.ts_ns == 1763755200123456789);
  CHECK(trace.str(scf.node) == "n1");
  CHECK(scf.type == EventType::scf);
  CHECK(scf.pid == 41);
  CHECK(scf.tid == 44);
  CHECK(scf.syscall == 257);
  CHECK(scf.err == 2);
  CHECK(scf.fd == -1);
  CHECK(trace.str(scf.path) == "/var/lib/x/snapshot.0");
  CHECK(scf.peer == 0);
  CHECK(trace.str(trace.events[1].path2) == "/var/lib/x/epoch");
  CHECK(trace.str(trace.events[2].function) == "RaftLogCreate");
  const Event& nd = trace.events[3];
  CHECK(trace.str(nd.src) == "10.77.0.2");
  CHECK(trace.str(nd.dst) == "10.77.0.1");
  CHECK(nd.duration_ms == 7300);
  CHECK(nd.packets == 412);
  CHECK((nd.flags & kOpen) == 0);
  CHECK((nd.flags & kOutstanding) != 0);
  const Event& ps = trace.events[4];
  CHECK(ps.state == ProcessState::crashed);
  CHECK(ps.signal == 9);
  CHECK(ps.exit_code == -1);
  CHECK(ps.duration_ms == -1);
  std::string expected = kContract;
  const std::string tail = "\"outstanding\":true";
  expected.replace(expected.find(tail), tail.size(), tail + R"(,"sport":null,"dport":null,"proto":null)");
  CHECK(to_text(trace) == expected);
}

TEST_CASE("keys and flags beyond the contract appear only if they carry information", "[jsonl]") {
  Trace trace;
  Event e;
  e.ts_ns = 5;
  e.type = EventType::ps;
  e.pid = 7;
  e.state = ProcessState::exited;
  e.exit_code = 3;
  CHECK(
      event_to_json(trace, e) ==
      R"({"ts":5,"node":null,"type":"ps","pid":7,"state":"exited","signal":null,"exit_code":3,"duration_ms":null,"planned":false})");
  e.flags = kMain | kInjected | kCoreDumped | kPlanned | kOpen;
  e.count = 2;
  CHECK(
      event_to_json(trace, e) ==
      R"({"ts":5,"node":null,"type":"ps","pid":7,"state":"exited","signal":null,"exit_code":3,"duration_ms":null,"planned":true,"open":true,"count":2,"main":true,"core":true,"injected":true})");
  Event nd;
  nd.ts_ns = 6;
  nd.type = EventType::nd;
  nd.src = trace.strings.intern("fd00::1");
  nd.dst = trace.strings.intern("fd00::2");
  nd.sport = 7000;
  nd.dport = 41000;
  nd.protocol = Protocol::udp;
  nd.duration_ms = 5000;
  nd.flags = kOpen;
  CHECK(
      event_to_json(trace, nd) ==
      R"({"ts":6,"node":null,"type":"nd","src":"fd00::1","dst":"fd00::2","duration_ms":5000,"packets":0,"open":true,"outstanding":null,"sport":7000,"dport":41000,"proto":"udp"})");
  Event unknown;
  unknown.ts_ns = 7;
  unknown.syscall = 470;
  unknown.err = 4000;
  unknown.path = trace.strings.intern("/x");
  unknown.flags = kUnlinked | kTruncated;
  CHECK(
      event_to_json(trace, unknown) ==
      R"({"ts":7,"node":null,"type":"scf","pid":null,"tid":null,"syscall":"syscall_470","errno":"E4000","fd":null,"path":"/x","peer":null,"unlinked":true,"truncated":true})");
  Meta meta;
  CHECK(meta_to_json(meta) == R"({"meta":{"version":1,"node":"","window":0,"lost":0}})");
  meta.workload_ts = 12;
  meta.nodes = {"n1", "n2"};
  CHECK(meta_to_json(meta) ==
        R"({"meta":{"version":1,"node":"","window":0,"lost":0,"workload_ts":12,"nodes":["n1","n2"]}})");
}

TEST_CASE("open flags, out of memory and blocked are equal after being written and read back", "[jsonl]") {
  Trace trace;
  Event e;
  e.ts_ns = 5;
  e.type = EventType::sys;
  e.syscall = 257;
  e.result = 3;
  e.path = trace.strings.intern("/x");
  e.open_flags = 01 | 0100 | 01000;
  CHECK(
      event_to_json(trace, e) ==
      R"({"ts":5,"node":null,"type":"sys","pid":null,"tid":null,"syscall":"openat","result":3,"fd":null,"path":"/x","flags":"O_WRONLY|O_CREAT|O_TRUNC","peer":null})");
  trace.events.push_back(e);
  e.open_flags = 0x80000000 | 0100;  // has a bit without a name
  trace.events.push_back(e);
  Event killed;
  killed.ts_ns = 6;
  killed.type = EventType::ps;
  killed.state = ProcessState::crashed;
  killed.signal = 9;
  killed.flags = kOutOfMemory;
  CHECK(
      event_to_json(trace, killed) ==
      R"({"ts":6,"node":null,"type":"ps","pid":null,"state":"crashed","signal":"SIGKILL","exit_code":null,"duration_ms":null,"planned":false,"oom":true})");
  trace.events.push_back(killed);
  killed.state = ProcessState::paused;
  killed.signal = 0;
  killed.duration_ms = 4000;
  killed.flags = kBlocked;
  CHECK(event_to_json(trace, killed).find(R"("planned":false,"blocked":true)") != std::string::npos);
  trace.events.push_back(killed);
  const Trace back = parsed(to_text(trace));
  require_same(trace, back);
  REQUIRE(back.events.size() == 4);
  CHECK(back.events[0].open_flags == (01 | 0100 | 01000));
  CHECK(back.events[1].open_flags == (0x80000000 | 0100));
  CHECK(back.events[2].flags == kOutOfMemory);
  CHECK(back.events[3].flags == kBlocked);
  Event ring;
  ring.ts_ns = 7;
  ring.syscall = 426;
  ring.err = 21;
  ring.result = 22;
  CHECK(
      event_to_json(trace, ring) ==
      R"({"ts":7,"node":null,"type":"scf","pid":null,"tid":null,"syscall":"io_uring_enter","errno":"EISDIR","op":"READ","fd":null,"path":null,"peer":null})");
  CHECK(parsed(event_to_json(trace, ring)).events.at(0).result == 22);
  const auto refused = parse_jsonl(R"({"ts":1,"type":"sys","flags":"O_CREATE"})", "x.jsonl");
  REQUIRE_FALSE(refused);
  CHECK(refused.error().message == "x.jsonl:1: flags are 'O_CREATE', not those of an open");
}

TEST_CASE("random traces are equal after conversion to text and dump and back", "[jsonl]") {
  for (std::uint64_t seed = 1; seed <= 25; ++seed) {
    INFO("seed " << seed);
    const Trace trace = random_trace(seed, 200);
    const std::string text = to_text(trace);
    const Trace back = parsed(text);
    require_same(trace, back);
    CHECK(to_text(back) == text);
    const auto bytes = dump_to_bytes(back);
    REQUIRE(bytes);
    const auto dump = parse_dump(std::as_bytes(std::span(*bytes)), "x.bin");
    REQUIRE(dump);
    CHECK(to_text(dump->trace) == text);
  }
}

TEST_CASE("strings of any bytes are written as JSON and read back", "[jsonl]") {
  struct Case {
    std::string bytes;
    const char* json;
  };
  using namespace std::string_literals;
  const Case cases[] = {
      {"", R"("")"},
      {"a\"b\\c", R"("a\"b\\c")"},
      {"\n\r\t\b\x1f\x7f", R"("\n\r\t\u0008\u001f\u007f")"},
      {"a\0b"s, R"("a\u0000b")"},
      {"é日😀", R"("é日😀")"},
      {"a\xc2\x80\xc2\x9b"
       "31m\xc2\xa0",
       "\"a\\u0080\\u009b31m\xc2\xa0\""},  // control characters that only terminals interpret are escaped, too
      {"\xff", R"("\udcff")"},
      {"\x80\xc3(", R"("\udc80\udcc3(")"},
      {"\xed\xb2\x80", R"("\udced\udcb2\udc80")"},  // invalid, because a surrogate must not be encoded alone
      {"\xc0\xaf", R"("\udcc0\udcaf")"},            // longer than necessary, hence invalid
      {"\xf4\x90\x80\x80", R"("\udcf4\udc90\udc80\udc80")"},
      {"\xe2\x82", R"("\udce2\udc82")"},
  };
  for (const Case& c : cases) {
    std::string json;
    append_json_string(json, c.bytes);
    CHECK(json == c.json);
    const Trace trace = parsed("{\"ts\":1,\"type\":\"scf\",\"path\":" + json + "}");
    CHECK(trace.events[0].path != 0);
    CHECK(trace.str(trace.events[0].path) == c.bytes);
  }
  // The same values may be written in other ways.
  const Trace trace = parsed(R"({"ts":1,"type":"scf","path":"\u00e9\/\ud83d\ude00\u65e5"})");
  CHECK(trace.str(trace.events[0].path) == "é/😀日");
}

TEST_CASE("control characters are escaped, and read back", "[jsonl]") {
  const std::string text = "a\u202eb\u0085c\u2066d\U000e0041e";
  std::string json;
  append_json_string(json, text);
  CHECK(json == R"("a\u202eb\u0085c\u2066d\udb40\udc41e")");
  Trace trace;
  Event event;
  event.ts_ns = 1'763'755'200'000'000'000;
  event.node = trace.strings.intern("n1");
  event.type = EventType::scf;
  event.syscall = 257;
  event.err = 2;
  event.path = trace.strings.intern(text);
  trace.events.push_back(event);
  const std::string line = event_to_json(trace, trace.events[0]);
  CHECK(line.find("\u202e") == std::string::npos);
  const auto back = parse_jsonl(line + "\n", "t");
  REQUIRE(back);
  CHECK(back->str(back->events.at(0).path) == text);
}

TEST_CASE("lines of other tools are read", "[jsonl]") {
  // The text has no meta line, but blank lines, Windows line ends and a byte order mark. It does not end with a
  // newline. Its events and their keys are in any order.
  const Trace trace = parsed(
      "\xef\xbb\xbf\r\n{ \"type\" : \"ps\" , \"ts\" : 9 }\r\n\r\n"
      "{\"ts\":4,\"type\":\"scf\",\"errno\":null,\"syscall\":\"syscall_470\",\"node\":null,"
      "\"planned\":null,\"pid\":null,\"open\":null,\"duration_ms\":null}");
  REQUIRE(trace.events.size() == 2);
  CHECK(trace.events[0].ts_ns == 4);
  CHECK(trace.events[0].syscall == 470);
  CHECK(trace.events[0].err == 0);
  CHECK(trace.events[1].type == EventType::ps);
  CHECK(trace.events[1].exit_code == -1);
  CHECK(parsed("{\"meta\":{}}").events.empty());
  const Trace partly = parsed("{\"meta\":{\"workload_ts\":77,\"host\":null}}\n");
  CHECK(partly.meta.workload_ts == 77);
  CHECK(partly.meta.host.empty());
}

TEST_CASE("unknown fields are ignored with one warning per file", "[jsonl]") {
  std::string text;
  const std::string output = stderr_of([&] {
    const Trace trace = parsed(
        "{\"meta\":{\"tool\":\"x\"}}\n"
        "{\"ts\":1,\"type\":\"scf\",\"cpu\":3,\"args\":[1,{\"a\":[]},\"x\",-1.5e-3,true,null]}\n"
        "{\"ts\":2,\"type\":\"scf\",\"cpu\":4,\"path\":\"/x\"}\n");
    text = to_text(trace);
    CHECK(trace.events.size() == 2);
    CHECK(trace.str(trace.events[1].path) == "/x");
  });
  CHECK(output == "rose: warning: e.jsonl:1: unknown fields are ignored: 'tool', 'cpu', 'args'\n");
  CHECK(text.find("cpu") == std::string::npos);
  CHECK(stderr_of([] { (void)parsed(kContract); }).empty());
}

TEST_CASE("malformed lines are refused with file and line", "[jsonl]") {
  struct Case {
    std::string line;
    const char* message;
  };
  const std::string deep(100'000, '[');
  std::string deep_objects;
  for (int i = 0; i < 50'000; ++i) deep_objects += "{\"a\":";
  const Case cases[] = {
      {"x", "an object"},
      {"[]", "an object"},
      {"null", "an object"},
      {"{", "a string"},
      {"{\"ts\"", "':'"},
      {"{\"ts\":", "ts must be an integer"},
      {"{\"ts\":1", "',' or '}'"},
      {"{\"ts\":1,}", "a string"},
      {"{\"ts\":1 \"type\":\"scf\"}", "',' or '}'"},
      {"{\"ts\":1,\"type\":\"scf\"} {}", "follows the object"},
      {"{\"ts\":1,\"type\":\"scf\",\"path\":\"a", "does not end"},
      {"{\"ts\":1,\"type\":\"scf\",\"path\":\"a\tb\"}", "control character"},
      {"{\"ts\":1,\"type\":\"scf\",\"path\":\"\\q\"}", "a known escape"},
      {"{\"ts\":1,\"type\":\"scf\",\"path\":\"\\u12\"}", "hex digits"},
      {"{\"ts\":1,\"type\":\"scf\",\"path\":\"\\u1", "cut short"},
      {"{\"ts\":1,\"type\":\"scf\",\"path\":\"\\ud800\"}", "half of a surrogate pair"},
      {"{\"ts\":1,\"type\":\"scf\",\"path\":\"\\udc7f\"}", "half of a surrogate pair"},
      {"{\"ts\":1,\"type\":\"scf\",\"path\":\"\\ud800\\u0041\"}", "half of a surrogate pair"},
      {"{\"type\":\"scf\"}", "needs ts"},
      {"{\"ts\":null,\"type\":\"scf\"}", "ts must be an integer, not 'null'"},
      {"{\"ts\":-1,\"type\":\"scf\"}", "ts is '-1', it must be 0 to"},
      {"{\"ts\":9223372036854775807,\"type\":\"scf\"}", "it must be 0 to"},
      {"{\"ts\":99999999999999999999999,\"type\":\"scf\"}", "it must be 0 to"},
      {"{\"ts\":1.5,\"type\":\"scf\"}", "ts must be an integer, not '1.5'"},
      {"{\"ts\":1e18,\"type\":\"scf\"}", "ts must be an integer"},
      {"{\"ts\":\"1\",\"type\":\"scf\"}", "ts must be an integer"},
      {"{\"ts\":01,\"type\":\"scf\"}", "',' or '}'"},
      {"{\"ts\":1}", "needs type"},
      {"{\"ts\":1,\"type\":null}", "needs type"},
      {"{\"ts\":1,\"type\":\"SCF\"}", "unknown type 'SCF'"},
      {"{\"ts\":1,\"type\":\"net\"}", "unknown type 'net'"},
      {"{\"ts\":1,\"type\":5}", "type must be a string, not '5'"},
      {"{\"ts\":1,\"ts\":1,\"type\":\"scf\"}", "ts occurs twice"},
      {"{\"ts\":1,\"type\":\"scf\",\"syscall\":\"fdatasinc\"}", "unknown syscall 'fdatasinc'"},
      {"{\"ts\":1,\"type\":\"scf\",\"syscall\":\"syscall_512\"}", "unknown syscall"},
      {"{\"ts\":1,\"type\":\"scf\",\"syscall\":2}", "syscall must be a string"},
      {"{\"ts\":1,\"type\":\"scf\",\"errno\":\"ENOENTT\"}", "unknown errno 'ENOENTT'"},
      {"{\"ts\":1,\"type\":\"scf\",\"errno\":2}", "errno must be a string, not '2'"},
      {"{\"ts\":1,\"type\":\"scf\",\"pid\":\"41\"}", "pid must be an integer"},
      {"{\"ts\":1,\"type\":\"scf\",\"pid\":-1}", "pid is '-1'"},
      {"{\"ts\":1,\"type\":\"scf\",\"pid\":2147483648}", "pid is '2147483648', it must be 0 to 2147483647"},
      {"{\"ts\":1,\"type\":\"scf\",\"fd\":-2}", "fd is '-2'"},
      {"{\"ts\":1,\"type\":\"scf\",\"path\":7}", "path must be a string"},
      {"{\"ts\":1,\"type\":\"scf\",\"path\":[]}", "path must be a string"},
      {"{\"ts\":1,\"type\":\"scf\",\"node\":true}", "node must be a string, not 'true'"},
      {"{\"ts\":1,\"type\":\"sys\",\"result\":9223372036854775808}", "result is"},
      {"{\"ts\":1,\"type\":\"nd\",\"sport\":65536}", "sport is '65536'"},
      {"{\"ts\":1,\"type\":\"nd\",\"proto\":\"icmp\"}", "unknown proto"},
      {"{\"ts\":1,\"type\":\"nd\",\"open\":1}", "open must be true or false"},
      {"{\"ts\":1,\"type\":\"nd\",\"packets\":-3}", "packets is"},
      {"{\"ts\":1,\"type\":\"ps\",\"state\":\"killed\"}", "unknown state 'killed'"},
      {"{\"ts\":1,\"type\":\"ps\",\"signal\":\"KILL\"}", "unknown signal"},
      {"{\"ts\":1,\"type\":\"ps\",\"exit_code\":256}", "exit_code is"},
      {"{\"ts\":1,\"type\":\"ps\",\"count\":0}", "count is '0', it must be 1 to"},
      {"{\"ts\":1,\"type\":\"ps\",\"planned\":\"yes\"}", "planned must be true or false"},
      {"{\"meta\":{\"version\":1}}", "a meta line may come only before"},
      {"{\"ts\":1,\"type\":\"scf\",\"meta\":{}}", "a meta line may come only before"},
      {"{\"ts\":1,\"type\":\"scf\",\"x\":" + deep, "nested deeper"},
      {"{\"ts\":1,\"type\":\"scf\",\"x\":" + deep_objects, "nested deeper"},
      {"{\"ts\":1,\"type\":\"scf\",\"x\":tru}", "a value"},
      {"{\"ts\":1,\"type\":\"scf\",\"x\":-}", "a value"},
      {"{\"ts\":1,\"type\":\"scf\",\"x\":1.}", "a digit"},
      {"{\"ts\":1,\"type\":\"scf\",\"x\":[1,]}", "a value"},
      {"{\"ts\":1,\"type\":\"scf\",\"x\":{\"a\"}}", "':'"},
      {"{\"ts\":1,\"type\":\"scf\",\"path\":\"" + std::string(kLongestString + 1, 'a') + "\"}", "the most is"},
  };
  for (const Case& c : cases) {
    const auto trace = parse_jsonl("{\"ts\":1,\"type\":\"af\"}\n\n" + c.line + "\n", "e.jsonl");
    INFO(c.line.substr(0, 100));
    REQUIRE_FALSE(trace);
    INFO(trace.error().message);
    CHECK(trace.error().kind == ErrorKind::input);
    CHECK(trace.error().message.find("e.jsonl:3: ") == 0);
    CHECK(trace.error().message.find(c.message) != std::string::npos);
    CHECK(trace.error().message.size() < 300);
  }
  const Case metas[] = {
      {"{\"meta\":5}", "meta must be an object"},
      {"{\"meta\":{\"version\":2}}", "version 2; this rose reads version 1"},
      {"{\"meta\":{\"window\":-1}}", "window is"},
      {"{\"meta\":{\"window\":18446744073709551616}}", "window is"},
      {"{\"meta\":{\"nodes\":\"n1\"}}", "nodes must be a list of strings"},
      {"{\"meta\":{\"nodes\":[1]}}", "nodes must be a list of strings"},
      {"{\"meta\":{\"begin_ns\":-5}}", "begin_ns is"},
      {"{\"meta\":{\"node\":\"a\",\"node\":\"b\"}}", "node occurs twice"},
      {"{\"meta\":{},\"ts\":1}", "other fields"},
      {"{\"ts\":1,\"type\":\"scf\",\"meta\":{}}", "other fields"},
      {"{\"meta\":{}", "',' or '}'"},
  };
  for (const Case& c : metas) {
    INFO(c.line);
    const auto trace = parse_jsonl(c.line, "e.jsonl");
    REQUIRE_FALSE(trace);
    INFO(trace.error().message);
    CHECK(trace.error().message.find("e.jsonl:1: ") == 0);
    CHECK(trace.error().message.find(c.message) != std::string::npos);
  }
  CHECK_FALSE(parse_jsonl("", "e.jsonl"));
  CHECK_FALSE(parse_jsonl("\n \n", "e.jsonl"));
  CHECK(parse_jsonl("{\"ts\":1,\"type\":\"scf\",\"syscall\":\"fdatasinc\"}", "e").error().hint.find("fdatasync") !=
        std::string::npos);
  const auto missing = read_jsonl("/nonexistent/e.jsonl");
  REQUIRE_FALSE(missing);
  CHECK(missing.error().kind == ErrorKind::input);
}

TEST_CASE("a million lines are written and read", "[jsonl]") {
  const Trace trace = rose::trace::test::realistic_trace(22, rose::trace::test::big());
  const auto begin = std::chrono::steady_clock::now();
  std::string text;
  write_jsonl(trace, [&](std::string_view lines) { text += lines; });
  const auto middle = std::chrono::steady_clock::now();
  const auto back = parse_jsonl(text, "e.jsonl");
  const auto end = std::chrono::steady_clock::now();
  REQUIRE(back);
  CHECK(back->events.size() == trace.events.size());
  const double writing = std::chrono::duration<double>(middle - begin).count();
  const double reading = std::chrono::duration<double>(end - middle).count();
  std::printf("%zu lines: %.0f MB, written in %.2f s, read in %.2f s\n", trace.events.size(),
              static_cast<double>(text.size()) / 1e6, writing, reading);
}
