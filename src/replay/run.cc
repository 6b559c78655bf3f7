#include "replay/run.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <set>
#include <utility>

#include "base/cancel.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/folder.h"
#include "base/leaving.h"
#include "base/log.h"
#include "base/units.h"
#include "deploy/environment.h"
#include "deploy/ready.h"
#include "inject/injector.h"
#include "javascript/session.h"
#include "jvm/node.h"
#include "jvm/session.h"
#include "jvm/state.h"
#include "kernel/cgroup2.h"
#include "kernel/kernel_types.h"
#include "python/session.h"
#include "replay/injected.h"

namespace rose::replay {
namespace {

// If a pause or partition is about to end when the workload ends, wait for its end, so that the oracle sees the healed
// system, as in production. Do not wait longer than this.
constexpr std::int64_t kLongestRunOutNs = 10 * kSecond;
// The limit for the output of one call of the oracle. No reader needs more, and an oracle that writes without end would
// fill the disk.
constexpr std::uint64_t kMostOracleOutput = 64 << 20;

// Forwards the deployment's events to the injector and the tracer. The injector comes first, because its listener must
// exist before the node's first instruction.
class Observers final : public deploy::NodeObserver {
 public:
  Observers(const config::Config& config, const std::filesystem::path& run_dir) : config_(config), run_dir_(run_dir) {}

  void connect(inject::Injector* injector) { injector_ = injector; }
  void connect(observe::Tracer* tracer) { tracer_ = tracer; }
  void connect(const jvm::Session* jvms) { jvms_ = jvms; }
  void connect(const python::Session* python) { python_ = python; }
  void connect(const javascript::Session* javascript) { javascript_ = javascript; }

  std::map<std::string, std::string> environment(std::size_t node,
                                                 const std::map<std::string, std::string>& own) override {
    const std::string& name = config_.nodes[node].name;
    std::map<std::string, std::string> all;
    if (jvms_ != nullptr) all = jvms_->environment(name, own);
    if (python_ != nullptr) all.merge(python_->environment(name, own));
    if (javascript_ != nullptr) all.merge(javascript_->environment(name, own));
    return all;
  }

  std::vector<std::filesystem::path> folders(std::size_t node) override {
    const std::string& name = config_.nodes[node].name;
    std::vector<std::filesystem::path> all;
    if (jvms_ != nullptr && jvms_->asks(name)) all.push_back(jvms_->folder());
    if (python_ != nullptr && python_->watches(name)) all.push_back(python_->folder());
    return all;
  }

  std::vector<int> notified_syscalls(std::size_t node) override {
    return injector_ != nullptr ? injector_->notified_syscalls(node) : std::vector<int>{};
  }
  deploy::ClockCalls notified_clocks(std::size_t node) override {
    return injector_ != nullptr ? injector_->notified_clocks(node) : deploy::ClockCalls::none;
  }
  void on_listener(std::size_t node, pid_t pid, Fd listener) override {
    if (injector_ != nullptr) injector_->on_listener(node, pid, std::move(listener));
  }
  void on_start(std::size_t node, pid_t pid) override {
    if (tracer_ != nullptr) tracer_->set_main(config_.nodes[node].name, pid);
    if (injector_ != nullptr) injector_->on_start(node, pid);
  }
  void on_end(std::size_t node, const deploy::EndInfo& end) override {
    if (!end.planned) {
      ends_.push_back({node, end, monotonic_ns(), {}});
      // Keep the log lines of the first end that may not be intended, because a restarted node adds further lines to
      // its logs.
      if (!may_be_intended(end) && explained_.insert(node).second)
        ends_.back().words = deploy::last_words(run_dir_ / config_.nodes[node].name);
    }
    if (injector_ != nullptr) injector_->on_end(node, end);
  }
  // An unplanned end of a node.
  struct End {
    std::size_t node = 0;
    deploy::EndInfo how;
    std::int64_t at_ns = 0;   // monotonic clock
    deploy::LastWords words;  // only of a node's first end that may not be intended
  };
  // True for exit status 0 and for signals that a workload may send to nodes.
  static bool may_be_intended(const deploy::EndInfo& end) {
    return end.signalled ? end.code == SIGKILL || end.code == SIGTERM || end.code == SIGINT : end.code == 0;
  }
  // Call this when the deployment no longer exists, because until then one of its threads may report further ends.
  [[nodiscard]] const std::vector<End>& ends() const { return ends_; }
  void on_planned(std::size_t node, bool planned) override {
    if (tracer_ != nullptr) tracer_->set_planned(config_.nodes[node].name, planned);
    if (injector_ != nullptr) injector_->on_planned(node, planned);
  }

