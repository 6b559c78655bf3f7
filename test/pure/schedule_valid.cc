// Schedules that are valid: how they are parsed, written, and described as text.
#include <catch2/catch.hpp>
#include <random>
#include <string>

#include "base/units.h"
#include "schedule/schedule.h"

using namespace rose;
using namespace rose::schedule;

namespace {

Schedule parse(const std::string& text) {
  INFO(text);
  auto parsed = parse_schedule(text, "schedule.toml");
  INFO((parsed ? "" : parsed.error().message));
  REQUIRE(parsed.has_value());
  return std::move(*parsed);
}

// The schedule without the line numbers of its faults, because these may change when the schedule is written.
Schedule plain(Schedule schedule) {
  for (Fault& fault : schedule.faults) fault.line = 0;
  return schedule;
}

std::string fault_words(const std::string& body) {
  return in_words(parse("version = 1\n[[fault]]\nid = \"f\"\n" + body).faults.at(0));
}

// Makes any schedule that can be written to a file.
class Generator {
 public:
  explicit Generator(unsigned seed) : random_(seed) {}

  Schedule schedule() {
    Schedule made;
    if (chance()) made.name = text();
    made.roles = {{"leader", text()}, {"second", "Raft::second"}};
    const int count = number(0, 8);
    for (int i = 0; i < count; ++i) made.faults.push_back(fault(i));
    return made;
  }

