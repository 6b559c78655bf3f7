// Functions in the layouts that the compilers of this machine produce. The tests build programs and trace them. It is
// known how often each function is entered, and the tracer must count the same number.
#define CATCH_CONFIG_ENABLE_PAIR_STRINGMAKER  // to show the counts by name when they differ
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "base/subprocess.h"
#include "observe_support.h"
#include "skip.h"
#include "symbols/symbols.h"
#include "symbols/values.h"

using namespace rose;
using namespace rose::observe;
using namespace rose::observe::test;

namespace {

using Command = std::vector<std::string>;
namespace fs = std::filesystem;

constexpr std::int64_t kBuild_ns = 240'000'000'000;

void need(const std::string& compiler) {
  const auto asked = run_command({compiler, compiler == "go" ? "version" : "--version"});
  if (!asked || asked->exit_code != 0) rose::test::skip_case("needs " + compiler);
}

void build(const Command& command) {
  std::string text;
  for (const auto& word : command) text += word + " ";
  const auto done = run_command(command, {}, kBuild_ns);
  INFO(text << (done ? done->err : done.error().message));
  REQUIRE(done);
  REQUIRE(done->exit_code == 0);
}

void write(const fs::path& file, const std::string& text) { std::ofstream(file) << text; }

// Runs a program in the cgroup until it ends.
pid_t run_in(const TestCgroup& cgroup, const fs::path& program) {
  const pid_t pid = ::fork();
  REQUIRE(pid >= 0);
  if (pid == 0) {
    const int procs = ::open((cgroup.path() / "cgroup.procs").c_str(), O_WRONLY | O_CLOEXEC);
    if (procs < 0 || ::write(procs, "0", 1) != 1) ::_exit(126);
    ::execl(program.c_str(), program.c_str(), nullptr);
    ::_exit(127);
  }
  int status = -1;
  REQUIRE(::waitpid(pid, &status, 0) == pid);
  REQUIRE(status == 0);
  return pid;
}

// Runs `program` in the cgroup while `node` is traced. Returns how often each function was entered.
std::map<std::string, std::uint64_t> watch(Target node, const TestCgroup& cgroup, const fs::path& program,
                                           const TracerOptions& options = {}) {
  node.node = "n1";
  node.cgroups = {cgroup.path()};
  auto tracer = start({node}, options);
  const pid_t pid = run_in(cgroup, program);
  std::map<std::string, std::uint64_t> seen;
  const auto trace = snapshot(*tracer);
  for (const auto& event : trace.events) {
    if (event.type == trace::EventType::af && event.pid == pid)
      seen[std::string(trace.str(event.function))] += event.count;
  }
  return seen;
}

std::map<std::string, std::uint64_t> watch(const TestCgroup& cgroup, const fs::path& binary,
                                           std::vector<std::string> functions, const fs::path& program = {},
                                           std::vector<std::string> sources = {}) {
  Target node;
  node.binaries = {binary};
  node.functions = std::move(functions);
  node.sources = std::move(sources);
  return watch(std::move(node), cgroup, program.empty() ? binary : program);
}

// The answers to a query, in the order of time.
std::vector<std::string> values(const TestCgroup& cgroup, const fs::path& program, const std::string& query) {
  auto file = symbols::ValueFile::open(program);
  REQUIRE(file);
  const auto answer = file->answer(*symbols::parse_query(query));
  REQUIRE(answer);
  INFO(answer->refused);
  REQUIRE(!answer->sites.empty());
  TracerOptions options;
  std::vector<std::vector<symbols::Form>> forms;  // by place
  for (const symbols::Site& site : answer->sites) {
    if (options.values.empty() || options.values.back().offset != site.offset)
      options.values.push_back({program, site.offset, {}}), forms.emplace_back();
    options.values.back().fetches.push_back(site.fetch);
    forms.back().push_back(site.form);
  }
  options.values_share = 1;
  Target node;
  node.node = "n1";
  node.cgroups = {cgroup.path()};
  auto tracer = start({node}, options);
  (void)run_in(cgroup, program);
  std::vector<std::string> out;
  for (const SeenValue& value : tracer->take_values().values)
    out.push_back(symbols::format_value(forms.at(value.place).at(value.fetch), value.bits, value.text).text);
  return out;
}

// The callers of a function, in the order of its calls. Each is read at one location. If the caller is the start of a
// goroutine, the function that started the goroutine follows it.
std::vector<std::string> callers(const TestCgroup& cgroup, const fs::path& program, const std::string& function) {
  return values(cgroup, program, function + ":callers");
}

using Seen = std::map<std::string, std::uint64_t>;

const char* const kEngine = R"(
namespace app {
struct Engine {
  int often(int by);
  int rare(int by);
  int never(int by);
};
__attribute__((noinline)) int Engine::often(int by) { asm volatile("" ::: "memory"); return by + 1; }
__attribute__((noinline)) int Engine::rare(int by) { asm volatile("" ::: "memory"); return by * 3; }
__attribute__((noinline)) int Engine::never(int by) { asm volatile("" ::: "memory"); return by - 1; }
}
)";
const char* const kMain = R"(
namespace app { struct Engine { int often(int); int rare(int); int never(int); }; }
int main(int argc, char**) {
  app::Engine engine;
  int value = argc;
  for (int i = 0; i < 3; ++i) value = engine.often(value);
  value = engine.rare(value);
  return value == -1 ? engine.never(value) : 0;
}
)";
const Seen kThreeAndOne = {{"app::Engine::often(int)", 3}, {"app::Engine::rare(int)", 1}};

