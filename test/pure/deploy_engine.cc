// Which commands are sent to container engines, word for word, and how their answers are read.
#include "deploy/engine.h"
#include "environment.h"

#include <algorithm>
#include <catch2/catch.hpp>

using namespace rose;
using namespace rose::deploy;
using Words = std::vector<std::string>;

namespace {

ContainerSpec spec() {
  ContainerSpec spec;
  spec.name = "rose-abcdef-n1";
  spec.run = "rose-abcdef";
  spec.image = "localhost/kv:1";
  spec.enter = "/run-dir/.rose-enter/n1";
  return spec;
}

bool has(const Words& words, const std::string& option, const std::string& value) {
  for (std::size_t i = 0; i + 1 < words.size(); ++i)
    if (words[i] == option && words[i + 1] == value) return true;
  return false;
}

}  // namespace

TEST_CASE("limits that the engine would refuse are lowered to the highest that it accepts") {
  const std::map<std::string, std::uint64_t> highest = {{"nofile", 20000}, {"memlock", 8388608}};
  Words lowered;
  CHECK(permitted_limits({"nofile=65535", "memlock=-1:-1", "nproc=65535", "core=0", "nofile=100:40000"}, highest,
                         lowered) ==
        Words{"nofile=20000", "memlock=8388608:8388608", "nproc=65535", "core=0", "nofile=100:20000"});
  CHECK(lowered == Words{"nofile is 20000 instead of 65535", "memlock is 8388608:8388608 instead of -1:-1",
                         "nofile is 100:20000 instead of 100:40000"});
  lowered.clear();
  CHECK(permitted_limits({"nofile=20000:20000", "memlock=words", "nofile"}, highest, lowered) ==
        Words{"nofile=20000:20000", "memlock=words", "nofile"});
  CHECK(lowered.empty());
  // Docker's daemon sets the limits itself, so they are not lowered.
  CHECK(permitted_limits(Engine{{"/usr/bin/docker"}, false, ""}, {"memlock=-1"}, lowered) == Words{"memlock=-1"});
}

TEST_CASE("a container is created with options that podman and docker share") {
  ContainerSpec one = spec();
  one.hosts = "/run-dir/.rose-enter/n1.hosts";
  one.env = {{"A", "b c"}};
  one.volumes = {"/x:/y:ro"};
  one.user = "999";
  one.limits = {"nofile=1024:1024"};
  one.options = {"--cap-add", "NET_ADMIN"};
  const Engine docker{{"/usr/bin/docker"}, false, ""};
  const auto words = making_words(docker, one, false);
  REQUIRE(words.has_value());
  CHECK(*words == Words{"/usr/bin/docker",
                        "create",
                        "--name",
                        "rose-abcdef-n1",
                        "--label",
                        "rose=rose-abcdef",
                        "--log-driver",
                        "none",
                        "--network",
                        "host",
                        "--volume",
                        "/run-dir/.rose-enter/n1.hosts:/etc/hosts",
                        "--env",
                        "A=b c",
                        "--volume",
                        "/x:/y:ro",
                        "--volume",
                        "/run-dir/.rose-enter/n1:/.rose:ro",
                        "--security-opt",
                        "label=disable",
                        "--ulimit",
                        "nofile=1024:1024",
                        "--user",
                        "999",
                        "--cap-add",
                        "NET_ADMIN",
                        "--no-healthcheck",
                        "--entrypoint",
                        "/.rose/enter",
                        "localhost/kv:1"});
  const auto at_once = making_words(docker, one, true);
  REQUIRE(at_once.has_value());
  CHECK((*at_once)[1] == "run");
  CHECK(std::equal(at_once->begin() + 2, at_once->end(), words->begin() + 2, words->end()));
  CHECK(start_words(docker, "rose-abcdef-n1") == Words{"/usr/bin/docker", "start", "--attach", "rose-abcdef-n1"});
  CHECK(remove_words(docker, {"a", "b"}) == Words{"/usr/bin/docker", "rm", "--force", "--volumes", "a", "b"});
}

TEST_CASE("only podman joins an existing network namespace") {
  ContainerSpec one = spec();
  one.netns = "/run/netns/rose-abcdef-n1";
  const auto words = making_words({{"podman", "--root=/x"}, true, ""}, one, false);
  REQUIRE(words.has_value());
  CHECK((*words)[1] == "--root=/x");
  CHECK(has(*words, "--network", "ns:/run/netns/rose-abcdef-n1"));
  CHECK(std::count(words->begin(), words->end(), "--no-hosts") == 1);
  // If the user mounts a file at /etc/hosts, the user's file is used.
  one.hosts = "/run-dir/.rose-enter/n1.hosts";
  one.volumes = {"/my/hosts:/etc/hosts:ro"};
  const auto own = making_words({{"podman"}, true, ""}, one, false);
  REQUIRE(own.has_value());
  CHECK_FALSE(has(*own, "--volume", "/run-dir/.rose-enter/n1.hosts:/etc/hosts"));
  const auto refused = making_words({{"docker"}, false, ""}, one, false);
  REQUIRE_FALSE(refused.has_value());
  CHECK(refused.error().kind == ErrorKind::input);
}

