#include "logs_support.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <fstream>

#include "folder.h"
#include "kernel/syscalls.h"
#include "logs/evidence.h"
#include "logs/hint/hint.h"
#include "logs/meaning.h"
#include "logs/quote.h"

using namespace rose;
using namespace rose::logs;
using namespace rose::logs::test;

namespace {

std::vector<Hint> hints_of(const Logs& failure, const Logs& normal, Templates& kinds,
                           const std::vector<NodeName>& names = {{"n1", {}}}) {
  const Difference difference = compare(failure, normal, kinds);
  return find_hints(failure, normal, difference, names);
}

}  // namespace

// The messages are those of real systems, word for word.
TEST_CASE("a message's error, call, path and peer are read") {
  struct Row {
    const char* text;
    int error;
    const char* call;  // the call that most likely failed
    const char* path;
    const char* peer;
  };
  const Row rows[] = {
      {"Write error saving DB on disk(rdbSaveRio): No space left on device", ENOSPC, "write", "", ""},
      {"Failed opening the temp RDB file temp-333.rdb (in server root dir /data) for saving: No space left on device",
       ENOSPC, "write", "/data/*", ""},
      {"could not write to file \"pg_wal/xlogtemp.1520\": No space left on device", ENOSPC, "write",
       "pg_wal/xlogtemp.1520", ""},
      {"could not fsync file \"base/13/2601\": Input/output error", EIO, "fsync", "base/13/2601", ""},
      {"*7 open() \"/srv/www/none\" failed (2: No such file or directory), client: 127.0.0.1, server: , request: \"GET "
       "/none HTTP/1.1\"",
       ENOENT, "openat", "/srv/www/none", ""},
      {"*10 pwrite() \"/mnt/tmp/0000000001\" failed (28: No space left on device), client: 127.0.0.1", ENOSPC, "write",
       "/mnt/tmp/0000000001", ""},
      {"*7 connect() failed (111: Connection refused) while connecting to upstream, client: 127.0.0.1, upstream: "
       "\"http://10.0.0.2:9001/app/\"",
       ECONNREFUSED, "connect", "", "10.0.0.2:9001"},
      {"Error trying to connect to route (attempt 1): dial tcp 127.0.0.1:6223: connect: connection refused",
       ECONNREFUSED, "connect", "", "127.0.0.1:6223"},
      {"cannot save record 2\nTraceback (most recent call last):\n  File \"store.py\", line 7\nOSError: [Errno 28] No "
       "space left on device",
       ENOSPC, "write", "", ""},
      // Python: the call is in the line of source code. `flush` writes what is buffered and does not synchronise a
      // disk.
      {"Traceback (most recent call last):\n  File \"journal.py\", line 141, in storeMeta\n    f.flush()\nOSError: "
       "[Errno 28] No space left on device",
       ENOSPC, "write", "", ""},
      {"cannot save\nTraceback (most recent call last):\n  File \"x.py\", line 9, in save\n    os.fsync(f.fileno())\n"
       "    ^^^^^^^^^^^^^^^^^^^^\nOSError: [Errno 5] Input/output error",
       EIO, "fsync", "", ""},
      {"FileNotFoundError: [Errno 2] No such file or directory: '/srv/sv/none/x'", ENOENT, "openat", "/srv/sv/none/x",
       ""},
      {"kv.StoreException: [12] could not mmap column [fd=47, size=1048576]", ENOMEM, "mmap", "", ""},
      {"IO error: While lock file: /srv/kv/LOCK: Resource temporarily unavailable", EAGAIN, "flock", "/srv/kv/LOCK",
       ""},
      {"peer 127.0.0.1:7002 is lost: [Errno 111] Connection refused", ECONNREFUSED, "connect", "", "127.0.0.1:7002"},
      {"cannot open /var/backups/db.tar: Permission denied", EACCES, "openat", "/var/backups/db.tar", ""},
      {"Severe unrecoverable error, exiting\njava.io.IOException: No space left on device\n\tat "
       "java.io.FileOutputStream.writeBytes(Native Method)",
       ENOSPC, "write", "", ""},
      {"java.nio.file.AccessDeniedException: /var/lib/x/log.1", EACCES, "openat", "/var/lib/x/log.1", ""},
      {"accept4: too many open files; retrying in 5ms", EMFILE, "accept4", "", ""},
      {"fsync of /data/wal/000.wal failed with EIO", EIO, "fsync", "/data/wal/000.wal", ""},
      {"thread 'main' panicked at 'called `Result::unwrap()` on an `Err` value: Os { code: 28, kind: StorageFull, "
       "message: \"No space left on device\" }'",
       ENOSPC, "write", "", ""},
      {"rename data.tmp failed: os error 5", EIO, "rename", "data.tmp", ""},
      {"can't start new thread", EAGAIN, "clone", "", ""},
      {"read tcp 10.0.0.1:2380->10.0.0.3:50412: read: connection reset by peer", ECONNRESET, "read", "",
       "10.0.0.3:50412"},
      // Kafka
      {"Error while appending records to orders-3 in dir /var/lib/kafka/data\njava.io.IOException: No space left on "
       "device\n\tat java.base/sun.nio.ch.FileDispatcherImpl.write0(Native Method)\n\tat "
       "java.base/sun.nio.ch.IOUtil.write(IOUtil.java:113)",
       ENOSPC, "write", "/var/lib/kafka/data/*", ""},
      // Cassandra, HDFS, Elasticsearch: only the stack trace shows the call
      {"Failed managing commit log segments. Commit disk failure policy is stop; terminating "
       "thread.\norg.apache.cassandra.io.FSWriteError: java.io.IOException: No space left on device\n\tat "
       "java.base/sun.nio.ch.FileDispatcherImpl.truncate0(Native Method)",
       ENOSPC, "ftruncate", "", ""},
      {"IOException in BlockReceiver.run(): \njava.io.IOException: Connection reset by peer\n\tat "
       "sun.nio.ch.FileDispatcherImpl.write0(Native Method)",
       ECONNRESET, "write", "", ""},
      {"[logs][0] failed engine [translog trimming failed]\njava.io.IOException: Input/output error\n\tat "
       "sun.nio.ch.FileDispatcherImpl.force0(Native Method) ~[?:?]",
       EIO, "fsync", "", ""},
      {"org.apache.hadoop.util.DiskChecker$DiskOutOfSpaceException: Out of space: The volume with the most available "
       "space (=12288 B) is less than the block size (=134217728 B).",
       ENOSPC, "write", "", ""},
      // MySQL: the error number is more exact than the advice that follows it
      {"Write to file ./shop/orders.ibd failed at offset 113246208, 1048576 bytes should have been written, only 0 "
       "were written. Operating system error number 28. Check that your OS and file system support files of this size. "
       "Check also that the disk is not full or a disk quota exceeded.",
       ENOSPC, "write", "./shop/orders.ibd", ""},
      {"error reconnecting to master 'repl@10.0.0.2:3306' - retry-time: 60 retries: 1 message: Can't connect to MySQL "
       "server on '10.0.0.2' (111), Error_code: MY-002003",
       ECONNREFUSED, "connect", "", "10.0.0.2"},
      // MongoDB
      {"[1717228820:000000][1:0x7f], file:collection-2.wt, WT_SESSION.checkpoint: __posix_file_write, 539: "
       "/data/db/collection-2.wt: handle-write: pwrite: failed to write 4096 bytes at offset 36864: No space left on "
       "device",
       ENOSPC, "write", "/data/db/collection-2.wt", ""},
      // RabbitMQ
      {"** {badmatch,{error,enospc}}", ENOSPC, "write", "", ""},
      {"Free disk space is insufficient. Free bytes: 40960. Limit: 50000000", ENOSPC, "write", "", ""},
      // Consul, CockroachDB, TiKV, ClickHouse, Ceph
      {"failed to commit logs: error=\"write /consul/data/raft/raft.db: no space left on device\"", ENOSPC, "write",
       "/consul/data/raft/raft.db", ""},
      {"closing connection after: rpc error: code = Unavailable desc = connection error: desc = \"transport: Error "
       "while dialing: dial tcp 10.0.0.2:26257: connect: no route to host\"",
       EHOSTUNREACH, "connect", "", "10.0.0.2:26257"},
      {"rocksdb background error. db: kv, reason: flush, error: IO error: No space left on device: While appending to "
       "file: /var/lib/tikv/db/000123.sst: No space left on device",
       ENOSPC, "write", "/var/lib/tikv/db/000123.sst", ""},
      {"{abc} <Error> executeQuery: Code: 243. DB::Exception: Cannot reserve 1.00 MiB, not enough space. "
       "(NOT_ENOUGH_SPACE) (version 24.3)",
       ENOSPC, "write", "", ""},
      {"bdev(0x55 /var/lib/ceph/osd/ceph-1/block) _aio_thread got r=-5 ((5) Input/output error)", EIO, "write",
       "/var/lib/ceph/osd/ceph-1/block", ""},
      // Elasticsearch
      {"flood stage disk watermark [95%] exceeded on [abc][es01][/usr/share/elasticsearch/data] free: 1gb[3.1%], all "
       "indices on this node will be marked read-only",
       ENOSPC, "write", "/usr/share/elasticsearch/data", ""},
      // nginx
      {"*8 socket() failed (24: Too many open files) while connecting to upstream, client: 10.0.0.9, server: _, "
       "request: \"GET / HTTP/1.1\"",
       EMFILE, "socket", "", ""},
      {"accept4() failed (24: Too many open files)", EMFILE, "accept4", "", ""},
      // PostgreSQL
      {"could not extend file \"base/16384/16385\": No space left on device", ENOSPC, "write", "base/16384/16385", ""},
      // glog, Rust, Python, .NET: an identifier of code is not a path
      {"Failed to shutdown socket with fd 12: Transport endpoint is not connected", ENOTCONN, "", "", ""},
      {"append failed: Os { code: 5, kind: Uncategorized, message: \"Input/output error\" }", EIO, "write", "", ""},
      {"could not save\nTraceback (most recent call last):\n  File \"/srv/kv/store.py\", line 12, in save\n    "
       "os.replace(tmp, path)\nOSError: [Errno 28] No space left on device: '/srv/kv/data/db.tmp' -> '/srv/kv/data/db'",
       ENOSPC, "rename", "/srv/kv/data/db.tmp", ""},
      {"System.IO.IOException: No space left on device : '/var/lib/svc/state.bin'\n   at Svc.Store.Save(String path) "
       "in /src/Store.cs:line 33",
       ENOSPC, "write", "/var/lib/svc/state.bin", ""},
      // the kernel
      {"EXT4-fs (sda1): Remounting filesystem read-only", EROFS, "openat", "", ""},
      // Open vSwitch
      {"raft|ERR|I/O error: data/db: write failed (No space left on device)", ENOSPC, "write", "data/db", ""},
      {"raft|ERR|internal error: deferred message completed but not ready to send: f71f append_reply \"I/O error\": "
       "term=1 result=\"I/O error\"",
       EIO, "write", "", ""},
      {"Buffer I/O error on dev dm-0, logical block 12, lost async page write", EIO, "fsync", "", ""},
      {"saved record 1, 400000 bytes", 0, "", "", ""},
      {"GET /api/v1/open HTTP/1.1 200 (12)", 0, "", "", ""},
      {"Ready to accept connections", 0, "", "", ""},
      // Node.js: verdaccio, undici
      {"ERR, req: 'GET http://registry-eu-01.corp:8080/lib20', error: ESOCKETTIMEDOUT", ETIMEDOUT, "connect", "", ""},
      {"request failed: Error: socket hang up", ECONNRESET, "read", "", ""},
      {"TypeError: fetch failed, cause: ConnectTimeoutError UND_ERR_CONNECT_TIMEOUT", ETIMEDOUT, "connect", "", ""},
      // NSQ and others: a path may contain colons and blanks
      {"DISKQUEUE(orders:billing): failed to sync - write /srv/q/orders:billing.diskqueue.000000.dat: no space left on "
       "device",
       ENOSPC, "write", "/srv/q/orders:billing.diskqueue.000000.dat", ""},
      {"cannot keep it: write failed: '/srv/q/job:42.json': Input/output error", EIO, "write", "/srv/q/job:42.json",
       ""},
      {"OSError: [Errno 28] No space left on device: '/srv/shop/data/order: 7.json'", ENOSPC, "write",
       "/srv/shop/data/order: 7.json", ""},
      {"store/wal.go:17: cannot save: disk full", ENOSPC, "write", "", ""},
      {"/build/src/blk/KernelDevice.cc: 604: abort(\"Unexpected IO error.\")", EIO, "write", "", ""},
      {"src/store/wal.cpp(604): cannot save: disk full", ENOSPC, "write", "", ""},
      {"fork failed: Cannot allocate memory at /usr/share/perl5/Shop/Master.pm line 412.", ENOMEM, "clone", "", ""},
      {"[Errno 30] Read-only file system: '//config/shop.db' -> '//config/shop.db.old'", EROFS, "rename",
       "/config/shop.db", ""},
      {"IO error: /mnt/farmer.db/047369.ldb: Muitos arquivos abertos", EMFILE, "openat", "/mnt/farmer.db/047369.ldb",
       ""},
      {"kann /srv/x.db nicht schreiben: Auf dem Ger\u00e4t ist kein Speicherplatz mehr verf\u00fcgbar", ENOSPC, "write",
       "/srv/x.db", ""},
      {"db shop died with reason {{badmatch,{error,enospc}},[{couch_btree,write_node,3,[{file,\"src/couch_btree.erl\"},"
       "{line,444}]}]}",
       ENOSPC, "write", "", ""},
      {"index [shop] blocked by: [TOO_MANY_REQUESTS/12/disk usage exceeded flood-stage watermark, index has read-only "
       "block]",
       ENOSPC, "write", "", ""},
      // an error number in brackets before the words for the failure, and one after a comma at the end
      {"RaftInstance: peer (1) response error: failed to connect to peer 1, 10.80.32.1:9444, error 111", ECONNREFUSED,
       "connect", "", "10.80.32.1:9444"},
      {"session 1 failed to read the header from 10.0.0.2:40728 due to error 2", 0, "", "", "10.0.0.2:40728"},
      {"Server refused connection: http://10.0.0.5:8080/v1/info", ECONNREFUSED, "connect", "", "10.0.0.5:8080"},
      // addresses may be IPv6 addresses
      {"read tcp [fd00::1]:40122->[fd00:0::2]:7000: i/o timeout", ETIMEDOUT, "read", "", "[fd00::2]:7000"},
      {"cannot reach fd00::2: connection refused", ECONNREFUSED, "connect", "", "fd00::2"},
      {"killing connection to peer [::ffff:10.0.0.2]:36494: i/o timeout", ETIMEDOUT, "connect", "", "10.0.0.2:36494"},
      {"std::fs::add at 10:00:00 on [::]:80: connection refused", ECONNREFUSED, "connect", "", ""},
  };
  for (const Row& row : rows) {
    INFO(row.text);
    const Meaning meaning = read_meaning(row.text);
    CHECK(kernel::errno_name(meaning.error) == kernel::errno_name(row.error));
    const std::vector<std::string_view> calls = calls_that_fail(meaning.error, meaning.operation);
    CHECK(std::string(calls.empty() || meaning.error == 0 ? "" : calls[0]) == row.call);
    CHECK(meaning.path == row.path);
    CHECK(meaning.peer == row.peer);
  }
}

