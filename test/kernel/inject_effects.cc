// Faults that fired without changing anything are distinguished from those that had an effect. This is tested for each
// kind.
#include "deploy/disk.h"
#include "inject_limits.h"
#include "inject_ping.h"

using namespace rose;
using namespace rose::test;

namespace {

// More than one page, because in a full file system that was empty before, one page may still be free.
const std::string kPages(1 << 16, 'x');

struct Row {
  std::string name;
  std::string fault;               // the kind and the keys of the fault
  std::vector<std::string> steps;  // the steps that n1 makes after the fault is in effect
  std::string no_effect;           // the reason why the fault has no effect; "": it has one
  std::optional<kernel::Controller> needs{};
  bool disk = false;
};

const std::vector<Row>& rows() {
  static const std::vector<Row> all{
      {"a call fails",
       "kind = \"syscall\"\nsyscall = \"openat\"\npath = \"*/n1/a\"\nerror = \"EIO\"",
       {"create", "a"},
       ""},
      {"a call is late", "kind = \"syscall\"\nsyscall = \"fsync\"\ndelay = \"5ms\"", {"create", "a", "fsync"}, ""},
      {"a call is done in part",
       "kind = \"syscall\"\nsyscall = \"write\"\npath = \"*/n1/a\"\nresult = 2\neffect = { bytes = 2 }",
       {"create", "a", "write", "hello"},
       ""},
      {"a call that is shorter than its part",
       "kind = \"syscall\"\nsyscall = \"write\"\npath = \"*/n1/a\"\nresult = 200\neffect = { bytes = 200 }",
       {"create", "a", "write", "hello"},
       "the call had that result anyway"},
      {"a call that succeeds anyway",
       "kind = \"syscall\"\nsyscall = \"fsync\"\nresult = 0\neffect = \"full\"",
       {"create", "a", "fsync"},
       "the call had that result anyway"},
      {"a call that is carried out and late",
       "kind = \"syscall\"\nsyscall = \"fsync\"\nresult = 0\neffect = \"full\"\ndelay = \"5ms\"",
       {"create", "a", "fsync"},
       ""},
      {"a thread waits ahead of its call",
       "kind = \"block\"\nat = { syscall = \"fsync\" }\nduration = \"20ms\"",
       {"create", "a", "fsync"},
       ""},
      {"a thread waits in a function",
       "kind = \"block\"\nat = { function = \"step_function\" }\nduration = \"20ms\"",
       {"call"},
       ""},
      {"processes stand still", "kind = \"pause\"\nduration = \"20ms\"", {}, ""},
      {"processes are killed", "kind = \"crash\"", {}, ""},
      {"processes end by a signal", "kind = \"crash\"\nsignal = \"SIGTERM\"", {}, ""},
      {"a signal that the process handles",
       "kind = \"crash\"\nsignal = \"SIGUSR1\"\nwhen = [ { log = \"done\" } ]",
       {"interrupted", "1", "again"},
       "SIGUSR1 ended no process of n1"},
      {"a wrong clock is read", "kind = \"clock\"\nshift = \"+1h\"", {"time"}, ""},
      {"a wrong clock that nobody reads",
       "kind = \"clock\"\nshift = \"+1h\"",
       {},
       "no process of n1 read the clock while it was wrong"},
      {"a wrong clock, and another one is read",
       "kind = \"clock\"\nshift = \"+1h\"\nclocks = [\"monotonic\"]",
       {"time"},
       "no process of n1 read the clock while it was wrong"},
      {"descriptors run out", "kind = \"descriptors\"\nlimit = 20", {"repeat", "40", "create", "a", ";"}, ""},
      {"descriptors that suffice",
       "kind = \"descriptors\"\nlimit = 1000",
       {"repeat", "40", "create", "a", ";"},
       "no call of n1 reached the limit"},
      {"memory runs out", "kind = \"memory\"\nlimit = \"16MiB\"", {"use", "48"}, "", kernel::Controller::memory},
      {"memory that suffices",
       "kind = \"memory\"\nlimit = \"4GiB\"",
       {"use", "4"},
       "n1 never reached the limit",
       kernel::Controller::memory},
      {"a processor that is not enough", "kind = \"cpu\"\nshare = 0.1", {"spin"}, "", kernel::Controller::cpu},
      {"a disk without room",
       "kind = \"disk-full\"\npath = \"data\"",
       {"create", "data/a", "write", kPages, "write", kPages},
       ""},
      {"a full disk that nobody writes to",
       "kind = \"disk-full\"\npath = \"data\"",
       {"create", "a", "write", "hello", "openr", "data/none"},
       "no call of n1 failed for lack of disk space"},
      {"a slow disk",
       "kind = \"disk-slow\"\npath = \"data\"\ndelay = \"1ms\"",
       {"create", "data/a", "write", "hello", "fsync"},
       "",
       {},
       true},
      {"a slow disk that nobody uses",
       "kind = \"disk-slow\"\npath = \"data\"\ndelay = \"1ms\"",
       {"create", "a", "write", "hello", "fsync"},
       "no request reached the disk during the fault",
       {},
       true},
  };
  return all;
}

bool can(const Row& row) {
  if (row.needs && !kernel::find_controller(*row.needs)) return false;
  return !row.disk || (deploy::Disk::check() && deploy::PacedFile::check());
}

}  // namespace

