#include "base/json.h"
#include "base/regex.h"
#include "report/explanation.h"
#include "report/page.h"
#include "report/suite.h"

#include <catch2/catch.hpp>
#include <cctype>

#include "base/utf8.h"
#include "golden.h"
#include "report/markup.h"
#include "report/page_assets.h"
#include "trace_random.h"

using namespace rose;
using namespace rose::report;
using rose::test::check_golden;
using schedule::Verdict;

namespace {

constexpr std::int64_t kMonday = 1'763'755'200 * kSecond;

// --- properties of every page

// Checks that elements are nested correctly, that attributes are quoted, and that the page refers to nothing outside
// itself. Returns the problem, or "" if there is none.
std::string markup_problem(std::string_view page, bool xml) {
  std::vector<std::string> open;
  std::size_t at = 0;
  const auto skip_raw = [&](std::string_view end) {
    const std::size_t close = page.find(end, at);
    at = close == std::string_view::npos ? page.size() : close;
  };
  while (at < page.size()) {
    const char c = page[at];
    const auto byte = static_cast<unsigned char>(c);
    if ((byte < 0x20 && c != '\n' && c != '\t') || byte == 0x7f) return fmt::format("control character {:02x}", byte);
    if (const std::size_t length = utf8_length(page.substr(at)); byte >= 0x80) {
      if (length == 0) return fmt::format("byte {:02x} is not UTF-8", byte);
      at += length;
      continue;
    }
    if (c == '&') {
      static const Regex entity("^&(amp|lt|gt|quot|#39|#[0-9]+);");
      if (!entity.found_in(page.substr(at, 10))) return fmt::format("a bare '&' at {}", page.substr(at, 30));
    }
    if (c == '>') return fmt::format("a bare '>' at {}", page.substr(at > 20 ? at - 20 : 0, 40));
    if (c != '<') {
      ++at;
      continue;
    }
    if (page.substr(at).starts_with("<!doctype html>") ||
        page.substr(at).starts_with("<?xml version=\"1.0\" encoding=\"UTF-8\"?>")) {
      at = page.find('>', at) + 1;
      continue;
    }
    std::size_t p = at + 1;
    const bool closing = page[p] == '/';
    if (closing) ++p;
    std::string name;
    while (p < page.size() && (std::isalnum(static_cast<unsigned char>(page[p])) != 0 || page[p] == '-'))
      name += page[p++];
    if (name.empty()) return fmt::format("no element's name at {}", page.substr(at, 30));
    bool empty = false;
    while (p < page.size() && page[p] != '>') {
      if (page[p] == '/' && page[p + 1] == '>') {
        empty = true;
        ++p;
        break;
      }
      if (page[p] != ' ') return fmt::format("attributes of <{}> run together: {}", name, page.substr(p, 30));
      ++p;
      std::string attribute;
      while (std::isalnum(static_cast<unsigned char>(page[p])) != 0 || page[p] == '-') attribute += page[p++];
      if (attribute.empty()) return fmt::format("no attribute's name in <{}>", name);
      if (attribute.starts_with("on") || attribute == "style" || attribute == "src")
        return fmt::format("<{}> has {}", name, attribute);
      if (page[p] != '=') continue;
      if (page[p + 1] != '"') return fmt::format("{} of <{}> is not quoted", attribute, name);
      const std::size_t end = page.find('"', p + 2);
      if (end == std::string_view::npos) return "an attribute without an end";
      const std::string_view value = page.substr(p + 2, end - p - 2);
      if (value.find('<') != std::string_view::npos) return fmt::format("'<' in {} of <{}>", attribute, name);
      if (attribute == "href" && !value.starts_with('#')) return fmt::format("<{}> refers to {}", name, value);
      p = end + 1;
    }
    at = p + 1;
    if (closing) {
      if (open.empty() || open.back() != name)
        return fmt::format("</{}> closes <{}>", name, open.empty() ? "nothing" : open.back());
      open.pop_back();
      continue;
    }
    if (empty || (!xml && (name == "meta" || name == "br" || name == "input"))) continue;
    open.push_back(name);
    if (!xml && (name == "style" || name == "script")) skip_raw("</" + name + ">");
  }
  return open.empty() ? "" : fmt::format("<{}> is not closed", open.back());
}

std::size_t count(std::string_view text, std::string_view what) {
  std::size_t n = 0;
  for (std::size_t at = 0; (at = text.find(what, at)) != std::string_view::npos; at += what.size()) ++n;
  return n;
}

void check_page(const std::string& page) {
  const std::string problem = markup_problem(page, false);
  INFO(problem);
  CHECK(problem.empty());
  CHECK(count(page, "<script") == 1);
  CHECK(count(page, "<style") == 1);
  CHECK(page.find("default-src 'none'") != std::string::npos);
  CHECK(page.size() < 2'000'000);
}

// The page without its style and script, because golden files compare only the contents.
std::string bare(std::string page) {
  for (const std::string_view part : {page_style(), page_script()}) {
    const std::size_t at = page.find(part);
    REQUIRE(at != std::string::npos);
    page.erase(at, part.size());
  }
  return page;
}

// --- a story: n1 is the leader and is partitioned, n2 crashes while it creates its log

struct Story {
  trace::Trace incident;
  schedule::RunResult run;
  diagnose::Diagnosis diagnosis;
  DiagnosisReport report;
  PageContext context;

