// Exceptions in logs: at which sites they are thrown, which candidates they become, and how the search finds the visit
// of the site (its first, second, ... execution) at which the exception triggers the bug.
#include <catch2/catch.hpp>

#include "diagnose_log_inputs.h"
#include "evidence/logs/throw_sites.h"

using namespace rose;
using namespace rose::diagnose;
using namespace rose::diagnose::test;
using schedule::FaultKind;

namespace {

config::Config java(std::vector<std::string> functions = {}, std::vector<std::string> sources = {}) {
  config::Config config = deployment();
  for (config::Node& node : config.nodes) {
    node.command = {"java", "-jar", "x.jar"};
    node.functions = functions;
    node.sources = sources;
  }
  return config;
}

std::vector<std::string> sites(const std::string& text, const config::Config& config = java()) {
  const std::vector<logs::StackTrace> traces = logs::read_traces(text);
  REQUIRE(traces.size() == 1);
  std::vector<std::string> found;
  for (const ThrowSite& site : throw_sites(traces[0], config.nodes[0]))
    found.push_back(
        fmt::format("{} {}{}", site.throws, site.function, site.line ? fmt::format(":{}", *site.line) : ""));
  return found;
}

using Found = std::vector<std::string>;

std::string line(int second, const std::string& text) {
  return fmt::format("2026-01-02 03:04:{:02} WARN {}\n", second, text);
}

Candidate exception_of(LogInputs& given) {
  for (const Candidate& c : given.plan().candidates)
    if (c.kind == FaultKind::exception) return c;
  return {};
}

const std::string kBadSum =
    "org.x.ChecksumException: block 8 does not match\n"
    "\tat org.x.Store.check(Store.java:40)\n"
    "\tat org.x.Store.copy(Store.java:44)\n"
    "\tat org.x.Main.run(Main.java:9)\n"
    "\tat java.base/java.lang.Thread.run(Thread.java:840)\n";

}  // namespace

TEST_CASE("an exception that a method throws itself is thrown at its entry or its call site") {
  CHECK(sites(kBadSum) ==
        Found{"org.x.ChecksumException org.x.Store.check", "org.x.ChecksumException org.x.Store.copy:44"});
}

TEST_CASE("an exception from the JDK is thrown at the program's call into the JDK") {
  CHECK(sites("java.io.EOFException\n\tat java.base/java.io.DataInputStream.readInt(DataInputStream.java:386)\n"
              "\tat org.x.Wire.read(Wire.java:96)\n\tat org.x.Peer.run(Peer.java:12)\n") ==
        Found{"java.io.EOFException org.x.Wire.read:96", "java.io.EOFException org.x.Wire.read"});
  // The frame contains no line number.
  CHECK(sites("java.io.EOFException\n\tat java.base/java.io.DataInputStream.readInt(DataInputStream.java:386)\n\tat "
              "org.x.Wire.read(Unknown Source)\n") == Found{"java.io.EOFException org.x.Wire.read"});
}

TEST_CASE("methods that the configuration names, by name or file, come first") {
  const std::string text =
      "java.io.EOFException\n\tat java.base/java.io.DataInputStream.readInt(DataInputStream.java:386)\n"
      "\tat org.wire.Wire.read(Wire.java:96)\n\tat org.x.Peer.read(Peer.java:12)\n\tat org.x.Peer.run(Peer.java:20)\n";
  const Found named{"java.io.EOFException org.x.Peer.read:12", "java.io.EOFException org.x.Peer.read"};
  CHECK(sites(text, java({"org.x.*"})) == named);
  CHECK(sites(text, java({}, {"Peer.java"})) == named);
  CHECK(sites(text, java({"org.y.*"}))[0] == "java.io.EOFException org.wire.Wire.read:96");
}

TEST_CASE("a cause is thrown where it was caught; if the cause has no frames, its wrapper is thrown") {
  const std::string wrapped =
      "org.x.LoadException: cannot load\n\tat org.x.Store.load(Store.java:16)\n\tat org.x.Main.run(Main.java:9)\n"
      "Caused by: java.util.concurrent.TimeoutException\n\tat org.lib.Future.get(Future.java:7)\n\tat "
      "org.x.Store.load(Store.java:14)\n\t... 1 more\n";
  CHECK(sites(wrapped, java({"org.x.*"})) == Found{"java.util.concurrent.TimeoutException org.x.Store.load:14",
                                                   "java.util.concurrent.TimeoutException org.x.Store.load",
                                                   "org.x.LoadException org.x.Store.load",
                                                   "org.x.LoadException org.x.Main.run:9"});
  // Main.run is the only method in the configuration. Still, the exception is not thrown there, because Main.run
  // received only the wrapper and not its cause.
  CHECK(sites(wrapped, java({"org.x.Main.*"}))[0] == "java.util.concurrent.TimeoutException org.lib.Future.get");
  CHECK(
      sites("org.x.LoadException: cannot load\n\tat org.x.Store.load(Store.java:16)\n\tat org.x.Main.run(Main.java:9)\n"
            "Caused by: java.util.concurrent.TimeoutException\n\t... 2 more\n")[0] ==
      "org.x.LoadException org.x.Store.load");
}

