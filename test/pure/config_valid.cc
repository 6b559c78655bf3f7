// rose.toml files that are valid, and the configurations they give.
#include <catch2/catch.hpp>
#include <cerrno>
#include <filesystem>
#include <string>

#include "base/file.h"
#include "config/config.h"
#include "folder.h"
#include "knowledge/meanings.h"

using namespace rose;
using config::parse_config;

namespace {

const std::string kOneNode = "[[node]]\nname = \"n1\"\ncommand = [\"./kv\"]\n";

config::Config parse(const std::string& text) {
  INFO(text);
  auto config = parse_config(text, "rose.toml", "/srv/kv");
  INFO((config ? "" : config.error().message));
  REQUIRE(config.has_value());
  return std::move(*config);
}

std::string nodes(int count) {
  std::string text;
  for (int i = 1; i <= count; ++i) text += fmt::format("[[node]]\nname = \"n{}\"\ncommand = [\"./kv\"]\n", i);
  return text;
}

}  // namespace

TEST_CASE("the smallest file has all defaults") {
  const config::Config config = parse(kOneNode);
  CHECK(config.name == "kv");  // the folder's name is used
  CHECK(config.file == "rose.toml");
  CHECK(config.directory == "/srv/kv");
  CHECK(config.deployment.network == config::Network::netns);
  CHECK(config.deployment.subnet == "10.77.0.0/24");
  CHECK_FALSE(config.workload.has_value());
  CHECK_FALSE(config.oracle.has_value());
  REQUIRE(config.nodes.size() == 1);
  const config::Node& node = config.nodes[0];
  CHECK(node.ip == "10.77.0.1");
  CHECK(node.line == 1);
  CHECK(node.binaries == std::vector<std::string>{"/srv/kv/kv"});
  CHECK_FALSE(node.ready.has_value());
  CHECK_FALSE(node.restart.has_value());
  CHECK(config.diagnose.levels == std::vector<int>{1, 2, 3});
  CHECK(config.inject.syscall == config::Backend::automatic);
}

TEST_CASE("the reference file contains every key") {
  const auto read = config::read_config(ROSE_TEST_DIR "/../configs/rose.toml");
  INFO((read ? "" : read.error().message));
  REQUIRE(read.has_value());
  const config::Config& config = *read;
  CHECK(config.file == ROSE_TEST_DIR "/../configs/rose.toml");
  CHECK(config.directory.filename() == "configs");
  CHECK(config.name == "kv-lost-write");
  CHECK(config.deployment.setup == config::Command{"./setup.sh"});
  CHECK(config.deployment.teardown == config::Command{"./teardown.sh"});
  CHECK(config.node_names() == std::vector<std::string>{"n1", "n2", "n3", "cache", "db"});
  const config::Node& n1 = *config.find("n1");
  CHECK(n1.command == config::Command{"./kv", "--id", "1", "--data", "${dir}"});
  CHECK(n1.env == std::map<std::string, std::string>{{"KV_PEERS", "${ips}"}, {"KV_LOG", "${dir}/kv.log"}});
  REQUIRE(n1.ready.has_value());
  CHECK(n1.ready->tcp == std::uint16_t{7000});
  CHECK(n1.ready->timeout_ns == 10 * kSecond);
  REQUIRE(n1.restart.has_value());
  CHECK(n1.restart->delay_ns == kSecond);
  CHECK(n1.restart->max == 5);
  CHECK(n1.user == "nobody");
  CHECK(n1.binaries == std::vector<std::string>{(config.directory / "kv").string()});
  CHECK(n1.sources == std::vector<std::string>{"raft.cc", "snapshot.cc"});
  CHECK(n1.functions == std::vector<std::string>{"Raft::*"});
  CHECK(n1.logs == std::vector<std::string>{"kv.log"});
  REQUIRE(config.log_forms.size() == 1);
  CHECK(config.log_forms[0].files == "*/kv.log");
  CHECK(config.log_forms[0].time == "%d.%m.%Y %H:%M:%S.%L");
  CHECK(config.log_forms[0].zone_ns == 2 * 3600 * kSecond);
  CHECK(config.find("n2")->ready->log == std::string("listening on [0-9]+"));
  CHECK(config.find("n2")->binaries.size() == 2);
  CHECK(config.find("n2")->ip == "10.77.0.2");
  CHECK(config.find("n3")->ready->command == config::Command{"./ping.sh", "${ip}"});
  const config::Node& db = *config.find("db");
  REQUIRE(db.attach.has_value());
  CHECK(db.attach->pid_file == std::string("db.pid"));
  CHECK(db.command.empty());
  CHECK(db.ip.empty());
  CHECK(config.find("n9") == nullptr);
  REQUIRE(config.workload.has_value());
  CHECK(config.workload->timeout_ns == 60 * kSecond);
  REQUIRE(config.oracle.has_value());
  CHECK(config.oracle->when == config::OracleWhen::end);
  CHECK(config.oracle->timeout_ns == 30 * kSecond);
  CHECK(config.trace.window == 1'000'000);
  CHECK(config.trace.memory == std::uint64_t{64} << 20);
  CHECK(config.trace.network_delay_ns == 5 * kSecond);
  CHECK(config.trace.pause_ns == 3 * kSecond);
  CHECK(config.trace.noise == std::vector<std::string>{"newfstatat:ENOENT", "-poll:EINTR"});
  CHECK(config.diagnose.target_rate == 0.8);
  CHECK(config.diagnose.syscall_attempts == 50);
  CHECK(config.diagnose.max_runs == 300);
  CHECK(config.profile.infrequent_below == 2.0);
}