  Story() {
    fill(incident, kMonday + 20 * kSecond, false);
    diagnosis.found = schedule::parse_schedule(R"(
version = 1
name = "kv"
[[fault]]
id = "cut-n1"
kind = "partition"
node = "n1"
peers = ["n2", "n3"]
duration = "7.1s"
when = [ { elapsed = "1s" } ]
[[fault]]
id = "crash-n2"
kind = "crash"
node = "n2"
after = ["cut-n1"]
when = [ { function = "Raft::install_snapshot" }, { function = "flush_log", offset = 0x2a } ]
)",
                                               "story")
                          .value();
    const auto& faults = diagnosis.found->faults;
    diagnosis.verdict = Verdict::reproduced;
    diagnosis.target_reached = true;
    diagnosis.level = 3;
    diagnosis.schedules = 12;
    diagnosis.runs = 24;
    diagnosis.confirm_runs = 10;
    diagnosis.tally = {9, 1, 0};
    diagnosis.interval = diagnosis.tally.interval();
    diagnose::Rival rival;
    rival.id = "partition-n1-0a1b2c3d";
    rival.schedule.faults = {diagnosis.found->faults[0]};
    rival.tally = {3, 0, 0};
    rival.certain = true;
    rival.would_have_shown = "unanswered data between n1 and n2 (which the dump contains)";
    rival.test = "whether the counter of retransmitted segments rose";
    diagnosis.rivals = {rival};
    diagnosis.reason = "the schedule reproduces the bug in 9 of 10 confirming runs (90 %)";
    diagnosis.remarks.rate = "The bug then shows in 9 of 10 runs.";
    diagnosis.plan.failures = 4181;
    diagnosis.plan.discarded_share = 0.998;
    diagnosis.plan.discarded = {{"benign: in the profile too", 4100},
                                {"connection errors that the partition explains", 72}};
    diagnosis.plan.workload_ts = kMonday + 20 * kSecond;
    diagnosis.plan.begin_ts = kMonday + 18 * kSecond;
    diagnosis.plan.notes = {"the dump's host 'db-7' is taken for n1"};
    diagnose::Candidate cut, crash;
    cut.rank = 1;
    cut.kind = schedule::FaultKind::partition;
    cut.node = "n1";
    cut.count = 2;
    cut.first_ts = kMonday + 21 * kSecond;
    cut.last_ts = cut.first_ts + 7'100'000'000;
    cut.why = "n1 hears nothing from n2 and n3 for 7.1s";
    cut.fault = faults[0];
    crash.rank = 2;
    crash.kind = schedule::FaultKind::crash;
    crash.node = "n2";
    crash.count = 1;
    crash.first_ts = crash.last_ts = kMonday + 29'250'000'000;
    crash.why = "n2's main process was ended by SIGKILL";
    crash.fault = faults[1];
    diagnosis.plan.candidates = {cut, crash};
    schedule::Schedule none;
    schedule::Schedule first;
    first.faults = {faults[0]};
    diagnosis.tried = {
        {none, 0, {0, 1, 0}, "control run without faults: the oracle did not find the bug"},
        {first, 1, {0, 2, 0}, "the network fault alone; every planned fault fired and the oracle did not find the bug"},
        {*diagnosis.found, 3, {10, 1, 0}, "offset of the write in flush_log"}};

