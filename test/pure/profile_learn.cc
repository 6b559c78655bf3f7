#include <catch2/catch.hpp>

#include <sys/stat.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <random>

#include "base/file.h"
#include "folder.h"
#include "kernel/syscalls.h"
#include "profile/profile.h"

using namespace rose;
using namespace rose::profile;
using trace::Event;
using trace::EventType;
using trace::ProcessState;
using trace::Trace;

namespace {

std::int16_t number(const char* syscall) {
  const auto found = kernel::syscall_number(syscall);
  REQUIRE(found);
  return static_cast<std::int16_t>(*found);
}

struct Maker {
  Trace trace;
  Event& call(EventType type, const char* node, const char* syscall, const char* path, const char* peer = nullptr) {
    Event event;
    event.type = type;
    event.node = trace.strings.intern(node);
    event.syscall = number(syscall);
    if (path != nullptr) event.path = trace.strings.intern(path);
    if (peer != nullptr) event.peer = trace.strings.intern(peer);
    trace.events.push_back(event);
    return trace.events.back();
  }
  Event& scf(const char* node, const char* syscall, const char* error, const char* path, const char* peer = nullptr) {
    Event& event = call(EventType::scf, node, syscall, path, peer);
    event.err = static_cast<std::int16_t>(*kernel::errno_number(error));
    return event;
  }
  Event& ps(const char* node, ProcessState state, int signal, int exit_code, std::uint8_t flags = trace::kMain) {
    Event event;
    event.type = EventType::ps;
    event.node = trace.strings.intern(node);
    event.state = state;
    event.signal = static_cast<std::uint8_t>(signal);
    event.exit_code = exit_code;
    event.flags = flags;
    trace.events.push_back(event);
    return trace.events.back();
  }
  Event& nd(const char* src, const char* dst, int ms) {
    Event event;
    event.type = EventType::nd;
    event.src = trace.strings.intern(src);
    event.dst = trace.strings.intern(dst);
    event.duration_ms = ms;
    trace.events.push_back(event);
    return trace.events.back();
  }
};

RunCounts seconds(double value) {
  RunCounts counts;
  counts.seconds = value;
  return counts;
}

}  // namespace

