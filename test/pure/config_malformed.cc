// Malformed rose.toml files, and the exact message for each. Valid files that are similar to them are in
// config_valid.cc.
#include <catch2/catch.hpp>
#include <string>

#include "config/config.h"

using namespace rose;

namespace {

struct Row {
  std::string text;
  std::string message;  // the message, without the "rose.toml:" before it
  std::string hint;
};

// has three lines, so what is appended begins in line 4
const std::string kNode = "[[node]]\nname = \"n1\"\ncommand = [\"./kv\"]\n";

const Row kRows[] = {
    // clang-format off
    {"",
     "1:1: 'node' is missing",
     "describe each node in a [[node]] table with a name and a command"},
    {"name = ",
     "1:8: not valid TOML: error while parsing key-value pair: encountered end-of-file",
     ""},
    {"name = \"kv",
     "1:11: not valid TOML: error while parsing string: encountered end-of-file",
     ""},
    {R"(name = "a"
name = "b"
)",
     "2:8: not valid TOML: error while parsing key-value pair: cannot redefine existing string "
     "'name'",
     ""},
    {"[deployment\n",
     "1:12: not valid TOML: error while parsing table header: expected ']', saw '\\n'",
     ""},
    {"name = \"\\q\"\n",
     "1:10: not valid TOML: error while parsing string: unknown escape sequence '\\q'",
     ""},
    {R"(a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a = 1
)",
     "1:66: a key of more than 32 parts",
     ""},
    {R"([deployment]
[deployment]
)",
     "2:1: not valid TOML: error while parsing table header: cannot redefine existing table "
     "'deployment'",
     "tables that may occur several times need double brackets each time: [[node]], [[fault]]"},
    {R"([node]
name = "a"
[node]
name = "b"
)",
     "3:1: not valid TOML: error while parsing table header: cannot redefine existing table 'node'",
     "tables that may occur several times need double brackets each time: [[node]], [[fault]]"},
    {"name = \"a\x01\"\n",
     "1:10: not valid TOML: error while parsing string: unescaped control characters other than "
     "TAB (U+0009) are explicitly prohibited",
     ""},
    {R"(a = 1
[[[a]]]
b = 2
)",
     "2:1: not valid TOML",
     ""},
    {R"(x = [[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]
)",
     "1:37: not valid TOML: error while parsing value: exceeded maximum nested value depth of 32",
     ""},
    {R"(nam = "kv"
[[node]]
name = "n1"
command = ["./kv"]
)",
     "1:1: unknown key 'nam'",
     "did you mean 'name'? accepted here: name, deployment, node, workload, oracle, profile, "
     "trace, diagnose, inject, log, meaning"},
    {R"(name = 5
[[node]]
name = "n1"
command = ["./kv"]
)",
     "1:8: name: '5' is an integer, a string is needed",
     ""},
    {R"(name = ""
[[node]]
name = "n1"
command = ["./kv"]
)",
     "1:8: name: '' is empty, some text is needed",
     ""},
    {"[nodes]\n",
     "1:2: unknown key 'nodes'",
     "did you mean 'node'? accepted here: name, deployment, node, workload, oracle, profile, "
     "trace, diagnose, inject, log, meaning"},
    {"node = 5\n",
     "1:8: node: '5' is an integer, a list of tables ([[node]]) is needed",
     ""},
    {R"([node]
name = "n1"
command = ["./kv"]
)",
     "1:1: node: a table was found, a list of tables ([[node]]) is needed",
     ""},
    {"node = []\n",
     "1:8: node: the list is empty, at least one node is needed",
     ""},
    {"node = [ 1 ]\n",
     "1:10: node: '1' is an integer, a list of tables ([[node]]) is needed",
     ""},
    {R"(colour = "red"
[[node]]
name = "n1"
command = ["./kv"]
)",
     "1:1: unknown key 'colour'",
     "accepted here: name, deployment, node, workload, oracle, profile, trace, diagnose, inject, log, meaning"},
    {R"(deployment = "host"
[[node]]
name = "n1"
command = ["./kv"]
)",
     "1:14: deployment: 'host' is a string, a table is needed",
     ""},
    {kNode + R"([deployment]
network = "bridge"
)",
     "5:11: deployment.network: 'bridge' is not one of \"netns\", \"host\"",
     ""},
    {kNode + R"([deployment]
network = "nets"
)",
     "5:11: deployment.network: 'nets' is not one of \"netns\", \"host\"",
     "did you mean 'netns'?"},
    {kNode + R"([deployment]
network = true
)",
     "5:11: deployment.network: 'true' is a boolean, one of \"netns\", \"host\" is needed",
     ""},
    {kNode + R"([deployment]
netwrk = "host"
)",
     "5:1: deployment: unknown key 'netwrk'",
     "did you mean 'network'? accepted here: network, subnet, engine, compose, compose_profiles, compose_env, setup, "
     "teardown, form"},
    {kNode + R"([deployment]
compose = "nowhere/compose.yaml"
)",
     "5:11: deployment.compose: /srv/kv/nowhere/compose.yaml does not exist",
     "relative paths are relative to the configuration file's folder"},
    {kNode + R"([deployment]
subnet = "10.77.0"
)",
     "5:10: deployment.subnet: '10.77.0' is not a network such as \"10.77.0.0/24\" or \"fd00:77::/64\"",
     ""},
    {kNode + R"([deployment]
subnet = "10.77.0.0"
)",
     "5:10: deployment.subnet: '10.77.0.0' is not an IPv4 network with a prefix of 8 to 29 such as "
     "\"10.77.0.0/24\"",
     ""},
    {kNode + R"([deployment]
subnet = "10.77.0.0/31"
)",
     "5:10: deployment.subnet: '10.77.0.0/31' has a prefix of 31, an IPv4 network with a prefix of "
     "8 to 29 such as \"10.77.0.0/24\" is needed",
     ""},
    {kNode + R"([deployment]
subnet = "10.77.0.5/24"
)",
     "5:10: deployment.subnet: '10.77.0.5/24' is an address inside its network, which is "
     "\"10.77.0.0/24\"",
     ""},
    {kNode + R"([deployment]
subnet = "fd00::/127"
)",
     "5:10: deployment.subnet: 'fd00::/127' has a prefix of 127, an IPv6 network with a prefix of "
     "16 to 125 such as \"fd00:77::/64\" is needed",
     ""},
    {kNode + R"([deployment]
subnet = "fd00::5:0:0:1/64"
)",
     "5:10: deployment.subnet: 'fd00::5:0:0:1/64' is an address inside its network, which is "
     "\"fd00::/64\"",
     ""},
    {kNode + R"([deployment]
setup = "./setup.sh"
)",
     "5:9: deployment.setup: './setup.sh' is a string, a list of strings such as [\"./program\", "
     "\"argument\"] is needed",
     ""},
    {kNode + R"([deployment]
setup = []
)",
     "5:9: deployment.setup: the command is empty, a list of strings such as [\"./program\", "
     "\"argument\"] is needed",
     ""},
    {kNode + R"([deployment]
teardown = [""]
)",
     "5:13: deployment.teardown: '' does not name a program, a list of strings such as "
     "[\"./program\", \"argument\"] is needed",
     ""},
    {kNode + R"([deployment]
setup = ["./setup.sh", 5]
)",
     "5:24: deployment.setup: '5' is an integer, a list of strings such as [\"./program\", "
     "\"argument\"] is needed",
     ""},
    {kNode + R"([deployment]
setup = ["./setup.sh", "${dir}"]
)",
     "5:24: deployment.setup: '${dir}' has a value only in a node's command, ready command and "
     "env, accepted here are ${ips}, ${run_dir}, ${config_dir}, ${ip_NODE}",
     ""},
    {R"([[node]]
command = ["./kv"]
)",
     "1:1: node: 'name' is missing",
     ""},
    {R"([[node]]
nam = "n1"
command = ["./kv"]
)",
     "2:1: node: unknown key 'nam'",
     "did you mean 'name'? accepted here: name, command, attach, image, volumes, entrypoint, options, aliases, ip, env, ready, restart, user, "
     "begins_as_root, working_dir, binary, sources, functions, exceptions, logs, record, record_libc"},
    {R"([[node]]
name = "../etc"
command = ["./kv"]
)",
     "2:8: node.name: '../etc' is not a node name: up to 63 letters, digits, '_', '.', '-' are "
     "accepted, the first a letter or digit",
     ""},
    {R"([[node]]
name = "client"
command = ["./kv"]
)",
     "2:8: node.name: 'client' is reserved for rose's own namespace, another name is needed",
     ""},
    {R"([[node]]
name = "."
command = ["./kv"]
)",
     "2:8: node.name: '.' is not a node name: up to 63 letters, digits, '_', '.', '-' are "
     "accepted, the first a letter or digit",
     ""},
    {R"([[node]]
name = "nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn"
command = ["./kv"]
)",
     "2:8: node.name: 'nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn...' is not a node name: up to 63 letters, "
     "digits, '_', '.', '-' are accepted, the first a letter or digit",
     ""},
    {kNode + R"([[node]]
name = "n1"
command = ["./kv"]
)",
     "5:8: node.name: 'n1' is taken by the node in line 1, names must differ",
     ""},
    {R"([[node]]
name = "a-b"
command = ["x"]
[[node]]
name = "a_b"
command = ["x"]
)",
     "5:8: node.name: 'a_b' and 'a-b' (line 1) give the same variable, ROSE_IP_a_b; names must differ in more than '-' and '_'",
     ""},
    {R"([[node]]
name = "n1"
)",
     "1:1: node: 'command' is missing",
     "a node has a command, an image, or attach = { pid_file | container | unit | cgroup = \"...\" } for a "
     "system started by setup"},
    {R"([[node]]
name = "n1"
command = []
)",
     "3:11: node.command: the command is empty, a list of strings such as [\"./program\", "
     "\"argument\"] is needed",
     ""},
    {R"([[node]]
name = "n1"
command = "./kv --id 1"
)",
     "3:11: node.command: './kv --id 1' is a string, a list of strings such as [\"./program\", "
     "\"argument\"] is needed",
     ""},
    {R"([[node]]
name = "n1"
command = ["./kv", "${data}"]
)",
     "3:20: node.command: '${data}' is an unknown placeholder, accepted are ${node}, ${ip}, "
     "${ips}, ${dir}, ${run_dir}, ${config_dir}, ${ip_NODE}",
     "for a shell's variable write $NAME or $${NAME}"},
    {R"([[node]]
name = "n1"
command = ["./kv", "${node"]
)",
     "3:20: node.command: '${node' has a '${' without '}', accepted placeholders are ${node}, "
     "${ip}, ${ips}, ${dir}, ${run_dir}, ${config_dir}, ${ip_NODE}",
     "for a shell's variable write $NAME or $${NAME}"},
    {R"([[node]]
name = "n1"
command = ["./kv", "${nod}"]
)",
     "3:20: node.command: '${nod}' is an unknown placeholder, accepted are ${node}, ${ip}, ${ips}, "
     "${dir}, ${run_dir}, ${config_dir}, ${ip_NODE}",
     "did you mean '${node}'?"},
    {R"([[node]]
name = "n-1"
command = ["./kv", "${ip_n_1}", "${ip_n-1}"]
[[node]]
name = "n2"
command = ["./kv"]
)",
     "3:33: node.command: '${ip_n-1}' names no node, accepted are ${ip_n_1}, ${ip_n2}",
     "a '-' or '.' in a node's name becomes '_'"},
    {kNode + "[workload]\ncommand = [\"./w\", \"${ip_n9}\"]\n",
     "5:19: workload.command: '${ip_n9}' names no node, accepted are ${ip_n1}",
     "a '-' or '.' in a node's name becomes '_'"},
    {kNode + "[workload]\ncommand = \"?\"\n",
     "5:11: workload.command: the question mark that 'rose init' wrote is still there, a command is needed",
     "the comment above it explains what is needed, with an example"},
    {"[[node]]\nname = \"n1\"\ncommand = \"?\"\n",
     "3:11: node.command: the question mark that 'rose init' wrote is still there, a command is needed",
     "the comment above it explains what is needed, with an example"},
    {R"([[node]]
name = "n1"
command = ["./kv", "a\u0000b"]
)",
     "3:20: node.command: 'a\\u0000b' contains a NUL character, which is not accepted",
     ""},
    {kNode + "attach = { unit = \"kv\" }\n",
     "4:10: node.attach: 'command' and 'attach' were both found, exactly one is needed",
     ""},
    {"[[node]]\nname = \"n1\"\nimage = \"a b\"\n",
     "3:9: node.image: 'a b' is not the name of an image such as \"docker.io/library/redis:7\" or \"localhost/kv:1\"",
     ""},
    {kNode + "volumes = [\"/a:/b\"]\n",
     "4:11: node.volumes: 'volumes' is for nodes with an 'image'",
     ""},
    {kNode + "record_libc = [\"time\", \"tme\"]\n",
     "4:24: node.record_libc[1]: 'tme' is not a source that can be recorded",
     "known are time, random, pid, hostname, ready"},
    {kNode + "record = false\nrecord_libc = [\"time\"]\n",
     "5:15: node.record_libc: 'record' is false, but 'record_libc' makes a recording as well",
     ""},
    {"[[node]]\nname = \"n1\"\nimage = \"a\"\nrecord_libc = [\"time\"]\n",
     "4:15: node.record_libc: 'record_libc' is only for programs of this machine: a container may have another C library",
     ""},
    {kNode + "options = [\"--privileged\"]\n",
     "4:11: node.options: 'options' is for nodes with an 'image'",
     ""},
    {"[[node]]\nname = \"n1\"\nimage = \"a\"\noptions = [\"NET_ADMIN\"]\n",
     "4:12: node.options[0]: 'NET_ADMIN' is not an option of the engine's 'create'",
     "each word separately, such as [\"--cap-add\", \"NET_ADMIN\"]"},
    {"[[node]]\nname = \"n1\"\nimage = \"a\"\noptions = [\"--init\", \"--network=host\"]\n",
     "4:22: node.options[1]: '--network=host' is set by rose itself",
     "other keys set the names, networks, logs and restarts of nodes"},
    {"[[node]]\nname = \"n1\"\nimage = \"a\"\naliases = [\"a b\"]\n",
     "4:11: node.aliases: 'a b' is not a host name such as \"db.example.org\"",
     ""},
    {"[[node]]\nname = \"n1\"\nimage = \"a\"\nvolumes = [\"/a\"]\n",
     "4:12: node.volumes[0]: '/a' is not a volume: SOURCE:TARGET or SOURCE:TARGET:OPTIONS is needed",
     "such as \"${dir}:/data\", \"./redis.conf:/etc/redis.conf:ro\" or \"cache:/var/cache\""},
    {"[[node]]\nname = \"n1\"\nimage = \"a\"\nvolumes = [\"${dir}/../x:/data\"]\n",
     "4:12: node.volumes[0]: '${dir}/../x:/data' leaves the folder that it begins with",
     "such as \"${dir}:/data\", \"./redis.conf:/etc/redis.conf:ro\" or \"cache:/var/cache\""},
    {"[[node]]\nname = \"n1\"\nimage = \"a\"\nvolumes = [\"/x:/data:shared\"]\n",
     "4:12: node.volumes[0]: '/x:/data:shared' has the option 'shared', accepted are ro, rw, z, Z and nocopy",
     "such as \"${dir}:/data\", \"./redis.conf:/etc/redis.conf:ro\" or \"cache:/var/cache\""},
    {"[[node]]\nname = \"n1\"\nimage = \"a\"\nattach = { unit = \"kv\" }\n",
     "4:10: node.attach: 'image' and 'attach' were both found, exactly one is needed",
     ""},
    {R"([[node]]
name = "n1"
attach = {}
)",
     "3:10: node.attach: one of 'pid_file', 'container', 'unit', 'cgroup' is missing",
     ""},
    {R"([[node]]
name = "n1"
attach = { unit = "kv", cgroup = "/x" }
)",
     "3:10: node.attach: 'unit' and 'cgroup' were both found, exactly one of 'pid_file', "
     "'container', 'unit', 'cgroup' is needed",
     ""},
    {R"([[node]]
name = "n1"
attach = { units = "kv" }
)",
     "3:12: node.attach: unknown key 'units'",
     "did you mean 'unit'? accepted here: pid_file, container, unit, cgroup, exec"},
    {R"([[node]]
name = "n1"
attach = { unit = "kv" }
restart = {}
)",
     "4:11: node.restart: 'restart' is for nodes with a 'command', rose does not start attached nodes",
     ""},
    {kNode + "ip = \"10.78.0.1\"\n",
     "4:6: node.ip: '10.78.0.1' is not in the subnet 10.77.0.0/24, 10.77.0.1 to 10.77.0.253 are "
     "accepted",
     ""},
    {kNode + "ip = \"10.77.0.254\"\n",
     "4:6: node.ip: '10.77.0.254' is the client's address, 10.77.0.1 to 10.77.0.253 are accepted",
     ""},
    {kNode + "ip = \"10.77.0.0\"\n",
     "4:6: node.ip: '10.77.0.0' is the network address of 10.77.0.0/24, 10.77.0.1 to 10.77.0.253 "
     "are accepted",
     ""},
    {kNode + "ip = \"10.77.0.255\"\n",
     "4:6: node.ip: '10.77.0.255' is the broadcast address of 10.77.0.0/24, 10.77.0.1 to "
     "10.77.0.253 are accepted",
     ""},
    {kNode + "ip = \"n1.local\"\n",
     "4:6: node.ip: 'n1.local' is not an IP address such as \"10.77.0.1\"",
     ""},
    {kNode + R"(ip = "10.77.0.1"
[[node]]
name = "n2"
ip = "10.77.0.1"
command = ["./kv"]
)",
     "7:6: node.ip: '10.77.0.1' is taken by node 'n1', addresses must differ",
     ""},
    {R"([deployment]
subnet = "10.77.0.0/29"
[[node]]
name = "n0"
command = ["./kv"]
[[node]]
name = "n1"
command = ["./kv"]
[[node]]
name = "n2"
command = ["./kv"]
[[node]]
name = "n3"
command = ["./kv"]
[[node]]
name = "n4"
command = ["./kv"]
[[node]]
name = "n5"
command = ["./kv"]
)",
     "2:10: deployment.subnet: '10.77.0.0/29' has room for 5 nodes, 6 are configured",
     "give a larger subnet, such as \"10.77.0.0/16\""},
    {kNode + "env = { KV = 5 }\n",
     "4:14: node.env.KV: '5' was found, a string is needed",
     "values of variables are strings: write them in quotes"},
    {kNode + "env = { \"K=V\" = \"x\" }\n",
     "4:9: node.env: 'K=V' is not the name of a variable: letters, digits, '_', '.' and '-' are accepted, the first "
     "not a digit",
     ""},
    {kNode + "env = { PEERS = \"${ipz}\" }\n",
     "4:17: node.env.PEERS: '${ipz}' is an unknown placeholder, accepted are ${node}, ${ip}, "
     "${ips}, ${dir}, ${run_dir}, ${config_dir}, ${ip_NODE}",
     "did you mean '${ip}'?"},
    {kNode + "env = [\"A=b\"]\n",
     "4:7: node.env: a list was found, a table is needed",
     ""},
    {kNode + "ready = { tcp = 70000 }\n",
     "4:17: node.ready.tcp: '70000' is out of range, an integer from 1 to 65535 is needed",
     ""},
    {kNode + "ready = { tcp = 7000, log = \"up\" }\n",
     "4:9: node.ready: 'tcp' and 'log' were both found, exactly one of 'tcp', 'log', 'command' is "
     "needed",
     ""},
    {kNode + "ready = { timeout = \"5s\" }\n",
     "4:9: node.ready: needs one of 'tcp', 'log', 'command'",
     ""},
    {kNode + "ready = { log = \"(up\" }\n",
     "4:17: node.ready.log: '(up' is not a regular expression (RE2): a '(' is not closed or "
     "a ')' not opened",
     ""},
    {kNode + "ready = { tcp = 7000, timeout = 10 }\n",
     "4:33: node.ready.timeout: '10' is an integer, a duration such as \"1.5s\" (units ms, s, m, h) "
     "is needed",
     ""},
    {kNode + "ready = { tcp = 7000, timeout = \"10\" }\n",
     "4:33: node.ready.timeout: '10' is not a duration such as \"1.5s\" (units ms, s, m, h)",
     ""},
    {kNode + "ready = { tcp = 7000, timeout = \"-1s\" }\n",
     "4:33: node.ready.timeout: '-1s' is not a duration such as \"1.5s\" (units ms, s, m, h)",
     ""},
    {kNode + "ready = { tcp = 7000, timeout = \"48h\" }\n",
     "4:33: node.ready.timeout: '48h' is out of range, 1ms to 24h is accepted",
     ""},
    {kNode + "ready = { tpc = 7000 }\n",
     "4:11: node.ready: unknown key 'tpc'",
     "did you mean 'tcp'? accepted here: tcp, log, command, timeout"},
    {kNode + "restart = { delay = \"1s\", max = -1 }\n",
     "4:33: node.restart.max: '-1' is out of range, an integer from 0 to 1000000 is needed",
     ""},
    {kNode + "restart = { every = \"1s\" }\n",
     "4:13: node.restart: unknown key 'every'",
     "accepted here: delay, max"},
    {kNode + "restart = true\n",
     "4:11: node.restart: 'true' is a boolean, a table is needed",
     ""},
    {kNode + "user = \"not a user\"\n",
     "4:8: node.user: 'not a user' is not a user name such as \"nobody\"",
     ""},
    {kNode + "begins_as_root = true\n",
     "4:18: node.begins_as_root: 'begins_as_root' needs the 'user' to which the command changes by itself",
     ""},
    {kNode + "user = 0\n",
     "4:8: node.user: '0' is an integer, a string is needed",
     ""},
    {kNode + "binary = 5\n",
     "4:10: node.binary: '5' is an integer, a string is needed",
     ""},
    {kNode + "binary = []\n",
     "4:10: node.binary: the list is empty, a list of strings such as [\"a\", \"b\"] is needed",
     ""},
    {kNode + "binary = \"${dir}/kv\"\n",
     "4:10: node.binary: '${dir}/kv' has a placeholder, only ${config_dir} is accepted here",
     ""},
    {kNode + "sources = \"raft.cc\"\n",
     "4:11: node.sources: 'raft.cc' is a string, a list of strings such as [\"a\", \"b\"] is needed",
     ""},
    {kNode + "functions = [\"Raft::*\", 1]\n",
     "4:25: node.functions: '1' is an integer, a list of strings such as [\"a\", \"b\"] is needed",
     ""},
    {kNode + "functions = [\"\"]\n",
     "4:14: node.functions: '' is empty, some text is needed",
     ""},
    {kNode + "exceptions = true\n",
     "4:14: node.exceptions: 'exceptions' applies to the methods in `functions` or `sources`: name some, as in functions = [\"org.x.*\"]",
     ""},
    {kNode + "function = [\"Raft::*\"]\n",
     "4:1: node: unknown key 'function'",
     "did you mean 'functions'? accepted here: name, command, attach, image, volumes, entrypoint, options, aliases, ip, env, ready, restart, "
     "user, begins_as_root, working_dir, binary, sources, functions, exceptions, logs, record, record_libc"},
    {kNode + "[workload]\n",
     "4:1: workload: 'command' is missing",
     ""},
    {kNode + R"([workload]
command = ["./w.sh"]
timeout = "1 minute"
)",
     "6:11: workload.timeout: '1 minute' is not a duration such as \"1.5s\" (units ms, s, m, h)",
     ""},
    {kNode + R"([workload]
cmd = ["./w.sh"]
)",
     "5:1: workload: unknown key 'cmd'",
     "accepted here: command, timeout"},
    {kNode + R"([oracle]
command = []
)",
     "5:11: oracle.command: the command is empty, a list of strings such as [\"./program\", "
     "\"argument\"] is needed",
     ""},
    {kNode + R"([oracle]
command = ["grep"]
when = "polling"
)",
     "6:8: oracle.when: 'polling' is not one of \"end\", \"poll\"",
     ""},
    {kNode + R"([oracle]
command = ["grep"]
every = "0ms"
)",
     "6:9: oracle.every: '0ms' is out of range, 10ms to 1h is accepted",
     ""},
    {kNode + R"([profile]
infrequent_below = 0
)",
     "5:20: profile.infrequent_below: '0' is out of range, a number above 0 and up to 1000000 is "
     "needed",
     ""},
    {kNode + R"([profile]
infrequent_below = "2"
)",
     "5:20: profile.infrequent_below: '2' is a string, a number above 0 and up to 1000000 is "
     "needed",
     ""},
    {kNode + R"([profile]
infrequent_below = nan
)",
     "5:20: profile.infrequent_below: 'nan' is out of range, a number above 0 and up to 1000000 is "
     "needed",
     ""},
    {kNode + R"([trace]
window = 10
)",
     "5:10: trace.window: '10' is out of range, an integer from 1000 to 16000000 is needed",
     ""},
    {kNode + R"([trace]
window = 1e6
)",
     "5:10: trace.window: '1000000' is a decimal, an integer from 1000 to 16000000 is needed",
     ""},
    {kNode + R"([trace]
memory = "64MB"
)",
     "5:10: trace.memory: '64MB' is not a size such as \"64MiB\" (units B, KiB, MiB, GiB)",
     ""},
    {kNode + R"([trace]
memory = "64KiB"
)",
     "5:10: trace.memory: '64KiB' is out of range, 1 MiB to 64 GiB is accepted",
     ""},
    {kNode + R"([trace]
noise = ["opneat:ENOENT"]
)",
     "5:9: trace.noise: unknown syscall 'opneat'",
     "did you mean 'openat'?"},
    {kNode + R"([trace]
noise = ["-open:ENOENT"]
)",
     "5:9: trace.noise: '-open:ENOENT' removes an entry that is not in the list",
     "'rose trace --noise list' prints the list"},
    {kNode + R"([trace]
pause = 2000-01-01
)",
     "5:9: trace.pause: a date was found, a duration such as \"1.5s\" (units ms, s, m, h) is needed",
     ""},
    {kNode + R"([diagnose]
target_rate = 80
)",
     "5:15: diagnose.target_rate: '80' is out of range, a number above 0 and up to 1 is needed",
     ""},
    {kNode + R"([diagnose]
target_rate = 0.0
)",
     "5:15: diagnose.target_rate: '0' is out of range, a number above 0 and up to 1 is needed",
     ""},
    {kNode + R"([diagnose]
confirm_runs = 0
)",
     "5:16: diagnose.confirm_runs: '0' is out of range, an integer from 1 to 1000 is needed",
     ""},
    {kNode + R"([diagnose]
levels = []
)",
     "5:10: diagnose.levels: the list is empty, a list of the levels 1, 2, 3 such as [1, 2] is "
     "needed",
     ""},
    {kNode + R"([diagnose]
levels = [1, 4]
)",
     "5:14: diagnose.levels: '4' was found, a list of the levels 1, 2, 3 such as [1, 2] is needed",
     ""},
    {kNode + R"([diagnose]
levels = [1, 1]
)",
     "5:14: diagnose.levels: '1' occurs twice",
     ""},
    {kNode + R"([diagnose]
jobs = 65
)",
     "5:8: diagnose.jobs: '65' is out of range, an integer from 1 to 64 is needed",
     ""},
    {kNode + R"([diagnose]
seed = -1
)",
     "5:8: diagnose.seed: '-1' is out of range, an integer from 0 to 9223372036854775807 is needed",
     ""},
    {kNode + R"([inject]
syscall = "ptrace"
)",
     "5:11: inject.syscall: 'ptrace' is not one of \"auto\", \"override\", \"seccomp\"",
     ""},
    {kNode + "logs = \"kv.log\"\n",
     "4:8: node.logs: 'kv.log' is a string, a list of strings such as [\"a\", \"b\"] is needed",
     ""},
    {kNode + "logs = [\"a.log\", \"/var/log/b.log\"]\n",
     "4:18: node.logs: '/var/log/b.log' is not a file in the node's folder, such as \"server.log\" or \"log/server.log\"",
     "stdout.log and stderr.log are read anyway"},
    {kNode + "logs = [\"log/../../n2/b.log\"]\n",
     "4:9: node.logs: 'log/../../n2/b.log' is not a file in the node's folder, such as \"server.log\" or \"log/server.log\"",
     "stdout.log and stderr.log are read anyway"},
    {kNode + "logs = [\"${dir}/b.log\"]\n",
     "4:9: node.logs: '${dir}/b.log' is not a file in the node's folder, such as \"server.log\" or \"log/server.log\"",
     "stdout.log and stderr.log are read anyway"},
    {kNode + "[log]\npattern = 'x'\n",
     "4:1: log: a table was found, a list of tables ([[log]]) is needed",
     ""},
    {kNode + "[[meaning]]\nsays = \"eror\"\nwords = \"bent\"\n",
     "5:8: meaning.says: 'eror' is not one of \"error\", \"operation\", \"lost\", \"closed\", \"cut-off\", "
     "\"outcast\", \"late\", \"in-vain\", \"on-disk\", \"slow-disk\", \"stood\", \"hung\", \"woke\", "
     "\"suspends\", \"panic\", \"gave-up\", \"stopping\", \"starting\", \"serving\", \"killed\", \"gone\", "
     "\"sigkill\", \"helper\", \"no-helper\", \"lookup\", \"clock\", \"torn\", "
     "\"unclean\", \"divided\", \"reunited\", \"relayed\", \"answered\", \"other\"",
     "did you mean 'error'?"},
    {kNode + "[[meaning]]\nsays = \"error\"\nwords = \"bent\"\n",
     "4:1: meaning: 'error' is missing",
     ""},
    {kNode + "[[meaning]]\nsays = \"error\"\nwords = \"bent\"\nerror = \"EBENT\"\n",
     "7:9: meaning.error: 'EBENT' is not the name of an error",
     "such as \"EIO\""},
    {kNode + "[[meaning]]\nsays = \"late\"\nwords = \"bent\"\nerror = \"EIO\"\n",
     "7:9: meaning.error: 'error' belongs to says = \"error\", but this entry has says = \"late\"",
     ""},
    {kNode + "[[meaning]]\nsays = \"operation\"\nwords = \"bent\"\noperation = \"bend\"\n",
     "7:13: meaning.operation: 'bend' is not one of \"accept\", \"connect\", \"listen\", \"memory\", \"mkdir\", "
     "\"open\", \"read\", \"receive\", \"rename\", \"send\", \"set-mode\", \"set-owner\", \"socket\", \"spawn\", "
     "\"sync\", \"truncate\", \"unlink\", \"watch\", \"write\"",
     "did you mean 'send'?"},
    {kNode + "[[meaning]]\nsays = \"late\"\nwords = \"<bent>\"\n",
     "6:9: meaning.words: there are no words '<bent>'",
     "configs/rose-toml.md has the form of patterns"},
    {kNode + "[[meaning]]\nsays = \"late\"\nwords = \"bent\"\nexample = \"straight\"\n",
     "7:11: meaning.example: it does not have the words",
     "configs/rose-toml.md has the form of patterns"},
    {kNode + "[[log]]\nfiles = \"*.log\"\n",
     "4:1: log: one of 'pattern', 'zone' is missing",
     ""},
    {kNode + "[[log]]\npattern = '(?P<message>.*'\n",
     "5:11: log.pattern: '(?P<message>.*' is not a regular expression (RE2): a '(' is not closed or a ')' not opened",
     "such as '^(?P<time>[^|]*)\\|(?P<level>[^|]*)\\|(?P<message>.*)$'"},
    {kNode + "[[log]]\npattern = '(?P<time>.*) .*'\n",
     "5:11: log.pattern: '(?P<time>.*) .*' has no group named message: (?P<message>...) is needed",
     "such as '^(?P<time>[^|]*)\\|(?P<level>[^|]*)\\|(?P<message>.*)$'"},
    {kNode + "[[log]]\npattern = '(?P<date>.*) (?P<message>.*)'\n",
     "5:11: log.pattern: '(?P<date>.*) (?P<message>.*)' has a group named 'date', accepted are time, level, thread, logger, host and message",
     "such as '^(?P<time>[^|]*)\\|(?P<level>[^|]*)\\|(?P<message>.*)$'"},
    {kNode + "[[log]]\npattern = '(?P<message>.*)'\ntime = \"%d.%m.%Y\"\n",
     "6:8: log.time: '%d.%m.%Y' has no time of day: %H, %I, %T or %s is needed",
     "such as \"%d.%m.%Y %H:%M:%S\""},
    {kNode + "[[log]]\npattern = '(?P<message>.*)'\ntime = \"%Q\"\n",
     "6:8: log.time: '%Q' has '%Q', accepted are %Y %y %m %d %e %b %B %a %A %H %I %M %S %f %L %p %z %Z %s %T and %%",
     "such as \"%d.%m.%Y %H:%M:%S\""},
    {kNode + "[[log]]\ntime = \"%H:%M\"\n",
     "5:8: log.time: 'time' describes the group 'time' of a 'pattern', but there is no 'pattern'",
     ""},
    {kNode + "[[log]]\nzone = \"Middle-earth\"\n",
     "5:8: log.zone: 'Middle-earth' is not a time zone such as \"+02:00\" or \"UTC\"",
     ""},
    {kNode + "[[log]]\nzone = \"UTC\"\nregex = \"x\"\n",
     "6:1: log: unknown key 'regex'",
     "accepted here: files, pattern, time, zone"},
    {kNode + R"([diagnoze]
jobs = 1
)",
     "4:2: unknown key 'diagnoze'",
     "did you mean 'diagnose'? accepted here: name, deployment, node, workload, oracle, profile, "
     "trace, diagnose, inject, log, meaning"},
    // clang-format on
};

}  // namespace

TEST_CASE("a malformed rose.toml is refused with its position, the value and the accepted values") {
  for (const Row& row : kRows) {
    INFO(row.text);
    const auto config = config::parse_config(row.text, "rose.toml", "/srv/kv");
    REQUIRE_FALSE(config.has_value());
    CHECK(config.error().message == "rose.toml:" + row.message);
    CHECK(config.error().hint == row.hint);
    CHECK(config.error().kind == ErrorKind::input);
  }
}