 private:
  const config::Config& config_;
  std::filesystem::path run_dir_;
  std::set<std::size_t> explained_;
  inject::Injector* injector_ = nullptr;
  observe::Tracer* tracer_ = nullptr;
  const jvm::Session* jvms_ = nullptr;
  const python::Session* python_ = nullptr;
  const javascript::Session* javascript_ = nullptr;
  std::vector<End> ends_;
};

struct OracleResult {
  schedule::OracleAnswer answer = schedule::OracleAnswer::unknown;
  std::string note;
  std::string last_line;  // the last line that the oracle printed; "" if there is none
};

// The oracle's exit status has the meaning that it has for grep: 0 is a hit, 1 is a miss, and any other status means
// that the oracle could not decide.
Result<OracleResult> ask_oracle(const config::Config& config, deploy::Deployment& deployment,
                                const std::filesystem::path& run_dir) {
  ROSE_TRY(auto command,
           deployment.spawn(config.oracle->command, "oracle", config.oracle->timeout_ns, kMostOracleOutput));
  const deploy::CommandResult ended = command->wait();
  if (ended.cancelled) return fail(ErrorKind::cancelled, "interrupted");
  OracleResult asked;
  asked.note = fmt::format("the oracle {}", ended.note);
  if (!ended.started || ended.timed_out || ended.too_much || ended.signalled) return asked;
  if (ended.code == 0) asked.answer = schedule::OracleAnswer::hit;
  if (ended.code == 1) asked.answer = schedule::OracleAnswer::miss;
  // Keep the oracle's last message, because its log is removed with the run directory.
  asked.last_line = deploy::tail(run_dir / "oracle.log", 1, 256);
  if (ended.code > 1 && !asked.last_line.empty()) asked.note += ": " + asked.last_line;
  return asked;
}

bool wait_readable(int fd, std::int64_t ns) {
  pollfd watched[2] = {{fd, POLLIN, 0}, {cancel::fd(), POLLIN, 0}};
  const std::int64_t left = std::max<std::int64_t>(ns, 0);
  const timespec ts{left / kSecond, left % kSecond};
  ::ppoll(watched, cancel::fd() >= 0 ? 2 : 1, &ts, nullptr);
  return (watched[0].revents & POLLIN) != 0;
}

// True if this open file has the same content as the program at `path`.
bool same_content(int file, const std::filesystem::path& path) {
  const Fd other = open_regular(path);
  if (file < 0 || !other) return false;
  std::string block(std::size_t{1} << 20, '\0'), others(block);
  for (off_t at = 0;;) {
    const ssize_t n = ::pread(file, block.data(), block.size(), at);
    const ssize_t m = ::pread(other.get(), others.data(), others.size(), at);
    if (n != m || n < 0 || block.compare(0, static_cast<std::size_t>(n), others, 0, static_cast<std::size_t>(n)) != 0)
      return false;
    if (n == 0) return true;
    at += n;
  }
}

class OneRun {
 public:
  OneRun(const config::Config& config, const schedule::Schedule& schedule, const RunOptions& options)
      : config_(config), schedule_(schedule), options_(options), observers_(config, options.run_dir) {}

  // Undoes the run, whatever happened. The tracer is stopped last, so that its window contains the end of the run.
  ~OneRun() { undo(); }

  Result<Run> execute() {
    const std::int64_t began = monotonic_ns();
    Result<void> driven = drive();
    const std::string full = driven || !disk_ ? "" : disk_->seen();  // perhaps the reason for the failure
    finish();
    run_.result.number = options_.number;
    run_.result.directory = options_.run_dir;
    run_.directory_made_in = options_.run_dir;
    run_.result.seconds = static_cast<double>(monotonic_ns() - began) / 1e9;
    if (!driven) {
      const ErrorKind kind = driven.error().kind;
      const bool cut_short = kind == ErrorKind::cancelled && options_.cut_short_is_result;
      if (kind != ErrorKind::inconclusive && !cut_short) return Unexpected(std::move(driven).error());
      run_.result.verdict = schedule::Verdict::inconclusive;
      run_.result.reason = driven.error().message + (full.empty() ? "" : "; " + full);
      if (!driven.error().hint.empty()) log::info("run {}: {}", options_.number, driven.error().hint);
      return std::move(run_);
    }
    doubt_work();
    schedule::judge(run_.result, schedule_, oracle_note_);
    if (options_.needs_work) doubt_idle_run();
    const bool left_alone = schedule_.faults.empty() && !options_.incident;
    if (left_alone) warn_of_ends();
    if (run_.result.verdict == schedule::Verdict::inconclusive || left_alone) log_last_lines();
    return std::move(run_);
  }

 private:
  // Logs the last messages of commands that failed, because the files with their output may be removed with the run
  // directory.
  void log_last_lines() const {
    const auto log_end_of = [&](const char* name) {
      const std::string lines = deploy::tail(options_.run_dir / fmt::format("{}.log", name), 5, 1024);
      if (!lines.empty()) log::info("run {}: last lines of {}.log:\n{}", options_.number, name, lines);
      const config::Command& command =
          name == std::string_view("workload") ? config_.workload->command : config_.oracle->command;
      if (const std::string word = deploy::misplaced_word(command, config_.directory, options_.run_dir); !word.empty())
        log::info("run {}: {}", options_.number, word);
    };
    if (config_.workload && !run_.workload.ok()) log_end_of("workload");
    if (config_.oracle && run_.result.oracle == schedule::OracleAnswer::unknown) log_end_of("oracle");
  }

