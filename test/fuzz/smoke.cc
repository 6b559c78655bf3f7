// Runs every fuzz target on mutated valid inputs, which are the same in each test run. This takes a second or two.
//
//   fuzz_smoke [TARGET...]           runs the targets
//   fuzz_smoke --seeds FOLDER        writes the valid inputs to FOLDER/TARGET/, from which libFuzzer starts
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <random>
#include <span>
#include <sstream>
#include <string>
#include <vector>

#include "../pure/explain_runs.h"
#include "../pure/symbols_go_table.h"
#include "../pure/trace_random.h"
#include "base/log.h"
#include "engine/wire/message.h"
#include "engine/wire/tree.h"
#include "explain/kept.h"
#include "jvm/state_layout.h"
#include "profile/profile.h"
#include "recipe.h"
#include "rr/ring.h"
#include "trace/dump.h"
#include "trace/jsonl.h"

// CMakeLists.txt renames the entry point of each fuzz_NAME.cc to fuzz_NAME.
extern "C" {
int fuzz_code(const std::uint8_t* data, std::size_t size);
int fuzz_config(const std::uint8_t* data, std::size_t size);
int fuzz_dns(const std::uint8_t* data, std::size_t size);
int fuzz_draft(const std::uint8_t* data, std::size_t size);
int fuzz_dump(const std::uint8_t* data, std::size_t size);
int fuzz_gopclntab(const std::uint8_t* data, std::size_t size);
int fuzz_jsonl(const std::uint8_t* data, std::size_t size);
int fuzz_jvm(const std::uint8_t* data, std::size_t size);
int fuzz_kept(const std::uint8_t* data, std::size_t size);
int fuzz_logs(const std::uint8_t* data, std::size_t size);
int fuzz_profile(const std::uint8_t* data, std::size_t size);
int fuzz_rr(const std::uint8_t* data, std::size_t size);
int fuzz_stack_traces(const std::uint8_t* data, std::size_t size);
int fuzz_schedule(const std::uint8_t* data, std::size_t size);
int fuzz_unwind(const std::uint8_t* data, std::size_t size);
int fuzz_worker(const std::uint8_t* data, std::size_t size);
}

namespace {

using Seeds = std::vector<std::string>;

struct Target {
  const char* name;
  int (*run)(const std::uint8_t*, std::size_t);
  Seeds (*seeds)();
  int rounds;
};

std::string slurp(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::stringstream content;
  content << in.rdbuf();
  return content.str();
}

// The example files of the project with this name. They are valid, because otherwise their own tests would fail.
Seeds example_files(const std::string& name) {
  Seeds seeds;
  for (const char* folder : {"configs", "examples", "test/golden"}) {
    const auto root = std::filesystem::path(ROSE_SOURCE_DIR) / folder;
    if (!std::filesystem::exists(root)) continue;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(root))
      if (entry.path().filename() == name) seeds.push_back(slurp(entry.path()));
  }
  std::sort(seeds.begin(), seeds.end());  // because directories have no particular order
  return seeds;
}

// Programs that are as small as possible.
Seeds code_seeds() {
  Seeds seeds;
  for (const char* name : {"code_noplt", "code_library"}) {
    seeds.push_back(slurp(std::filesystem::path(ROSE_PROGRAMS_DIR) / name));
    if (seeds.back().empty()) std::abort();
  }
  return seeds;
}

// Programs, and queries of values.
Seeds asked_seeds() {
  Seeds seeds = code_seeds();
  for (const char* query : {"Raft::append(Entry const&)(term->low)", "store(*arg12)", "find:return->value.size",
                            "src/store.c:123:this->total"})
    seeds.emplace_back(query);
  return seeds;
}

Seeds config_seeds() {
  Seeds seeds = example_files("rose.toml");
  seeds.push_back(
      "name = \"x\"\n[[node]]\nname = \"n1\"\ncommand = [\"./kv\", \"${ip}\"]\nready = { tcp = 7000, timeout = \"10s\" "
      "}\n"
      "[workload]\ncommand = [\"true\"]\n[oracle]\ncommand = [\"true\"]\nwhen = \"poll\"\n");
  return seeds;
}

