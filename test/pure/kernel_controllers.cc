// What is written to which file of a cgroup, so that memory and processor time are limited; cgroup v2 and v1.
#include <catch2/catch.hpp>
#include <filesystem>

#include "base/file.h"
#include "folder.h"
#include "kernel/controllers.h"

using namespace rose;
using namespace rose::kernel;
using Writes = std::vector<ControlWrite>;

TEST_CASE("limits by cgroup v2") {
  CHECK(limited(Controller::memory, true, 16 << 20) == Writes{{"memory.swap.max", "0", true}, {"memory.max", "16777216"}});
  CHECK(unlimited(Controller::memory, true) == Writes{{"memory.max", "max"}, {"memory.swap.max", "max", true}});
  CHECK(limited(Controller::cpu, true, 50'000) == Writes{{"cpu.max", "5000 100000"}});
  CHECK(limited(Controller::cpu, true, 2'500'000) == Writes{{"cpu.max", "250000 100000"}});
  CHECK(limited(Controller::cpu, true, 1) == Writes{{"cpu.max", "1000 100000"}});  // the kernel's least
  CHECK(unlimited(Controller::cpu, true) == Writes{{"cpu.max", "max 100000"}});
}

TEST_CASE("limits by cgroup v1") {
  CHECK(limited(Controller::memory, false, 16 << 20) ==
        Writes{{"memory.limit_in_bytes", "16777216"}, {"memory.memsw.limit_in_bytes", "16777216", true}});
  CHECK(unlimited(Controller::memory, false) == Writes{{"memory.memsw.limit_in_bytes", "-1", true}, {"memory.limit_in_bytes", "-1"}});
  CHECK(limited(Controller::cpu, false, 50'000) == Writes{{"cpu.cfs_period_us", "100000"}, {"cpu.cfs_quota_us", "5000"}});
  CHECK(unlimited(Controller::cpu, false) == Writes{{"cpu.cfs_quota_us", "-1"}});
}

// A folder of plain files: what is written can be read back, and what the kernel would count there is found.
TEST_CASE("limits are read back, and how often they were felt") {
  const test::Folder folder;
  const std::filesystem::path path = folder.path;
  for (const char* name : {"memory.max", "cpu.max"}) REQUIRE(write_file(path / name, ""));
  CHECK(write_all(path, limited(Controller::memory, true, 16 << 20)) == 0);  // no swap there
  CHECK(write_all(path, limited(Controller::cpu, true, 50'000)) == 0);
  CHECK(in_force(path, Controller::memory, true, 16 << 20));
  CHECK(in_force(path, Controller::memory, true, (16 << 20) + 100));  // rounded to pages
  CHECK_FALSE(in_force(path, Controller::memory, true, 32 << 20));
  CHECK(in_force(path, Controller::cpu, true, 50'000));
  CHECK_FALSE(in_force(path, Controller::cpu, true, 500'000));
  CHECK(write_all(path, limited(Controller::memory, false, 1 << 20)) == ENOENT);
  REQUIRE(write_file(path / "memory.events", "low 0\nhigh 0\nmax 7\noom 2\noom_kill 3\noom_group_kill 0\n"));
  REQUIRE(write_file(path / "memory.current", "4096\n"));
  REQUIRE(write_file(path / "cpu.stat", "usage_usec 5\nnr_periods 9\nnr_throttled 4\nthrottled_usec 2\n"));
  CHECK(times_felt(path, Controller::memory, true) == 3);
  CHECK(times_felt(path, Controller::cpu, true) == 4);
  CHECK(memory_used(path, true) == 4096);
}
