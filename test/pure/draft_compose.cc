// YAML, Compose files and descriptions of containers are read within limits, and drafted as nodes.
#include <catch2/catch.hpp>

#include "base/yaml.h"
#include "draft/container.h"
#include "draft/draft.h"
#include "draft/services.h"
#include "draft/text.h"

using namespace rose;
using namespace rose::draft;
using Texts = std::vector<std::string>;

namespace {

std::optional<std::string> variables(const std::string& name) {
  if (name == "TAG") return "7";
  if (name == "EMPTY") return "";
  return std::nullopt;
}

Draft drafted(const Drafted& nodes) {
  Draft draft = write_draft({"compose.yaml"}, nodes.nodes, nodes.around, example_for(nodes.nodes), Host());
  INFO(draft.text);
  const auto checked = check_draft(draft);
  if (!checked) FAIL(checked.error().message);
  return draft;
}

bool has(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

std::string repeated(std::string_view text, int times) {
  std::string out;
  for (int i = 0; i < times; ++i) out += text;
  return out;
}

}  // namespace

TEST_CASE("YAML is read as a tree with line numbers") {
  const auto root = parse_yaml("a: &x\n  b: [1, 'null', ~]\nc:\n  <<: *x\n  d: \"e\"\n", "f");
  REQUIRE(root);
  const Yaml* c = root->find("c");
  REQUIRE(c != nullptr);
  CHECK(c->line == 4);
  CHECK(c->scalar("d") == "e");
  REQUIRE(c->find("b") != nullptr);
  CHECK(c->find("b")->items.size() == 3);
  CHECK(c->find("b")->items[1].text == "null");
  CHECK(c->find("b")->items[2].kind == Yaml::Kind::null);
}

TEST_CASE("invalid YAML is refused with its position") {
  std::string bomb = "a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n";
  for (int i = 1; i < 12; ++i)
    bomb += fmt::format("a{0}: &a{0} [*a{1},*a{1},*a{1},*a{1},*a{1},*a{1},*a{1},*a{1},*a{1}]\n", i, i - 1);
  struct Row {
    std::string text;
    const char* says;
  };
  for (const Row& row : std::vector<Row>{
           {"a: 1\na: 2\n", "f:2:1: the key 'a' occurs twice"},
           {"a: [1\n", "not valid YAML"},
           {"a: *b\n", "f:1:"},
           {"? [a]\n: b\n", "a key that is a list or a map"},
           {repeated("[", 5000), "nested deeper than 64 levels"},
           {repeated("- ", 5000) + "x", "nested deeper than 64 levels"},
           {"a: &x [*x]\n", "f:1:"},
           {bomb, "values"},
           {std::string((1 << 20) + 1, ' '), "at most 1048576 are read"},
       }) {
    INFO(row.text.substr(0, 60));
    const auto root = parse_yaml(row.text, "f");
    REQUIRE_FALSE(root);
    CHECK(root.error().kind == ErrorKind::input);
    INFO(root.error().message);
    CHECK(has(root.error().message, row.says));
  }
}

TEST_CASE("variables in a Compose file are replaced") {
  struct Row {
    const char* text;
    const char* value;
  };
  for (const Row& row : std::vector<Row>{{"x:$TAG", "x:7"},
                                         {"${TAG}", "7"},
                                         {"${NO:-5}", "5"},
                                         {"${EMPTY:-5}", "5"},
                                         {"${EMPTY-5}", ""},
                                         {"${TAG:+yes}", "yes"},
                                         {"${NO:-${TAG}}", "7"},
                                         {"$$TAG", "$TAG"},
                                         {"${NO}", ""},
                                         {"${NO:-$2a$14$1l.salt}", "$2a$14$1l.salt"},
                                         {"$1 $(x) $", "$1 $(x) $"},
                                         {"${TAG:?must}", "7"},
                                         {"${TAG:-${not.read}}", "7"},
                                         {"$", "$"}}) {
    INFO(row.text);
    Texts unresolved;
    CHECK(compose::interpolated(row.text, variables, unresolved).value() == row.value);
  }
  Texts unresolved;
  CHECK(compose::interpolated("$NO ${NO:-x} ${NEITHER}", variables, unresolved).value() == " x ");
  CHECK(unresolved == Texts{"NO", "NEITHER"});
  for (const Row& row : std::vector<Row>{{"${open", "'${open' is not a variable"},
                                         {"a ${} b", "'${}' is not a variable"},
                                         {"${TAG%/}", "'${TAG%/}' is not a variable"},
                                         {"${TAG:=8}", "'${TAG:=8}' is not a variable"},
                                         {"${1}", "'${1}' is not a variable"},
                                         {"${app.version}", "'${app.version}' is not a variable"},
                                         {"${NO:-${app.version}}", "'${app.version}' is not a variable"},
                                         {"${EMPTY:?choose ${TAG}}", "the required variable EMPTY is empty: choose 7"},
                                         {"${NO?}", "the required variable NO is not set"}}) {
    INFO(row.text);
    const auto refused = compose::interpolated(row.text, variables, unresolved);
    REQUIRE_FALSE(refused.has_value());
    CHECK(refused.error() == row.value);
  }
}

TEST_CASE("a Compose file that rose supports is referred to and reported as complete") {
  const char* text = R"(
services:
  cache: { image: "redis:7", ports: ["7001:6379"], healthcheck: { test: redis-cli ping }, restart: always }
  app: { build: ., expose: [8080], depends_on: { migrate: { condition: service_completed_successfully } }, scale: 2, volumes: ["/srv/postgres:/x"] }
  migrate: { image: postgres }
  debug: { image: busybox, profiles: [debug] }
)";
  auto taken = config::read_compose(text, "/nowhere/compose.yaml", variables);
  REQUIRE(taken);
  taken->profiles = {"all"};
  taken->from_environment = {{"TAG", "7"}, {"DB_PASSWORD", "hunter2-hunter2"}};
  // check_draft() is not called for this draft, because it would read the Compose file, which does not exist.
  const Drafted services = draft_services(*taken, {"compose.yaml"});
  const Draft draft =
      write_draft({"compose.yaml"}, services.nodes, services.around, example_for(services.nodes), Host());
  INFO(draft.text);
  CHECK(draft.nodes == Texts{"cache", "app-1", "app-2", "migrate"});
  CHECK(has(draft.text, "compose  = \"compose.yaml\""));
  CHECK(has(draft.text, "# --- cache: Redis"));
  CHECK(has(draft.text, "it is ready when its health check passes"));
  CHECK(has(draft.text, "app-1: a service, from line 4: built as the file defines"));
  CHECK(has(draft.text, "ready   = { tcp = 8080, timeout = \"120s\" }"));
  CHECK(has(draft.text, "it ends by itself, and others wait for its end"));
  CHECK(has(draft.text, "compose_profiles = [\"debug\"] starts it"));
  CHECK(has(draft.text, "compose_profiles = [\"all\"]\n"));
  CHECK(has(draft.text, "compose_env.TAG = \"7\""));
  CHECK(has(draft.text, "DB_PASSWORD looks like a secret"));
  CHECK_FALSE(has(draft.text, "hunter2"));
  CHECK(has(draft.text, "/srv/postgres does not exist: each run uses an empty folder instead"));
  CHECK(draft.doubts.size() == 2);
  for (const char* not_there : {"attach", "setup", "how is it started"}) CHECK_FALSE(has(draft.text, not_there));
  // Several missing folders are one doubt.
  taken->nodes[0].container->volumes = {"/srv/none-1:/y", "/srv/none-2:/z:ro", "named:/n"};
  const Texts doubts = draft_services(*taken, {"compose.yaml"}).around.doubts;
  CHECK(std::count_if(doubts.begin(), doubts.end(), [](const std::string& one) { return has(one, "exist"); }) == 1);
  CHECK(has(fmt::format("{}", fmt::join(doubts, "\n")), "create it first: /srv/none-1, /srv/none-2, /srv/postgres"));
}