TEST_CASE("several runs are learnt and summed") {
  Profile profile;
  Maker first;
  first.trace.meta.addresses = {"n1=10.77.0.1", "n2=10.77.0.2"};
  first.scf("n1", "openat", "ENOENT", "/tmp/r-a1/n1/snapshot.1");
  first.scf("n1", "openat", "ENOENT", "/tmp/r-a1/n1/snapshot.2").count = 4;
  first.scf("n1", "openat", "EACCES", "/tmp/r-a1/n1/snapshot.1");
  first.scf("n2", "connect", "ECONNREFUSED", nullptr, "10.77.0.1:7000");
  first.scf("n2", "openat", "EIO", "/tmp/r-a1/n2/x").flags = trace::kInjected;
  first.call(EventType::sys, "n1", "rename", "/tmp/r-a1/n1/epoch.tmp");
  first.ps("n1", ProcessState::crashed, 9, -1);
  first.ps("n1", ProcessState::crashed, 9, -1, trace::kMain | trace::kPlanned);
  first.ps("n2", ProcessState::started, 0, -1);
  first.ps("n2", ProcessState::exited, 0, 0, 0);
  first.nd("10.77.0.1", "10.77.0.2", 700);
  first.nd("10.77.0.9", "10.77.0.2", 50);
  RunCounts counts;
  counts.seconds = 10;
  counts.syscalls["n1"]["read"] = 5;
  counts.functions.push_back({"n1", "Raft::append(int)", "/kv", 100, 0, true});
  counts.functions.push_back({"n1", "Raft::snapshot()", "/kv", 0, 0, true});
  learn(profile, first.trace, counts);

  Maker second;
  second.trace.meta.addresses = {"n1=10.78.0.1", "n2=10.78.0.2"};
  second.scf("n1", "openat", "ENOENT", "/tmp/r-b7/n1/snapshot.9");
  second.ps("n1", ProcessState::crashed, 9, -1);
  second.nd("10.78.0.1", "10.78.0.2", 900).flags = trace::kOpen;
  second.nd("10.78.0.1", "10.78.0.2", 100);
  Event af;
  af.type = EventType::af;
  af.node = second.trace.strings.intern("n1");
  af.function = second.trace.strings.intern("Raft::elect()");
  second.trace.events.push_back(af);
  af.function = second.trace.strings.intern("Raft::append(int)");  // the kernel has already counted these entries
  second.trace.events.push_back(af);
  counts.syscalls["n1"]["read"] = 7;
  counts.functions[0].count = 20;
  learn(profile, second.trace, counts);

  CHECK(profile.runs == 2);
  CHECK(profile.seconds == 20);
  CHECK(profile.syscalls["n1"]["read"] == 12);

  REQUIRE(profile.failures.size() == 3);
  const auto failure = [&](const char* syscall, const char* error) -> const CallKind& {
    for (const CallKind& kind : profile.failures) {
      if (kind.syscall == syscall && kind.error == error) return kind;
    }
    FAIL("no such failure");
    return profile.failures.front();
  };
  CHECK(failure("openat", "ENOENT").count == 6);
  CHECK(failure("openat", "ENOENT").path == "/tmp/r-*/n*/snapshot.*");
  CHECK(failure("openat", "EACCES").count == 1);
  CHECK(failure("connect", "ECONNREFUSED").peer == "10.77.0.1:7000");
  REQUIRE(profile.state_changes.size() == 1);
  CHECK(profile.state_changes[0].error.empty());

  REQUIRE(profile.processes.size() == 2);
  CHECK(profile.processes[0].signal == "SIGKILL");
  CHECK(profile.processes[0].count == 2);  // the end that rose planned is not learnt
  CHECK(profile.processes[0].main);
  CHECK(profile.processes[1].state == "exited");
  CHECK(profile.processes[1].exit_code == 0);
  CHECK_FALSE(profile.processes[1].main);

  REQUIRE(profile.silences.size() == 2);
  CHECK(profile.silences[0].src == "10.77.0.9");
  CHECK(profile.silences[1].src == "n1");
  CHECK(profile.silences[1].dst == "n2");
  // the longer silence had not ended when its run ended, so its length does not count
  CHECK(profile.silences[1].longest_ms == 700);
  CHECK(profile.silences[1].open);  // because of the silence that had not ended
  CHECK_FALSE(profile.silences[0].open);

  REQUIRE(profile.functions.size() == 3);
  CHECK(profile.functions[0].function == "Raft::append(int)");
  CHECK(profile.functions[0].count == 120);
  CHECK(profile.functions[0].per_second == 6);
  CHECK_FALSE(profile.functions[0].infrequent);
  CHECK(profile.functions[1].function == "Raft::elect()");
  CHECK(profile.functions[1].count == 1);
  CHECK(profile.functions[2].function == "Raft::snapshot()");
  CHECK(profile.functions[2].count == 0);
  CHECK(profile.functions[2].infrequent);
}

TEST_CASE("the order of events does not change the profile") {
  Maker maker;
  for (const char* error : {"EIO", "ENOENT", "EACCES", "EPERM"}) {
    for (const char* node : {"n2", "n1"}) maker.scf(node, "openat", error, "/var/lib/kv/meta");
  }
  Profile forward;
  learn(forward, maker.trace, seconds(1));
  std::reverse(maker.trace.events.begin(), maker.trace.events.end());
  Profile backward;
  learn(backward, maker.trace, seconds(1));
  CHECK(to_json(forward) == to_json(backward));
}

TEST_CASE("without a given duration, the window gives the duration of the run") {
  Maker maker;
  maker.trace.meta.begin_ns = 1'000'000'000;
  maker.trace.meta.end_ns = 4'000'000'000;
  Profile profile;
  learn(profile, maker.trace, {});
  CHECK(profile.seconds == 3);
}

