// Faults in links, clocks, limits, disks and waits, with every kind of condition. Each is in effect from the moment at
// which the condition is met, only for its node, and is undone at its end.
#include "deploy/disk.h"
#include "inject_limits.h"
#include "inject_stage.h"

using namespace rose;
using namespace rose::test;

namespace {

struct Kinds : Stage {
  Kinds()
      : Stage({"time", "mkdir", "last", "print", "survived", "gate", "over", "time", "print", "after", "sleep",
               "60000"}) {
    leave_to_seccomp();
    add({"gate", "over", "print", "over", "sleep", "60000"});
    for (const kernel::Controller controller : {kernel::Controller::memory, kernel::Controller::cpu})
      if (!kernel::find_controller(controller)) missing += " controllers";
    if (!deploy::Disk::check() || !deploy::PacedFile::check()) missing += " disks";
  }

  // Each fault waits for the condition separately, and lasts until n4 prints its line.
  [[nodiscard]] std::string faults(const Moment& moment) {
    std::string text;
    const auto add_one = [&](const std::string& id, const std::string& what) {
      ids.push_back(id);
      text += fmt::format(
          "[[fault]]\nid = \"{}\"\nnode = \"n1\"\n{}\n{}\nuntil = [ {{ log = \"^over\", node = \"n4\" }} ]\n", id, what,
          moment.when);
    };
    add_one("link", "kind = \"network\"\npeers = [\"n2\"]\ndirection = \"in\"\ndelay = \"300ms\"");
    add_one("clock", "kind = \"clock\"\nshift = \"+1h\"");
    add_one("few", "kind = \"descriptors\"\nlimit = 40");
    if (!lacks("controllers")) {
      add_one("tight", "kind = \"memory\"\nlimit = \"512MiB\"");
      add_one("thin", "kind = \"cpu\"\nshare = 0.5");
    }
    if (!lacks("disks")) {
      add_one("full", "kind = \"disk-full\"\npath = \"full\"");
      add_one("slow", "kind = \"disk-slow\"\npath = \"slow\"\ndelay = \"20ms\"");
    }
    add_one("wait", "kind = \"block\"\nat = { syscall = \"mkdir\", path = \"*/last\" }");
    return text;
  }
  [[nodiscard]] bool lacks(std::string_view what) const { return missing.find(what) != std::string::npos; }
  [[nodiscard]] schedule::FaultOutcome outcome(std::string_view id) const {
    for (const auto& one : injector->outcomes())
      if (one.id == id) return one;
    return {};
  }
  std::int64_t ping_ms() {
    const std::int64_t began = monotonic_ns();
    REQUIRE(end_ping(start_ping(*this, 0, {"tcp", "10.251.9.2", "7100", "20000"})) == kEcho);
    return (monotonic_ns() - began) / kMillisecond;
  }
  // How far n1's clock was ahead when n1 printed the time for the nth time.
  [[nodiscard]] std::int64_t ahead_s(std::size_t nth) const {
    for (const std::string& line : split(out(), '\n'))
      if (line.starts_with("time ") && nth-- == 0)
        return std::atoll(line.c_str() + 5) - static_cast<std::int64_t>(std::time(nullptr));
    return -1;
  }
  void wait_fired_but(std::string_view last) {
    for (const std::string& id : ids) {
      INFO(id);
      if (id != last) REQUIRE(eventually([&] { return outcome(id).fired; }));
    }
  }

  void wait_ended() {
    for (const std::string& id : ids) {
      INFO(id);
      REQUIRE(eventually([&] { return outcome(id).ended_ns.has_value(); }));
    }
    injector->catch_up();  // because the end of a fault is carried out a little later
  }

  std::vector<std::string> ids;
  std::string missing;
};

}  // namespace

TEST_CASE("every other kind of fault fires at every kind of condition") {
  for (const auto& moment : moments()) {
    INFO(moment.name);
    Kinds stage;
    if (!stage.missing.empty()) WARN("left out, as this machine lacks them:" << stage.missing);
    const bool limits = !stage.lacks("controllers"), disks = !stage.lacks("disks");
    stage.reach_with(moment, stage.faults(moment));
    const pid_t pid = stage.deployment->main_pid(0), other = stage.deployment->main_pid(1);
    const auto of_other = descriptors_of(other);  // n1 had the same limit before the fault
    const std::string full = stage.path("n1/full"), slow = stage.path("n1/slow");

    stage.wait_fired_but("wait");
    REQUIRE(eventually([&] { return stage.outcome("clock").injected >= 1; }));
    CHECK(stage.ping_ms() >= 300);
    CHECK(eventually([&] { return has_descriptors(pid, 40); }));
    CHECK(descriptors_of(other).rlim_cur == of_other.rlim_cur);
    const auto memory = limits ? group_of(stage, kernel::Controller::memory, "n1") : "",
               cpu = limits ? group_of(stage, kernel::Controller::cpu, "n1") : "";
    if (limits) {
      CHECK(eventually([&] { return in_force(memory, kernel::Controller::memory, std::uint64_t{512} << 20); }));
      CHECK(eventually([&] { return in_force(cpu, kernel::Controller::cpu, 500'000); }));
    }
    if (disks) {
      int tries = 0;
      CHECK(eventually([&] { return error_of_write(fmt::format("{}/tried.{}", full, ++tries)) == ENOSPC; }));
      make_file(slow + "/file", 4 * kPage);
      CHECK(reads(slow + "/file", 1)[0] >= 20 * kMillisecond);
      CHECK(error_of_write(stage.path("n2/there")) == 0);
    }
    stage.touch("n1/go");
    stage.touch("n1/done");
    REQUIRE(eventually([&] { return stage.outcome("wait").fired; }));
    CHECK(std::abs(stage.ahead_s(0) - 3600) < 300);
    CHECK_FALSE(stage.exists("n1/last"));
    CHECK_FALSE(stage.printed("survived"));

    stage.touch("n4/over");
    stage.wait_printed("survived");
    stage.wait_ended();
    stage.touch("n1/over");
    stage.wait_printed("after");
    CHECK(std::abs(stage.ahead_s(1)) < 300);
    CHECK(eventually([&] { return stage.ping_ms() < 300; }));
    CHECK(descriptors_of(pid).rlim_cur == of_other.rlim_cur);
    if (limits) {
      CHECK(eventually([&] { return !in_force(memory, kernel::Controller::memory, std::uint64_t{512} << 20); }));
      CHECK(eventually([&] { return !in_force(cpu, kernel::Controller::cpu, 500'000); }));
    }
    if (disks) {
      CHECK(eventually([&] { return error_of_write(full + "/after") == 0; }));
      CHECK(eventually([&] { return reads(slow + "/file", 1)[0] < 20 * kMillisecond; }));
    }
    for (const auto& one : stage.finish()) {
      if (one.id == "first") continue;
      INFO(one.id << ": " << one.why_not);
      CHECK(one.fired);
      CHECK(one.ended_ns > one.fired_ns);
      for (const auto& condition : one.conditions) CHECK(condition.met);
    }
  }
}
