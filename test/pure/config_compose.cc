// How the services of real Compose files are read, and which files are refused, with a message that contains the line.
#include "config/compose.h"
#include "environment.h"
#include "folder.h"

#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdlib>
#include <fstream>

#include "base/fd.h"
#include "base/file.h"

using namespace rose;
using namespace rose::config;

namespace {

std::vector<std::string> words;

std::vector<std::string> warnings;
std::string subnet;

Result<std::vector<Node>> read(const std::string& text, const std::filesystem::path& file = "/srv/kv/compose.yaml") {
  auto read = read_compose(text, file, [](const std::string& name) -> std::optional<std::string> {
    if (name == "TAG") return "7";
    return std::nullopt;
  });
  if (!read) return Unexpected(std::move(read).error());
  words = read->words;
  warnings = read->warnings;
  subnet = read->subnet;
  return std::move(read->nodes);
}

Node only(const std::string& service) {
  auto nodes = read("services:\n  a:\n" + service);
  INFO(service << (nodes ? "" : nodes.error().message));
  REQUIRE(nodes.has_value());
  REQUIRE(nodes->size() == 1);
  return std::move(nodes->front());
}

bool has(const Node& node, const std::string& flag, const std::string& value) {
  const auto& all = node.container->options;
  for (std::size_t i = 0; i + 1 < all.size(); ++i)
    if (all[i] == flag && all[i + 1] == value) return true;
  return false;
}

}  // namespace

TEST_CASE("a service sets all properties of its container") {
  const Node node = only(
      "    image: redis:${TAG:-6}\n    command: redis-server --save '1 2' $${X}\n    entrypoint: [\"/entry\", "
      "\"$$HOME\"]\n"
      "    environment:\n      A: b\n      N: 3\n    user: \"999\"\n    working_dir: /w\n    hostname: h\n    "
      "container_name: named\n"
      "    restart: on-failure:3\n    stop_signal: SIGQUIT\n    stop_grace_period: 1m30s\n    init: true\n    "
      "read_only: yes\n"
      "    cap_add: [NET_ADMIN]\n    tmpfs: /t\n    sysctls: {net.core.somaxconn: 10}\n    ulimits: {nproc: 50, "
      "nofile: {soft: 10, hard: 20}}\n"
      "    volumes:\n      - ./conf:/etc/conf:ro\n      - type: tmpfs\n        target: /scratch\n      - /anonymous\n  "
      "  x-own: 1\n");
  CHECK(node.container->image == "redis:7");
  // "$${X}" is a variable of the shell in the container, so rose does not replace it
  CHECK(node.command == Command{"redis-server", "--save", "1 2", "$${X}"});
  CHECK(node.container->entrypoint == Command{"/entry", "$HOME"});
  CHECK(node.env == std::map<std::string, std::string>{{"A", "b"}, {"N", "3"}});
  CHECK(node.user == "999");
  CHECK(node.container->hostname == "h");
  CHECK(node.container->aliases == std::vector<std::string>{"named"});  // this alias replaces the usual one, kv-a-1
  REQUIRE(node.restart.has_value());
  CHECK((node.restart->max == 3 && node.restart->only_failures));
  CHECK(node.container->stop_signal == "SIGQUIT");
  CHECK(node.container->stop_grace_ns == 90 * kSecond);
  CHECK(node.container->limits == std::vector<std::string>{"nproc=50", "nofile=10:20"});
  CHECK(node.container->volumes == std::vector<std::string>{"/srv/kv/conf:/etc/conf:ro"});
  CHECK(has(node, "--workdir", "/w"));
  CHECK(has(node, "--cap-add", "NET_ADMIN"));
  CHECK(has(node, "--tmpfs", "/t"));
  CHECK(has(node, "--tmpfs", "/scratch"));
  CHECK(has(node, "--volume", "/anonymous"));
  CHECK(has(node, "--sysctl", "net.core.somaxconn=10"));
  for (const char* flag : {"--init", "--read-only"})
    CHECK(std::count(node.container->options.begin(), node.container->options.end(), flag) == 1);
}

TEST_CASE("services depend on each other as in Compose") {
  const auto nodes = read(
      "services:\n  app:\n    build: {context: ./app, dockerfile: D, args: {V: 1}}\n    depends_on:\n      db: "
      "{condition: service_healthy}\n"
      "      setup: {condition: service_completed_successfully}\n    networks: {default: {aliases: [www]}}\n"
      "  db:\n    image: db\n    healthcheck: {test: pg_isready, interval: 2s, retries: 5, start_period: 1s}\n    "
      "volumes: [\"data:/var/lib\", \"small:/small\"]\n"
      "  setup:\n    image: db\n    depends_on: [db]\n  debug:\n    image: x\n    profiles: [debug]\nvolumes:\n  "
      "data:\n"
      "  small: {driver_opts: {type: tmpfs, device: tmpfs, o: \"size=64m,nodev,mode=0700\"}}\n");
  REQUIRE(nodes.has_value());
  REQUIRE(nodes->size() == 3);
  const Container& app = *(*nodes)[0].container;
  CHECK(app.build == Command{"--build-arg", "V=1", "--file", "/srv/kv/app/D", "/srv/kv/app"});
  CHECK(app.image == "localhost/rose-kv-app");
  CHECK(app.aliases == std::vector<std::string>{"www", "kv-app-1"});
  REQUIRE(app.after.size() == 2);
  CHECK((app.after[0].node == "db" && app.after[0].when == Dependency::When::healthy));
  CHECK((app.after[1].node == "setup" && app.after[1].when == Dependency::When::completed));
  const Container& db = *(*nodes)[1].container;
  REQUIRE(db.health.has_value());
  CHECK(db.health->test == Command{"/bin/sh", "-c", "pg_isready"});
  CHECK((db.health->interval_ns == 2 * kSecond && db.health->retries == 5 && db.health->start_period_ns == kSecond &&
         !db.health->timeout_ns));
  CHECK(db.volumes == std::vector<std::string>{"data:/var/lib", "small:/small"});
  CHECK(db.tmpfs == std::map<std::string, std::string>{{"small", "size=64m,mode=0700"}});
  CHECK(std::any_of(words.begin(), words.end(),
                    [](const std::string& word) { return word.find("debug") != std::string::npos; }));
}