TEST_CASE("benign failures are distinguished from unusual ones") {
  Profile profile;
  Maker normal;
  normal.scf("n1", "openat", "ENOENT", "/tmp/rose-1/n1/data/snapshot.1").count = 3;
  normal.scf("n2", "openat", "ENOENT", "/tmp/rose-1/n2/data/snapshot.1");
  normal.scf("n1", "read", "EAGAIN", nullptr);
  normal.scf("n1", "connect", "ECONNREFUSED", nullptr, "10.77.0.2:7000");
  normal.scf("n1", "recvfrom", "ECONNRESET", nullptr, "10.77.0.9:45000");
  normal.scf("n1", "openat", "ENOENT", "/wal/1/2");
  normal.scf("n1", "connect", "ENOENT", nullptr, "unix:/tmp/rose-1/n1/run/kv.sock");
  normal.scf("n1", "connect", "EACCES", nullptr, "unix:@kv");
  normal.call(EventType::sys, "n1", "rename", "/tmp/rose-1/n1/epoch.tmp");
  learn(profile, normal.trace, seconds(10));

  struct Row {
    const char* node;
    const char* syscall;
    const char* error;  // nullptr if the event is of type SYS
    const char* path;
    const char* peer;
    bool benign;
  };
  const Row rows[] = {
      {"n1", "openat", "ENOENT", "/tmp/rose-9/n1/data/snapshot.7", nullptr, true},
      // a failure that the profile shows for one node is benign on every node
      {"n3", "openat", "ENOENT", "/tmp/rose-9/n3/data/snapshot.7", nullptr, true},
      {"prod", "openat", "ENOENT", "/srv/kv/data/snapshot.7", nullptr, true},  // the end of the path is the same
      {"n1", "openat", "EIO", "/tmp/rose-9/n1/data/snapshot.7", nullptr, false},
      {"n1", "read", "ENOENT", "/tmp/rose-9/n1/data/snapshot.7", nullptr, false},
      {"n1", "openat", "ENOENT", "/tmp/rose-9/n1/data/log.7", nullptr, false},
      {"n1", "openat", "ENOENT", "/srv/other/snapshot.7", nullptr, false},
      {"n1", "openat", "ENOENT", nullptr, nullptr, false},
      // the end of this path consists only of numbers, so it is not compared
      {"n1", "openat", "ENOENT", "/other/1/2", nullptr, false},
      {"n1", "read", "EAGAIN", nullptr, nullptr, true},
      {"n1", "read", "EAGAIN", "/tmp/x", nullptr, false},
      {"n1", "connect", "ECONNREFUSED", nullptr, "192.168.0.4:7000", true},
      {"n1", "connect", "ECONNREFUSED", nullptr, "[fd00::3]:7000", true},
      {"n1", "connect", "ECONNREFUSED", nullptr, "10.77.0.2:7001", false},
      {"n1", "connect", "ECONNREFUSED", nullptr, "10.77.0.2:40000", false},
      {"n1", "connect", "ECONNREFUSED", nullptr, "unix:/run/x", false},
      {"n1", "connect", "ENOENT", nullptr, "unix:/tmp/rose-7APPbp/n1/run/kv.sock", true},
      {"n1", "connect", "ENOENT", nullptr, "unix:/var/run/kv.sock", true},  // a socket's path may also match by its end
      {"n1", "connect", "ENOENT", nullptr, "unix:/var/run/other.sock", false},
      {"n1", "connect", "ENOENT", nullptr, "10.77.0.2:7000", false},
      {"n1", "connect", "EACCES", nullptr, "unix:@kv", true},
      {"n1", "connect", "EACCES", nullptr, "unix:@other", false},
      {"n1", "recvfrom", "ECONNRESET", nullptr, "10.1.1.1:60000", true},
      {"n1", "rename", nullptr, "/srv/n4/epoch.tmp", nullptr, true},
      {"n1", "rename", nullptr, "/srv/n4/other.tmp", nullptr, false},
      {"n1", "unlink", nullptr, "/tmp/rose-1/n1/epoch.tmp", nullptr, false},
      {"n1", "rename", "EIO", "/tmp/rose-1/n1/epoch.tmp", nullptr, false},
  };
  const BenignIndex index(profile);
  for (const Row& row : rows) {
    Maker seen;
    const Event event = row.error != nullptr ? seen.scf(row.node, row.syscall, row.error, row.path, row.peer)
                                             : seen.call(EventType::sys, row.node, row.syscall, row.path, row.peer);
    CAPTURE(row.node, row.syscall, row.error == nullptr ? "-" : row.error, row.path == nullptr ? "-" : row.path,
            row.peer == nullptr ? "-" : row.peer);
    CHECK((index.find(seen.trace, event) != nullptr) == row.benign);
  }
  // If the profile contains an entry of the event's own node, that entry is used.
  Maker seen;
  const Event event = seen.scf("n2", "openat", "ENOENT", "/tmp/rose-9/n2/data/snapshot.7");
  REQUIRE(index.find(seen.trace, event) != nullptr);
  CHECK(index.find(seen.trace, event)->node == "n2");
  // Events of other types are not searched for here.
  Maker crash;
  CHECK(index.find(crash.trace, crash.ps("n1", ProcessState::crashed, 9, -1)) == nullptr);
}

