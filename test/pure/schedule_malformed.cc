// Malformed schedules, and the exact message for each. Valid schedules that are similar to them are in
// schedule_valid.cc.
#include <catch2/catch.hpp>
#include <string>

#include "schedule/schedule.h"

using namespace rose;

namespace {

struct Row {
  std::string text;
  std::string message;  // the message, without the "schedule.toml:" before it
  std::string hint;
};

const std::string kVersion = "version = 1\n";
const std::string kSyscall = kVersion + "[[fault]]\nid = \"f\"\nkind = \"syscall\"\nnode = \"n1\"\n";
const std::string kCrash = kVersion + "[[fault]]\nid = \"f\"\nkind = \"crash\"\nnode = \"n1\"\n";
const std::string kThrow = kVersion + "[[fault]]\nid = \"f\"\nkind = \"exception\"\nnode = \"n1\"\n";
const std::string kClock = kVersion + "[[fault]]\nid = \"f\"\nkind = \"clock\"\nnode = \"n1\"\n";
const std::string kLimit = kVersion + "[[fault]]\nid = \"f\"\nnode = \"n1\"\nkind = ";
const std::string kBlock = kVersion + "[[fault]]\nid = \"f\"\nkind = \"block\"\nnode = \"n1\"\n";
const std::string kNetwork = kVersion + "[[fault]]\nid = \"f\"\nkind = \"network\"\nnode = \"n1\"\n";
const std::string kPartition = kVersion + "[[fault]]\nid = \"f\"\nkind = \"partition\"\nnode = \"n1\"\n";

const Row kRows[] = {
    // clang-format off
    {"",
     "1:1: 'version' is missing",
     "write version = 1 at the top"},
    {"version = 1\n\xef\xbb\xbd = 2\n",
     "2:1: not valid TOML: error while parsing root table: expected keys, tables, whitespace or comments, saw "
     "'\xef\xbb\xbd'", ""},
    {"a = \xef\xbb\xbd\n", "1:5: not valid TOML: error while parsing value: could not determine value type", ""},
    {"version = 1\n\xef\xbb\xadn = 2\n",
     "2:1: not valid TOML: error while parsing root table: expected keys, tables, whitespace or comments, saw "
     "'\xef\xbb\xad'", ""},
    {"version = 1\nkl\xc3\xa9 = 2\n",
     "2:3: not valid TOML: error while parsing key-value pair: expected '=', saw '\xc3\xa9'", ""},
    {"version = 2\n",
     "1:11: version: found version 2, this rose reads version 1",
     ""},
    {"version = \"1\"\n",
     "1:11: version: '1' is a string, an integer is needed",
     ""},
    {kVersion + "name = 3\n",
     "2:8: name: '3' is an integer, a string is needed",
     ""},
    {kVersion + "faults = []\n",
     "2:1: unknown key 'faults'",
     "did you mean 'fault'? accepted here: version, name, role, event, order, fault"},
    {kVersion + "[fault]\n",
     "2:1: fault: a table was found, a list of tables ([[fault]]) is needed",
     ""},
    {kVersion + "[[fault]\n",
     "2:9: not valid TOML: error while parsing table header: expected ']', saw '\\n'",
     ""},
    {kVersion + "[[fault]]\n",
     "2:1: fault: 'id' is missing",
     "each fault needs its own id, such as id = \"cut\""},
    {kVersion + R"([[fault]]
id = "a b"
kind = "crash"
node = "n1"
)",
     "3:6: fault.id: 'a b' is not a name: up to 64 letters, digits, '_', '.', '-', ':' are "
     "accepted",
     ""},
    {kVersion + R"([[fault]]
id = "f"
kind = "crsh"
node = "n1"
)",
     "4:8: fault.kind: 'crsh' is not one of \"syscall\", \"crash\", \"pause\", \"partition\", \"network\", \"clock\", \"exception\", \"descriptors\", "
     "\"memory\", \"cpu\", \"disk-full\", \"block\", \"disk-slow\"",
     "did you mean 'crash'?"},
    {kVersion + R"([[fault]]
id = "f"
kin = "crash"
node = "n1"
)",
     "4:1: fault: unknown key 'kin'",
     "did you mean 'kind'? accepted here: id, kind, node, after, group, optional, when, syscall, error, "
     "result, effect, delay, path, path2, peer, local, args, process, count, times, then, signal, scope, "
     "before, lose, keep, duration, until, at, peers, direction, ports, protocol, loss, action, jitter, duplicate, reorder, corrupt, rate, iops, payload, "
     "counts, seed, shift, drift, freeze, clocks, limit, share, throws, message, function, offset, line"},
    {kVersion + R"([[fault]]
id = "f"
kind = "crash"
)",
     "2:1: fault: 'node' is missing",
     "the name of the node that the fault affects"},
    {kCrash + "peers = [\"n2\"]\n",
     "6:9: fault.peers: 'peers' is for partition and network faults, this is a crash fault",
     ""},
    {kPartition + "error = \"EIO\"\n",
     "6:9: fault.error: 'error' is for syscall faults, this is a partition fault",
     ""},
    {kVersion + R"([[fault]]
id = "f"
kind = "pause"
node = "n1"
duration = "1s"
signal = "SIGTERM"
)",
     "7:10: fault.signal: 'signal' is for crash faults, this is a pause fault",
     ""},
    {kCrash + "wen = []\n",
     "6:1: fault: unknown key 'wen'",
     "did you mean 'when'? accepted here: id, kind, node, after, group, optional, when, scope, signal, "
     "lose, keep, path, before"},
    {kCrash + "optional = \"yes\"\n",
     "6:12: fault.optional: 'yes' is a string, true or false is needed",
     ""},
    {kCrash + "colour = \"red\"\n",
     "6:1: fault: unknown key 'colour'",
     "accepted here: id, kind, node, after, group, optional, when, scope, signal, lose, keep, path, before"},
    {kSyscall + "error = \"EIO\"\n",
     "2:1: fault: 'syscall' is missing",
     "the name of the call to change, such as syscall = \"read\""},
    {kSyscall + R"(syscall = "fdatasinc"
error = "EIO"
)",
     "6:11: fault.syscall: unknown syscall 'fdatasinc'",
     "did you mean 'fdatasync'?"},
    {kSyscall + R"(syscall = "opn*"
error = "EIO"
)",
     "6:11: fault.syscall: 'opn*' matches no syscall",
     ""},
    {kSyscall + "syscall = \"read\"\n",
     "2:1: fault: needs one of 'error', 'result', 'delay'",
     "state what the call does: error = \"EIO\", result = 0 or delay = \"200ms\""},
    {kSyscall + R"(syscall = "read"
error = "EOI"
)",
     "7:9: fault.error: unknown error 'EOI', a name such as \"EIO\" is needed",
     "did you mean 'EIO'?"},
    {kSyscall + R"(syscall = "read"
error = 5
)",
     "7:9: fault.error: '5' is an integer, a string is needed",
     ""},
    {kSyscall + R"(syscall = "read"
error = "EIO"
result = 0
)",
     "8:10: fault.result: 'error' and 'result' were both found, exactly one is needed",
     "both are allowed with effect = { bytes = N } and result = N: the first call does only N bytes, and the next "
     "calls fail"},
    {kSyscall + R"(syscall = "read"
result = -5
)",
     "7:10: fault.result: '-5' is out of range, an integer from 0 up is needed",
     "to make a call fail, write error = \"EIO\""},
    {kSyscall + R"(syscall = "write"
result = 1
effect = "half"
)",
     "8:10: fault.effect: 'half' is not one of \"none\", \"full\" or { bytes = N }",
     ""},
    {kSyscall + R"(syscall = "write"
result = 1
effect = { bytes = 0 }
)",
     "8:20: fault.effect.bytes: '0' is out of range, an integer from 1 to 1099511627776 is needed",
     ""},
    {kSyscall + R"(syscall = "write"
result = 1
effect = { byte = 5 }
)",
     "8:12: fault.effect: unknown key 'byte'",
     "did you mean 'bytes'? accepted here: bytes"},
    {kSyscall + R"(syscall = "write"
delay = "1s"
effect = "full"
)",
     "8:10: fault.effect: 'effect' requires 'error' or 'result', neither was found",
     ""},
    {kSyscall + R"(syscall = "write"
delay = "0s"
)",
     "7:9: fault.delay: '0s' is out of range, 1ms to 24h is accepted",
     ""},
    {kSyscall + R"(syscall = "read"
error = "EIO"
count = 0
)",
     "8:9: fault.count: '0' is out of range, an integer from 1 to 1000000000 is needed",
     ""},
    {kSyscall + R"(syscall = "read"
error = "EIO"
times = "always"
)",
     "8:9: fault.times: 'always' was found, a number from 1 up or \"forever\" is needed",
     ""},
    {kSyscall + R"(syscall = "read"
error = "EIO"
times = 0
)",
     "8:9: fault.times: '0' was found, a number from 1 up or \"forever\" is needed",
     ""},
    {kSyscall + R"(syscall = "read"
error = "EIO"
then = "pause"
)",
     "8:8: fault.then: 'pause' is not one of \"crash\"",
     ""},
    {kSyscall + R"(syscall = "getpid"
error = "EIO"
path = "*"
)",
     "8:8: fault.path: 'getpid' uses neither a path nor a descriptor, so no path can match",
     ""},
    {kSyscall + R"(syscall = "openat"
error = "EIO"
path2 = "*"
)",
     "8:9: fault.path2: 'openat' has no second path, so none can match",
     ""},
    {kSyscall + R"(syscall = "getpid"
error = "EIO"
peer = "*"
)",
     "8:8: fault.peer: 'getpid' does not use a socket, so no address can match",
     ""},
    {kSyscall + R"(syscall = "connect"
error = "EIO"
peer = "10.77.0.2"
)",
     "8:8: fault.peer: '10.77.0.2' has no port, \"ip:port\" is needed",
     "for any port write \"10.77.0.2:*\""},
    {kSyscall + R"(syscall = "openat"
error = "EIO"
args = { flags = "O_CREAT" }
)",
     "8:10: fault.args: 'flags' is not an argument's index, 0 to 5 are accepted",
     ""},
    {kSyscall + R"(syscall = "openat"
error = "EIO"
args = { 2 = "o_creat" }
)",
     "8:14: fault.args.2: 'o_creat' was found, a number or flag names such as \"O_CREAT|O_TRUNC\" "
     "are needed",
     ""},
    {kSyscall + R"(syscall = "openat"
error = "EIO"
args = {}
)",
     "8:8: fault.args: the table is empty, arguments such as { 1 = \"O_CREAT|O_TRUNC\" } are needed",
     ""},
    {kSyscall + R"(syscall = "read"
error = "EIO"
path = ""
)",
     "8:8: fault.path: '' is empty, some text is needed",
     ""},
    {kCrash + "signal = \"SIGKIL\"\n",
     "6:10: fault.signal: unknown signal 'SIGKIL', a name such as \"SIGKILL\" is needed",
     "did you mean 'SIGKILL'?"},
    {kCrash + "signal = \"SIGSTOP\"\n",
     "6:10: fault.signal: 'SIGSTOP' does not end a process, a signal such as \"SIGKILL\" is needed",
     ""},
    {kCrash + "signal = 9\n",
     "6:10: fault.signal: '9' is an integer, a string is needed",
     ""},
    {kCrash + "scope = \"some\"\n",
     "6:9: fault.scope: 'some' is not one of \"all\", \"main\", \"others\"",
     ""},
    {kCrash + "before = { path = \"*/log\" }\n",
     "6:10: fault.before: 'syscall' is missing",
     ""},
    {kCrash + "before = { syscall = \"openat\", cnt = 2 }\n",
     "6:32: fault.before: unknown key 'cnt'",
     "accepted here: syscall, path, path2, peer, local, args, process, count"},
    {kVersion + R"([[fault]]
id = "f"
kind = "pause"
node = "n1"
)",
     "2:1: fault: 'duration' is missing",
     "how long the node is paused, such as duration = \"3s\""},
    {kVersion + R"([[fault]]
id = "f"
kind = "pause"
node = "n1"
duration = 3
)",
     "6:12: fault.duration: '3' is an integer, a duration such as \"1.5s\" (units ms, s, m, h) is "
     "needed",
     ""},
    {kPartition + "peers = []\n",
     "6:9: fault.peers: the list is empty, a list of strings such as [\"a\", \"b\"] is needed",
     ""},
    {kPartition + "peers = [\"n1\"]\n",
     "6:10: fault.peers: 'n1' is the fault's own node, other nodes are needed",
     ""},
    {kPartition + "peers = [\"n2\", \"n2\"]\n",
     "6:16: fault.peers: 'n2' occurs twice",
     ""},
    {kPartition + "direction = \"up\"\n",
     "6:13: fault.direction: 'up' is not one of \"both\", \"in\", \"out\"",
     ""},
    {kPartition + "ports = [0]\n",
     "6:10: fault.ports: '0' was found, a list of ports from 1 to 65535 such as [7000] is needed",
     ""},
    {kPartition + "ports = [80, 80]\n",
     "6:14: fault.ports: '80' occurs twice",
     ""},
    {kPartition + "protocol = \"icmp\"\n",
     "6:12: fault.protocol: 'icmp' is not one of \"tcp\", \"udp\"",
     "did you mean 'tcp'?"},
    {kPartition + "loss = 0\n",
     "6:8: fault.loss: '0' is out of range, a number above 0 and up to 1 is needed",
     ""},
    {kPartition + "loss = 30\n",
     "6:8: fault.loss: '30' is out of range, a number above 0 and up to 1 is needed",
     ""},
    {kVersion + R"([[role]]
name = "leader"
function = "f"
[[fault]]
id = "f"
kind = "crash"
node = "@laeder"
)",
     "8:8: fault.node: no [[role]] is named 'laeder'",
     "did you mean 'leader'?"},
    {kVersion + R"([[fault]]
id = "f"
kind = "crash"
node = "n1"
when = [ { role = "leader" } ]
)",
     "6:19: fault.when.role: no [[role]] is named 'leader'",
     "[[role]] with name = \"leader\" and function = ... defines it"},
    {kVersion + R"([[role]]
name = "leader"
)",
     "2:1: role: 'function' is missing",
     "the node that last entered it has the role, such as function = \"become_leader\""},
    {kPartition + "action = \"rejekt\"\n",
     "6:10: fault.action: 'rejekt' is not one of \"drop\", \"reject\"",
     "did you mean 'reject'?"},
    {kPartition + "peers = [\"10.0.0.0/33\"]\n",
     "6:10: fault.peers: '10.0.0.0/33' is not a node's name, an address such as \"10.0.0.9\" or a range such as "
     "\"10.0.0.0/8\"",
     ""},
    {kVersion + R"([[fault]]
id = "f"
kind = "partition"
node = ["n1", "n2"]
peers = ["n3", "n2"]
)",
     "6:16: fault.peers: 'n2' is among the fault's own nodes, other nodes are needed",
     ""},
    {kVersion + R"([[fault]]
id = "f"
kind = "crash"
node = ["n1", "n2"]
)",
     "5:8: fault.node: 2 nodes were found, a crash fault affects one",
     "write one [[fault]] per node; in a `group`, only the first that can fires"},
    {kPartition + R"(duration = "1s"
until = [ { elapsed = "1s" } ]
)",
     "7:9: fault.until: 'duration' and 'until' were both found, at most one is accepted",
     ""},
    {kClock,
     "2:1: fault: needs one of 'shift', 'drift', 'freeze'",
     "state what the clock does: shift = \"+1h\", drift = 1.05 or freeze = true"},
    {kClock + "shift = \"1 hour\"\n",
     "6:9: fault.shift: '1 hour' is not a shift such as \"+1h\" or \"-1.5s\" (units ms, s, m, h; up to 10000h)",
     ""},
    {kClock + "shift = \"+-1h\"\n",
     "6:9: fault.shift: '+-1h' is not a shift such as \"+1h\" or \"-1.5s\" (units ms, s, m, h; up to 10000h)",
     ""},
    {kClock + "drift = 1\n",
     "6:9: fault.drift: a speed of 1 has no effect, and extreme ones do not work: 0.01 to 100 but not 1 is accepted",
     "1.05 means five percent too fast"},
    {kClock + "drift = 101\n",
     "6:9: fault.drift: '101' is out of range, a number above 0 and up to 100 is needed",
     ""},
    {kClock + "drift = 2\nfreeze = true\n",
     "6:9: fault.drift: 'freeze' and 'drift' were both found, at most one is accepted",
     ""},
    {kThrow + "function = \"A.m\"\n", "2:1: fault: 'throws' is missing", "the exception's class, such as throws = \"java.io.IOException\""},
    {kThrow + "throws = \"java.io.IOException\"\n", "2:1: fault: 'function' is missing",
     "the method that throws it, such as function = \"org.x.Store.append\""},
    {kThrow + "function = \"A.m\"\nthrows = \"IOException\"\n",
     "7:10: fault.throws: 'IOException' has no package, a full name such as \"java.io.IOException\" is needed", ""},
    {kThrow + "function = \"A.m\"\nthrows = \"java.io.\"\n",
     "7:10: fault.throws: 'java.io.' is not the name of a Java class such as \"java.io.IOException\"", ""},
    {kThrow + "function = \"A.m\"\nthrows = \"a.B\"\nline = 3\noffset = 4\n",
     "8:8: fault.line: 'offset' and 'line' were both found, at most one is accepted", ""},
    {kThrow + "function = \"A.m\"\nthrows = \"a.B\"\nline = 0\n", "8:8: fault.line: '0' is out of range, an integer from 1 to 1000000 is needed", ""},
    {kThrow + "function = \"A.m\"\nthrows = \"a.B\"\nduration = \"1s\"\n",
     "8:12: fault.duration: 'duration' is for pause, partition, network, clock, descriptors, memory, cpu, disk-full, disk-slow and block faults, this is an exception fault", ""},
    {kThrow + "function = \"A.m\"\nthrows = \"a.B\"\nmessage = \"a\\tb\"\n",
     "8:11: fault.message: a line of at most 400 characters, without tabs, is needed", ""},
    {kClock + "freeze = true\nclocks = [\"wall\"]\n",
     "7:11: fault.clocks: 'wall' is not one of \"realtime\", \"monotonic\"",
     ""},
    {kClock + "freeze = true\nclocks = [\"realtime\", \"realtime\"]\n",
     "7:23: fault.clocks: 'realtime' occurs twice",
     ""},
    {kClock + "shift = \"1h\"\npeers = [\"n2\"]\n",
     "7:9: fault.peers: 'peers' is for partition and network faults, this is a clock fault",
     ""},
    {kCrash + "lose = \"all\"\n", "6:8: fault.lose: 'all' is not one of \"unsynced\", \"torn\", \"scattered\"", ""},
    {kCrash + "lose = \"unsynced\"\nsignal = \"SIGTERM\"\n", "6:8: fault.lose: power loss is not a signal: 'signal' must be left out", ""},
    {kCrash + "lose = \"unsynced\"\nscope = \"main\"\n", "6:8: fault.lose: power loss affects the whole node: 'scope' must be left out", ""},
    {kCrash + "lose = \"unsynced\"\nkeep = 0.5\n",
     "7:8: fault.keep: 'keep' requires lose = \"torn\" or \"scattered\"; otherwise no unsynced data is kept", ""},
    {kCrash + "lose = \"torn\"\nkeep = 1.0\n", "7:8: fault.keep: '1' is not a share of the unsynced sectors between 0 and 1, such as keep = 0.5", ""},
    {kCrash + "lose = \"torn\"\npath = \"/var/\"\n", "7:8: fault.path: '/var/' is neither a folder below the node's own, such as \"data\", nor an absolute path in its container",
     "no '/' at the end and no '.' or '..' in it; without 'path' it is the node's whole folder, and all its volumes"},
    {kCrash + "path = \"data\"\n", "6:8: fault.path: 'path' of a crash requires 'lose'",
     "lose = \"unsynced\" discards unsynced data in that folder"},
    {kLimit + "\"disk-slow\"\n", "2:1: fault: needs one of 'rate', 'iops', 'delay'",
     "state how slow the disk is: rate = \"1MiB/s\", iops = 50 or delay = \"20ms\" for each of its requests"},
    {kLimit + "\"disk-slow\"\nrate = \"10mbit\"\n",
     "6:8: fault.rate: '10mbit' is not a disk's rate such as \"10MiB/s\" (units B, KiB, MiB, GiB; 1KiB/s to 1024GiB/s)", ""},
    {kLimit + "\"disk-slow\"\niops = 0.05\n", "6:8: fault.iops: '0.05' is less than 0.1 requests a second", ""},
    {kLimit + "\"disk-slow\"\ndelay = \"2m\"\n", "6:9: fault.delay: '2m' is out of range, 0.1ms to 1m is accepted", ""},
    {kLimit + "\"cpu\"\nshare = 0.5\niops = 5\n", "7:8: fault.iops: 'iops' is for disk-slow faults, this is a cpu fault", ""},
    {kBlock + "duration = \"1s\"\n", "2:1: fault: 'at' is missing",
     "where the thread waits: at = { function = \"commit\" } or at = { syscall = \"fsync\", path = \"*/log\" }"},
    {kBlock + "duration = \"1s\"\nat = { function = \"f\", syscall = \"fsync\" }\n",
     "7:34: fault.at.syscall: 'function' and 'syscall' were both found, exactly one is needed", ""},
    {kBlock + "duration = \"1s\"\nat = { count = 2 }\n", "7:6: fault.at: one of 'function', 'syscall' is missing", ""},
    {kBlock + "duration = \"1s\"\nat = { funtion = \"f\" }\n", "7:8: fault.at: unknown key 'funtion'", "did you mean 'function'? accepted here: function, syscall, count"},
    {kBlock + "duration = \"1s\"\nat = { syscall = \"fsyn\" }\n", "7:18: fault.at.syscall: unknown syscall 'fsyn'", "did you mean 'fsync'?"},
    {kBlock + "duration = \"1s\"\nat = { function = \"f\", count = 2 }\ncount = 2\n",
     "8:9: fault.count: 'count' was found here and in 'at', at most one is accepted", ""},
    {kBlock + "at = { function = \"f\" }\n", "2:1: fault: needs one of 'duration', 'until'",
     "state how long the thread waits: duration = \"2s\" or until = [ { log = \"closed\" } ]; with both, whichever comes first"},
    {kBlock + "duration = \"1s\"\nat = { function = \"f\" }\ntimes = 2\n",
     "8:9: fault.times: 'times' is for syscall, network and exception faults, this is a block fault", ""},
    {kLimit + "\"descriptors\"\n", "2:1: fault: 'limit' is missing", "how many a process may have open, such as limit = 64"},
    {kLimit + "\"descriptors\"\nlimit = 2\n", "6:9: fault.limit: '2' is out of range, an integer from 3 to 1048576 is needed", ""},
    {kLimit + "\"descriptors\"\nlimit = 64\nshare = 0.5\n", "7:9: fault.share: 'share' is for cpu faults, this is a descriptors fault", ""},
    {kLimit + "\"descriptors\"\nlimit = 64\nduration = \"1s\"\nuntil = [ { elapsed = \"1s\" } ]\n",
     "8:9: fault.until: 'duration' and 'until' were both found, at most one is accepted", ""},
    {kLimit + "\"memory\"\nlimit = 16\n", "6:9: fault.limit: '16' is an integer, a string is needed", ""},
    {kLimit + "\"memory\"\nlimit = \"16M\"\n",
     "6:9: fault.limit: '16M' is not a size such as \"16MiB\" (units B, KiB, MiB, GiB; 64KiB to 1024GiB)", ""},
    {kLimit + "\"memory\"\nlimit = \"1KiB\"\n",
     "6:9: fault.limit: '1KiB' is not a size such as \"16MiB\" (units B, KiB, MiB, GiB; 64KiB to 1024GiB)", ""},
    {kLimit + "\"cpu\"\n", "2:1: fault: 'share' is missing", "how much of one processor the node is left, such as share = 0.05"},
    {kLimit + "\"cpu\"\nshare = 0\n", "6:9: fault.share: '0' is out of range, a number above 0 and up to 1024 is needed", ""},
    {kLimit + "\"cpu\"\nshare = 0.005\n", "6:9: fault.share: '0.005' is below the kernel's minimum, 0.01 to 1024 is accepted", ""},
    {kLimit + "\"disk-full\"\npath = \"../other\"\n", "6:8: fault.path: '../other' is neither a folder below the node's own, such as \"data\", nor an absolute path in its container",
     "no '/' at the end and no '.' or '..' in it; without 'path' it is the node's whole folder, and all its volumes"},
    {kLimit + "\"disk-full\"\npath = \"/var/\"\n", "6:8: fault.path: '/var/' is neither a folder below the node's own, such as \"data\", nor an absolute path in its container",
     "no '/' at the end and no '.' or '..' in it; without 'path' it is the node's whole folder, and all its volumes"},
    {kLimit + "\"disk-full\"\nlimit = 3\n", "6:9: fault.limit: 'limit' is for descriptors and memory faults, this is a disk-full fault", ""},
    {kNetwork,
     "2:1: fault: needs one of 'delay', 'loss', 'duplicate', 'corrupt', 'rate'",
     "state what the link does: delay = \"50ms\", loss = 0.1 or rate = \"1mbit\""},
    {kNetwork + "delay = \"0s\"\n",
     "6:9: fault.delay: '0s' is out of range, 0.001ms to 10m is accepted",
     ""},
    {kNetwork + "delay = \"11m\"\n",
     "6:9: fault.delay: '11m' is out of range, 0.001ms to 10m is accepted",
     ""},
    {kNetwork + "delay = \"5ms\"\njitter = \"6ms\"\n",
     "7:10: fault.jitter: it is longer than 'delay', but packets cannot arrive before they are sent",
     ""},
    {kNetwork + "loss = 0.1\njitter = \"6ms\"\n",
     "7:10: fault.jitter: 'jitter' requires 'delay', which was not found",
     ""},
    {kNetwork + "loss = 0.1\nreorder = 0.5\n",
     "7:11: fault.reorder: 'reorder' requires 'delay', which was not found",
     "that share of the packets overtakes those that are delayed"},
    {kNetwork + "loss = 10\n",
     "6:8: fault.loss: '10' is out of range, a number above 0 and up to 1 is needed",
     ""},
    {kNetwork + "corrupt = \"1%\"\n",
     "6:11: fault.corrupt: '1%' is a string, a number above 0 and up to 1 is needed",
     ""},
    {kNetwork + "rate = \"10mb\"\n",
     "6:8: fault.rate: '10mb' is not a rate such as \"10mbit\" (units bit, kbit, mbit, gbit; 1kbit to 100gbit a second)",
     ""},
    {kNetwork + "rate = \"999bit\"\n",
     "6:8: fault.rate: '999bit' is not a rate such as \"10mbit\" (units bit, kbit, mbit, gbit; 1kbit to 100gbit a second)",
     ""},
    {kNetwork + "rate = \"infmbit\"\n",
     "6:8: fault.rate: 'infmbit' is not a rate such as \"10mbit\" (units bit, kbit, mbit, gbit; 1kbit to 100gbit a second)",
     ""},
    {kNetwork + "loss = 1\npayload = \"\"\n",
     "7:11: fault.payload: '' is empty, some text is needed",
     ""},
    {kNetwork + "loss = 1\npayload = { hex = \"0 0 f\" }\n",
     "7:19: fault.payload.hex: '0 0 f' is not bytes in hexadecimal such as \"00 ff\"",
     ""},
    {kNetwork + "loss = 1\npayload = \"" + std::string(65, 'x') + "\"\n",
     "7:11: fault.payload: it is 65 bytes long, up to 64 are accepted",
     ""},
    {kNetwork + "loss = 1\ncounts = \"packets\"\n",
     "7:10: fault.counts: 'counts' requires 'count', which was not found",
     ""},
    {kNetwork + "loss = 1\ntimes = 0\n",
     "7:9: fault.times: '0' was found, a number from 1 up or \"forever\" is needed",
     ""},
    {kNetwork + "loss = 1\nseed = -1\n",
     "7:8: fault.seed: '-1' is out of range, an integer from 0 to 9223372036854775807 is needed",
     ""},
    {kNetwork + "loss = 1\naction = \"reject\"\n",
     "7:10: fault.action: 'action' is for partition faults, this is a network fault",
     ""},
    {kNetwork + "loss = 1\nduration = \"1s\"\nuntil = [ { elapsed = \"1s\" } ]\n",
     "8:9: fault.until: 'duration' and 'until' were both found, at most one is accepted",
     ""},
    {kPartition + "delay = \"50ms\"\n",
     "6:9: fault.delay: 'delay' is for syscall, network and disk-slow faults, this is a partition fault",
     ""},
    {kPartition + "until = { elapsed = \"1s\" }\n",
     "6:9: fault.until: a table was found, a list of conditions such as [ { elapsed = \"5s\" } ] is "
     "needed",
     ""},
    {kCrash + "when = []\n",
     "6:8: fault.when: the list is empty, a list of conditions such as [ { elapsed = \"5s\" } ] is "
     "needed",
     ""},
    {kCrash + "when = [ \"5s\" ]\n",
     "6:10: fault.when: '5s' is a string, a list of conditions such as [ { elapsed = \"5s\" } ] is "
     "needed",
     ""},
    {kCrash + "when = [ {  } ]\n",
     "6:10: fault.when: a condition needs one of 'elapsed', 'function', 'syscall', 'log', 'state', 'role'",
     ""},
    {kCrash + "when = [ { elapsed = \"5\" } ]\n",
     "6:22: fault.when.elapsed: '5' is not a duration such as \"1.5s\" (units ms, s, m, h)",
     ""},
    {kCrash + "when = [ { elapsd = \"5s\" } ]\n",
     "6:12: fault.when: unknown key 'elapsd'",
     "did you mean 'elapsed'? accepted here: elapsed, function, syscall, log, state, role, offset, line, "
     "count, same_thread, node, path, path2, peer, local, args, process, result"},
    {kCrash + "when = [ { elapsed = \"5s\", count = 2 } ]\n",
     "6:36: fault.when.count: 'count' is not a key of a condition on 'elapsed'",
     ""},
    {kCrash + "when = [ { function = \"f\", syscall = \"read\" } ]\n",
     "6:38: fault.when.syscall: 'function' and 'syscall' were both found, a condition has exactly "
     "one of 'elapsed', 'function', 'syscall', 'log', 'state', 'role'",
     ""},
    {kCrash + "when = [ { function = \"f\", path = \"*\" } ]\n",
     "6:35: fault.when.path: 'path' is not a key of a condition on 'function'",
     "accepted are also: offset, line, count, same_thread, node"},
    {kCrash + "when = [ { function = \"f\", offset = -1 } ]\n",
     "6:37: fault.when.offset: '-1' is out of range, an integer from 0 to 1073741824 is needed",
     ""},
    {kCrash + "when = [ { function = \"f\", offset = \"0x2a\" } ]\n",
     "6:37: fault.when.offset: '0x2a' is a string, an integer from 0 to 1073741824 is needed",
     ""},
    {kCrash + "when = [ { function = \"f\", same_thread = true } ]\n",
     "6:42: fault.when.same_thread: 'same_thread' requires a condition on 'function' or 'syscall' of the same node immediately before it",
     ""},
    {kCrash + R"(when = [ { elapsed = "1s" }, { function = "f", same_thread = true } ]
)",
     "6:62: fault.when.same_thread: 'same_thread' requires a condition on 'function' or 'syscall' of the same node immediately before it",
     ""},
    {kCrash + "when = [ { syscall = \"raed\" } ]\n",
     "6:22: fault.when.syscall: unknown syscall 'raed'",
     "did you mean 'read'?"},
    {kCrash + "when = [ { syscall = \"read\", result = \"bad\" } ]\n",
     "6:39: fault.when.result: 'bad' was found, \"ok\", \"error\", an error's name such as \"ENOENT\" or "
     "a number is needed",
     ""},
    {kCrash + "when = [ { log = \"[a\" } ]\n",
     "6:18: fault.when.log: '[a' is not a regular expression (RE2): a '[' is not closed",
     ""},
    {kCrash + "when = [ { state = \"crash\" } ]\n",
     "6:20: fault.when.state: 'crash' is not one of \"crashed\", \"exited\", \"out-of-memory\", \"paused\", "
     "\"started\"",
     "did you mean 'crashed'?"},
    {kCrash + "when = [ { state = \"crashed\", count = 2 } ]\n",
     "6:39: fault.when.count: 'count' is not a key of a condition on 'state'",
     "accepted are also: node"},
    {kCrash + "when = [ { log = \"x\", node = \"\" } ]\n",
     "6:30: fault.when.node: '' is empty, some text is needed",
     ""},
    {kVersion + R"([[fault]]
id = "a"
kind = "crash"
node = "n1"
[[fault]]
id = "a"
kind = "crash"
node = "n1"
)",
     "7:6: fault.id: 'a' is taken by the fault in line 2, ids must differ",
     ""},
    {kVersion + R"([[fault]]
id = "a"
kind = "crash"
node = "n1"
[[fault]]
id = "b"
kind = "crash"
node = "n1"
after = ["aa"]
)",
     "10:10: fault.after: no fault has the id 'aa'",
     "did you mean 'a'?"},
    {kVersion + R"([[fault]]
id = "a"
kind = "crash"
node = "n1"
after = ["a"]
[[fault]]
id = "b"
kind = "crash"
node = "n1"
)",
     "6:10: fault.after: 'a' depends on itself",
     ""},
    {kVersion + R"([[fault]]
id = "a"
kind = "crash"
node = "n1"
after = ["b"]
[[fault]]
id = "b"
kind = "crash"
node = "n1"
after = ["a"]
)",
     "11:10: fault.after: faults depend on each other in a cycle: 'a' waits for 'b' waits for 'a'",
     ""},
    {kVersion + R"([[fault]]
id = "a"
kind = "crash"
node = "n1"
group = "g"
[[fault]]
id = "b"
kind = "crash"
node = "n1"
group = "g"
after = ["a"]
)",
     "12:10: fault.after: 'a' is an alternative in the same group 'g': when it fires, 'b' is "
     "withdrawn",
     ""},
    {kVersion + R"([[fault]]
id = "a"
kind = "crash"
node = "n1"
[[fault]]
id = "b"
kind = "crash"
node = "n1"
after = ["a", "a"]
)",
     "10:15: fault.after: 'a' occurs twice",
     ""},
    {kVersion + R"([[fault]]
id = "a"
kind = "crash"
node = "n1"
[[fault]]
id = "b"
kind = "crash"
node = "n1"
after = "a"
)",
     "10:9: fault.after: 'a' is a string, a list of strings such as [\"a\", \"b\"] is needed",
     ""},
    // clang-format on
};

}  // namespace

TEST_CASE("a malformed schedule is refused with its position, the value and the accepted values") {
  for (const Row& row : kRows) {
    INFO(row.text);
    const auto schedule = schedule::parse_schedule(row.text, "schedule.toml");
    REQUIRE_FALSE(schedule.has_value());
    CHECK(schedule.error().message == "schedule.toml:" + row.message);
    CHECK(schedule.error().hint == row.hint);
    CHECK(schedule.error().kind == ErrorKind::input);
  }
}
