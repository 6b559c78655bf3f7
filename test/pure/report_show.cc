#include "report/dump/show.h"

#include <catch2/catch.hpp>
#include <map>

#include "base/json.h"
#include "golden.h"
#include "report/dump/perfetto.h"
#include "report/dump/summary.h"
#include "trace/jsonl.h"
#include "trace_random.h"

using namespace rose;
using namespace rose::report;
using rose::test::check_golden;
using rose::trace::EventType;
using rose::trace::Trace;

namespace {

Trace sample() {
  auto trace = trace::read_jsonl(rose::test::golden_path("show/sample.jsonl"));
  REQUIRE(trace);
  return std::move(*trace);
}

std::string text_of(void (*show)(const Trace&, const ShowFilter&, const Output&), const Trace& trace,
                    const ShowFilter& filter = {}) {
  std::string text;
  show(trace, filter, [&](std::string_view more) { text += more; });
  return text;
}

}  // namespace

TEST_CASE("views of a trace equal their golden files", "[show]") {
  const Trace trace = sample();
  check_golden("show/sample.text", text_of(show_text, trace));
  check_golden("show/sample.summary", text_of(show_summary, trace));
  check_golden("show/sample.perfetto.json", text_of(show_perfetto, trace));
  CHECK(text_of(show_jsonl, trace) == rose::test::slurp(rose::test::golden_path("show/sample.jsonl")));
  ShowFilter filter;
  filter.node = "n2";
  filter.types = {EventType::scf, EventType::af};
  check_golden("show/filtered.text", text_of(show_text, trace, filter));
  check_golden("show/empty.text", text_of(show_text, Trace{}));
  check_golden("show/empty.summary", text_of(show_summary, Trace{}));
}

TEST_CASE("kinds of ends, pauses and opens are printed", "[show]") {
  Trace trace;
  trace::Event e;
  e.type = EventType::ps;
  e.state = trace::ProcessState::crashed;
  e.signal = 9;
  e.flags = trace::kOutOfMemory | trace::kMain;
  CHECK(describe(trace, e) == "crashed by SIGKILL, out of memory, main process");
  e.state = trace::ProcessState::paused;
  e.signal = 0;
  e.duration_ms = 4000;
  e.flags = trace::kBlocked | trace::kOpen;
  CHECK(describe(trace, e) == "blocked in uninterruptible wait for 4s, not over yet");
  trace::Event open;
  open.type = EventType::sys;
  open.syscall = 257;
  open.result = 7;
  open.path = trace.strings.intern("/x");
  open.open_flags = 02 | 0100 | 02000;
  CHECK(describe(trace, open) == "openat = 7 /x O_RDWR|O_CREAT|O_APPEND");
}

TEST_CASE("the node's own address is printed as local, not as a peer", "[show]") {
  Trace trace;
  trace::Event e;
  e.type = EventType::scf;
  e.syscall = 288;
  e.err = 24;
  e.fd = 3;
  e.peer = trace.strings.intern("10.0.0.1:7000");
  CHECK(describe(trace, e) == "accept4 EMFILE local 10.0.0.1:7000 fd 3");
  e.syscall = 49;
  e.err = 98;
  CHECK(describe(trace, e) == "bind EADDRINUSE local 10.0.0.1:7000 fd 3");
  e.type = EventType::sys;  // a system call that succeeded: a connection was accepted
  e.syscall = 288;
  e.result = 5;
  CHECK(describe(trace, e) == "accept4 = 5 peer 10.0.0.1:7000 fd 3");
  e.syscall = 42;
  CHECK(describe(trace, e) == "connect = 5 peer 10.0.0.1:7000 fd 3");
}

TEST_CASE("filters select events by node, type and time", "[show]") {
  const Trace trace = sample();
  const auto lines = [&](const ShowFilter& filter) {
    const std::string text = text_of(show_jsonl, trace, filter);
    return std::count(text.begin(), text.end(), '\n') - 1;
  };
  ShowFilter filter;
  CHECK(lines(filter) == 14);
  filter.node = "n1";
  CHECK(lines(filter) == 6);
  filter.types = {EventType::ps};
  CHECK(lines(filter) == 2);
  filter.node = "host-a";  // an event without a node belongs to the tracer's host
  filter.types = {};
  CHECK(lines(filter) == 1);
  filter.node = "n4";
  CHECK(lines(filter) == 0);
  filter = {};
  filter.since_ns = 1763755202000000000;
  CHECK(lines(filter) == 9);
  filter.until_ns = 1763755202500000000;
  CHECK(lines(filter) == 2);

  CHECK(check_filter({}, trace));
  filter = {};
  filter.node = "n1";
  CHECK(check_filter(filter, trace));
  filter.node = "n4";
  const auto unknown = check_filter(filter, trace);
  REQUIRE_FALSE(unknown);
  CHECK(unknown.error().kind == ErrorKind::usage);
  CHECK(unknown.error().message == "--node: the dump contains no node 'n4'");
  CHECK(unknown.error().hint == "its nodes are n1, n2, n3, host-a");
  filter = {};
  filter.since_ns = 2;
  filter.until_ns = 1;
  CHECK_FALSE(check_filter(filter, trace));
}

