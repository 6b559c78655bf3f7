// Which names the nodes and commands of a run can resolve. The names are the same with rose's own containers as with
// container engines, and no name of this machine is among them.
#include "deploy/names.h"

#include <algorithm>
#include <catch2/catch.hpp>

#include "deploy/name_server.h"

using namespace rose;
using namespace rose::deploy;

namespace {

config::Config two_boxes() {
  config::Config config;
  for (const char* name : {"alpha", "beta", "plain"}) {
    config::Node node;
    node.name = name;
    if (node.name != "plain") node.container = config::Container();
    config.nodes.push_back(std::move(node));
  }
  config.nodes[0].container->hostname = "box-one";
  config.nodes[0].container->aliases = {"db", "shop-alpha-1"};
  config.nodes[0].container->hosts = {{"gate", config::kHostGateway}, {"far", "192.0.2.1"}};
  config.nodes[1].container->hostname = "box-two";
  config.nodes[1].container->domain = "lab.test";
  return config;
}

std::vector<NodeInfo> infos(const config::Config& config) {
  std::vector<NodeInfo> all;
  for (std::size_t i = 0; i < config.nodes.size(); ++i) {
    NodeInfo info;
    info.name = config.nodes[i].name;
    info.index = i;
    info.ip = fmt::format("10.77.0.{}", i + 1);
    all.push_back(std::move(info));
  }
  return all;
}

}  // namespace

TEST_CASE("a container resolves its own names first, then the others'") {
  const config::Config config = two_boxes();
  CHECK(container_hosts(config, infos(config), 1) ==
        "127.0.0.1\tlocalhost\n::1\tlocalhost ip6-localhost\n"
        "10.77.0.2\tbox-two.lab.test box-two beta\n"
        "10.77.0.1\talpha db shop-alpha-1 box-one\n"
        "10.77.0.3\tplain\n"
        "10.77.0.254\thost.docker.internal host.containers.internal gateway.docker.internal\n");
  const std::string alpha = container_hosts(config, infos(config), 0);
  CHECK(alpha.find("10.77.0.254\tgate\n192.0.2.1\tfar\n") != std::string::npos);
}

TEST_CASE("a host name that is another node's name refers to that node only") {
  config::Config config = two_boxes();
  config.nodes[0].container->hostname = "beta";
  const auto lines = run_names(config, infos(config));
  CHECK(lines[0].names == std::vector<std::string>{"alpha", "db", "shop-alpha-1"});
  // Within a container, its own host name must still refer to the container.
  CHECK(container_hosts(config, infos(config), 0).find("10.77.0.1\tbeta alpha") != std::string::npos);
}

TEST_CASE("nodes with a shared network share its names and address") {
  config::Config config = two_boxes();
  config.nodes[0].network_of = "beta";
  config.nodes[0].container->hostname.clear();
  std::vector<NodeInfo> nodes = infos(config);
  nodes[0].ip = nodes[1].ip;
  const std::string shared = container_hosts(config, nodes, 1);
  CHECK(shared.find("::1\tlocalhost ip6-localhost\n"
                    "10.77.0.2\tbox-two.lab.test box-two beta alpha db shop-alpha-1\n"
                    "10.77.0.3\tplain\n") != std::string::npos);
  CHECK(container_hosts(config, nodes, 0) == shared);
  CHECK(process_hosts(config, nodes, "", "vm").find("10.77.0.2\tbeta box-two.lab.test box-two alpha db") !=
        std::string::npos);
}

TEST_CASE("an alias that extends the host name is the container's full name") {
  config::Config config = two_boxes();
  config.nodes[0].container->hostname.clear();
  config.nodes[0].container->aliases = {"kv", "alpha.kv.default.svc.cluster.local", "alpha.kv"};
  CHECK(container_hosts(config, infos(config), 0)
            .find("10.77.0.1\talpha.kv.default.svc.cluster.local alpha kv alpha.kv\n") != std::string::npos);
}

TEST_CASE("processes resolve the run's names, and of the machine's names only the machine's own") {
  const config::Config config = two_boxes();
  const std::string machine = "127.0.0.1 localhost\n127.0.0.1\tkafka alpha # of a tutorial\n127.0.1.1 vm.lab vm\n";
  CHECK(process_hosts(config, infos(config), machine, "vm") ==
        "127.0.0.1\tlocalhost\n::1\tlocalhost ip6-localhost\n"
        "10.77.0.1\talpha db shop-alpha-1 box-one\n"
        "10.77.0.2\tbeta box-two.lab.test box-two\n"
        "10.77.0.3\tplain\n"
        "127.0.1.1\tvm\n");
  // The machine's address does not exist in the network of the nodes, so the machine's name must get another one.
  CHECK(process_hosts(config, infos(config), "192.0.2.7 vm\n", "vm").ends_with("127.0.1.1\tvm\n"));
  // If a node has the machine's name, that name refers to the node.
  CHECK(process_hosts(config, infos(config), "127.0.1.1 alpha\n", "alpha").find("127.0.1.1") == std::string::npos);
}