struct Sources {
  Sources() {
    write(folder / "engine.cc", kEngine);
    write(folder / "main.cc", kMain);
  }
  [[nodiscard]] std::string at(const std::string& name) const { return (folder / name).string(); }
  Folder folder;
  TestCgroup cgroup{"compilers"};
};

// `go build` in the folder "go" of `made`, without the network. `go build -C` cannot be used, because it exists only
// since Go 1.20.
Command go_build(const Sources& made) {
  Command go = {"env",         "--chdir",      made.at("go"), "GOFLAGS=-mod=mod", "GOTOOLCHAIN=local",
                "GOPROXY=off", "CGO_ENABLED=0"};
  if (std::getenv("HOME") == nullptr && std::getenv("GOCACHE") == nullptr) go.push_back("GOCACHE=" + made.at("cache"));
  go.insert(go.end(), {"go", "build"});
  return go;
}

}  // namespace

TEST_CASE("functions of C++ programs are traced: PIE, non-PIE, static, shared, by source file") {
  need("g++");
  const Sources made;
  const std::vector<std::pair<std::string, Command>> kinds = {{"pie", {"-fPIE", "-pie"}},
                                                              {"no-pie", {"-fno-pie", "-no-pie"}},
                                                              {"static", {"-static"}},
                                                              {"static-pie", {"-fPIE", "-static-pie"}}};
  for (const auto& [name, flags] : kinds) {
    CAPTURE(name);
    Command command = {"g++", "-O1", "-g", made.at("engine.cc"), made.at("main.cc"), "-o", made.at(name)};
    command.insert(command.end(), flags.begin(), flags.end());
    build(command);
    CHECK(watch(made.cgroup, made.at(name), {"app::Engine::*"}) == kThreeAndOne);
    CHECK(watch(made.cgroup, made.at(name), {}, {}, {"engine.cc"}) == kThreeAndOne);
  }
  build({"g++", "-O1", "-shared", "-fPIC", made.at("engine.cc"), "-o", made.at("libengine.so")});
  build({"g++", "-O1", made.at("main.cc"), made.at("libengine.so"), "-Wl,-rpath,$ORIGIN", "-o", made.at("user")});
  CHECK(watch(made.cgroup, made.at("libengine.so"), {"app::Engine::rare", "app::Engine::never"}, made.at("user")) ==
        Seen{{"app::Engine::rare(int)", 1}});
}