TEST_CASE("points in time are parsed", "[show]") {
  const Trace trace = sample();
  const std::int64_t first = trace.events.front().ts_ns;
  const std::int64_t last = trace.events.back().ts_ns;
  const std::pair<const char*, std::int64_t> good[] = {{"2.5s", first + 2'500'000'000},
                                                       {"+2.5s", first + 2'500'000'000},
                                                       {"0s", first},
                                                       {"-10s", last - 10'000'000'000},
                                                       {"-200ms", last - 200'000'000},
                                                       {"1763755202000000000", 1763755202000000000},
                                                       // even a number as small as this is a time in nanoseconds
                                                       {"10", 10}};
  for (const auto& [text, ns] : good) {
    INFO(text);
    const auto moment = parse_moment("--since", text, trace);
    REQUIRE(moment);
    CHECK(*moment == ns);
  }
  for (const char* text :
       {"", "-", "+", "s", "2.5", "--5s", "5 s", "1e9s", "99999999999999999999", "yesterday", "-1763755202000000000"}) {
    INFO(text);
    const auto moment = parse_moment("--since", text, trace);
    REQUIRE_FALSE(moment);
    CHECK(moment.error().kind == ErrorKind::usage);
    CHECK(moment.error().message == "--since: '" + std::string(text) + "' is not a time");
  }
  CHECK(parse_moment("--since", "-10s", Trace{}));
}

TEST_CASE("lists of event types are parsed", "[show]") {
  CHECK(parse_types("--type", "scf,ps").value() == std::set{EventType::scf, EventType::ps});
  for (const char* text : {"", "scf,", "SCF", "scf;ps", "all"}) {
    INFO(text);
    CHECK_FALSE(parse_types("--type", text));
  }
}

TEST_CASE("control characters in names are escaped", "[show]") {
  using namespace std::string_literals;
  CHECK(printable("/plain é 日😀") == "/plain é 日😀");
  CHECK(printable("\x1b[31m\r\n\0"s) == "\\x1b[31m\\x0d\\x0a\\x00");
  CHECK(printable("\xff\xc2\x9b"
                  "31m") == "\\xff\\xc2\\x9b31m");
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    const Trace trace = trace::test::random_trace(seed, 50);
    for (const std::string& text : {text_of(show_text, trace), text_of(show_summary, trace)}) {
      for (const char c : text) {
        const auto byte = static_cast<unsigned char>(c);
        if ((byte < 0x20 && c != '\n') || byte == 0x7f)
          FAIL("seed " << seed << " lets byte " << int{byte} << " through");
      }
    }
    const std::string text = text_of(show_text, trace);
    CHECK(std::count(text.begin(), text.end(), '\n') >= 52);
  }
}

TEST_CASE("a summary with a profile lists what differs from it", "[show]") {
  Trace trace = sample();
  trace.meta.trigger = "crash: n1: process 41 was killed by SIGKILL";
  trace.meta.suppressed_calls = {{45, 11, 12}, {202, 110, 5}};
  trace.meta.addresses = {"n1=10.77.0.1"};
  profile::Profile profile;
  profile.name = "kv";
  profile.runs = 3;
  profile.seconds = 120;
  profile.failures = {{"*", "openat", "ENOENT", "/var/lib/x/snapshot.*", "", 360}};
  profile.state_changes = {{"n2", "rename", "", "/var/lib/x/epoch.tmp", "", 40}};
  profile.functions = {{"n2", "Raft::install_snapshot(Snapshot const&)", "kv", 2, 0.02, true}};
  profile.processes = {{"n2", "paused", "", -1, true, 1}};
  profile.silences = {{"10.77.0.2", "n1", 8000, 7000}};
  std::string text;
  show_summary(trace, {}, &profile, [&](std::string_view more) { text += more; });
  check_golden("show/profile.summary", text);
  std::string json;
  show_summary_json(trace, {}, &profile, [&](std::string_view more) { json += more; });
  const auto parsed = Json::parse(json);
  check_golden("show/profile.summary.json", parsed.dump(1) + "\n");
  CHECK(parsed["rows"].size() == summarise(trace, {}, &profile).rows.size());
  CHECK(parsed["rows"][0]["normal"] == "new");

  // A failure that occurs far more often in the trace than in the profile is not usual.
  const Trace same = sample();
  for (const auto& event : same.events) {
    if (event.type != EventType::scf || event.err != 2) continue;
    for (int i = 0; i < 400; ++i) trace.events.push_back(event);
  }
  trace::sort_by_time(trace);
  bool more = false;
  for (const auto& row : summarise(trace, {}, &profile).rows)
    more |= row.normal == Normal::more && row.example->err == 2;
  CHECK(more);
}

TEST_CASE("connections that differ in the client's port only are one kind in a summary", "[show]") {
  Trace trace;
  trace.meta.node = "n1";
  trace::Event e;
  e.type = EventType::scf;
  e.node = trace.strings.intern("n1");
  e.syscall = 45;  // recvfrom on x86-64
  e.err = 104;     // ECONNRESET
  for (const char* peer : {"10.0.0.3:53240", "10.0.0.3:53254", "10.0.0.3:8080", "10.0.0.4:53240", "10.0.0.3:53260"}) {
    e.peer = trace.strings.intern(peer);
    ++e.ts_ns;
    trace.events.push_back(e);
  }
  CHECK(summarise(trace, {}, nullptr).rows.size() == 3);
  const std::string text = text_of(show_summary, trace);
  CHECK(text.find(" ECONNRESET peer 10.0.0.3:*\n") != std::string::npos);
  CHECK(text.find(" ECONNRESET peer 10.0.0.3:8080\n") != std::string::npos);
  CHECK(text.find(" ECONNRESET peer 10.0.0.4:53240\n") != std::string::npos);
}

TEST_CASE("a summary without a profile does not hide infrequent kinds behind frequent ones", "[show]") {
  Trace trace;
  trace.meta.node = "n1";
  trace::Event e;
  e.type = EventType::scf;
  e.node = trace.strings.intern("n1");
  const auto add = [&](int syscall, int err, const std::string& path) {
    e.syscall = static_cast<decltype(e.syscall)>(syscall);
    e.err = static_cast<decltype(e.err)>(err);
    e.path = trace.strings.intern(path);
    ++e.ts_ns;
    trace.events.push_back(e);
  };
  for (int i = 0; i < 4017 * 3; ++i) add(257, 2, fmt::format("/cache/{}", i / 3));  // openat ENOENT
  for (int i = 0; i < 50; ++i) add(202, 110, "");                                   // futex ETIMEDOUT
  for (int i = 0; i < 2; ++i) add(1, 28, "/data/log");                              // write ENOSPC
  add(82, 13, "/data/epoch");                                                       // rename EACCES
  e.type = EventType::ps;
  e.state = trace::ProcessState::started;
  add(0, 0, "");
  e.state = trace::ProcessState::exited;
  e.exit_code = 0;
  add(0, 0, "");
  e.state = trace::ProcessState::crashed;
  e.signal = 6;
  add(0, 0, "");
  const Summary summary = summarise(trace, {}, nullptr);
  REQUIRE(summary.rows.size() == 4017 + 6);
  const auto row = [&](std::size_t i) { return *summary.rows[i].example; };
  CHECK(row(0).state == trace::ProcessState::crashed);
  CHECK(row(1).err == 28);
  CHECK(summary.rows[1].count == 2);
  CHECK(row(2).err == 13);
  CHECK(row(3).err == 110);
  CHECK(row(4).err == 2);
  CHECK(row(4017 + 3).err == 2);
  CHECK(row(4017 + 4).type == EventType::ps);
  // The failure is shown in the first lines of the text.
  const std::string text = text_of(show_summary, trace);
  CHECK(text.find("write ENOSPC /data/log") < text.find("openat ENOENT"));
}

TEST_CASE("the summary counts every event once", "[show]") {
  const Trace trace = trace::test::realistic_trace(7, 5000);
  const Summary summary = summarise(trace, {}, nullptr);
  std::uint64_t total = 0;
  for (const SummaryRow& row : summary.rows) total += row.count;
  CHECK(total == 5000);
  // The text lists the first thousand kinds and says how many more there are.
  REQUIRE(summary.rows.size() > 1000);
  const std::string text = text_of(show_summary, trace);
  CHECK(text.find(fmt::format("# and {} more kinds", summary.rows.size() - 1000)) != std::string::npos);
  CHECK(std::count(text.begin(), text.end(), '\n') < 1010);
}

TEST_CASE("the Perfetto export is valid JSON with valid spans", "[show]") {
  std::vector<Trace> traces = {sample(), Trace{}};
  for (std::uint64_t seed = 1; seed <= 10; ++seed) traces.push_back(trace::test::realistic_trace(seed, 300));
  for (const Trace& trace : traces) {
    const auto parsed = Json::parse(
        // Lone surrogates are replaced first, because Json accepts none, although browsers and Perfetto do.
        [&] {
          std::string text = text_of(show_perfetto, trace);
          for (std::size_t at = 0; (at = text.find("\\udc", at)) != std::string::npos;) text.replace(at, 4, "\\u00");
          return text;
        }(),
        nullptr, false);
    REQUIRE_FALSE(parsed.is_discarded());
    std::size_t events = 0;
    std::map<std::pair<int, int>, bool> named;
    for (const auto& e : parsed["traceEvents"]) {
      const std::string ph = e["ph"];
      if (ph == "M") {
        if (e["name"] == "thread_name") named[{e["pid"], e["tid"]}] = true;
        continue;
      }
      ++events;
      CHECK((ph == "i" || ph == "X"));
      CHECK(e["ts"].get<double>() >= 0);
      if (ph == "X") CHECK(e["dur"].get<double>() >= 0);
      CHECK(named[{e["pid"], e["tid"]}]);
    }
    CHECK(events == trace.events.size());
  }
}