TEST_CASE("JVM-generated methods, a JDK-only stack and a non-JVM node give no throw sites") {
  CHECK(sites("java.io.IOException\n\tat org.x.Y$$Lambda$14/0x0000000840066440.run(Unknown Source)\n\tat "
              "java.base/java.lang.Thread.run(Thread.java:840)\n")
            .empty());
  config::Config native = deployment();
  CHECK(sites(kBadSum, native).empty());
}

TEST_CASE("an exception found only in the failure's log is a candidate, with message and frame as its reason") {
  const std::string usual = line(1, "copied page 1") + line(9, "copied page 2");
  LogInputs given(java(),
                  line(1, "copied page 1") + line(5, "page 2: a block is damaged") + kBadSum + line(9, "copied page 2"),
                  usual);
  const Candidate c = exception_of(given);
  REQUIRE(c.kind == FaultKind::exception);
  CHECK(c.rank == 1);
  CHECK(c.node == "n2");
  CHECK(c.fault.throws == "org.x.ChecksumException");
  CHECK(c.fault.message == "block 8 does not match");
  CHECK(c.fault.function == "org.x.Store.check");
  CHECK(!c.fault.at_line);
  REQUIRE(!c.alternatives.empty());
  CHECK(c.alternatives[0].at_line == 44u);
  CHECK(c.why ==
        "n2.log:2 of n2: 'page 2: a block is damaged / org.x.ChecksumException: block 8 does not match', with "
        "org.x.ChecksumException in org.x.Store.check(Store.java:40)");
  // The schedules of the plan must stay the same when they are written and read again.
  for (const schedule::Schedule& one : given.plan().schedules) {
    const auto read = schedule::parse_schedule(schedule::to_toml(one), "x.toml");
    REQUIRE(read);
    CHECK(schedule::fingerprint(*read) == schedule::fingerprint(one));
  }
  // An exception that also occurs in runs without faults is not a candidate.
  const std::string noise = line(5, "page 2: a block is damaged") + kBadSum;
  CHECK(LogInputs(java(), usual + noise, usual + noise).inputs.exceptions.empty());
}

TEST_CASE("a remote exception is thrown at the peer; locally the caller receives the wrapped one") {
  const std::string sent =
      "org.apache.hadoop.ipc.RemoteException(org.x.LeaseException): no lease on /a\n"
      "\tat org.x.Names.check(Names.java:16)\n"
      "\tat org.apache.hadoop.ipc.Server$Handler.run(Server.java:1434)\n"
      "\n"
      "\tat org.apache.hadoop.ipc.Client.call(Client.java:1107)\n"
      "\tat org.x.Writer.close(Writer.java:70)\n";
  const config::Config config = java({"org.x.*"});
  CHECK(sites(sent, config) == Found{"org.apache.hadoop.ipc.RemoteException org.x.Writer.close:70",
                                     "org.apache.hadoop.ipc.RemoteException org.x.Writer.close"});
  const std::vector<ThrowSite> there = throw_sites(logs::read_traces(sent)[0], config.nodes[0], true);
  REQUIRE(!there.empty());
  CHECK(there[0].throws == "org.x.LeaseException");
  CHECK(there[0].function == "org.x.Names.check");

  LogInputs given(config, line(1, "copied page 1") + line(5, "cannot close /a") + sent + line(9, "copied page 2"),
                  line(1, "copied page 1") + line(9, "copied page 2"));
  std::set<std::string> thrown;
  for (const Candidate& c : given.plan().candidates)
    if (c.kind == FaultKind::exception)
      thrown.insert(fmt::format("{} {} {}", c.node, c.fault.throws, c.fault.function));
  CHECK(thrown == std::set<std::string>{"n1 org.x.LeaseException org.x.Names.check",
                                        "n2 org.apache.hadoop.ipc.RemoteException org.x.Writer.close",
                                        "n3 org.x.LeaseException org.x.Names.check"});
}

