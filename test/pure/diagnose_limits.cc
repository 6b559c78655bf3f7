// Failed calls in a dump may have been caused by a resource limit. Such limits are tested in addition to failing the
// calls themselves.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cerrno>
#include <csignal>
#include <set>

#include "diagnose_play.h"

using namespace rose;
using namespace rose::diagnose;
using namespace rose::diagnose::test;
using schedule::Fault;
using schedule::FaultKind;
using schedule::Schedule;

namespace {

Act makes(double t, std::string node, std::string syscall, std::string path) {
  return {t, std::move(node), "", std::move(syscall), std::move(path), true};
}

const std::set<FaultKind> kAll{FaultKind::descriptors, FaultKind::disk_full, FaultKind::memory, FaultKind::disk_slow};

bool only(const std::vector<Hit>& hits, FaultKind kind) {
  return hits.size() == 1 && hits[0].fault->kind == kind && hits[0].fault->node == "n1";
}

// Diagnoses a dump of a bug that occurs only with a fault of this kind.
Diagnosis found_with(FaultKind kind, const Dump& dump, std::vector<Act> acts, const std::set<FaultKind>& able = kAll) {
  config::Config config = deployment(3);
  config.diagnose.levels = {1, 2};
  Play play(std::move(acts), [kind](const std::vector<Hit>& hits, int) { return only(hits, kind); });
  Inputs inputs = inputs_of(config, {dump});
  inputs.limits = able;
  auto d = diagnose::diagnose(inputs, play, {});
  REQUIRE(d);
  if (!able.contains(kind))
    for (const Schedule& made : play.made)
      for (const Fault& fault : made.faults) CHECK(fault.kind != kind);
  return *std::move(d);
}

// True if the search tried a schedule again with its faults armed earlier, because they had been armed too late. The
// first fault must be of this kind. Unless it is a full disk, the schedule must have several faults.
bool earlier(const Diagnosis& d, FaultKind kind) {
  return std::any_of(d.tried.begin(), d.tried.end(), [&](const Tried& tried) {
    const auto& faults = tried.schedule.faults;
    return tried.note.find("armed earlier") != std::string::npos && faults[0].kind == kind &&
           (kind == FaultKind::disk_full || faults.size() > 1);
  });
}

}  // namespace

TEST_CASE("for calls that fail with EMFILE, ENFILE, ENOSPC or EDQUOT the real limit is tried as well") {
  for (const auto& [error, kind] : {std::pair{EMFILE, FaultKind::descriptors},
                                    {ENFILE, FaultKind::descriptors},
                                    {ENOSPC, FaultKind::disk_full},
                                    {EDQUOT, FaultKind::disk_full}}) {
    Dump dump;
    dump.scf(3, "n1", "openat", error, "/data/n1/log.1");
    dump.scf(3.1, "n1", "openat", error, "/data/n1/index");
    dump.ends(30);
    const Diagnosis d = found_with(kind, dump, {makes(3, "n1", "openat", "/data/n1/log.1")});
    CHECK(d.target_reached);
    REQUIRE(d.found);
    const Fault* fault = fault_of(*d.found, kind, "n1");
    REQUIRE(fault != nullptr);
    if (kind == FaultKind::descriptors) CHECK(fault->resource.limit == 16);
    CHECK(schedule::parse_schedule(schedule::to_toml(*d.found), "s.toml"));
    CHECK_FALSE(found_with(kind, dump, {makes(3, "n1", "openat", "/data/n1/log.1")}, {}).target_reached);
  }
}

TEST_CASE("a full disk that comes after the last write is tried earlier") {
  Dump dump;
  dump.scf(8, "n1", "pwrite64", ENOSPC, "/data/n1/log.1");
  dump.ends(30);
  // The test deployment writes the file sooner than production did, and only a full disk reproduces the bug.
  Play play({makes(2.5, "n1", "pwrite64", "/data/n1/log.1")}, [](const std::vector<Hit>& hits, int) {
    if (!only(hits, FaultKind::disk_full)) return false;
    const Fault& fault = *hits[0].fault;
    return fault.when.empty() || fault.when[0].elapsed_ns <= 2500 * kMillisecond;
  });
  const config::Config config = deployment(3);
  Inputs inputs = inputs_of(config, {dump});
  inputs.limits = kAll;
  const auto d = diagnose::diagnose(inputs, play, {});
  REQUIRE(d);
  CHECK(d->target_reached);
  REQUIRE(d->found);
  CHECK(fault_of(*d->found, FaultKind::disk_full, "n1") != nullptr);
  CHECK(earlier(*d, FaultKind::disk_full));
}

