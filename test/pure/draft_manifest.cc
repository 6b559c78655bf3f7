// Kubernetes manifests in the style in which systems publish them (test/manifests): which nodes they become, and that
// the configuration reader accepts every draft.
#include <catch2/catch.hpp>

#include "base/file.h"
#include "base/text.h"
#include "config/config.h"
#include "draft/draft.h"
#include "draft/manifest.h"
#include "draft/text.h"

using namespace rose;
using namespace rose::draft;
using Texts = std::vector<std::string>;

namespace {

struct Made {
  Draft draft;
  std::vector<NodeDraft> nodes;
  config::Config config;
};

Made made_from(const std::string& file, const std::string& text, Host host = {}) {
  host.tools.emplace_back("curl");
  auto read = draft_manifests({{file, text}}, "rose.files", host);
  INFO((read ? "" : read.error().message));
  REQUIRE(read.has_value());
  Made all;
  all.nodes = read->drafted.nodes;
  all.draft = write_draft({file}, all.nodes, read->drafted.around, example_for(all.nodes), host);
  all.draft.files = read->files;
  INFO(all.draft.text);
  const auto checked = check_draft(all.draft);
  if (!checked) FAIL(checked.error().message);
  const auto config =
      config::parse_config(replaced(all.draft.text, "command = \"?\"", "command = [\"true\"]"), "draft", ".");
  REQUIRE(config.has_value());
  all.config = *config;
  return all;
}

Made made(const std::string& system, Host host = {}) {
  const auto text = read_file(std::filesystem::path(ROSE_TEST_DIR) / "manifests" / (system + ".yaml"));
  REQUIRE(text.has_value());
  return made_from(system + ".yaml", *text, std::move(host));
}

bool in_text(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }
bool has(const Texts& all, std::string_view one) { return std::find(all.begin(), all.end(), one) != all.end(); }
bool says(const Texts& all, std::string_view part) {
  return std::any_of(all.begin(), all.end(), [&](const std::string& one) { return in_text(one, part); });
}
std::string file(const Made& all, std::string_view path) {
  for (const DraftFile& one : all.draft.files)
    if (one.path == path) return one.content;
  return "none";
}

std::string option_of(const config::Node& node, std::string_view name) {
  const config::Command& all = node.container->options;
  const auto at = std::find(all.begin(), all.end(), name);
  return at == all.end() || at + 1 == all.end() ? "none" : *(at + 1);
}

}  // namespace

TEST_CASE("amounts are divided, init containers keep their variables, and what is left out is reported") {
  const std::string text =
      "apiVersion: v1\nkind: Service\nmetadata: {name: web}\n"
      "spec: {selector: {app: w}, ports: [{port: 80, targetPort: http}]}\n"
      "---\napiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: x}\n"
      "spec: [this is not, what: a definition, contains]\n"
      "---\napiVersion: apps/v1\nkind: StatefulSet\nmetadata: {name: w}\n"
      "spec:\n"
      "  replicas: 1\n"
      "  selector: {matchLabels: {app: w}}\n"
      "  template:\n"
      "    metadata: {labels: {app: w}}\n"
      "    spec:\n"
      "      hostAliases: [{ip: 10.1.1.1, hostnames: [old]}]\n"
      "      securityContext: {runAsUser: 1000, fsGroup: 3000}\n"
      "      initContainers:\n"
      "      - {name: own, image: kv, command: [sh, -c, 'echo $(IW)'],\n"
      "         env: [{name: IW, value: a b}, {name: i.w, value: c}],\n"
      "         securityContext: {runAsUser: 0}}\n"
      "      containers:\n"
      "      - name: w\n"
      "        image: kv\n"
      "        command: [kv]\n"
      "        ports: [{name: http, containerPort: 8080}]\n"
      "        lifecycle: {preStop: {exec: {command: [drain]}}}\n"
      "        securityContext: {capabilities: {drop: [ALL]}, allowPrivilegeEscalation: false}\n"
      "        resources: {limits: {cpu: 500m, memory: 64Mi}}\n"
      "        env:\n"
      "        - {name: HEAP, valueFrom: {resourceFieldRef: {resource: limits.memory, divisor: 1Mi}}}\n"
      "        - {name: ASKED, valueFrom: {resourceFieldRef: {resource: requests.memory}}}\n"
      "        - {name: MILLIS, valueFrom: {resourceFieldRef: {resource: limits.cpu, divisor: 1m}}}\n"
      "        - {name: CPUS, valueFrom: {resourceFieldRef: {resource: limits.cpu}}}\n"
      "        envFrom: [{secretRef: {name: missing, optional: true}}]\n";
  const Made all = made_from("w.yaml", text);
  REQUIRE(all.config.nodes.size() == 1);
  const config::Node& node = all.config.nodes[0];
  CHECK(node.env.at("HEAP") == "64");
  CHECK(node.env.at("ASKED") == "67108864");
  CHECK(node.env.at("MILLIS") == "500");
  CHECK(node.env.at("CPUS") == "1");
  REQUIRE(node.container->entrypoint);
  CHECK(in_text((*node.container->entrypoint)[2], "IW='a b' 'sh' '-c' 'echo a b'\n"));
  CHECK(node.user == "1000");
  CHECK(option_of(node, "--group-add") == "3000");
  CHECK(option_of(node, "--cap-drop") == "ALL");
  CHECK(option_of(node, "--security-opt") == "no-new-privileges");
  CHECK(option_of(node, "--cpus") == "0.5");
  CHECK(in_text(all.draft.text, "the init container own lacks the variable i.w"));
  CHECK(in_text(all.draft.text, "lifecycle.preStop"));
  CHECK(in_text(all.draft.text, "hostAliases"));
  CHECK(in_text(all.draft.text, "runs as user 0 in a cluster"));
  CHECK(in_text(all.draft.text, "use port 8080 instead of 80"));
  CHECK_FALSE(in_text(all.draft.text, "missing"));
}

