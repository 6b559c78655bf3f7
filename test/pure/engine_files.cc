// What diagnosis and workers send to each other: folders, runs, messages, command lines. If the sender is hostile, the
// data is refused with an error, and nothing is written outside the folder.
#include <sys/stat.h>
#include <unistd.h>

#include <catch2/catch.hpp>

#include "base/file.h"
#include "engine/run_files.h"
#include "engine/wire/engines.h"
#include "engine/wire/message.h"
#include "engine/wire/tree.h"
#include "folder.h"

using namespace rose;
using namespace rose::engine;
namespace fs = std::filesystem;

namespace {

std::vector<std::string> names(const Tree& tree) {
  std::vector<std::string> all;
  for (const Entry& entry : tree.entries) all.push_back(entry.path + (entry.folder ? "/" : ""));
  return all;
}

// Sends everything that the builder lacks, in pieces of three bytes.
Result<void> send(TreeBuilder& builder, const Tree& tree) {
  for (const std::string& digest : builder.lacking()) {
    for (const Entry& entry : tree.entries) {
      if (entry.digest != digest) continue;
      ROSE_TRY(const std::string content, read_file(tree.root / entry.path));
      for (std::size_t at = 0; at == 0 || at < content.size(); at += 3)
        ROSE_CHECK(builder.piece(digest, std::string_view(content).substr(at, 3)));
      break;
    }
  }
  return builder.finish();
}

Json entry(const char* path, const char* digest = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad") {
  Json json = {{"path", path}, {"mode", 420}};
  if (digest != nullptr) {
    json["size"] = 3;
    json["digest"] = digest;
  }
  return json;
}

// Parses the JSON first, as for a received message. This makes numbers that are not negative unsigned.
Result<Tree> received(const Json& list) { return tree_from(Json::parse(list.dump())); }

Message of(std::string_view type) {
  Message message;
  message.header["type"] = type;
  return message;
}

}  // namespace

TEST_CASE("messages: they are assembled from pieces of any size") {
  Message first = of("run");
  first.header["id"] = 7;
  first.payload = std::string("a\0b", 3);
  const std::string bytes = to_bytes(first) + to_bytes(of("alive"));
  for (const std::size_t size : {std::size_t{1}, std::size_t{5}, bytes.size()}) {
    Inbox inbox;
    std::vector<Message> got;
    for (std::size_t at = 0; at < bytes.size(); at += size) {
      inbox.add(std::string_view(bytes).substr(at, size));
      for (;;) {
        Result<std::optional<Message>> next = inbox.next();
        REQUIRE(next);
        if (!*next) break;
        got.push_back(*std::move(*next));
      }
    }
    REQUIRE(got.size() == 2);
    CHECK(got[0].type() == "run");
    CHECK(got[0].number("id").value() == 7);
    CHECK(got[0].payload == first.payload);
    CHECK(got[1].type() == "alive");
    CHECK(inbox.waiting() == 0);
  }
}