  // If a node ends by itself while nothing is injected, it was started incorrectly, or the bug occurs without faults.
  // Warn, because without `ready` nothing else detects such an end.
  void warn_of_ends() const {
    std::set<std::size_t> reported;
    for (const auto& [index, end, at_ns, words] : observers_.ends()) {
      if (Observers::may_be_intended(end) || !reported.insert(index).second) continue;
      const config::Node& node = config_.nodes[index];
      const auto& [log, lines] = words;
      std::string text = fmt::format("node {} {}, although no fault was injected and nothing stopped it", node.name,
                                     deploy::describe(end));
      if (!lines.empty()) text += fmt::format("; last lines of {}/{}:\n{}", node.name, log, lines);
      if (const std::string word =
              deploy::misplaced_word(node.command, config_.directory, options_.run_dir / node.name);
          !word.empty() && !node.container)
        text += "\n" + word;
      log::warn_once(text);
    }
  }

  // True for the exit status with which a shell reports that a command does not exist or is not executable. A workload
  // may use all other statuses.
  static bool never_began(const deploy::CommandResult& ended) {
    return !ended.started ||
           (!ended.timed_out && !ended.signalled && !ended.cancelled && (ended.code == 126 || ended.code == 127));
  }

  Error never_got_to_work(std::string_view name, const deploy::CommandResult& ended) const {
    const std::string last_line = deploy::tail(options_.run_dir / fmt::format("{}.log", name), 1, 256);
    return {ErrorKind::inconclusive,
            fmt::format("the {} did no work: it {}{}{}", name, ended.note, last_line.empty() ? "" : ": ", last_line),
            "status 127 means that a command was not found, 126 that it could not be executed; relative names are "
            "looked up in the run directory"};
  }

  // Collects reasons to doubt the verdict of a run that was completed.
  void doubt_work() {
    doubt_disk();
    if (run_.result.doubt.empty()) run_.result.doubt = trouble_;
    if (!run_.result.doubt.empty() || schedule_.faults.empty() || !config_.workload) return;
    const Work work{.failed = run_.workload.failed() && !ended_by_rose_,
                    .timed_out = run_.workload.timed_out,
                    .note = run_.workload.note,
                    .ended_ns = run_.result.workload_end_ns.value_or(0),
                    .exchanged = run_.exchanged};
    run_.result.doubt = doubt_of(work, options_.usual.work, schedule_, run_.result);
    if (run_.result.doubt.empty()) doubt_nodes();
  }

  void doubt_disk() {
    if (run_.result.doubt.empty() && disk_) run_.result.doubt = disk_->seen();
    disk_.reset();
  }

  void doubt_nodes() {
    const std::set<pid_t> out_of_memory = memory_kills_ ? memory_kills_->pids() : std::set<pid_t>();
    for (const auto& [index, end, at_ns, words] : observers_.ends())
      nodes_.ends.push_back({.node = config_.nodes[index].name,
                             .signalled = end.signalled,
                             .out_of_memory = out_of_memory.contains(end.pid),
                             .code = end.code,
                             .note = deploy::describe(end),
                             .ended_ns = at_ns - began_ns_});
    run_.result.doubt = doubt_of(nodes_, options_.usual, schedule_, run_.result);
    if (run_.result.doubt.empty()) return;
    for (const std::string& name : nodes_.down)
      if (const auto [log, lines] = deploy::last_words(options_.run_dir / name); !lines.empty())
        log::info("run {}: last lines of {}/{}:\n{}", options_.number, name, log, lines);
  }

  // If the workload could not connect, it did not exercise the system, and the absence of the bug means nothing. During
  // an incident the workload may fail because of the incident, so only a failure at the very beginning counts.
  void doubt_idle_run() {
    constexpr std::int64_t kFirstMoments = kSecond;
    const deploy::CommandResult& workload = run_.workload;
    const bool early = !options_.incident || run_.result.workload_end_ns.value_or(0) < kFirstMoments;
    if (run_.result.verdict != schedule::Verdict::not_reproduced || !workload.failed() || !early) return;
    run_.result.verdict = schedule::Verdict::inconclusive;
    run_.result.reason = fmt::format("the workload did no work: it {}", workload.note);
  }