// An input for each reader in fuzz_draft.cc. Each begins with the letter that selects the reader.
Seeds draft_seeds() {
  return {
      "yservices:\n  db: &x { image: \"redis:${TAG:-7}\", ports: [\"127.0.0.1:80:80\", {target: 5, published: \"6\"}], "
      "expose: [1], scale: 2 }\n"
      "  app:\n    <<: *x\n    command: sh -c 'a \"b\"'\n    depends_on: { db: { condition: service_healthy } }\n    "
      "healthcheck: { test: x }\n"
      "    environment: [A=1]\n    volumes: [\"d:/d\", \"/e:/e:ro\"]\n    networks: { n: { ipv4_address: 10.5.0.9 } "
      "}\nvolumes: { d: { external: true } }\n",
      "c/opt/kv\n--data\n/var/lib/kv\n--listen=127.0.0.1:7001\n--peers\n127.0.0.1:7002,[::1]:7002\n--password=x\nhttp:/"
      "/u:p@h/?token=1\n${dir}\n'''\n\n"
      "listen 127.0.0.1:7001;\nbind: 10.0.0.5\npeers = 127.0.0.1:7002\ndata /var/lib/kv\nrequirepass y\n",
      "credis-server *:7001\n\n",
      "cnginx: master process /usr/sbin/nginx -g daemon on; x; -c /n\n\n",
      "c/usr/bin/postgres\n-D\n/x\n-p\n7001\n\n",
      "c/usr/bin/redis-server\n/etc/r.conf\n--requirepass\n'\n--bind\n::1\n--replicaof\n127.0.0.1\n7002\n\n",
      "j[{\"Id\":\"1f\",\"Name\":\"/"
      "c\",\"State\":{\"Pid\":7},\"Config\":{\"Image\":\"redis:7\",\"Cmd\":[\"a\",\"--password\",\"b\",\"127.0.0.1:"
      "80\"],"
      "\"Env\":[\"A=b "
      "c\",\"S_TOKEN=1\"],\"Entrypoint\":[\"e\",\"f\"],\"User\":\"u\"},\"HostConfig\":{\"Memory\":5,\"CapAdd\":[\"X\"]}"
      ","
      "\"Mounts\":[{\"Type\":\"bind\",\"Source\":\"/a\",\"Destination\":\"/"
      "b\",\"RW\":false}],\"NetworkSettings\":{\"IPAddress\":\"10.1.1.1\"}}]",
      "uId=kv.service\nExecStart={ path=/opt/kv ; argv[]=/opt/kv --dir /x ; ignore_errors=no "
      "}\nRestart=always\nRestartUSec=1min 30s\nStartLimitBurst=7\n"
      "PIDFile=/run/kv.pid\nStateDirectory=kv a/b\nEnvironmentFiles=/etc/x (ignore_errors=yes)\n",
      "t   0: 0100007F:1CE9 0200007F:CFEA 01 00000000:00000000 00:00000000 00000000     0        0 4711 1\n"
      "0000000000000000: 00000002 00000000 00010000 0001 01 815 /run/x.sock\n     |-- 10.1.0.7\n        /32 host "
      "LOCAL\n"
      "00000000000000000000000000000001 01 80 10 80       lo\nA=\"b\"\n",
  };
}

Seeds schedule_seeds() {
  Seeds seeds = example_files("schedule.toml");
  seeds.push_back(
      "version = 1\nname = \"x\"\n[[fault]]\nid = \"a\"\nkind = \"syscall\"\nnode = \"n1\"\nsyscall = \"read\"\n"
      "error = \"EIO\"\npath = \"*/x\"\ncount = 3\nwhen = [ { elapsed = \"5s\" }, { syscall = \"openat\" } ]\n");
  return seeds;
}

