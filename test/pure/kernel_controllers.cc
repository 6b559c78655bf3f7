// Which values rose writes to which files of a cgroup to limit memory and processor time, for cgroup v2 and v1.
#include <catch2/catch.hpp>
#include <filesystem>

#include "base/file.h"
#include "folder.h"
#include "kernel/controllers.h"
#include "kernel/own_limits.h"

using namespace rose;
using namespace rose::kernel;
using Writes = std::vector<ControlWrite>;

TEST_CASE("limits are written as cgroup v2 files") {
  CHECK(limited(Controller::memory, true, 16 << 20) ==
        Writes{{"memory.swap.max", "0", true}, {"memory.max", "16777216"}});
  CHECK(unlimited(Controller::memory, true) == Writes{{"memory.max", "max"}, {"memory.swap.max", "max", true}});
  CHECK(limited(Controller::cpu, true, 50'000) == Writes{{"cpu.max", "5000 100000"}});
  CHECK(limited(Controller::cpu, true, 2'500'000) == Writes{{"cpu.max", "250000 100000"}});
  // the kernel accepts no quota below 1000 us
  CHECK(limited(Controller::cpu, true, 1) == Writes{{"cpu.max", "1000 100000"}});
  CHECK(unlimited(Controller::cpu, true) == Writes{{"cpu.max", "max 100000"}});
}

TEST_CASE("limits are written as cgroup v1 files") {
  CHECK(limited(Controller::memory, false, 16 << 20) ==
        Writes{{"memory.limit_in_bytes", "16777216"}, {"memory.memsw.limit_in_bytes", "16777216", true}});
  CHECK(unlimited(Controller::memory, false) ==
        Writes{{"memory.memsw.limit_in_bytes", "-1", true}, {"memory.limit_in_bytes", "-1"}});
  CHECK(limited(Controller::cpu, false, 50'000) ==
        Writes{{"cpu.cfs_period_us", "100000"}, {"cpu.cfs_quota_us", "5000"}});
  CHECK(unlimited(Controller::cpu, false) == Writes{{"cpu.cfs_quota_us", "-1"}});
}

// Uses a folder of ordinary files in place of a cgroup. The values written to it must be read back, and so must the
// counters, which the kernel would maintain in a cgroup.
TEST_CASE("limits and their hit counts are read back") {
  const test::Folder folder;
  const std::filesystem::path path = folder.path;
  for (const char* name : {"memory.max", "cpu.max"}) REQUIRE(write_file(path / name, ""));
  // there is no file for a limit of swap here, which must not matter
  CHECK(write_all(path, limited(Controller::memory, true, 16 << 20)) == 0);
  CHECK(write_all(path, limited(Controller::cpu, true, 50'000)) == 0);
  CHECK(in_force(path, Controller::memory, true, 16 << 20));
  CHECK(in_force(path, Controller::memory, true, (16 << 20) + 100));  // the kernel rounds limits to pages
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

TEST_CASE("a cgroup's own limits are those that differ from a new cgroup's") {
  const test::Folder folder;
  const std::filesystem::path path = folder.path;
  const std::vector<std::pair<const char*, const char*>> new_ones = {
      {"memory.max", "max\n"},
      {"memory.low", "0\n"},
      {"memory.oom.group", "0\n"},
      {"cpu.max", "max 100000\n"},
      {"cpu.weight", "100\n"},
      {"cpu.max.burst", "0\n"},
      {"io.weight", "default 100\n"},
      {"cpuset.cpus", "\n"},
      {"rdma.max", "mlx4_0 hca_handle=max hca_object=max\n"},
      {"misc.max", "res_a max\n"},
      {"hugetlb.2MB.max", "9223372036854771712\n"},
      {"cgroup.max.depth", "3\n"},
      {"memory.pressure", "some 150000 1000000\n"}};
  for (const auto& [name, value] : new_ones) REQUIRE(write_file(path / name, value));
  CHECK(own_limits(path).empty());
  for (const auto& [name, value] : std::vector<std::pair<const char*, const char*>>{
           {"memory.max", "100663296\n"},
           {"memory.swap.max", "0\n"},
           {"cpu.max", "50000 100000\n"},
           {"pids.max", "0\n"},
           {"io.max",
            "8:0 rbps=1048576 wbps=max riops=max wiops=max\n8:16 rbps=max wbps=2097152 riops=max wiops=max\n"},
           {"rdma.max", "mlx4_0 hca_handle=2 hca_object=max\n"},
           {"cpuset.cpus", "0-1\n"}})
    REQUIRE(write_file(path / name, value));
  REQUIRE(write_file(path / "memory.peak.max", "7\n", 0400));  // only the kernel writes this file
  CHECK(own_limits(path) == std::vector<OwnLimit>{{"cpu.max", {"50000 100000"}},
                                                  {"cpuset.cpus", {"0-1"}},
                                                  {"io.max",
                                                   {"8:0 rbps=1048576 wbps=max riops=max wiops=max",
                                                    "8:16 rbps=max wbps=2097152 riops=max wiops=max"}},
                                                  {"memory.max", {"100663296"}},
                                                  {"memory.swap.max", {"0"}},
                                                  {"pids.max", {"0"}},
                                                  {"rdma.max", {"mlx4_0 hca_handle=2 hca_object=max"}}});
  CHECK(own_limits(path / "none").empty());
}