TEST_CASE("functions of stripped programs are traced with debug files by .gnu_debuglink and build-id") {
  need("g++"), need("objcopy");
  const Sources made;
  build({"g++", "-O1", "-g", "-Wl,--build-id=none", made.at("engine.cc"), made.at("main.cc"), "-o", made.at("linked")});
  build({"objcopy", "--only-keep-debug", made.at("linked"), made.at("linked.debug")});
  build({"objcopy", "--strip-all", "--add-gnu-debuglink=" + made.at("linked.debug"), made.at("linked")});
  CHECK(watch(made.cgroup, made.at("linked"), {"app::Engine::*"}) == kThreeAndOne);
  CHECK(watch(made.cgroup, made.at("linked"), {}, {}, {"engine.cc"}) == kThreeAndOne);

  // A build-id that no other file has: "rose" and this process's id.
  char id[17];
  std::snprintf(id, sizeof id, "726f7365%08x", static_cast<unsigned>(::getpid()));
  const fs::path folder = fs::path("/usr/lib/debug/.build-id") / std::string(id, 2),
                 file = folder / (std::string(id + 2) + ".debug");
  struct Remove {
    fs::path file;
    ~Remove() {
      std::error_code ignored;
      fs::remove(file, ignored);
      for (auto up = file.parent_path(); up != "/usr/lib"; up = up.parent_path()) {
        if (::rmdir(up.c_str()) != 0) break;  // fails unless it is empty
      }
    }
  } const remove{file};
  build({"g++", "-O1", "-g", std::string("-Wl,--build-id=0x") + id, made.at("engine.cc"), made.at("main.cc"), "-o",
         made.at("known")});
  std::error_code bad;
  fs::create_directories(folder, bad);
  if (bad) rose::test::skip_case("needs a writable /usr/lib/debug: " + bad.message());
  build({"objcopy", "--only-keep-debug", made.at("known"), file.string()});
  build({"objcopy", "--strip-all", made.at("known")});
  CHECK(watch(made.cgroup, made.at("known"), {"app::Engine::*"}) == kThreeAndOne);
  CHECK(watch(made.cgroup, made.at("known"), {}, {}, {"engine.cc"}) == kThreeAndOne);
}

TEST_CASE("functions of Rust programs are traced with both symbol manglings") {
  need("rustc");
  const Sources made;
  write(made.at("victim.rs"), R"(
struct Engine { value: u64 }
impl Engine {
  #[inline(never)] fn often(&mut self) { self.value = std::hint::black_box(self.value + 1); }
  #[inline(never)] fn rare(&mut self) { self.value = std::hint::black_box(self.value * 3); }
}
fn main() {
  let mut engine = Engine { value: std::env::args().count() as u64 };
  for _ in 0..3 { engine.often(); }
  engine.rare();
  std::hint::black_box(engine.value);
}
)");
  for (const std::string way : {"v0", "legacy"}) {
    CAPTURE(way);
    build({"env", "RUSTC_BOOTSTRAP=1", "rustc", "-O", "-g", "-Z", "unstable-options", "-C",
           "symbol-mangling-version=" + way, made.at("victim.rs"), "-o", made.at(way)});
    CHECK(watch(made.cgroup, made.at(way), {"victim::Engine::often", "victim::Engine::rare"}) ==
          Seen{{"victim::Engine::often", 3}, {"victim::Engine::rare", 1}});
    CHECK(watch(made.cgroup, made.at(way), {}, {}, {"victim.rs"}).at("victim::Engine::rare") == 1);
  }
}

TEST_CASE("what Rust functions return is named by its variant") {
  need("rustc");
  const Sources made;
  write(made.at("victim.rs"), R"(
use std::hint::black_box;
use std::io::{Error, ErrorKind};
#[inline(never)] fn packed(n: u64) -> Result<(), Error> {
  if black_box(n) == 1 { Err(ErrorKind::Other.into()) } else { Ok(()) }
}
#[inline(never)] fn text(n: u64) -> Result<String, Error> {
  if black_box(n) == 1 { Err(ErrorKind::Other.into()) } else { Ok(n.to_string()) }
}
#[inline(never)] fn pair(n: u64) -> Option<u64> { if black_box(n) == 1 { None } else { Some(n) } }
#[inline(never)] fn small(n: u64) -> Result<u8, u8> { if black_box(n) == 1 { Err(9) } else { Ok(7) } }
fn main() {
  for n in 0..3 {
    black_box((packed(n).is_ok(), text(n).is_ok(), pair(n).is_none(), small(n).is_ok()));
  }
}
)");
  build({"rustc", "-O", "-g", made.at("victim.rs"), "-o", made.at("victim")});
  using Texts = std::vector<std::string>;
  const auto of = [&](const char* query) { return values(made.cgroup, made.at("victim"), query); };
  CHECK(of("victim::packed:return") == Texts{"Ok", "Err", "Ok"});
  CHECK(of("victim::pair:return") == Texts{"Some", "None", "Some"});
  CHECK(of("victim::small:return") == Texts{"Ok", "Err", "Ok"});
  auto file = symbols::ValueFile::open(made.at("victim"));
  REQUIRE(file);
  const auto large = file->answer(*symbols::parse_query("victim::text:return"));
  REQUIRE(large);
  CHECK(large->refused.find("in memory whose address is not returned") != std::string::npos);
}