TEST_CASE("with docker a separate container holds the node's network") {
  ContainerSpec one = spec();
  one.netns = "/run/netns/rose-abcdef-n1";
  one.holder = "rose-abcdef-network-of-n1";
  one.hostname = "n1";
  one.hosts = "/run-dir/.rose-enter/n1.hosts";
  one.options = {"--init"};
  const Engine docker{{"docker"}, false, ""};
  const auto words = making_words(docker, one, false);
  REQUIRE(words.has_value());
  CHECK(has(*words, "--network", "container:rose-abcdef-network-of-n1"));
  // With Docker, a container that shares a network gets the host name of the network's owner, so no name must be given.
  CHECK(std::count(words->begin(), words->end(), "--hostname") == 0);
  CHECK(has(*words, "--volume", "/run-dir/.rose-enter/n1.hosts:/etc/hosts"));
  CHECK(std::count(words->begin(), words->end(), "--init") == 1);
  const Words holder = holder_words(docker, one, "rose-abcdef-network");
  CHECK((has(holder, "--name", "rose-abcdef-network-of-n1") && has(holder, "--network", "none") &&
         has(holder, "--hostname", "n1")));
  CHECK((holder.end()[-2] == "rose-abcdef-network" && holder.back() == "rose:hold"));
  const std::string undo = undo_line(remove_image_words(docker, "rose-abcdef-network"));
  CHECK_FALSE(undo_words(undo, "rose-abcdef").empty());
}

TEST_CASE("an image's command is read from the output of either engine") {
  const auto docker = parse_image(
      R"([{"Config": {"Entrypoint": ["/entry"], "Cmd": ["a", "b c"], "User": "redis", "StopSignal": "SIGQUIT"}}])");
  REQUIRE(docker.has_value());
  CHECK(docker->entrypoint == Words{"/entry"});
  CHECK(docker->command == Words{"a", "b c"});
  CHECK(docker->user == "redis");
  CHECK(docker->stop_signal == "SIGQUIT");
  const auto bare = parse_image(R"([{"Config": {"Entrypoint": null, "Cmd": null}}])");
  const auto database = parse_image(R"([{"Config": {"Cmd": ["x"], "Volumes": {"/var/lib/db": {}}}}])");
  REQUIRE(database.has_value());
  CHECK(database->volumes == Words{"/var/lib/db"});
  REQUIRE(bare.has_value());
  CHECK((bare->entrypoint.empty() && bare->command.empty() && bare->user.empty()));
  for (const char* other : {"", "[]", "{}", "[1]", "[{}]", R"([{"Config": 7}])", "[{"})
    CHECK_FALSE(parse_image(other).has_value());
}

TEST_CASE("heal executes only lines that remove resources of that run") {
  std::string line;
  {
    const rose::test::Environment engine("CONTAINERS_CONF", "/x y/containers.conf");
    line = undo_line(remove_words({{"/usr/bin/podman"}, true, ""}, {"rose-abcdef-n1"}));
  }
  const Words words = undo_words(line, "rose-abcdef");
  REQUIRE_FALSE(words.empty());
  CHECK(words.front() == "/usr/bin/env");
  CHECK(std::find(words.begin(), words.end(), "CONTAINERS_CONF=/x y/containers.conf") != words.end());
  CHECK(words.back() == "rose-abcdef-n1");
  CHECK(undo_words(line, "rose-123456").empty());
  CHECK(undo_words("/usr/bin/podman\trun\trose-abcdef-n1", "rose-abcdef").empty());
  CHECK(undo_words("", "rose-abcdef").empty());
}

TEST_CASE("an image's health check is read from the output of either engine") {
  const auto docker = parse_image(R"([{"Config":{"Cmd":["x"],"Healthcheck":
      {"Test":["CMD-SHELL","pg_isready -q"],"Interval":2000000000,"Retries":5}}}])");
  REQUIRE(docker.has_value());
  REQUIRE(docker->health.has_value());
  CHECK(docker->health->test == Words{"/bin/sh", "-c", "pg_isready -q"});
  CHECK((docker->health->interval_ns == 2'000'000'000 && docker->health->retries == 5 && !docker->health->timeout_ns));
  const auto podman = parse_image(R"([{"Config":{"Cmd":["x"]},"Healthcheck":{"Test":["CMD","/check","-q"]}}])");
  REQUIRE((podman.has_value() && podman->health.has_value()));
  CHECK(podman->health->test == Words{"/check", "-q"});
  for (const char* none : {R"([{"Config":{}}])", R"([{"Config":{"Healthcheck":{"Test":["NONE"]}}}])"}) {
    const auto image = parse_image(none);
    REQUIRE(image.has_value());
    CHECK_FALSE(image->health.has_value());
  }
}