TEST_CASE("commands may contain other nodes' addresses and shell placeholders", "[config]") {
  const auto config = config::parse_config(
      "[[node]]\nname = \"n-1\"\ncommand = [\"./kv\", \"--of=${ip_n2}:1\", \"$${X}\"]\nenv = { A = \"${ip_n_1}\" }\n"
      "[[node]]\nname = \"n2\"\ncommand = [\"./kv\"]\nready = { command = [\"./ping\", \"${ip_n_1}\"] }\n"
      "[workload]\ncommand = [\"./w\", \"${ip_n_1}\", \"$${\"]\n",
      "rose.toml", "/srv");
  REQUIRE(config.has_value());
  CHECK(config->nodes[0].command.back() == "$${X}");
  CHECK(config->workload->command.back() == "$${");
}

TEST_CASE("missing addresses are assigned in order, skipping those used anywhere in the file") {
  const config::Config config = parse(nodes(3) + "[[node]]\nname = \"n4\"\nip = \"10.77.0.2\"\ncommand = [\"./kv\"]\n");
  CHECK(config.nodes[0].ip == "10.77.0.1");
  CHECK(config.nodes[1].ip == "10.77.0.3");
  CHECK(config.nodes[2].ip == "10.77.0.4");
  CHECK(config.nodes[3].ip == "10.77.0.2");
}

TEST_CASE("a subnet may be full, and its last address is the client's") {
  const config::Config config = parse("[deployment]\nsubnet = \"192.168.3.8/29\"\n" + nodes(5));
  CHECK(config.nodes[4].ip == "192.168.3.13");
  CHECK(config::client_address(config.deployment) == "192.168.3.14");
  CHECK(config::prefix_length(config.deployment) == 29);
  CHECK(config::client_address(parse(nodes(1)).deployment) == "10.77.0.254");
  CHECK(config::client_address(parse("[deployment]\nsubnet = \"10.0.0.0/8\"\n" + nodes(1)).deployment) ==
        "10.255.255.254");
}

TEST_CASE("a subnet may be an IPv6 subnet") {
  const config::Config config = parse("[deployment]\nsubnet = \"fd00:77::/64\"\n" + nodes(2) +
                                      "[[node]]\nname = \"x\"\nip = \"FD00:77:0:0::1\"\ncommand = [\"x\"]\n");
  CHECK(config.nodes[0].ip == "fd00:77::2");
  CHECK(config.nodes[1].ip == "fd00:77::3");
  CHECK(config.nodes[2].ip == "fd00:77::1");
  CHECK(config::client_address(config.deployment) == "fd00:77::fffe");
  CHECK(config::prefix_length(config.deployment) == 64);
  CHECK(config::client_address(parse("[deployment]\nsubnet = \"fd00::8/125\"\n" + nodes(1)).deployment) == "fd00::e");
}

TEST_CASE("in host networks any address or none is accepted") {
  const config::Config config = parse("[deployment]\nnetwork = \"host\"\n" + kOneNode +
                                      "[[node]]\nname = \"n2\"\nip = \"::1\"\ncommand = [\"kv\"]\n" +
                                      "[[node]]\nname = \"n3\"\nip = \"127.0.0.1\"\ncommand = [\"kv\"]\n");
  CHECK(config.nodes[0].ip.empty());
  CHECK(config.nodes[1].ip == "::1");
  CHECK(config.nodes[1].binaries == std::vector<std::string>{"kv"});  // rose finds it in PATH
  CHECK(config.nodes[2].ip == "127.0.0.1");
}

