// The runs of an explanation that were kept can be compared again.
#include <catch2/catch.hpp>

#include "base/file.h"
#include "base/redact.h"
#include "explain/kept.h"
#include "explain_runs.h"

using namespace rose;
using explain::Group;
using script::Case;

namespace {

// Failing runs log an error with a path of this machine, enter another function than correct runs, and have other
// values.
Case sample_case() {
  Case one;
  one.input.schedule.name = "kv";
  one.input.questions.push_back({"save(len)", "save", "int", "", {"only its first 8 bytes"}});
  one.input.oracle_output = "record 7 is lost on host-a.example.com";
  one.input.run_dir = "/srv/machine/runs/run-2";
  for (int i = 0; i < 4; ++i) {
    one.add(Group::failing, script::Run(2 * i)
                                .enters(100, "request")
                                .enters(101, "save")
                                .faulted(102)
                                .stack({{"save", "/srv/machine/src/store.c", 44, "/srv/machine/kv", 16}})
                                .has(103, 0, "-1", -1)
                                .enters(110, "give_up")
                                .fails(120, "rename", 2, "/srv/machine/runs/run-2/n1/data/snapshot")
                                .sends(130, "n1", "n2", "sorry 7")
                                .takes(131, "n1", "n2", 5)
                                .prints(900, 4, "not saved: token 0123456789abcdef0123456789abcdef of 10.1.2.3"));
    one.add(
        Group::sound,
        script::Run(2 * i + 1).enters(100, "request").enters(101, "save").has(103, 0, "12", 12).enters(110, "commit"));
  }
  return one;
}

explain::Kept kept_of(Case& one) {
  if (!one.input.message) one.input.message = [](std::uint32_t kind) { return "message " + std::to_string(kind); };
  one.input.place = [](const std::string&, const std::string& function) {
    return explain::Place{"/srv/machine/src/" + function + ".c", 0};
  };
  explain::Kept kept;
  kept.name = "kv";
  kept.schedule_path = "schedule.toml";
  kept.runs = 9;
  kept.reproduced = 4;
  kept.seconds = 12.5;
  kept.comparable = true;
  kept.input = one.input;
  kept.calls = {{"give_up", "request", "n1", "/srv/machine/src/request.c", 12}};
  kept.lost_calls = {{"commit", "close_group", "n1", "/srv/machine/src/group.c", 40}};
  return kept;
}

const explain::Scrub kNothing;

std::vector<std::string> words_of(const explain::Explanation& e) {
  std::vector<std::string> out{std::string(explain::verdict_name(e.verdict)), e.reason, e.fault, e.symptom};
  for (const explain::Suspect& s : e.suspects)
    out.push_back(fmt::format("{} {} {}:{} {} {}", s.function, s.score, s.file, s.line, s.node, s.why));
  for (const explain::StoryLine& line : e.story)
    out.push_back(fmt::format("{} {} {} {}", line.ts_ns, line.node, line.text, line.evidence));
  for (const explain::DifferenceText& difference : e.differences)
    out.push_back(fmt::format("{} {}", difference.words, difference.weight));
  for (const explain::ValueTable& table : e.values) out.push_back(table.query + " " + table.differs);
  for (const explain::ExchangeTable& table : e.exchanges) out.push_back(table.from + " " + table.differs);
  out.insert(out.end(), e.limits.begin(), e.limits.end());
  return out;
}

}  // namespace

TEST_CASE("kept runs give the same explanation as the original runs", "[explain]") {
  Case one = sample_case();
  for (std::size_t i = 0; i < 2; ++i) {  // an earlier round, without the query, made these runs
    one.input.runs[i].unasked = {0};
    one.input.runs[i].values.clear();
  }
  explain::Kept kept = kept_of(one);
  const auto bytes = explain::pack(kept, kNothing);
  REQUIRE(bytes);
  explain::Explanation direct = one.explain();
  (void)explain::add_callers(direct, kept.calls);
  explain::add_lost_callers(direct, kept.lost_calls);
  REQUIRE(direct.verdict == explain::Verdict::explained);
  REQUIRE(!direct.suspects.empty());
  CHECK(std::any_of(direct.suspects.begin(), direct.suspects.end(),
                    [](const auto& suspect) { return suspect.function == "close_group"; }));

  auto again = explain::unpack(*bytes, "x");
  REQUIRE(again);
  CHECK(again->name == "kv");
  CHECK(again->runs == 9);
  CHECK(again->seconds == 12.5);
  CHECK(again->input.story.trace.events.size() == one.input.story.trace.events.size());
  CHECK(words_of(explain::explain_kept(*again)) == words_of(direct));
}

TEST_CASE("runs that could not be compared are kept with the reason", "[explain]") {
  explain::Kept kept;
  kept.input.schedule = script::one_fault();
  kept.input.schedule.name = "kv";
  kept.verdict = explain::Verdict::not_reproduced;
  kept.reason = "the bug did not show";
  kept.limits = {"n1 is stripped"};
  auto again = explain::unpack(explain::pack(kept, kNothing).value(), "x");
  REQUIRE(again);
  const explain::Explanation e = explain::explain_kept(*again);
  CHECK(e.verdict == explain::Verdict::not_reproduced);
  CHECK(e.reason == kept.reason);
  CHECK(e.limits == kept.limits);
  CHECK(again->input.schedule.faults.size() == 1);
}