TEST_CASE("unsupported Compose files are refused with the line") {
  const std::vector<std::pair<std::string, std::string>> rows = {
      {"a: 1\n", "1: there are no 'services'"},
      {"services:\n  a:\n    image: x\n    memm_limit: 1g\n", "4: service 'a': unknown key 'memm_limit'"},
      {"services:\n  a:\n    imagge: x\n", "3: service 'a': unknown key 'imagge'"},
      {"services:\n  a:\n    command: x\n", "3: service 'a' has neither 'image' nor 'build'"},
      {"services:\n  a:\n    image: x\nmodels:\n  s: {}\n", "5: the top of the file: unknown key 'models'"},
      {"services:\n  a:\n    image: x\n    secrets: [s]\n", "4: 's' is not declared"},
      {"services:\n  a:\n    image: x\n    secrets: [s]\nsecrets:\n  s: {external: true}\n",
       "6: secrets 's' is external: it belongs to a swarm and is not available here"},
      {"services:\n  a:\n    image: x\n    secrets: [s]\nsecrets:\n  s: {environment: NONE}\n",
       "4: secrets 's' is the variable NONE, which is not set"},
      {"services:\n  a:\n    image: ${NONE}\n", "3: 'image' is empty: NONE has no value"},
      {"services:\n  a:\n    image: x\n    network_mode: service:appp\n  app:\n    image: x\n",
       "4: 'network_mode': there is no service 'appp'"},
      {"services:\n  a:\n    image: x\n    network_mode: service:b\n  b:\n    image: x\n    profiles: [p]\n",
       "4: 'a' shares the network of 'b', which is not started"},
      {"services:\n  a:\n    image: x\n    network_mode: container:other\n",
       "4: 'network_mode': 'other' is the container of no service that is started here"},
      {"services:\n  a:\n    image: x\n    network_mode: container:kv-b-1\n  b: {image: x, container_name: c}\n",
       "4: 'network_mode': 'kv-b-1' is the container of no service that is started here"},
      {"services:\n  a:\n    image: x\n    network_mode: service:a\n", "4: 'a' shares its own network"},
      {"services:\n  a:\n    image: x\n    network_mode: service:b\n  b:\n    image: x\n    network_mode: service:a\n",
       "4: 'a' shares its own network, through other services"},
      {"services:\n  a:\n    image: x\n    network_mode: service:b\n    networks: [n]\n  b: {image: x}\nnetworks: {n: "
       "}\n",
       "5: service 'a' has both 'network_mode: service:b' and 'networks'"},
      {"services:\n  a:\n    image: x\n    network_mode: service:b\n    ports: [\"80:80\"]\n  b: {image: x}\n",
       "5: service 'a' has both 'network_mode: service:b' and 'ports'"},
      {"services:\n  a:\n    image: x\n    network_mode: service:b\n    hostname: h\n  b: {image: x}\n",
       "5: service 'a' has both 'network_mode: service:b' and 'hostname'"},
      {"services:\n  a:\n    image: x\n    network_mode: serv1ce:b\n  b: {image: x}\n",
       "4: 'network_mode': 'serv1ce:b' was found"},
      {"services:\n  a:\n    image: x\n    network_mode: service:b\n  b: {image: x, depends_on: [a]}\n",
       "3: 'a' depends on itself through other services"},
      {"services:\n  a:\n    image: x\n    blkio_config: {device_read_bps: [{path: /dev/sda, rat: 1}]}\n",
       "4: one of 'device_read_bps': unknown key 'rat'"},
      {"services:\n  a:\n    build: {secrets: [{source: s, taget: t}]}\nsecrets: {s: {file: f}}\n",
       "3: a build's secret: unknown key 'taget'"},
      {"services:\n  a:\n    image: x\n    post_start: [{comand: x}]\n",
       "4: one of 'post_start': unknown key 'comand'"},
      {"services:\n  a:\n    image: x\n    pre_stop:\n      - {user: root}\n", "5: one of 'pre_stop' has no 'command'"},
      {"services:\n  a:\n    image: x\n    pre_stop: {command: x}\n", "4: 'pre_stop': a list is needed"},
      {"services:\n  a:\n    image: x\n    pre_stop: [x]\n", "4: one of 'pre_stop' is not a map with a 'command'"},
      {"services:\n  a:\n    image: x\n    pid: service:b\n", "4: 'pid': there is no service 'b'"},
      {"services:\n  a:\n    image: x\n    pid: shareable\n", "4: 'pid': 'shareable' was found"},
      {"services:\n  a:\n    image: x\n    pid: service:b\n  b: {image: x, pid: \"service:a\"}\n",
       "4: 'a' shares its own PID namespace, through other services"},
      {"services:\n  a:\n    image: x\n    pid: service:b\n  b: {image: x, depends_on: [a]}\n",
       "3: 'a' depends on itself through other services"},
      {"services:\n  a:\n    image: x\n    ipc: service:b\n  b: {image: x, ipc: none}\n",
       "4: 'a' shares the IPC namespace of 'b', which has 'ipc: none'"},
      {"services:\n  a:\n    image: x\n    deploy: {replicas: many}\n",
       "4: 'replicas': 'many' is not a number from 0 to 10000"},
      {"services:\n  a:\n    image: x\n    deploy: {mode: single}\n", "4: 'mode': 'single' was found"},
      {"services:\n  a:\n    image: x\n    deploy: {restart_policy: {condition: often}}\n",
       "4: unknown condition 'often'"},
      {"services:\n  a:\n    image: x\n    networks: [n]\n", "4: the network 'n' is not declared"},
      {"services:\n  a:\n    image: x\n    networks:\n      n: {aliases: [b]}\n", "5: the network 'n' is not declared"},
      {"services:\n  a:\n    image: x\n    ports: [\"${NONE}:${NONE}/tcp\"]\n",
       "4: ':/tcp' names no port of the container: NONE has no value"},
      {"services:\n  a:\n    image: x\n    volumes: [\"${NONE}:/v\"]\n",
       "4: the volume ':/v' has no source: NONE has no value"},
      {"services:\n  a:\n    image: x\n    volumes: [\"/v:${NONE}\"]\n",
       "4: the volume '/v:' has no target: NONE has no value"},
      {"services:\n  a:\n    image: x\n    volumes: [{type: bind, target: /v}]\n",
       "4: a volume of type 'bind' needs a source"},
      {"services:\n  a:\n    image: x\n    mem_limit: plenty\n", "4: 'mem_limit': 'plenty' is not a number of bytes"},
      {"services:\n  a:\n    image: x\n    provider: {type: x}\n", "4: 'provider': a program outside of the run"},
      {"services:\n  a:\n    image: x\n    ipc: container:b\n",
       "4: 'ipc': 'b' is the container of no service that is started here"},
      {"services:\n  a:\n    image: x${NO.NE}\n", "3: '${NO.NE}' is not a variable"},
      {"services:\n  a:\n    image: x\n    command: echo ${NONE:?say it}\n",
       "4: the required variable NONE is not set: say it"},
      {"services:\n  a:\n    image: x\n    extends: b\n", "4: 'a' extends 'b', which is not a service of this file"},
      {"services:\n  a:\n    extends: b\n  b:\n    extends: a\n",
       "3: service 'a' extends itself through other services"},
      {"services:\n  a:\n    image: x\ninclude: [none.yaml]\n", "4: /srv/kv/none.yaml is not a readable file"},
      {"services:\n  a:\n    image: x\n    volumes_from: [b]\n", "4: 'volumes_from' is not supported"},
      {"services:\n  a:\n    image: x\n    volumes: [\"v:/v\"]\n", "4: the volume 'v' is not declared"},
      {"services:\n  a:\n    image: x\nnetworks:\n  n: {drivver: overlay}\n", "5: network 'n': unknown key 'drivver'"},
      {"services:\n  a:\n    image: x\nnetworks:\n  n: bridge\n", "5: network 'n' is not a map"},
      {"services:\n  a:\n    image: x\nvolumes:\n  v: {driver_opts: {type: tmpfs, o: \"size=1m,huge=always\"}}\n",
       "5: volume 'v' is mounted with 'huge=always'"},
      {"services:\n  a:\n    image: x\nvolumes:\n  ../v: {}\n", "5: '../v' is not a valid volume name"},
      {"services:\n  a:\n    image: x\nvolumes:\n  v: {driver: nfs}\n",
       "5: volume 'v' has the driver 'nfs': each run uses its own volumes with the driver local"},
      {"services:\n  a:\n    image: x\n    depends_on: [b]\n", "4: 'a' depends on 'b', which is no service"},
      {"services:\n  a:\n    image: x\n    depends_on: [b]\n  b: {image: x, profiles: [p]}\n",
       "4: 'a' depends on 'b', which is not started"},
      {"services:\n  a:\n    image: x\n    depends_on: [b]\n  b:\n    image: x\n    depends_on: [a]\n",
       "3: 'a' depends on itself through other services"},
      {"services:\n  a:\n    image: x\n    depends_on: {b: {condition: service_healthy}}\n  b:\n    image: x\n    "
       "healthcheck: {disable: true}\n",
       "4: 'a' waits for 'b' to be healthy, whose healthcheck is disabled"},
      {"services:\n  a:\n    image: x\n    restart: maybe\n", "4: unknown restart policy 'maybe'"},
      {"services:\n  a:\n    image: x:${TAGG:?say one}\n", "3: the required variable TAGG is not set"},
      {"services:\n  a:\n    image: x\n    healthcheck: {test: [\"x\"]}\n", "4: 'test': the list begins with 'x'"},
      {"services:\n  a:\n    image: x\n    healthcheck: {test: [CMD]}\n", "4: 'test': nothing follows CMD"},
      {"services:\n  a:\n    image: x\n    command: echo 'open\n",
       "4: 'command': quotes without an end, or parentheses outside of quotes"},
      {"services:\n  a:\n    image: x\n    extra_hosts: [\"db:nowhere\"]\n",
       "4: 'extra_hosts': 'db:nowhere' is not a name with an IP address or host-gateway"},
      {"services:\n  a:\n    image: x\n    uts: private\n", "4: 'uts': 'private' was found"},
      {"services:\n  a: {image: x, profiles: [standalone, all]}\n  b: {image: x, profiles: [cluster, all]}\n",
       "2: no service is started: each has a profile (all, cluster, standalone), and COMPOSE_PROFILES selects none"},
      {"services:\n  a:\n    image: x\n---\nservices: {}\n", "5:1: a second document"},
      {"services:\n  a:\n    image: x\n    healthcheck: {interval: 5}\n",
       "4: 'interval': '5' is not a duration such as 1m30s"},
      {"services:\n  a:\n    image: x\n    read_only: maybe\n",
       "4: 'read_only': 'maybe' was found, true or false is needed"},
      {"services:\n  a:\n    image: x\n    env_file: none.env\n", "4: 'env_file': "},
  };
  for (const auto& [text, message] : rows) {
    INFO(text);
    const auto nodes = read(text);
    REQUIRE_FALSE(nodes.has_value());
    CHECK(nodes.error().kind == ErrorKind::input);
    CHECK(nodes.error().message.substr(0, message.size() + 21) == "/srv/kv/compose.yaml:" + message);
  }
}