  Result<void> drive() {
    const kernel::KeepKernelTypes types;
    ROSE_CHECK(cancel::check());
    ROSE_TRY(deployment_, deploy::Deployment::create(config_, options_.run_dir, options_.number, &observers_));
    ROSE_CHECK(watch_python());
    ROSE_CHECK(watch_javascript());
    if (!schedule_.faults.empty() || !schedule_.order.empty()) {
      ROSE_TRY(injector_, inject::Injector::create(schedule_, config_, options_.allow_attached, options_.stacks));
      observers_.connect(injector_.get());
      if (python_) injector_->connect(*python_);
      if (injector_->needs_jvms()) ROSE_CHECK(open_jvms());
      ROSE_CHECK(injector_->arm(*deployment_, jvms_.get()));
      using Part = inject::Injector::StepPart;
      if (!schedule_.order.empty())
        deployment_->on_step([this](const std::string& name, bool done) {
          return injector_->step(name, done ? Part::end : Part::begin);
        });
      run_.backend = injector_->backend();
    }
    if (options_.trace) {
      observe::TracerOptions tracer = options_.tracer;
      ROSE_CHECK(watch_methods(tracer));
      if (python_) tracer.method_agents.push_back(python_->agent());
      if (javascript_) tracer.method_agents.push_back(javascript_->agent());
      if (options_.asked != nullptr) {
        tracer.values = options_.asked->places;
        if (!options_.asked->java.empty()) ROSE_CHECK(ask_jvms(tracer));
      }
      ROSE_CHECK(find_made_programs(tracer));
      const std::vector<observe::Target> targets = targets_of(config_, *deployment_, options_.profile);
      for (const observe::Target& target : targets) traced_.push_back(target.node);
      ROSE_TRY(tracer_, observe::Tracer::start(tracer, targets));
      observers_.connect(tracer_.get());
    }
    if (jvms_) ROSE_CHECK(jvms_->write());
    memory_kills_.emplace();
    disk_.emplace(options_.run_dir);
    const std::int64_t starting_ns = monotonic_ns();
    ROSE_CHECK(deployment_->start());
    run_.load.ready_ns = monotonic_ns() - starting_ns;
    run_.load.start_cpu_seconds = cpu_seconds();
    if (options_.nodes_ready) options_.nodes_ready(*deployment_);
    if (tracer_ && options_.tracer_ready) options_.tracer_ready(*tracer_, options_.run_dir);
    return work();
  }

  // Finds the copies of programs in this run's folder that nodes will execute. Probes are attached to files, so the
  // setup must make these copies before the tracer starts.
  Result<void> find_made_programs(observe::TracerOptions& tracer) {
    for (const config::Node& node : config_.nodes) {
      for (const auto& [known, inside] : node.made_by_runs) {
        if (made_programs_.empty()) {
          if (jvms_) ROSE_CHECK(jvms_->write());
          ROSE_CHECK(deployment_->prepare());
        }
        Fd file = open_inside(options_.run_dir, inside);
        if (!same_content(file.get(), known))
          log::warn_once(
              fmt::format("functions of node {} are not watched: {} is not there, or another program, before it starts",
                          node.name, inside));
        else tracer.copies[known] = own_path(file.get());
        made_programs_.push_back(std::move(file));
      }
    }
    return {};
  }

  // Prepares the nodes whose JavaScript functions (Node.js) are watched.
  Result<void> watch_javascript() {
    for (const config::Node& node : config_.nodes) {
      if (!node.javascript) continue;
      if (!javascript_) {
        ROSE_TRY(javascript_, javascript::Session::open(deployment_->run_dir()));
        observers_.connect(javascript_.get());
      }
      javascript_->watch(node.name);
    }
    return {};
  }

  // Prepares the nodes whose Python functions are watched.
  Result<void> watch_python() {
    for (const config::Node& node : config_.nodes) {
      if (!node.python) continue;
      if (!python_) {
        ROSE_TRY(python_, python::Session::open(deployment_->run_dir()));
        observers_.connect(python_.get());
      }
      ROSE_CHECK(python_->watch(node.name));
    }
    return {};
  }

  // Opens the session for the JVMs of nodes whose methods are watched, or are named in the schedule.
  Result<void> open_jvms() {
    if (jvms_) return {};
    ROSE_TRY(jvms_, jvm::Session::open(deployment_->run_dir()));
    observers_.connect(jvms_.get());
    return {};
  }

  // Selects the methods that JVMs watch: those that are infrequent according to the profile; without a profile, those
  // in the configuration. Their entries are counted, or reported to the tracer.
  Result<void> watch_methods(observe::TracerOptions& tracer) {
    const bool count = tracer.infrequent_below > 0;
    for (const config::Node& node : config_.nodes) {
      const jvm::Names names = jvm::methods_of(node);
      jvm::WatchRequest request{.count = count,
                                .code = options_.code_book != nullptr,
                                .rate = count ? tracer.infrequent_below : tracer.hot_function_rate,
                                .share = tracer.function_share,
                                .functions = names.functions,
                                .sources = names.sources,
                                .methods = {}};
      if (node.exceptions) request.throwers = names.functions, request.thrower_sources = names.sources;
      request.catchers = node.catches;
      if (node.exceptions && names.functions.empty() && names.sources.empty())
        log::warn_once(fmt::format(
            "{}: `exceptions` has no effect: no Java method is named by `functions` or `sources`", node.name));
      if (!count && options_.profile != nullptr && profile::knows_methods(*options_.profile, node.name)) {
        const std::set<std::string> rare = profile::rare_methods(*options_.profile, node.name);
        std::copy_if(rare.begin(), rare.end(), std::back_inserter(request.methods),
                     [](const std::string& name) { return leaving_of(name).exception.empty(); });
        request.functions.clear(), request.sources.clear();
      }
      if (request.functions.empty() && request.sources.empty() && request.methods.empty() && request.throwers.empty() &&
          request.thrower_sources.empty())
        continue;
      ROSE_CHECK(open_jvms());
      jvms_->watch(node.name, std::move(request));
      watched_.push_back(node.name);
    }
    if (!watched_.empty() && !count) tracer.method_agents = {jvms_->agent()};
    return {};
  }

