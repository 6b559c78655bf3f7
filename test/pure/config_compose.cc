// Compose files as they stand: what their services become, and what is refused, with its line.
#include "config/compose.h"

#include <algorithm>
#include <catch2/catch.hpp>

using namespace rose;
using namespace rose::config;

namespace {

std::vector<std::string> words;

Result<std::vector<Node>> read(const std::string& text) {
  words.clear();
  return read_compose(text, "/srv/kv/compose.yaml", [](const std::string& name) -> std::optional<std::string> {
    if (name == "TAG") return "7";
    return std::nullopt;
  }, words);
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

TEST_CASE("a service says all of its container") {
  const Node node = only(
      "    image: redis:${TAG:-6}\n    command: redis-server --save '1 2' $${X}\n    entrypoint: [\"/entry\", \"$$HOME\"]\n"
      "    environment:\n      A: b\n      N: 3\n    user: \"999\"\n    working_dir: /w\n    hostname: h\n    container_name: named\n"
      "    restart: on-failure:3\n    stop_signal: SIGQUIT\n    stop_grace_period: 1m30s\n    init: true\n    read_only: yes\n"
      "    cap_add: [NET_ADMIN]\n    tmpfs: /t\n    sysctls: {net.core.somaxconn: 10}\n    ulimits: {nproc: 50, nofile: {soft: 10, hard: 20}}\n"
      "    volumes:\n      - ./conf:/etc/conf:ro\n      - type: tmpfs\n        target: /scratch\n      - /anonymous\n    x-own: 1\n");
  CHECK(node.container->image == "redis:7");
  CHECK(node.command == Command{"redis-server", "--save", "1 2", "$${X}"});  // the shell's: rose replaces nothing in it
  CHECK(node.container->entrypoint == Command{"/entry", "$HOME"});
  CHECK(node.env == std::map<std::string, std::string>{{"A", "b"}, {"N", "3"}});
  CHECK(node.user == "999");
  CHECK(node.container->hostname == "h");
  CHECK(node.container->aliases == std::vector<std::string>{"named"});
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

TEST_CASE("services wait for each other as Compose means it") {
  const auto nodes = read(
      "services:\n  app:\n    build: {context: ./app, dockerfile: D, args: {V: 1}}\n    depends_on:\n      db: {condition: service_healthy}\n"
      "      setup: {condition: service_completed_successfully}\n    networks: {default: {aliases: [www]}}\n"
      "  db:\n    image: db\n    healthcheck: {test: pg_isready, interval: 2s, retries: 5, start_period: 1s}\n    volumes: [\"data:/var/lib\"]\n"
      "  setup:\n    image: db\n    depends_on: [db]\n  debug:\n    image: x\n    profiles: [debug]\nvolumes:\n  data:\n");
  REQUIRE(nodes.has_value());
  REQUIRE(nodes->size() == 3);
  const Container& app = *(*nodes)[0].container;
  CHECK(app.build == Command{"--file", "/srv/kv/app/D", "--build-arg", "V=1", "/srv/kv/app"});
  CHECK(app.image == "localhost/rose-kv-app");
  CHECK(app.aliases == std::vector<std::string>{"www"});
  REQUIRE(app.after.size() == 2);
  CHECK((app.after[0].node == "db" && app.after[0].when == Dependency::When::healthy));
  CHECK((app.after[1].node == "setup" && app.after[1].when == Dependency::When::completed));
  const Container& db = *(*nodes)[1].container;
  REQUIRE(db.health.has_value());
  CHECK(db.health->test == Command{"/bin/sh", "-c", "pg_isready"});
  CHECK((db.health->interval_ns == 2 * kSecond && db.health->retries == 5 && db.health->start_period_ns == kSecond));
  CHECK(db.volumes == std::vector<std::string>{"data:/var/lib"});
  CHECK(std::any_of(words.begin(), words.end(), [](const std::string& word) { return word.find("debug") != std::string::npos; }));
}

TEST_CASE("what rose cannot do with a Compose file is refused with its line") {
  const std::vector<std::pair<std::string, std::string>> rows = {
      {"a: 1\n", "1: there are no 'services'"},
      {"services:\n  a:\n    image: x\n    mem_limit: 1g\n", "4: service 'a': rose does not know 'mem_limit'"},
      {"services:\n  a:\n    imagge: x\n", "3: service 'a': rose does not know 'imagge'"},
      {"services:\n  a:\n    command: x\n", "3: service 'a' has neither 'image' nor 'build'"},
      {"services:\n  a:\n    image: x\nsecrets:\n  s: {}\n", "5: rose does not know 'secrets' of a Compose file"},
      {"services:\n  a:\n    image: x\n    volumes: [\"v:/v\"]\n", "4: the volume 'v' is not declared"},
      {"services:\n  a:\n    image: x\n    volumes: [\"/v:/v:shared\"]\n", "4: a volume with the option 'shared', known are ro, rw, z, Z and nocopy"},
      {"services:\n  a:\n    image: x\nnetworks:\n  n: {external: true}\n", "5: network 'n' is external: a run has a network of its own"},
      {"services:\n  a:\n    image: x\nnetworks:\n  n: {driver: overlay}\n", "5: network 'n' has 'driver': a run has a network of its own"},
      {"services:\n  a:\n    image: x\nnetworks:\n  n: bridge\n", "5: network 'n' is no map"},
      {"services:\n  a:\n    image: x\nvolumes:\n  v: {external: true}\n", "5: volume 'v' has 'external': each run has volumes of its own"},
      {"services:\n  a:\n    image: x\n    depends_on: [b]\n", "4: 'a' depends on 'b', which is no service that is started"},
      {"services:\n  a:\n    image: x\n    depends_on: [b]\n  b:\n    image: x\n    depends_on: [a]\n", "3: 'a' depends on itself, by way of others"},
      {"services:\n  a:\n    image: x\n    depends_on: {b: {condition: service_healthy}}\n  b:\n    image: x\n",
       "4: 'a' waits for 'b' to be healthy, which has no healthcheck"},
      {"services:\n  a:\n    image: x\n    restart: maybe\n", "4: unknown restart policy 'maybe'"},
      {"services:\n  a:\n    image: x:${TAGG:?say one}\n", "3: the variable TAGG is needed and has no value"},
      {"services:\n  a:\n    image: x\n    healthcheck: {test: [\"x\"]}\n", "4: 'test': a line, or a list that begins with CMD, CMD-SHELL or NONE is needed"},
      {"services:\n  a:\n    image: x\n    healthcheck: {interval: 5}\n", "4: 'interval': '5' is no duration such as 1m30s"},
      {"services:\n  a:\n    image: x\n    read_only: maybe\n", "4: 'read_only': 'maybe' was found, true or false is needed"},
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