TEST_CASE("a node's infrequent functions are its own and those of all nodes, JVM methods separately") {
  Profile profile;
  const auto add = [&](const char* node, const char* function, const char* binary, bool infrequent) {
    FunctionRate rate;
    rate.node = node, rate.function = function, rate.binary = binary, rate.infrequent = infrequent;
    profile.functions.push_back(rate);
  };
  add("n1", "elect", "/srv/kv", true);
  add("n2", "compact", "/srv/kv", true);
  add("*", "panic", "/srv/lib.so", true);
  add("n1", "read", "/srv/kv", false);
  add("n1", "Log.cut", kJvm, true);
  add("n2", "Log.add", kJvm, false);
  using Pairs = std::set<std::pair<std::string, std::string>>;
  CHECK(rare_functions(profile, "n1") == Pairs{{"elect", "/srv/kv"}, {"panic", "/srv/lib.so"}});
  CHECK(rare_functions(profile, "n3") == Pairs{{"panic", "/srv/lib.so"}});
  CHECK(rare_functions(profile, "") == Pairs{{"elect", "/srv/kv"}, {"compact", "/srv/kv"}, {"panic", "/srv/lib.so"}});
  CHECK(rare_methods(profile, "n1") == std::set<std::string>{"Log.cut"});
  CHECK(rare_methods(profile, "n2").empty());
  CHECK(knows_methods(profile, "n2"));
  CHECK_FALSE(knows_methods(profile, "n3"));
}

TEST_CASE("many events are learnt in linear time") {
  Maker maker;
  std::mt19937 random(1);
  Event events[2] = {maker.scf("n1", "openat", "ENOENT", nullptr), maker.scf("n1", "unlink", "ENOENT", nullptr)};
  maker.trace.events.clear();
  for (int i = 0; i < 60000; ++i) {
    Event& event = events[i % 2];
    event.path = maker.trace.strings.intern("/tmp/run/n1/dir" + std::string(1, static_cast<char>('a' + random() % 26)) +
                                            "/file." + std::to_string(random() % 5000));
    maker.trace.events.push_back(event);
  }
  Profile profile;
  learn(profile, maker.trace, seconds(1));
  const BenignIndex index(profile);
  std::size_t found = 0;
  for (const Event& event : maker.trace.events) found += index.find(maker.trace, event) != nullptr ? 1 : 0;
  CHECK(found == maker.trace.events.size());
  CHECK(profile.failures.size() == 52);
  // An algorithm that compares each pair would need minutes instead of 0.1 s, so that ctest's time limit would end it.
}

TEST_CASE("a name that is searched for along a path is one kind of failure") {
  Maker maker;
  const auto search = [&](const char* error, int folders, int names) {
    for (int folder = 0; folder < folders; ++folder)
      for (int name = 0; name < names; ++name) {
        const auto letters = [](int n) {
          return std::string(1, static_cast<char>('a' + n / 26)) + static_cast<char>('a' + n % 26);
        };
        maker.scf("n1", "openat", error,
                  ("/lib/" + letters(folder) + "/ebin/" + letters(name) + error + ".beam").c_str());
      }
  };
  search("ENOENT", 60, 100);
  search("EACCES", 30, 2);
  for (int i = 0; i < 19; ++i)
    maker.scf("n1", "openat", "ENOENT", (std::string("/bin/d") + static_cast<char>('a' + i) + "/few").c_str());
  Profile profile;
  learn(profile, maker.trace, seconds(1));
  CHECK(profile.failures.size() == 100 + 60 + 19);
  const auto count = [&](const std::string& path) {
    const auto found = std::find_if(profile.failures.begin(), profile.failures.end(),
                                    [&](const CallKind& kind) { return kind.path == path; });
    return found == profile.failures.end() ? 0 : found->count;
  };
  CHECK(count("*/aaENOENT.beam") == 60);
  CHECK(count("*/dvENOENT.beam") == 60);
  learn(profile, maker.trace, seconds(1));
  CHECK(profile.failures.size() == 100 + 60 + 19);
  CHECK(count("*/aaENOENT.beam") == 120);

  const BenignIndex index(profile);
  const auto known = [&](const char* error, const char* path) {
    return index.find(maker.trace, maker.scf("n1", "openat", error, path)) != nullptr;
  };
  CHECK(known("ENOENT", "/another/place/aaENOENT.beam"));
  CHECK_FALSE(known("EIO", "/another/place/aaENOENT.beam"));
  CHECK_FALSE(known("ENOENT", "/another/place/other.beam"));
  CHECK_FALSE(known("ENOENT", "/another/place/few"));
  CHECK_FALSE(known("EACCES", "/another/place/aaEACCES.beam"));
}

