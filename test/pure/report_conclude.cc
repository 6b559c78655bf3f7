// Which verdict a report draws from repeated runs of a schedule.
#include <catch2/catch.hpp>

#include "report/suite.h"

using namespace rose;
using namespace rose::report;
using schedule::Verdict;

namespace {

constexpr const char* kSilent = "no packet was stopped";

schedule::FaultOutcome outcome(const std::string& id, bool fired, const std::string& no_effect = "") {
  schedule::FaultOutcome made;
  made.id = id;
  made.armed = made.fired = fired;
  made.no_effect = no_effect;
  if (!fired) made.why_not = "no call came";
  return made;
}

// The report for a schedule with the faults "cut" and "late". Runs are added to it.
class Made {
 public:
  explicit Made(bool expect_fixed) {
    report.expect_fixed = expect_fixed;
    report.usual_work = profile::WorkloadUse{.runs = 1, .failed = 0, .sent = 5, .received = 5};
    report.work_seen = true;
    for (const char* id : {"cut", "late"}) {
      report.schedule.faults.emplace_back();
      report.schedule.faults.back().id = id;
      report.schedule.faults.back().kind = schedule::FaultKind::partition;
      report.schedule.faults.back().node = "n1";
      report.schedule.faults.back().optional = report.schedule.faults.size() > 1;
    }
  }
  Made& run(schedule::OracleAnswer oracle, std::vector<schedule::FaultOutcome> outcomes, std::string doubt = "") {
    schedule::RunResult& run = report.runs.emplace_back();
    run.number = static_cast<int>(report.runs.size());
    run.oracle = oracle;
    run.faults = std::move(outcomes);
    run.doubt = std::move(doubt);
    schedule::judge(run, report.schedule, "it exited with status 2");
    report.tally.add(run.verdict);
    return *this;
  }
  void concludes(Verdict verdict, const std::string& reason, int exit_code) {
    conclude(report);
    CHECK(verdict_name(report.verdict) == verdict_name(verdict));
    CHECK(report.reason == reason);
    CHECK(SuiteEntry{"x", report, std::nullopt}.exit_code() == exit_code);
  }

  ReplayReport report;
};

}  // namespace

TEST_CASE("a build is fixed only if the faults were effective and the workload did its work", "[conclude]") {
  using enum schedule::OracleAnswer;
  const auto good = [] { return std::vector{outcome("cut", true), outcome("late", true)}; };
  const auto fixed = "the bug did not occur in any run, and every fault that is not optional was effective";
  Made(true).run(miss, good()).run(miss, good()).concludes(Verdict::not_reproduced, fixed, 0);
  Made(true)
      .run(miss, {outcome("cut", true), outcome("late", false)})
      .run(miss, {outcome("cut", true), outcome("late", true, kSilent)})
      .concludes(Verdict::not_reproduced, fixed, 0);
  Made(true)
      .run(miss, good())
      .run(hit, good())
      .concludes(Verdict::reproduced, "the bug still occurs: in 1 of 2 conclusive runs", 1);
  // If even one run is inconclusive, the bug does not count as fixed.
  Made(true)
      .run(miss, good())
      .run(miss, {outcome("cut", true, kSilent), outcome("late", true)})
      .concludes(Verdict::inconclusive,
                 "1 of 2 runs were inconclusive: fault 'cut' had no effect: no packet was stopped", 4);
  Made(true)
      .run(miss, good())
      .run(miss, good(), "the disk is full")
      .concludes(Verdict::inconclusive, "1 of 2 runs were inconclusive: the disk is full", 4);
  Made(true).concludes(Verdict::inconclusive, "0 of 0 runs were inconclusive: ", 4);
  // An optional fault may have no effect in some of the runs, but at least one fault must be effective in some run.
  Made optional(true);
  optional.report.schedule.faults[0].optional = true;
  optional.run(miss, {outcome("cut", true, kSilent), outcome("late", false)})
      .concludes(Verdict::inconclusive,
                 "the bug did not occur, but no fault was effective in any run: 'cut': no packet was stopped", 4);
  optional.run(miss, {outcome("cut", true, kSilent), outcome("late", true)})
      .concludes(Verdict::not_reproduced, fixed, 0);
  // If a schedule plans nothing, its runs do not show that a fix works. A planned order is enough, because an order
  // alone may cause a bug.
  Made none(true);
  none.report.schedule.faults.clear();
  none.run(miss, {}).concludes(
      Verdict::inconclusive,
      "the bug did not occur, but the schedule plans neither a fault nor an order, which a fix could withstand", 4);
  none.report.schedule.order = "first before second";
  none.run(miss, {}).concludes(Verdict::not_reproduced, "the bug did not occur in any run; no fault was planned", 0);
}