TEST_CASE("an I/O error of a connection is not one of a file", "[logs]") {
  const Meaning meaning = read_meaning("level=error msg=\"I/O error\" error=\"tcp://10.0.0.2:9000: r/w timeout\"");
  CHECK(meaning.error == 0);
  CHECK(meaning.lost);
  CHECK(meaning.peer == "10.0.0.2:9000");
  CHECK(read_meaning("/srv/a.db: Input/output error, timeout of 10.0.0.2:9000").error == EIO);
  CHECK(read_meaning("client 10.0.0.2:9000 waits: Input/output error").error == EIO);
}

TEST_CASE("a lock that another process holds fails as a lock", "[logs]") {
  for (const char* text : {"Failed to acquire lock on file .lock in /srv/journal. An instance in another process or "
                           "thread is using this directory.",
                           "failed to open WAL: file already locked", "!FATAL: Database lock '.gdk_lock' denied"}) {
    CAPTURE(text);
    const Meaning meaning = read_meaning(text);
    CHECK(meaning.error == EAGAIN);
    CHECK(calls_that_fail(meaning.error, meaning.operation).front() == "flock");
  }
  CHECK(calls_that_fail(EAGAIN, Operation::spawn).front() == "clone");
  CHECK(read_meaning("lock wait timeout exceeded; try restarting transaction").error == 0);
  CHECK(read_meaning("row is locked by another transaction").error == 0);
  CHECK(read_meaning("cannot write the lock file x.lock: No space left on device").error == ENOSPC);
}

TEST_CASE("a connection's error is not assigned to a call on files", "[logs]") {
  const std::vector<std::string_view> calls = calls_that_fail(ECONNREFUSED, Operation::sync);
  CHECK(calls == std::vector<std::string_view>{"connect"});
}

TEST_CASE("reports of an interrupted previous life are read", "[logs]") {
  for (const char* text : {"database system was not properly shut down; automatic recovery in progress",
                           "Unclean shutdown detected", "recovering after a crash"})
    CHECK(read_meaning(text).unclean);
  for (const char* text : {"Corruption: block checksum mismatch", "database disk image is malformed",
                           "Expected end of file '/srv/x/series.dat'", "segment 12 is corrupted",
                           "csum failed root 257 ino 34956 off 0 csum 0xf5f4f143 expected csum 0x0 mirror 1",
                           "page verification failed, calculated checksum 1 but expected 2"})
    CHECK(read_meaning(text).torn);
  CHECK(read_meaning("Expected end of file '/srv/x/series.dat'").path == "/srv/x/series.dat");
  for (const char* text : {"shut down cleanly", "the database was closed normally", "no corrupt blocks were found",
                           "malformed request from 10.0.0.2", "bad checksum of a packet", "csum failed of a packet",
                           "signature verification failed", "may be corrupted"}) {
    CAPTURE(text);
    CHECK_FALSE(read_meaning(text).torn);
    CHECK_FALSE(read_meaning(text).unclean);
  }
}

TEST_CASE("the address of a client is not taken for a peer", "[logs]") {
  for (const char* text : {"cannot connect to the database: Connection refused remoteAddr=198.51.100.7 version=3.1.0.2",
                           "connect() failed (111: Connection refused), client: 198.51.100.7, server: shop"}) {
    CAPTURE(text);
    CHECK(read_meaning(text).peer.empty());
  }
  CHECK(read_meaning("cannot connect: Connection refused addr=198.51.100.7").peer == "198.51.100.7");
  CHECK(read_meaning("cannot connect: Connection refused remote_addr=198.51.100.7:2380").peer == "198.51.100.7:2380");
  CHECK(read_meaning("Lost connection to client: 198.51.100.7").peer == "198.51.100.7");
}

TEST_CASE("a certificate that is not valid yet means a wrong clock", "[logs]") {
  for (const char* text : {"Received a not-yet-valid certificate from: n2", "code: 'CERT_NOT_YET_VALID'",
                           "the certificate is not valid yet"}) {
    CAPTURE(text);
    CHECK(read_meaning(text).clock);
  }
  CHECK_FALSE(read_meaning("the certificate is not valid for n2").clock);
}

TEST_CASE("a block from the future means a wrong clock", "[logs]") {
  CHECK(read_meaning("validating failed: Block received from the future: now = 1767312000").clock);
  CHECK(read_meaning("record is in the future").clock);
  CHECK_FALSE(read_meaning("a block of the future release").clock);
}

