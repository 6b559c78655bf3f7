// Queried values: all are correct, from several threads, the program is not disturbed, and nothing is left behind.
#include <bpf/bpf.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <set>

#include "eventually.h"
#include "observe_support.h"
#include "symbols/values.h"

using namespace rose;
using namespace rose::observe;
using namespace rose::observe::test;

namespace {

// Queries that are looked up in one program. One or more locations answer each query.
struct ValueQueries {
  std::vector<ValuePlace> places;
  std::vector<std::vector<std::pair<std::string, symbols::Form>>> meanings;  // by location and fetch

  ValueQueries(const std::string& program, const std::vector<std::string>& queries) {
    const std::filesystem::path binary = std::filesystem::path(ROSE_PROGRAMS_DIR) / program;
    auto file = symbols::ValueFile::open(binary);
    REQUIRE(file);
    for (const std::string& text : queries) {
      const auto query = symbols::parse_query(text);
      REQUIRE(query);
      const auto answer = file->answer(*query);
      INFO(text << (answer ? answer->refused : answer.error().message));
      REQUIRE(answer);
      REQUIRE(!answer->sites.empty());
      for (const symbols::Site& site : answer->sites) {
        std::size_t at = 0;
        while (at < places.size() && places[at].offset != site.offset) ++at;
        if (at == places.size()) places.push_back({binary, site.offset, {}}), meanings.emplace_back();
        places[at].fetches.push_back(site.fetch);
        meanings[at].emplace_back(text, site.form);
      }
    }
  }

  // The values of each query as text, in the order in which they arrived.
  [[nodiscard]] std::map<std::string, std::vector<std::string>> values_of(const SeenValues& seen) const {
    std::map<std::string, std::vector<std::string>> out;
    for (const SeenValue& value : seen.values) {
      const auto& [query, form] = meanings[value.place][value.fetch];
      out[query].push_back(value.unreadable ? "(not readable)"
                                            : symbols::format_value(form, value.bits, value.text).text);
    }
    return out;
  }
};

// The ids of the BPF programs that this process holds. Other processes may load and unload programs meanwhile.
std::set<std::uint32_t> own_programs() {
  std::set<std::uint32_t> ids;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fdinfo")) {
    std::ifstream info(entry.path());
    std::string word;
    std::uint32_t id = 0;
    while (info >> word)
      if (word == "prog_id:" && info >> id) ids.insert(id);
  }
  return ids;
}

bool is_loaded(std::uint32_t program) {
  const int fd = bpf_prog_get_fd_by_id(program);
  if (fd >= 0) ::close(fd);
  return fd >= 0;
}

// The bytes at an offset of the program's file, read from the memory of a process. If there is a probe, a byte differs.
std::string bytes_at(pid_t pid, const std::string& program, std::uint64_t offset) {
  std::ifstream maps("/proc/" + std::to_string(pid) + "/maps");
  std::string line;
  while (std::getline(maps, line)) {
    std::uint64_t begin = 0, end = 0, from = 0;
    if (line.find("/" + program) == std::string::npos ||
        std::sscanf(line.c_str(), "%lx-%lx %*s %lx", &begin, &end, &from) != 3)
      continue;
    if (offset < from || offset - from >= end - begin) continue;
    std::ifstream memory("/proc/" + std::to_string(pid) + "/mem");
    memory.seekg(static_cast<std::streamoff>(begin + offset - from));
    std::string bytes(8, '\0');
    memory.read(bytes.data(), 8);
    return bytes;
  }
  return {};
}

// The values in sorted order.
std::vector<std::string> sorted(std::vector<std::string> values) {
  std::sort(values.begin(), values.end());
  return values;
}
std::vector<std::string> each(const std::function<std::string(long)>& value) {
  std::vector<std::string> out;
  for (long i = 0; i < 1000; ++i) out.push_back(value(i));
  return sorted(std::move(out));
}

}  // namespace