TEST_CASE("effects: a fault that fired is effective, or the reason why not is given", "[effects]") {
  for (const Row& row : rows()) {
    if (!can(row)) {
      WARN("not tried on this machine: " << row.name);
      continue;
    }
    INFO(row.name);
    Rig rig;
    rig.leave_to_seccomp();
    std::vector<std::string> steps = {"gate", "../go"};
    steps.insert(steps.end(), row.steps.begin(), row.steps.end());
    for (const char* word : {"print", "done", "gate", "../never"}) steps.emplace_back(word);
    rig.add(steps);
    rig.start("[[fault]]\nid = \"it\"\nnode = \"n1\"\n" + row.fault + "\n");
    rig.injector->catch_up();
    rig.touch("go");
    if (row.no_effect.empty()) {
      const bool effective = eventually([&] { return rig.injector->outcomes().at(0).effective(); });
      INFO(rig.injector->outcomes().at(0).no_effect << rig.injector->outcomes().at(0).why_not);
      CHECK(effective);
    } else {
      rig.wait_printed("done");
      CHECK(eventually([&] { return rig.injector->outcomes().at(0).fired; }));
    }
    const auto outcome = rig.finish_fired().at(0);
    CHECK(outcome.no_effect == row.no_effect);
    CHECK(outcome.effective() == row.no_effect.empty());
  }
}

TEST_CASE("effects: a partition or bad link is effective only if it affected packets", "[effects][network]") {
  struct Link {
    std::string fault;
    std::string no_effect;
  };
  const Link links[] = {
      {"kind = \"partition\"\npeers = [\"n1\"]", ""},
      {"kind = \"partition\"\npeers = [\"n1\"]\nports = [9]", "no packet was stopped"},
      {"kind = \"partition\"\npeers = [\"10.99.99.99\"]", "no packet was stopped"},
      {"kind = \"network\"\npeers = [\"n1\"]\ndelay = \"5ms\"", ""},
      {"kind = \"network\"\npeers = [\"n1\"]\nloss = 1.0", ""},
      {"kind = \"network\"\npeers = [\"n1\"]\nloss = 1.0\nports = [9]", "0 packets passed it unchanged"},
  };
  for (const Link& link : links) {
    INFO(link.fault);
    Rig rig(config::Network::netns);
    rig.add({"server", "7100", "print", "up", "gate", "../never"});
    rig.add({"print", "up", "gate", "../never"});
    rig.prepare("[[fault]]\nid = \"it\"\nnode = \"n2\"\n" + link.fault + "\n");
    rig.wait_printed("up", 0);
    rig.begin();
    rig.injector->catch_up();
    // On a busy machine an answer may take long.
    const std::string limit_ms = link.no_effect.empty() ? "300" : "20000";
    const Answer answer = end_ping(start_ping(rig, 1, {"tcp", "10.251.9.1", "7100", limit_ms}));
    const auto outcome = rig.finish_fired().at(0);
    CHECK(outcome.no_effect == link.no_effect);
    if (!link.no_effect.empty()) CHECK(answer == kEcho);
  }
}
