// What drafts are made from: command lines as words, secrets in them, systemd units, tables of the kernel.
#include <catch2/catch.hpp>

#include "draft/net_tables.h"
#include "draft/secrets.h"
#include "draft/settings.h"
#include "draft/unit.h"
#include "draft/words.h"

using namespace rose;
using namespace rose::draft;
using Texts = std::vector<std::string>;

TEST_CASE("a command line is split into words, a process title is one word") {
  using namespace std::string_literals;
  CHECK(read_command_line("kv\0--id\0\0x\0"s).words == Texts{"kv", "--id", "", "x"});
  CHECK_FALSE(read_command_line("kv\0--id\0"s).title);
  CHECK(read_command_line("").words.empty());
  // Redis overwrites its arguments with its address and NULs.
  const CommandLine title = read_command_line("redis-server *:7401\0\0\0\0"s);
  CHECK(title.title);
  CHECK(title.words == Texts{"redis-server *:7401"});
}

TEST_CASE("options are distinguished from their values") {
  CHECK(split_word("--dir=/x").option == "--dir=");
  CHECK(split_word("-Ddir=/x").value == "/x");
  CHECK(split_word("http://h/?a=b").option.empty());
  CHECK(split_word("=x").option.empty());
  Words words({"kv", "--Data", "/d", "--bind", "127.0.0.1", "::1", "--save", "-v", "--port=7"});
  CHECK(words.option_of(2) == "--data");
  CHECK(words.option_of(8) == "--port=");
  CHECK(words.value({"--port"}) == "7");
  CHECK(words.drop({"--bind"}, 16));
  CHECK_FALSE(words.drop({"--bind"}, 16));
  CHECK(words.texts() == Texts{"kv", "--Data", "/d", "--save", "-v", "--port=7"});
  words.put({"--port"}, "--port", "8");
  words.put({"--id"}, "--id", "1");
  words.put({"--x"}, "--x=", "y");
  CHECK(words.texts() == Texts{"kv", "--Data", "/d", "--save", "-v", "--port=8", "--id", "1", "--x=y"});
}

TEST_CASE("a shell variable in a command line is left to the shell") {
  CHECK(Words({"sh", "-c", "echo ${HOME} $X $${Y}"}).texts().back() == "echo $${HOME} $X $$${Y}");
}