namespace {

bool contains(const std::vector<std::string>& all, std::string_view part) {
  return std::any_of(all.begin(), all.end(),
                     [part](const std::string& one) { return one.find(part) != std::string::npos; });
}

}  // namespace

TEST_CASE("the modes of files are numbers, and the sizes of mounts have Compose's units") {
  const Node node = only(
      "    image: x\n    volumes:\n      - {type: tmpfs, target: /a, tmpfs: {size: 2mb, mode: 0o700}}\n"
      "      - {type: tmpfs, target: /b, tmpfs: {size: 1.5GiB, mode: 0750}}\n"
      "      - {type: tmpfs, target: /c, tmpfs: {mode: 448}}\n"
      "    configs:\n      - {source: c, target: /1, mode: 0o440}\n      - {source: c, target: /2, mode: 0440}\n"
      "      - {source: c, target: /3, mode: 288}\n      - {source: c, target: /4}\n"
      "      - {source: c, target: /5, mode: 0400, uid: \"1234\"}\nconfigs:\n  c: {content: text}\n");
  CHECK(has(node, "--tmpfs", "/a:size=2097152,mode=700"));
  CHECK(has(node, "--tmpfs", "/b:size=1610612736,mode=750"));
  CHECK(has(node, "--tmpfs", "/c:mode=700"));
  std::vector<unsigned> modes;
  for (const auto& file : node.container->files) modes.push_back(file.mode);
  CHECK(modes == std::vector<unsigned>{0440, 0440, 0440, 0444, 0444});
}