TEST_CASE("kept runs name no folder of the machine, and on request no address, host or token", "[explain]") {
  Case one = sample_case();
  const explain::Kept kept = kept_of(one);
  Redactor redact({}, {});
  explain::Scrub scrub;
  scrub.prefixes = {{"/srv/machine/runs/run-2", "/run"}, {"/srv/machine/", ""}};
  scrub.redact = &redact;
  auto again = explain::unpack(explain::pack(kept, scrub).value(), "x");
  REQUIRE(again);
  const auto has = [&](std::string_view text) {
    const auto in = [&](std::string_view whole) { return whole.find(text) != std::string_view::npos; };
    const explain::Input& input = again->input;
    bool found = in(input.oracle_output) || in(input.run_dir);
    for (const explain::LogLine& line : input.lines) found = found || in(line.text);
    for (std::string_view one_of_trace : input.story.trace.strings.all()) found = found || in(one_of_trace);
    for (std::uint32_t id = 0; id < input.kinds.size(); ++id) found = found || in(input.kinds[id].words);
    for (const std::string& line : words_of(explain::explain_kept(*again))) found = found || in(line);
    return found;
  };
  CHECK(!has("machine"));
  CHECK(!has("host-a.example.com"));
  CHECK(!has("10.1.2.3"));
  CHECK(!has("0123456789abcdef"));
  CHECK(has("give_up"));
}

TEST_CASE("redaction keeps the host names with which names of functions begin", "[explain]") {
  Case one = sample_case();
  one.input.oracle_output = "lost on host-a.example.com; see github.com/x/shop.save";
  explain::Kept kept = kept_of(one);
  kept.calls.push_back({"github.com/x/shop.save", "github.com/x/shop.order", "n1", "shop.go", 12});
  Redactor redact({}, {});
  explain::Scrub scrub;
  scrub.redact = &redact;
  const auto again = explain::unpack(explain::pack(kept, scrub).value(), "x");
  REQUIRE(again);
  CHECK(again->calls.back().function == "github.com/x/shop.save");
  CHECK(again->input.oracle_output == "lost on host-1; see github.com/x/shop.save");
}

TEST_CASE("damaged and foreign files are refused", "[explain]") {
  Case one = sample_case();
  const std::string bytes = explain::pack(kept_of(one), kNothing).value();
  const auto why = [](const std::string& text) {
    const auto read = explain::unpack(text, "DIR/explained.runs");
    REQUIRE(!read);
    CHECK(read.error().kind == ErrorKind::input);
    CHECK(read.error().message.rfind("DIR/explained.runs: ", 0) == 0);
    return read.error().message;
  };
  CHECK(why("").find("does not hold") != std::string::npos);
  CHECK(why("{}").find("does not hold") != std::string::npos);
  CHECK(why("rose explained runs 99\n").find("version 99") != std::string::npos);
  for (std::size_t size = 24; size < bytes.size(); size += 7) (void)why(bytes.substr(0, size));
  std::string flipped = bytes;
  flipped[bytes.size() / 2] = static_cast<char>(flipped[bytes.size() / 2] ^ 0x10);
  (void)why(flipped);
  (void)why(bytes + "x");
}

TEST_CASE("redaction replaces equal text with equal placeholders", "[explain]") {
  Redactor redact({"db-7"}, {"alice"});
  CHECK(redact("from 10.1.2.3:7000 to 10.1.2.4, then 10.1.2.3") == "from 192.0.2.1:7000 to 192.0.2.2, then 192.0.2.1");
  CHECK(redact("127.0.0.1:80 0.0.0.0 ::1") == "127.0.0.1:80 0.0.0.0 ::1");
  CHECK(redact("[fe80::1]:7000") == "[2001:db8::1]:7000");
  CHECK(redact("at 10:31:44.123 on db-7, alice ran /home/bob/x") ==
        "at 10:31:44.123 on host-1, user-1 ran /home/user-2/x");
  CHECK(redact("https://db.example.com/x?key=0123456789abcdef0123") == "https://host-2/x?key=token-1");
  CHECK(redact("save(len) in Store::append, v1.2.3, a4711") == "save(len) in Store::append, v1.2.3, a4711");
  CHECK(redact("again 0123456789abcdef0123") == "again token-1");
}

TEST_CASE("runs kept by an earlier version of rose can be explained", "[explain]") {
  const Result<std::string> bytes = read_file(ROSE_TEST_DIR "/pure/explained-1.runs", 1 << 20);
  REQUIRE(bytes);
  Result<explain::Kept> kept = explain::unpack(*bytes, "explained-1.runs");
  REQUIRE(kept);
  const explain::Explanation e = explain::explain_kept(*kept);
  CHECK(e.verdict == explain::Verdict::explained);
  REQUIRE_FALSE(e.suspects.empty());
  CHECK(e.suspects[0].function == "github.com/tendermint/tendermint/privval.loadFilePV");

  const Result<std::string> second = read_file(ROSE_TEST_DIR "/pure/explained-2.runs", 1 << 20);
  REQUIRE(second);
  Result<explain::Kept> of_second = explain::unpack(*second, "explained-2.runs");
  REQUIRE(of_second);
  const explain::Explanation later = explain::explain_kept(*of_second);
  REQUIRE_FALSE(later.suspects.empty());
  CHECK(later.suspects[0].function == "accept_all");
}