TEST_CASE("failed calls with one cause that were armed too late are armed earlier together") {
  Dump dump;
  for (int i = 0; i < 3; ++i)
    dump.scf(8 + 0.1 * i, "n1", "pwrite64", EIO, fmt::format("/data/n1/log.{}", static_cast<char>('a' + i)));
  dump.ends(30);
  const config::Config config = deployment(3);
  std::vector<Act> acts;
  for (int i = 0; i < 3; ++i)
    acts.push_back(makes(2.5 + 0.1 * i, "n1", "pwrite64", fmt::format("/data/n1/log.{}", static_cast<char>('a' + i))));
  Play play(std::move(acts), [](const std::vector<Hit>& hits, int) { return hits.size() >= 3; });
  const auto d = diagnose::diagnose(inputs_of(config, {dump}), play, {});
  REQUIRE(d);
  CHECK(d->target_reached);
  CHECK(earlier(*d, FaultKind::syscall));
}

TEST_CASE("if the dump does not record the workload's start, a full disk is tried from later times as well") {
  Dump dump;
  dump.meta().workload_ts = 0;
  dump.scf(3, "n1", "write", ENOSPC, "/data/n1/log.1");
  dump.ends(30);
  config::Config config = deployment(3);
  Play play({makes(3, "n1", "openat", "/data/n1/log.1")},
            [&](const std::vector<Hit>& hits, int) { return only(hits, FaultKind::disk_full) && hits[0].t > 10; });
  Inputs inputs = inputs_of(config, {dump});
  inputs.limits = kAll;
  const auto d = diagnose::diagnose(inputs, play, {});
  REQUIRE(d);
  INFO(d->reason);
  CHECK(d->target_reached);
  REQUIRE(d->found);
  CHECK(fault_of(*d->found, FaultKind::disk_full, "n1") != nullptr);
}

TEST_CASE("if all failed paths lie in one subfolder, a disk for that subfolder alone is filled") {
  Dump dump;
  dump.scf(3, "n1", "write", ENOSPC, "/tmp/runs/7/n1/data/log.1");
  dump.scf(3.1, "n1", "openat", ENOSPC, "/tmp/runs/7/n1/data/index");
  dump.ends(30);
  config::Config config = deployment(3);
  Play play({makes(3, "n1", "write", "/tmp/runs/8/n1/data/log.1")}, [&](const std::vector<Hit>& hits, int) {
    return only(hits, FaultKind::disk_full) && hits[0].fault->resource.folder == "data";
  });
  Inputs inputs = inputs_of(config, {dump});
  inputs.limits = kAll;
  const auto d = diagnose::diagnose(inputs, play, {});
  REQUIRE(d);
  INFO(d->reason);
  CHECK(d->target_reached);
  // This program fails only when there is space again, so the disk must not stay full.
  Play again({makes(3, "n1", "write", "/tmp/runs/8/n1/data/log.1")}, [&](const std::vector<Hit>& hits, int) {
    return only(hits, FaultKind::disk_full) && hits[0].fault->resource.folder == "data" &&
           hits[0].fault->duration_ns > 0;
  });
  const auto found = diagnose::diagnose(inputs, again, {});
  REQUIRE(found);
  CHECK(found->target_reached);
  // If a failed path lies in another subfolder, no disk for a single subfolder may be filled.
  dump.scf(3.2, "n1", "openat", ENOSPC, "/tmp/runs/7/n1/other/index");
  Inputs both = inputs_of(config, {dump});
  both.limits = kAll;
  REQUIRE(diagnose::diagnose(both, play, {}));
  CHECK(std::none_of(play.made.begin() + d->runs, play.made.end(), [](const Schedule& made) {
    return std::any_of(made.faults.begin(), made.faults.end(), [](const Fault& fault) {
      return fault.kind == FaultKind::disk_full && !fault.resource.folder.empty();
    });
  }));
}

TEST_CASE("in a container, the disks of all volumes are filled") {
  Dump dump;
  dump.scf(3, "n1", "write", ENOSPC, "/tmp/runs/7/n1/data/log.1");
  dump.scf(3.1, "n1", "openat", ENOSPC, "/tmp/runs/7/n1/data/index");
  dump.ends(30);
  config::Config config = deployment(3);
  config.nodes[0].container = config::Container{};
  Play play({makes(3, "n1", "write", "/data/log.1")},
            [&](const std::vector<Hit>& hits, int) { return only(hits, FaultKind::disk_full); });
  Inputs inputs = inputs_of(config, {dump});
  inputs.limits = kAll;
  const auto d = diagnose::diagnose(inputs, play, {});
  REQUIRE(d);
  INFO(d->reason);
  CHECK(d->target_reached);
  for (const Schedule& made : play.made)
    for (const Fault& fault : made.faults) CHECK(fault.resource.folder.empty());
}