TEST_CASE("names with numbers, and names that are found soon, belong to the same search path") {
  Maker maker;
  const auto folder = [](int n) {
    return std::string("/lib/") + static_cast<char>('a' + n / 26) + static_cast<char>('a' + n % 26) + "/ebin/";
  };
  const auto missing = [&](const std::string& place, const std::string& name) {
    maker.scf("n1", "openat", "ENOENT", (place + name).c_str());
  };
  for (int i = 0; i < 30; ++i) {
    for (int name = 0; name < 40; ++name)
      missing(folder(i), std::string("m") + static_cast<char>('a' + name / 26) + static_cast<char>('a' + name % 26));
    missing(folder(i), "v3_core.beam");
    // this folder does not belong to the search path
    missing("/topics/" + folder(i).substr(5), "7.index");
    if (i < 5) missing(folder(i), "soon.beam");
    if (i < 3) missing(folder(i), "first.beam");
  }
  missing("/home/node/", "v3_core.beam.old");
  Profile profile;
  learn(profile, maker.trace, seconds(1));
  const auto count = [&](const std::string& path) {
    const auto found = std::find_if(profile.failures.begin(), profile.failures.end(),
                                    [&](const CallKind& kind) { return kind.path == path; });
    return found == profile.failures.end() ? 0 : found->count;
  };
  CHECK(count("*/v*_core.beam") == 30);
  CHECK(count("*/soon.beam") == 5);
  CHECK(count("*/first.beam") == 0);
  CHECK(count("*/*.index") == 0);
  const std::size_t kinds = 40 + 1 + 1 + 3 + 30 + 1;
  CHECK(profile.failures.size() == kinds);
  learn(profile, maker.trace, seconds(1));
  CHECK(profile.failures.size() == kinds);
  CHECK(count("*/v*_core.beam") == 60);

  const BenignIndex index(profile);
  const auto known = [&](const char* path) {
    return index.find(maker.trace, maker.scf("n1", "openat", "ENOENT", path)) != nullptr;
  };
  CHECK(known("/another/place/v4_core.beam"));
  CHECK(known("/another/place/soon.beam"));
  CHECK_FALSE(known("/another/place/first.beam"));
  CHECK_FALSE(known("/another/place/8.index"));
}

namespace {
Profile sample() {
  Profile profile;
  profile.name = "kv \"quoted\" \xc3\xa9";
  profile.runs = 3;
  profile.seconds = 12.5;
  profile.infrequent_below = 1.25;
  profile.failures.push_back({"n1", "openat", "ENOENT", "/a/*", "", 7});
  profile.failures.push_back({"*", "connect", "ECONNREFUSED", "", "10.0.0.1:7000", UINT64_MAX});
  profile.state_changes.push_back({"n1", "rename", "", "/a/b", "", 1});
  profile.syscalls["n1"]["read"] = 5;
  profile.syscalls["n2"]["fsync"] = 0;
  profile.functions.push_back({"n1", "Raft::append(Entry const&)", "/kv", 9, 0.72, true});
  profile.processes.push_back({"n1", "crashed", "SIGKILL", -1, true, 2});
  profile.processes.push_back({"n1", "exited", "", 0, false, 2});
  profile.silences.push_back({"n1", "n2", 1234, 2888});
  profile.silences.push_back({"n1", "n2", 30, 0});
  profile.silences.push_back({"n1", "n2", 70, 2888, false, 90, {true}});
  return profile;
}
}  // namespace