  Result<void> ask_jvms(observe::TracerOptions& tracer) {
    ROSE_CHECK(open_jvms());
    for (const ValueQueries::OfJava& one : options_.asked->java)
      for (const std::string& node : one.nodes) jvms_->ask(node, one.request);
    tracer.value_agents = {jvms_->agent()};
    return {};
  }

  // A node that does not load the agent of its language has no watched functions, and an explanation would find nothing
  // there. A fault may end a node before it loads the agent, so warn only if there are no faults.
  void check_agents() {
    for (const config::Node& node : config_.nodes)
      if (python_)
        for (python::Frame& one : python_->functions_of(node.name))
          run_.python_places.try_emplace({node.name, std::move(one.function)}, std::move(one.file), one.line);
    if (!schedule_.faults.empty()) return;
    for (const config::Node& node : config_.nodes)
      if (python_ && node.python && !node.container && !python_->loaded(node.name))
        log::warn_once(fmt::format(
            "{}: Python did not load rose's agent, so none of its functions are watched: the node's scripts "
            "must keep PYTHONPATH and ROSE_PYTHON_*, and start Python without -E, -I and -S",
            node.name));
    if (!javascript_) return;
    for (const deploy::NodeInfo& node : deployment_->nodes()) {
      if (!config_.nodes[node.index].javascript) continue;
      const std::vector<pid_t> processes = deployment_->processes(node.index);  // empty: the node has ended
      if (!processes.empty() && std::none_of(processes.begin(), processes.end(), javascript::has_agent))
        log::warn_once(
            fmt::format("{}: Node.js did not load rose's agent, so none of its functions are watched: the node's "
                        "scripts must keep NODE_OPTIONS and ROSE_NODE_AGENT, and must not set NODE_V8_COVERAGE",
                        node.name));
    }
  }

  // Reads what the agents have reported so far.
  void read_methods() {
    for (const std::string& node : watched_) {
      const auto states = jvm::read_states(jvms_->state(node));
      if (options_.code_book != nullptr) options_.code_book->learn(node, jvms_->state(node));
      // A fault may end a JVM before it reports anything, so warn only if there are no faults.
      if (schedule_.faults.empty()) {
        for (const std::string& text : jvm::complaints(node, states)) log::warn_once(text);
      }
      if (options_.tracer.infrequent_below <= 0) continue;
      for (const auto& [name, method] : jvm::watched_methods(states)) {
        if (!method.known) continue;
        run_.counts.functions.push_back({.node = node,
                                         .function = name,
                                         .binary = profile::kJvm,
                                         .count = static_cast<std::uint64_t>(std::llround(method.calls))});
      }
    }
  }

  Result<void> work() {
    std::unique_ptr<deploy::RunningCommand> workload;
    std::unique_ptr<observe::Exchange> exchange;
    std::uint64_t workload_cgroup = 0;
    if (config_.workload) exchange = count_exchange();
    // Faults count what nodes do from here on. The counting must begin before the workload's first action, because a
    // node may react to this action at once.
    began_ns_ = monotonic_ns();
    if (injector_) injector_->workload_began(began_ns_);
    if (config_.workload) {
      ROSE_TRY(workload, deployment_->spawn(config_.workload->command, "workload", longest_workload()));
      workload_cgroup = kernel::cgroup_id(workload->cgroup());
    }
    std::unique_ptr<deploy::RunningCommand> incident;
    if (options_.incident) {
      const std::int64_t limit = config_.workload ? config_.workload->timeout_ns : 60 * kSecond;
      ROSE_TRY(incident, deployment_->spawn({"/bin/sh", "-c", *options_.incident}, "incident", limit));
    }

    bool hit = false;
    if (workload) {
      ROSE_TRY(hit, watch(*workload, [&] {
                 if (exchange && workload_cgroup != 0) note_exchange(exchange->of(workload_cgroup));
                 note_waiting();
               }));
      if (hit) run_.result.oracle_ns = monotonic_ns() - began_ns_;
      ended_by_rose_ = hit && !workload->finished();
      run_.workload = hit ? workload->kill() : workload->wait();
      if (exchange && workload_cgroup != 0) note_exchange(exchange->of(workload_cgroup));
      run_.result.workload_end_ns = monotonic_ns() - began_ns_;
      if (!hit && never_began(run_.workload)) return Unexpected(never_got_to_work("workload", run_.workload));
      if (run_.workload.timed_out && longest_workload() < config_.workload->timeout_ns)
        return fail(ErrorKind::inconclusive,
                    fmt::format("its workload had not ended after {}, far longer than in runs that reproduced the bug",
                                format_duration(longest_workload())));
    }
    if (incident) {
      run_.incident = incident->wait();
      if (never_began(*run_.incident)) return Unexpected(never_got_to_work("incident", *run_.incident));
      // Keep the last message of the incident's command, because its log is removed with the run directory.
      const std::string last_lines = run_.incident->ok() ? "" : deploy::tail(options_.run_dir / "incident.log", 3, 512);
      if (!last_lines.empty()) run_.incident->note += ": " + last_lines;
    }
    ROSE_CHECK(cancel::check());
    measure_load();
    for (std::size_t node = 0; node < config_.nodes.size(); ++node)
      if (deployment_->main_pid(node) == 0) nodes_.down.insert(config_.nodes[node].name);
    if (injector_ && !hit) injector_->catch_up();
    if (!hit) let_faults_run_out();
    if (hit || !config_.oracle || !options_.traced_answer_ns) capture();
    run_.completed = true;
    if (hit) {
      run_.result.oracle = schedule::OracleAnswer::hit;
      return {};
    }
    if (!config_.oracle) {
      oracle_note_ = "there is no [oracle] to run";
      return {};
    }
    const std::int64_t asked_ns = monotonic_ns();
    ROSE_TRY(const OracleResult asked, ask_oracle(config_, *deployment_, options_.run_dir));
    run_.result.oracle = asked.answer;
    run_.answer_ns = monotonic_ns() - asked_ns;
    if (asked.answer == schedule::OracleAnswer::hit) run_.result.oracle_ns = monotonic_ns() - began_ns_;
    if (options_.traced_answer_ns && run_.answer_ns < *options_.traced_answer_ns)
      cancel::sleep(*options_.traced_answer_ns - run_.answer_ns);
    capture();
    oracle_note_ = asked.note;
    run_.oracle_line = asked.last_line;
    return {};
  }