TEST_CASE("in a host network the machine's other names are kept") {
  config::Config config = two_boxes();
  config.deployment.network = config::Network::host;
  auto nodes = infos(config);
  for (NodeInfo& info : nodes) info.ip.clear();
  const std::string hosts = process_hosts(config, nodes, "192.0.2.9 registry alpha\n192.0.2.7 vm\n", "vm");
  CHECK(hosts.find("127.0.0.1\talpha db") != std::string::npos);
  CHECK(hosts.ends_with("192.0.2.9\tregistry\n192.0.2.7\tvm\n"));
}

namespace {

using namespace std::string_literals;

const NameTable kNames = name_table(
    "127.0.0.1\tlocalhost\n::1\tlocalhost ip6-localhost\n# 10.77.0.9\tnobody\n"
    "10.77.0.1\tAlpha db.shop\n10.77.0.2  beta\tdb.shop # a comment\n");

std::string label(const std::string& name) {
  std::string bytes;
  for (std::size_t at = 0; at < name.size();) {
    const std::size_t dot = std::min(name.find('.', at), name.size());
    bytes += static_cast<char>(dot - at) + name.substr(at, dot - at);
    at = dot + 1;
  }
  return bytes + '\0';
}

// A DNS query that asks for recursion and ends with an EDNS record, as those of resolvers do.
std::string query(const std::string& name, char type) {
  return "\x12\x34\x01\0\0\1\0\0\0\0\0\1"s + label(name) + "\0"s + type + "\0\1"s + "\0\0\x29\x04\xd0\0\0\0\0\0\0"s;
}

// A whole answer to such a query: identification, flags, counts, the question and the answers. It has no EDNS record.
std::string answered(char code, char count, const std::string& name, char type, const std::string& answers) {
  return "\x12\x34\x81"s + static_cast<char>(0x80 | code) + "\0\1\0"s + count + "\0\0\0\0"s + label(name) + "\0"s +
         type + "\0\1"s + answers;
}

std::string record(char type, const std::string& data) {
  return "\xc0\x0c\0"s + type + "\0\1\0\0\x02\x58\0"s + static_cast<char>(data.size()) + data;
}

}  // namespace

TEST_CASE("the name server answers with the addresses of the hosts file") {
  CHECK(dns_answer(query("ALPHA", 1), kNames) == answered(0, 1, "ALPHA", 1, record(1, "\x0a\x4d\0\1"s)));
  CHECK(dns_answer(query("db.shop", 1), kNames) ==
        answered(0, 2, "db.shop", 1, record(1, "\x0a\x4d\0\1"s) + record(1, "\x0a\x4d\0\2"s)));
  CHECK(dns_answer(query("ip6-localhost", 28), kNames) ==
        answered(0, 1, "ip6-localhost", 28, record(28, "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\1"s)));
  // The name exists, but it has no address of this type.
  CHECK(dns_answer(query("beta", 28), kNames) == answered(0, 0, "beta", 28, ""));
  CHECK(dns_answer(query("2.0.77.10.in-addr.arpa", 12), kNames) ==
        answered(0, 1, "2.0.77.10.in-addr.arpa", 12, record(12, label("beta"))));
}

TEST_CASE("the name server does not know what is outside of the run") {
  for (const char* name : {"nobody", "example.org", "alpha.example.org", "#"})
    CHECK(dns_answer(query(name, 1), kNames) == answered(2, 0, name, 1, ""));
  CHECK(dns_answer(query("9.9.9.9.in-addr.arpa", 12), kNames) == answered(3, 0, "9.9.9.9.in-addr.arpa", 12, ""));
}

TEST_CASE("the name server survives messages that are not queries") {
  CHECK(dns_answer("", kNames).empty());
  CHECK(dns_answer(answered(0, 0, "alpha", 1, ""), kNames).empty());
  const std::string whole = "\x12\x34\x01\0\0\1\0\0\0\0\0\0"s + label("alpha") + "\0\1\0\1"s;
  const std::string refused = "\x12\x34\x81\x84\0\0\0\0\0\0\0\0"s;
  for (std::size_t size = 12; size < whole.size(); ++size) CHECK(dns_answer(whole.substr(0, size), kNames) == refused);
  CHECK(dns_answer(whole, kNames).size() == whole.size() + 16);
  // These messages are refused: a question that contains a pointer, a label that is too long, a name that is too long,
  // and a query without a question.
  CHECK(dns_answer("\x12\x34\x01\0\0\1\0\0\0\0\0\0\xc0\x0c\0\1\0\1"s, kNames) == refused);
  CHECK(dns_answer("\x12\x34\x01\0\0\1\0\0\0\0\0\0"s + label(std::string(64, 'a')) + "\0\1\0\1"s, kNames) == refused);
  std::string longest;
  for (int i = 0; i < 60; ++i) longest += "abcd.";
  CHECK(dns_answer(query(longest + "x", 1), kNames) == refused);
  CHECK(dns_answer("\x12\x34\x01\0\0\0\0\0\0\0\0\0"s, kNames) == refused);
}

TEST_CASE("a container asks the run's name server first, then the name servers that are nodes") {
  CHECK(resolver_text(true, {}) == "nameserver 127.0.0.11\noptions ndots:0\n");
  CHECK(resolver_text(true, {"10.77.0.5"}) == "nameserver 127.0.0.11\nnameserver 10.77.0.5\noptions ndots:0\n");
  CHECK(resolver_text(false, {}) == kNoNameServer);
}