TEST_CASE("limits, terminals and deploy settings are applied, and settings without effect are reported") {
  const Node node = only(
      "    image: x\n    mem_limit: 512m\n    cpus: 0.5\n    pids_limit: 100\n    cpuset: 0,1\n    tty: true\n    "
      "stdin_open: true\n    domainname: example.org\n"
      "    dns: [1.1.1.1]\n    logging: {driver: json-file}\n    runtime: other\n"
      "    deploy:\n      resources: {limits: {pids: 7}, reservations: {memory: 20M, devices: [{driver: nvidia}]}}\n"
      "      restart_policy: {condition: on-failure, max_attempts: 2, delay: 3s}\n      placement: {constraints: [a]}\n"
      "    volumes:\n      - .:/app:cached\n      - {type: bind, source: ./b, target: /b, read_only: true, bind: "
      "{propagation: rslave}}\n      - {type: tmpfs, target: /t, tmpfs: {size: 1000}}\n");
  CHECK((has(node, "--memory", "512m") && has(node, "--cpus", "0.5") && has(node, "--cpuset-cpus", "0,1") &&
         has(node, "--pids-limit", "7")));
  CHECK((has(node, "--memory-reservation", "20M") && has(node, "--tmpfs", "/t:size=1000")));
  for (const char* flag : {"--tty", "--interactive"})
    CHECK(std::count(node.container->options.begin(), node.container->options.end(), flag) == 1);
  CHECK((node.container->hostname == "a" && node.container->domain == "example.org"));
  REQUIRE(node.restart.has_value());
  CHECK((node.restart->only_failures && node.restart->max == 2 && node.restart->delay_ns == 3 * kSecond));
  CHECK(node.container->volumes == std::vector<std::string>{"/srv/kv:/app", "/srv/kv/b:/b:ro,rslave"});
  CHECK((contains(words, "'dns: 1.1.1.1' has no effect") && contains(words, "'logging' has no effect") &&
         contains(words, "'placement' of 'deploy' has no effect")));
  CHECK(
      (contains(warnings, "'runtime: other' must be set for the engine") && contains(warnings, "requests 'devices'")));
}

TEST_CASE("folders and sockets of the machine that a service is given are reported") {
  const TemporaryFolder folder = TemporaryFolder::make("rose-test").value();
  const std::string path = folder.path() / "engine.sock";
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  REQUIRE(path.size() < sizeof address.sun_path);
  path.copy(address.sun_path, path.size());
  const Fd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  REQUIRE(::bind(socket.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) == 0);
  only("    image: x\n    volumes: ['" + path + ":/s:ro', '/dev/shm:/m', '/sys:/sys:ro', '/usr:/u']\n");
  REQUIRE(warnings.size() == 2);
  CHECK(contains(warnings, path + " is a socket of this machine"));
  CHECK(contains(warnings, "/dev/shm is mounted as it is"));
  CHECK(contains(words, "/usr is a folder of this machine: each run has its own version of it"));
}

TEST_CASE("of the name servers in `dns`, only those that are nodes are asked") {
  const auto nodes = read(
      "services:\n  a:\n    image: x\n    dns: [10.9.0.53, 9.9.9.9]\n    networks: [n]\n"
      "  names:\n    image: y\n    ports: ['8053:53/udp']\n    networks: {n: {ipv4_address: 10.9.0.53}}\n"
      "  more:\n    image: z\n    expose: ['53']\n    dns: 10.9.0.53\n    networks: [n]\n"
      "networks: {n: {ipam: {config: [{subnet: 10.9.0.0/24}]}}}\n");
  REQUIRE(nodes.has_value());
  CHECK(nodes->at(0).container->asks == std::vector<std::string>{"10.9.0.53"});
  CHECK(nodes->at(2).container->asks == std::vector<std::string>{"10.9.0.53"});
  CHECK(contains(words, "'dns: 9.9.9.9' has no effect"));
  CHECK((!nodes->at(0).container->name_server && nodes->at(1).container->name_server &&
         nodes->at(2).container->name_server));
}

TEST_CASE("secrets and configs become files in the container") {
  const auto nodes = read(
      "services:\n  a:\n    image: x\n    secrets: [s, {source: e, target: named, mode: 0400}]\n    configs: [{source: "
      "c, target: /etc/c}]\n"
      "secrets: {s: {file: ./s.txt}, e: {environment: TAG}}\nconfigs: {c: {content: \"port $TAG\"}}\n");
  REQUIRE(nodes.has_value());
  const Container& a = *(*nodes)[0].container;
  CHECK(a.volumes == std::vector<std::string>{"/srv/kv/s.txt:/run/secrets/s:ro"});
  REQUIRE(a.files.size() == 2);
  CHECK((a.files[0].place == "/run/secrets/named" && a.files[0].content == "7" && a.files[0].mode == 0400));
  CHECK((a.files[1].place == "/etc/c" && a.files[1].content == "port 7" && a.files[1].mode == 0444));
}