TEST_CASE("if one EMFILE reproduces the bug too rarely, a descriptor limit is tried next") {
  Dump dump;
  dump.scf(3, "n1", "openat", EMFILE, "/data/n1/log.1");
  dump.ends(30);
  std::vector<Act> acts;
  for (int i = 0; i < 12; ++i) acts.push_back(makes(1 + i, "n1", "openat", "/data/n1/log.1"));
  config::Config config = deployment(3);
  int times = 0;
  // If calls fail, the bug occurs in every third run, whichever calls they are.
  Play play(std::move(acts), [&](const std::vector<Hit>& hits, int) {
    if (only(hits, FaultKind::descriptors)) return true;
    return !hits.empty() && times++ % 3 == 0;
  });
  Inputs inputs = inputs_of(config, {dump});
  inputs.limits = kAll;
  const auto d = diagnose::diagnose(inputs, play, {});
  REQUIRE(d);
  INFO(d->reason);
  CHECK(d->target_reached);
  REQUIRE(d->found);
  CHECK(fault_of(*d->found, FaultKind::descriptors, "n1") != nullptr);
  CHECK(d->schedules == 2);
}

TEST_CASE("a node with few open descriptors gets a lower limit when a higher one has no effect") {
  Dump dump;
  dump.scf(3, "n1", "openat", EMFILE, "/data/n1/log.1");
  dump.ends(30);
  config::Config config = deployment(3);
  Play play({makes(3, "n1", "openat", "/data/n1/log.1")}, [&](const std::vector<Hit>& hits, int) {
    return only(hits, FaultKind::descriptors) && hits[0].fault->resource.limit < 8;
  });
  Inputs inputs = inputs_of(config, {dump});
  inputs.limits = kAll;
  const auto d = diagnose::diagnose(inputs, play, {});
  REQUIRE(d);
  INFO(d->reason);
  CHECK(d->target_reached);
  REQUIRE(d->found);
  CHECK(fault_of(*d->found, FaultKind::descriptors, "n1") != nullptr);
}

TEST_CASE("a kill by the OOM killer is tried as a memory limit that lasts until the node has crashed") {
  Dump dump;
  dump.crashed(4, "n1", SIGKILL, trace::kMain | trace::kOutOfMemory);
  dump.ends(30);
  const Diagnosis d = found_with(FaultKind::memory, dump, {makes(3, "n1", "rename", "/data/n1/log.1")});
  CHECK(d.target_reached);
  REQUIRE(d.found);
  const Fault* fault = fault_of(*d.found, FaultKind::memory, "n1");
  REQUIRE(fault != nullptr);
  CHECK(fault->resource.limit == 1 << 20);
  REQUIRE(d.plan.candidates.size() == 1);
  CHECK(d.plan.candidates[0].why.ends_with("by the kernel's OOM killer"));
  CHECK(fault->until.size() == 1);
  // This process is a helper, because its end lacks the flag kMain, and the main process goes on. So no restart is
  // needed.
  Dump helper;
  helper.started(0, "n1").flags = trace::kMain;
  helper.crashed(4, "n1", SIGKILL, trace::kOutOfMemory);
  helper.ends(30);
  const Diagnosis of_helper = found_with(FaultKind::memory, helper, {makes(3, "n1", "rename", "/data/n1/log.1")});
  REQUIRE(of_helper.found);
  fault = fault_of(*of_helper.found, FaultKind::memory, "n1");
  REQUIRE(fault != nullptr);
  REQUIRE(fault->until.size() == 1);
  CHECK(fault->until[0].state == schedule::kOutOfMemory);  // the limit ends with the helper
  // If the process was not killed because of a lack of memory, no memory limit is tried.
  Dump killed;
  killed.crashed(4, "n1");
  killed.ends(30);
  CHECK_FALSE(found_with(FaultKind::memory, killed, {makes(3, "n1", "rename", "/data/n1/log.1")}).target_reached);
}

TEST_CASE("a crash by SIGBUS is tried as a full disk under a memory-mapped file") {
  Dump dump;
  dump.crashed(8, "n1", SIGBUS);
  dump.ends(30);
  const Diagnosis d = found_with(FaultKind::disk_full, dump, {makes(6, "n1", "rename", "/data/n1/log.1")});
  CHECK(d.target_reached);
  CHECK(d.schedules == 1);
  REQUIRE(d.found);
  REQUIRE(fault_of(*d.found, FaultKind::disk_full, "n1") != nullptr);
}

TEST_CASE("a process that was blocked by its disk is tried as a slow disk") {
  Dump dump;
  dump.paused(4, 8, "n1").flags |= trace::kBlocked;
  dump.ends(30);
  const Diagnosis d = found_with(FaultKind::disk_slow, dump, {makes(3, "n1", "rename", "/data/n1/log.1")});
  CHECK(d.target_reached);
  REQUIRE(d.found);
  const Fault* fault = fault_of(*d.found, FaultKind::disk_slow, "n1");
  REQUIRE(fault != nullptr);
  CHECK(fault->resource.delay_ns == 800'000'000);
}