TEST_CASE("secrets are replaced, equal ones by the same text") {
  struct Row {
    const char* name;
    const char* value;
    const char* masked;
  };
  for (const Row& row : std::vector<Row>{
           {"DB_PASSWORD", "hunter2", "rose-secret-1"},
           {"--requirepass", "hunter2", "rose-secret-1"},
           {"awsSecretKey", "x/y+z", "rose-secret-1"},
           {"PASSWORD", "12345", "rose-secret-1"},
           {"API_TOKEN", "abc", "rose-secret-1"},
           {"", "redis://u:hunter2@db:6379/0", "redis://u:rose-secret-1@db:6379/0"},
           {"", "host=a password=hunter2 user=b", "host=a password=rose-secret-1 user=b"},
           {"", "PGPASSWORD=hunter2 exec psql --token t0k", "PGPASSWORD=rose-secret-1 exec psql --token rose-secret-2"},
           {"", "https://x/?token=hunter2&n=1", "https://x/?token=rose-secret-1&n=1"},
           {"", "ghp_0123456789abcdefghij", "rose-secret-1"},
           {"", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYzEXAMPLEK3Y1", "rose-secret-1"},
           {"LICENSE_KEY", "ABCDEF0123456789", "rose-secret-1"},
       }) {
    INFO(row.name << "=" << row.value);
    Secrets secrets;
    CHECK(secrets.masked(row.name, row.value) == row.masked);
  }
  Secrets secrets;
  CHECK(secrets.masked("A_PASSWORD", "one") == "rose-secret-1");
  CHECK(secrets.masked("B_PASSWORD", "two") == "rose-secret-2");
  CHECK(secrets.masked("--requirepass", "one") == "rose-secret-1");
  CHECK(secrets.count() == 2);
}

TEST_CASE("values that are not secrets are kept") {
  struct Row {
    const char* name;
    const char* value;
  };
  for (const Row& row : std::vector<Row>{
           {"PASSWORD_FILE", "/run/secrets/db"},
           {"--password-file", "/etc/x"},
           {"MAX_TOKENS", "4096"},
           {"PASSIVE", "maybe"},
           {"--bypass", "local"},
           {"TOKEN_TTL", "1h"},
           {"SECRET", "${SECRET}"},
           {"KEY", "a.b:c"},
           {"", "io.netty.channel.epoll"},
           {"", "redis-server-7.0.15"},
           {"", "http://db:2379/v"},
           {"", "user@host"},
           {"PASSWORD", "true"},
       }) {
    INFO(row.name << "=" << row.value);
    Secrets secrets;
    CHECK(secrets.masked(row.name, row.value) == row.value);
    CHECK(secrets.count() == 0);
  }
}

TEST_CASE("a unit is read from the output of systemctl show") {
  const Unit unit = read_unit(
      "Id=redis-server.service\n"
      "ExecStart={ path=/usr/bin/redis-server ; argv[]=/usr/bin/redis-server /etc/redis/redis.conf --daemonize no ; "
      "ignore_errors=no ; start_time=[n/a] }\n"
      "ExecStart={ path=/bin/other ; argv[]=/bin/other ; ignore_errors=no }\n"
      "Restart=on-failure\nRestartUSec=1min 30s\nStartLimitBurst=7\nPIDFile=/run/redis/redis-server.pid\n"
      "StateDirectory=redis sub/dir ../x\nLogsDirectory=redis\nEnvironmentFiles=/etc/default/redis "
      "(ignore_errors=yes)\n"
      "Environment=\"OPTS=--x A=1\" HOME=/srv \"Q=a \\\"b C=2\"\nTriggeredBy=redis.socket redis.timer\n"
      "ExecStartPre={ path=/bin/a ; argv[]=/bin/a b ; ignore_errors=no }\n"
      "ExecStartPre={ path=/bin/c ; argv[]=/bin/c ; ignore_errors=yes "
      "}\nActiveState=active\nMainPID=12\nType=oneshot\n");
  CHECK(unit.name == "redis-server.service");
  CHECK(unit.command == Texts{"/usr/bin/redis-server", "/etc/redis/redis.conf", "--daemonize", "no"});
  CHECK(unit.restart == "on-failure");
  CHECK(unit.restart_delay_ns == 90'000'000'000);
  CHECK(unit.restarts == 7);
  CHECK(unit.pid_file == "/run/redis/redis-server.pid");
  CHECK(unit.folders == Texts{"/var/lib/redis", "/var/lib/sub/dir", "/var/log/redis"});
  CHECK(unit.environment_files == Texts{"/etc/default/redis"});
  CHECK(unit.variables == Texts{"OPTS", "HOME", "Q"});
  CHECK(unit.sockets == Texts{"redis.socket"});
  CHECK(unit.before == Texts{"/bin/a b", "/bin/c"});
  CHECK_FALSE(unit.done);
  CHECK(read_unit("ActiveState=active\nMainPID=0\nType=oneshot\n").done);
  CHECK_FALSE(read_unit("ActiveState=failed\nMainPID=0\nType=oneshot\n").done);
  CHECK(read_unit("").command.empty());
  CHECK(read_unit("ExecStart=garbage\n=\n\n").command.empty());
}

TEST_CASE("the words of ExecStart are read with their quotes, and variables are replaced as by systemd") {
  const char* answer =
      R"x({"type":"a(sasbttttuii)","data":[["/usr/sbin/nginx",["/usr/sbin/nginx","-g","daemon on; x"],false,1,2]]})x";
  CHECK(read_exact_command(answer) == Texts{"/usr/sbin/nginx", "-g", "daemon on; x"});
  for (const char* other :
       {"", "{}", "no", R"({"data":[]})", R"({"data":[["x",[1]]]})", R"({"data":[["x",["a",{}]]]})"})
    CHECK(read_exact_command(other).empty());
  const Variables variables = {{"OPTS", "--a  --b c"}, {"X", "1 2"}};
  CHECK(expand_word("$OPTS", variables) == Texts{"--a", "--b", "c"});
  CHECK(expand_word("--x=${X}", variables) == Texts{"--x=1 2"});
  CHECK(expand_word("$NONE", variables).empty());
  CHECK(expand_word("${NONE}", variables) == Texts{""});
  CHECK(expand_word("a$$b", variables) == Texts{"a$b"});
  CHECK(expand_word("a$X", variables) == Texts{"a$X"});
  CHECK(expand_word("${", variables) == Texts{"${"});
}

TEST_CASE("systemd's time spans are parsed") {
  CHECK(read_time_span("100ms") == 100'000'000);
  CHECK(read_time_span("1d 2h") == 26LL * 3600 * 1'000'000'000);
  for (const char* none : {"", "infinity", "5", "-1s", "1e300s", "nan s", "nans", "infs", "999999w", "1x"}) {
    INFO(none);
    CHECK(read_time_span(none) == 0);
  }
}

TEST_CASE("the kernel's socket and address tables are parsed") {
  Socket socket;
  CHECK_FALSE(read_socket_line("  sl  local_address rem_address   st", socket));
  REQUIRE(read_socket_line(
      "   0: 0100007F:1CE9 0200007F:CFEA 01 00000000:00000000 00:00000000 00000000     0        0 4711 1", socket));
  CHECK(socket.address == "127.0.0.1");
  CHECK(socket.port == 7401);
  CHECK(socket.remote == "127.0.0.2");
  CHECK(socket.remote_port == 53226);
  CHECK(socket.state == 1);
  CHECK(socket.inode == 4711);
  REQUIRE(
      read_socket_line("   1: 00000000000000000000000001000000:0050 00000000000000000000000000000000:0000 0A "
                       "00000000:00000000 00:00000000 00000000 0 0 12 1",
                       socket));
  CHECK(socket.address == "::1");
  CHECK(socket.port == 80);
  // The second line is IPv4 traffic to an IPv6 socket.
  REQUIRE(
      read_socket_line("   1: 0000000000000000FFFF00000100007F:0050 00000000000000000000000000000000:0000 0A "
                       "00000000:00000000 00:00000000 00000000 0 0 12 1",
                       socket));
  CHECK(socket.address == "127.0.0.1");
  for (const char* bad : {"", "0: 0100007F", "0: 0100007F:GGGG 0:0 0A", "0: 01:1 02:2 0A 0:0 0:0 0 0 0 1"}) {
    INFO(bad);
    CHECK_FALSE(read_socket_line(bad, socket));
  }
  std::uint64_t inode = 0;
  CHECK(read_unix_line("0000000000000000: 00000002 00000000 00010000 0001 01 815 /run/x.sock", inode) == "/run/x.sock");
  CHECK(inode == 815);
  CHECK(read_unix_line("0000000000000000: 00000002 00000000 00010000 0001 01 815 @abstract", inode).empty());
  CHECK(read_unix_line("Num       RefCount Protocol Flags    Type St Inode Path", inode).empty());
  CHECK(read_fib_trie("Main:\n  +-- 0.0.0.0/0 3 0 5\n     |-- 10.1.0.7\n        /32 host LOCAL\n     |-- 10.1.0.0\n    "
                      "    /24 link UNICAST\n") == Texts{"10.1.0.7"});
  CHECK(read_if_inet6("00000000000000000000000000000001 01 80 10 80       lo\nzz\n") == Texts{"::1"});
}

TEST_CASE("addresses and paths are found in a configuration file") {
  CHECK(is_settings("/etc/kv.conf", "port 1\n"));
  CHECK_FALSE(is_settings("/opt/kv.py", "import x\n"));
  CHECK_FALSE(is_settings("/opt/run", "#!/bin/sh\n"));
  CHECK_FALSE(is_settings("/opt/x", std::string_view("a\0b", 3)));
  const Settings settings = read_settings("/etc/kv.conf",
                                          "# listen 9.9.9.9:1\n"
                                          "listen 127.0.0.1:7001;\n"
                                          "  bind-address: 10.0.0.5\n"
                                          "allow 10.0.0.6;\n"
                                          "peers = [\"localhost:7002\", 'http://[::1]:7003']\n"
                                          "data /var/lib/kv;\nversion 1.2.3.4\nrequirepass hunter2\n",
                                          {"localhost"});
  REQUIRE(settings.addresses.size() == 4);
  CHECK(settings.addresses[0].keyword == "listen");
  CHECK(settings.addresses[0].line == 2);
  CHECK(settings.addresses[0].port == 7001);
  CHECK(settings.addresses[1].host == "10.0.0.5");
  CHECK_FALSE(settings.addresses[1].port);
  CHECK(settings.addresses[2].host == "localhost");
  CHECK(settings.addresses[3].spelled == "[::1]");
  CHECK(settings.paths == Texts{"/var/lib/kv"});
  CHECK(settings.secrets == Texts{"requirepass"});
}