TEST_CASE("optional forms of values are accepted") {
  for (const char* line : {"command = [\"sh\", \"-c\", \"echo $HOME $$ $(date) 5$\", \"\"]",
                           "command = [\"${config_dir}/kv\"]", "command = [\"${run_dir}/kv\"]"})
    parse(std::string("[[node]]\nname = \"A-1.b_c\"\n") + line + "\n");
  CHECK(parse("[[node]]\nname = \"n1\"\ncommand = [\"${config_dir}/kv\"]\n").nodes[0].binaries ==
        std::vector<std::string>{"/srv/kv/kv"});
  CHECK(parse(kOneNode + "restart = {}\n").nodes[0].restart->max == 5);
  CHECK(parse(kOneNode + "binary = \"/usr/bin/kv\"\n").nodes[0].binaries[0] == "/usr/bin/kv");
  CHECK(parse(kOneNode + "binary = \"${config_dir}/$${config_dir}/kv$${\"\n").nodes[0].binaries[0] ==
        "/srv/kv/${config_dir}/kv${");
  CHECK(parse(kOneNode + "[oracle]\ncommand = [\"grep\"]\nwhen = \"poll\"\nevery = \"0.5s\"\n").oracle->every_ns ==
        kSecond / 2);
  CHECK(parse(kOneNode + "[diagnose]\ntarget_rate = 1\nlevels = [2]\n").diagnose.levels == std::vector<int>{2});
  CHECK(parse(kOneNode + "[inject]\nsyscall = \"override\"\n").inject.syscall == config::Backend::override_return);
  CHECK(parse(kOneNode + "[node.env]\nA = \"\"\n").nodes[0].env.at("A").empty());
  CHECK(parse("node = [ { name = \"n1\", command = [\"./kv\"] } ]\n").nodes.size() == 1);
  CHECK(parse("\xef\xbb\xbf" + kOneNode).nodes.size() == 1);  // a file may begin with a byte order mark
  CHECK(parse("name = \"a\"\r\n[[node]]\r\nname = \"n1\"\r\ncommand = [\"./kv\"]\r\n").name == "a");
  CHECK(parse("name = \"\"\"x\"\"\"\"\"\n" + kOneNode).name == "x\"\"");
}

TEST_CASE("a missing or unreadable file is reported") {
  const auto missing = config::read_config("/nonexistent/rose.toml");
  REQUIRE_FALSE(missing.has_value());
  CHECK(missing.error().message == "cannot open /nonexistent/rose.toml: No such file or directory");
  CHECK(missing.error().kind == ErrorKind::input);
  CHECK(missing.error().hint ==
        "name the configuration of the test deployment with -c; 'rose init' writes one for a running system");
  CHECK_FALSE(config::read_config("/").has_value());
}