TEST_CASE("a workload that failed every time is inconclusive unless a profile says that it works", "[conclude]") {
  using enum schedule::OracleAnswer;
  const auto made = [](int failed) {
    Made all(true);
    for (int i = 0; i < 2; ++i) all.run(miss, {outcome("cut", true), outcome("late", true)});
    all.report.failed_workloads = failed;
    return all;
  };
  const auto fixed = "the bug did not occur in any run, and every fault that is not optional was effective";
  made(1).concludes(Verdict::not_reproduced, fixed, 0);
  // the workload reached the nodes, and the profile shows that it works without faults
  made(2).concludes(Verdict::not_reproduced, fixed, 0);
  Made unprofiled = made(2);
  unprofiled.report.usual_work.reset();
  unprofiled.concludes(
      Verdict::inconclusive,
      "the bug did not occur, but the workload failed in every run, and no profile says that it does its "
      "work without faults",
      4);
  Made idle = made(2);
  idle.report.work_seen = false;
  idle.concludes(
      Verdict::inconclusive,
      "the bug did not occur, but the workload failed in every run, and exchanged no data with the nodes that "
      "rose could see",
      4);
  // If the bug occurs, the workload has worked, whatever its exit status is.
  Made shows(true);
  shows.run(hit, {outcome("cut", true), outcome("late", true)});
  shows.report.failed_workloads = 1;
  shows.report.usual_work.reset();
  shows.concludes(Verdict::reproduced, "the bug still occurs: in 1 of 1 conclusive runs", 1);
}

TEST_CASE("every form of a report has the requested, fired and effective counts with the reason", "[conclude]") {
  using enum schedule::OracleAnswer;
  Made made(true);
  made.run(miss, {outcome("cut", true), outcome("late", true)})
      .run(miss, {outcome("cut", true, kSilent), outcome("late", false)});
  made.report.unchecked = {"whether the workload exchanges data was not checked"};
  conclude(made.report);
  const auto json = Json::parse(replay_json(made.report));
  const auto& cut = json.at("faults").at(0);
  CHECK(cut.at("requested") == 2);
  CHECK(cut.at("fired") == 2);
  CHECK(cut.at("effective") == 1);
  CHECK(cut.at("no_effect") == kSilent);
  CHECK_FALSE(cut.contains("optional"));
  const auto& late = json.at("faults").at(1);
  CHECK(late.at("fired") == 1);
  CHECK(late.at("effective") == 1);
  CHECK(late.at("optional") == true);
  CHECK(late.at("why_not") == "no call came");
  CHECK(json.at("unchecked").at(0) == "whether the workload exchanges data was not checked");
  CHECK(json.at("run_results").at(1).at("faults").at(0).at("effective") == false);
  const std::string text = replay_text(made.report);
  CHECK(text.find("\nfault cut: fired in 2 of 2 runs, effective in 1 (no packet was stopped)\n") != std::string::npos);
  CHECK(text.find("\noptional fault late: fired in 1 of 2 runs, effective in 1 (no call came)\n") != std::string::npos);
  CHECK(text.find("not checked: whether the workload exchanges data was not checked") != std::string::npos);
  const std::string junit = replay_junit(made.report);
  CHECK(junit.find("<error message=\"1 of 2 runs were inconclusive: fault &#39;cut&#39; had no effect: no packet was "
                   "stopped\"") != std::string::npos);
  CHECK(junit.find("effective in 1 (no packet was stopped)") != std::string::npos);
}

TEST_CASE("if a fix was tested without an effective fault, the report says what to do next", "[conclude]") {
  using enum schedule::OracleAnswer;
  const auto text = [](bool expect_fixed, bool optional, bool fired) {
    Made made(expect_fixed);
    made.report.schedule.faults.resize(1);
    made.report.schedule.faults[0].optional = optional;
    made.run(miss, {outcome("cut", fired)});
    conclude(made.report);
    return replay_text(made.report);
  };
  const std::string advice = "\nwhat to do next: replay it with the build that has the bug.";
  CHECK(text(true, false, false).find(advice) != std::string::npos);
  CHECK(text(true, true, false).find(advice) != std::string::npos);
  CHECK(text(true, false, true).find(advice) == std::string::npos);
  CHECK(text(false, false, false).find(advice) == std::string::npos);
}