    run.number = 14;
    run.verdict = Verdict::reproduced;
    run.reason = "the oracle found the bug after faults 'cut-n1' and 'crash-n2' fired";
    run.oracle = schedule::OracleAnswer::hit;
    run.oracle_ns = 11'800'000'000;
    run.workload_end_ns = 12 * kSecond;
    run.seconds = 14.25;
    fill(run.trace, kMonday + 3600 * kSecond, true);
    schedule::FaultOutcome a, b;
    a.id = "cut-n1";
    a.armed = a.fired = true;
    a.fired_ns = 1'000'400'000;
    a.ended_ns = 8'100'500'000;
    a.node = "n1";
    a.detail = "n1 partitioned off, 412 packets dropped";
    a.conditions = {{true, 1'000'000'000, 0, 1, "", 0, 0, "1s passing"}};
    b.id = "crash-n2";
    b.armed = b.fired = true;
    b.fired_ns = 9'270'000'000;
    b.node = "n2";
    b.pid = 51;
    b.tid = 53;
    b.detail = "flush_log+0x2a";
    b.conditions = {{true, 8'900'000'000, 1, 1, "n2", 51, 53, "Raft::install_snapshot entered on n2"},
                    {true, 9'270'000'000, 1, 1, "n2", 51, 53, "flush_log+0x2a reached on n2"}};
    run.faults = {a, b};

    report.diagnosis = &diagnosis;
    report.name = "kv-lost-write";
    report.schedule_path = "out/my schedule.toml";
    report.config_path = "rose.toml";
    report.profile_path = "profile.json";
    report.page = "r/report.html";
    report.seed = 7;
    report.seconds = 312.4;
    report.backend = "seccomp: the kernel lacks bpf_override_return";
    context.nonce = "00112233445566778899aabbccddeeff";
    context.nodes = {"n1", "n2", "n3"};
    context.environment = {{"Machine", "test, Linux 6.18"}, {"Dump", "dump.bin"}};
  }

  [[nodiscard]] std::vector<Source> sources() const { return {Source(incident)}; }
  [[nodiscard]] std::string page() const { return diagnosis_html(report, sources(), &run, context); }

 private:
  static void fill(trace::Trace& trace, std::int64_t zero, bool injected) {
    trace.meta.workload_ts = zero;
    trace.meta.nodes = {"n1", "n2", "n3"};
    trace.meta.addresses = {"n1=10.83.0.1", "n2=10.83.0.2", "n3=10.83.0.3"};
    trace.meta.end_ns = zero + 13 * kSecond;
    trace.meta.trigger = "end: the run is over";
    const trace::StringId n[] = {trace.strings.intern("n1"), trace.strings.intern("n2"), trace.strings.intern("n3")};
    const auto add = [&](double seconds, trace::StringId node, trace::EventType type) -> trace::Event& {
      trace::Event& e = trace.events.emplace_back();
      e.ts_ns = zero + static_cast<std::int64_t>(seconds * 1e9);
      e.node = node;
      e.type = type;
      e.pid = 41 + 10 * static_cast<int>(node == n[1]) + 20 * static_cast<int>(node == n[2]);
      e.tid = e.pid;
      return e;
    };
    const auto start = [&](double at, trace::StringId node) {
      trace::Event& e = add(at, node, trace::EventType::ps);
      e.state = trace::ProcessState::started;
      e.flags = trace::kMain;
    };
    for (int i = 0; i < 3; ++i) start(-1.5 + 0.1 * i, n[i]);
    for (int i = 0; i < 60; ++i) {
      trace::Event& e = add(0.17 * i, n[i % 3], trace::EventType::scf);
      e.syscall = 257;
      e.err = 2;
      e.path = trace.strings.intern("/var/lib/kv/snapshot." + std::to_string(i % 4));
    }
    for (int i = 0; i < 30; ++i) {
      trace::Event& e = add(1.1 + 0.22 * i, n[0], trace::EventType::scf);
      e.syscall = 42;
      e.err = 110;
      e.peer = trace.strings.intern(i % 2 == 0 ? "10.83.0.2:7000" : "10.83.0.3:7000");
    }
    for (int i = 0; i < 12; ++i) {
      trace::Event& e = add(0.4 + 0.9 * i, n[i % 3], trace::EventType::sys);
      e.syscall = 82;
      e.path = trace.strings.intern("/var/lib/kv/epoch.tmp");
      e.path2 = trace.strings.intern("/var/lib/kv/epoch");
    }
    const std::pair<double, const char*> functions[] = {
        {2.4, "Raft::become_leader"}, {8.9, "Raft::install_snapshot"}, {9.2, "flush_log"}};
    for (const auto& [at, function] : functions) {
      trace::Event& e = add(at, n[1], trace::EventType::af);
      e.function = trace.strings.intern(function);
    }
    for (int other = 1; other <= 2; ++other) {
      trace::Event& e = add(8.1, n[0], trace::EventType::nd);
      e.src = trace.strings.intern(fmt::format("10.83.0.{}", other + 1));
      e.dst = trace.strings.intern("10.83.0.1");
      e.dport = 7000;
      e.protocol = trace::Protocol::tcp;
      e.duration_ms = 7100;
      e.packets = 412;
    }
    trace::Event& crash = add(9.27, n[1], trace::EventType::ps);
    crash.state = trace::ProcessState::crashed;
    crash.signal = 9;
    crash.flags = static_cast<std::uint16_t>(trace::kMain | (injected ? trace::kInjected : 0));
    start(10.27, n[1]);
    trace::sort_by_time(trace);
  }
};

ReplayReport replay_story() {
  Story story;
  ReplayReport report;
  report.name = "kv-lost-write";
  report.schedule = *story.diagnosis.found;
  report.schedule_path = "schedule.toml";
  report.config_path = "rose.toml";
  report.began_ns = kMonday;
  report.backend = "seccomp";
  report.seconds = 43.5;
  story.run.trace = {};
  for (int i = 1; i <= 3; ++i) {
    report.runs.push_back(story.run);
    report.runs.back().number = i;
  }
  schedule::RunResult& other = report.runs[1];
  other.verdict = Verdict::inconclusive;
  other.oracle = schedule::OracleAnswer::miss;
  other.faults[1].fired = other.faults[1].armed = false;
  other.faults[1].conditions[1] = {false, 0, 2, 3, "", 0, 0, "flush_log+0x2a reached on n2"};
  other.faults[1].why_not =
      "condition 2 of 2 (flush_log+0x2a reached on n2) was not met: it was seen 2 times, 3 are wanted";
  other.reason = "fault 'crash-n2' did not fire: " + other.faults[1].why_not;
  report.tally = {2, 0, 1};
  report.verdict = Verdict::reproduced;
  report.reason = "the rate 1.00 is at or above the target 0.80";
  return report;
}

}  // namespace

TEST_CASE("the page of a diagnosis equals its golden file", "[page]") {
  const Story story;
  const std::string page = story.page();
  if (const char* folder = std::getenv("ROSE_PAGE_DIR"))
    std::ofstream(std::filesystem::path(folder) / "diagnosis.html") << page;
  check_page(page);
  check_golden("report/diagnosis.html", bare(page));
  for (const char* words : {"cut-n1", "crash-n2", "workload begins", "the oracle found the bug", "flush_log",
                            "benign: in the profile too", "db-7", "--expect fixed", "seen in the dump as", "control"}) {
    INFO(words);
    CHECK(page.find(words) != std::string::npos);
  }
}

TEST_CASE("the page of a diagnosis from logs has the failure's log beside the run's, with the fault", "[page]") {
  Story story;
  const std::int64_t zero = story.run.trace.meta.workload_ts;
  REQUIRE(zero != 0);
  const std::int64_t fired = zero + story.run.faults[0].fired_ns;
  logs::SideBySide n1{"n1", {}};
  n1.rows = {{"store opened", "store opened", logs::kNoTime, fired - kSecond, 0},
             {"", "", logs::kNoTime, logs::kNoTime, 7},
             {"cannot reach <n2>", "cannot reach <n3>", logs::kNoTime, fired + kSecond, 0},
             {"giving up", "", logs::kNoTime, logs::kNoTime, 0}};
  story.report.logs = {n1};
  const std::string page = story.page();
  check_page(page);
  const std::size_t section = page.find("The failure's logs beside the run's");
  REQUIRE(section != std::string::npos);
  const std::size_t before = page.find("store opened", section), fault = page.find("cut-n1", section),
                    after = page.find("cannot reach &lt;n3&gt;", section);
  CHECK(before < fault);
  CHECK(fault < after);
  CHECK(after != std::string::npos);
  CHECK(page.find("7 rows left out", section) != std::string::npos);
  CHECK(Story().page().find("The failure's logs beside the run's") == std::string::npos);
}

TEST_CASE("for a schedule that reproduces too rarely the page suggests replaying recordings") {
  Story story;
  const auto says = [&](bool reached, bool recorded) {
    story.diagnosis.target_reached = reached;
    story.report.recorded = recorded;
    const std::vector<NextStep> steps = next_steps(story.report);
    return std::any_of(steps.begin(), steps.end(), [](const NextStep& step) {
      return step.command.starts_with("rose replay ") && step.command.ends_with(" --report DIR");
    });
  };
  CHECK(says(false, true));
  CHECK_FALSE(says(false, false));
  CHECK_FALSE(says(true, true));
}

TEST_CASE("the page of a diagnosis without a result lists the next trials", "[page]") {
  Story story;
  story.diagnosis.found.reset();
  story.diagnosis.verdict = Verdict::not_reproduced;
  story.diagnosis.target_reached = false;
  story.diagnosis.reason = "none of the 12 schedules tried reproduced the bug";
  story.diagnosis.plan.workload_ts = 0;
  story.report.schedule_path.clear();
  schedule::Schedule next;
  next.faults.emplace_back();
  next.faults[0].id = "kill-n2";
  next.faults[0].kind = schedule::FaultKind::crash;
  next.faults[0].node = "n2";
  story.diagnosis.next = {{next, 2, "after what <n2> did before"}};
  const std::string page = diagnosis_html(story.report, story.sources(), nullptr, story.context);
  check_page(page);
  CHECK(page.find("not-reproduced") != std::string::npos);
  CHECK(page.find("Not tried</h2>") != std::string::npos);
  CHECK(page.find("after what &lt;n2&gt; did before") != std::string::npos);
  CHECK(diagnosis_text(story.report)
            .find("not tried, most likely first:\n  1. level 2: after what <n2> did before\n     kill n2") !=
        std::string::npos);
  CHECK(nlohmann::json::parse(diagnosis_json(story.report))["not_tried"][0]["faults"][0]["id"] == "kill-n2");
  CHECK(page.find("The schedule</h2>") == std::string::npos);
  CHECK(page.find("Times are relative to the first suspected fault") != std::string::npos);
  // A page must be valid even without any content.
  diagnose::Diagnosis empty;
  empty.reason = "the dump holds no failure";
  story.report.diagnosis = &empty;
  check_page(diagnosis_html(story.report, {}, nullptr, {story.context.nonce, {}, {}}));
}

TEST_CASE("the page of a replay equals its golden file", "[page]") {
  const ReplayReport report = replay_story();
  const Story story;
  std::vector<schedule::RunResult> shown = {report.runs[0], report.runs[1]};
  shown[0].trace = trace::Trace(story.run.trace);
  const std::string page = replay_html(report, shown, story.context);
  if (const char* folder = std::getenv("ROSE_PAGE_DIR"))
    std::ofstream(std::filesystem::path(folder) / "replay.html") << page;
  check_page(page);
  check_golden("report/replay.html", bare(page));
  CHECK(count(page, "<svg class=\"tl\"") == 2);
  CHECK(page.find("was not met: it was seen 2 times, 3 are wanted") != std::string::npos);
}

TEST_CASE("the page of a replay shows which part of the schedule's order happened", "[page]") {
  ReplayReport report = replay_story();
  const std::string without = replay_html(report, {report.runs[0]}, Story().context);
  CHECK(without.find("The order of run") == std::string::npos);
  report.schedule.order = "created * cut-n1 * <asked>";
  report.schedule.events.push_back({"created", "n1", {}});
  report.runs[0].order = {{"asked", "step", false, 0, "it comes after 'cut-n1', which did not come", 0},
                          {"cut-n1", "fault", true, 3 * kSecond, "", 0},
                          {"created", "event", true, 1'500'000'000, "", 250'000'000}};
  report.runs[0].order_broken = "'cut-n1' came before 'created'";
  const std::string page = replay_html(report, {report.runs[0]}, Story().context);
  check_page(page);
  const std::size_t section = page.find("The order of run 1");
  REQUIRE(section != std::string::npos);
  for (const char* words :
       {"created * cut-n1 * &lt;asked&gt;", "Not in this order: &#39;cut-n1&#39; came before &#39;created&#39;",
        "+1.500 s", "250ms", "never", "it comes after &#39;cut-n1&#39;, which did not come"}) {
    INFO(words);
    CHECK(page.find(words, section) != std::string::npos);
  }
  CHECK(page.find("<td>created</td>", section) < page.find("<td>cut-n1</td>", section));
  CHECK(page.find("<td>cut-n1</td>", section) < page.find("<td>asked</td>", section));
  CHECK(page.find("event &#39;created&#39; of the order, held for 250ms until its turn") < section);
  const auto json = Json::parse(replay_json(report));
  CHECK(json["run_results"][0]["order"][0]["why_not"] == "it comes after 'cut-n1', which did not come");
  CHECK(json["run_results"][0]["order_broken"] == "'cut-n1' came before 'created'");
}

TEST_CASE("results as JSON, text and JUnit XML equal their golden files", "[results]") {
  const Story story;
  check_golden("report/diagnosis.json", Json::parse(diagnosis_json(story.report)).dump(1) + "\n");
  check_golden("report/diagnosis.txt", diagnosis_text(story.report));
  ReplayReport report = replay_story();
  check_golden("report/replay.json", Json::parse(replay_json(report)).dump(1) + "\n");
  check_golden("report/replay.txt", replay_text(report));
  check_golden("report/replay.xml", replay_junit(report));

  // The test report must say "failed" exactly if the command's exit code does.
  CHECK(report.passed());
  CHECK(replay_junit(report).find("tests=\"4\" failures=\"0\" errors=\"0\" skipped=\"1\"") != std::string::npos);
  report.expect_fixed = true;
  report.reason = "the bug still occurs: in 2 of 2 conclusive runs";
  CHECK_FALSE(report.passed());
  CHECK(replay_junit(report).find("tests=\"4\" failures=\"3\" errors=\"0\" skipped=\"1\"") != std::string::npos);
  report.verdict = Verdict::inconclusive;
  CHECK(replay_junit(report).find("tests=\"4\" failures=\"0\" errors=\"2\" skipped=\"2\"") != std::string::npos);
  CHECK(markup_problem(replay_junit(report), true).empty());
}

TEST_CASE("several replays are reported as one suite", "[results]") {
  SuiteReport suite;
  const auto entry = [&](const std::string& name, Verdict verdict, schedule::Tally tally, const std::string& reason) {
    ReplayReport report = replay_story();
    report.verdict = verdict;
    report.tally = tally;
    report.reason = reason;
    suite.entries.push_back({name, std::move(report), std::nullopt});
  };
  entry("split/first", Verdict::reproduced, {3, 0, 0}, "the rate 1.00 is at or above the target 0.80");
  CHECK(suite.exit_code() == 0);
  CHECK(suite.verdict() == Verdict::reproduced);
  entry("seldom", Verdict::not_reproduced, {2, 1, 0}, "the rate 0.67 is below the target 0.80");
  CHECK(suite.exit_code() == 1);
  suite.entries[1].report.quarantine = 0.5;
  CHECK(suite.exit_code() == 0);
  CHECK(suite.count(Outcome::flaky) == 1);
  entry("who # knows\n1..9", Verdict::inconclusive, {0, 0, 3}, "3 of 3 runs were inconclusive: <no> \x1b[31m answer");
  CHECK(suite.exit_code() == 4);
  CHECK(suite.verdict() == Verdict::inconclusive);
  entry("missed", Verdict::not_reproduced, {0, 3, 0}, "the rate 0.00 is below the target 0.80");
  CHECK(suite.exit_code() == 1);
  suite.entries.push_back(
      {"broken", replay_story(), Error{ErrorKind::input, "rose.toml: no such 'server'", "install it"}});
  suite.entries.back().report.runs.clear();
  suite.seconds = 200;
  CHECK(suite.exit_code() == 2);
  CHECK(suite.verdict() == Verdict::not_reproduced);
  check_golden("report/suite.json", Json::parse(suite_json(suite)).dump(1) + "\n");
  check_golden("report/suite.txt", suite_text(suite));
  check_golden("report/suite.xml", suite_junit(suite));
  check_golden("report/suite.tap", suite_tap(suite));
  CHECK(markup_problem(suite_junit(suite), true).empty());
  CHECK(suite_text(suite).find('\x1b') == std::string::npos);
}

TEST_CASE("hostile names are escaped on every page", "[page]") {
  const std::string hostile[] = {"</script><script>alert(1)</script>",
                                 "\"><img src=x onerror=alert(1)>",
                                 "' onmouseover='x",
                                 "<!--",
                                 "]]>",
                                 "&lt;b&gt;",
                                 "\x1b[31m\x01\x7f",
                                 "\xff\xfe\xc3",
                                 std::string("a\0b", 3),
                                 "\xed\xa0\x80",
                                 "\xef\xbf\xbe",
                                 "\xe2\x80\xae"
                                 "gnp.exe",
                                 "</title></svg></pre></td>",
                                 "{{0}} {} %s ${node}",
                                 "\xc2\x9b"
                                 "31m",
                                 "javascript:alert(1)",
                                 std::string(5000, '&')};
  for (const std::string& evil : hostile) {
    INFO(evil);
    Story story;
    const trace::StringId id = story.incident.strings.intern(evil);
    for (trace::Event& e : story.incident.events) {
      e.path = e.path != 0 ? id : 0;
      e.function = e.function != 0 ? id : 0;
      e.peer = e.peer != 0 ? id : 0;
      e.src = e.dst = id;
      if (&e - story.incident.events.data() > 20) e.node = id;
    }
    story.incident.meta.trigger = evil;
    story.incident.meta.addresses.push_back(evil + "=" + evil);
    story.diagnosis.reason = story.diagnosis.remarks.rate = evil;
    story.diagnosis.remarks.places = story.diagnosis.remarks.doubts = story.diagnosis.remarks.simpler = {evil};
    story.diagnosis.plan.notes = {evil};
    story.diagnosis.plan.discarded[0].why = story.diagnosis.plan.candidates[0].why = evil;
    for (diagnose::Tried& tried : story.diagnosis.tried) tried.note = evil;
    for (schedule::FaultOutcome& outcome : story.run.faults) {
      outcome.detail = evil;
      for (schedule::ConditionOutcome& condition : outcome.conditions) condition.words = condition.node = evil;
    }
    for (schedule::Fault& fault : story.diagnosis.found->faults) {
      fault.call.path = evil;
      if (!fault.when.empty()) fault.when[0].function = evil;
    }
    story.report.name = story.report.schedule_path = story.report.config_path = evil;
    story.context.environment.emplace_back(evil, evil);
    story.context.nodes.push_back(evil);
    const std::string page = story.page();
    check_page(page);
    CHECK(page.find("<img") == std::string::npos);
    CHECK(Json::accept(diagnosis_json(story.report)));
    const std::string text = diagnosis_text(story.report);
    CHECK(text.find('\x1b') == std::string::npos);
    CHECK(text.find('\x01') == std::string::npos);

    ReplayReport report = replay_story();
    report.name = report.reason = report.backend = report.schedule.name = evil;
    for (schedule::RunResult& run : report.runs) {
      run.reason = evil;
      run.directory = "/tmp/" + evil;
      for (schedule::FaultOutcome& outcome : run.faults) outcome.detail = outcome.why_not = evil;
    }
    const std::string problem = markup_problem(replay_junit(report), true);
    INFO(problem);
    CHECK(problem.empty());
    CHECK(Json::accept(replay_json(report)));
    check_page(replay_html(report, report.runs, story.context));
    check_page(dump_html(story.incident, {}, evil, story.context));
  }
  for (std::uint64_t seed = 1; seed <= 30; ++seed) {
    INFO(seed);
    check_page(dump_html(trace::test::random_trace(seed, 300), {}, "random", {"abc", {}, {}}));
  }
}

TEST_CASE("the page of a large trace is bounded in size and counts combined marks", "[page]") {
  Story story;
  const trace::Trace large = trace::test::realistic_trace(3, trace::test::big());
  story.diagnosis.plan.workload_ts = large.events.front().ts_ns;
  const std::string page = diagnosis_html(story.report, {Source(large)}, &story.run, story.context);
  check_page(page);

  const std::string alone = dump_html(large, {}, "large", story.context);
  if (const char* folder = std::getenv("ROSE_PAGE_DIR"))
    std::ofstream(std::filesystem::path(folder) / "large.html") << alone;
  check_page(alone);
  const std::size_t marks = count(alone.substr(alone.find("class=\"z\"")), "<rect") + count(alone, "<use");
  CHECK(marks > 1000);
  CHECK(marks <= 3600);
  // The counts of all marks together are the number of events, so no event is missing.
  std::uint64_t counted = 0;
  const std::string marked = alone.substr(alone.find("class=\"z\""));
  for (std::size_t at = 0; (at = marked.find("<title>", at)) != std::string::npos; ++at) {
    const std::string_view words = std::string_view(marked).substr(at + 7, marked.find("</title>", at) - at - 7);
    const std::string_view first = words.substr(0, words.find('\n'));
    const std::size_t colon = first.find(": ");
    if (colon == std::string_view::npos) {
      counted += 1;
      continue;
    }
    std::uint64_t number = 0;
    for (const char c : first.substr(colon + 2)) {
      if (c == ' ') break;
      if (c != ',') number = 10 * number + static_cast<std::uint64_t>(c - '0');
    }
    counted += number;
  }
  CHECK(counted == large.events.size());

  // These paths are long, and consist of the characters that need the most space when they are escaped.
  trace::Trace wide = trace::test::realistic_trace(4, 20'000);
  for (std::size_t i = 0; i < wide.events.size(); ++i)
    wide.events[i].path = wide.strings.intern(std::string(4000, '&') + std::to_string(i));
  for (trace::Event& e : wide.events) e.node = wide.strings.intern("node-" + std::to_string(&e - wide.events.data()));
  check_page(dump_html(wide, {}, "wide", story.context));
}

TEST_CASE("an explanation as HTML, Markdown and JSON escapes hostile names", "[page]") {
  const std::string hostile[] = {"Store::install(unsigned long)",
                                 "</script><script>alert(1)</script>",
                                 "\"><img src=x onerror=alert(1)>",
                                 "| a | `b` <i>",
                                 "\x1b[31m\x01\x7f",
                                 "\xff\xfe\xc3",
                                 "line\nbreak"};
  for (const std::string& evil : hostile) {
    INFO(evil);
    Story story;
    ExplanationReport report;
    explain::Explanation& e = report.explanation;
    e.verdict = explain::Verdict::explained;
    e.reason = e.symptom = e.fault = evil;
    e.faults = e.limits = {evil};
    explain::Suspect suspect;
    suspect.function = suspect.file = suspect.node = suspect.why = evil;
    suspect.line = 12;
    suspect.score = 0.9;
    e.suspects = {suspect, suspect};
    explain::DifferenceText difference;
    difference.node = difference.words = evil;
    e.differences = {difference};
    schedule::Stack stack;
    stack.node = stack.thread = stack.why = stack.incomplete = evil;
    stack.frames.resize(2);
    stack.frames[0].function = stack.frames[0].file = stack.frames[1].module = evil;
    e.stacks = {{evil, stack}};
    for (const auto kind :
         {explain::StoryLine::Kind::fault, explain::StoryLine::Kind::difference, explain::StoryLine::Kind::symptom}) {
      explain::StoryLine line;
      line.kind = kind;
      line.at_ns = 2 * kSecond;
      line.node = "n1";
      line.text = line.evidence = evil;
      e.story.push_back(line);
    }
    e.story[1].first_wrong = true;
    explain::Round round;
    round.functions = {evil};
    round.asked = 7;
    round.differing = 2;
    round.runs = 10;
    round.seconds = 60;
    round.share = 0.021;
    e.rounds = {round};
    explain::ExchangeTable exchange;
    exchange.from = exchange.to = exchange.differs = evil;
    exchange.port = 7000;
    exchange.failing = {30, 34, 300, 340, 2};
    exchange.sound = {4, 4, 40, 40, 0};
    e.exchanges = {exchange};
    report.name = report.schedule_path = report.config_path = report.written = evil;
    report.schedule = *story.diagnosis.found;
    report.story = story.run;
    const std::string page = explanation_html(report, story.context);
    check_page(page);
    for (const char* what :
         {"In short", "Root fault", "The code that received it", "The first difference to correct runs",
          "The first suspects", "Symptom", "Rounds of queries", "7 queries about", "2.1 % of their time",
          "Messages between nodes", "30 to 34 messages, 300 to 340 bytes, up to 2 never received"})
      CHECK(page.find(what) != std::string::npos);
    CHECK(page.find("<img") == std::string::npos);
    CHECK(page.find("step of the story") != std::string::npos);
    const auto json = Json::parse(explanation_json(report));
    for (const char* key : {"verdict", "fault", "stacks", "suspects", "story", "seconds"}) CHECK(json.contains(key));
    CHECK(json["suspects"][1]["rank"] == 2);
    CHECK(json["story"].size() == 3);
    CHECK(json["exchanges"][0]["failing"]["messages"] == nlohmann::json({30, 34}));
    CHECK(json["exchanges"][0]["sound"]["never_taken"] == 0);
    CHECK(json["stacks"][0]["frames"].size() == 2);
    const std::string markdown = explanation_markdown(report), text = explanation_text(report);
    CHECK(markdown.find("<script>") == std::string::npos);
    CHECK(markdown.find("\n| 2 | ") != std::string::npos);  // no name may end the row of the table
    for (const std::string& out : {markdown, text}) {
      CHECK(out.find('\x1b') == std::string::npos);
      CHECK(out.find('\x01') == std::string::npos);
    }
  }
}

TEST_CASE("times and durations are printed readably", "[page]") {
  CHECK(moment_text(0) == "0 s");
  CHECK(moment_text(1'234'567'890) == "+1.234568 s");
  CHECK(moment_text(-500'000'000) == "-0.5 s");
  CHECK(format_seconds(3.21) == "3.2 s");
  CHECK(format_seconds(245) == "4 min 5 s");
  CHECK(format_seconds(7322) == "2 h 2 min");
  CHECK(escape("<a & 'b'>\n\t\"") == "&lt;a &amp; &#39;b&#39;&gt;\n\t&quot;");
  CHECK(escape("é 日 😀") == "é 日 😀");
  CHECK(escape("\xe2\x80\xae") == "\\xe2\\x80\\xae");
  CHECK(shorten("日本語", 8) == "日...");
  CHECK(shorten("abc", 3) == "abc");
}

TEST_CASE("a page's style and script load nothing from outside", "[page]") {
  for (const std::string_view part : {page_style(), page_script()}) {
    CHECK(part.size() > 1000);
    for (const char* outside :
         {"url(", "@import", "fetch(", "XMLHttp", "innerHTML", "insertAdjacentHTML", "document.write", "eval("})
      CHECK(part.find(outside) == std::string_view::npos);
    // The only address is that of the SVG namespace, which browsers do not open.
    CHECK(count(part, "http") == count(part, "http://www.w3.org/2000/svg"));
    CHECK(part.find("</script") == std::string_view::npos);
  }
}