Seeds dump_seeds() {
  Seeds seeds;
  for (std::uint64_t seed = 1; seed <= 6; ++seed) {
    const auto dump = rose::trace::dump_to_bytes(rose::trace::test::random_trace(seed, seed * 2));
    if (!dump) std::abort();
    seeds.push_back(*dump);
    seeds.push_back(rose::fuzz::recipe_of(*dump));
    // If a recipe did not reproduce the dump, it would test nothing.
    const auto cooked = rose::trace::parse_dump(std::as_bytes(std::span(*dump)), "x");
    const std::string again = rose::fuzz::cook(seeds.back());
    const auto read = rose::trace::parse_dump(std::as_bytes(std::span(again)), "x");
    if (!cooked || !read || read->damage || read->trace.events.size() != cooked->trace.events.size()) std::abort();
  }
  return seeds;
}

Seeds jsonl_seeds() {
  Seeds seeds;
  for (std::uint64_t seed = 1; seed <= 6; ++seed) {
    std::string text;
    rose::trace::write_jsonl(rose::trace::test::random_trace(seed, seed), [&](std::string_view more) { text += more; });
    seeds.push_back(text);
  }
  return seeds;
}

Seeds go_seeds() {
  Seeds seeds;
  for (const int version : {2, 16, 18, 20}) seeds.push_back(rose::symbols::test::table(version));
  return seeds;
}

Seeds jvm_seeds() {
  rose::jvm::StateHead head;
  head.record_bytes = sizeof(rose::jvm::StateRecord);
  std::string state(reinterpret_cast<const char*>(&head), sizeof head);
  for (const auto kind : {rose::jvm::RecordKind::note, rose::jvm::RecordKind::place}) {
    rose::jvm::StateRecord record;
    record.kind = static_cast<std::uint32_t>(kind);
    record.length = 10;
    std::strcpy(record.text, "org.x.Ab.m");
    state.append(reinterpret_cast<const char*>(&record), sizeof record);
    ++head.used;
  }
  std::memcpy(state.data(), &head, sizeof head);
  // The code of a method with a jump table. The other seeds contain names.
  const unsigned char code[] = {0x1a, 0xaa, 0, 0, 0, 0, 0, 9, 0,    0,    0,    0,    0, 0, 0,   1,
                                0,    0,    0, 3, 0, 0, 0, 7, 0x9d, 0xff, 0xfe, 0xb8, 0, 1, 0xb1};
  return {state, std::string(reinterpret_cast<const char*>(code), sizeof code), "*Learner.m(long,org.x.Learner$A",
          "A.<init>(List<String> x)org.x.Outer$A"};
}

// A few runs, both packed and unpacked.
Seeds kept_seeds() {
  script::Case one;
  one.input.schedule.name = "kv";
  one.input.questions.push_back({"save(len)", "save", "int", "", {}});
  one.input.message = [](std::uint32_t) { return std::string("not saved"); };
  for (int i = 0; i < 3; ++i) {
    one.add(rose::explain::Group::failing, script::Run(2 * i)
                                               .enters(100, "request")
                                               .faulted(102)
                                               .stack({{"save", "store.c", 44, "/srv/kv", 16}})
                                               .has(103, 0, "-1", -1)
                                               .enters(110, "give_up")
                                               .sends(130, "n1", "n2", "sorry")
                                               .takes(131, "n1", "n2", 5)
                                               .prints(900, 4, "not saved"));
    one.add(rose::explain::Group::sound, script::Run(2 * i + 1).enters(100, "request").has(103, 0, "12", 12));
  }
  rose::explain::Kept kept;
  kept.name = "kv";
  kept.comparable = true;
  kept.input = one.input;
  kept.calls = {{"give_up", "request", "n1", "request.c", 12}};
  kept.lost_calls = {{"commit", "close_group", "n1", "group.c", 40}};
  const rose::explain::Scrub nothing;
  const auto bytes = rose::explain::pack(kept, nothing);
  if (!bytes) std::abort();
  const auto plain = rose::explain::plain_of(*bytes, "x");
  if (!plain || !rose::explain::unpack_plain(plain->bytes, "x", plain->version)) std::abort();
  return {*bytes, plain->bytes};
}