TEST_CASE("an exception that a failed call brings about ranks below that call") {
  LogInputs given(java(),
                  line(1, "copied page 1") + line(5, "cannot save page 2") +
                      "java.io.IOException: No space left on device\n\tat "
                      "java.base/sun.nio.ch.FileDispatcherImpl.write0(Native Method)\n"
                      "\tat org.x.Store.save(Store.java:70)\n",
                  "");
  const Plan plan = given.plan();
  const auto place = [&](auto&& is) {
    return std::find_if(plan.candidates.begin(), plan.candidates.end(), is) - plan.candidates.begin();
  };
  // The message contains no file, and there is no run that shows which files exist. So only the runs of the diagnosis
  // can show the failing calls, but the exception is a candidate already.
  CHECK(place([](const Candidate& c) { return c.kind == FaultKind::exception; }) <
        static_cast<std::ptrdiff_t>(plan.candidates.size()));
  LogInputs with_path(java(),
                      line(5, "cannot open the page") +
                          "java.io.FileNotFoundException: /srv/x/page.2 (Too many open files)\n\tat "
                          "java.base/java.io.FileInputStream.open0(Native Method)\n"
                          "\tat org.x.Store.open(Store.java:70)\n",
                      "");
  const Plan both = with_path.plan();
  REQUIRE(both.candidates.size() >= 2);
  CHECK(both.candidates[0].kind == FaultKind::syscall);
  CHECK(both.candidates[0].error == "EMFILE");
  const Candidate exception = exception_of(with_path);
  CHECK(exception.rank > 1);
  CHECK(exception.weight < both.candidates[0].weight / 4);
}

TEST_CASE("logs with hundreds of thousands of stack traces give at most 40 exception candidates") {
  std::string text;
  for (int i = 0; i < 30'000; ++i)
    text += line(i % 60,
                 fmt::format("{0}{1} {1}{0}", static_cast<char>('a' + i % 26), static_cast<char>('a' + i / 26 % 26))) +
            fmt::format("org.x.E{}Exception: {}\n\tat org.x.C{}.m(C.java:{})\n\tat org.x.D.n(D.java:{})\n", i % 3000, i,
                        i % 700, 1 + i % 900, 1 + i % 800);
  LogInputs given(java(), text, "");
  CHECK(given.inputs.exceptions.size() == logs::kMostThrown);
  const Plan plan = given.plan();
  std::size_t exceptions = 0;
  for (const Candidate& c : plan.candidates) exceptions += c.kind == FaultKind::exception ? 1 : 0;
  CHECK(exceptions <= 40);
}

TEST_CASE("the search finds the entry of the method at which the exception triggers the bug") {
  LogInputs given(java(), line(5, "page 2: a block is damaged") + kBadSum, line(1, "copied page 1"));
  given.config.diagnose.confirm_runs = 2;
  constexpr int kVisits = 30, kRight = 17;
  Cluster cluster([&](const schedule::Schedule& schedule, int) {
    rose::diagnose::test::Answer answer;
    answer.oracle = schedule::OracleAnswer::miss;
    for (const schedule::Fault& fault : schedule.faults) {
      const bool there = fault.kind == FaultKind::exception && fault.function == "org.x.Store.check";
      const std::int64_t last = fault.times < 0 ? kVisits : fault.count + fault.times - 1;
      if (!there || fault.count > kVisits) answer.unfired.push_back(fault.id);
      // The bug occurs only if the exception is thrown at the visit `kRight`.
      if (there && fault.when.empty() && fault.times == 1 && fault.count <= kRight && kRight <= last)
        answer.oracle = schedule::OracleAnswer::hit;
    }
    return answer;
  });
  const Result<Diagnosis> found = rose::diagnose::diagnose(given.inputs, cluster, {});
  REQUIRE(found);
  CHECK(found->verdict == schedule::Verdict::reproduced);
  REQUIRE(found->found);
  REQUIRE(found->found->faults.size() == 1);
  CHECK(found->found->faults[0].count == kRight);
}

TEST_CASE("after the first entry, the entry that the fault-free run had reached by that time is tried", "[logs]") {
  const std::string usual = line(1, "opening") + line(3, "copying") + line(9, "done");
  const std::string failed = line(11, "opening") + line(13, "copying") + line(15, "cannot copy\n" + kBadSum);
  const LogInputs without(java(), failed, usual);
  REQUIRE(without.inputs.exceptions.size() == 1);
  CHECK(without.inputs.exceptions[0].visits == 0);
  const std::string function = without.inputs.exceptions[0].sites[0].function;
  Dump dump;
  for (const double t : {1.5, 2.5, 3.5, 4.5, 5.5, 7.5})
    dump.event(t, trace::EventType::af, "n2").function = dump.intern(function);
  dump.event(2.7, trace::EventType::af, "n1").function = dump.intern(function);
  dump.ends(10);
  trace::Trace control = dump.take();
  const std::int64_t shift = without.evidence.normal.nodes[0].messages[0].ts_ns - at(1);
  for (trace::Event& event : control.events) event.ts_ns += shift;
  for (std::int64_t* one : {&control.meta.workload_ts, &control.meta.begin_ns, &control.meta.end_ns})
    if (*one != 0) *one += shift;
  LogInputs given(java(), failed, usual, &control);
  REQUIRE(given.inputs.exceptions.size() == 1);
  // in the first 5 s of the run without faults, the place was visited four times
  CHECK(given.inputs.exceptions[0].visits == 4);
  const Candidate c = exception_of(given);
  CHECK(c.fault.count == 1);
  REQUIRE(!c.alternatives.empty());
  CHECK(c.alternatives[0].count == 4);
  CHECK(c.alternatives[0].function == c.fault.function);
}