TEST_CASE("a profile is equal after being written and read back") {
  const Profile profile = sample();
  const std::string text = to_json(profile);
  const auto back = parse_profile(text, "profile.json");
  REQUIRE(back);
  CHECK(to_json(*back) == text);
  CHECK(back->failures[1].count == UINT64_MAX);
  CHECK(back->processes[0].exit_code == -1);
  CHECK(back->processes[1].exit_code == 0);
  CHECK(back->syscalls.at("n2").at("fsync") == 0);
  CHECK(back->name == profile.name);

  const rose::test::Folder folder;
  const std::filesystem::path path = folder / "profile.json";
  const auto written = write_profile(profile, path);
  const auto read = read_profile(path);
  struct stat status = {};
  const int stated = ::stat(path.c_str(), &status);
  const auto missing = read_profile(folder / "missing.json");
  const auto nowhere = write_profile(profile, folder / "no/profile.json");
  CHECK(written);
  REQUIRE(read);
  CHECK(to_json(*read) == text);
  CHECK(stated == 0);
  CHECK((status.st_mode & 0777) == 0600);
  REQUIRE_FALSE(missing);
  CHECK(missing.error().kind == ErrorKind::input);
  CHECK_FALSE(nowhere);
}

TEST_CASE("the workload's exchanged data is the minimum of all runs, or unknown") {
  Profile profile;
  CHECK_FALSE(parse_profile(to_json(profile), "p")->workload);
  learn_workload(profile, false, 300, 40);
  learn_workload(profile, true, 200, 50);
  const auto read = parse_profile(to_json(profile), "p");
  REQUIRE(read);
  REQUIRE(read->workload);
  CHECK(read->workload->runs == 2);
  CHECK(read->workload->failed == 1);
  CHECK(read->workload->sent == 200U);
  CHECK(read->workload->received == 40U);
  CHECK(read->workload->exchanges());
  learn_workload(profile, false, {}, {});
  const auto unknown = parse_profile(to_json(profile), "p");
  REQUIRE(unknown);
  CHECK_FALSE(unknown->workload->sent);
  CHECK_FALSE(unknown->workload->exchanges());
}

TEST_CASE("a profile's functions are read without its failures and state changes") {
  Profile profile;
  profile.failures.push_back({"n1", "openat", "ENOENT", "/a", "", 1});
  profile.state_changes.push_back({"n1", "rename", "", "/b", "", 1});
  profile.syscalls["n1"]["openat"] = 3;
  profile.functions.push_back({"n1", "save", "/bin/db", 1, 0.1, true});
  const auto read = parse_profile(to_json(profile), "p", Part::functions);
  REQUIRE(read);
  CHECK(read->failures.empty());
  CHECK(read->state_changes.empty());
  CHECK(read->syscalls == profile.syscalls);
  REQUIRE(read->functions.size() == 1);
  CHECK(read->functions[0].function == "save");
  CHECK_FALSE(parse_profile(R"({"version": 1, "name": "p", "runs": 1, "seconds": 1, "failures": [, "functions": []})",
                            "p", Part::functions));
  CHECK_FALSE(
      parse_profile(R"({"version": 1, "name": "p", "runs": 1, "seconds": 1, "failing": []})", "p", Part::functions));
}

TEST_CASE("a profile with bytes that are not UTF-8 is written") {
  Profile profile;
  profile.failures.push_back({"n1", "openat", "ENOENT", "/a/\xff\xfe", "", 1});
  CHECK(parse_profile(to_json(profile), "p"));
}