TEST_CASE("a running container is drafted as a new one of its image, without secrets and volumes") {
  const auto container = read_container(
      R"([{"Id":"1f0c","Name":"/cache","Image":"sha256:1","State":{"Pid":77},
    "Config":{"Image":"redis:7","Cmd":["redis-server","--requirepass","hunter2","--replicaof","10.5.0.3","6379"],"Env":["PATH=/bin","APP_SECRET=hunter2"],
              "Entrypoint":["docker-entrypoint.sh"],"WorkingDir":"/data"},
    "HostConfig":{"Memory":1048576,"RestartPolicy":{"Name":"always"},"CapAdd":["NET_ADMIN"]},
    "Mounts":[{"Type":"volume","Name":"vol","Source":"/v","Destination":"/data","RW":true},{"Type":"bind","Source":"/etc/x","Destination":"/x","RW":false}],
    "NetworkSettings":{"Networks":{"b":{"IPAddress":"10.5.0.2"}}}}])",
      R"([{"Config":{"Env":["PATH=/bin"],"Entrypoint":["docker-entrypoint.sh"],"Cmd":["redis-server"],"WorkingDir":"/data"}}])",
      "docker");
  REQUIRE(container);
  CHECK(container->name == "cache");
  CHECK(container->pid == 77);
  CHECK_FALSE(container->entrypoint);
  CHECK(container->env == Variables{{"APP_SECRET", "hunter2"}});
  Container main = *container;
  main.name = "main";
  main.addresses = {"10.5.0.3"};
  main.args = {"redis-server", "--announce", "127.0.0.1:6379"};
  Seen seen;
  seen.main.argv = {"redis-server *:6379"};
  seen.tcp = {{"0.0.0.0", 6379}};
  Seen other = seen;
  seen.network = "a";
  other.network = "b";
  Secrets secrets;
  const Draft draft = drafted(draft_containers({*container, main}, {seen, other}, Host(), secrets));
  INFO(draft.text);
  CHECK_FALSE(has(draft.text, "hunter2"));
  CHECK(has(draft.text, "network  = \"netns\""));
  CHECK(has(draft.text, "engine   = \"docker\""));
  CHECK(has(draft.text, "image   = \"redis:7\""));
  CHECK(has(draft.text,
            R"(command = ["redis-server", "--requirepass", "rose-secret-1", "--replicaof", "${ip_main}", "6379"])"));
  CHECK(has(draft.text, R"(volumes = ["vol:/data", "/etc/x:/x:ro"])"));
  CHECK(has(draft.text, R"(options = ["--cap-add", "NET_ADMIN", "--memory", "1048576"])"));
  CHECK(has(draft.text, "env.APP_SECRET = \"rose-secret-1\""));
  CHECK(has(draft.text, R"(restart = { delay = "100ms", max = 5 })"));
  CHECK(has(draft.text, "--announce"));
  CHECK_FALSE(has(draft.text, "attach"));
  CHECK_FALSE(has(draft.text, "setup"));
}