TEST_CASE("messages: an invalid one is refused as early as possible") {
  const auto error_of = [](std::string_view bytes) {
    Inbox inbox;
    inbox.add(bytes);
    const Result<std::optional<Message>> next = inbox.next();
    return next ? std::string() : next.error().message;
  };
  CHECK(error_of("Welcome to lab\x1b[1m") ==
        "it does not speak the protocol of a rose worker, its output is 'Welcome to lab\\x1b[1m'");
  CHECK(error_of("ROXE").find("does not speak") != std::string::npos);
  CHECK(error_of("RO") == "");
  CHECK(error_of(std::string("ROSE\xff\xff\xff\xff\0\0\0\0", 12)).find("longer than any") != std::string::npos);
  CHECK(error_of(std::string("ROSE\2\0\0\0\0\0\0\0[]\n", 15)).find("not a JSON object") != std::string::npos);
  CHECK(error_of(std::string("ROSE\2\0\0\0\0\0\0\0{}\n", 15)).find("with a type") != std::string::npos);
  std::string wide = "{\"type\":\"a\"";
  for (int i = 0; i < 300'000; ++i) wide += fmt::format(",\"k{}\":1", i);
  wide += "}";
  std::string widest = "ROSE";
  for (int shift = 0; shift < 32; shift += 8) widest.push_back(static_cast<char>(wide.size() >> shift & 0xff));
  CHECK(error_of(widest + std::string(4, '\0') + wide + "\n").find("not a JSON object") != std::string::npos);
  // Only the number of members of each single object is limited, so many small objects are accepted as JSON.
  std::string many = "{\"type\":\"a\",\"b\":[{}";
  for (int i = 0; i < 1'000'000; ++i) many += ",{}";
  many += "]}";
  std::string most = "ROSE";
  for (int shift = 0; shift < 32; shift += 8) most.push_back(static_cast<char>(many.size() >> shift & 0xff));
  CHECK(error_of(most + std::string(4, '\0') + many + "\n").find("digest does not match") != std::string::npos);
  std::string deep = "{\"type\":\"a\",\"b\":" + std::string(100'000, '[') + std::string(100'000, ']') + "}";
  std::string frame = "ROSE";
  for (int shift = 0; shift < 32; shift += 8) frame.push_back(static_cast<char>(deep.size() >> shift & 0xff));
  CHECK(error_of(frame + std::string(4, '\0') + deep + "x").find("does not end where it should") != std::string::npos);
  CHECK(error_of(frame + std::string(4, '\0') + deep + "\n").find("not a JSON object") != std::string::npos);
}

TEST_CASE("messages: a message with any changed bit is refused") {
  Message message = of("made");
  message.header["id"] = 7;
  message.payload = "a run's trace and files";
  const std::string bytes = to_bytes(message);
  const auto arrives = [](const std::string& sent) {
    Inbox inbox;
    inbox.add(sent);
    const auto next = inbox.next();
    return next && *next;
  };
  REQUIRE(arrives(bytes));
  for (std::size_t bit = 0; bit < bytes.size() * 8; ++bit) {
    std::string damaged = bytes;
    damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ (1 << bit % 8));
    CAPTURE(bit / 8, bit % 8);
    CHECK_FALSE(arrives(damaged));
  }
  // A message without a digest is refused, too.
  const std::string header = R"({"type":"alive"})";
  std::string plain = "ROSE" + std::string(1, static_cast<char>(header.size())) + std::string(7, '\0') + header + "\n";
  CHECK_FALSE(arrives(plain));
}

TEST_CASE("messages: a payload that the type does not allow is refused before it arrives") {
  for (const char* type : {"alive", "hello", "ready", "lacks", "failed", "refused"}) {
    Message message = of(type);
    message.payload = "x";
    std::string bytes = to_bytes(message);
    bytes[8] = 0;
    bytes[11] = 0x1f;  // the length is then half a gigabyte
    bytes.resize(bytes.size() - 2);
    Inbox inbox;
    inbox.add(bytes);
    const auto next = inbox.next();
    INFO(type);
    REQUIRE_FALSE(next);
    CHECK(next.error().message.find("is longer than any") != std::string::npos);
  }
}

TEST_CASE("a folder is transferred with modes, empty files and empty folders, equal files once") {
  const rose::test::Folder from, to;
  fs::create_directories(from / "bin/empty");
  fs::create_directories(from / ".git");
  REQUIRE(write_file(from / "rose.toml", "name", 0644));
  REQUIRE(write_file(from / "bin/kv", "program", 0755));
  REQUIRE(write_file(from / "bin/copy", "program", 0700));
  REQUIRE(write_file(from / "bin/nothing", "", 0600));
  REQUIRE(write_file(from / "secret.key", "x"));
  REQUIRE(write_file(from / "bin/secret.key", "x"));
  REQUIRE(write_file(from / "dump.bin", "x"));
  REQUIRE(write_file(from / ".git/HEAD", "x"));
  fs::permissions(from / "bin/empty", fs::perms::owner_read | fs::perms::owner_exec);
  const Result<Tree> tree = read_tree(from.path, {"*.key", ".git"}, {from / "dump.bin"});
  REQUIRE(tree);
  CHECK(names(*tree) ==
        std::vector<std::string>{"bin/", "bin/copy", "bin/empty/", "bin/kv", "bin/nothing", "rose.toml"});
  CHECK(tree->bytes() == 18);
  CHECK(names(read_tree(from.path, {"bin/*", "*.key", ".git"}, {}).value()) ==
        std::vector<std::string>{"bin/", "dump.bin", "rose.toml"});

  const Result<Tree> sent = received(to_json(*tree));
  REQUIRE(sent);
  CHECK(sent->entries == tree->entries);
  TreeBuilder builder(to.path, *sent);
  CHECK(builder.lacking().size() == 3);
  REQUIRE(send(builder, *tree));
  CHECK(builder.complete());
  CHECK(read_file(to / "bin/kv").value() == "program");
  CHECK(read_file(to / "bin/nothing").value().empty());
  for (const char* name : {"bin/kv", "bin/copy", "bin/empty", "rose.toml"}) {
    INFO(name);
    CHECK(fs::status(to / name).permissions() == fs::status(from / name).permissions());
  }
}

TEST_CASE("a folder transfer refuses symbolic links, pipes and other special files") {
  const rose::test::Folder from;
  fs::create_symlink("/etc/passwd", from / "link");
  Result<Tree> tree = read_tree(from.path, {}, {});
  REQUIRE_FALSE(tree);
  CHECK(tree.error().message.find("link is a symbolic link") != std::string::npos);
  CHECK(read_tree(from.path, {"link"}, {}));
  fs::remove(from / "link");
  REQUIRE(::mkfifo((from / "pipe").c_str(), 0600) == 0);
  tree = read_tree(from.path, {}, {});
  REQUIRE_FALSE(tree);
  CHECK(tree.error().message.find("pipe is neither a file nor a folder") != std::string::npos);
}

TEST_CASE("a folder transfer refuses hostile file lists") {
  for (const char* path : {"/etc/passwd", "../x", "a/../../x", "", ".", "a//b", "a/", "missing/x"}) {
    INFO(path);
    CHECK_FALSE(received(Json::array({entry(path)})));
  }
  CHECK_FALSE(received(Json::array({entry("a"), entry("a")})));
  CHECK_FALSE(received(Json::array({entry("a"), entry("a/b")})));  // `a` is a file, so it cannot contain `b`
  CHECK(received(Json::array({entry("a", nullptr), entry("a/b")})));
  CHECK_FALSE(received(Json::array({entry("a", "../../etc/passwd")})));
  CHECK_FALSE(received(Json::array({Json{{"path", "a"}, {"mode", -1}}, entry("b")})));
  CHECK_FALSE(received(Json::array({1})));
  CHECK_FALSE(received(Json("a")));
  Json huge = entry("a");
  huge["size"] = std::uint64_t{1} << 63;
  CHECK_FALSE(received(Json::array({huge})));
}

TEST_CASE("a folder transfer refuses a changed file and one that was not requested") {
  const std::string abc = sha256("abc");
  for (const std::string content : {"abd", "abcd"}) {
    const rose::test::Folder to;
    TreeBuilder builder(to.path, received(Json::array({entry("a")})).value());
    const Result<void> sent = builder.piece(abc, content);
    REQUIRE_FALSE(sent);
    CHECK(sent.error().message == "a has changed since the diagnosis began");
  }
  const rose::test::Folder to;
  TreeBuilder builder(to.path, received(Json::array({entry("a"), entry("b", sha256("xyz").c_str())})).value());
  CHECK_FALSE(builder.piece(sha256("other"), "other"));
  REQUIRE(builder.piece(abc, "a"));
  CHECK_FALSE(builder.piece(sha256("xyz"), "xyz"));  // refused, because the first file is not complete yet
}

TEST_CASE("a run is transferred with its record, trace, files and log write times") {
  const rose::test::Folder there, here;
  config::Config config;
  config::Node node;
  node.name = "n1";
  node.logs = {"server.log", "etc/passwd"};
  config.nodes.push_back(node);
  fs::create_directories(there / "n1/data");
  // A node may replace its logs with links to files that only rose may read.
  fs::create_symlink("/etc/passwd", there / "n1/server.log");
  fs::create_symlink("/etc", there / "n1/etc");
  REQUIRE(write_file(there / "n1/stdout.log", "one\ntwo\n"));
  REQUIRE(write_file(there / "n1/data/db", std::string("\0\1", 2)));
  fs::create_symlink("/etc/passwd", there / "n1/passwd");
  schedule::Schedule schedule;
  schedule.name = "x";
  replay::Run run;
  run.result.verdict = schedule::Verdict::reproduced;
  run.result.oracle = schedule::OracleAnswer::hit;
  run.result.seconds = 1.5;
  run.completed = true;
  run.backend = "override";
  trace::Event& event = run.result.trace.events.emplace_back();
  event.ts_ns = 1'763'755'200'000'000'000;
  event.node = run.result.trace.strings.intern("n1");
  event.type = trace::EventType::scf;
  event.syscall = 1;
  event.err = 5;
  jvm::CodeBook code;
  code.learn_text("n1", "method\ta.B.c\ncall\t4\t10\t0\tjava.io.FileOutputStream.write\n");
  const logs::Watch::Growth growth = {{there / "n1/stdout.log", {{4, 100}, {8, 200}}}};
  const std::string print = schedule::fingerprint(schedule);

  const auto travelled = [&](Keep keep, const fs::path& to, jvm::CodeBook* book) {
    Result<Message> message = pack_run(run, schedule, config, there.path, keep, code, growth);
    REQUIRE(message);
    Inbox inbox;
    inbox.add(to_bytes(*message));
    return unpack_run(**inbox.next(), print, to, book);
  };
  jvm::CodeBook book;
  const Result<Unpacked> all = travelled(Keep::all, here.path, &book);
  REQUIRE(all);
  CHECK(all->run.result.verdict == schedule::Verdict::reproduced);
  CHECK(all->run.result.seconds == 1.5);
  CHECK(all->run.completed);
  CHECK(all->run.backend == "override");
  REQUIRE(all->run.result.trace.events.size() == 1);
  CHECK(all->run.result.trace.events[0].err == 5);
  CHECK(read_file(here / "n1/stdout.log").value() == "one\ntwo\n");
  CHECK(read_file(here / "n1/data/db").value() == std::string("\0\1", 2));
  for (const char* linked : {"n1/passwd", "n1/server.log", "n1/etc"})
    CHECK_FALSE(fs::exists(fs::symlink_status(here / linked)));
  REQUIRE(all->growth.contains(here / "n1/stdout.log"));
  CHECK(all->growth.at(here / "n1/stdout.log")[1].ts_ns == 200);
  CHECK(book.contains("n1", "a.B.c"));
  CHECK(book.texts() == code.texts());

  const rose::test::Folder logs, nothing;
  REQUIRE(travelled(Keep::logs, logs.path, nullptr));
  CHECK(fs::exists(logs / "n1/stdout.log"));
  CHECK_FALSE(fs::exists(logs / "n1/data"));
  REQUIRE(travelled(Keep::nothing, nothing.path, nullptr));
  CHECK(fs::is_empty(nothing.path));

  CHECK(check_run(*pack_run(run, schedule, config, there.path, Keep::all, code, growth), print));
  CHECK_FALSE(check_run(*pack_run(run, schedule, config, there.path, Keep::all, code, growth), "another"));

  // Messages as a hostile sender could write them.
  const Result<Message> good = pack_run(run, schedule, config, there.path, Keep::all, code, growth);
  REQUIRE(good);
  const auto refused = [&](const std::function<void(Message&)>& change) {
    const rose::test::Folder to;
    Message message = *good;
    change(message);
    message.header = Json::parse(message.header.dump());
    const Result<Unpacked> unpacked = unpack_run(message, print, to / "run", nullptr);
    const Result<void> checked = check_run(message, print);
    CHECK(checked.has_value() == unpacked.has_value());
    return unpacked ? std::string() : unpacked.error().message;
  };
  CHECK(refused([](Message&) {}).empty());
  CHECK(refused([](Message& m) { m.header["files"][0]["path"] = "../outside"; }).find("may lead out") !=
        std::string::npos);
  const auto also = [&](const std::string& name) {
    return refused([&](Message& m) { m.header["files"].push_back({{"path", name}, {"size", 0}}); });
  };
  CHECK(also("n1/other").empty());
  CHECK(also("n1/stdout").empty());
  for (const std::string& name : {std::string("n1/stdout.log"), std::string("n1"), std::string("n1/stdout.log/x"),
                                  std::string(256, 'x'), std::string(256, 'x') + "/y"})
    CHECK(also(name).find("cannot be written beside its other files") != std::string::npos);
  CHECK(also("a/" + std::string(5000, 'x')).size() < 400);
  CHECK(refused([](Message& m) { m.header["files"][0]["size"] = 1'000'000; }).find("longer than the message") !=
        std::string::npos);
  CHECK(refused([](Message& m) { m.header["trace"] = -1; }).find("longer than the message") != std::string::npos);
  CHECK(refused([](Message& m) { m.payload[20] = static_cast<char>(m.payload[20] ^ 1); }) != "");
  CHECK(refused([](Message& m) { m.header["run"]["fingerprint"] = "another"; }).find("another schedule") !=
        std::string::npos);
  CHECK(refused([](Message& m) { m.header["run"]["verdict"] = 7; }).find("did not send a run") != std::string::npos);
  CHECK(refused([](Message& m) { m.header["files"][0]["growth"] = {{8, 1}, {4, 2}}; }).find("shrank") !=
        std::string::npos);
}

TEST_CASE("engines: a command is split into words") {
  const auto words = [](const std::string& text) {
    return words_of(text).value_or(std::vector<std::string>{"(refused)"});
  };
  CHECK(words("rose worker") == std::vector<std::string>{"rose", "worker"});
  CHECK(words("  lxc exec  'my lab' -- \"/opt/a b/rose\" wor\\ ker ''") ==
        std::vector<std::string>{"lxc", "exec", "my lab", "--", "/opt/a b/rose", "wor ker", ""});
  CHECK(words("a $(b) ; c | d `e` *") == std::vector<std::string>{"a", "$(b)", ";", "c", "|", "d", "`e`", "*"});
  CHECK(words(R"("a\"b\\c\d")") == std::vector<std::string>{R"(a"b\c\d)"});
  for (const char* text : {"", "  ", "'open", "\"open", "end\\", "'' x"}) {
    INFO(text);
    CHECK_FALSE(words_of(text));
  }
}

TEST_CASE("engines: each kind starts a worker with its command") {
  const auto argv = [](const EngineOptions& options, int worker, int start) {
    const Result<Engine> engine = Engine::make(options);
    if (!engine) return engine.error().message;
    return fmt::format("{}", fmt::join(engine->argv(worker, start, 3), " "));
  };
  CHECK(argv({.engine = "'my rose' worker", .workers = 2}, 0, 0) == "my rose worker");
  CHECK(argv({.engine = "slurm", .worker = "/opt/rose", .options = {"--partition=lab"}}, 0, 0) ==
        "srun --ntasks=1 --nodes=1 --quiet --kill-on-bad-exit=1 --job-name=rose-worker-3 --partition=lab /opt/rose "
        "worker");
  const EngineOptions ssh{
      .engine = "ssh", .hosts = {"lab-1", "root@lab-2"}, .worker = "/opt/my rose", .options = {"-p", "2222"}};
  const std::string begin = "ssh -T -o BatchMode=yes -o ServerAliveInterval=15 -o ServerAliveCountMax=4 -p 2222 -- ";
  CHECK(Engine::make(ssh)->workers() == 2);
  CHECK(argv(ssh, 0, 0) == begin + "lab-1 '/opt/my rose' worker");
  CHECK(argv(ssh, 0, 1) == begin + "root@lab-2 '/opt/my rose' worker");
  CHECK(argv(ssh, 1, 0) == begin + "root@lab-2 '/opt/my rose' worker");
  CHECK(argv({.engine = "kubernetes", .options = {"--image=lab:7"}}, 0, 0)
            .find("--image=lab:7 --command -- rose worker") != std::string::npos);

  CHECK(argv({.engine = "ssh"}, 0, 0).find("hosts is empty") != std::string::npos);
  CHECK(argv({.engine = "ssh", .hosts = {"-oProxyCommand=x"}}, 0, 0).find("is not a host name") != std::string::npos);
  CHECK(argv({.engine = "slurm", .worker = "--version"}, 0, 0).find("is not the path of a program") !=
        std::string::npos);
  CHECK(argv({.engine = "slurm", .hosts = {"a"}}, 0, 0).find("hosts are for the engine ssh") != std::string::npos);
  CHECK(argv({.engine = "kubernetes"}, 0, 0).find("needs an image") != std::string::npos);
  CHECK(argv({.workers = 2}, 0, 0).find("--workers needs an engine") != std::string::npos);
  CHECK(argv({.engine = "rose worker", .options = {"-v"}}, 0, 0).find("engine_options are for") != std::string::npos);
  CHECK(argv({.engine = "rose worker", .workers = 2, .apart = true}, 0, 0).find("conflict for its ports") !=
        std::string::npos);
  CHECK(
      argv({.engine = "ssh", .workers = 2, .hosts = {"a", "a"}, .apart = true}, 0, 0).find("conflict for its ports") !=
      std::string::npos);
  CHECK(argv({.engine = "ssh", .workers = 2, .hosts = {"a", "b"}, .apart = true}, 0, 1).find("-- a rose") !=
        std::string::npos);
}
