// Slow disks: they are as slow as configured, for as long as configured, and no other disk is slow.
#include <fcntl.h>
#include <signal.h>

#include "deploy/disk.h"
#include "inject_limits.h"

using namespace rose;
using namespace rose::test;

namespace {

void need_disks() {
  for (const auto& able : {deploy::Disk::check(), deploy::PacedFile::check()})
    if (!able) skip_case(able.error().message);
}

std::int64_t overwrite(const std::string& path, std::size_t bytes) {
  const Fd file(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
  const std::string much(bytes, 'y');
  const std::int64_t began = monotonic_ns();
  REQUIRE(::pwrite(file.get(), much.data(), much.size(), 0) == static_cast<ssize_t>(much.size()));
  REQUIRE(::fdatasync(file.get()) == 0);
  return monotonic_ns() - began;
}

}  // namespace

TEST_CASE("a slow disk delays each request as requested, on that disk only, until it ends", "[disks]") {
  need_disks();
  for (const std::string inside : {"", "data"}) {
    Rig rig;
    rig.add({"print", "up", "gate", "../never"});
    rig.add({"print", "up", "gate", "../never"});
    rig.prepare("[[fault]]\nid = \"slow\"\nkind = \"disk-slow\"\nnode = \"n1\"\ndelay = \"20ms\"\n" +
                (inside.empty() ? "" : "path = \"" + inside + "\"\n") +
                "until = [ { state = \"crashed\", node = \"n2\" } ]\n");
    const std::string folder = rig.path("n1") + (inside.empty() ? "" : "/" + inside);
    CHECK(mounted(folder));
    rig.wait_printed("up", 1);
    make_file(folder + "/file", 32 * kPage);
    make_file(rig.path("n2/file"), 32 * kPage);
    rig.begin();
    REQUIRE(eventually(
        [&] { return rig.injector->outcomes().at(0).fired && reads(folder + "/file", 1)[0] >= 20'000'000; }));
    const auto slow = reads(folder + "/file", 32), other = reads(rig.path("n2/file"), 32);
    CHECK(slow.front() >= 20'000'000);
    CHECK(other[16] < slow[16]);
    CHECK(overwrite(folder + "/file", kPage) >= 40'000'000);  // the write and the flush are delayed by 20 ms each
    REQUIRE(rig.deployment->signal(1, deploy::Scope::main, SIGKILL));
    REQUIRE(eventually([&] { return reads(folder + "/file", 1)[0] < 20'000'000; }));
    const auto outcome = rig.finish().at(0);
    CHECK(outcome.fired);
    CHECK(outcome.ended_ns);
    CHECK(outcome.injected >= 35);
    CHECK(outcome.detail.find("waited at the disk of n1" + (inside.empty() ? "" : "/" + inside)) != std::string::npos);
    CHECK_FALSE(mounted(folder));
    CHECK(rig.read("n1" + (inside.empty() ? "" : "/" + inside) + "/file").substr(0, kPage) == std::string(kPage, 'y'));
    CHECK(rig.out(0) == "up\n");
  }
}

TEST_CASE("a slow disk limits bytes and requests per second", "[disks]") {
  need_disks();
  Rig rig;
  rig.add({"print", "up", "gate", "../never"});
  rig.prepare(R"(
[[fault]]
id = "thin"
kind = "disk-slow"
node = "n1"
path = "a"
rate = "4MiB/s"
[[fault]]
id = "few"
kind = "disk-slow"
node = "n1"
path = "b"
iops = 100
[[fault]]
id = "fewer"
kind = "disk-slow"
node = "n1"
path = "b"
iops = 50
delay = "1ms"
)");
  make_file(rig.path("n1/a/file"), 1 << 20);
  make_file(rig.path("n1/b/file"), 32 * kPage);
  rig.begin();
  rig.injector->catch_up();
  CHECK(overwrite(rig.path("n1/a/file"), 1 << 20) >= 250'000'000);
  const std::int64_t began = monotonic_ns();
  const auto each = reads(rig.path("n1/b/file"), 20);
  CHECK(monotonic_ns() - began >= 19 * 20'000'000);
  CHECK(each.front() >= 1'000'000);
  for (const auto& outcome : rig.finish()) CHECK(outcome.fired);
}

TEST_CASE("a slow disk that also loses power loses unsynced data", "[disks]") {
  need_disks();
  Rig rig;
  auto& node = rig.add({"append", "kept", "write", "four", "fsync", "append", "lost", "write", "five", "print",
                        "written", "gate", "../never"});
  node.restart = config::Restart{};
  node.restart->max = 1;
  rig.start(R"(
[[fault]]
id = "slow"
kind = "disk-slow"
node = "n1"
iops = 200
[[fault]]
id = "power"
kind = "crash"
node = "n1"
lose = "unsynced"
when = [ { log = "written" } ]
)");
  REQUIRE(eventually([&] { return rig.lines("written") == 2; }));
  const auto outcomes = rig.finish();
  CHECK(outcomes.at(0).fired);
  CHECK(outcomes.at(1).fired);
  CHECK(outcomes.at(1).detail.find("1 gone") != std::string::npos);
  CHECK(std::filesystem::file_size(rig.path("n1/kept")) == 8);
}

TEST_CASE("slow disks are refused where they are not supported", "[disks]") {
  const auto refusal = [](Rig& rig, const std::string& more) {
    const auto refused = rig.try_prepare(
        "[[fault]]\nid = \"slow\"\nkind = \"disk-slow\"\nnode = \"n1\"\npath = \"data\"\niops = 10\n" + more);
    REQUIRE_FALSE(refused);
    return refused.error();
  };
  Rig attached;
  attached.allow_attached = true;
  config::Node node;
  node.name = "n1";
  node.attach = config::Attach{"x.pid", {}, {}, {}};
  attached.config.nodes.push_back(node);
  CHECK(refusal(attached, "").kind == ErrorKind::environment);
  Rig bare;
  bare.add({"print", "up"});
  const auto refused =
      bare.try_prepare("[[fault]]\nid = \"slow\"\nkind = \"disk-slow\"\nnode = \"n1\"\npath = \"/data\"\niops = 10\n");
  REQUIRE_FALSE(refused);
  CHECK(refused.error().message.find("path '/data' is absolute, but node 'n1' is not a container") !=
        std::string::npos);
  Rig rig;
  rig.add({"print", "up"});
  CHECK(refusal(rig, "[[fault]]\nid = \"full\"\nkind = \"disk-full\"\nnode = \"n1\"\n").message ==
        "fault 'slow': its folder is on the disk of fault 'full' too");
  Rig inside;
  inside.add({"print", "up"});
  CHECK(
      refusal(inside,
              "[[fault]]\nid = \"power\"\nkind = \"crash\"\nnode = \"n1\"\nlose = \"unsynced\"\npath = \"data/wal\"\n")
          .message == "fault 'slow': its folder is on the disk of fault 'power' too");
}