TEST_CASE("addresses, replicas, links and profiles are applied") {
  const auto nodes = read(
      "services:\n  a:\n    image: x\n    networks: {n: {ipv4_address: 172.25.0.10}, m: {ipv4_address: 172.26.0.10}}\n "
      "   links: [\"b:base\"]\n"
      "  b:\n    image: x\n    networks: [n]\n  w:\n    image: x\n    deploy: {replicas: 3}\n  z:\n    image: x\n    "
      "scale: 0\n"
      "  c:\n    image: x\n    depends_on: {w: {condition: service_started}, z: {condition: service_started, required: "
      "false}}\n"
      "networks:\n  n: {external: true, ipam: {config: [{subnet: 172.25.0.0/24}]}}\n  m: {ipam: {config: [{subnet: "
      "172.26.0.0/24}]}}\nvolumes: {v: {external: true}}\n");
  REQUIRE(nodes.has_value());
  std::vector<std::string> names;
  for (const Node& node : *nodes) names.push_back(node.name);
  CHECK(names == std::vector<std::string>{"a", "b", "w-1", "w-2", "w-3", "c"});
  CHECK(((*nodes)[0].ip == "172.25.0.10" && subnet == "172.25.0.0/24"));
  CHECK((*nodes)[0].container->after[0].node == "b");
  CHECK((*nodes)[1].container->aliases == std::vector<std::string>{"base", "kv-b-1"});
  CHECK((*nodes)[3].container->aliases == std::vector<std::string>{"w", "kv-w-2"});
  CHECK((*nodes)[5].container->after.size() == 3);
  CHECK((contains(warnings, "172.26.0.10 of network 'm' is ignored") && contains(warnings, "network 'n' is external") &&
         contains(warnings, "volume 'v' is external")));
}

TEST_CASE("hooks are commands with their own user, folder and variables") {
  const Node node = only(
      "    image: x\n    post_start:\n      - command: chown -R 'the user' /data\n        user: root\n        "
      "privileged: "
      "true\n        working_dir: /data\n        environment: [A=1, \"B=$${C}\"]\n      - command: [echo, \"$${ip}\"]\n"
      "    pre_stop: [{command: [./flush.sh]}]\n");
  const Container& container = *node.container;
  REQUIRE((container.post_start.size() == 2 && container.pre_stop.size() == 1));
  const Hook& first = container.post_start[0];
  CHECK(first.command == Command{"chown", "-R", "the user", "/data"});
  CHECK((first.user == "root" && first.privileged && first.working_dir == "/data"));
  CHECK(first.env == std::map<std::string, std::string>{{"A", "1"}, {"B", "$${C}"}});
  // "$${ip}" is a variable of the shell in the container, so rose does not replace it
  CHECK(container.post_start[1].command == Command{"echo", "$${ip}"});
  CHECK((container.pre_stop[0].command == Command{"./flush.sh"} && !container.pre_stop[0].privileged));
}

TEST_CASE("services share the network of another service") {
  const auto nodes = read(
      "services:\n  probe: {image: x, network_mode: \"container:boss\", ports: []}\n"
      "  side: {image: x, network_mode: \"service:app\", depends_on: {app: {condition: service_healthy}}}\n"
      "  app: {image: x, container_name: boss}\n  own: {image: x, network_mode: bridge}\n"
      "  deep: {image: x, network_mode: \"service:side\"}\n  w: {image: x, scale: 2}\n"
      "  on-w: {image: x, network_mode: \"service:w\", scale: 2}\n"
      "  by-name: {image: x, network_mode: \"container:kv-own-1\"}\n");
  INFO((nodes ? "" : nodes.error().message));
  REQUIRE(nodes.has_value());
  std::map<std::string, std::string> whose;
  for (const Node& node : *nodes) whose[node.name] = node.network_of;
  CHECK(whose == std::map<std::string, std::string>{{"probe", "app"},
                                                    {"side", "app"},
                                                    {"app", ""},
                                                    {"own", ""},
                                                    {"deep", "app"},
                                                    {"w-1", ""},
                                                    {"w-2", ""},
                                                    {"on-w-1", "w-1"},
                                                    {"on-w-2", "w-1"},
                                                    {"by-name", "own"}});
  REQUIRE((*nodes)[0].container->after.size() == 1);
  CHECK((*nodes)[0].container->after[0].node == "app");
  REQUIRE((*nodes)[1].container->after.size() == 1);
  CHECK((*nodes)[1].container->after[0].when == Dependency::When::healthy);
  CHECK(contains(words, "service side shares the network and the address of app"));
  CHECK_FALSE(contains(words, "services have different networks"));
}

TEST_CASE("services share processes and memory of another service") {
  const auto nodes = read(
      "services:\n  probe: {image: x, pid: \"container:boss\", ipc: \"service:app\", shm_size: 1m}\n"
      "  app: {image: x, container_name: boss}\n  deep: {image: x, pid: \"service:probe\"}\n"
      "  w: {image: x, scale: 2, ipc: shareable, pid: private}\n  on-w: {image: x, ipc: \"service:w\"}\n"
      "  h: {image: x, pid: host, ipc: host}\n  on-h: {image: x, pid: \"service:h\", ipc: \"container:kv-h-1\"}\n");
  INFO((nodes ? "" : nodes.error().message));
  REQUIRE(nodes.has_value());
  std::map<std::string, std::pair<std::string, std::string>> whose;
  for (const Node& node : *nodes) whose[node.name] = {node.container->pid_of, node.container->ipc_of};
  CHECK(whose == std::map<std::string, std::pair<std::string, std::string>>{{"probe", {"app", "app"}},
                                                                            {"app", {"", ""}},
                                                                            {"deep", {"app", ""}},
                                                                            {"w-1", {"", ""}},
                                                                            {"w-2", {"", ""}},
                                                                            {"on-w", {"", "w-1"}},
                                                                            {"h", {"", ""}},
                                                                            {"on-h", {"", ""}}});
  const auto named = [&](std::string_view name) -> const Node& {
    return *std::find_if(nodes->begin(), nodes->end(), [&](const Node& node) { return node.name == name; });
  };
  // As with Compose, a service starts after those to which its settings refer.
  REQUIRE(named("probe").container->after.size() == 1);
  CHECK(named("probe").container->after[0].node == "app");
  CHECK(named("deep").container->after[0].node == "probe");
  // The size of the shared memory is set for the owner of the namespace. Others can join this namespace only if it is
  // shareable.
  CHECK_FALSE(has(named("probe"), "--shm-size", "1m"));
  CHECK(has(named("app"), "--ipc", "shareable"));
  CHECK(has(named("w-1"), "--ipc", "shareable"));
  CHECK(has(named("on-h"), "--pid", "host"));
  CHECK(has(named("on-h"), "--ipc", "host"));
  CHECK(contains(words, "service probe is in the PID namespace of app"));
}