TEST_CASE("etcd: pods resolve each other by their service's names") {
  const Made all = made("etcd");
  CHECK(all.draft.nodes == Texts{"etcd-0", "etcd-1", "etcd-2"});
  const config::Node& node = all.config.nodes[1];
  CHECK(node.container->image == "quay.io/coreos/etcd:v3.5.21");
  CHECK(node.container->entrypoint == config::Command{"/usr/local/bin/etcd"});
  CHECK(node.command.front() == "--name=etcd-1");
  CHECK(has(node.command, "--initial-advertise-peer-urls=http://etcd-1.etcd:2380"));
  CHECK(has(node.command, "--initial-cluster-token=etcd-default"));
  CHECK(node.container->aliases.front() == "etcd-1.etcd.default.svc.cluster.local");
  for (const char* name : {"etcd-1.etcd", "etcd", "etcd.default.svc"}) CHECK(has(node.container->aliases, name));
  CHECK(node.env.at("ETCDCTL_ENDPOINTS") == "etcd-1.etcd:2379");
  CHECK(has(node.container->volumes, "${dir}/etcd-data:/data"));
  REQUIRE((node.ready && node.ready->command));
  CHECK(node.ready->command->back() == "http://${ip}:8080/readyz");
  CHECK(all.nodes[0].port == 2379);
}

TEST_CASE("ZooKeeper: the ensemble of the Kubernetes tutorial is drafted") {
  const Made all = made("zookeeper");
  REQUIRE(all.config.nodes.size() == 3);
  const config::Node& node = all.config.nodes[2];
  CHECK(node.name == "zk-2");
  CHECK(node.container->aliases.front() == "zk-2.zk-hs.default.svc.cluster.local");
  CHECK(has(node.container->aliases, "zk-cs"));
  CHECK(node.user == "1000");
  CHECK(option_of(node, "--group-add") == "1000");  // its fsGroup
  REQUIRE(node.container->entrypoint);
  CHECK(in_text(node.container->entrypoint->back(), "start-zookeeper --servers=3 --data_dir=/var/lib/zookeeper/data"));
  REQUIRE((node.ready && node.ready->command));
  CHECK(in_text(node.ready->command->back(), "exec \"$ROSE_CONTAINER_zk_2\" 'sh' '-c' 'zookeeper-ready 2181'"));
  CHECK(in_text(all.draft.text, "Ignored, because it means nothing in a run: PodDisruptionBudget."));
  CHECK(in_text(all.draft.text, "here all start at once"));
}