TEST_CASE("errors of Go functions are distinguished from nil, and their receivers are recorded") {
  need("go");
  const Sources made;
  fs::create_directory(made.at("go"));
  write(made.at("go/go.mod"), "module victim\n\ngo 1.19\n");
  write(made.at("go/main.go"), R"(package main

import "errors"

type place struct {
	name string
	at   int64
}

//go:noinline
func only(n int) error {
	if n == 1 {
		return errors.New("one")
	}
	return nil
}

//go:noinline
func last(n int) (place, []byte, float64, error) { return place{"x", 1}, nil, 0.5, only(n) }

//go:noinline
func many(n int) (place, place, []byte, error) { return place{}, place{}, nil, only(n) }

//go:noinline
func closing(n int) (int, error) {
	defer number(n)
	if n == 1 {
		return 0, only(n)
	}
	return n, nil
}

//go:noinline
func number(n int) int { return n }

//go:noinline
func save(n int) { last(n); many(n); closing(n) }

func main() {
	for n := 0; n < 3; n++ {
		save(n)
	}
}
)");
  Command command = go_build(made);
  command.insert(command.end(), {"-o", made.at("victim"), "."});
  build(command);
  using Texts = std::vector<std::string>;
  const auto of = [&](const char* query) { return values(made.cgroup, made.at("victim"), query); };
  const std::string kText = "*errors.errorString";
  CHECK(of("main.only:return.error") == Texts{"nil", "nil", kText, kText, kText, "nil", "nil"});
  CHECK(of("main.last:return.error") == Texts{"nil", kText, "nil"});
  CHECK(of("main.closing:return.error") == Texts{"nil", kText, "nil"});
  CHECK(of("main.number:return") == Texts{"0", "1", "2"});
  const Texts to = of("main.last:return:callers");
  REQUIRE(to.size() == 3);
  CHECK(to[0].starts_with("main.save ("));
  auto file = symbols::ValueFile::open(made.at("victim"));
  REQUIRE(file);
  const auto on_stack = file->answer(*symbols::parse_query("main.many:return.error"));
  REQUIRE(on_stack);
  CHECK(on_stack->refused.find("on the stack") != std::string::npos);
  const Texts about = file->questions("main.last");
  CHECK(std::find(about.begin(), about.end(), "main.last:return.error") != about.end());
  CHECK(std::find(about.begin(), about.end(), "main.last:return:callers") != about.end());
  CHECK(std::find(about.begin(), about.end(), "main.last:return") == about.end());
}