  // The processor time that the run has used so far. This includes commands other than nodes, because they are in
  // the run's cgroup, too. 0: unknown.
  double cpu_seconds() const {
    if (deployment_->nodes().empty()) return 0;
    constexpr std::string_view kUsage = "usage_usec ";
    const auto stat = read_file(deployment_->nodes().front().cgroup.parent_path() / "cpu.stat");
    const std::size_t at = stat ? stat->find(kUsage) : std::string::npos;
    if (at == std::string::npos) return 0;
    return static_cast<double>(std::strtoull(stat->c_str() + at + kUsage.size(), nullptr, 10)) / 1e6;
  }

  void measure_load() {
    RunLoad& load = run_.load;
    load.workload_ns = run_.result.workload_end_ns.value_or(0);
    load.cpu_seconds = cpu_seconds();
    const auto page = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
    for (std::size_t node = 0; node < deployment_->nodes().size(); ++node)
      for (const pid_t pid : deployment_->processes(node))
        // the fields are: size resident shared ...
        if (const auto statm = read_file(fmt::format("/proc/{}/statm", pid))) {
          std::uint64_t size = 0, resident = 0, shared = 0;
          if (std::sscanf(statm->c_str(), "%lu %lu %lu", &size, &resident, &shared) == 3)
            load.memory += (resident - std::min(resident, shared)) * page;
        }
  }

  // Counts the data that the workload exchanges with the nodes. nullptr in host networks, where nodes have no addresses
  // of their own, and if the kernel cannot count.
  std::unique_ptr<observe::Exchange> count_exchange() const {
    std::vector<std::string> addresses;
    for (const deploy::NodeInfo& node : deployment_->nodes())
      if (!node.netns.empty() && !node.ip.empty() && node.network == node.index) addresses.push_back(node.ip);
    if (addresses.empty()) return nullptr;
    auto exchange = observe::Exchange::start(deployment_->commands_cgroup(), addresses);
    if (exchange) return *std::move(exchange);
    log::warn_once(
        fmt::format("whether the workload exchanges data with the nodes is not known: {}", exchange.error().message));
    return nullptr;
  }

  void note_exchange(const observe::Exchanged& now) {
    if (now != run_.exchanged.value_or(observe::Exchanged{})) run_.last_exchange_ns = monotonic_ns() - began_ns_;
    run_.exchanged = now;
  }

  void note_waiting() {
    const RunOptions::Waiting& waiting = options_.waiting;
    const std::int64_t now = monotonic_ns() - began_ns_;
    if (!waiting.begin || waits_ || now <= waiting.workload_ns) return;
    const std::optional<std::int64_t> last_ns = faults_over();
    if (!last_ns || now - *last_ns < waiting.start_ns) return;
    waits_ = true;
    waiting.begin();
  }

  // The last time at which a fault began or ended, since the start of the workload; 0 if there are no faults. nullopt
  // if a fault may still begin or end.
  std::optional<std::int64_t> faults_over() const {
    std::int64_t last_ns = 0;
    if (!injector_) return last_ns;
    for (const schedule::FaultOutcome& outcome : injector_->outcomes()) {
      if (outcome.withdrawn) continue;
      const schedule::Fault* fault = schedule_.find(outcome.id);
      if (!outcome.fired || (fault != nullptr && fault->duration_ns > 0 && !outcome.ended_ns)) return std::nullopt;
      last_ns = std::max({last_ns, outcome.fired_ns, outcome.ended_ns.value_or(0)});
    }
    return last_ns;
  }