TEST_CASE("a port on a container's loopback address is used if its command names the address") {
  const auto container = read_container(
      R"([{"Id":"1f0c","Name":"/cache","State":{"Pid":77},"Config":{"Image":"redis:7","Cmd":["redis-server","--bind","127.0.0.1","--port","7401"]}}])",
      "", "podman");
  REQUIRE(container);
  Seen seen;
  seen.tcp = {{"127.0.0.1", 7401}};
  seen.addresses = {"127.0.0.1"};
  Secrets secrets;
  const Draft draft = drafted(draft_containers({*container}, {seen}, Host(), secrets));
  INFO(draft.text);
  CHECK(has(draft.text, R"(command = ["redis-server", "--bind", "${ip}", "--port", "7401"])"));
  CHECK(has(draft.text, "ready   = { tcp = 7401, timeout = \"60s\" }"));
  Container quiet = *container;
  quiet.args = {"redis-server", "/etc/redis.conf"};
  const Draft other = drafted(draft_containers({quiet}, {seen}, Host(), secrets));
  INFO(other.text);
  CHECK_FALSE(has(other.text, "ready   ="));
  CHECK(has(other.text, "it listens at 127.0.0.1:7401 only"));
}

TEST_CASE("a container's own entry point, names and volumes are kept") {
  const auto container = read_container(R"([{"Id":"77aabb","Name":"/My_App","State":{"Pid":78},
    "Config":{"Image":"localhost/app:1","Cmd":["serve"],"Env":["A.B=1","N=10.5.0.9"],"Entrypoint":["/bin/wrap","-v"],"WorkingDir":"/srv","User":"1000"},
    "HostConfig":{"Privileged":true,"RestartPolicy":{"Name":"on-failure"}},
    "Mounts":[{"Type":"volume","Name":"0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef","Destination":"/a","RW":true},
              {"Type":"bind","Source":"/srv/own","Destination":"/b","RW":true},{"Type":"tmpfs","Destination":"/t"}],
    "NetworkSettings":{"Networks":{"b":{"IPAddress":"10.5.0.9","Aliases":["77aa","app"]}}}}])",
                                        R"([{"Config":{"Entrypoint":["/bin/image"],"Cmd":["usual"]}}])", "podman");
  REQUIRE(container);
  Seen seen;
  seen.tcp = {{"0.0.0.0", 8080}};
  Secrets secrets;
  const Draft draft = drafted(draft_containers({*container}, {seen}, Host(), secrets));
  INFO(draft.text);
  CHECK(has(draft.text, R"(entrypoint = ["/bin/wrap", "-v"])"));
  CHECK(has(draft.text, R"(command = ["serve"])"));
  CHECK(has(draft.text, R"(volumes = ["my_app-1:/a", "my_app-2:/b"])"));
  CHECK(has(draft.text, R"(options = ["--workdir", "/srv", "--tmpfs", "/t"])"));
  CHECK(has(draft.text, R"(aliases = ["My_App", "app"])"));
  CHECK(has(draft.text, R"(user    = "1000")"));
  CHECK(has(draft.text, "env.N"));
  CHECK(has(draft.text, "env.\"A.B\" = \"1\""));
  CHECK(has(draft.text, "here after every end"));
  CHECK(has(draft.text, "LOOK: it is privileged"));
}