TEST_CASE("a message that names its call matches only that call and its variants", "[logs]") {
  struct Row {
    const char* text;
    const char* calls;  // the calls that the message names; empty if it contains only the purpose of the call
  };
  const Row rows[] = {
      // Go
      {"Stream create failed for '$G > tenant3': write /srv/n1/data/jetstream/$G/streams/tenant3/meta.inf: no space "
       "left on device (10077)",
       "write pwrite64 writev pwritev"},
      {"failed to commit logs: error=\"write /consul/data/raft/raft.db: no space left on device\"",
       "write pwrite64 writev pwritev"},
      {"open /var/lib/x/snapshot.tmp: permission denied", "openat open creat"},
      {"DISKQUEUE(orders): failed to sync - write /srv/q/orders:billing.diskqueue.000000.dat: input/output error",
       "write pwrite64 writev pwritev"},
      {"failed to store logs error=write /var/lib/x/raft.db: no space left on device", "write pwrite64 writev pwritev"},
      {"cannot rotate: rename /d/a.tmp /d/a: input/output error", "rename renameat renameat2"},
      {"wal: sync /d/wal/0.wal: input/output error", "fsync fdatasync sync_file_range"},
      {"accept4: too many open files; retrying in 5ms", "accept4 accept"},
      // C
      {"*10 pwrite() \"/mnt/tmp/0000000001\" failed (28: No space left on device), client: 127.0.0.1",
       "write pwrite64 writev pwritev"},
      {"fsync: Input/output error", "fsync fdatasync sync_file_range"},
      // Node.js
      {"Error: ENOSPC: no space left on device, write", "write pwrite64 writev pwritev"},
      {"Error: EACCES: permission denied, open '/srv/app/state.json'", "openat open creat"},
      // Java
      {"Severe unrecoverable error, exiting\njava.io.IOException: No space left on device\n\tat "
       "java.io.FileOutputStream.writeBytes(Native Method)\n\tat "
       "java.io.FileOutputStream.write(FileOutputStream.java:326)",
       "write pwrite64 writev pwritev"},
      {"[logs][0] failed engine [translog trimming failed]\njava.io.IOException: Input/output error\n\tat "
       "sun.nio.ch.FileDispatcherImpl.force0(Native Method) ~[?:?]",
       "fsync fdatasync sync_file_range"},
      // only the purpose of the call
      {"failed to write /var/lib/x/state: no space left on device", ""},
      {"Write error saving DB on disk(rdbSaveRio): No space left on device", ""},
      {"could not write to file \"pg_wal/xlogtemp.1520\": No space left on device", ""},
      {"OSError: [Errno 28] No space left on device: '/srv/kv/data/db.tmp'", ""},
      {"java.io.IOException: No space left on device\n\tat org.x.Store.write(Store.java:12)\n\tat "
       "java.io.FileOutputStream.writeBytes(Native Method)",
       ""},
      {"read tcp 10.0.0.1:2380->10.0.0.3:50412: i/o timeout", ""},
  };
  for (const Row& row : rows) {
    INFO(row.text);
    const Meaning meaning = read_meaning(row.text);
    CHECK(meaning.exact == (row.calls[0] != '\0'));
    std::set<std::string> named, wanted;
    if (meaning.exact)
      for (const std::string_view call : calls_that_fail(meaning.error, meaning.operation, true)) named.emplace(call);
    std::istringstream words(row.calls);
    for (std::string word; words >> word;) wanted.insert(word);
    CHECK(named == wanted);
  }
}

TEST_CASE("a message's ended process, signal and exit code are read") {
  struct Row {
    const char* text;
    bool ended;
    int signal, code;
  };
  const Row rows[] = {
      {"exited: worker (terminated by SIGKILL; not expected)", true, SIGKILL, -1},
      {"server process (PID 1520) was terminated by signal 6: Aborted", true, SIGABRT, -1},
      {"Main process exited, code=exited, status=1/FAILURE", true, 0, 1},
      {"Out of memory: Killed process 3121 (etcd) total-vm:100kB", true, SIGKILL, -1},
      {"worker process 725 exited with code 0", false, 0, -1},
      {"container died, exit code 137", true, SIGKILL, 137},
      {"received SIGTERM indicating exit request", false, 0, -1},
      {"mydb.service: Main process exited, code=killed, status=9/KILL", true, SIGKILL, -1},
      {"mydb.service: Main process exited, code=dumped, status=6/ABRT", true, SIGABRT, -1},
      {"Last State: Terminated, Reason: OOMKilled, Exit Code: 137", true, SIGKILL, 137},
      {"Memory cgroup out of memory: Killed process 4250 (java) total-vm:1kB", true, SIGKILL, -1},
      {"checkpointer process (PID 27001) was terminated by signal 9: Killed", true, SIGKILL, -1},
      {"worker process 29 exited on signal 9", true, SIGKILL, -1},
  };
  for (const Row& row : rows) {
    INFO(row.text);
    const Meaning meaning = read_meaning(row.text);
    CHECK(meaning.ended == row.ended);
    if (!row.ended) continue;
    CHECK(meaning.signal == row.signal);
    CHECK(meaning.exit_code == row.code);
  }
  // These messages are about a child of the process that writes the log, which goes on.
  for (const char* text :
       {"checkpointer process (PID 27001) was terminated by signal 9: Killed", "worker process 29 exited on signal 9",
        "background worker \"logical replication launcher\" (PID 28204) exited with exit code 1"})
    CHECK(read_meaning(text).helper);
  for (const char* text : {"mydb.service: Main process exited, code=killed, status=9/KILL",
                           "Out of memory: Killed process 3121 (etcd) total-vm:100kB"})
    CHECK(!read_meaning(text).helper);
  CHECK(read_meaning("panic: runtime error: index out of range").panic);
  for (const char* text :
       {"Check failed: write(): No space left on device [28]", "*** Caught signal (Aborted) **",
        "kvd[4243]: segfault at 0 ip 00007f0000001234 sp 00007ffd00000000 error 4 in kvd[400000+1000]",
        "Received signal Segmentation fault (11)", "java.lang.OutOfMemoryError: Java heap space"}) {
    INFO(text);
    CHECK(read_meaning(text).panic);
  }
  for (const char* text :
       {"memberlist: Suspect n2 has failed, no acks received", "InetAddress /10.0.0.3:7000 is now DOWN",
        "heartbeat_check: no reply from 10.0.0.2:6805 osd.2",
        "Connection to node 2 (/10.0.0.2:9092) could not be established. Broker may not be available.",
        "Server web/n2 is DOWN, reason: Layer4 timeout",
        "node-left[{es02}{10.0.0.2:9300} reason: disconnected], term: 3",
        "upstream prematurely closed connection while reading response header",
        "dial tcp: lookup n2 on 10.0.0.53:53: no such host", "missed heartbeats from client, timeout: 60s",
        "JGRP000010: n1-4711: suspecting n3-815", "WSREP: declaring b1c2d3e4 at tcp://10.0.0.3:4567 suspected",
        "Node FAILED: TcpDiscoveryNode [id=3f1c, consistentId=n3, addrs=ArrayList [10.0.0.3]]",
        "0-gv0-client-1: server 10.0.0.2:49152 has not responded in the last 42 seconds, disconnecting.",
        "[RaftManager id=3] Error connecting to node 10.0.0.1:9093 (id: 1 rack: null)\njava.net.SocketException: "
        "Invalid argument",
        "Bookie: 10.0.0.2:3181 is unavailable",
        "removed {{n3}{x}{y}{10.0.0.3}{10.0.0.3:9300}}, term: 2, version: 12, reason: ApplyCommitRequest"}) {
    INFO(text);
    CHECK(read_meaning(text).lost);
  }
  CHECK(read_meaning("Connection with replica 127.0.0.1:6380 lost.").lost);
  for (const char* text : {"tcp:10.99.1.2:6644: connection closed by peer",
                           "tcp:10.99.1.2:6644: connection attempt failed (Connection refused)",
                           "upstream prematurely closed connection while reading response header",
                           "read tcp 10.0.0.1:40112->10.0.0.2:2380: read: connection reset by peer"}) {
    INFO(text);
    CHECK(read_meaning(text).closed);
  }
  for (const char* text : {"Server web/n2 is DOWN, reason: Layer4 timeout", "dial tcp 10.0.0.2:2380: i/o timeout",
                           "missed heartbeats from client, timeout: 60s"}) {
    INFO(text);
    CHECK_FALSE(read_meaning(text).closed);
  }
  CHECK(read_meaning("User requested shutdown...").stopping);
  for (const char* text : {"Awaiting socket connections on 10.0.0.2:9093.", "serving peer traffic",
                           "Ready to accept connections tcp", "database system is ready to accept connections",
                           "binding to port 0.0.0.0/0.0.0.0:2181", "listening on IPv4 address \"0.0.0.0\", port 5432",
                           "Started Server@1b2c{STARTING}[9.4.56] @812ms, server started", "Waiting for connections"}) {
    INFO(text);
    CHECK(read_meaning(text).serving);
  }
  for (const char* text : {"Registered the listener org.apache.kafka.image.loader.MetadataLoader@1",
                           "the database system is not yet accepting connections", "Stopped listening on 10.0.0.2:9093",
                           "preserving the old epoch", "could not bind: nobody is listening"}) {
    INFO(text);
    CHECK_FALSE(read_meaning(text).serving);
  }
}