TEST_CASE("files can extend, include and override each other") {
  const rose::test::Folder folder;
  const auto write = [&](const char* file, const std::string& text) {
    std::filesystem::create_directories((folder / file).parent_path());
    std::ofstream(folder / file) << text;
  };
  write("common/base.yml",
        "services:\n  base:\n    image: x:${TAG}\n    command: [old]\n    environment: [A=1, B=2]\n    volumes: "
        "[\"./conf:/conf\", \"./data:/data\"]\n    cap_add: [A]\n    mem_limit: 1g\n");
  write("part/compose.yaml",
        "services:\n  p:\n    build: .\n    image: p:${P}\n    extends: {service: q}\n  q:\n    image: q\n    volumes: "
        "[v:/v]\nvolumes: {v: }\n");
  write("part/.env", "P=9\n");
  write("over.yaml", "services:\n  a:\n    environment: {B: 4}\n    cap_add: [C]\n  extra:\n    image: e\n");
  const auto nodes = read_compose(
      "include: [part/compose.yaml]\nservices:\n  a:\n    extends: {file: common/base.yml, service: base}\n    "
      "command: [new]\n    environment: {B: 3, C: c}\n    volumes: [\"./mine:/data\"]\n    cap_add: [B]\n",
      folder / "compose.yaml",
      [](const std::string& one) { return one == "TAG" ? std::optional<std::string>("7") : std::nullopt; },
      {folder / "over.yaml"});
  INFO((nodes ? "" : nodes.error().message));
  REQUIRE(nodes.has_value());
  REQUIRE(nodes->nodes.size() == 4);
  const Node& a = nodes->nodes[0];
  CHECK((a.name == "a" && a.container->image == "x:7" && a.command == Command{"new"}));
  CHECK(a.env == std::map<std::string, std::string>{{"A", "1"}, {"B", "4"}, {"C", "c"}});
  CHECK(a.container->volumes ==
        std::vector<std::string>{(folder / "common/conf").string() + ":/conf", (folder / "mine").string() + ":/data"});
  CHECK((has(a, "--cap-add", "A") && has(a, "--cap-add", "B") && has(a, "--cap-add", "C") && has(a, "--memory", "1g")));
  CHECK(nodes->nodes[1].name == "extra");
  CHECK((nodes->nodes[2].container->image == "p:9" &&
         nodes->nodes[2].container->build == Command{(folder / "part").string()}));
  CHECK(nodes->nodes[2].container->volumes == std::vector<std::string>{"v:/v"});
  // A message about another file contains the name of that file.
  write("part/compose.yaml", "services:\n  p:\n    image: x\n    nonsense: 1\n");
  const auto wrong = read_compose("include: [part/compose.yaml]\nservices:\n  a:\n    image: x\n",
                                  folder / "compose.yaml", [](const std::string&) { return std::nullopt; });
  REQUIRE_FALSE(wrong.has_value());
  CHECK(wrong.error().message == (folder / "part/compose.yaml").string() + ":4: service 'p': unknown key 'nonsense'");
}

TEST_CASE("all problems of a Compose file are reported at once") {
  const auto nodes = read("services:\n  a:\n    image: ${IMAGE}\n  b:\n    image: x\n    env_file: not-here.env\n");
  REQUIRE_FALSE(nodes.has_value());
  CHECK(nodes.error().message ==
        "/srv/kv/compose.yaml:3: 'image' is empty: IMAGE has no value\n"
        "/srv/kv/compose.yaml:6: 'env_file': /srv/kv/not-here.env is not a readable file");
}

TEST_CASE("command lines are split as in Compose") {
  const std::vector<std::pair<std::string, std::optional<std::vector<std::string>>>> rows = {
      {"a 'b c' \"d \\\" e\" f\\ g", {{"a", "b c", "d \" e", "f g"}}},
      {"echo started && sleep 1000", {{"echo", "started"}}},
      {"sleep 1000 > /dev/null", {{"sleep", "1000"}}},
      {"run 2>/dev/null", {{"run"}}},
      {"sh -c 'a && b; c'", {{"sh", "-c", "a && b; c"}}},
      {"a '' b", {{"a", "", "b"}}},
      {"a $(b c) d", {{"a", "$(b c)", "d"}}},
      {"a `b c` d", {{"a", "`b c`", "d"}}},
      {"a\nb", {{"a", "b"}}},
      {"(a)", std::nullopt},
      {"a 'b", std::nullopt},
      {"a \\", std::nullopt},
      {"", {std::vector<std::string>{}}},
  };
  for (const auto& [line, words] : rows) {
    INFO(line);
    CHECK(compose::shell_words(line) == words);
  }
}

TEST_CASE("values without quotes have the text that Compose gives them") {
  const std::vector<std::pair<std::string, std::string>> rows = {{"TRUE", "true"},
                                                                 {"False", "false"},
                                                                 {"yes", "yes"},
                                                                 {"3.10", "3.1"},
                                                                 {"1.0", "1"},
                                                                 {"0.3", "0.3"},
                                                                 {".5", "0.5"},
                                                                 {"5.", "5"},
                                                                 {"010", "8"},
                                                                 {"-010", "-8"},
                                                                 {"09", "9"},
                                                                 {"0x1f", "31"},
                                                                 {"0b11", "3"},
                                                                 {"0o17", "15"},
                                                                 {"1_000", "1000"},
                                                                 {"+5", "5"},
                                                                 {"-0", "-0"},
                                                                 {"1e3", "1000"},
                                                                 {"1000000.0", "1e+06"},
                                                                 {"0.00001", "1e-05"},
                                                                 {"123456789.5", "1.234567895e+08"},
                                                                 {"9223372036854775808", "9223372036854775808"},
                                                                 {"100000000000000000000", "1e+20"},
                                                                 {"2024-1-31", "2024-01-31 00:00:00 +0000 UTC"},
                                                                 {"2024-02-31", "2024-02-31"},
                                                                 {"1.2.3", "1.2.3"},
                                                                 {"12:30", "12:30"},
                                                                 {"0x", "0x"},
                                                                 {"-", "-"},
                                                                 {"1e", "1e"},
                                                                 {"0o8", "0o8"},
                                                                 {"", ""}};
  for (const auto& [written, value] : rows) {
    INFO(written);
    CHECK(compose::plain_value(written) == value);
  }
  const Node node = only(
      "    image: x\n    environment: {A: 010, B: \"010\", C: TRUE, D: $TAG, E: 1.50, F: !!str 010}\n"
      "    labels: [v=1.50, w=1, v=2]\n");
  CHECK(node.env == std::map<std::string, std::string>{
                        {"A", "8"}, {"B", "010"}, {"C", "true"}, {"D", "7"}, {"E", "1.5"}, {"F", "010"}});
  CHECK(has(node, "--label", "v=2"));
  CHECK_FALSE(has(node, "--label", "v=1.50"));
}