TEST_CASE("Kafka in KRaft mode: a namespace and an init container of the same image are drafted") {
  const Made all = made("kafka");
  REQUIRE(all.config.nodes.size() == 3);
  const config::Node& node = all.config.nodes[1];
  CHECK(node.container->aliases.front() == "kafka-1.kafka-hs.streams.svc.cluster.local");
  CHECK(has(node.container->aliases, "kafka.streams"));
  const config::Command& words = *node.container->entrypoint;
  REQUIRE(words.size() == 7);
  CHECK((words[0] == "/bin/sh" && words[1] == "-ec" && words[3] == "sh" && words[4] == "sh"));
  CHECK(in_text(words[2], "mkdir -p /var/lib/kafka/data"));
  CHECK(in_text(words[2], "\nexec \"$@\""));
  CHECK(in_text(words[6], "PLAINTEXT://kafka-1.kafka-hs.streams.svc.cluster.local:9092"));
  // this is a variable of the shell in the container, so rose must not replace it
  CHECK(in_text(words[6], "$${HOSTNAME##*-}"));
  CHECK(says(all.draft.doubts, "the init container sysctl (busybox:1.36) is left out"));
  CHECK(node.ready->tcp == 9092);
  CHECK(has(node.container->options, "/tmp"));
}

TEST_CASE("Cassandra: seeds, limits and capabilities are drafted") {
  const Made all = made("cassandra");
  REQUIRE(all.config.nodes.size() == 3);
  const config::Node& node = all.config.nodes[0];
  CHECK(has(node.container->aliases, "cassandra-0.cassandra.default.svc.cluster.local"));
  CHECK(node.env.at("POD_IP") == "${ip}");
  CHECK(has(node.container->options, "IPC_LOCK"));
  CHECK(has(node.container->options, "1073741824"));
  CHECK_FALSE(node.container->entrypoint);
  CHECK(all.nodes[0].port == 9042);
}

TEST_CASE("Redis Cluster: files and the job that forms the cluster are drafted") {
  const Made all = made("redis");
  REQUIRE(all.config.nodes.size() == 3);
  const config::Node& node = all.config.nodes[0];
  CHECK(std::any_of(node.container->volumes.begin(), node.container->volumes.end(),
                    [](const std::string& one) { return one.ends_with("/rose.files/redis-cluster:/conf:ro"); }));
  CHECK(in_text(file(all, "rose.files/redis-cluster/redis.conf"), "cluster-node-timeout 15000\n"));
  for (const DraftFile& one : all.draft.files) CHECK(one.mode == 0755);
  CHECK(says(all.draft.doubts, "the container redis-exporter of the pod is left out"));
  REQUIRE(all.config.deployment.form);
  CHECK(in_text(all.config.deployment.form->back(), "for try in $(seq 6); do"));
  CHECK(in_text(all.config.deployment.form->back(), "exec \"$ROSE_CONTAINER_redis_cluster_0\" 'sh' '-c'"));
}

TEST_CASE("NATS from helm: named ports are drafted, the reloader and the test pod are left out") {
  const Made all = made("nats");
  CHECK(all.draft.nodes == Texts{"my-nats-0", "my-nats-1", "my-nats-2"});
  const config::Node& node = all.config.nodes[0];
  CHECK(node.env.at("SERVER_NAME") == "my-nats-0");
  CHECK(node.container->image == "nats:2.10.22-alpine");
  CHECK(in_text(node.ready->command->back(), ":8222/healthz?js-server-only=true"));
  CHECK(has(node.container->volumes, "${dir}/pid:/var/run/nats"));
}

TEST_CASE("RabbitMQ: the cookie and password are generated and equal on all nodes") {
  const Made all = made("rabbitmq");
  REQUIRE(all.config.nodes.size() == 2);
  for (const char* secret : {"guest-of-honour-17", "WIWVHCDTCIUAWANLMQAW", "V0lXVkhDRFRDSVVBV0FOTE1RQVc"})
    CHECK_FALSE(in_text(all.draft.text, secret));
  const auto& first = all.config.nodes[0].env;
  const auto& second = all.config.nodes[1].env;
  CHECK(first.at("RABBITMQ_ERLANG_COOKIE") == second.at("RABBITMQ_ERLANG_COOKIE"));
  CHECK(first.at("RABBITMQ_ERLANG_COOKIE") != first.at("RABBITMQ_DEFAULT_PASS"));
  CHECK(second.at("RABBITMQ_NODENAME") == "rabbit@rabbitmq-1.rabbitmq.default.svc.cluster.local");
  CHECK(std::any_of(all.config.nodes[0].container->volumes.begin(), all.config.nodes[0].container->volumes.end(),
                    [](const std::string& one) {
                      return one.ends_with("/rabbitmq-config/enabled_plugins:/etc/rabbitmq/enabled_plugins:ro");
                    }));
  CHECK(says(all.draft.doubts, "the init container config (busybox) is left out"));
  CHECK(says(all.draft.doubts, "rabbitmq-0, rabbitmq-1 may call the API of Kubernetes"));
}

