#include "logs_support.h"

#include <random>

#include "logs/compare.h"

using namespace rose;
using namespace rose::logs;
using namespace rose::logs::test;

namespace {

std::size_t longest_common(const std::vector<TemplateId>& a, const std::vector<TemplateId>& b) {
  std::vector<std::vector<std::size_t>> best(a.size() + 1, std::vector<std::size_t>(b.size() + 1));
  for (std::size_t i = 1; i <= a.size(); ++i)
    for (std::size_t j = 1; j <= b.size(); ++j)
      best[i][j] = a[i - 1] == b[j - 1] ? best[i - 1][j - 1] + 1 : std::max(best[i - 1][j], best[i][j - 1]);
  return best[a.size()][b.size()];
}

void check_matched(const std::vector<Matched>& matched, const std::vector<TemplateId>& a,
                   const std::vector<TemplateId>& b) {
  for (std::size_t i = 0; i < matched.size(); ++i) {
    REQUIRE(matched[i].failure < a.size());
    REQUIRE(matched[i].normal < b.size());
    REQUIRE(a[matched[i].failure] == b[matched[i].normal]);
    if (i != 0) REQUIRE((matched[i].failure > matched[i - 1].failure && matched[i].normal > matched[i - 1].normal));
  }
}

struct Pair {
  Templates kinds;
  Logs failure, normal;
  Difference difference;
  explicit Pair(const std::string& system) {
    normal = read_files({{log_file(system + ".normal"), "n1"}}, kinds);
    failure = read_files({{log_file(system + ".failure"), "n1"}}, kinds);
    difference = compare(failure, normal, kinds);
  }
  Pair(std::string failed, std::string usual) {
    normal = read_text(std::move(usual), {"a.log", "n1"}, {}, kinds);
    failure = read_text(std::move(failed), {"a.log", "n1"}, {}, kinds);
    difference = compare(failure, normal, kinds);
  }
  [[nodiscard]] std::string observed(double least = 0) const {
    std::string all;
    for (const Observed& one : difference.observed)
      if (one.weight >= least) all += kinds.text(one.kind) + "\n";
    return all;
  }
};

}  // namespace

TEST_CASE("matching finds a longest common subsequence") {
  std::mt19937 rng(7);
  for (int round = 0; round < 400; ++round) {
    std::vector<TemplateId> a(rng() % 40), b(rng() % 40);
    const unsigned kinds = 1 + rng() % 12;
    for (TemplateId& one : a) one = rng() % kinds;
    for (TemplateId& one : b) one = rng() % kinds;
    const std::vector<Matched> matched = match_sequences(a, b);
    check_matched(matched, a, b);
    CHECK(matched.size() == longest_common(a, b));
  }
}

TEST_CASE("matching of long, different sequences takes bounded work") {
  std::mt19937 rng(8);
  std::vector<TemplateId> a(100'000), b(100'000);
  for (TemplateId& one : a) one = rng() % 5000;
  for (TemplateId& one : b) one = rng() % 5000;
  // every third message is the same in both logs
  for (std::size_t i = 0; i < a.size(); i += 3) a[i] = b[i] = static_cast<TemplateId>(10'000 + i);
  const std::vector<Matched> matched = match_sequences(a, b);
  check_matched(matched, a, b);
  CHECK(matched.size() >= 33'000);
}

TEST_CASE("messages that only the failure's log has are found in real logs") {
  struct Row {
    const char* system;
    std::vector<const char*> has;
    std::vector<const char*> has_not;
  };
  const Row rows[] = {
      {"redis",
       {"Background saving error", "No space left on device"},
       {"Ready to accept connections", "DB saved on disk"}},
      {"postgresql",
       {"No space left on device", "database system was interrupted"},
       {"checkpoint starting: immediate force wait"}},
      {"nats", {"connection refused"}, {"Starting nats-server", "Server is ready"}},
      {"nginx", {"No space left on device", "upstream timed out", "Connection refused"}, {"start worker processes"}},
      {"python",
       {"cannot save record <n> OSError: [Errno 28] No space left on device"},
       {"saved record", "opening journal"}},
      {"mosquitto", {"No space left on device"}, {"Opening ipv4 listen socket"}},
      {"supervisor", {"terminated by SIGKILL"}, {"supervisord started"}},
      {"syslog", {"Permission denied"}, {}},
      {"etcd", {"no space left on device"}, {"starting an etcd server"}},
      {"zookeeper", {"Connection refused"}, {}},
      {"journald-export", {"No space left on device"}, {"opened <path>"}},
      {"klog", {"connection refused"}, {}},
  };
  for (const Row& row : rows) {
    const Pair pair(row.system);
    std::string observed;
    for (const Observed& one : pair.difference.observed) {
      observed += std::string(level_name(pair.kinds.level(one.kind))) + " " + pair.kinds.text(one.kind) + "\n";
      const Message& first = pair.failure.nodes[0].messages[one.first];
      observed += std::string(pair.failure.text(first)) + "\n";
    }
    INFO(row.system << ":\n" << observed);
    for (const char* text : row.has) CHECK(observed.find(text) != std::string::npos);
    for (const char* text : row.has_not) CHECK(observed.find(text) == std::string::npos);
    CHECK(pair.difference.observed.size() < pair.failure.nodes[0].messages.size());
    if (std::string(row.system) != "klog")
      // not for klog, because the normal log is one line about another request
      CHECK(!pair.difference.nodes[0].matched.empty());
  }
}

TEST_CASE("a log does not differ from itself") {
  for (const std::filesystem::path& file : all_logs()) {
    INFO(file);
    Templates kinds;
    const Logs one = read_files({{file, "n1"}}, kinds);
    const Logs again = read_files({{file, "n1"}}, kinds);
    const Difference difference = compare(one, again, kinds);
    CHECK(difference.observed.empty());
    CHECK(difference.nodes[0].matched.size() == one.nodes[0].messages.size());
  }
}

TEST_CASE("threads may interleave, and lines that are new or more frequent are found") {
  const std::string head = "2026-01-02 03:04:05,000 [";
  const auto line = [&](const char* thread, const char* text) { return head + thread + "] INFO x.Y - " + text + "\n"; };
  const std::string usual =
      line("a", "one") + line("a", "two") + line("b", "three") + line("b", "four") + line("a", "closed well");
  const Pair other_order(
      line("b", "three") + line("a", "one") + line("b", "four") + line("a", "two") + line("a", "closed well"), usual);
  CHECK(other_order.observed() == "");
  std::string many = line("a", "one") + line("a", "two") + line("b", "three");
  for (int i = 0; i < 9; ++i) many += line("b", "four");
  const Pair more(many, usual);
  CHECK(more.observed() == "four\n");
  CHECK(more.difference.observed[0].weight < 1);
  CHECK(more.difference.observed[0].count == 9);
  const Pair fresh(usual + line("new", "this is new"), usual);
  CHECK(fresh.observed() == "this is new\n");
}
