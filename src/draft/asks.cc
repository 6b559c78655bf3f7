#include "draft/asks.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <vector>

#include "base/ascii.h"
#include "base/text.h"
#include "base/toml.h"
#include "draft/systems.h"

namespace rose::draft {
namespace {

struct Ask {
  std::string_view images;  // names of images, without registry and tag
  std::uint16_t port;       // the usual port for clients; with `path`, the port for that request
  std::string_view inside;  // a line for a shell in the container; {} is the port
  std::string_view path;    // if `inside` is empty: the path of an HTTP request
};

// Sources: the health checks that the systems' own documentation or images recommend.
constexpr auto kAsks = std::to_array<Ask>({
    {"redis valkey keydb redis-cluster redis-sentinel", 6379,
     "case $(redis-cli -p {} ping 2>&1) in *PONG*|*NOAUTH*) ;; *) exit 1 ;; esac", ""},
    {"etcd", 2379, "ETCDCTL_API=3 etcdctl --endpoints=http://127.0.0.1:{} endpoint health", ""},
    {"zookeeper", 2181, "zkServer.sh status", ""},
    {"postgres postgresql timescaledb postgis", 5432, "pg_isready -q -p {}", ""},
    {"mysql", 3306, "mysqladmin ping --silent", ""},
    {"mariadb mariadb-galera", 3306, "mariadb-admin ping --silent || mysqladmin ping --silent", ""},
    {"mongo mongodb", 27017,
     "case $(mongosh --quiet --port {} --eval \"db.hello().isWritablePrimary || db.hello().secondary\") in "
     "*true*) ;; *) exit 1 ;; esac",
     ""},
    {"cassandra", 9042, "case $(nodetool status) in *UN\\ *) ;; *) exit 1 ;; esac", ""},
    {"kafka cp-kafka", 9092,
     "kafka-broker-api-versions.sh --bootstrap-server 127.0.0.1:{} || "
     "kafka-broker-api-versions --bootstrap-server 127.0.0.1:{}",
     ""},
    {"rabbitmq", 5672, "rabbitmq-diagnostics -q check_running", ""},
    {"consul", 8500, "", "/v1/operator/autopilot/health"},
    {"vault openbao", 8200, "", "/v1/sys/health?standbyok=true"},
    {"cockroach", 8080, "", "/health?ready=1"},
    {"elasticsearch opensearch", 9200, "", "/_cluster/health?wait_for_status=yellow&timeout=1s"},
    {"minio", 9000, "", "/minio/health/ready"},
    {"clickhouse clickhouse-server", 8123, "", "/ping"},
    {"influxdb", 8086, "", "/ping"},
    {"prometheus", 9090, "", "/-/ready"},
    {"rqlite", 4001, "", "/readyz"},
    {"couchdb", 5984, "", "/_up"},
    {"nats", 8222, "", "/healthz"},
});

}  // namespace

std::string ready_of_image(std::string_view image, std::string_view variable, std::uint16_t port,
                           const std::vector<std::uint16_t>& ports, bool curl) {
  const std::string name = image_name(image);
  for (const Ask& ask : kAsks) {
    const std::vector<std::string> images = split(ask.images, ' ');
    if (std::find(images.begin(), images.end(), name) == images.end()) continue;
    if (!ask.path.empty()) {
      // This port may be closed, so it is used only if no ports are declared, or if it is one of the declared ports.
      if (!curl || (!ports.empty() && std::find(ports.begin(), ports.end(), ask.port) == ports.end())) return "";
      return fmt::format(
          "{{ command = [\"curl\", \"-kfsS\", \"-m\", \"5\", \"-o\", \"/dev/null\", {}], timeout = \"120s\" }}",
          toml::literal(fmt::format("http://${{ip}}:{}{}", ask.port, ask.path)));
    }
    const std::string line = replaced(std::string(ask.inside), "{}", std::to_string(port != 0 ? port : ask.port));
    return fmt::format(
        "{{ command = [\"sh\", \"-c\", {}], timeout = \"120s\" }}",
        toml::literal(fmt::format("$(command -v podman || echo docker) exec \"$ROSE_CONTAINER_{}\" sh -c {}", variable,
                                  shell_quoted(line))));
  }
  return "";
}

}  // namespace rose::draft