// The logs of test/logs, which real servers wrote.
Seeds logs_seeds() {
  Seeds seeds;
  for (const auto& entry : std::filesystem::directory_iterator(ROSE_SOURCE_DIR "/test/logs")) {
    if (entry.path().extension() != ".log") continue;
    std::ifstream file(entry.path(), std::ios::binary);
    seeds.emplace_back(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
    if (seeds.back().size() > 6000) seeds.back().resize(6000);
  }
  std::sort(seeds.begin(), seeds.end());
  return seeds;
}

Seeds stack_trace_seeds() {
  return {
      "java.lang.NullPointerException: no file\n\tat java.base/java.io.File.length(File.java:12)\n\tat "
      "org.x.Database.limit(Database.java:279)\n",
      "Traceback (most recent call last):\n  File \"/srv/spool.py\", line 80, in <module>\n    main()\n  File "
      "\"/srv/spool.py\", line 58, in adopt\n    there[1]\nKeyError: 1\n",
      "panic: no\n\ngoroutine 7 [running]:\npanic({0x1})\n\t/usr/local/go/src/runtime/panic.go:770 "
      "+0x132\nmain.(*shelf).put(0xc0, 0x1)\n\t/srv/shelf.go:55 +0x1d\n",
      "Error: ENOSPC: no space left on device, write\n    at Object.writeSync (node:fs:921:3)\n    at async new "
      "Store.save [as put] (file:///srv/store.js:41:8)\n    at /srv/x.js:3:1\n",
      "Unhandled exception. System.IO.IOException: x\n   at System.IO.F.Write(H h)\n   at Shop.Store.Save(String path) "
      "in /srv/Store.cs:line 42\n",
      "/srv/store.rb:41:in `block in save': x (Errno::ENOSPC)\n\tfrom /srv/store.rb:12:in 'Store#put'\n\tfrom "
      "/srv/shop.rb:3:in `<main>'\n",
      "stack backtrace:\n   0: shelf::put::h0123456789abcdef\n             at ./src/main.rs:12:5\n   1: shelf::serve\n "
      "            at ./src/main.rs:40:9\n"};
}

Seeds profile_seeds() {
  rose::profile::Profile profile;
  profile.name = "x";
  profile.runs = 2;
  profile.seconds = 3.5;
  profile.failures.push_back({"n1", "openat", "ENOENT", "/x/*", "", 3});
  profile.state_changes.push_back({"*", "rename", "", "/x/a", "", 1});
  profile.syscalls["n1"]["read"] = 12;
  profile.functions.push_back({"n1", "f(int)", "/bin/x", 4, 0.5, true});
  profile.processes.push_back({"n1", "crashed", "SIGKILL", -1, true, 1});
  profile.silences.push_back({"n1", "n2", 5000});
  return {rose::profile::to_json(profile), "{}"};
}

// A thread that executes code of a small library, with calls of that code on its stack.
Seeds unwind_seeds() {
  Seeds seeds;
  for (const std::string& file : code_seeds()) {
    constexpr std::uint64_t kBase = 0x10000000, kTop = 0x7ffc00000000;
    std::vector<std::uint64_t> words(17, 0x1000);
    words[6] = words[7] = kTop;
    words[16] = kBase + 0x1180;
    for (const std::uint64_t word : {kBase + 0x1000, kBase + 0x2000, std::uint64_t{0x1000 << 1 | 1}, kBase + 0x900000,
                                     kBase + 0x901000, std::uint64_t{0}})
      words.push_back(word);
    words.resize(17 + 12);
    for (std::uint64_t i = 0; i < 512; ++i) words.push_back(i % 2 == 0 ? kBase + 0x1100 + i : kTop + 8 * i + 16);
    seeds.push_back(std::string(reinterpret_cast<const char*>(words.data()), words.size() * 8) + file);
  }
  return seeds;
}

// A folder, and the results of a run.
Seeds worker_seeds() {
  rose::engine::Tree tree;
  tree.entries = {{"bin", true, 0755, 0, ""},
                  {"bin/kv", false, 0755, 3, rose::sha256("abc")},
                  {"rose.toml", false, 0644, 3, rose::sha256("abc")}};
  rose::engine::Message begin;
  begin.header = {{"type", "begin"}, {"config", "rose.toml"}, {"files", rose::engine::to_json(tree)}};
  rose::engine::Message made;
  made.header = {{"type", "made"}, {"id", 7}, {"trace", 5}, {"stayed", 1}};
  made.payload = "hello";
  return {rose::engine::to_bytes(begin), rose::engine::to_bytes(made),
          rose::engine::to_bytes(begin) + rose::engine::to_bytes(made), "lxc exec 'a b' -- \"rose\" wor\\ker"};
}

// Recordings that the library made: one empty, one with a few records, and one that wrapped around. Each is a seed with
// and without corrected checksums (see fuzz_rr.cc).
Seeds rr_seeds() {
  Seeds seeds;
  std::string folder = std::filesystem::temp_directory_path() / "rose-fuzz-XXXXXX";
  if (::mkdtemp(folder.data()) == nullptr) std::abort();
  const int fd = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  for (const int records : {0, 5, 2000}) {
    rose::rr::Ring ring;
    char why[256] = "";
    if (!ring.create(fd, "r", rose::rr::kLeastRing, "n1", why, sizeof why)) std::abort();
    for (int i = 0; i < records; ++i) {
      const std::string data(static_cast<std::size_t>(i % 50), 'x');
      ring.append(i % 7 == 0 ? rose::rr::Kind::checkpoint : rose::rr::Kind::value, 0, {"key", 3},
                  {data.data(), data.size()});
    }
    std::ifstream file(folder + "/r", std::ios::binary);
    const std::string bytes{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
    for (const char how : {'S', '-'}) seeds.push_back(how + bytes);
    // Mutations should hit records, and not the zeros after them.
    if (records < 100) seeds.push_back('S' + bytes.substr(0, 5000));
    std::filesystem::remove(folder + "/r");
  }
  ::close(fd);
  std::filesystem::remove(folder);
  return seeds;
}

std::string dns_query(std::initializer_list<std::string_view> labels, char type) {
  using namespace std::string_literals;
  std::string query = "\x12\x34\x01\0\0\1\0\0\0\0\0\0"s;
  for (const std::string_view label : labels) query.append(1, static_cast<char>(label.size())).append(label);
  return query + "\0\0"s + type + "\0\1"s;
}

// Queries for known names, for an unknown name, and for the name of an address.
Seeds dns_seeds() {
  return {dns_query({"alpha"}, 1), dns_query({"db", "shop"}, '\xff'), dns_query({"example", "org"}, 28),
          dns_query({"1", "0", "77", "10", "in-addr", "arpa"}, 12)};
}

constexpr Target kTargets[] = {
    {"code", fuzz_code, asked_seeds, 200},
    {"config", fuzz_config, config_seeds, 750},
    {"dns", fuzz_dns, dns_seeds, 10000},
    {"draft", fuzz_draft, draft_seeds, 3000},
    {"dump", fuzz_dump, dump_seeds, 750},
    {"gopclntab", fuzz_gopclntab, go_seeds, 10000},
    {"jsonl", fuzz_jsonl, jsonl_seeds, 1500},
    {"jvm", fuzz_jvm, jvm_seeds, 3000},
    {"kept", fuzz_kept, kept_seeds, 1500},
    {"logs", fuzz_logs, logs_seeds, 750},
    {"profile", fuzz_profile, profile_seeds, 1500},
    {"rr", fuzz_rr, rr_seeds, 750},
    {"schedule", fuzz_schedule, schedule_seeds, 750},
    {"stack_traces", fuzz_stack_traces, stack_trace_seeds, 1500},
    {"unwind", fuzz_unwind, unwind_seeds, 200},
    {"worker", fuzz_worker, worker_seeds, 2000},
};

// Applies a few of libFuzzer's mutations.
std::string mutated(std::mt19937_64& rng, const Seeds& seeds) {
  const auto below = [&](std::size_t bound) {
    return bound == 0 ? std::size_t{0} : static_cast<std::size_t>(rng() % bound);
  };
  std::string text = seeds[below(seeds.size())];
  for (std::size_t changes = 1 + below(4); changes > 0; --changes) {
    const std::size_t at = below(text.size());
    switch (below(8)) {
      case 0:
        if (!text.empty()) text[at] = static_cast<char>(rng());
        break;
      case 1:
        if (!text.empty()) text[at] = static_cast<char>(text[at] ^ (1 << below(8)));
        break;
      case 2: text.insert(at, 1 + below(4), static_cast<char>(rng())); break;
      case 3: text.erase(at, 1 + below(16)); break;
      case 4: text.insert(at, text.substr(below(text.size()), below(64))); break;
      case 5: text.resize(at); break;
      case 6: {
        const std::string& other = seeds[below(seeds.size())];
        const std::size_t from = below(other.size());
        text = text.substr(0, at) + other.substr(from);
        break;
      }
      default: {
        // Numbers at which arithmetic reaches its limits.
        static const std::uint64_t values[] = {0,
                                               1,
                                               0x7f,
                                               0xff,
                                               0x7fff,
                                               0xffff,
                                               0x7fffffff,
                                               0xffffffff,
                                               0x7fffffffffffffff,
                                               0xffffffffffffffff,
                                               1ULL << 62,
                                               1ULL << 24};
        const std::uint64_t value = values[below(std::size(values))];
        const std::size_t width = std::size_t{1} << below(4);
        if (at + width <= text.size()) std::memcpy(text.data() + at, &value, width);
        break;
      }
    }
  }
  return text;
}

void run(const Target& target, std::string_view input) {
  target.run(reinterpret_cast<const std::uint8_t*>(input.data()), input.size());
}

int smoke(const Target& target) {
  const Seeds seeds = target.seeds();
  for (const std::string& seed : seeds) run(target, seed);
  std::mt19937_64 rng(20251121);
  const auto kept = std::filesystem::temp_directory_path() / ("rose-fuzz-XXXXXX");
  std::string name = kept.string();
  const int fd = ::mkstemp(name.data());
  if (fd < 0) return 1;
  // The current input is kept in a file, so that it still exists if it kills the target.
  std::FILE* file = ::fdopen(fd, "w");
  std::printf("%s: %zu seeds, %d rounds; an input that kills it is in %s\n", target.name, seeds.size(), target.rounds,
              name.c_str());
  std::fflush(stdout);
  for (int round = 0; round < target.rounds; ++round) {
    const std::string input = mutated(rng, seeds);
    if (::ftruncate(fd, 0) != 0) return 1;
    std::rewind(file);
    std::fwrite(input.data(), 1, input.size(), file);
    std::fflush(file);
    run(target, input);
  }
  std::fclose(file);
  std::filesystem::remove(name);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  rose::log::set_level(rose::log::Level::quiet);
  if (argc == 3 && std::string(argv[1]) == "--seeds") {
    for (const Target& target : kTargets) {
      const auto folder = std::filesystem::path(argv[2]) / target.name;
      std::filesystem::create_directories(folder);
      int number = 0;
      for (const std::string& seed : target.seeds())
        std::ofstream(folder / std::to_string(number++), std::ios::binary) << seed;
    }
    return 0;
  }
  for (const Target& target : kTargets) {
    bool wanted = argc == 1;
    for (int i = 1; i < argc; ++i) wanted = wanted || std::string(argv[i]) == target.name;
    if (wanted && smoke(target) != 0) return 1;
  }
  return 0;
}