TEST_CASE("raw arguments and results of a thousand calls by four threads are right, then probes are gone") {
  const TestCgroup cgroup("values");
  const std::set<std::uint32_t> before = own_programs();
  const ValueQueries asked("value_bare",
                           {"plain(arg1)", "plain(arg2)", "plain(arg7)", "negated:return", "negated(arg1)"});
  Victim victim(&cgroup, {}, "value_bare");
  REQUIRE(victim.number("ready") == 1);
  std::vector<std::string> code;
  for (const ValuePlace& place : asked.places) code.push_back(bytes_at(victim.pid(), "value_bare", place.offset));
  TracerOptions options;
  options.values = asked.places;
  options.values_share = 1;
  auto tracer = start({target("n1", cgroup)}, options);
  victim.send("go");
  REQUIRE(victim.number("done") > 0);
  const SeenValues seen = tracer->take_values();
  auto values = asked.values_of(seen);
  CHECK(seen.left_out == 0);
  CHECK(sorted(values["plain(arg1)"]) == each([](long i) { return std::to_string(i); }));
  CHECK(sorted(values["plain(arg2)"]).size() == 1000);
  CHECK(sorted(values["negated(arg1)"]) == each([](long i) { return std::to_string(i); }));
  CHECK(sorted(values["negated:return"]) == each([](long i) {
          return i == 0 ? "0" : std::to_string(4294967296 - i) + " (as int " + std::to_string(-i) + ")";
        }));
  std::set<int> tids;
  for (const SeenValue& value : seen.values) {
    tids.insert(value.tid);
    CHECK(value.pid == victim.pid());
    CHECK(!value.unreadable);
  }
  CHECK(tids.size() == 4);
  std::uint64_t visits = 0;
  for (const auto& place : seen.places) visits += place.visits;
  CHECK(visits == 3000);
  // A queried value is no event.
  for (const trace::Event& event : snapshot(*tracer).events) CHECK(event.type != trace::EventType::af);

  std::set<std::uint32_t> loaded = own_programs();
  for (const std::uint32_t program : before) loaded.erase(program);
  CHECK(!loaded.empty());
  tracer.reset();
  CHECK(eventually([&] { return std::none_of(loaded.begin(), loaded.end(), is_loaded); }));
  for (std::size_t i = 0; i < asked.places.size(); ++i)
    CHECK(bytes_at(victim.pid(), "value_bare", asked.places[i].offset) == code[i]);
  victim.send("go");
  CHECK(victim.wait() == 0);
}

