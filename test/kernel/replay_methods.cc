// Methods of a real JVM as functions: they are counted in a profile, recorded in traces, and detached when they are
// hot.
#include <algorithm>
#include <functional>
#include <map>
#include <set>

#include "base/leaving.h"
#include "replay_rig.h"

using namespace rose;
using namespace rose::test;

namespace {

// One JVM that executes a part repeatedly. The run lasts as long as the JVM.
config::Config deployment(const std::string& java, const std::string& part, int times) {
  config::Config config = one_jvm("methods", java, {"org.rose.test.Victim", part, std::to_string(times), "1"});
  config.nodes[0].functions = {"org.rose.test.Victim.*"};
  return config;
}

replay::Run run_with(const config::Config& config, const std::function<void(replay::RunOptions&)>& change) {
  const Folder folder;
  replay::RunOptions options = run_options(config, folder);
  change(options);
  return run_of(config, options);
}

const profile::FunctionRate* find(const replay::Run& run, const std::string& name) {
  for (const auto& rate : run.counts.functions)
    if (rate.function == name) return &rate;
  return nullptr;
}

}  // namespace

TEST_CASE("a profile counts the entries of methods, and detaches hot ones", "[java]") {
  for (const std::string& java : javas()) {
    INFO(java);
    const auto run = run_with(deployment(java, "paced", 150),
                              [](replay::RunOptions& options) { options.tracer.infrequent_below = 5; });
    const auto* seldom = find(run, "org.rose.test.Victim.seldom");
    REQUIRE(seldom != nullptr);
    CHECK(seldom->count == 6);
    CHECK(seldom->binary == profile::kJvm);
    CHECK(seldom->node == "n1");
    const auto* main = find(run, "org.rose.test.Victim.main");
    REQUIRE(main != nullptr);
    CHECK(main->count == 1);
    // There were 30,000 calls. Most of them were not recorded, so their number is estimated.
    const auto* busy = find(run, "org.rose.test.Victim.busy");
    REQUIRE(busy != nullptr);
    CHECK(busy->count > 3000);
    CHECK(busy->count < 300'000);
    // A method is listed by its name, with parameters only if it is overloaded.
    CHECK(find(run, "org.rose.test.Victim.step(int)") != nullptr);
    CHECK(find(run, "org.rose.test.Victim.missing") == nullptr);  // because it is a native method
    CHECK(find(run, "org.rose.test.Victim.step(int)")->count == 0);
  }
}

TEST_CASE("a trace has method entries and calls in order, but at most one second of a hot method", "[java]") {
  for (const std::string& java : javas()) {
    INFO(java);
    std::int64_t reported_ns = 0;
    // A busy machine may need longer, so try several times.
    for (int tries = 0; tries < 3 && (tries == 0 || reported_ns > kSecond); ++tries) {
      const auto run = run_with(deployment(java, "paced", 150),
                                [](replay::RunOptions& options) { options.tracer.hot_function_rate = 50; });
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
      reported_ns = gone - first;
    }
    CHECK(reported_ns < kSecond);
  }
}

TEST_CASE("with a profile, only methods that it lists as infrequent are recorded", "[java]") {
  profile::Profile profile;
  profile.functions = {{.node = "n1",
                        .function = "org.rose.test.Victim.seldom",
                        .binary = profile::kJvm,
                        .count = 6,
                        .per_second = 1,
                        .infrequent = true},
                       {.node = "n1",
                        .function = "org.rose.test.Victim.busy",
                        .binary = profile::kJvm,
                        .count = 30'000,
                        .per_second = 9000,
                        .infrequent = false}};
  const auto run = run_with(deployment(javas().front(), "paced", 50),
                            [&](replay::RunOptions& options) { options.profile = &profile; });
  std::set<std::string> names;
  for (const trace::Event& event : run.result.trace.events)
    if (event.type == trace::EventType::af) names.insert(std::string(run.result.trace.str(event.function)));
  CHECK(names == std::set<std::string>{"org.rose.test.Victim.seldom"});
}

TEST_CASE("exceptions that leave methods are counted and recorded with thrower and catcher", "[java]") {
  const std::string victim = "org.rose.test.Victim.", missing = " throws java.nio.file.NoSuchFileException";
  for (const std::string& java : javas()) {
    INFO(java);
    auto config = deployment(java, "throws", 200);
    config.nodes[0].exceptions = true;
    const auto profiled = run_with(config, [](replay::RunOptions& options) { options.tracer.infrequent_below = 1e6; });
    for (const auto& [name, count] : {std::pair{victim + "opens" + missing, std::uint64_t{100}},
                                      {victim + "passes" + missing, 100},
                                      {victim + "itself throws java.lang.IllegalStateException", 20}}) {
      INFO(name);
      const auto* rate = find(profiled, name);
      REQUIRE(rate != nullptr);
      CHECK(rate->count == count);
      CHECK(rate->binary == profile::kJvm);
    }
    CHECK(find(profiled, victim + "catches" + missing) == nullptr);
    const auto traced = run_with(config, [](replay::RunOptions& options) { options.tracer.hot_function_rate = 1e6; });
    std::map<std::string, std::size_t> entries;
    for (const trace::Event& event : traced.result.trace.events)
      if (event.type == trace::EventType::af &&
          traced.result.trace.str(event.function).find(kThrows) != std::string_view::npos)
        ++entries[std::string(traced.result.trace.str(event.function))];
    CHECK(entries == std::map<std::string, std::size_t>{{victim + "itself throws java.lang.IllegalStateException", 20},
                                                        {victim + "opens" + missing, 100},
                                                        {victim + "passes" + missing, 100}});
    config.nodes[0].catches = true;
    const auto caught = run_with(config, [](replay::RunOptions& options) { options.tracer.hot_function_rate = 1e6; });
    std::size_t catches = 0;
    for (const trace::Event& event : caught.result.trace.events)
      if (event.type == trace::EventType::af &&
          caught.result.trace.str(event.function) == victim + "catches catches java.nio.file.NoSuchFileException")
        ++catches;
    CHECK(catches == 100);
  }
}

TEST_CASE("if thousands of exceptions are thrown, only some are examined, and this is reported", "[java]") {
  auto config = deployment(javas().front(), "storm", 300'000);
  config.nodes[0].functions = {"org.rose.test.Victim.catches"};
  config.nodes[0].sources = {"Victim.java"};
  config.nodes[0].exceptions = true;
  const auto run = run_with(config, [](replay::RunOptions& options) { options.tracer.infrequent_below = 1e9; });
  const auto* rate = find(run, "org.rose.test.Victim.itself throws java.lang.IllegalStateException");
  REQUIRE(rate != nullptr);
  CHECK(rate->count >= 500);
  CHECK(rate->count < 300'000);
}

TEST_CASE("exceptions are recorded whatever the number of methods", "[java]") {
  auto config = deployment(javas().front(), "crowd", 201);
  config.nodes[0].exceptions = true;
  const auto run = run_with(config, [](replay::RunOptions& options) { options.tracer.hot_function_rate = 1e6; });
  CHECK(std::any_of(run.result.trace.events.begin(), run.result.trace.events.end(), [&](const trace::Event& event) {
    return event.type == trace::EventType::af &&
           run.result.trace.str(event.function) == "org.rose.test.Victim.itself throws java.lang.IllegalStateException";
  }));
}

TEST_CASE("methods can be selected by source file", "[java]") {
  auto config = deployment(javas().front(), "names", 3);
  config.nodes[0].functions.clear();
  config.nodes[0].sources = {"Victim.java"};
  const auto run = run_with(config, [](replay::RunOptions& options) { options.tracer.infrequent_below = 5; });
  const auto* inner = find(run, "org.rose.test.Victim$Inner.own");
  REQUIRE(inner != nullptr);
  CHECK(inner->count == 3);
  const auto* lambda = find(run, "org.rose.test.Victim.lambda$part$0");
  REQUIRE(lambda != nullptr);
  CHECK(lambda->count == 3);
  CHECK(find(run, "org.rose.test.Victim$Inner.<init>")->count == 3);
}