TEST_CASE("large and deeply nested files are accepted or refused, without a crash") {
  const auto refused = [](const std::string& text) {
    const auto config = parse_config(text, "rose.toml", "/srv/kv");
    REQUIRE_FALSE(config.has_value());
    CHECK(config.error().kind == ErrorKind::input);
    CHECK(config.error().message.rfind("rose.toml:", 0) == 0);
    CHECK(config.error().message.size() < 500);
  };
  const std::size_t large = 1'000'000;
  CHECK(parse(kOneNode + "# " + std::string(large, 'x') + "\n").nodes.size() == 1);
  CHECK(parse(kOneNode + "[workload]\ncommand = [\"x\", \"" + std::string(large, 'x') + "\"]\n")
            .workload->command.size() == 2);
  refused(std::string(large, '['));
  refused("a = " + std::string(large, '['));
  refused("a = " + std::string(large, '{'));
  std::string dotted = "a";
  std::string inline_tables = "a";
  std::string headers = "[a";
  for (int i = 0; i < 100'000; ++i) {
    dotted += ".a";
    headers += " . \"a\"";
    inline_tables += " = { a";
  }
  refused(dotted + " = 1\n");
  refused(headers + "]\n");
  refused(inline_tables);
  refused(std::string(large, 'a') + " = 1\n");
  refused("name = \"" + std::string(large, 'x') + "\"\n[[node]]\nname = \"" + std::string(large / 2, 'n') + "\"\n");
  refused(kOneNode + "ready = { log = \"" + std::string(100'000, '(') + "\" }\n");
  refused(kOneNode + "ready = { log = \"" + std::string(400, '(') + "\" }\n");
  refused(kOneNode + "ready = { log = \"((a{500}){500}){500}\" }\n");
  refused(std::string(17 << 20, '\n'));
  std::string many;
  for (int i = 0; i < 20'000; ++i) many += "[[node]]\n";
  refused(many);
  std::string keys;
  for (int i = 0; i < 30'000; ++i) keys += fmt::format("key{} = 1\n", i);
  refused(keys);
}

TEST_CASE("a program named without a slash is found in PATH") {
  const config::Config config =
      parse("[[node]]\nname = \"n1\"\ncommand = [\"sh\", \"-c\", \":\"]\nenv = { PATH = \"/nowhere:/bin\" }\n");
  CHECK(config.nodes[0].binaries == std::vector<std::string>{"/bin/sh"});
  CHECK(parse(kOneNode + "binary = \"no-such-program\"\n").nodes[0].binaries ==
        std::vector<std::string>{"no-such-program"});
}

TEST_CASE("a node with an image is a container, and its command is optional") {
  const config::Config config = parse(
      "[deployment]\nengine = [\"./podman\", \"--root=/x\"]\n[[node]]\nname = \"n1\"\nimage = \"localhost/kv:1\"\nuser "
      "= \"999:999\"\n"
      "volumes = [\"${dir}/data:/data\", \"./kv.conf:/etc/kv.conf:ro\", \"cache:/var/cache\"]\n");
  CHECK(config.deployment.engine == config::Command{"/srv/kv/podman", "--root=/x"});
  const config::Node& node = config.nodes[0];
  REQUIRE(node.container.has_value());
  CHECK(node.container->image == "localhost/kv:1");
  CHECK(node.command.empty());
  CHECK(node.user == "999:999");
  CHECK(node.ip == "10.77.0.1");
  CHECK(node.container->volumes ==
        std::vector<std::string>{"${dir}/data:/data", "/srv/kv/kv.conf:/etc/kv.conf:ro", "cache:/var/cache"});
}

TEST_CASE("meanings of messages are read from the file and the folder beside it") {
  const test::Folder folder;
  std::filesystem::create_directory(folder / "knowledge");
  const std::string bent = "[[meaning]]\nsays = \"error\"\nerror = \"EIO\"\nwords = \"platter .. bent\"\n";
  REQUIRE(write_file(folder / "rose.toml", kOneNode + bent + "vague = true\n"));
  REQUIRE(write_file(folder / "knowledge/b.toml", "[[meaning]]\nsays = \"lost\"\nwords = \"walked out\"\n"));
  REQUIRE(write_file(folder / "knowledge/a.toml",
                     "[[meaning]]\nsays = \"operation\"\noperation = \"write\"\nwords = \"engrave*\"\n"));
  REQUIRE(write_file(folder / "knowledge/notes.md", "no table"));
  const auto config = config::read_config(folder / "rose.toml");
  REQUIRE(config);
  REQUIRE(config->meanings.size() == 3);
  CHECK((config->meanings[0].says == knowledge::Says::error && config->meanings[0].number == EIO));
  CHECK(config->meanings[0].vague);
  CHECK((config->meanings[1].says == knowledge::Says::operation && config->meanings[1].name == "write"));
  CHECK(config->meanings[2].says == knowledge::Says::lost);
  const auto says = [](const char* text) {
    const knowledge::Sentence sentence(text);
    return knowledge::Meanings::in_use().read(sentence).size();
  };
  CHECK(says("the platter is bent") == 1);
  CHECK(says("n2 walked out") == 1);

  // A configuration that is read later, without the folder and without [[meaning]] tables, replaces these meanings.
  std::filesystem::remove_all(folder / "knowledge");
  REQUIRE(write_file(folder / "rose.toml", kOneNode));
  REQUIRE(config::read_config(folder / "rose.toml"));
  CHECK(says("the platter is bent") == 0);

  // A file with other content is refused, and the message contains its name.
  std::filesystem::create_directory(folder / "knowledge");
  REQUIRE(write_file(folder / "knowledge/a.toml", kOneNode));
  const auto wrong = config::read_config(folder / "rose.toml");
  REQUIRE_FALSE(wrong);
  CHECK(wrong.error().message.find("knowledge/a.toml:1:3: unknown key 'node'") != std::string::npos);
}