TEST_CASE("with debug information values of all types are right, optimised or not") {
  for (const char* program : {"value_victim", "value_fast"}) {
    CAPTURE(program);
    const TestCgroup cgroup("values");
    const ValueQueries asked(
        program,
        {"plain(number)", "plain(large)", "plain(small)", "plain(text)", "plain(box->width)",
         "plain(box->inner.weight)", "plain(box->inner.label)", "plain(box->title)", "plain(box->next->inner.weight)",
         "plain(box->next->next)", "plain(shade)", "plain(flag)", "plain(last)", "negated:return",
         "Ledger::enter(title)", "Ledger::enter(this->total_)", "Ledger::enter:return", "plain:callers"});
    Victim victim(&cgroup, {}, program);
    TracerOptions options;
    options.values = asked.places;
    options.values_share = 1;
    auto tracer = start({target("n1", cgroup)}, options);
    victim.send("go");
    REQUIRE(victim.number("done") > 0);
    const SeenValues seen = tracer->take_values();
    auto values = asked.values_of(seen);
    const auto is = [&](const char* query, const std::function<std::string(long)>& value) {
      CAPTURE(query);
      CHECK(sorted(values[query]) == each(value));
    };
    const auto quoted = [](const std::string& text) { return "\"" + text + "\""; };
    REQUIRE(values["plain:callers"].size() == 1000);
    CAPTURE(values["plain:callers"].front());
    for (const std::string& caller : values["plain:callers"])
      CHECK(caller.find(" (value_victim.cc:") != std::string::npos);
    if (program == std::string("value_victim")) CHECK(values["plain:callers"].front().starts_with("work(int, int) ("));
    is("plain(number)", [](long i) { return std::to_string(i); });
    is("plain(large)", [](long i) { return std::to_string(i * 1'000'000'007L); });
    is("plain(small)", [](long i) { return std::to_string(i % 256); });
    is("plain(text)", [&](long i) { return quoted("text-" + std::to_string(i)); });
    is("plain(box->width)", [](long i) { return std::to_string(i + 1); });
    is("plain(box->inner.weight)", [](long i) { return std::to_string(-5 * i); });
    is("plain(box->inner.label)", [&](long i) { return quoted("text-" + std::to_string(i)); });
    is("plain(box->title)", [&](long i) { return quoted("title of text-" + std::to_string(i)); });
    is("plain(box->next->inner.weight)", [](long i) { return std::to_string(i + 3); });
    is("plain(box->next->next)", [](long) { return "null"; });
    is("plain(shade)", [](long) { return "deep_blue"; });
    is("plain(flag)", [](long i) { return i % 2 == 1 ? "true" : "false"; });
    is("plain(last)", [](long i) { return std::to_string(-i); });
    is("negated:return", [](long i) { return std::to_string(-i); });
    is("Ledger::enter(title)", [&](long) { return quoted("ten chars."); });
    is("Ledger::enter(this->total_)", [](long i) { return std::to_string(1000 + i % 250 * 13); });
    is("Ledger::enter:return", [](long i) { return std::to_string(1000 + i % 250 * 13); });
    // All values of one call are reported together, so the arguments of a call have the same thread and time.
    std::map<std::pair<int, std::int64_t>, std::map<std::string, std::string>> calls;
    for (const SeenValue& value : seen.values) {
      const auto& [query, form] = asked.meanings[value.place][value.fetch];
      calls[{value.tid, value.ts_ns}][query] = symbols::format_value(form, value.bits, value.text).text;
    }
    std::size_t matched = 0;
    for (auto& [key, call] : calls)
      if (call.contains("plain(number)") && call.contains("plain(box->width)") &&
          std::stoi(call["plain(box->width)"]) == std::stoi(call["plain(number)"]) + 1)
        ++matched;
    CHECK(matched == 1000);
    tracer.reset();
    victim.send("go");
    CHECK(victim.wait() == 0);
  }
}

TEST_CASE("a frequently reached place is detached, and the number of its values is bounded") {
  const TestCgroup cgroup("values-busy");
  const ValueQueries asked("trace_victim", {"rose_victim_often(arg1)"});
  Victim victim(&cgroup, {"functions", "400000"});
  TracerOptions options;
  options.values = asked.places;
  options.values_share = 0.001;
  auto tracer = start({target("n1", cgroup)}, options);
  REQUIRE(victim.run() == 0);
  const SeenValues seen = tracer->take_values();
  REQUIRE(seen.places.size() == 1);
  CHECK(seen.places[0].detached);
  CHECK(seen.values.size() <= kMostValues);
  CHECK(seen.places[0].visits < 400'000);
  CHECK(seen.values.size() + seen.left_out <= seen.places[0].visits);
}

TEST_CASE("when a busy place is detached, the other places in the file are still recorded") {
  const TestCgroup cgroup("values-others");
  const ValueQueries asked("trace_victim",
                           {"rose_victim_often(arg1)", "rose_victim_rare(arg1)", "rose_victim_rare:return"});
  TracerOptions options;
  options.values = asked.places;
  options.values_share = 0.001;
  auto tracer = start({target("n1", cgroup)}, options);
  Victim busy(&cgroup, {"functions", "400000"});
  REQUIRE(busy.run() == 0);
  REQUIRE(rose::test::eventually([&] { return tracer->take_values().places[0].detached; }));
  Victim later(&cgroup, {"functions", "1"});
  REQUIRE(later.run() == 0);
  std::map<std::uint32_t, std::size_t> seen;  // by place
  for (const SeenValue& value : tracer->take_values().values) ++seen[value.place];
  for (std::uint32_t place = 1; place < asked.places.size(); ++place) {
    INFO("place " << place);
    CHECK(seen[place] >= 2);  // each of the two processes called it once; the other place was detached in between
  }
}