TEST_CASE("an override file that Compose would read is reported, whatever its ending") {
  const test::Folder folder;
  std::ofstream(folder / "docker-compose.yaml") << "services:\n  a: {image: x}\n";
  std::ofstream(folder / "docker-compose.override.yml") << "services:\n  a: {user: \"1\"}\n";
  const auto one = read_compose_files({folder / "docker-compose.yaml"});
  REQUIRE(one.has_value());
  CHECK(contains(one->warnings, "docker-compose.override.yml beside it is not read"));
  const auto both = read_compose_files({folder / "docker-compose.yaml", folder / "docker-compose.override.yml"});
  REQUIRE(both.has_value());
  CHECK_FALSE(contains(both->warnings, "is not read"));
}

TEST_CASE("a further file resets and replaces values") {
  const test::Folder folder;
  std::ofstream(folder / "a.yaml")
      << "services:\n  a:\n    image: x\n    ports: [\"80\"]\n    command: run\n    environment: {A: 1, B: 2}\n"
         "    depends_on: [b]\n    pid: service:b\n    volumes: [\"/one:/one\", \"/two:/two\"]\n  b: {image: x}\n";
  std::ofstream(folder / "b.yaml")
      << "services:\n  a:\n    ports: !reset []\n    command: !reset null\n    environment: !override {C: 3}\n"
         "    depends_on: !reset\n    pid: !reset null\n    volumes: !override [\"/three:/three\"]\n";
  const auto nodes = read_compose_files({folder / "a.yaml", folder / "b.yaml"});
  INFO((nodes ? "" : nodes.error().message));
  REQUIRE(nodes.has_value());
  const Node& a = nodes->nodes.front();
  CHECK(a.command.empty());
  CHECK(a.container->ports.empty());
  CHECK(a.env == std::map<std::string, std::string>{{"C", "3"}});
  CHECK(a.container->after.empty());
  CHECK(a.container->volumes == std::vector<std::string>{"/three:/three"});
}

