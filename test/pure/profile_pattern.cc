#include <catch2/catch.hpp>

#include "base/text.h"
#include "profile/profile.h"

using rose::profile::path_pattern;
using rose::profile::peer_pattern;
using rose::profile::tail_pattern;

TEST_CASE("parts of paths that differ between runs become wildcards") {
  struct Row {
    const char* path;
    const char* pattern;
  };
  const Row rows[] = {
      {"", ""},
      {"/", "/"},
      {"/tmp/rose-x1/n1/snapshot.12", "/tmp/rose-*/n*/snapshot.*"},
      {"/tmp/rose-run-7/n12/kv.log", "/tmp/rose-run-*/n*/kv.log"},
      // logs of databases
      {"/var/lib/postgresql/15/main/pg_wal/000000010000000000000001", "/var/lib/postgresql/*/main/pg_wal/*"},
      {"/data/etcd/member/wal/0000000000000003-000000000000abcd.wal", "/data/etcd/member/wal/*-*.wal"},
      {"/data/etcd/member/snap/0000000000000002-0000000000000011.snap", "/data/etcd/member/snap/*-*.snap"},
      {"/zk/version-2/log.100000001", "/zk/version-*/log.*"},
      {"/zk/version-2/snapshot.0", "/zk/version-*/snapshot.*"},
      {"/kafka/events-3/00000000000000000042.index", "/kafka/events-*/*.index"},
      {"/rocks/000012.sst", "/rocks/*.sst"},
      {"/rocks/MANIFEST-000005", "/rocks/MANIFEST-*"},
      {"/rocks/CURRENT", "/rocks/CURRENT"},
      {"/rocks/LOG.old.1700000000000", "/rocks/LOG.old.*"},
      {"/redis/temp-12345.rdb", "/redis/temp-*.rdb"},
      {"/redis/appendonlydir/appendonly.aof.12.incr.aof", "/redis/appendonlydir/appendonly.aof.*.incr.aof"},
      {"/redis/dump.rdb", "/redis/dump.rdb"},
      {"/mongo/WiredTiger.wt", "/mongo/WiredTiger.wt"},
      {"/mongo/journal/WiredTigerLog.0000000001", "/mongo/journal/WiredTigerLog.*"},
      {"/raft/log0001", "/raft/log*"},
      {"/raft/raft-log12", "/raft/raft-log*"},
      // proc, sys, devices, kernel objects
      {"/proc/123/status", "/proc/*/status"},
      {"/proc/self/task/77/comm", "/proc/self/task/*/comm"},
      {"/proc/sys/net/core/somaxconn", "/proc/sys/net/core/somaxconn"},
      {"/sys/fs/cgroup/cpu.max", "/sys/fs/cgroup/cpu.max"},
      {"pipe:[12345]", "pipe:[*]"},
      {"socket:[99]", "socket:[*]"},
      {"anon_inode:[eventpoll]", "anon_inode:[eventpoll]"},
      {"/dev/pts/3", "/dev/pts/*"},
      // temporary names
      {"/tmp/tmp.aB3xYz", "/tmp/tmp.*"},
      {"/tmp/tmp.aBxYzQ", "/tmp/tmp.*"},
      {"/tmp/tmp.abcd3e", "/tmp/tmp.*"},
      {"/tmp/tmp.Xk92bAqR7c", "/tmp/tmp.*"},
      {"/tmp/snapshot-aB3xYz", "/tmp/snapshot-*"},
      {"/tmp/snapshot_Q7xkLp.part", "/tmp/snapshot_*.part"},
      {"/tmp/tmpab12cd9x", "/tmp/tmp*"},
      {"/tmp/tmpk3_x9ab2", "/tmp/tmp*"},
      {"/tmp/file8273645512.tmp", "/tmp/file*.tmp"},
      {"/dev/shm/sem.Zz9aQw", "/dev/shm/sem.*"},
      {"/home/u/.cache/x.lock", "/home/u/.cache/x.lock"},
      // ids
      {"/data/550e8400-e29b-41d4-a716-446655440000/meta", "/data/*/meta"},
      {"/data/550E8400-E29B-41D4-A716-446655440000.json", "/data/*.json"},
      {"/var/lib/docker/overlay2/4f3c2b1a09/merged", "/var/lib/docker/overlay*/*/merged"},
      {"/objects/deadbeef", "/objects/*"},
      {"/objects/ab/cdef0123456789", "/objects/ab/*"},
      {"/logs/2025-01-02T03:04:05.log", "/logs/*-*-*:*:*.log"},
      {"/n/a1b2c3", "/n/*"},
      // words stay words
      {"/etc/ld.so.cache", "/etc/ld.so.cache"},
      {"/etc/passwd", "/etc/passwd"},
      {"/usr/lib/x86_64-linux-gnu/libc.so.6", "/usr/lib/x*_*-linux-gnu/libc.so.*"},
      {"/opt/README", "/opt/README"},
      {"/opt/my-LogDir/x", "/opt/my-LogDir/x"},
      {"/opt/facade/decade", "/opt/facade/decade"},
      {"/opt/kv-server/Status", "/opt/kv-server/Status"},
      {"/a/*", "/a/*"},
      {"/a/b**", "/a/b*"},
      {"relative/n3.log", "relative/n*.log"},
      {"//x//y", "//x//y"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.path);
    const std::string pattern = path_pattern(row.path);
    CHECK(pattern == row.pattern);
    CHECK(path_pattern(pattern) == pattern);     // a pattern is its own pattern
    CHECK(rose::glob_match(pattern, row.path));  // and matches the path that it was made from
  }
}

