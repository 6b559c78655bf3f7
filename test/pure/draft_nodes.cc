// How observed processes become a rose.toml: addresses, folders, names. The configuration reader must accept every
// draft.
#include <catch2/catch.hpp>
#include <filesystem>

#include "base/folder.h"
#include "config/config.h"
#include "draft/addresses.h"
#include "draft/draft.h"
#include "draft/node.h"
#include "draft/systems.h"
#include "draft/text.h"

using namespace rose;
using namespace rose::draft;
using Texts = std::vector<std::string>;

namespace {

Host machine() {
  Host host;
  host.names = {"localhost", "db1"};
  host.tools = {"redis-cli"};
  return host;
}

Seen program(Texts argv, std::vector<Listen> tcp = {}) {
  static int pid = 100;
  Seen seen;
  seen.main.pid = ++pid;
  seen.origin = fmt::format("pid {}", seen.main.pid);
  seen.main.exe = argv.front();
  seen.main.cwd = "/srv";
  seen.main.argv = std::move(argv);
  seen.tcp = std::move(tcp);
  seen.network = "net:[1]";
  seen.addresses = {"127.0.0.1", "::1", "10.0.0.5"};
  return seen;
}

Draft drafted(const std::vector<Seen>& seen, const Host& host = machine()) {
  Secrets secrets;
  const auto nodes = draft_nodes(seen, host, secrets);
  Surroundings around;
  around.setup = folder_setup(nodes);
  Draft draft = write_draft({"a test"}, nodes, around, example_for(nodes), host);
  INFO(draft.text);
  const auto checked = check_draft(draft);
  if (!checked) FAIL(checked.error().message);
  return draft;
}

NodeDraft one(const Seen& seen) {
  Secrets secrets;
  return draft_nodes({seen}, machine(), secrets).front();
}

bool holds(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

}  // namespace

TEST_CASE("addresses are found in command-line arguments") {
  struct Row {
    const char* text;
    const char* found;  // "host:port host"
  };
  const Texts names = {"localhost", "db1"};
  for (const Row& row : std::vector<Row>{
           {"127.0.0.1:7001", "127.0.0.1:7001"},
           {"http://localhost:80/x", "localhost:80"},
           {"n1=http://127.0.0.1:2380,n2=http://127.0.0.1:2381", "127.0.0.1:2380 127.0.0.1:2381"},
           {"[::1]:53", "::1:53"},
           {"::1", "::1"},
           {"10.0.0.0/8", ""},
           {"127.0.0.1 7001", "127.0.0.1:7001"},
           {"1.2.3", ""},
           {"/var/lib/db1", ""},
           {"db1", "db1"},
           {"db1.example.org", ""},
           {"127.0.0.1:99999", "127.0.0.1"},
           {"v1.2.3.4.5", ""},
       }) {
    INFO(row.text);
    std::string found;
    for (const FoundAddress& address : find_addresses(row.text, names))
      found += fmt::format("{}{}{}", found.empty() ? "" : " ", address.host,
                           address.port ? fmt::format(":{}", *address.port) : "");
    CHECK(found == row.found);
  }
}

TEST_CASE("an address becomes the node that listens there, and an unknown one is kept and reported") {
  const std::vector<Seen> seen = {
      program({"/opt/kv", "--listen", "127.0.0.1:7001", "--peers", "127.0.0.1:7002,10.9.9.9:7003"},
              {{"127.0.0.1", 7001}}),
      program({"/opt/kv", "--listen=10.0.0.5:7002", "--join", "localhost:7001"},
              {{"10.0.0.5", 7002}, {"127.0.0.1", 7002}})};
  const Draft draft = drafted(seen);
  INFO(draft.text);
  CHECK(draft.nodes == Texts{"kv1", "kv2"});
  CHECK(holds(draft.text,
              R"(command = ["/opt/kv", "--listen", "${ip}:7001", "--peers", "${ip_kv2}:7002,10.9.9.9:7003"])"));
  CHECK(holds(draft.text, R"(command = ["/opt/kv", "--listen=${ip}:7002", "--join", "${ip_kv1}:7001"])"));
  CHECK(holds(draft.text, R"(ready   = { tcp = 7001, timeout = "30s" })"));
  REQUIRE(draft.doubts.size() == 1);
  CHECK(holds(draft.doubts[0], "10.9.9.9:7003"));
}

TEST_CASE("the path of a script after its runtime is made absolute, also behind an option without a value") {
  Seen java = program({"/usr/bin/java", "-Xmx64m", "-XX:+UseSerialGC", "Server.java", "7500"});
  java.runtime = "Java";
  java.paths["Server.java"] = {"/srv/Server.java", false, false};
  CHECK(holds(drafted({java}).text, R"("-XX:+UseSerialGC", "/srv/Server.java", "7500")"));
  Seen classes = program({"/usr/bin/java", "-cp", "classes:lib/*:/opt/a.jar:.", "org.x.Main"});
  classes.runtime = "Java";
  CHECK(holds(drafted({classes}).text, R"("-cp", "/srv/classes:/srv/lib/*:/opt/a.jar:/srv", "org.x.Main")"));
  Seen python = program({"/usr/bin/python3", "-u", "server.py", "-m", "http.server"});
  python.runtime = "Python";
  python.paths["server.py"] = {"/srv/server.py", false, false};
  python.paths["http.server"] = {"/srv/http.server", false, false};
  CHECK(holds(drafted({python}).text, R"("-u", "/srv/server.py", "-m", "http.server")"));
}

TEST_CASE("a port that two nodes listen on is not assigned to either") {
  Seen other = program({"/opt/kv"}, {{"0.0.0.0", 7001}});
  const std::vector<Seen> seen = {program({"/opt/kv"}, {{"0.0.0.0", 7001}}), other,
                                  program({"/opt/proxy", "--to", "127.0.0.1:7001"})};
  const Draft draft = drafted(seen);
  CHECK(holds(draft.text, R"("--to", "127.0.0.1:7001")"));
  CHECK(holds(draft.text, "several do"));
}

TEST_CASE("Redis processes with titles: the replica is recognised by its connection") {
  Seen first = program({"redis-server *:7401"}, {{"0.0.0.0", 7401}});
  first.title = true;
  first.main.exe = "/usr/bin/redis-server";
  first.paths["redis-server"] = {"/usr/bin/redis-server", false, false};
  first.written = {"/srv/appendonlydir/a.aof"};
  Seen second = first;
  second.main.argv = {"redis-server *:7402"};
  second.tcp = {{"0.0.0.0", 7402}};
  second.remotes = {{"127.0.0.1", 7401}};
  second.written.clear();
  const Draft draft = drafted({first, second});
  INFO(draft.text);
  CHECK(holds(draft.text, R"("/usr/bin/redis-server", "--port", "7401", "--appendonly", "yes", "--bind", "${ip}")"));
  CHECK(holds(draft.text, "\"--replicaof\", \"${ip_redis1}\", \"7401\""));
  CHECK(holds(draft.text, "info replication"));
  CHECK(draft.questions.size() == 2);
  CHECK(draft.questions[0].blocking);
  CHECK_FALSE(draft.questions[1].blocking);
  // Line numbers in the draft must refer to the lines that contain questions.
  Texts lines = {""};
  for (const char c : draft.text) {
    if (c == '\n') lines.emplace_back();
    else lines.back() += c;
  }
  CHECK(lines.at(static_cast<std::size_t>(draft.questions[0].line) - 1) == "command = \"?\"");
}

TEST_CASE("Redis with a password: the draft uses a generated one and never contains the real one") {
  Seen first = program({"/usr/bin/redis-server", "/etc/redis.conf", "--port", "7401", "--requirepass", "hunter2",
                        "--bind", "127.0.0.1", "::1", "--daemonize", "yes"},
                       {{"127.0.0.1", 7401}});
  Seen second = program({"/usr/bin/redis-server", "--port", "7402", "--requirepass", "hunter2", "--masterauth",
                         "hunter2", "--replicaof", "127.0.0.1", "7401"},
                        {{"0.0.0.0", 7402}});
  second.remotes = {{"127.0.0.1", 7401}};
  second.main.env = {{"NOTE", "redis://:hunter2@127.0.0.1:7401/0"}};
  const Draft draft = drafted({first, second});
  INFO(draft.text);
  CHECK_FALSE(holds(draft.text, "hunter2"));
  CHECK(holds(draft.text, "\"--masterauth\",\n           \"rose-secret-1\""));
  CHECK(holds(draft.text, "#: export REDISCLI_AUTH=rose-secret-1"));
  CHECK(holds(draft.text, "REDISCLI_AUTH=rose-secret-1 redis-cli -h ${ip} -p 7402 info replication"));
  CHECK(holds(draft.text, R"("redis://:rose-secret-1@${ip_redis1}:7401/0")"));
  CHECK(holds(draft.text, "\"--daemonize\", \"no\""));
  CHECK_FALSE(holds(draft.text, "\"::1\""));
}

TEST_CASE("a password from Redis's configuration file is removed") {
  Seen seen = program({"/usr/bin/redis-server", "/etc/redis.conf"}, {{"0.0.0.0", 6379}});
  seen.settings = {{"/etc/redis.conf", {}, {}, {"requirepass"}}};
  CHECK(holds(drafted({seen}).text, "\"--requirepass\", \"\""));
}

TEST_CASE("a secret in a process title is not printed") {
  Seen seen = program({"sh -c kv --password=hunter2 "});
  seen.main.exe = "/bin/sh";
  seen.title = true;
  const Draft draft = drafted({seen});
  CHECK_FALSE(holds(draft.text, "hunter2"));
  CHECK(holds(draft.text, "command = \"?\""));
  CHECK(draft.questions.size() == 3);
}

TEST_CASE("folders inside a folder of the node's user are made by that user") {
  Seen seen = program({"/opt/kv", "--data", "/var/lib/kv/n1"}, {{"0.0.0.0", 7001}});
  seen.paths["/var/lib/kv/n1"] = {"/var/lib/kv/n1", true, true};
  seen.written = {"/var/lib/kv/n1/log"};
  seen.main.user = "nobody";
  const Draft draft = drafted({seen});
  INFO(draft.text);
  CHECK(holds(draft.text, "setpriv --reuid nobody --regid $(id -g nobody) --init-groups mkdir -p kv/n1"));
  CHECK_FALSE(holds(draft.text, "install -d"));
}

TEST_CASE("written folders move into the run, those not on the command line are covered") {
  Seen seen = program({"/opt/kv", "--data", "/var/lib/kv/n1", "--config", "/etc/kv.conf"}, {{"0.0.0.0", 7001}});
  seen.paths["/var/lib/kv/n1"] = {"/var/lib/kv/n1", true, true};
  seen.paths["/etc/kv.conf"] = {"/etc/kv.conf", false, false};
  seen.written = {"/var/lib/kv/n1/log", "/var/spool/kv/q"};
  seen.main.user = "nobody";
  const Draft draft = drafted({seen});
  INFO(draft.text);
  CHECK(holds(draft.text, R"("--data", "${dir}/n1", "--config", "/etc/kv.conf")"));
  CHECK(holds(draft.text, "setpriv --reuid nobody --regid $(id -g nobody) --init-groups mkdir -p kv/n1"));
  CHECK(holds(draft.text, "\"/var/spool/kv\""));
  CHECK(holds(draft.text, "exec setpriv --reuid nobody"));
  // rose knows the user, although the program itself changes to it.
  CHECK(holds(draft.text, "\nuser    = \"nobody\"\nbegins_as_root = true"));
}

TEST_CASE("a file that is only read keeps its path, although its folder is replaced") {
  Seen seen = program({"/opt/kv", "--data", "/srv/kv", "--config", "/srv/kv/kv.conf"}, {{"0.0.0.0", 7001}});
  seen.paths["/srv/kv"] = {"/srv/kv", true, true};
  seen.paths["/srv/kv/kv.conf"] = {"/srv/kv/kv.conf", false, true};
  seen.written = {"/srv/kv/log"};
  CHECK(holds(drafted({seen}).text, R"("--data", "${dir}/kv", "--config", "/srv/kv/kv.conf")"));
}

TEST_CASE("a folder shared by many programs is never covered or moved") {
  Seen seen = program({"/opt/kv", "--data-dir", "/tmp"}, {{"0.0.0.0", 7001}});
  seen.paths["/tmp"] = {"/tmp", true, true};
  seen.written = {"/tmp/kv.sock", "/tmp/kv.db"};
  seen.sockets = {"/tmp/kv.sock"};
  const NodeDraft node = one(seen);
  const auto text = fmt::format("{}", fmt::join(node.command, " "));
  CHECK(holds(text, "--data-dir /tmp"));
  CHECK(holds(text, " /tmp/kv.db --"));  // the file is covered, but not its folder
  REQUIRE_FALSE(node.doubts.empty());
  CHECK(holds(fmt::format("{}", fmt::join(node.doubts, " ")), "/tmp/kv.sock"));
}

TEST_CASE("a systemd unit gives the restart policy and the node's name") {
  Seen seen = program({"/opt/kv", "-x"}, {{"0.0.0.0", 7001}});
  seen.unit = Unit{};
  seen.unit->name = "My_KV@1.service";
  seen.unit->restart = "on-failure";
  seen.unit->restart_delay_ns = 100'000'000;
  const Draft draft = drafted({seen});
  CHECK(draft.nodes == Texts{"my_kv-1"});
  CHECK(holds(draft.text, R"(restart = { delay = "100ms", max = 5 })"));
}

TEST_CASE("a unit's environment, groups, umask and limits are those of the node") {
  Seen seen = program({"/opt/kv", "-x"}, {{"0.0.0.0", 7001}});
  seen.main.cwd = "/";
  seen.main.user = "kv";
  seen.main.home = "/srv/kv";
  seen.main.env = {{"HOME", "/srv/kv"},
                   {"LANG", "C"},
                   {"PATH", "/opt/kv/bin:/bin"},
                   {"STATE_DIRECTORY", "/var/lib/kv"},
                   {"USER", "kv"},
                   {"NOTIFY_SOCKET", "/run/x"}};
  seen.main.group = "12";
  seen.main.groups = "4,12";
  seen.main.umask = "0027";
  seen.main.limits = {{"nofile", "300", "524288"}, {"core", "0", "0"}, {"fsize", "unlimited", "unlimited"}};
  seen.unit = Unit{};
  seen.unit->name = "kv.service";
  seen.unit->folders = {"/var/lib/kv"};
  seen.unit->variables = {"PATH"};
  seen.unit->before = {"/opt/prepare --all"};
  seen.unit->sockets = {"kv.socket"};
  seen.main.passed_sockets = 2;
  Host host = machine();
  host.umask = "0022";
  host.limits = {{"nofile", "1024", "4096"}, {"core", "0", "unlimited"}, {"fsize", "1000", "1000"}};
  const Draft draft = drafted({seen}, host);
  INFO(draft.text);
  CHECK(holds(draft.text,
              "\numask 0027\nexec prlimit --nofile=300:4096 setpriv --reuid kv --regid 12 --groups 4,12 \"$@\""));
  CHECK(holds(draft.text, "env.PATH = \"/opt/kv/bin:/bin\""));
  CHECK(holds(draft.text, "env.HOME = \"/srv/kv\""));
  CHECK(holds(draft.text, "env.STATE_DIRECTORY = \"/var/lib/kv\""));
  for (const char* none : {"env.LANG", "env.USER", "env.NOTIFY_SOCKET", "--core"}) CHECK_FALSE(holds(draft.text, none));
  // The home folder of the unit's user gets an overlay, and the unit's data folder is empty.
  CHECK(holds(draft.text, "\nlay_over 1 /srv/kv\n"));
  CHECK(holds(draft.text, "\"sh\", \"/var/lib/kv\", \"--\""));
  const std::string doubts = fmt::format("{}", fmt::join(one(seen).doubts, "\n"));
  CHECK(holds(doubts, "its unit runs '/opt/prepare --all' before it (ExecStartPre)"));
  CHECK(holds(doubts, "systemd opened 2 of its sockets (kv.socket)"));
  CHECK(holds(draft.text, "its limit 'fsize' is unlimited, but 'rose init' may use at most 1000"));

  // Nothing is added for a node that has the settings that it inherits from rose anyway.
  Seen plain = program({"/opt/kv"}, {{"0.0.0.0", 7001}});
  plain.main.cwd = "/";
  plain.main.umask = "0022";
  CHECK(holds(drafted({plain}, host).text, "command = [\"/opt/kv\"]"));
  plain.main.umask = "0077";
  CHECK(holds(drafted({plain}, host).text, "umask 0077\nexec \"$@\"''', \"sh\", \"/opt/kv\"]"));
}

TEST_CASE("a node whose title replaced its command line begins with the words of its unit") {
  Seen seen = program({"nginx: master process /usr/sbin/nginx -g daemon on; master_process on;"}, {{"0.0.0.0", 80}});
  seen.main.exe = "/usr/sbin/nginx";
  seen.title = true;
  seen.main.env = {{"OPTS", "-c /etc/x.conf"}};
  seen.unit = Unit{};
  seen.unit->name = "nginx.service";
  seen.unit->command = {"/usr/sbin/nginx", "-g", "daemon on; master_process on;", "$OPTS"};
  seen.unit->exact = true;
  CHECK(
      holds(drafted({seen}).text, R"("/usr/sbin/nginx", "-g", "master_process on; daemon off;", "-c", "/etc/x.conf")"));
}

TEST_CASE("folders are covered at their paths without symbolic links") {
  TemporaryFolder folder = TemporaryFolder::make("rose-draft-test").value();
  const std::string top = std::filesystem::canonical(folder.path()).string();
  std::filesystem::create_directories(top + "/private/kv");
  std::filesystem::create_symlink("private/kv", top + "/kv");
  Seen seen = program({"/opt/kv", top + "/settings"}, {{"0.0.0.0", 7001}});
  seen.unit = Unit{};
  seen.unit->name = "kv.service";
  seen.unit->folders = {top + "/kv"};
  const NodeDraft node = one(seen);
  INFO(fmt::format("{}", fmt::join(node.command, "|")));
  CHECK(std::any_of(node.command.begin(), node.command.end(),
                    [&](const std::string& word) { return word == top + "/private"; }));
  CHECK(std::count(node.command.begin(), node.command.end(), top + "/kv") == 0);
}

TEST_CASE("a folder of the node is not covered if it contains what the node needs") {
  Seen app = program({"/usr/bin/python3", "server.py"}, {{"0.0.0.0", 7001}});
  app.runtime = "Python";
  app.main.cwd = "/srv/app/work";
  app.written = {"/srv/app"};
  const NodeDraft outer = one(app);
  INFO(outer.command[4]);
  CHECK(holds(outer.command[4], "\nlay_over 1 /srv/app\n"));
  CHECK(holds(outer.command[4], "\nat /srv/app/work\n"));
  CHECK(std::count(outer.command.begin(), outer.command.end(), "/srv/app") == 0);
  // The written folder is also the node's working folder, so the files in it must stay visible.
  app.main.cwd = "/srv/app";
  const NodeDraft same = one(app);
  CHECK(std::count(same.command.begin(), same.command.end(), "/srv/app") == 0);
  // The data folder of a unit contains data only, so it may be covered.
  app.written.clear();
  app.unit = Unit{};
  app.unit->folders = {"/srv/app"};
  const NodeDraft data = one(app);
  CHECK(std::count(data.command.begin(), data.command.end(), "/srv/app") == 1);
}

TEST_CASE("session variables are left out, and secrets and unusual ones are reported") {
  Seen seen = program({"/opt/kv"}, {{"0.0.0.0", 7001}});
  seen.main.env = {{"HOME", "/root"},
                   {"SSH_TTY", "x"},
                   {"KV_TOKEN", "hunter2"},
                   {"KV_PEER", "127.0.0.1:7001"},
                   {"KV_HOME", "${HOME}/x"},
                   {"bad-name", "1"},
                   {"BYTES", "\xff"},
                   {"SAME", "1"},
                   {"LONG", std::string(5000, 'x')},
                   {"KV_PEER", "again"}};
  Host host = machine();
  host.environment = {{"SAME", "1"}};
  const Draft draft = drafted({seen}, host);
  INFO(draft.text);
  CHECK_FALSE(holds(draft.text, "env.HOME"));
  CHECK(holds(draft.text, "env.KV_HOME = \"$${HOME}/x\""));
  CHECK(holds(draft.text, "env.KV_TOKEN = \"rose-secret-1\""));
  CHECK(holds(draft.text, "env.KV_PEER = \"${ip}:7001\""));
  CHECK(holds(draft.text, "BYTES: it is not UTF-8"));
  CHECK(holds(draft.text, "LONG: it has 5000 bytes"));
  CHECK_FALSE(holds(draft.text, "env.SAME"));
  CHECK_FALSE(holds(draft.text, "SSH_TTY"));
}

TEST_CASE("node names are unique, also as variable names") {
  std::vector<Seen> seen = {program({"/opt/web"}), program({"/opt/web"}), program({"/opt/web2"}), program({"/opt/Ünï"}),
                            program({"/opt/client"})};
  const std::vector<const System*> none(seen.size(), nullptr);
  const Texts names = node_names(seen, none);
  CHECK(names == Texts{"web1", "web2", "web22", names[3], "client1"});
  CHECK_FALSE(names[3].empty());
}

TEST_CASE("an Erlang system is named by its node name or its first module") {
  Seen seen = program({"/usr/lib/erlang/erts-13.1.5/bin/beam.smp",
                       "-W",
                       "w",
                       "-P",
                       "1048576",
                       "--",
                       "-root",
                       "/usr/lib/erlang",
                       "-progname",
                       "erl",
                       "--",
                       "-home",
                       "/var/lib/rabbitmq",
                       "--",
                       "-noshell",
                       "-s",
                       "rabbit",
                       "boot",
                       "-boot",
                       "start_sasl"});
  seen.runtime = "Erlang";
  CHECK(node_names({seen}, {nullptr}) == Texts{"rabbit"});
  seen.main.argv.insert(seen.main.argv.end(), {"-sname", "mq@host-7"});
  CHECK(node_names({seen}, {nullptr}) == Texts{"mq"});
  seen.main.argv = {"/usr/lib/erlang/erts-13.1.5/bin/beam.smp", "-W", "w"};
  CHECK(node_names({seen}, {nullptr}) == Texts{"beam-smp"});
}

TEST_CASE("unusual command lines give questions or valid TOML") {
  for (Texts argv : std::vector<Texts>{{"/opt/kv", "'''\n'''", "\n'"},
                                       {"/opt/kv", "\"\\", "\x01\x7f"},
                                       {"/opt/kv", std::string("\xff\xfe")},
                                       {"/opt/kv", std::string(100'000, 'x')},
                                       {"/opt/kv", "${ip}", "$${ip}", "${", "$"},
                                       {"/opt/kv", ""},
                                       {"/opt/a b/kv", "#: [oracle]\n[node]"},
                                       {"/opt/${ip}/postgres"},
                                       {"/opt/$${/kv${"}}) {
    INFO(argv.back().substr(0, 40));
    Seen seen = program(argv, {{"0.0.0.0", 7001}});
    (void)drafted({seen});
    // A script covers the written folder and then executes the program, so `binary` must refer to the program.
    seen.written = {"/var/lib/kv/x"};
    (void)drafted({seen});
    // From here on, the main process is a wrapper, and `program` is the process that does the work.
    seen.program = seen.main;
    (void)drafted({seen});
  }
}

TEST_CASE("the draft of every known system is valid") {
  for (const char* name :
       {"redis-server", "valkey-server", "postgres", "mariadbd", "nginx", "etcd", "memcached", "mosquitto"}) {
    INFO(name);
    Seen seen = program({fmt::format("/usr/bin/{}", name), "-p", "77"}, {{"0.0.0.0", 7001}});
    const Draft draft = drafted({seen});
    CHECK(holds(draft.text, "#: command = "));
    CHECK(holds(draft.text, "#: [oracle]"));
  }
}

TEST_CASE("MariaDB gets an empty database, and a Galera node receives at its own address") {
  Seen seen = program({"/usr/sbin/mariadbd", "--no-defaults", "--datadir=/srv/db", "--log-error=/srv/db.log",
                       "--port=3307", "--bind-address=127.0.0.1", "--wsrep_node_address=127.0.0.1:4567",
                       "--wsrep_provider_options=base_port=4567;ist.recv_addr=127.0.0.1:4568;evs.version=1",
                       "--wsrep-sst-receive-address=127.0.0.1:4444"},
                      {{"127.0.0.1", 3307}, {"127.0.0.1", 4567}});
  seen.written = {"/srv/db/ibdata1", "/srv/db.log"};
  const NodeDraft node = one(seen);
  REQUIRE(node.command.size() > 4);
  CHECK(holds(node.command[2], "mariadb-install-db --no-defaults --datadir=\"$PWD/data\""));
  const std::string command = fmt::format("{}", fmt::join(node.command, "|"));
  INFO(command);
  for (const char* part :
       {"|/usr/sbin/mariadbd|--no-defaults|", "|--datadir=${dir}/data", "|--wsrep_node_address=${ip}:4567",
        "=base_port=4567;ist.recv_addr=${ip}:4568;evs.version=1", "|--wsrep-sst-receive-address=${ip}:4444"})
    CHECK(holds(command, part));
  CHECK(!holds(command, "/srv/db"));
  CHECK(!holds(command, "lay_over"));
}

TEST_CASE("nginx's command line is read from its process title") {
  Seen seen = program({"nginx: master process /usr/sbin/nginx -g daemon on; master_process on; -c /etc/n.conf"},
                      {{"0.0.0.0", 80}});
  seen.title = true;
  seen.main.exe = "/usr/sbin/nginx";
  CHECK(holds(fmt::format("{}", fmt::join(one(seen).command, "|")),
              "/usr/sbin/nginx|-g|master_process on; daemon off;|-c|/etc/n.conf"));
}

TEST_CASE("a node runs in an overlay of its working folder, and in the foreground") {
  Seen app =
      program({"/srv/app/venv/bin/python3", "-m", "app", "--pid-file", "/srv/app/run/app.pid"}, {{"0.0.0.0", 7802}});
  app.runtime = "Python";
  app.main.cwd = "/srv/app";
  app.main.user = "web";
  app.written = {"/srv/app/run/app.pid", "/srv/app/app.db"};
  const NodeDraft node = one(app);
  REQUIRE(node.command.size() > 5);
  const std::string& script = node.command[4];
  INFO(script);
  CHECK(holds(script, "\nlay_over 1 /srv/app\n"));
  CHECK(holds(script, "upperdir=$layers/changes"));
  // As root, the script may create files only where no other user may enter, and mount only on a folder that it has
  // entered.
  CHECK(holds(script, "over=$ROSE_RUN_DIR/$ROSE_NODE.over\nmkdir -p -m 700 \"$over\"; cd \"$over\"\n"));
  CHECK(holds(script, "\n  put \"$over/empty/$i\" \"$1\"; shift\n"));
  CHECK(holds(script, "\nat /srv/app\nexec setpriv --reuid web"));
  // The file that the program writes is covered, but not its folder, which contains the program.
  CHECK(std::count(node.command.begin(), node.command.end(), "/srv/app") == 0);
  CHECK(std::count(node.command.begin(), node.command.end(), "/srv/app/app.db") == 1);
  (void)drafted({app});

  Seen web = program({"/usr/bin/python3", "/usr/bin/gunicorn", "--chdir", "site", "-D", "--daemon", "site:app"},
                     {{"0.0.0.0", 8000}});
  web.runtime = "Python";
  web.main.cwd = "/srv/shop";
  web.paths["site"] = {"/srv/shop/site", true, true};
  web.written = {"/srv/shop/site/access.log"};
  const NodeDraft shop = one(web);
  INFO(fmt::format("{}", fmt::join(shop.command, "|")));
  CHECK(std::count(shop.command.begin(), shop.command.end(), "/srv/shop/site") == 1);
  for (const char* gone : {"-D", "--daemon", "${dir}/site"})
    CHECK(std::count(shop.command.begin(), shop.command.end(), gone) == 0);
  CHECK(std::any_of(shop.changes.begin(), shop.changes.end(),
                    [](const std::string& one) { return holds(one, "stays in the foreground"); }));
}

TEST_CASE("a shared working folder gets no overlay, which is reported") {
  Seen app = program({"/usr/bin/python3", "-m", "app"}, {{"0.0.0.0", 7802}});
  app.runtime = "Python";
  app.main.cwd = "/tmp";
  const NodeDraft node = one(app);
  CHECK(node.command == Texts{"/usr/bin/python3", "-m", "app"});
  REQUIRE(node.doubts.size() == 1);
  CHECK(holds(node.doubts[0], "it works in /tmp, but not in a run"));
}