  std::int64_t longest_workload() const {
    const std::int64_t own = config_.workload->timeout_ns;
    return options_.wait_at_most_ns > 0 ? std::min(own, options_.wait_at_most_ns) : own;
  }

  // Waits for the end of the workload. With `when = "poll"`, runs the oracle meanwhile, and returns true if it found
  // the bug. Calls `look` a few times a second.
  Result<bool> watch(deploy::RunningCommand& workload, const std::function<void()>& look) {
    constexpr std::int64_t kLook = 200'000'000;
    const bool polls = config_.oracle && config_.oracle->when == config::OracleWhen::poll;
    std::int64_t next = monotonic_ns() + (polls ? config_.oracle->every_ns : 0);
    std::int64_t next_look = monotonic_ns() + kLook;
    while (!workload.finished()) {
      // Without polling, the caller waits for the end of the workload, and cancellation is handled there.
      if (Result<void> go_on = cancel::check(); !go_on)
        return polls ? Result<bool>(Unexpected(std::move(go_on).error())) : Result<bool>(false);
      if (monotonic_ns() - began_ns_ > longest_workload()) return false;
      const std::int64_t wake = polls ? std::min(next, next_look) : next_look;
      if (wait_readable(workload.fd(), wake - monotonic_ns())) continue;
      if (monotonic_ns() >= next_look) {
        look();
        next_look = monotonic_ns() + kLook;
      }
      if (!polls || monotonic_ns() < next) continue;
      ROSE_TRY(const OracleResult asked, ask_oracle(config_, *deployment_, options_.run_dir));
      if (asked.answer == schedule::OracleAnswer::hit) return true;
      next = monotonic_ns() + config_.oracle->every_ns;
    }
    return false;
  }

  void let_faults_run_out() {
    if (!injector_) return;
    const std::int64_t limit = monotonic_ns() + kLongestRunOutNs;
    while (monotonic_ns() < limit) {
      if (std::none_of(schedule_.faults.begin(), schedule_.faults.end(),
                       [&](const schedule::Fault& fault) { return ends_within(fault, limit); }))
        return;
      if (!cancel::sleep(20'000'000)) return;
    }
  }

  // True if this fault is in effect now and will end before `limit`.
  bool ends_within(const schedule::Fault& fault, std::int64_t limit) const {
    if (fault.duration_ns == 0) return false;
    for (const schedule::FaultOutcome& outcome : injector_->outcomes())
      if (outcome.id == fault.id)
        return outcome.fired && !outcome.ended_ns && began_ns_ + outcome.fired_ns + fault.duration_ns <= limit;
    return false;
  }

  // Takes the tracer's window, once, before the window can contain actions of the oracle.
  void capture() {
    if (!tracer_ || captured_) return;
    captured_ = true;
    Result<trace::Trace> window = tracer_->snapshot();
    if (!window) {
      log::warning("the run's trace is missing: {}", window.error().message);
      return;
    }
    run_.result.trace = std::move(*window);
    // Check this now, while file systems that `setup` mounted for nodes still exist.
    if (!schedule_.faults.empty() && !options_.incident && run_.result.doubt.empty())
      run_.result.doubt = call_on_full_disk(run_.result.trace, config_, schedule_, options_.run_dir);
    // All times are converted by the clock of the trace, even if the wall clock has been set since then.
    trace::Meta& meta = run_.result.trace.meta;
    wall_offset_ = meta.wall_base_ns - meta.monotonic_base_ns;
    if (began_ns_ != 0) meta.workload_ts = began_ns_ + wall_offset_;
    if (options_.tracer.count_syscalls || options_.tracer.infrequent_below > 0) run_.counts = tracer_->counts();
    read_methods();
    check_agents();
    if (options_.tracer.messages) take_messages();
    if (options_.asked == nullptr) return;
    run_.seen = tracer_->take_values();
    run_.result.values = recorded_values(*options_.asked, run_.seen, traced_, wall_offset_);
    run_.seen.values.clear();
    if (!jvms_ || options_.asked->java.empty()) return;
    for (const config::Node& node : config_.nodes)
      for (JavaAnswer& answer : java_answers(*options_.asked, jvms_->state(node.name)))
        run_.java.push_back(std::move(answer));
  }

  void take_messages() {
    const observe::SeenMessages seen = tracer_->take_messages();
    for (const observe::SeenMessage& one : seen.messages) {
      if (one.node >= traced_.size()) continue;
      run_.result.messages.push_back({.ts_ns = one.ts_ns + wall_offset_,
                                      .node = traced_[one.node],
                                      .pid = one.pid,
                                      .tid = one.tid,
                                      .taken = one.taken,
                                      .tcp = one.tcp,
                                      .own = one.own,
                                      .peer = one.peer,
                                      .own_port = one.own_port,
                                      .peer_port = one.peer_port,
                                      .end = one.end,
                                      .bytes = one.bytes,
                                      .data = one.data});
    }
    for (std::size_t node = 0; node < seen.left_out.size() && node < traced_.size(); ++node)
      if (seen.left_out[node]) run_.result.talkative.push_back(traced_[node]);
  }