TEST_CASE("invalid container descriptions are refused") {
  for (const char* text : {"", "{", "[]", "null", "[{}]", R"([{"Id":"x"}])", R"([{"Id":1,"Config":{}}])",
                           R"([{"Id":"x","Config":{"Image":"-v"}}])", R"([{"Id":"x","Config":{"Image":"a b"}}])"}) {
    INFO(text);
    const auto container = read_container(text, "", "docker");
    REQUIRE_FALSE(container);
    CHECK(container.error().kind == ErrorKind::input);
  }
}

TEST_CASE("known systems get a readiness check by their protocol, not only an open port") {
  const auto taken = config::read_compose(
      "services:\n  kv: {image: \"quay.io/coreos/etcd:v3.5\", ports: [\"12379:2379\"]}\n  db: {image: \"minio/minio\", "
      "ports: [9000]}\n  queue: {image: nats, ports: [4222]}\n  own: {image: \"x/etcd-tool\", expose: [1]}\n",
      "/nowhere/compose.yaml", variables);
  REQUIRE(taken);
  Host host;
  host.tools = {"curl"};
  const Drafted services = draft_services(*taken, {"compose.yaml"}, host);
  REQUIRE(services.nodes.size() == 4);
  CHECK(has(services.nodes[0].ready, "exec \\\"$ROSE_CONTAINER_kv\\\" sh -c 'ETCDCTL_API=3 etcdctl"));
  CHECK(has(services.nodes[0].ready, ":2379 endpoint health"));
  CHECK(has(services.nodes[1].ready, "http://${ip}:9000/minio/health/ready"));
  // NATS serves its health check on another port, which the service does not declare. So only the open port is checked.
  CHECK(services.nodes[2].ready == "{ tcp = 4222, timeout = \"120s\" }");
  CHECK(services.nodes[3].ready == "{ tcp = 1, timeout = \"120s\" }");
}

TEST_CASE("a service is asked at the port that its command sets, and its program names the system") {
  const char* text = R"(
services:
  a: {image: "redis:7", command: redis-server --port 7000 --cluster-enabled yes}
  b: {image: localhost/mine, command: "sh -c 'exec /usr/bin/redis-server --port=7001'"}
  c:
    image: localhost/mine
    command: etcd --listen-peer-urls http://0.0.0.0:2380 --listen-client-urls http://0.0.0.0:2379
  d: {image: memcached, command: ["memcached", "-p", "11212"]}
  e: {image: "postgres:16", command: -c port=5433}
  f: {image: "postgres:16", command: -c port=5433, ports: ["5432:5433", "9187:9187"]}
  g: {build: ., command: gunicorn -b 0.0.0.0:8000 app:app}
  h: {build: ., command: uvicorn app:app --host 0.0.0.0 --port 8001}
  i: {build: ., command: python client.py --host redis --port 6379}
  j: {image: "redis:7", command: redis-cli -h a -p 7000 monitor}
  k: {image: minio/minio, command: 'server /data --console-address ":9001"'}
  l: {build: ., command: python manage.py runserver 0.0.0.0:8002, ports: ["80:8002"]}
  m: {image: "prom/prometheus", command: "--web.listen-address=:9091"}
)";
  const auto taken = config::read_compose(text, "/nowhere/compose.yaml", variables);
  REQUIRE(taken);
  Host host;
  host.tools = {"curl"};
  const Drafted services = draft_services(*taken, {"compose.yaml"}, host);
  Texts asked;
  for (const NodeDraft& node : services.nodes) {
    std::string rest = node.ready.substr(std::min(node.ready.find("http://"), node.ready.size()));
    if (rest.empty()) rest = node.ready;
    rest.erase(0, std::min(rest.find_first_of("123456789"), rest.size()));
    asked.push_back(node.name + ": " + rest.substr(0, rest.find_first_not_of("0123456789")));
  }
  CHECK(asked == Texts{"a: 7000", "b: 7001", "c: 2379", "d: 11212", "e: 5433", "f: 5433", "g: 8000", "h: 8001",
                       "i: ", "j: ", "k: 9000", "l: 8002", "m: 9091"});
  CHECK(has(services.nodes[1].about.front(), "b: Redis"));
  CHECK(has(services.nodes[2].about.front(), "c: etcd"));
}