TEST_CASE("invalid profiles are refused with the file and the error") {
  struct Row {
    const char* text;
    const char* says;
  };
  const Row rows[] = {
      {"", "line 1, column 1"},
      {"{", "line 1, column 2"},
      {"{\"version\":1,\n\"runs\":}", "line 2, column 8"},
      {"nonsense", "line 1"},
      {"[]", "one JSON object, found []"},
      {"null", "one JSON object, found null"},
      {"{}", "'version' is missing"},
      {"{\"version\":2,\"strange\":1}", "profile of version 2; this rose knows version 1"},
      {"{\"version\":\"1\"}", "version: expected a whole number"},
      {"{\"version\":-1}", "found -1"},
      {"{\"version\":1,\"run\":1,\"seconds\":1}", "unknown key 'run'; known are version, name, runs"},
      {"{\"version\":1,\"seconds\":1}", "'runs' is missing"},
      {"{\"version\":1,\"runs\":1}", "'seconds' is missing"},
      {"{\"version\":1,\"runs\":1.5,\"seconds\":1}", "runs: expected a whole number from 0 to 2147483647, found 1.5"},
      {"{\"version\":1,\"runs\":99999999999,\"seconds\":1}", "found 99999999999"},
      {"{\"version\":1,\"runs\":1,\"seconds\":-1}", "seconds: expected a number of 0 or more, found -1"},
      {"{\"version\":1,\"runs\":1,\"seconds\":\"x\"}", "found \"x\""},
      {"{\"version\":1,\"runs\":1,\"seconds\":1,\"name\":7}", "name: expected a string, found 7"},
      {"{\"version\":1,\"runs\":1,\"seconds\":1,\"failures\":{}}", "failures: expected a list, found {}"},
      {"{\"version\":1,\"runs\":1,\"seconds\":1,\"failures\":[7]}", "failures[0]: expected an object, found 7"},
      {"{\"version\":1,\"runs\":1,\"seconds\":1,\"failures\":[{\"node\":\"n1\"}]}",
       "failures[0]: 'syscall' is missing"},
      {"{\"version\":1,\"runs\":1,\"seconds\":1,\"failures\":[{\"node\":\"n1\",\"syscall\":\"read\",\"errno\":\"EIO\","
       "\"count\":-1}]}",
       "failures[0].count: expected a whole number"},
      {"{\"version\":1,\"runs\":1,\"seconds\":1,\"state_changes\":[{\"errno\":\"EIO\"}]}",
       "state_changes[0]: unknown key 'errno'"},
      {"{\"version\":1,\"runs\":1,\"seconds\":1,\"syscalls\":[]}", "syscalls: expected an object"},
      {"{\"version\":1,\"runs\":1,\"seconds\":1,\"syscalls\":{\"n1\":3}}", "syscalls.n1: expected an object, found 3"},
      {"{\"version\":1,\"runs\":1,\"seconds\":1,\"syscalls\":{\"n1\":{\"read\":\"x\"}}}", "syscalls.n1.read: expected"},
      {"{\"version\":1,\"runs\":1,\"seconds\":1,\"functions\":[{\"node\":\"n1\",\"function\":\"f\",\"count\":1,"
       "\"per_second\":1,\"infrequent\":1}]}",
       "functions[0].infrequent: expected true or false, found 1"},
      {"{\"version\":1,\"runs\":1,\"seconds\":1,\"processes\":[{\"node\":\"n1\",\"state\":\"started\",\"main\":true,"
       "\"count\":1}]}",
       "processes[0].state: expected crashed, exited or paused, found \"started\""},
      {"{\"version\":1,\"runs\":1,\"seconds\":1,\"workload\":[]}", "workload: expected an object"},
      {"{\"version\":1,\"runs\":1,\"seconds\":1,\"workload\":{\"runs\":1,\"failed\":0,\"sent\":-1}}",
       "workload.sent: expected a whole number"},
      {"{\"version\":1,\"runs\":1,\"seconds\":1,\"silences\":[{\"src\":\"a\",\"dst\":\"b\",\"longest_ms\":-5}]}",
       "silences[0].longest_ms"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.text);
    const auto parsed = parse_profile(row.text, "profile.json");
    REQUIRE_FALSE(parsed);
    CHECK(parsed.error().kind == ErrorKind::input);
    CAPTURE(parsed.error().message);
    CHECK(parsed.error().message.find("profile.json: ") == 0);
    CHECK(parsed.error().message.find(row.says) != std::string::npos);
    CHECK_FALSE(parsed.error().hint.empty());
  }
}

TEST_CASE("truncated, changed and deeply nested JSON does not crash the reader") {
  const std::string text = to_json(sample());
  for (std::size_t size = 0; size + 2 < text.size(); ++size) CHECK_FALSE(parse_profile(text.substr(0, size), "p"));
  std::mt19937 random(7);
  for (int i = 0; i < 3000; ++i) {
    std::string changed = text;
    for (int j = 0; j < 3; ++j) changed[random() % changed.size()] = static_cast<char>(random());
    (void)parse_profile(changed, "p");
  }
  CHECK_FALSE(parse_profile(std::string(1'000'000, '['), "p"));
  CHECK_FALSE(
      parse_profile("{\"version\":1,\"name\":" + std::string(300'000, '[') + std::string(300'000, ']') + "}", "p"));
}
