// Methods of a real JVM as functions: counted in a profile, told in traces, let go of where they are hot.
#include <algorithm>
#include <filesystem>
#include <set>

#include "inject_rig.h"
#include "replay/run.h"
#include "skip.h"

using namespace rose;
using namespace rose::test;

namespace {

const std::string kClasses = std::string(ROSE_PROGRAMS_DIR) + "/java";

// Every JVM of this machine, by the program itself.
std::vector<std::string> javas() {
  if (const char* chosen = std::getenv("ROSE_TEST_JAVA")) return {chosen};
  std::set<std::string> found;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator("/usr/lib/jvm", error)) {
    const auto java = std::filesystem::canonical(entry.path() / "bin/java", error);
    if (!error) found.insert(java.string());
  }
  if (!std::filesystem::exists(kClasses + "/compiled"))
    skip_case("no Java compiler when this was built: apt-get install default-jdk-headless, then build again");
  if (found.empty()) skip_case("no `java`: apt-get install default-jdk-headless");
  return {found.begin(), found.end()};
}

// One JVM that does a part so many times; the run lasts as long as it does.
config::Config deployment(const std::string& java, const std::string& part, int times) {
  config::Config config;
  config.file = "rose.toml";
  config.directory = "/";
  config.name = "methods";
  config.deployment.network = config::Network::host;
  config::Node node;
  node.name = "n1";
  node.command = {java, "-XX:+UseSerialGC", "-cp", kClasses, "org.rose.test.Victim", part, std::to_string(times), "1"};
  node.binaries = {java};
  node.functions = {"org.rose.test.Victim.*"};
  config.nodes = {node};
  config.workload = config::Workload{{"/bin/sh", "-c", "until grep -qs done n1/stdout.log; do sleep 0.02; done"}, 120 * kSecond};
  config.oracle = config::Oracle{};
  config.oracle->command = {"/bin/true"};
  config.oracle->timeout_ns = 30 * kSecond;
  return config;
}

replay::Run run_of(const config::Config& config, const Folder& folder, const std::function<void(replay::RunOptions&)>& change = {}) {
  replay::RunOptions options;
  options.run_dir = folder.path;
  options.tracer = replay::tracer_options(config);
  if (change) change(options);
  auto run = replay::run_once(config, {}, options);
  if (!run) FAIL(run.error().message);
  REQUIRE(run->completed);
  return std::move(*run);
}

const profile::FunctionRate* find(const replay::Run& run, const std::string& name) {
  for (const auto& rate : run.counts.functions)
    if (rate.function == name) return &rate;
  return nullptr;
}

}  // namespace

TEST_CASE("a profile counts the entries of methods, and lets go of those that are hot", "[java]") {
  for (const std::string& java : javas()) {
    INFO(java);
    const Folder folder;
    const auto run = run_of(deployment(java, "paced", 150), folder, [](replay::RunOptions& options) { options.tracer.infrequent_below = 5; });
    const auto* seldom = find(run, "org.rose.test.Victim.seldom");
    REQUIRE(seldom != nullptr);
    CHECK(seldom->count == 6);
    CHECK(seldom->binary == profile::kJvm);
    CHECK(seldom->node == "n1");
    const auto* main = find(run, "org.rose.test.Victim.main");
    REQUIRE(main != nullptr);
    CHECK(main->count == 1);
    // 30,000 in truth: most of them were not seen, and are estimated.
    const auto* busy = find(run, "org.rose.test.Victim.busy");
    REQUIRE(busy != nullptr);
    CHECK(busy->count > 3000);
    CHECK(busy->count < 300'000);
    // A name alone where it is the only one, with parameters where it is not.
    CHECK(find(run, "org.rose.test.Victim.step(int)") != nullptr);
    CHECK(find(run, "org.rose.test.Victim.missing") == nullptr);  // native
    CHECK(find(run, "org.rose.test.Victim.step(int)")->count == 0);
  }
}

TEST_CASE("a trace tells the entries of methods, in order with the thread's calls, and of a hot one no more than a second", "[java]") {
  for (const std::string& java : javas()) {
    INFO(java);
    std::int64_t told_ns = 0;
    // A machine that is busy with something else may take its time.
    for (int tries = 0; tries < 3 && (tries == 0 || told_ns > kSecond); ++tries) {
      const Folder folder;
      const auto run = run_of(deployment(java, "paced", 150), folder, [](replay::RunOptions& options) { options.tracer.hot_function_rate = 50; });
      const trace::Trace& trace = run.result.trace;
      std::vector<std::string> order;
      std::int64_t first = 0, gone = 0;
      std::size_t busy = 0;
      for (const trace::Event& event : trace.events) {
        const std::string path(trace.str(event.path));
        if (event.type == trace::EventType::sys && path.find("/seldom-") != std::string::npos) {
          order.push_back(fmt::format("{} file", event.tid));
        }
        if (event.type != trace::EventType::af) continue;
        const std::string_view name = trace.str(event.function);
        CHECK(trace.str(event.node) == "n1");
        if (name == "org.rose.test.Victim.seldom") order.push_back(fmt::format("{} entry", event.tid));
        if (name != "org.rose.test.Victim.busy") continue;
        if ((event.flags & trace::kTruncated) != 0) {
          if (gone == 0) gone = event.ts_ns;
        } else {
          if (first == 0) first = event.ts_ns;
          ++busy;
        }
      }
      REQUIRE(order.size() == 12);
      for (std::size_t i = 0; i < order.size(); i += 2) {
        CHECK(order[i] == order[0]);
        CHECK(order[i + 1] == order[1]);
      }
      CHECK(order[0].ends_with(" entry"));
      CHECK(order[1] == order[0].substr(0, order[0].find(' ')) + " file");
      REQUIRE(first != 0);
      REQUIRE(gone != 0);
      CHECK(busy < 15'000);  // of 30,000
      told_ns = gone - first;
    }
    CHECK(told_ns < kSecond);
  }
}

TEST_CASE("with a profile, only the methods that it calls infrequent are told", "[java]") {
  const Folder folder;
  profile::Profile profile;
  profile.functions = {{.node = "n1", .function = "org.rose.test.Victim.seldom", .binary = profile::kJvm, .count = 6, .per_second = 1, .infrequent = true},
                       {.node = "n1", .function = "org.rose.test.Victim.busy", .binary = profile::kJvm, .count = 30'000, .per_second = 9000, .infrequent = false}};
  const auto run = run_of(deployment(javas().front(), "paced", 50), folder, [&](replay::RunOptions& options) { options.profile = &profile; });
  std::set<std::string> names;
  for (const trace::Event& event : run.result.trace.events)
    if (event.type == trace::EventType::af) names.insert(std::string(run.result.trace.str(event.function)));
  CHECK(names == std::set<std::string>{"org.rose.test.Victim.seldom"});
}

TEST_CASE("methods are chosen by source file too", "[java]") {
  const Folder folder;
  auto config = deployment(javas().front(), "names", 3);
  config.nodes[0].functions.clear();
  config.nodes[0].sources = {"Victim.java"};
  const auto run = run_of(config, folder, [](replay::RunOptions& options) { options.tracer.infrequent_below = 5; });
  const auto* inner = find(run, "org.rose.test.Victim$Inner.own");
  REQUIRE(inner != nullptr);
  CHECK(inner->count == 3);
  const auto* lambda = find(run, "org.rose.test.Victim.lambda$part$0");
  REQUIRE(lambda != nullptr);
  CHECK(lambda->count == 3);
  CHECK(find(run, "org.rose.test.Victim$Inner.<init>")->count == 3);
}