TEST_CASE("a failed file operation without an error is read with its path") {
  struct Row {
    const char* text;
    Operation operation;
    const char* path;
  };
  const Row rows[] = {
      {"could not write init file", Operation::write, ""},  // PostgreSQL, on a full disk
      {"Error saving in-memory database, unable to open /mosquitto/data/mosquitto.db.new for writing.", Operation::open,
       "/mosquitto/data/mosquitto.db.new"},
      {"Background saving error: cannot rename the snapshot", Operation::rename, ""},
      {"failed to sync the journal", Operation::sync, ""},
      {"failed to send the snapshot to 10.0.0.2:7000", Operation::unknown, nullptr},
      {"cannot connect to the database", Operation::unknown, nullptr},
      {"saved the snapshot", Operation::unknown, nullptr},
      {"could not read from the client", Operation::unknown, nullptr},
      {"WARNING Memory overcommit must be enabled! Without it, a background save or replication may fail under low "
       "memory condition. Being disabled, it can also cause "
       "failures without low memory condition, see x. To fix this issue add 'vm.overcommit_memory = 1' to "
       "/etc/sysctl.conf",
       Operation::unknown, nullptr},  // Redis
  };
  for (const Row& row : rows) {
    INFO(row.text);
    const Meaning meaning = read_meaning(row.text);
    CHECK(meaning.error == 0);
    CHECK(meaning.failed == (row.path != nullptr));
    if (!meaning.failed) continue;
    CHECK(meaning.operation == row.operation);
    CHECK(meaning.path == row.path);
    CHECK(!calls_of_operation(meaning.operation).empty());
  }
}

TEST_CASE("the end of one connection is not the program's end", "[logs]") {
  CHECK(read_meaning("Ping failed. Terminating the channel agent-7.").lost);
  for (const char* text : {"Ping failed. Terminating the channel agent-7.", "stopping session 7 of a client"}) {
    INFO(text);
    CHECK(!read_meaning(text).stopping);
    CHECK(!read_meaning(text).gave_up);
  }
  CHECK(read_meaning("Received an OS signal, exiting gracefully...").stopping);
  CHECK(read_meaning("connection to node 'kv@kv-2.kv.svc.cluster.local' has been closed").closed);
}