 private:
  bool chance() { return number(0, 1) == 1; }
  int number(int least, int most) { return std::uniform_int_distribution<int>(least, most)(random_); }
  template <typename T>
  T pick(std::initializer_list<T> choices) {
    return *(choices.begin() + number(0, static_cast<int>(choices.size()) - 1));
  }
  std::string text() {
    static const std::vector<std::string> pieces{"a", "*", "/", "?",  "\"", "\\",   "\n", "\t",
                                                 "#", "'", "ü", "日", " ",  "\x01", "]"};
    std::string made = "x";
    for (int i = number(0, 6); i > 0; --i)
      made += pieces[static_cast<std::size_t>(number(0, static_cast<int>(pieces.size()) - 1))];
    return made;
  }
  std::int64_t span() {
    return pick<std::int64_t>({kMillisecond, 1234 * kMillisecond, 12 * kSecond, 90 * kSecond, 3600 * kSecond,
                               kMillisecond + 1, 12'345'678'901});
  }
  CallMatch call() {
    CallMatch made;
    made.syscall = pick<const char*>({"read", "openat", "connect", "open*", "rename", "*"});
    if (chance()) made.path = text();
    if (made.syscall == "rename" && chance()) made.path2 = text();
    const bool socket = made.syscall == "read" || made.syscall == "connect" || made.syscall == "*";
    if (socket && chance()) made.peer = "10.77.0." + std::to_string(number(1, 9)) + ":*";
    if (socket && chance()) made.local = ":" + std::to_string(number(1, 65535));
    if (chance()) made.args[number(0, 5)] = pick<const char*>({"O_CREAT|O_TRUNC", "7", "0x1f", "-1"});
    if (chance()) made.process = text();
    return made;
  }
  std::vector<Condition> conditions(int least) {
    std::vector<Condition> made;
    for (int i = number(least, 4); i > 0; --i) {
      Condition one;
      one.kind = static_cast<ConditionKind>(number(0, 5));
      switch (one.kind) {
        case ConditionKind::elapsed: one.elapsed_ns = span(); break;
        case ConditionKind::function:
          one.function = text();
          if (chance()) (chance() ? one.offset : one.line) = static_cast<std::uint64_t>(number(1, 5000));
          break;
        case ConditionKind::syscall:
          one.call = call();
          if (chance()) one.result = pick<const char*>({"ok", "error", "ENOENT", "17", "-1"});
          break;
        case ConditionKind::log: one.log = pick<const char*>({"up", "a+\\.\"b\"", "[0-9]{2}"}); break;
        case ConditionKind::process_state:
          one.state = pick<const char*>({"crashed", "exited", "out-of-memory", "paused", "started"});
          break;
        case ConditionKind::role: (chance() ? one.role : one.function) = "leader"; break;
      }
      const bool role = one.kind == ConditionKind::role;
      if (one.kind != ConditionKind::elapsed && chance()) one.node = role || chance() ? "n2" : "@second";
      if (one.kind != ConditionKind::elapsed && one.kind != ConditionKind::process_state && !role && chance())
        one.count = number(1, 99);
      const bool threads = one.kind == ConditionKind::function || one.kind == ConditionKind::syscall;
      if (threads && !made.empty() && made.back().node == one.node &&
          (made.back().kind == ConditionKind::function || made.back().kind == ConditionKind::syscall))
        one.same_thread = chance();
      made.push_back(std::move(one));
    }
    return made;
  }
  void ends(Fault& made) {
    if (chance()) made.side = {"n4", "n5"};
    if (chance()) made.peers = pick<std::vector<std::string>>({{"n2", "n3"}, {"10.0.0.0/8", "fd00::1"}});
    made.direction = static_cast<Direction>(number(0, 2));
    if (chance()) made.ports = {7000, 65535};
    made.protocol = pick<const char*>({"", "tcp", "udp"});
  }
  void lasting(Fault& made) {
    switch (number(0, 2)) {
      case 0: made.duration_ns = span(); break;
      case 1: made.until = conditions(1); break;
      default: break;
    }
  }
  void link(Fault& made) {
    BadLink& one = made.link;
    if (chance()) {
      one.delay_ns = pick<std::int64_t>({50 * kMillisecond, 1'500'000, 1'234'567, 2 * kSecond});
      if (chance()) one.jitter_ns = one.delay_ns / 2;
      if (chance()) one.reorder = 0.25;
    }
    if (chance() || one.delay_ns == 0) one.loss = pick({1.0, 0.1, 1.0 / 3});
    if (chance()) one.duplicate = 0.01;
    if (chance()) one.corrupt = 1;
    if (chance()) one.rate = pick<std::uint64_t>({10'000'000, 1'000, 1'234'567, 2'000'000'000});
    if (chance()) one.payload = pick<std::string>({"PREPARE", std::string("\x00\xff\x07", 3), "a\"b"});
    made.count = number(1, 5);
    made.times = made.count == 1 ? pick<std::int64_t>({-1, 1, 7}) : pick<std::int64_t>({-1, 1, 3});
    one.connections = (made.count != 1 || made.times != -1) && chance();
    made.seed = pick<std::int64_t>({1, 0, 99});
  }
  Fault fault(int index) {
    Fault made;
    made.id = "f" + std::to_string(index);
    made.kind = static_cast<FaultKind>(number(0, 12));
    const bool links = made.kind == FaultKind::partition || made.kind == FaultKind::network;
    made.node = !links && number(0, 4) == 0 ? "@leader" : "n1";
    for (int i = 0; i < index; ++i)
      if (number(0, 3) == 0) made.after.push_back("f" + std::to_string(i));
    if (made.after.empty() && number(0, 3) == 0) made.group = "g";
    made.optional = number(0, 3) == 0;
    made.when = conditions(0);
    switch (made.kind) {
      case FaultKind::syscall:
        made.call = call();
        switch (number(0, 2)) {
          case 0: made.error = pick({5, 2, 28, 104, 4000}); break;
          case 1: made.result = pick<std::int64_t>({0, 512, INT64_MAX}); break;
          default: made.delay_ns = span();
        }
        if (made.error != 0 || made.result) {
          made.effect = static_cast<Effect>(number(0, 2));
          if (made.effect == Effect::bytes) made.effect_bytes = number(1, 100000);
          if (chance()) made.delay_ns = span();
        }
        made.count = number(1, 50);
        made.times = pick<std::int64_t>({1, 2, 1000, -1});
        if (chance()) made.then_do = ThenDo::crash;
        break;
      case FaultKind::crash:
      case FaultKind::pause:
        made.scope = static_cast<Scope>(number(0, made.kind == FaultKind::crash ? 2 : 1));
        if (made.kind == FaultKind::crash) made.signal = pick({9, 15, 6, 11, 34});
        if (made.kind == FaultKind::pause) made.duration_ns = span();
        if (chance()) {
          made.before = call();
          made.before_count = number(1, 9);
        }
        break;
      case FaultKind::partition:
        ends(made);
        made.loss = pick({1.0, 0.3, 0.001, 1.0 / 3});
        made.reject = chance();
        lasting(made);
        break;
      case FaultKind::network:
        ends(made);
        link(made);
        lasting(made);
        break;
      case FaultKind::clock:
        if (chance()) made.clock.shift_ns = span() * pick({1, -1});
        if (made.clock.shift_ns == 0 || chance()) {
          if (chance()) made.clock.freeze = true;
          else made.clock.drift = pick({1.05, 0.01, 100.0, 1.0 / 3});
        }
        made.clock.monotonic = chance();
        made.clock.realtime = !made.clock.monotonic || chance();
        lasting(made);
        break;
      case FaultKind::descriptors:
        made.resource.limit = number(3, 5000);
        lasting(made);
        break;
      case FaultKind::memory:
        made.resource.limit = pick<std::int64_t>({65'536, 65'537, std::int64_t{16} << 20, std::int64_t{3} << 30});
        lasting(made);
        break;
      case FaultKind::cpu:
        made.resource.share = pick({0.05, 0.01, 2.0, 1.0 / 3});
        lasting(made);
        break;
      case FaultKind::disk_full:
        if (chance()) made.resource.folder = pick<const char*>({"data", "var/lib/a b"});
        lasting(made);
        break;
      case FaultKind::disk_slow:
        if (chance()) made.resource.folder = "data";
        if (chance())
          made.resource.rate = pick<std::uint64_t>({1024, 1025, std::uint64_t{10} << 20, std::uint64_t{1} << 40});
        if (chance()) made.resource.iops = pick({0.1, 100.0, 1.0 / 3});
        if (made.resource.rate == 0 && made.resource.iops == 0)
          made.resource.delay_ns = pick<std::int64_t>({100'000, 20'000'000, 60'000'000'000});
        lasting(made);
        break;
      case FaultKind::block:
        if (chance()) {
          made.function = "Store::append";
          if (chance()) (chance() ? made.offset : made.at_line) = static_cast<std::uint64_t>(number(1, 5000));
        } else {
          made.call = call();
        }
        made.count = number(1, 5);
        lasting(made);
        if (made.until.empty() || chance()) made.duration_ns = span();
        break;
      case FaultKind::exception:
        made.throws = pick<const char*>({"java.io.IOException", "org.x.Outer$Inner"});
        if (chance()) made.message = "No \"space\" left";
        made.function = "org.x.Store.append(long)";
        if (chance()) (chance() ? made.offset : made.at_line) = static_cast<std::uint64_t>(number(1, 5000));
        made.count = number(1, 5);
        made.times = pick<std::int64_t>({-1, 1, 7});
        break;
    }
    return made;
  }

  std::mt19937 random_;
};

}  // namespace

TEST_CASE("a schedule is equal after being written and read back") {
  for (unsigned seed = 0; seed < 300; ++seed) {
    const Schedule made = Generator(seed).schedule();
    const std::string text = to_toml(made, "made with seed " + std::to_string(seed) + "\n\nof \"tests\" \\ \x01");
    INFO("seed " << seed << "\n" << text);
    const auto read = parse_schedule(text, "written.toml");
    INFO((read ? "" : read.error().message));
    REQUIRE(read.has_value());
    REQUIRE(plain(*read) == made);
    REQUIRE(fingerprint(*read) == fingerprint(made));
    REQUIRE_FALSE(in_words(made).empty());
  }
}

TEST_CASE("a written schedule is formatted as if by hand") {
  Schedule made;
  made.name = "kv-lost-write";
  Fault cut;
  cut.id = "cut";
  cut.kind = FaultKind::partition;
  cut.node = "n1";
  cut.peers = {"n2", "n3"};
  cut.duration_ns = 12 * kSecond;
  cut.when.resize(1);
  cut.when[0].elapsed_ns = 5 * kSecond;
  Fault read;
  read.id = "bad-read";
  read.node = "n2";
  read.call.syscall = "read";
  read.call.path = "*/snapshot.*";
  read.error = 5;
  read.count = 3;
  read.after = {"cut"};
  read.when.resize(2);
  read.when[0].kind = ConditionKind::function;
  read.when[0].function = "handleLoadSnapshot";
  read.when[1].kind = ConditionKind::syscall;
  read.when[1].call.syscall = "openat";
  read.when[1].count = 2;
  made.faults = {cut, read};
  CHECK(to_toml(made, "Found by rose diagnose.\nRate 100%.") == R"(# Found by rose diagnose.
# Rate 100%.

version = 1
name = "kv-lost-write"

[[fault]]
id       = "cut"
kind     = "partition"
node     = "n1"
peers    = ["n2", "n3"]
duration = "12s"
when     = [ { elapsed = "5s" } ]

[[fault]]
id      = "bad-read"
kind    = "syscall"
node    = "n2"
syscall = "read"
path    = "*/snapshot.*"
error   = "EIO"
count   = 3
after   = ["cut"]
when    = [
  { function = "handleLoadSnapshot" },
  { syscall = "openat", count = 2 },
]
)");
  CHECK(in_words(made) ==
        "1. cut n1 off from n2 and n3 in both directions for 12s, 5s after the workload began\n"
        "2. fail the 3rd read of */snapshot.* on n2 with EIO, once step 1 has begun, then n2 has entered "
        "handleLoadSnapshot, then n2 has made its 2nd openat");
}

TEST_CASE("the reference schedule contains every key") {
  const auto read = read_schedule(ROSE_TEST_DIR "/../configs/schedule.toml");
  INFO((read ? "" : read.error().message));
  REQUIRE(read.has_value());
  REQUIRE(read->faults.size() == 22);
  CHECK(read->roles.at(0).name == "leader");
  CHECK(read->find("crash-leader")->node == "@leader");
  CHECK(read->name == "kv-lost-write");
  const Fault& cut = *read->find("cut");
  CHECK(cut.kind == FaultKind::partition);
  CHECK(cut.peers == std::vector<std::string>{"n2", "n3"});
  CHECK(cut.ports == std::vector<std::uint16_t>{7000});
  CHECK(cut.protocol == "tcp");
  CHECK(cut.duration_ns == 12 * kSecond);
  CHECK(cut.when.at(0).elapsed_ns == 5 * kSecond);
  CHECK(cut.line == 17);
  REQUIRE(read->find_event("created") != nullptr);
  CHECK(read->find_event("created")->timeout_ns == 10 * kSecond);
  CHECK(read->find("cut-until")->until.at(0).node == "n2");
  const Fault& slow = *read->find("slow-link");
  CHECK(slow.kind == FaultKind::network);
  CHECK(slow.direction == Direction::out);
  CHECK(slow.link.delay_ns == 50 * kMillisecond);
  CHECK(slow.link.jitter_ns == 10 * kMillisecond);
  CHECK(slow.link.reorder == 0.05);
  CHECK(slow.link.loss == 0.1);
  CHECK(slow.link.duplicate == 0.01);
  CHECK(slow.link.corrupt == 0.01);
  CHECK(slow.link.rate == 10'000'000);
  CHECK(slow.times == -1);
  CHECK(slow.duration_ns == 12 * kSecond);
  const Fault& third = *read->find("third-prepare");
  CHECK(third.link.payload == "PREPARE");
  CHECK(third.link.loss == 1.0);
  CHECK(third.count == 3);
  CHECK(third.times == 1);
  CHECK_FALSE(third.link.connections);
  const Fault& ahead = *read->find("an-hour-ahead");
  CHECK(ahead.kind == FaultKind::clock);
  CHECK(ahead.clock.shift_ns == 3600 * kSecond);
  CHECK(ahead.clock.drift == 1.05);
  CHECK(ahead.clock.realtime);
  CHECK_FALSE(ahead.clock.monotonic);
  CHECK(ahead.duration_ns == 30 * kSecond);
  CHECK(read->find("time-stands-still")->clock.freeze);
  CHECK(read->find("few-descriptors")->resource.limit == 64);
  CHECK(read->find("little-memory")->resource.limit == 16 << 20);
  CHECK(read->find("little-cpu")->resource.share == 0.05);
  CHECK(read->find("disk-full")->resource.folder == "data");
  CHECK(read->find("slow-wal")->resource.folder == "wal");
  CHECK(read->find("slow-wal")->resource.rate == 10 << 20);
  CHECK(read->find("slow-wal")->resource.iops == 100);
  CHECK(read->find("slow-wal")->resource.delay_ns == 20'000'000);
  const Fault& held = *read->find("held-sync");
  CHECK(held.kind == FaultKind::block);
  CHECK(held.call.syscall == "fsync");
  CHECK(held.function.empty());
  CHECK(held.count == 2);
  CHECK(held.duration_ns == 5 * kSecond);
  CHECK(in_words(held) ==
        "block the thread that is about to make the 2nd fsync of */log.* on n1 until n2 has logged \"elected\" (at "
        "most 5s)");
  CHECK(read->find("power-goes")->lose == schedule::Loss::torn);
  CHECK(read->find("power-goes")->resource.folder == "data");
  CHECK(read->find("power-goes")->keep == 0.25);
  const Fault& append = *read->find("append-fails");
  CHECK(append.kind == FaultKind::exception);
  CHECK(append.throws == "java.io.IOException");
  CHECK(append.message == "No space left on device");
  CHECK(append.function == "org.x.Store.append");
  CHECK(append.at_line == 120);
  CHECK(append.count == 3);
  CHECK(append.when.at(0).line == 64);
  const Fault& crash = *read->find("crash-in-log-create");
  CHECK(crash.group == "g");
  CHECK(crash.signal == 9);
  CHECK(crash.when.at(1).offset == std::uint64_t{0x2a});
  CHECK(crash.when.at(1).same_thread);
  CHECK(read->find("crash-before-rename")->before->path == std::string("*/epoch"));
  CHECK(read->find("crash-before-rename")->before_count == 2);
  CHECK(read->find("stall")->scope == Scope::main);
  const Fault& bad = *read->find("bad-read");
  CHECK(bad.error == 5);
  CHECK(bad.count == 3);
  CHECK(bad.when.at(0).call.args.at(2) == "O_CREAT|O_TRUNC");
  CHECK(bad.when.at(0).result == std::string("ok"));
  const Fault& brief = *read->find("short-write");
  CHECK(brief.result == std::int64_t{512});
  CHECK(brief.effect == Effect::bytes);
  CHECK(brief.effect_bytes == 512);
  CHECK(brief.then_do == ThenDo::crash);
  CHECK(read->find("lost-answer")->effect == Effect::full);
  CHECK(read->find("slow-disk")->delay_ns == 200 * kMillisecond);
  CHECK(read->find("slow-disk")->times == -1);
  CHECK(read->find("nope") == nullptr);
  CHECK(check_nodes(*read, {"n1", "n2", "n3"}, "schedule.toml").has_value());
}

TEST_CASE("valid schedules similar to malformed ones are accepted") {
  CHECK(parse("version = 1\n").faults.empty());
  const std::string fault = "version = 1\n[[fault]]\nid = \"f\"\nnode = \"n1\"\n";
  for (const char* body :
       {"kind = \"crash\"\n", "kind = \"partition\"\n", "kind = \"partition\"\nloss = 1\n",
        "kind = \"network\"\ndelay = \"0.001ms\"\njitter = \"0.001ms\"\n", "kind = \"network\"\nrate = \"1kbit\"\n",
        "kind = \"network\"\nloss = 1\ntimes = \"forever\"\npayload = { hex = \"00\" }\n",
        "kind = \"network\"\nduplicate = 0.5\ntimes = 2\n", "kind = \"syscall\"\nsyscall = \"read\"\ndelay = \"1ms\"\n",
        "kind = \"syscall\"\nsyscall = \"*\"\nerror = \"EIO\"\n",
        "kind = \"syscall\"\nsyscall = \"syscall_470\"\nerror = \"EIO\"\npath = \"*\"\n",
        "kind = \"syscall\"\nsyscall = \"open\"\nerror = \"E4000\"\nargs = { 1 = 64 }\n",
        "kind = \"syscall\"\nsyscall = \"write\"\nresult = 0\neffect = \"none\"\n",
        "kind = \"crash\"\nsignal = \"SIG34\"\n", "kind = \"pause\"\nduration = \"0.001s\"\n",
        "kind = \"crash\"\n[[fault.when]]\nelapsed = \"0s\"\n[[fault.when]]\nsyscall = \"read\"\nresult = -1\n"})
    parse(fault + body);
  // A fault may refer to a fault that comes later in the file.
  parse(
      "version = 1\n[[fault]]\nid = \"a\"\nkind = \"crash\"\nnode = \"n1\"\nafter = [\"b\"]\n"
      "[[fault]]\nid = \"b\"\nkind = \"crash\"\nnode = \"n1\"\n");
}

TEST_CASE("the number of faults and conditions is bounded") {
  const auto with = [](int faults, int conditions) {
    std::string text = "version = 1\n";
    for (int i = 0; i < faults; ++i) {
      text += fmt::format("[[fault]]\nid = \"f{}\"\nkind = \"crash\"\nnode = \"n1\"\n", i);
      if (i > 0) text += fmt::format("after = [\"f{}\"]\n", i - 1);
      if (conditions > 0) text += "when = [";
      for (int k = 0; k < conditions; ++k) text += " { elapsed = \"1s\" },";
      if (conditions > 0) text += "]\n";
    }
    return parse_schedule(text, "s.toml");
  };
  const auto most = with(4096, 0);
  REQUIRE(most.has_value());
  CHECK(with(4097, 0).error().message == "s.toml:20481:1: fault: 4097 faults were found, up to 4096 are accepted");
  CHECK(with(1, 4000).has_value());
  CHECK(with(1, 4001).error().message ==
        "s.toml:6:80010: fault.when: 4001 conditions were found, up to 4000 are accepted");
  CHECK_FALSE(in_words(*most).empty());
}

TEST_CASE("faults are described in plain words") {
  const auto crash = [](const std::string& body) { return fault_words("kind = \"crash\"\nnode = \"n1\"\n" + body); };
  const auto syscall = [](const std::string& body) {
    return fault_words("kind = \"syscall\"\nnode = \"n2\"\n" + body);
  };
  const auto cut = [](const std::string& body) { return fault_words("kind = \"partition\"\nnode = \"n1\"\n" + body); };
  CHECK(crash("") == "kill n1 (all its processes) when the workload begins");
  CHECK(crash("when = [ { elapsed = \"5s\" } ]\n") == "kill n1 (all its processes) 5s after the workload began");
  CHECK(crash("scope = \"main\"\nsignal = \"SIGTERM\"\n") ==
        "send SIGTERM to the main process of n1 when the workload begins");
  CHECK(crash("scope = \"others\"\n") == "kill the processes of n1 besides its main one when the workload begins");
  CHECK(crash("before = { syscall = \"openat\", path = \"*/log.*\", count = 2 }\n") ==
        "kill n1 (all its processes) instead of the 2nd openat of */log.*");
  CHECK(crash("when = [ { function = \"handleLoadSnapshot\" }, { function = \"RaftLogCreate\", offset = 0x2a, count = "
              "3 } ]\n") ==
        "kill n1 (all its processes), once n1 has entered handleLoadSnapshot, then n1 has reached RaftLogCreate+0x2a "
        "for the 3rd time");
  CHECK(crash("when = [ { state = \"crashed\", node = \"n2\" }, { elapsed = \"1s\" }, { log = \"up\", node = \"n3\", "
              "count = 2 } ]\n") ==
        "kill n1 (all its processes), once n2 has crashed, then 1s have passed, then n3 has logged \"up\" for the 2nd "
        "time");
  CHECK(fault_words("kind = \"pause\"\nnode = \"n1\"\nduration = \"3s\"\n") ==
        "pause n1 (all its processes) for 3s, when the workload begins");
  CHECK(syscall("syscall = \"read\"\nerror = \"EIO\"\npath = \"*/snapshot.*\"\ncount = 3\n") ==
        "fail the 3rd read of */snapshot.* on n2 with EIO");
  CHECK(syscall("syscall = \"read\"\nerror = \"EIO\"\ntimes = \"forever\"\n") == "fail every read on n2 with EIO");
  CHECK(syscall("syscall = \"fsync\"\nresult = 0\ncount = 11\ntimes = \"forever\"\n") ==
        "let every fsync from the 11th on on n2 return 0 without executing it");
  CHECK(syscall("syscall = \"write\"\nresult = 512\neffect = { bytes = 512 }\nthen = \"crash\"\n") ==
        "let the 1st write on n2 return 512 after 512 bytes of it were done, and kill n2 right then");
  const std::string part = "syscall = \"write\"\nresult = 97\neffect = { bytes = 97 }\nerror = \"ENOSPC\"\n";
  CHECK(syscall(part) == "let the 1st write on n2 do only 97 bytes, and fail the next one with ENOSPC");
  CHECK(syscall(part + "times = 13\n") == "let the 1st write on n2 do only 97 bytes, and fail the next 13 with ENOSPC");
  CHECK(syscall(part + "times = \"forever\"\n") ==
        "let the 1st write on n2 do only 97 bytes, and fail all later ones with ENOSPC");
  CHECK(
      syscall("syscall = \"sendto\"\nerror = \"ECONNRESET\"\neffect = \"full\"\npeer = \"10.77.0.1:*\"\ntimes = 2\n") ==
      "fail 2 calls in a row, from the 1st sendto with peer 10.77.0.1:* on, on n2 with ECONNRESET although it was "
      "carried out");
  CHECK(syscall("syscall = \"fsync\"\ndelay = \"200ms\"\nwhen = [ { syscall = \"openat\", result = \"ENOENT\" } ]\n") ==
        "delay the 1st fsync on n2 by 200ms, once n2 has made its 1st openat and it failed with ENOENT");
  CHECK(cut("") ==
        "cut n1 off from all other nodes in both directions to the end of the run, when the workload begins");
  CHECK(cut("peers = [\"n2\", \"n3\"]\nduration = \"12s\"\nwhen = [ { elapsed = \"5s\" } ]\n") ==
        "cut n1 off from n2 and n3 in both directions for 12s, 5s after the workload began");
  CHECK(cut("direction = \"in\"\nports = [7000]\nprotocol = \"tcp\"\nuntil = [ { log = \"installed\", node = \"n2\" } "
            "]\n") ==
        "cut n1 off from all other nodes for what it receives (TCP port 7000 only) until n2 has logged \"installed\", "
        "when the workload begins");
  CHECK(cut("loss = 0.3\nduration = \"1m\"\n") ==
        "drop 30% of the packets between n1 and all other nodes, in both directions for 1m, when the workload begins");
  const auto link = [](const std::string& body) { return fault_words("kind = \"network\"\nnode = \"n1\"\n" + body); };
  CHECK(link("delay = \"50ms\"\npeers = [\"n2\"]\nduration = \"4s\"\n") ==
        "delay packets by 50ms between n1 and n2, in both directions for 4s, when the workload begins");
  CHECK(link("delay = \"50ms\"\njitter = \"1.5ms\"\nreorder = 0.25\ndirection = \"out\"\n") ==
        "delay packets by 50ms ± 1.5ms but 25% of them, which overtake the others, from n1 to all other nodes to the "
        "end of the "
        "run, when the "
        "workload begins");
  CHECK(link("loss = 0.1\nduplicate = 1\nrate = \"1500kbit\"\ndirection = \"in\"\nports = [80]\n") ==
        "lose 10% of the packets, duplicate packets and let no more than 1500kbit a second pass from all other nodes "
        "to n1 (port 80 only) to "
        "the end of the run, when the workload begins");
  CHECK(link("corrupt = 0.125\ncount = 3\ntimes = 2\ncounts = \"connections\"\npayload = { hex = \"00ff\" }\n") ==
        "corrupt 12.5% of the packets (only 2 connections from the 3rd on and packets that hold bytes 00ff) between n1 "
        "and all other nodes, in "
        "both directions to the end of the run, when the workload begins");
  const auto thrown = [](const std::string& body) {
    return fault_words(
        "kind = \"exception\"\nnode = \"n1\"\nthrows = \"java.io.IOException\"\nfunction = \"org.x.Store.append\"\n" +
        body);
  };
  CHECK(thrown("") == "throw java.io.IOException the 1st time that n1 reaches org.x.Store.append");
  CHECK(thrown("line = 120\ncount = 3\ntimes = 2\n") ==
        "throw java.io.IOException 2 times in a row, from the 3rd on, that n1 reaches line 120 of org.x.Store.append");
  CHECK(thrown("offset = 17\ntimes = \"forever\"\nwhen = [ { function = \"A.b\", line = 7 } ]\n") ==
        "throw java.io.IOException every time that n1 reaches org.x.Store.append+0x11, once n1 has reached line 7 of "
        "A.b");
  const auto clock = [](const std::string& body) { return fault_words("kind = \"clock\"\nnode = \"n1\"\n" + body); };
  CHECK(clock("shift = \"-90m\"\nduration = \"4s\"\n") ==
        "set the clock of n1 back by 90m for 4s, from its first instruction on");
  CHECK(clock("shift = \"+1h\"\nfreeze = true\nwhen = [ { elapsed = \"5s\" } ]\n") ==
        "set the clock of n1 forward by 1h and stop it to the end of the run, 5s after the workload began");
  CHECK(clock("drift = 1.05\nclocks = [\"monotonic\"]\nwhen = [ { elapsed = \"5s\" } ]\n") ==
        "let the monotonic clock of n1 go 1.05 times as fast to the end of the run, 5s after the workload began");
  const auto limit = [](const std::string& body) { return fault_words("node = \"n1\"\nkind = " + body); };
  CHECK(limit("\"descriptors\"\nlimit = 64\nduration = \"5s\"\n") ==
        "let no process of n1 have more than 64 descriptors for 5s, when the workload begins");
  CHECK(limit("\"memory\"\nlimit = \"1.5MiB\"\nwhen = [ { elapsed = \"5s\" } ]\n") ==
        "let n1 use no more than 1536KiB of memory to the end of the run, 5s after the workload began");
  CHECK(limit("\"cpu\"\nshare = 0.05\n") ==
        "leave n1 0.05 of a processor to the end of the run, when the workload begins");
  CHECK(limit("\"disk-full\"\nuntil = [ { log = \"gave up\" } ]\n") ==
        "let the disk of n1 be full until n1 has logged \"gave up\", when the workload begins");
  CHECK(limit("\"disk-full\"\npath = \"data\"\nduration = \"2s\"\n") ==
        "let the disk that holds data of n1 be full for 2s, when the workload begins");
  CHECK(limit("\"disk-full\"\npath = \"/var/lib/kv\"\nduration = \"2s\"\n") ==
        "let the disk that holds /var/lib/kv of n1 be full for 2s, when the workload begins");
  CHECK(limit("\"disk-slow\"\ndelay = \"20ms\"\n") ==
        "slow the disk of n1 down to 20ms more for each request to the end of the run, when the workload begins");
  CHECK(limit("\"disk-slow\"\npath = \"wal\"\nrate = \"1.5MiB/s\"\niops = 0.5\nduration = \"2s\"\n") ==
        "slow the disk that holds wal of n1 down to 1536KiB/s and 0.5 requests a second for 2s, when the workload "
        "begins");
  CHECK(crash("lose = \"unsynced\"\n") ==
        "kill n1 (all its processes) (with power loss: unsynced data is lost) when the workload begins");
  CHECK(crash("lose = \"torn\"\npath = \"data\"\nkeep = 0.25\nbefore = { syscall = \"fsync\" }\n") ==
        "kill n1 (all its processes) instead of the 1st fsync (with power loss: of unsynced data in data, "
        "25 % of each file's sectors is kept, the first ones)");
  CHECK(in_words(Schedule{}) == "no fault");
}

TEST_CASE("steps are described in their order") {
  const Schedule schedule = parse(
      "version = 1\n"
      "[[fault]]\nid = \"late\"\nkind = \"crash\"\nnode = \"n1\"\nafter = [\"early\"]\nwhen = [ { elapsed = \"2s\" } "
      "]\n"
      "[[fault]]\nid = \"early\"\nkind = \"pause\"\nnode = \"n2\"\nduration = \"1s\"\n");
  CHECK(in_words(schedule) ==
        "1. pause n2 (all its processes) for 1s, when the workload begins\n"
        "2. kill n1 (all its processes) 2s after step 1 began");
}

TEST_CASE("alternatives on several nodes are one step") {
  const auto crash = [](const char* id, const char* node, const char* more) {
    return fmt::format("[[fault]]\nid = \"{}\"\nkind = \"crash\"\nnode = \"{}\"\ngroup = \"g\"\n{}", id, node, more);
  };
  const std::string when = "when = [ { function = \"flush_log\", count = 2 } ]\n";
  const std::string group =
      crash("a", "n1", when.c_str()) + crash("b", "n2", when.c_str()) + crash("c", "n3", when.c_str());
  CHECK(in_words(parse("version = 1\n" + group)) ==
        "on whichever of n1, n2 and n3 gets there first: kill it (all its processes), once it has entered flush_log "
        "for the 2nd time");
  CHECK(in_words(parse(
            "version = 1\n" + group +
            "[[fault]]\nid = \"stall\"\nkind = \"pause\"\nnode = \"n1\"\nduration = \"2s\"\nafter = [\"b\"]\n")) ==
        "1. on whichever of n1, n2 and n3 gets there first: kill it (all its processes), once it has entered flush_log "
        "for the 2nd time\n"
        "2. pause n1 (all its processes) for 2s, as soon as step 1 has begun");
  // The descriptions of schedules that differ must differ, too.
  CHECK(in_words(parse("version = 1\n" + crash("a", "n1", when.c_str()) +
                       crash("b", "n2", "when = [ { elapsed = \"3s\" } ]\n"))) ==
        "1. kill n1 (all its processes), once n1 has entered flush_log for the 2nd time (this or step 2, whichever "
        "comes first)\n"
        "2. kill n2 (all its processes) 3s after the workload began (this or step 1, whichever comes first)");
}

TEST_CASE("a fingerprint depends only on what a schedule does") {
  const std::string one =
      "version = 1\n[[fault]]\nid = \"a\"\nkind = \"partition\"\nnode = \"n1\"\npeers = [\"n2\", \"n3\"]\n"
      "[[fault]]\nid = \"b\"\nkind = \"crash\"\nnode = \"n1\"\nafter = [\"a\"]\nwhen = [ { function = \"f\", node = "
      "\"n1\" } ]\n";
  const std::string same =
      "version = 1\nname = \"other\"\n\n[[fault]]\nid = \"x\"\nkind = \"partition\"\nnode = \"n1\"\npeers = [\"n3\", "
      "\"n2\"]\n"
      "[[fault]]\nkind = \"crash\"\nid = \"y\"\nnode = \"n1\"\nafter = [\"x\"]\nwhen = [ { function = \"f\", count = 1 "
      "} ]\n";
  CHECK(fingerprint(parse(one)) == fingerprint(parse(same)));
  CHECK(fingerprint(parse(one)).size() == 32);
  std::string other = one;
  other.replace(other.find("\"crash\""), 7, "\"crash\"\nscope = \"main\"");
  CHECK(fingerprint(parse(one)) != fingerprint(parse(other)));
  // What a run does is the same whether or not a fault is optional, so the fingerprint is the same, too.
  CHECK(fingerprint(parse(one)) == fingerprint(parse(one + "optional = true\n")));
  CHECK(parse(one + "optional = true\n").faults[1].optional);
}

TEST_CASE("nodes and peers are checked against the deployment") {
  const std::string text =
      "version = 1\n[[fault]]\nid = \"cut\"\nkind = \"partition\"\nnode = \"n1\"\npeers = [\"n22\"]\n"
      "until = [ { log = \"x\", node = \"m\" } ]\n";
  const auto wrong_peer = check_nodes(parse(text), {"n1", "n2"}, "schedule.toml");
  REQUIRE_FALSE(wrong_peer.has_value());
  CHECK(wrong_peer.error().message == "schedule.toml:2: fault 'cut': peer 'n22' is not in the deployment");
  CHECK(wrong_peer.error().hint == "did you mean 'n2'?");
  const auto wrong_node = check_nodes(parse(text), {"kv"}, "schedule.toml");
  REQUIRE_FALSE(wrong_node.has_value());
  CHECK(wrong_node.error().message == "schedule.toml:2: fault 'cut': node 'n1' is not in the deployment");
  CHECK(wrong_node.error().hint == "the nodes are kv");
  CHECK(check_nodes(parse(text), {"n1", "n22"}, "s").error().message ==
        "s:2: fault 'cut': node 'm' is not in the deployment");
  CHECK(check_nodes(parse(text), {"n1", "n22", "m"}, "s").has_value());
  const Schedule alone = plain(parse("version = 1\n[[fault]]\nid = \"cut\"\nkind = \"partition\"\nnode = \"n1\"\n"));
  CHECK(check_nodes(alone, {"n1"}, "s").error().message ==
        "s: fault 'cut': a partition needs at least two nodes, the deployment has 1");
}