  void finish() {
    capture();
    if (deployment_) trouble_ = deployment_->trouble();
    if (injector_ && trouble_.empty()) trouble_ = injector_->trouble();
    if (injector_) {
      injector_->disarm();
      run_.result.faults = injector_->outcomes();
      run_.result.order = injector_->order(run_.result.order_broken);
      mark_injected(run_.result.trace, schedule_, injector_->record(), wall_offset_);
    }
    undo();
  }

  void undo() {
    if (injector_) injector_->disarm();
    if (deployment_) deployment_->stop();
    if (tracer_ && options_.tracer_gone) options_.tracer_gone();
    deployment_.reset();  // reset this first, because the deployment's threads call the observers
    observers_.connect(static_cast<observe::Tracer*>(nullptr));
    observers_.connect(static_cast<inject::Injector*>(nullptr));
    observers_.connect(static_cast<const jvm::Session*>(nullptr));
    injector_.reset();
    tracer_.reset();
  }

  const config::Config& config_;
  const schedule::Schedule& schedule_;
  const RunOptions& options_;
  Observers observers_;
  std::unique_ptr<jvm::Session> jvms_;
  std::unique_ptr<python::Session> python_;
  std::unique_ptr<javascript::Session> javascript_;
  std::vector<Fd> made_programs_;
  std::vector<std::string> watched_;  // nodes whose methods are watched
  std::vector<std::string> traced_;   // the tracer's targets
  std::unique_ptr<inject::Injector> injector_;
  std::unique_ptr<observe::Tracer> tracer_;
  std::unique_ptr<deploy::Deployment> deployment_;
  Run run_;
  NodeEnds nodes_;
  std::string trouble_;                      // what the machine refused to do
  std::optional<MemoryKills> memory_kills_;  // counts from before the nodes started
  std::optional<DiskWatch> disk_;            // watches from before the nodes started
  std::string oracle_note_;
  std::int64_t began_ns_ = 0;     // start of the workload, monotonic clock; 0: not started
  std::int64_t wall_offset_ = 0;  // offset of the trace's clock
  bool captured_ = false;
  bool waits_ = false;          // options_.waiting.begin was called
  bool ended_by_rose_ = false;  // rose ended the workload because the oracle had found the bug
};

}  // namespace

observe::TracerOptions tracer_options(const config::Config& config) {
  observe::TracerOptions options;
  options.window = config.trace.window;
  options.memory = config.trace.memory;
  options.network_delay_ns = config.trace.network_delay_ns;
  options.pause_ns = config.trace.pause_ns;
  if (auto noise = kernel::noise_table(config.trace.noise))
    options.noise = std::move(*noise);  // cannot fail, because read_config has checked it
  options.programs = observe::keep_programs();
  return options;
}

std::vector<observe::Target> targets_of(const config::Config& config, const deploy::Deployment& deployment,
                                        const profile::Profile* profile) {
  std::vector<observe::Target> targets;
  for (const deploy::NodeInfo& info : deployment.nodes()) {
    const config::Node& node = config.nodes[info.index];
    observe::Target target;
    target.node = info.name;
    if (!info.cgroup.empty()) target.cgroups = {info.cgroup};
    if (!info.ip.empty()) target.addresses = {info.ip};
    target.own_network = !info.netns.empty();
    if (auto native = jvm::native_of(node); !native.functions.empty() || !native.sources.empty()) {
      for (const std::string& binary : node.binaries) target.binaries.emplace_back(binary);
      target.functions = std::move(native.functions);
      target.sources = std::move(native.sources);
    }
    if (profile != nullptr && !profile->functions.empty() && !target.binaries.empty()) {
      // The profile contains the rates of these functions, so watch the infrequent ones by name and drop the patterns.
      // Search them in the files of this configuration. Functions that are missing in these files are no error.
      std::set<std::string> rare;
      for (const auto& [function, binary] : profile::rare_functions(*profile, info.name)) rare.insert(function);
      for (const std::string& function : rare) target.profiled.push_back({function, {}});
      target.functions.clear();
      target.sources.clear();
    }
    targets.push_back(std::move(target));
  }
  return targets;
}

Result<Run> run_once(const config::Config& config, const schedule::Schedule& schedule, const RunOptions& options) {
  return OneRun(config, schedule, options).execute();
}

Result<void> need_workload_and_oracle(const config::Config& config) {
  if (!config.workload)
    return fail(ErrorKind::input, fmt::format("{}: there is no [workload]", config.file.string()),
                "add [workload] with the command that drives the system");
  if (!config.oracle)
    return fail(ErrorKind::input, fmt::format("{}: there is no [oracle]", config.file.string()),
                "add [oracle] with a command that exits 0 when the bug is there and 1 when it is not");
  return {};
}

}  // namespace rose::replay