TEST_CASE("a client in the image of a server does not wait for a server of its own") {
  const char* text = R"(
services:
  broker: {image: "eclipse-mosquitto:2", command: mosquitto -c /m.conf}
  sensor: {image: "eclipse-mosquitto:2", command: "sh -c 'until mosquitto_pub -h mosquitto -m 1; do sleep 1; done'"}
  cache: {image: "redis:7", command: ["--save", ""]}
  cluster: {image: "redis:7", entrypoint: redis-cli, command: --cluster create a:6379}
  sentinel: {image: "redis:7", command: redis-sentinel /s.conf}
  db: {image: "postgres:16"}
  backup: {image: "postgres:16", command: ["sh", "-c", "while pg_dump -h db x > /b/x; do sleep 60; done"]}
  setup: {image: "confluentinc/cp-kafka:7.4", command: kafka-topics --create --topic x --bootstrap-server kafka:9092}
  kafka: {image: "confluentinc/cp-kafka:7.4", command: "bash -c '/prepare; /etc/confluent/docker/run'"}
  replicas: {image: mongo, command: ["/bin/bash", "-c", "sleep 5; mongo --host mongo1 /x.js"]}
  store: {image: minio/minio, command: server /data}
  files: {image: minio/minio, command: "sh -c 'exec mc mirror a b'", expose: [9000]}
  worker: {build: ., command: celery -A app worker}
)";
  const auto taken = config::read_compose(text, "/nowhere/compose.yaml", variables);
  REQUIRE(taken);
  Host host;
  host.tools = {"curl"};
  const Drafted services = draft_services(*taken, {"compose.yaml"}, host);
  Texts waiting;
  for (const NodeDraft& node : services.nodes)
    if (!node.ready.empty()) waiting.push_back(node.name);
  CHECK(waiting == Texts{"broker", "cache", "sentinel", "db", "kafka", "store", "files", "worker"});
  CHECK(services.nodes.back().ready == "{ log = \"celery@[^ ]+ ready\", timeout = \"120s\" }");
  REQUIRE(!services.around.doubts.empty());
  CHECK(has(services.around.doubts.front(), "nothing shows when sensor, cluster, backup, setup, replicas are ready"));
}

TEST_CASE("examples for databases log in with the password that the service was given, which is not copied") {
  for (const auto& [image, variable, login] : {std::tuple{"postgres:16", "POSTGRES_PASSWORD", "PGPASSWORD"},
                                               {"mariadb:11", "MARIADB_ROOT_PASSWORD", "MYSQL_PWD"}}) {
    const auto made = [](const std::string& text) {
      const auto taken = config::read_compose(text, "/nowhere/compose.yaml", variables);
      REQUIRE(taken);
      const Drafted services = draft_services(*taken, {"compose.yaml"}, Host());
      return write_draft({"compose.yaml"}, services.nodes, services.around, example_for(services.nodes), Host());
    };
    const Draft draft =
        made(fmt::format("services:\n  my-db: {{ image: \"{}\", environment: {{ {}: s3cret }} }}\n", image, variable));
    INFO(draft.text);
    CHECK(
        has(draft.text, fmt::format("#: export {}=$(tr '\\0' '\\n' < /proc/$(cat $ROSE_PIDFILE_my_db)/environ | sed -n "
                                    "'s/^{}=//p')\n",
                                    login, variable)));
    CHECK(!has(draft.text, "s3cret"));
    const Draft open = made(fmt::format("services:\n  db: {{ image: \"{}\" }}\n", image));
    CHECK(!has(open.text, login));
  }
}