TEST_CASE("tail patterns match the same file in different folders") {
  CHECK(tail_pattern("/tmp/rose-x1/n1/snapshot.12") == "*/n*/snapshot.*");
  CHECK(tail_pattern("/srv/kv/n7/snapshot.3") == "*/n*/snapshot.*");
  CHECK(tail_pattern("/tmp/rose-x1/n1/snapshot.12", 1) == "*/snapshot.*");
  CHECK(tail_pattern("/tmp/rose-x1/n1/snapshot.12", 99) == "/tmp/rose-*/n*/snapshot.*");
  CHECK(tail_pattern("/etc/hosts") == "/etc/hosts");
  CHECK(tail_pattern("/hosts") == "/hosts");
  CHECK(tail_pattern("hosts") == "hosts");
  CHECK(tail_pattern("") == "");
  CHECK(tail_pattern("pipe:[123]") == "pipe:[*]");
  // The pattern must not be "*/*/*", because that would match every numbered file.
  CHECK(tail_pattern("/data/wal/12/34") == "*/wal/*/*");
  CHECK(tail_pattern("/1/2/3") == "/*/*/*");
  CHECK(tail_pattern(tail_pattern("/tmp/rose-x1/n1/snapshot.12")) == "*/n*/snapshot.*");
  CHECK(rose::glob_match(tail_pattern("/tmp/r/n1/snapshot.12"), "/srv/kv/n2/snapshot.9"));
}

TEST_CASE("ephemeral ports of peers become wildcards") {
  CHECK(peer_pattern("") == "");
  CHECK(peer_pattern("10.77.0.2:7000") == "10.77.0.2:7000");
  CHECK(peer_pattern("10.77.0.2:43210") == "10.77.0.2:*");
  CHECK(peer_pattern("[fd00::1]:7000") == "[fd00::1]:7000");
  CHECK(peer_pattern("[fd00::1]:50000") == "[fd00::1]:*");
  CHECK(peer_pattern("unix:/run/kv.12.sock") == "unix:/run/kv.*.sock");
  CHECK(peer_pattern("10.0.0.1:*") == "10.0.0.1:*");
  CHECK(peer_pattern("10.0.0.1:") == "10.0.0.1:");
  CHECK(peer_pattern("10.0.0.1:99999999999999999999") == "10.0.0.1:99999999999999999999");
  CHECK(peer_pattern("nonsense") == "nonsense");
}

TEST_CASE("unusual bytes and long paths are handled") {
  std::string odd;
  for (int i = 1; i < 256; ++i) odd += static_cast<char>(i);
  CHECK_FALSE(path_pattern(odd).empty());
  const std::string slashes(100000, '/');
  CHECK(path_pattern(slashes) == slashes);
  CHECK(tail_pattern(slashes).size() <= slashes.size());
  CHECK(path_pattern(std::string(100000, '7')) == "*");
}