TEST_CASE("zero counters, guesses, list items and past states report nothing", "[logs]") {
  for (const char* text :
       {"Cumulative stall: 00:00:0.000 H:M:S, 0.0 percent", "No will message specified.",
        "Current configuration:\n  timeout: 30\n  graceful_timeout: 30", "the leader is busy, likely from slow disk",
        "database system was shut down at 2024-03-11 10:00:00 UTC",
        "database system was interrupted; last known up at 2024-03-11 10:00:00 UTC",
        "Router connection closed: Duplicate Route", "kernel file descriptor limit: 20000 (hard: 20000)",
        "established a connection with remote peer n2", "Client disconnected: connection closed",
        "This may cause failure detection to mark members as unreachable"}) {
    CAPTURE(text);
    CHECK_FALSE(read_meaning(text).reports_anything());
  }
  CHECK(read_meaning("Worker (pid:21) was sent SIGKILL! Perhaps out of memory?").signal == SIGKILL);
  CHECK(read_meaning("Worker with pid 21 was terminated due to signal 9").helper);
  CHECK(read_meaning("JVM pause of 15,727ms").own_pause_ns == 15'727'000'000);
}

TEST_CASE("a version number with parts means a start, another one does not", "[logs]") {
  CHECK(read_meaning("Redis version=7.0.0, bits=64").starting);
  CHECK(read_meaning("etcd Version: 3.5.2").starting);
  CHECK(!read_meaning("UpdateTip: new best=00a1 height=587512 version=0x20000000").starting);
  CHECK(!read_meaning("New outbound peer connected: version: 70015, blocks=607944").starting);
}

TEST_CASE("a shell's message about a killed process is an end by SIGKILL", "[logs]") {
  for (const char* text : {"Killed", "./run.sh: line 9: 4727 Killed                  ./server --port 7000",
                           "the server process was killed"}) {
    INFO(text);
    const Meaning meaning = read_meaning(text);
    CHECK(meaning.ended);
    CHECK(meaning.signal == SIGKILL);
  }
  for (const char* text : {"query 7 was killed", "Killed 3 idle sessions", "the process was not killed"}) {
    INFO(text);
    CHECK(!read_meaning(text).ended);
  }
}

TEST_CASE("an expired heartbeat means a lost peer, a heartbeat setting does not", "[logs]") {
  for (const char* text : {"(vip_a) Receive advertisement timeout", "ping timeout of 5 secs expired, recv timeout 5",
                           "keepalive timeout, closing", "connection to host:\"db-0.db.svc.local:5432\" failed",
                           "connecting to b:5432 failed"}) {
    INFO(text);
    CHECK(read_meaning(text).lost);
  }
  for (const char* text : {"heartbeat timeout 5000", "with ping timeout: 5s", "connecting to b:5432"}) {
    INFO(text);
    CHECK(!read_meaning(text).lost);
  }
}

TEST_CASE("the length of a pause that a program reports is read") {
  struct Row {
    const char* text;
    std::int64_t ms;
  };
  const Row rows[] = {
      {"Not marking nodes down due to local pause of 8123456789ns > 5000000000ns", 8123},      // Cassandra
      {"A thread timer expired 11.812034 seconds ago", 11812},                                 // Keepalived
      {"Detected pause in JVM or host machine (eg GC): pause of approximately 5210ms", 5210},  // Hadoop
      {"Can't keep up! Did the system time change, or is the server overloaded? Running 2823ms behind, skipping 56 "
       "tick(s)",
       2823},  // Minecraft
      {"We slept 35000ms instead of 3000ms, this is likely due to a long garbage collecting pause", 35000},  // HBase
      {"[gc][old][1234][5] duration [12.3s], collections [1]/[12.5s], total [12.3s]/[15s]", 12300},  // Elasticsearch
      {R"({"msg":"leader failed to send out heartbeat on time; took too long, leader is overloaded likely from slow disk","heartbeat-interval":"100ms","expected-duration":"200ms","exceeded-duration":"8.391798121s"})",
       8391},
      {"failed to send out heartbeat on time (exceeded the 100ms timeout for 8.391798121s, to 69849e15a650cbd7)", 8391},
      {R"({"msg":"apply request took too long","exceeded-duration":"8.3s"})", 0},
      {"Scheduled sending of heartbeat was delayed. Previous heartbeat was sent [3127] ms ago, expected interval is "
       "[1000] ms.",
       3127},                                                     // Akka
      {"Possible too long JVM pause: 5234 milliseconds.", 5234},  // Ignite
      {"Corosync main process was not scheduled for 4567.8901 ms (threshold is 800.0000 ms).", 4567},
      {"[gc][123] overhead, spent [12.3s] collecting in the last [13s]", 12300},  // Elasticsearch
      {"Total time for which application threads were stopped: 5.1250000 seconds, Stopping threads took: 0.0000130 "
       "seconds",
       5125},  // HotSpot
      {"Thread Thread[vert.x-eventloop-thread-0,5,main] has been blocked for 5234 ms, time limit is 2000 ms", 5234},
      {"job overhead, spent [12s] waiting", 0},
      // the kernel: this is about one thread, which usually waits for a disk
      {"INFO: task kvd:4244 blocked for more than 120 seconds.", 0},
      {"request took 12s, duration [3]", 0},
      {"slept for a while", 0},
      // These messages use other words for what was paused, or another notation of the duration.
      {"Runtime Platform stalled for 00:00:03.1200000 - possibly GC?", 3120},    // Orleans
      {"Unreasonably long 5123ms poll interval (7ms user, 12ms system)", 5123},  // Open vSwitch
      {"Event loop stalled for 27431ms with 4 jobs in flight", 27431},
      {"VM was paused for 12 seconds", 12'000},
      {"we were suspended for 1m3s", 63'000},
      {"stop-the-world pause took 3.2s", 3200},
      {"Garbage collection: Very long Execution Engine Suspension. Took: 5727ms", 5727},  // KurrentDB
      {"GC duration: 1848 ms, GC threshold: 1000 ms", 1848},                              // Graylog
      {"Event loop lag: 5s", 5000},
      {"the loop is not healthy: it was last seen active 3m5.5s ago; threshold is 3m0s", 185'500},  // the kubelet
      {"session of user x, last active 3m5.5s ago", 0},
      // Here, "40M->39M(64M)" is the size of the heap before and after the collection, not a number of minutes.
      {"Pause Full (Allocation Failure) 40M->39M(64M) 9214.077ms", 9214},
      {"last inactive check more than PT1.5S ago (PT7.4S)", 7400},  // Galera
      {"the watch thread slept for 31.5 s, above the threshold of 5 s", 31'500},
      {"a gap of 48s between ticks", 48'000},
      // Messages about a suspension often do not contain its duration. Then 30 s are assumed.
      {"resumed from suspend, connecting again", 30'000},
      {"PM: suspend exit", 30'000},
      {"the machine was probably asleep", 30'000},
      {"the guest woke after migration, it was paused for 8 s", 8000},
      {"when the laptop wakes from sleep the timers are reset", 0},
      {"worker 3 resumes from the checkpoint after sleep of 5s", 0},
      {"entering standby mode", 0},
      {"the worker thread slept for 5s before it tried again", 0},
      {"no activity for 60s, closing the connection", 0},
      {"the process recovered from snapshot 12", 0},
      // Messages of watchdogs. If they contain no duration, 30 s are assumed.
      {"kvd.service: Watchdog timeout (limit 3min)!", 180'000},  // systemd
      {"kvd.service: Failed with result 'watchdog'.", 30'000},
      {"heart: Thu Jun 12 09:17:23 2026: heart-beat time-out, no activity for 65 seconds", 65'000},  // Erlang
      {"NETDEV WATCHDOG: eth0 (e1000e): transmit queue 0 timed out", 0},
      {"watchdog: the timeout is set to 10s", 0},
      {"the loop stalled at 00:10:05.123", 0},
      {"process replication lag: 30s", 0},
      {"the job was stopped for 12s", 0},
      {"the process may be paused for 12s", 0},
      {"Too long request: 12s interval of retries", 0},
  };
  for (const Row& row : rows) {
    INFO(row.text);
    CHECK(read_meaning(row.text).own_pause_ns / 1'000'000 == row.ms);
  }
  Templates kinds;
  const Logs failure = read_text(
      "2026-01-02 03:04:05,000 WARN Detected pause in JVM or host machine (eg GC): pause of approximately 5210ms\n",
      {"n1.log", "n1"}, {}, kinds);
  const std::vector<Hint> hints = hints_of(failure, {}, kinds);
  REQUIRE(hints.size() == 1);
  CHECK(hints[0].kind == Hint::Kind::stop);
  CHECK(hints[0].until_ns - hints[0].ts_ns == 5'210'000'000);
  // If messages differ only in a duration, the one with the longest pause decides.
  std::string stops;
  for (const char* seconds : {"0.0000911", "0.0001200", "4.5000000", "0.0000870"})
    stops += fmt::format(
        "2026-01-02 03:04:{:02}.000 INFO Total time for which application threads were stopped: {} seconds\n",
        stops.size() / 90 + 5, seconds);
  Templates others;
  const Logs stopped = read_text(stops, {"n1.log", "n1"}, {}, others);
  const std::vector<Hint> stop = hints_of(stopped, {}, others);
  REQUIRE(stop.size() == 1);
  CHECK(stop[0].kind == Hint::Kind::stop);
  CHECK(stop[0].until_ns - stop[0].ts_ns == 4'500'000'000);
}

TEST_CASE("messages about clocks give whose clock is wrong and by how much", "[logs]") {
  struct Row {
    const char* text;
    std::int64_t ms;
    bool either_way, own, stepped;
  };
  const Row rows[] = {
      {R"({"level":"warn","ts":"2026-01-02T03:04:05.000Z","caller":"rafthttp/probing_status.go:82","msg":"prober found high clock drift","round-tripper-name":"ROUND_TRIPPER_RAFT_MESSAGE","remote-peer-id":"8211f1d0f64f3269","clock-drift":"59m59.998s","rtt":"1.1ms"})",
       3'599'998, true, false, false},
      {"W | rafthttp: the clock difference against peer 8211f1d0f64f3269 is too high [1m0.5s > 1s] (prober "
       "\"ROUND_TRIPPER_SNAPSHOT\")",
       60'500, true, false, false},
      {"log_channel(cluster) log [WRN] : mon.b 10.0.0.2:6789/0 clock skew 1.50153s > max 0.05s", 1'501, true, false,
       false},
      {"org.apache.hadoop.hbase.ClockOutOfSyncException: Server rs1,16020,1 has been rejected; Reported time is too "
       "far out of sync with master.  Time difference of 3600123ms > max allowed of 30000ms",
       3'600'123, true, false, false},
      {"Too big clock skew is detected: 1.500s, while max allowed is: 0.500s", 1'500, true, false, false},
      {"clock synchronization error: this node is more than 500ms away from at least half of the known nodes (0 of 2 "
       "are within the offset)",
       1'000, true, true, false},
      {"[10.0.0.1]:5701 [dev] [3.12] System clock apparently jumped from 2026-01-02 03:04:05.123 to 2026-01-02 "
       "04:04:10.127 since last heartbeat (+3600004 ms)",
       3'600'004, false, true, true},
      {"Warning: A system time change of 3600 seconds (0d 1h 0m 0s backwards in time) has been detected. "
       "Compensating...",
       -3'600'000, false, true, true},
      {"[WARN ][o.e.t.ThreadPool] [n1] absolute clock went backwards by [2s/2000ms] while timer thread was sleeping",
       -2'000, false, true, true},
      {"java.lang.RuntimeException: Clock moved backwards.  Refusing to generate id for 5000 milliseconds", -5'000,
       false, true, true},
      {"Warning: Time just moved backwards by 7 seconds. This might cause a lot of problems, so I'll just kill myself "
       "now.",
       -7'000, false, true, true},
      // which of the two clocks is subtracted from the other differs between systems
      {"clock offset: -2.9s", 2'900, true, false, false},
      {"clock offset of n2: 90s ahead", 90'000, false, false, false},
      {"clock offset of n2: 90s behind", -90'000, false, false, false},
      {"System clock seems off by 11h59m42.1s, which can prevent network connectivity", 43'182'100, true, true, false},
      {"local clock is off by 5s", 5'000, true, true, false},
      {"Local clock is 93.2s behind the reference", -93'200, false, true, false},
      {"remote clock is 7s ahead of ours", 7'000, false, false, false},
      {"clock of peer n2 is off by 12.5s", 12'500, true, false, false},
      {"Health check failed: clock skew detected on mon.c (MON_CLOCK_SKEW)", 30'000, true, false, false},
      {"Clock skew detected", 30'000, true, true, false},
      {"Clock skew too great (37)", 30'000, true, true, false},
      // A check without an amount, a limit, an amount that is too small, and settings.
      {"System clock is synchronized, next check in 60s", 0, false, false, false},
      {"max clock skew 5s", 0, false, false, false},
      {"clock drift 12ms, checked in 5s", 0, false, false, false},
      {"--max-clock-skew=500ms", 0, false, false, false},
      {"clocking 5s out", 0, false, false, false},
      {"clock skew 5 servers", 0, false, false, false},
  };
  for (const Row& row : rows) {
    INFO(row.text);
    const Meaning meaning = read_meaning(row.text);
    CHECK(meaning.clock.has_value() == (row.ms != 0));
    if (!meaning.clock) continue;
    CHECK(meaning.clock->off_ns / 1'000'000 == row.ms);
    CHECK(meaning.clock->either_way == row.either_way);
    CHECK(meaning.clock->own == row.own);
    CHECK(meaning.clock->stepped == row.stepped);
  }
  CHECK(read_meaning("HikariPool-1 - Thread starvation or clock leap detected (housekeeper delta=55s123ms462\u00b5s).")
            .own_pause_ns == 55'123'462'000);
  // If the clock jumped forward, the process may have been paused. A pause cannot set a clock back.
  CHECK(read_meaning("System clock apparently jumped since last heartbeat (+600000 ms)").own_pause_ns != 0);
  CHECK(read_meaning("System clock apparently jumped since last heartbeat (-1800000 ms)").own_pause_ns == 0);
  CHECK(read_meaning("scheduler: service could not run for 12 s").own_pause_ns == 12'000'000'000);
  CHECK(read_meaning("the service could be paused for 12 s").own_pause_ns == 0);
  CHECK(read_meaning("host stalled for 12.4s").own_pause_ns == 12'400'000'000);
  CHECK(read_meaning("CPU was stolen for 8.2 s, peers may have missed heartbeats").own_pause_ns == 8'200'000'000);
  CHECK(read_meaning("starvation: 11.2s since the last tick of the reactor").own_pause_ns == 11'200'000'000);
  CHECK(read_meaning("no progress for 13s: the server seems to have been frozen").own_pause_ns == 13'000'000'000);
  CHECK(read_meaning("after 3s, then 13s: the server seems to have been frozen").own_pause_ns == 0);
}

TEST_CASE("the quote of a stack trace is the line that describes the error") {
  Templates kinds;
  const Logs logs = read_text(
      "2026-01-02 03:04:05 ERROR cannot append:\njava.io.IOException: disk is odd\n\tat x.Y.z(Y.java:3)\n"
      "2026-01-02 03:04:06 ERROR Traceback (most recent call last):\n  File \"a.py\", line 3, in save\n    "
      "f()\nValueError: odd\n"
      "2026-01-02 03:04:07 ERROR server stopped\nopen /srv/state.json: permission denied\n",
      {"n1.log", "n1"}, {}, kinds);
  REQUIRE(logs.nodes[0].messages.size() == 3);
  CHECK(quote(logs, 0, logs.nodes[0].messages[2]) ==
        "n1.log:8 of n1: 'server stopped / open /srv/state.json: permission denied'");
  CHECK(quote(logs, 0, logs.nodes[0].messages[0]) ==
        "n1.log:1 of n1: 'cannot append: / java.io.IOException: disk is odd'");
  CHECK(quote(logs, 0, logs.nodes[0].messages[1]) == "n1.log:4 of n1: 'ValueError: odd'");
}

TEST_CASE("every system call that a message may refer to exists") {
  for (int error = 1; error < 134; ++error)
    for (int operation = 0; operation < 17; ++operation)
      for (const std::string_view call : calls_that_fail(error, static_cast<Operation>(operation))) {
        INFO(call);
        CHECK(kernel::find_syscall(call) != nullptr);
      }
}

TEST_CASE("in real logs the failed call is the first hint") {
  struct Row {
    const char* system;
    int error;
    const char* words;
  };
  const Row rows[] = {
      {"redis", ENOSPC, "'Write error saving DB on disk"},
      {"postgresql", ENOSPC, "could not write to file"},
      {"python", ENOSPC, "'cannot save record 2 / OSError: [Errno 28] No space left on device'"},
      {"mosquitto", ENOSPC, "No space left on device"},
      {"syslog", EACCES, "cannot open /var/backups/db.tar"},
      {"etcd", ENOSPC, "no space left"},
      {"journald-export", ENOSPC, "No space left on device"},
  };
  for (const Row& row : rows) {
    INFO(row.system);
    Templates kinds;
    const Logs normal = read_files({{log_file(std::string(row.system) + ".normal"), "n1"}}, kinds);
    const Logs failure = read_files({{log_file(std::string(row.system) + ".failure"), "n1"}}, kinds);
    const std::vector<Hint> hints = hints_of(failure, normal, kinds);
    std::string all;
    for (const Hint& hint : hints)
      all += fmt::format("{} {} {} {}\n", static_cast<int>(hint.kind), kernel::errno_name(hint.error), hint.weight,
                         hint.words);
    INFO(all);
    bool found = false;
    for (const Hint& hint : hints)
      found = found || (hint.kind == Hint::Kind::call && hint.error == row.error && hint.weight > 0.4 &&
                        hint.words.find(row.words) != std::string::npos);
    CHECK(found);
    // A message that also occurs in runs without faults has no weight.
    Templates fresh;
    const Logs usual = read_files({{log_file(std::string(row.system) + ".normal"), "n1"}}, fresh);
    const Logs same = read_files({{log_file(std::string(row.system) + ".normal"), "n1"}}, fresh);
    for (const Hint& hint : hints_of(usual, same, fresh)) {
      INFO(hint.words);
      CHECK(hint.weight <= 0.2);
    }
  }
}

TEST_CASE("a program that stops because of an error does not stop in an orderly way") {
  for (const char* text : {"Can't recover from AOF write error when the AOF fsync policy is 'always'. Exiting...",
                           "exiting (due to fatal error)", "shutting down: write /data/log: no space left on device"}) {
    INFO(text);
    const Meaning meaning = read_meaning(text);
    CHECK(meaning.gave_up);
    CHECK_FALSE(meaning.stopping);
    CHECK(meaning.reports_anything());
  }
  for (const char* text : {"received SIGTERM, shutting down", "terminating connection due to administrator command",
                           "Redis is now ready to exit, bye bye...", "exiting"}) {
    INFO(text);
    CHECK_FALSE(read_meaning(text).gave_up);
    CHECK(read_meaning(text).stopping);
  }
}

TEST_CASE("a node that logs nothing when all others are stopped had ended before") {
  const auto at = [](int second, const char* text) {
    return fmt::format("2026-01-02 03:{:02}:{:02},000 INFO {}\n", second / 60, second % 60, text);
  };
  rose::test::Folder folder;
  const auto logs = [&](const std::string& name, bool stopped, Templates& kinds) {
    const std::vector<Input> both = {{folder / (name + "1.log"), "n1"}, {folder / (name + "2.log"), "n2"}};
    for (int n = 0; n < 2; ++n) {
      std::ofstream out(both[static_cast<std::size_t>(n)].path);
      // Both nodes log so rarely that no gap in their logs is unusually long.
      out << at(0, "server version 3 starting") << at(1, "opened the store") << at(20, "compacted")
          << (n == 1 || stopped ? at(45, "received SIGTERM, shutting down") : "");
    }
    return read_files(both, kinds);
  };
  Templates kinds;
  const Logs normal = logs("normal", true, kinds);
  const Logs failure = logs("failure", false, kinds);
  std::string ended;
  for (const Hint& hint : hints_of(failure, normal, kinds, {{"n1", {}}, {"n2", {}}}))
    if (hint.kind == Hint::Kind::end) ended += hint.node + " ";
  CHECK(ended == "n1 ");
  Templates again;
  CHECK(hints_of(logs("well", true, again), logs("usual", true, again), again, {{"n1", {}}, {"n2", {}}}).empty());
}

TEST_CASE("in a list of members the lost peer is the one after the words that report the loss") {
  const auto missed = [](const char* text) {
    Templates kinds;
    rose::test::Folder folder;
    const std::vector<Input> one = {{folder / "3.log", "n3"}};
    std::ofstream(one[0].path) << "2026-01-02 03:04:05,000 WARN " << text << "\n";
    std::string peers;
    for (const Hint& hint : hints_of(read_files(one, kinds), {}, kinds,
                                     {{"n1", {"10.92.1.1"}}, {"n2", {"10.92.1.2"}}, {"n3", {"10.92.1.3"}}}))
      if (hint.kind == Hint::Kind::silence) peers += hint.peer + " ";
    return peers;
  };
  CHECK(missed("members [10.92.1.2, 10.92.1.3, 10.92.1.1] with suspected members: [10.92.1.1]: ask [10.92.1.2]") ==
        "n1 ");
  CHECK(missed("n2 is unreachable, asking n1") == "n2 ");
  CHECK(missed("Lost at least half of the members. Current members are [n1], lost members are [n2]") == "n2 ");
  CHECK(missed("members n1, n2: lost connection") == "n1 n2 ");  // the connection to either of them may be lost
  CHECK(missed("lost connection with n2") == "n2 ");
  CHECK(missed("zone example.org/IN: refresh: failure trying primary 10.92.1.2#5300 (source 0.0.0.0#0): operation "
               "canceled") == "n2 ");
  CHECK(missed(
            "Could not connect to /10.92.1.2:5701. Reason: IOException[Invalid argument to address /10.92.1.2:5701]") ==
        "n2 ");
}

TEST_CASE("Redis Cluster's nodes are recognised by the ids that they log") {
  Templates kinds;
  rose::test::Folder folder;
  const std::vector<Input> three = {{folder / "1.log", "n1"}, {folder / "2.log", "n2"}, {folder / "3.log", "n3"}};
  const char* ids[] = {"07c37dfeb235213a872192d90877d0cd55635b91", "67ed2db8d677e59ec4a4cefb06858cf2a1a89fa1",
                       "292f8b365bb7edb5e285caf0b7e6ddc7265d2f4f"};
  for (int n = 0; n < 3; ++n)
    std::ofstream(three[n].path) << "7:M 25 Nov 2026 04:03:14.756 * No cluster configuration found, I'm " << ids[n]
                                 << "\n";
  std::ofstream(three[1].path, std::ios::app)
      << "7:M 25 Nov 2026 04:03:24.756 * Marking node " << ids[0] << " as failing (quorum reached).\n";
  std::ofstream(three[2].path, std::ios::app)
      << "7:M 25 Nov 2026 04:03:24.757 * FAIL message received from " << ids[1] << " about " << ids[0] << "\n";
  std::string missed;
  for (const Hint& hint : hints_of(read_files(three, kinds), {}, kinds, {{"n1", {}}, {"n2", {}}, {"n3", {}}}))
    if (hint.kind == Hint::Kind::silence) missed += hint.node + "-" + hint.peer + " ";
  CHECK(missed == "n2-n1 n3-n1 ");
}

TEST_CASE("a panic at the log's end is the end of its process") {
  Templates kinds;
  const Logs normal = read_files({{log_file("prometheus.normal"), "n1"}}, kinds);
  const Logs failure = read_files({{log_file("prometheus.failure"), "n1"}}, kinds);
  const std::vector<Hint> hints = hints_of(failure, normal, kinds);
  const auto end =
      std::find_if(hints.begin(), hints.end(), [](const Hint& hint) { return hint.kind == Hint::Kind::end; });
  REQUIRE(end != hints.end());
  CHECK(end->itself);
  // The panic is a bus error: an access to a mapped file failed, because the disk was full.
  CHECK(hints[0].kind == Hint::Kind::call);
  CHECK(hints[0].error == ENOSPC);
}

TEST_CASE("a logged exception is an end only if it is the log's last message") {
  const std::string trace =
      "Traceback (most recent call last):\n  File \"shop.py\", line 7, in order\nValueError: bad price\n";
  const std::string up = "2026-01-02 10:00:00,000 INFO shop: up\n";
  const auto ends = [&](const std::string& text) {
    Templates kinds;
    const Logs normal = read_text(up + "2026-01-02 10:00:01,000 INFO shop: order 1\n", {"a.log", "n1"}, {}, kinds);
    const Logs failure = read_text(text, {"b.log", "n1"}, {}, kinds);
    const std::vector<Hint> hints = hints_of(failure, normal, kinds);
    return std::any_of(hints.begin(), hints.end(), [](const Hint& hint) { return hint.kind == Hint::Kind::end; });
  };
  CHECK(ends(up + "2026-01-02 10:00:01,000 INFO shop: order 2\n" + trace));
  CHECK_FALSE(ends(up + "2026-01-02 10:00:01,000 ERROR shop: order failed\n" + trace));
  CHECK_FALSE(ends(up + "2026-01-02 10:00:01,000 INFO shop: order 2\n" + trace +
                   "2026-01-02 10:00:02,000 INFO shop: order 3\n"));
}

TEST_CASE("unreachable hosts in Node.js's error messages are lost peers", "[logs]") {
  for (const char* text :
       {"host registry-eu-01.corp:8080 is now offline", "peer origin went away", "getaddrinfo EAI_AGAIN origin",
        "getaddrinfo ENOTFOUND origin", "MySQL server has gone away"}) {
    INFO(text);
    CHECK(read_meaning(text).lost);
  }
}

TEST_CASE("restarts, early ends and gaps are found without a run without faults") {
  const auto at = [](int second, const char* text) {
    return fmt::format("2026-01-02 03:{:02}:{:02},000 INFO {}\n", second / 60, second % 60, text);
  };
  std::string usual = at(0, "server version 3 starting") + at(1, "opened the store");
  for (int i = 2; i < 30; ++i) usual += at(i, "heart beats");
  Templates kinds;
  const Logs normal = read_text(usual, {"n1.log", "n1"}, {}, kinds);
  SECTION("a restart without a reason is a kill") {
    std::string text = at(0, "server version 3 starting") + at(1, "opened the store") + at(2, "heart beats") +
                       at(3, "heart beats") + at(5, "server version 3 starting") + at(6, "opened the store") +
                       at(7, "heart beats");
    const Logs failure = read_text(text, {"n1.log", "n1"}, {}, kinds);
    const std::vector<Hint> hints = hints_of(failure, normal, kinds);
    REQUIRE(!hints.empty());
    CHECK(hints[0].kind == Hint::Kind::end);
    CHECK(hints[0].signal == SIGKILL);
    CHECK(!hints[0].itself);
    CHECK(hints[0].until_ns - hints[0].ts_ns == 2'000'000'000);
  }
  SECTION("an orderly stop is SIGTERM") {
    const Logs failure = read_text(at(0, "server version 3 starting") + at(1, "opened the store") +
                                       at(2, "heart beats") + at(3, "received SIGTERM, shutting down") +
                                       at(5, "server version 3 starting") + at(6, "opened the store"),
                                   {"n1.log", "n1"}, {}, kinds);
    const std::vector<Hint> hints = hints_of(failure, normal, kinds);
    REQUIRE(!hints.empty());
    CHECK(hints[0].signal == SIGTERM);
    CHECK(hints[0].weight < 0.5);
  }
  SECTION("a panic is the node's own end") {
    const Logs failure =
        read_text(at(0, "server version 3 starting") + at(1, "opened the store") + at(2, "panic: index out of range") +
                      at(5, "server version 3 starting") + at(6, "opened the store"),
                  {"n1.log", "n1"}, {}, kinds);
    const std::vector<Hint> hints = hints_of(failure, normal, kinds);
    REQUIRE(!hints.empty());
    CHECK(hints[0].itself);
  }
  SECTION("a silence is a pause") {
    std::string text = at(0, "server version 3 starting") + at(1, "opened the store") + at(2, "heart beats");
    for (int i = 14; i < 30; ++i) text += at(i, "heart beats");
    const Logs failure = read_text(text, {"n1.log", "n1"}, {}, kinds);
    const std::vector<Hint> hints = hints_of(failure, normal, kinds);
    REQUIRE(hints.size() == 1);
    CHECK(hints[0].kind == Hint::Kind::stop);
    CHECK(hints[0].until_ns - hints[0].ts_ns == 12'000'000'000);
  }
  SECTION("a gap is no pause if the node logs as irregularly otherwise") {
    std::string text = at(0, "server version 3 starting") + at(1, "opened the store") + at(2, "heart beats");
    for (int i = 11; i < 60; i += 9) text += at(i, "heart beats");
    const Logs failure = read_text(text + at(200, "heart beats"), {"n1.log", "n1"}, {}, kinds);
    const std::vector<Hint> hints = hints_of(failure, normal, kinds);
    REQUIRE(hints.size() == 1);  // the last gap, which is much longer than the usual 9 s
    CHECK(hints[0].until_ns - hints[0].ts_ns == 144'000'000'000);
  }
  SECTION("a silence after a full disk weighs less") {
    const std::string begin = at(0, "server version 3 starting") + at(1, "opened the store") + at(2, "heart beats");
    const auto stop = [&](const std::string& message) {
      for (const Hint& hint :
           hints_of(read_text(begin + message + at(15, "heart beats"), {"n1.log", "n1"}, {}, kinds), normal, kinds))
        if (hint.kind == Hint::Kind::stop) return hint.weight;
      return 0.0;
    };
    CHECK(stop(at(3, "cannot write /data/store: No space left on device")) > 0);
    CHECK(stop(at(3, "cannot write /data/store: No space left on device")) < stop(at(3, "heart beats")) / 2);
    CHECK(stop(at(3, "cannot connect to 10.1.0.2:7000: Connection refused")) == stop(at(3, "heart beats")));
  }
}

TEST_CASE("a generic I/O error beside a message with error and file is the same failure") {
  const auto at = [](int second, const char* text) {
    return fmt::format("2026-01-02 03:00:{:02},000 ERROR {}\n", second, text);
  };
  const std::string begin = at(0, "server version 3 starting") + at(1, "opened the store");
  Templates kinds;
  const Logs normal = read_text(begin, {"n1.log", "n1"}, {}, kinds);
  const auto weight = [&](const std::string& text, int error) {
    for (const Hint& hint : hints_of(read_text(begin + text, {"n1.log", "n1"}, {}, kinds), normal, kinds))
      if (hint.kind == Hint::Kind::call && hint.error == error) return hint.weight;
    return 0.0;
  };
  const std::string named = at(5, "/srv/data/db: write failed (No space left on device)"),
                    echo = at(5, "message not ready to send: \"I/O error\""),
                    later = at(9, "message not ready to send: \"I/O error\"");
  CHECK(weight(echo, EIO) > 0.5);
  CHECK(weight(named + later, EIO) == weight(echo, EIO));
  CHECK(weight(named + echo, EIO) < weight(echo, EIO) / 2);
  CHECK(weight(named + echo, ENOSPC) == weight(named, ENOSPC));
}

TEST_CASE("a process with two logs that is killed and cannot restart has one end") {
  rose::test::Folder folder;
  const auto opened = [](const char* ms, int second) {
    return fmt::format("2026-11-25T22:28:{}{}Z|00001|vlog|INFO|opened log file /run/s2/server.log\n", second, ms);
  };
  const std::string life =
      "2026-11-25T22:28:22.223Z|00002|raft|INFO|local server ID is "
      "ee7a\n2026-11-25T22:28:22.224Z|00003|ovsdb_server|INFO|ovsdb-server (Open vSwitch) 3.1.0\n"
      "2026-11-25T22:28:22.240Z|00004|reconnect|INFO|tcp:10.99.1.1:6644: "
      "connecting...\n2026-11-25T22:28:22.245Z|00005|raft|INFO|server f71f added to configuration\n";
  const std::string broken =
      "ovsdb-server: ovsdb error: error reading record 187 from inv log: record 187 advances commit index to 95 but "
      "last log index is 94\n";
  Templates kinds;
  const auto logs = [&](const std::string& run, const std::string& log, const std::string& errors) {
    const std::vector<Input> both = {{folder / (run + "server.log"), "s2"}, {folder / (run + "stderr.log"), "s2"}};
    std::ofstream(both[0].path) << opened(".222", 22) << life << log;
    std::ofstream(both[1].path) << opened("", 22) << errors;
    return read_files(both, kinds);
  };
  const Logs normal = logs("normal", "", "");
  CHECK(normal.nodes.at(0).messages.size() == 5);
  const Logs failure =
      logs("failure",
           "2026-11-25T22:28:25.060Z|00045|raft|ERR|I/O error: data/db: write failed (No space left on device)\n" +
               opened(".591", 25) + opened(".111", 26) + opened(".627", 26),
           opened("", 25) + broken + opened("", 26) + broken + opened("", 26) + broken);
  std::vector<Hint> hints = hints_of(failure, normal, kinds);
  std::erase_if(hints, [](const Hint& hint) { return hint.kind != Hint::Kind::end; });
  REQUIRE(!hints.empty());
  INFO(hints[0].words);
  CHECK(hints[0].signal == SIGKILL);
  CHECK(hints[0].words.find("I/O error: data/db") != std::string::npos);  // this is the last message of the node
  for (std::size_t i = 1; i < hints.size(); ++i) CHECK(hints[i].weight < hints[0].weight / 2);
  // Both files contain the line "opened log file". The lines that only one of them has after it must be kept.
  bool contained = false;
  for (const Message& one : failure.nodes.at(0).messages)
    contained = contained || failure.text(one).find("advances commit index") != std::string_view::npos;
  CHECK(contained);
}

TEST_CASE("a log that ends early is no end if the node logged as rarely before") {
  const auto at = [](int second, const char* text) {
    return fmt::format("2026-01-02 03:{:02}:{:02},000 INFO {}\n", second / 60, second % 60, text);
  };
  const std::string begin = at(0, "server version 3 starting") + at(1, "opened the store");
  Templates kinds;
  rose::test::Folder folder;
  const auto logs = [&](const std::string& run, const std::string& rare) {
    std::string often = begin;
    for (int i = 2; i < 60; ++i) often += at(i, "heart beats");
    const std::vector<Input> both = {{folder / (run + "1.log"), "n1"}, {folder / (run + "2.log"), "n2"}};
    std::ofstream(both[0].path) << begin << rare;
    std::ofstream(both[1].path) << often;
    return read_files(both, kinds);
  };
  const auto ended = [&](const std::string& rare, bool quiet = false) {
    std::string usual;
    for (int i = 2; i < 60; ++i) usual += at(i, "heart beats");
    const std::vector<Hint> hints =
        hints_of(logs("failed", rare), logs("usual", quiet ? "" : usual), kinds, {{"n1", {}}, {"n2", {}}});
    return std::any_of(hints.begin(), hints.end(),
                       [](const Hint& hint) { return hint.kind == Hint::Kind::end && hint.node == "n1"; });
  };
  CHECK(ended(at(2, "heart beats") + at(3, "heart beats") + at(4, "heart beats")));
  CHECK(!ended(at(10, "heart beats") + at(19, "heart beats") + at(28, "heart beats") + at(37, "heart beats") +
               at(53, "heart beats")));
  // There is no end if the last message of the node is equally early in the run without faults.
  CHECK(!ended(at(2, "opened the log"), true));
}

TEST_CASE("a silence of all nodes is not a pause of each") {
  const auto at = [](int second, const char* text) {
    return fmt::format("2026-01-02 03:00:{:02},000 INFO {}\n", second, text);
  };
  const auto beats = [&](int from, int to) {
    std::string all;
    for (int i = from; i < to; ++i) all += at(i, "heart beats");
    return all;
  };
  const std::string begin = at(0, "server version 3 starting") + at(1, "opened the store") + beats(2, 20);
  Templates kinds;
  rose::test::Folder folder;
  const auto logs = [&](const std::string& run, const std::string& one, const std::string& other) {
    const std::vector<Input> both = {{folder / (run + "1.log"), "n1"}, {folder / (run + "2.log"), "n2"}};
    std::ofstream(both[0].path) << begin << one;
    std::ofstream(both[1].path) << begin << other;
    return read_files(both, kinds);
  };
  const auto stood = [&](const std::string& other) {
    const std::vector<Hint> hints =
        hints_of(logs("failed", beats(35, 50), other), logs("usual", beats(20, 50), beats(20, 50)), kinds,
                 {{"n1", {}}, {"n2", {}}});
    for (const Hint& hint : hints)
      if (hint.kind == Hint::Kind::stop && hint.node == "n1") return hint.weight;
    return 0.0;
  };
  CHECK(stood(beats(36, 50)) > 0);
  CHECK(stood(beats(36, 50)) < stood(beats(20, 50)) / 2);
  // the other node logs during a part of the gap, so the two silences are not the same
  CHECK(stood(beats(26, 50)) == stood(beats(20, 50)));
}

TEST_CASE("a peer is missed from the time of the first message that only the failure's log has") {
  const auto at = [](int second, const char* text) {
    return fmt::format("2026-01-02 03:00:{:02},000 WARN {}\n", second, text);
  };
  const std::string begin = at(0, "server version 3 starting") + at(1, "cannot connect to n2 yet") + at(2, "joined");
  Templates kinds;
  const Logs normal = read_text(begin + at(30, "closing: disconnected from n2"), {"n1.log", "n1"}, {}, kinds);
  const Logs failure =
      read_text(begin + at(12, "stream to peer n2 was cut: no response from it") +
                    at(15, "stream to peer n2 was cut: no response from it") + at(30, "closing: disconnected from n2"),
                {"n1.log", "n1"}, {}, kinds);
  std::vector<const Hint*> missed;
  const std::vector<Hint> hints = hints_of(failure, normal, kinds, {{"n1", {}}, {"n2", {}}, {"n3", {}}});
  for (const Hint& hint : hints)
    if (hint.kind == Hint::Kind::silence) missed.push_back(&hint);
  REQUIRE(missed.size() == 1);
  CHECK(missed[0]->message == 3);
  CHECK(missed[0]->until_ns - missed[0]->ts_ns == 3'000'000'000);
}

TEST_CASE("a node that refuses a connection and continues to write did not end") {
  const auto at = [](int second, const char* text) {
    return fmt::format("2026-01-02 03:00:{:02},000 WARN {}\n", second, text);
  };
  const auto believed = [&](const std::string& of_n1) {
    Templates kinds;
    rose::test::Folder folder;
    std::vector<Input> files = {{folder / "2.log", "n2"}};
    std::ofstream(files[0].path) << at(2, "server version 3 starting") << at(3, "opened the store")
                                 << at(8, "cannot connect to n1: connection refused")
                                 << at(29, "entering the next round");
    if (!of_n1.empty()) files.push_back({folder / "1.log", "n1"});
    if (!of_n1.empty())
      std::ofstream(files[1].path) << at(0, "server version 3 starting") << at(1, "opened the store") << of_n1;
    double most = 0;
    for (const Hint& hint : hints_of(read_files(files, kinds), {}, kinds, {{"n1", {}}, {"n2", {}}}))
      if (hint.kind == Hint::Kind::end && hint.node == "n1") most = std::max(most, hint.weight);
    return most;
  };
  const double no_log = believed("");
  CHECK(no_log > 0);
  const double speaks_on = believed(at(5, "took a snapshot") + at(28, "took a snapshot"));
  CHECK(speaks_on > 0);
  CHECK(speaks_on < no_log / 2);
  // the log of n1 ends before n2 is refused, so n1 may have ended
  CHECK(believed(at(5, "took a snapshot")) > no_log / 2);
}

TEST_CASE("a silent node that all others miss may have been paused") {
  const auto at = [](int second, const char* text) {
    return fmt::format("2026-01-02 03:00:{:02},000 WARN {}\n", second, text);
  };
  const auto stood = [&](const std::string& of_n1, bool both, bool stopped = false) {
    Templates kinds;
    rose::test::Folder folder;
    const std::vector<Input> three = {{folder / "1.log", "n1"}, {folder / "2.log", "n2"}, {folder / "3.log", "n3"}};
    for (int n = 0; n < 3; ++n) {
      std::ofstream out(three[n].path);
      out << at(0, "server version 3 starting") << at(1, "opened the store");
      if (n == 0) out << of_n1;
      else if (n == 1 || both) out << at(25, "stream to peer n1 was cut: no response from it");
      out << at(29, "entering the next round");
      if (n == 1 && stopped) out << at(40, "failed to reach n1: connection refused");
    }
    const Logs failure = read_files(three, kinds);
    for (const Hint& hint : hints_of(failure, {}, kinds, {{"n1", {}}, {"n2", {}}, {"n3", {}}}))
      if (hint.kind == Hint::Kind::stop && hint.node == "n1")
        return std::pair(hint.until_ns - hint.ts_ns, hint.since_ns == kNoTime ? 0 : hint.until_ns - hint.since_ns);
    return std::pair<std::int64_t, std::int64_t>();
  };
  const std::int64_t second = 1'000'000'000;
  CHECK(stood(at(24, "took a snapshot"), true) == std::pair(5 * second, 0 * second));
  // The pause of n1 began shortly before the others noticed it, or, at the earliest, after the last message of n1.
  CHECK(stood(at(20, "took a snapshot"), true) == std::pair(6 * second, 9 * second));
  // n1 had logged nothing for a long time, so the time at which it was missed decides
  CHECK(stood("", true) == std::pair(6 * second, 12 * second));
  CHECK(stood("", true, true) == std::pair(6 * second, 12 * second));  // the later end of n1 does not change this
  CHECK(stood(at(20, "took a snapshot"), false) == std::pair(0 * second, 0 * second));
  CHECK(stood(at(25, "stream to n2 was cut: no response from it") + at(29, "stream to n3 was cut: no response from it"),
              true)
            .first == 0);  // n1 missed the others, too, so it was partitioned
  const std::string snapshot = at(20, "took a snapshot");
  CHECK(stood(snapshot + "2026-01-02 03:00:25,504 WARN stream to n2 was cut: no response from it\n", true).first ==
        0);  // n1 missed another node when the others missed n1, so it was partitioned
  CHECK(stood(snapshot + at(28, "stream to n2 was cut: no response from it"), true).first ==
        5 * second);  // n1 reports this only after its pause
}

TEST_CASE("a timeout setting is not a timeout") {
  for (const char* text : {"starting heartbeat-interval=100ms election-timeout=1s",
                           R"(starting "heartbeat-interval":"100ms","timeout":"3s")",
                           "Created server with tickTime 500 minSessionTimeout 1000 maxSessionTimeout 10000",
                           "session.timeout.ms = 10000", "Connecting to /10.87.9.1:5701, timeout: 0, bind-any: false",
                           "Session establishment complete on server 10.0.0.1/10.0.0.1:2181, sessionid = 0x100, "
                           "negotiated timeout = 10000"})
    CHECK(!read_meaning(text).late);
  for (const char* text : {"read tcp 10.0.0.1:5->10.0.0.2:2380: i/o timeout", "no heartbeat from n2",
                           "java.net.SocketTimeoutException: connect", "ReadTimeoutError(...)", "request timed out",
                           R"("error":"dial tcp: i/o timeout")"})
    CHECK(read_meaning(text).late);
}

TEST_CASE("a missed peer is recognised by the id that it logs for itself") {
  Templates kinds;
  rose::test::Folder folder;
  const std::vector<Input> three = {{folder / "1.log", "n1"}, {folder / "2.log", "n2"}, {folder / "3.log", "n3"}};
  const char* ids[] = {"d2e0757e399d7e99", "69849e15a650cbd7", "62e8f38e1967bc4b"};
  for (int n = 0; n < 3; ++n) {
    std::ofstream out(three[n].path);
    out << R"({"level":"info","ts":"2026-11-25T04:03:14.756Z","msg":"starting","local-member-id":")" << ids[n]
        << "\"}\n";
    if (n > 0)
      out << R"({"level":"warn","ts":"2026-11-25T04:03:25.781Z","msg":"lost TCP streaming connection with remote peer","local-member-id":")"
          << ids[n] << R"(","remote-peer-id":")" << ids[0] << "\"}\n";
  }
  const Logs failure = read_files(three, kinds);
  std::string missed;
  for (const Hint& hint : hints_of(failure, {}, kinds, {{"n1", {}}, {"n2", {}}, {"n3", {}}}))
    if (hint.kind == Hint::Kind::silence) missed += hint.node + "-" + hint.peer + " ";
  CHECK(missed == "n2-n1 n3-n1 ");
}

TEST_CASE("Redis Sentinel's message is about the first node in it, and not about the master after it") {
  Templates kinds;
  rose::test::Folder folder;
  const std::vector<Input> one = {{folder / "2.log", "n2"}};
  std::ofstream(one[0].path)
      << "7:X 25 Nov 2026 04:03:14.756 # +sdown slave 10.86.4.1:6379 10.86.4.1 6379 @ cache 10.86.4.3 6379\n";
  const Logs failure = read_files(one, kinds);
  std::string missed;
  for (const Hint& hint :
       hints_of(failure, {}, kinds, {{"n1", {"10.86.4.1"}}, {"n2", {"10.86.4.2"}}, {"n3", {"10.86.4.3"}}}))
    if (hint.kind == Hint::Kind::silence) missed += hint.node + "-" + hint.peer + " ";
  CHECK(missed == "n2-n1 ");
}

TEST_CASE("a missed peer is recognised by its address or name") {
  Templates kinds;
  const Logs normal;
  const Logs failure = read_text(
      "2026-01-02 03:04:05 WARN lost connection to 10.1.0.2:7000\n2026-01-02 03:04:09 WARN lost connection to "
      "10.1.0.2:7000\n"
      "2026-01-02 03:04:07 WARN peer n3 is unreachable\n2026-01-02 03:04:08 WARN rabbit on node rabbit@mq4 down, "
      "disconnected\n",
      {"n1.log", "n1"}, {}, kinds);
  const std::vector<Hint> hints =
      hints_of(failure, normal, kinds, {{"n1", {}}, {"n2", {"10.1.0.2"}}, {"n3", {}}, {"n4", {"mq4"}}});
  std::string peers;
  for (const Hint& hint : hints)
    if (hint.kind == Hint::Kind::silence) peers += hint.peer + " ";
  CHECK(peers == "n2 n3 n4 ");
}

TEST_CASE("a run's logs show which of the failure's messages recur") {
  Templates kinds;
  Evidence evidence;
  evidence.normal = read_files({{log_file("redis.normal"), "n1"}}, kinds);
  evidence.failure = read_files({{log_file("redis.failure"), "n1"}}, kinds);
  evidence.difference = compare(evidence.failure, evidence.normal, kinds);
  ObservableMatcher matcher(evidence, kinds, {});
  CHECK(matcher.observed_in({{log_file("redis.normal"), "n1"}}).empty());
  CHECK(matcher.observed_in({{log_file("redis.failure"), "n2"}}).size() == evidence.difference.observed.size());
  CHECK(matcher.observed_in({{"/nowhere/at/all.log", "n1"}}).empty());
}

TEST_CASE("an I/O error of a connection is not an error of a disk") {
  for (const char* text :
       {"An I/O error occurred while sending to the backend.", "This connection has been closed: I/O error",
        "virNetSocketReadWire:1801 : End of file while reading data: Input/output error"}) {
    INFO(text);
    CHECK(read_meaning(text).error == 0);
    CHECK(read_meaning(text).lost);
  }
  for (const char* text : {"connection 7 to the disk: I/O error, dev sdb, sector 8", "disk I/O error"}) {
    INFO(text);
    CHECK(read_meaning(text).error == EIO);
  }
}