TEST_CASE("less frequent forms of values are read as in Compose") {
  const Node node = only(
      "    image: x\n    init: \"TRUE\"\n    read_only: y\n    tty: N\n    stop_grace_period: 1d2h\n"
      "    restart: on-failure:0\n    healthcheck: {test: NONE, retries: 0, interval: 100\u00b5s}\n    isolation: "
      "default\n"
      "    volumes: [\"/a:/b:ro,rslave\", \"/c:/d/../e/:RW,exec\", \"/old:/f\", \"/new:/f\", \"~:/h\"]\n"
      "    extra_hosts: {one: [1.2.3.4, \"[::1]\"], two: \" 1.2.3.5\"}\n    tmpfs: [/t, /t]\n    pull_policy: daily\n"
      "    mem_limit: 1.5 GiB\n    cap_add: [A, B, A]\n    networks: {default: {driver_opts: {a: b}}}\n");
  CHECK(node.container->options == std::vector<std::string>{"--init", "--read-only", "--tmpfs", "/t", "--memory",
                                                            "1.5 GiB", "--cap-add", "A", "--cap-add", "B"});
  CHECK(node.container->stop_grace_ns == 26 * 3600 * kSecond);
  CHECK((node.restart->only_failures && node.restart->max > 1000));
  CHECK(node.container->health->test == Command{"/bin/sh", "-c", "NONE"});
  CHECK_FALSE(node.container->health->disabled);
  CHECK_FALSE(node.container->health->retries.has_value());
  CHECK(node.container->health->interval_ns == 100'000);
  CHECK(node.container->volumes ==
        std::vector<std::string>{"/a:/b:ro,rslave", "/c:/e:rw", "/new:/f", std::string(std::getenv("HOME")) + ":/h"});
  CHECK(node.container->hosts ==
        std::vector<std::pair<std::string, std::string>>{{"one", "1.2.3.4"}, {"one", "::1"}, {"two", "1.2.3.5"}});
  CHECK(
      only("    image: x\n    deploy: {restart_policy: {condition: unless-stopped, max_attempts: 0}}\n").restart->max >
      1000);
  CHECK(only("    image: x\n    deploy: {mode: replicated-job}\n").container->image == "x");
  // A secret that no started service uses may be without a value.
  CHECK(read("services:\n  a:\n    image: x\nsecrets:\n  s: {environment: NONE}\ninclude:\n").has_value());
}

TEST_CASE("env files are read as in Compose") {
  const compose::Lookup lookup = [](const std::string& name) {
    return name == "OUTSIDE" ? std::optional<std::string>("o") : std::nullopt;
  };
  const auto read = compose::read_dot_env(
      "# a comment\n  export A=1   # behind\nB = spaced  \r\nC=\"two\\nlines\" # quoted\nD='as $A is\\n'\n"
      "E=x${A}-${NONE:-5}$OUTSIDE\nOUTSIDE\nNOWHERE\nF=a#b\nG=\"line 1\nline 2\"\nH: yaml\nI=\nJ=\"\\$A "
      "\\\"\\101\\0101\"\n"
      "K='it\\'s'\n",
      lookup);
  REQUIRE(read.has_value());
  CHECK(*read == compose::Variables{{"A", "1"},
                                    {"B", "spaced"},
                                    {"C", "two\nlines"},
                                    {"D", "as $A is\\n"},
                                    {"E", "x1-5o"},
                                    {"OUTSIDE", "o"},
                                    {"F", "a#b"},
                                    {"G", "line 1\nline 2"},
                                    {"H", "yaml"},
                                    {"I", ""},
                                    {"J", "$A \"\\101A"},
                                    {"K", "it's"}});
  const std::vector<std::pair<std::string, int>> wrong = {{"A=1\nB C=2\n", 2},
                                                          {"A=1\n\nB=\"open\n", 3},
                                                          {"a+b=1\n", 1},
                                                          {"A=${b.c}\n", 1},
                                                          {"A='${b.c}'\nB=\"${A:?}${\"\n", 2}};
  for (const auto& [text, line] : wrong) {
    INFO(text);
    const auto refused = compose::read_dot_env(text, lookup);
    REQUIRE_FALSE(refused.has_value());
    CHECK(refused.error().line == line);
  }
}

TEST_CASE("a project's name, folder and extra hosts are applied") {
  const Node named = only("    image: x\n    command: [\"${COMPOSE_PROJECT_NAME}\", \"${PWD}\"]\n");
  CHECK(named.command == Command{"kv", "/srv/kv"});
  const auto shop = read(
      "name: ${NONE:-My.Shop}\nservices:\n  web:\n    image: x:${COMPOSE_PROJECT_NAME}\n    deploy: {replicas: 2}\n"
      "    extra_hosts: [\"host.docker.internal:host-gateway\", \"six=[::1]\"]\n    volumes: "
      "[\"${PWD}/app.conf:/etc/app.conf\"]\n");
  REQUIRE(shop.has_value());
  REQUIRE(shop->size() == 2);
  const Container& web = *(*shop)[1].container;
  CHECK(web.image == "x:myshop");
  CHECK(web.aliases == std::vector<std::string>{"web", "myshop-web-2"});
  CHECK(web.hosts ==
        std::vector<std::pair<std::string, std::string>>{{"host.docker.internal", "host-gateway"}, {"six", "::1"}});
  CHECK(web.volumes == std::vector<std::string>{"/srv/kv/app.conf:/etc/app.conf"});
}

TEST_CASE("health checks, devices and builds are read in their long forms") {
  const Node node = only(
      "    image: x\n    healthcheck: {test: [CMD-SHELL, test, -e, /etc/hosts], interval: 1s}\n"
      "    devices: [/dev/a:/dev/b, {source: /dev/c, target: /dev/d, permissions: rw}]\n"
      "    blkio_config: {weight: 300, device_read_bps: [{path: /dev/sda, rate: 12mb}]}\n    ports: "
      "[\"127.0.0.1:81:80\", "
      "\"9:9/udp\", {target: 443}]\n    expose: [7000, 80]\n");
  REQUIRE(node.container->health.has_value());
  CHECK(node.container->health->test == Command{"/bin/sh", "-c", "test", "-e", "/etc/hosts"});
  CHECK((has(node, "--device", "/dev/a:/dev/b") && has(node, "--device", "/dev/c:/dev/d:rw")));
  CHECK((has(node, "--blkio-weight", "300") && has(node, "--device-read-bps", "/dev/sda:12mb")));
  CHECK(node.container->ports == std::vector<std::uint16_t>{80, 443, 7000});
  // If no test is given, the image's health check is used.
  const Node images = only("    image: x\n    healthcheck: {interval: 2s, retries: 5}\n");
  REQUIRE(images.container->health.has_value());
  CHECK((images.container->health->test.empty() && images.container->health->retries == 5));
  const Node built = only("    build: {context: ., dockerfile_inline: \"FROM x\", ssh: [default]}\n");
  CHECK(built.container->dockerfile == "FROM x");
  CHECK(built.container->build == Command{"--ssh", "default", "/srv/kv"});
  const auto secret = read(
      "services:\n  a:\n    build: {context: ., privileged: true, ulimits: {nofile: {soft: 1, hard: 2}}, secrets: [f, "
      "{source: e, target: named, uid: 7}]}\nsecrets:\n  f: {file: ./f}\n  e: {environment: TAG}\n");
  REQUIRE(secret.has_value());
  const Container& builds = *secret->front().container;
  CHECK(builds.build == Command{"--ulimit", "nofile=1:2", "--secret", "id=f,src=/srv/kv/f", "/srv/kv"});
  CHECK(builds.build_secrets == std::vector<std::pair<std::string, std::string>>{{"named", "7"}});
  CHECK((builds.build_privileged && !built.container->build_privileged));
}

TEST_CASE("profiles, variables and their source file are recorded") {
  const rose::test::Folder folder;
  std::ofstream(folder / "compose.yaml")
      << "services:\n  a: {image: \"x:${TAG}\", profiles: [p]}\n  b: {image: \"y:${ROSE_TEST_OUTSIDE}\"}\n";
  std::ofstream(folder / ".env") << "TAG=1   # what we run\nROSE_TEST_OUTSIDE=beside\n";
  const rose::test::Environment outside("ROSE_TEST_OUTSIDE", "given");
  const auto plain = read_compose_files({folder / "compose.yaml"});
  const auto chosen = read_compose_files({folder / "compose.yaml"}, {{"p"}, {{"ROSE_TEST_OUTSIDE", "chosen"}}});
  REQUIRE((plain.has_value() && chosen.has_value()));
  REQUIRE(plain->nodes.size() == 1);
  CHECK(plain->nodes[0].container->image == "y:given");
  CHECK(plain->from_environment == compose::Variables{{"ROSE_TEST_OUTSIDE", "given"}});
  REQUIRE(chosen->nodes.size() == 2);
  CHECK((chosen->nodes[0].container->image == "x:1" && chosen->nodes[1].container->image == "y:chosen"));
  CHECK((chosen->profiles == std::vector<std::string>{"p"} && chosen->from_environment.empty()));
}