// The form of Go's stack check depends on the size of the frame. When the stack has grown, the function is entered
// again. Goroutines start with a stack of 2 KiB, which grows many times here.
TEST_CASE("functions of Go programs, stripped or not, are counted once while the stack grows") {
  need("go");
  const Sources made;
  fs::create_directory(made.at("go"));
  write(made.at("go/go.mod"), "module victim\n\ngo 1.19\n");
  write(made.at("go/main.go"), R"(package main

type engine struct{ value int }

//go:noinline
func (e *engine) rare() { e.value *= 3 }

//go:noinline
func small(n int) int {
	if n == 0 {
		return 1
	}
	return small(n-1) + 1
}

//go:noinline
func middle(n int) int {
	var pad [64]int
	pad[n%64] = n
	if n == 0 {
		return pad[0]
	}
	return middle(n-1) + pad[n%64]
}

//go:noinline
func large(n int) int {
	var pad [4096]int
	pad[n%4096] = n
	if n == 0 {
		return pad[0]
	}
	return large(n-1) + pad[n%4096]
}

//go:noinline
func fill(done chan int) { done <- 1 }

//go:noinline
func begin(done chan int) { go fill(done) }

var filled = make(chan int)

//go:noinline
func fillIt() { fill(filled) }

func main() {
	done := make(chan int)
	begin(done)
	<-done
	go fill(done)
	<-done
	go fillIt()
	<-filled
	go func() { done <- small(499) }()
	<-done
	go func() { done <- middle(299) }()
	<-done
	go func() { done <- large(99) }()
	<-done
	e := engine{1}
	e.rare()
}
)");
  const Command go = go_build(made);
  const Seen expected = {{"main.small", 500}, {"main.middle", 300}, {"main.large", 100}, {"main.(*engine).rare", 1}};
  const std::vector<std::pair<std::string, Command>> kinds = {
      {"plain", {}}, {"stripped", {"-ldflags", "-s -w"}}, {"unoptimised", {"-gcflags", "-N -l"}}};
  for (const auto& [name, flags] : kinds) {
    CAPTURE(name);
    Command command = go;
    command.insert(command.end(), flags.begin(), flags.end());
    command.insert(command.end(), {"-o", made.at("go-" + name), "."});
    build(command);
    CHECK(watch(made.cgroup, made.at("go-" + name), {"main.small", "middle", "main.large", "(*engine).rare"}) ==
          expected);
    const std::vector<std::string> filled = callers(made.cgroup, made.at("go-" + name), "main.fill");
    const std::vector<std::string> alone = callers(made.cgroup, made.at("go-" + name), "main.fillIt");
    INFO(fmt::format("{}", fmt::join(filled, "; ")));
    REQUIRE(filled.size() == 6);
    REQUIRE(alone.size() == 2);
    // For a go statement with arguments, the compiler generates a wrapper function, which is the caller.
    CHECK(filled[0].starts_with("main.begin."));
    CHECK(filled[1].starts_with("go statement in main.begin ("));
    CHECK(filled[2].starts_with("main.main."));
    CHECK(filled[3].starts_with("go statement in main.main ("));
    CHECK(filled[4].starts_with("main.fillIt ("));
    CHECK(alone[0].starts_with("runtime.goexit"));
    CHECK(alone[1].starts_with("go statement in main.main ("));
  }
}

// Go's debug information does not name the source file of a function that the compiler inlines, so the file is
// determined from the code.
TEST_CASE("functions that Go's compiler inlines are counted and have a source file") {
  need("go");
  const Sources made;
  fs::create_directory(made.at("go"));
  write(made.at("go/go.mod"), "module example.org/victim\n\ngo 1.19\n");
  write(made.at("go/main.go"), R"(package main

import "strings"

type store struct{ total int }

func (s *store) add(n int) { s.total += scaled(n) }

//go:noinline
func first(s *store) {
	for i := 0; i < 200; i++ {
		s.add(i)
	}
}

//go:noinline
func second(s *store, text string) {
	if strings.Contains(text, "v") {
		s.add(len(text))
	}
}

func main() {
	var s store
	first(&s)
	second(&s, "victim")
	println(s.total)
}
)");
  write(made.at("go/scale.go"), R"(package main

var factor = 3

func scaled(n int) int { return n * factor }
)");
  Command command = go_build(made);
  command.insert(command.end(), {"-o", made.at("victim"), "."});
  build(command);

  const auto copies = symbols::list_inlined(made.at("victim"));
  REQUIRE(copies);
  std::map<std::string, std::string> sources;
  for (const symbols::Function& copy : *copies) sources[copy.name] = fs::path(copy.source).filename();
  CHECK(sources.size() == 2);
  CHECK(sources["main.(*store).add"] == "main.go");
  CHECK(sources["main.scaled"] == "scale.go");

  Target node;
  node.binaries = {made.at("victim")};
  node.functions = {"main.first", "main.second", "main.scaled", "main.(*store).add"};
  TracerOptions options;
  options.inlined = true;
  const Seen seen = watch(node, made.cgroup, made.at("victim"), options);
  std::string counts;
  for (const auto& [name, count] : seen) counts += fmt::format("{} {}; ", name, count);
  CHECK(counts == "main.(*store).add 201; main.first 1; main.scaled 201; main.second 1; ");
}
