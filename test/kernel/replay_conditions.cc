// Conditions are derived from the events of a run, and checked against the same run. Each must count as many calls as
// the tracer recorded, with either backend.
#include <map>

#include "diagnose/context.h"
#include "diagnose/survey.h"
#include "replay_rig.h"

using namespace rose;
using namespace rose::test;

namespace {

// A script that makes every kind of call that is recorded when it succeeds: opens of one path with and without the
// flags that make an open an event, renames and links with both of their names, calls on both ends of sockets, and
// calls in other processes, threads and programs.
std::string everything() {
  std::string script = "V=" + kVictim + "\n";
  script +=
      "$V create log write a close append log write b fsync fdatasync ftruncate 1 close openr log close openr log\n"
      "$V openat . made threads 3 2 append log close ; fork create log append log close rename log old ; openr old\n"
      "$V create epoch.tmp rename epoch.tmp epoch rename epoch epoch.old create epoch.new rename epoch.new epoch\n"
      "$V mkdir folder chdir folder create log unlink log rename none nowhere unlink none\n"
      "ln epoch hard; ln -s epoch soft; ln -s soft softer; rm hard; rmdir folder; mv epoch last; ln last epoch\n"
      // The clients wait for an answer, which shows that a thread of the server has accepted the connection.
      "$V server 20741 server6 20742 unix sock uconnect sock connect 127.0.0.1 20741 send x recv 1 "
      "connect6 20742 send x recv 1 connect 127.0.0.1 20741 send x recv 1 connect 127.0.0.1 20743\n"
      "$V print done gate ../end\n";
  return script;
}

// True for the execve that starts the node's program. Rose itself makes this call, so conditions do not count it,
// although the tracer records it.
bool is_launch(const trace::Trace& trace, const trace::Event& event) {
  const auto start = std::find_if(trace.events.begin(), trace.events.end(), [](const trace::Event& one) {
    return one.type == trace::EventType::ps && one.state == trace::ProcessState::started &&
           (one.flags & trace::kMain) != 0;
  });
  const auto exec = std::find_if(trace.events.begin(), trace.events.end(), [&](const trace::Event& one) {
    return one.type == trace::EventType::sys && start != trace.events.end() && one.pid == start->pid &&
           kernel::syscall_name(one.syscall) == "execve";
  });
  return exec != trace.events.end() && &*exec == &event;
}

std::string name_of(const schedule::Condition& condition) {
  schedule::Schedule schedule;
  schedule::Fault fault;
  fault.id = "f";
  fault.kind = schedule::FaultKind::crash;
  fault.node = "n1";
  fault.when = {condition};
  schedule.faults = {fault};
  return schedule::in_words(schedule);
}

config::Config deployment_of(const std::string& script) {
  auto config = one_node("conditions", {"/bin/sh", "-c", script},
                         "until grep -q done n1/stdout.log; do sleep 0.01; done", 60 * kSecond);
  config.inject.syscall = Rig::overriding() ? config::Backend::override_return : config::Backend::seccomp;
  return config;
}

}  // namespace

TEST_CASE("conditions derived from a run's events count these events and no others", "[replay][conditions]") {
  if (Rig::overriding())
    if (const auto found = kernel::probe("override_return"); !found.ok)
      skip_case("needs bpf_override_return: " + found.detail);
  const config::Config config = deployment_of(everything());
  const Folder first_folder;
  const auto first = run_of(config, run_options(config, first_folder));
  std::map<std::string, diagnose::Question> questions;  // by the condition's key
  for (const trace::Event& event : first.result.trace.events) {
    if (is_launch(first.result.trace, event)) continue;
    if (const auto made = diagnose::context_event(first.result.trace, event, "n1"))
      questions.try_emplace(made->key, diagnose::Question{"n1", {}, made->condition});
  }
  REQUIRE(questions.size() > 15);
  for (const char* call : {"openat", "rename", "link", "symlink", "unlink", "mkdir", "rmdir", "fsync", "fdatasync",
                           "ftruncate", "connect", "listen", "accept", "execve"}) {
    INFO(call);
    CHECK(std::any_of(questions.begin(), questions.end(),
                      [&](const auto& one) { return one.second.what.call.syscall.starts_with(call); }));
  }

  schedule::Schedule counters;
  counters.name = "conditions";
  std::map<std::string, std::string> keys;  // by the id of the counter
  for (const auto& [key, question] : questions) {
    const std::string id = fmt::format("count-{}", counters.faults.size() + 1);
    counters.faults.push_back(diagnose::counter_for(question, id));
    keys.emplace(id, key);
  }
  // Use the counters as they are after being written to a schedule and read back.
  const auto stated = schedule::parse_schedule(schedule::to_toml(counters), "stated.toml");
  REQUIRE(stated);
  const Folder folder;
  const auto run = run_of(config, run_options(config, folder), *stated);
  INFO(run.backend);
  CHECK(run.backend.starts_with(Rig::overriding() ? "override" : "seccomp"));
  const trace::Trace& trace = run.result.trace;
  CHECK(trace.meta.lost == 0);
  for (const schedule::FaultOutcome& outcome : run.result.faults) {
    const diagnose::Question& question = questions.at(keys.at(outcome.id));
    const auto answer = diagnose::read_answer(question, outcome);
    REQUIRE(answer);
    std::uint64_t recorded = 0;
    for (const trace::Event& event : trace.events)
      if (!is_launch(trace, event) && diagnose::meets(trace, event, question.what))
        recorded += diagnose::times_of(event);
    INFO(name_of(question.what));
    CHECK(recorded > 0);
    CHECK(answer->times == recorded);
  }
}