TEST_CASE("PostgreSQL as a Deployment: variables, secrets and the service's port are drafted") {
  const Made all = made("postgres");
  CHECK(all.draft.nodes == Texts{"postgres"});
  const config::Node& node = all.config.nodes[0];
  CHECK((node.env.at("POSTGRES_DB") == "topdb" && node.env.at("PGDATA") == "/var/lib/postgresql/data/pgdata"));
  CHECK_FALSE(in_text(all.draft.text, "topsecret-password"));
  CHECK(in_text(all.draft.text, "#: export PGPASSWORD=$(tr"));
  CHECK(node.command == config::Command{"-c", "max_connections=50"});
  CHECK(has(node.container->volumes, "${dir}/data/pg:/var/lib/postgresql/data"));
  CHECK(says(all.draft.doubts, "clients of the Service postgres use port 5432 instead of 15432"));
  CHECK(has(node.container->aliases, "postgres.default.svc.cluster.local"));
}

TEST_CASE("MinIO from a JSON list and Consul with a projected volume are drafted") {
  const Made minio = made("minio");
  CHECK(minio.draft.nodes == Texts{"minio-0", "minio-1", "minio-2", "minio-3"});
  CHECK(has(minio.config.nodes[3].command, "http://minio-{0...3}.minio.default.svc.cluster.local/data"));
  CHECK_FALSE(in_text(minio.draft.text, "minio123-secret"));

  const Made consul = made("consul");
  REQUIRE(consul.config.nodes.size() == 3);
  const config::Node& node = consul.config.nodes[0];
  CHECK(node.user == "100:1000");
  CHECK(has(node.container->aliases, "consul-server.mesh.svc"));
  CHECK(in_text(node.container->entrypoint->back(), "-advertise=\"$${ADVERTISE_IP}\""));
  CHECK(std::any_of(node.container->volumes.begin(), node.container->volumes.end(), [](const std::string& one) {
    return one.ends_with("/consul-server-config/server.json:/consul/config/server.json:ro");
  }));
}

TEST_CASE("Elasticsearch: variables with dots in their names are drafted") {
  const Made all = made("elasticsearch");
  const auto& env = all.config.nodes.at(0).env;
  CHECK(env.at("discovery.type") == "single-node");
  CHECK(env.at("cluster.name") == "search");
  CHECK(env.at("path.repo-default") == "/snapshots");
  CHECK(in_text(all.draft.text, "env.\"discovery.type\" = "));
  CHECK(says(all.nodes[0].doubts, "its variable 9lives cannot be written here"));
}

TEST_CASE("invalid manifests are refused with their position") {
  struct Row {
    const char* text;
    const char* says;
  };
  for (const Row& row : std::vector<Row>{
           {"a: 1\n", "f.yaml:1: not a manifest: 'kind' is missing"},
           {"kind: Deployment\nmetadata: {name: x}\nspec: {replicas: 0, template: {spec: {containers: [{image: "
            "y}]}}}\n",
            "f.yaml: nothing is started, because all replicas are 0"},
           {"kind: ConfigMap\nmetadata: {name: x}\n", "f.yaml: no StatefulSet, Deployment, DaemonSet or Pod is in it"},
           {"kind: Kustomization\nresources: [a]\n", "f.yaml:1: a Kustomization refers to manifests"},
           {"kind: StatefulSet\nmetadata: {name: x}\nspec: {replicas: many}\n", "f.yaml:1: replicas is 'many'"},
           {"kind: Pod\nmetadata: {name: x}\nspec: {containers: []}\n", "f.yaml:1: Pod x has no container"},
           {"kind: Pod\nmetadata: {name: {{ .Values.name }}}\n", "f.yaml:"},
           {"kind: Pod\nmetadata: {name: x}\nspec: {containers: [{image: i}]}\n---\nkind: Pod\nmetadata: {name: "
            "x}\nspec: {containers: [{image: i}]}\n",
            "f.yaml:5: two pods are called 'x'"},
       }) {
    INFO(row.text);
    const auto read = draft_manifests({{"f.yaml", row.text}}, "rose.files", Host());
    REQUIRE_FALSE(read.has_value());
    CHECK(read.error().kind == ErrorKind::input);
    INFO(read.error().message);
    CHECK(in_text(read.error().message, row.says));
  }
}
