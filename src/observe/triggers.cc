#include "observe/triggers.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <set>
#include <thread>

#include "base/cancel.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/held_child.h"
#include "base/log.h"
#include "base/log_follow.h"
#include "base/regex.h"
#include "base/thread.h"
#include "base/units.h"
#include "kernel/syscalls.h"

namespace rose::observe {
namespace {

constexpr std::int64_t kLogPoll = 200'000'000;
// The shared folder is listed at this interval, because network file systems do not report changes by other hosts.
constexpr std::int64_t kFolderPoll = 500'000'000;
constexpr std::size_t kLongestExcerpt = 160;

// Text of the traced system for a message: shortened, and without control characters.
std::string excerpt(std::string_view text) {
  std::string out;
  for (const char c : text.substr(0, kLongestExcerpt)) {
    const auto byte = static_cast<unsigned char>(c);
    out += byte < 0x20 || byte >= 0x7f ? '?' : c;
  }
  if (text.size() > kLongestExcerpt) out += "...";
  return out;
}

class Watcher final : public Triggers {
 public:
  Watcher(TriggerOptions options, Tracer& tracer, Recorder& recorder)
      : options_(std::move(options)),
        tracer_(tracer),
        recorder_(recorder),
        plan_(options_.after_ns, options_.cooldown_ns) {}
  ~Watcher() override { (void)stop(); }

  Result<void> begin() {
    for (const LogWatch& watch : options_.logs) {
      Log log{LogFollower(watch.file), Regex(watch.regex), watch.file};
      log.follower.begin_at_end();
      logs_.push_back(std::move(log));
    }
    (void)new_dumps();  // files that exist now must not trigger anything
    stop_ = Fd(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    if (!stop_) return fail_errno(ErrorKind::environment, "eventfd", errno);
    ROSE_TRY(thread_, start_thread([this] { run(); }));
    return {};
  }

  TriggerTally stop() override {
    if (thread_.joinable()) {
      const std::uint64_t one = 1;
      if (::write(stop_.get(), &one, sizeof one) < 0) log::debug("cannot wake the triggers' thread");
      thread_.join();
    }
    return {plan_.left_out(), answers_, plan_.pending()};
  }

 private:
  struct Log {
    LogFollower follower;
    Regex regex;
    std::filesystem::path file;
  };

  void run() {
    std::int64_t next_oracle = monotonic_ns();
    std::int64_t next_logs = next_oracle;
    std::int64_t next_folder = next_oracle;
    for (;;) {
      std::int64_t now = monotonic_ns();
      if (!options_.oracle.empty() && !oracle_ && now >= next_oracle) {
        next_oracle = now + options_.every_ns;
        run_oracle(now);
      }
      if (!logs_.empty() && now >= next_logs) {
        const bool more = read_logs();
        now = monotonic_ns();
        next_logs = more ? now : now + kLogPoll;
      }
      if (!options_.together.empty() && now >= next_folder) {
        for (const std::string& name : new_dumps()) trigger({TriggerKind::together, excerpt(name)});
        now = monotonic_ns();
        next_folder = now + kFolderPoll;
      }
      if (oracle_ && now >= oracle_until_) take_answer(true);
      // After Ctrl-C, planned dumps are not written here, because the caller of stop() writes the last dump.
      while (!cancel::requested()) {
        const auto cause = plan_.due(monotonic_ns());
        if (!cause) break;
        write(*cause);
      }

      std::int64_t next = now + 3'600'000'000'000;
      if (!options_.oracle.empty()) next = std::min(next, oracle_ ? oracle_until_ : next_oracle);
      if (!logs_.empty()) next = std::min(next, next_logs);
      if (!options_.together.empty()) next = std::min(next, next_folder);
      if (const auto dump = plan_.next_ns(); dump && !cancel::requested()) next = std::min(next, *dump);
      const std::int64_t left = std::max<std::int64_t>(next - monotonic_ns(), 0);
      pollfd watched[] = {{stop_.get(), POLLIN, 0},
                          {cancel::dump_fd(), POLLIN, 0},
                          {options_.on_crash ? tracer_.ends_fd() : -1, POLLIN, 0},
                          {oracle_ ? oracle_->pidfd() : -1, POLLIN, 0},
                          {oracle_ && oracle_stderr_open_ ? oracle_->errors() : -1, POLLIN, 0}};
      const timespec ts{left / 1'000'000'000, left % 1'000'000'000};
      if (::ppoll(watched, std::size(watched), &ts, nullptr) < 0) continue;
      if (watched[0].revents != 0) break;
      if (watched[1].revents != 0) {
        std::uint64_t count = 0;
        if (::read(cancel::dump_fd(), &count, sizeof count) > 0) trigger({TriggerKind::signal, "SIGUSR1"});
      }
      if (watched[2].revents != 0) {
        for (const ProcessEnd& end : tracer_.take_ends()) trigger({TriggerKind::crash, describe_end(end)});
      }
      if (watched[4].revents != 0) read_oracle_stderr();
      if (watched[3].revents != 0) take_answer(false);
    }
    // Crashes that were noticed only now become the reason of the last dump.
    if (options_.on_crash) {
      for (const ProcessEnd& end : tracer_.take_ends())
        (void)plan_.trigger({TriggerKind::crash, describe_end(end)}, monotonic_ns());
    }
    oracle_.reset();
  }

  void trigger(Cause cause) {
    const std::string text = cause.text();
    switch (plan_.trigger(std::move(cause), monotonic_ns())) {
      case DumpPlan::Answer::planned:
        if (options_.after_ns > 0)
          log::info("{}: the window will be written in {}", text, format_duration(options_.after_ns));
        break;
      case DumpPlan::Answer::joined: log::debug("{}: the next dump will contain it", text); break;
      case DumpPlan::Answer::cooling: log::debug("{}: too soon after the last dump", text); break;
    }
  }

  void write(const Cause& cause) {
    const Result<WrittenDump> written = recorder_.write(cause);
    if (!written) {
      // If the disk is full, this fails repeatedly, possibly for days, so report it only once.
      const std::int64_t wait = plan_.failed(cause, monotonic_ns());
      const std::string failure = fmt::format("{}: {}", cause.text(), written.error().message);
      if (failure == failure_) return log::debug("{}; again in {}", failure, format_duration(wait));
      log::error(fmt::format("{}; will be tried again until it is written", failure), written.error().hint);
      failure_ = failure;
      return;
    }
    if (!options_.together.empty()) known_.insert(written->file.filename().string());
    plan_.succeeded();
    failure_.clear();
    const std::uint64_t left_out = plan_.take_left_out();
    log::info("{}: wrote {}, {} events, {} lost{}", cause.text(), written->file.string(), written->size.events,
              written->size.lost,
              left_out == 0 ? "" : fmt::format("; {} more triggers without their own dump", left_out));
  }

  // The dumps that have appeared in the shared folder since the last call because of triggers on other hosts.
  std::vector<std::string> new_dumps() {
    std::vector<std::string> fresh;
    if (options_.together.empty()) return fresh;
    std::set<std::string> there;
    std::error_code error;
    for (std::filesystem::directory_iterator it(options_.together, error), end; !error && it != end;
         it.increment(error)) {
      const std::string name = it->path().filename().string();
      const auto parts = parse_dump_name(name);
      if (!parts) continue;
      there.insert(name);
      const auto is = [&](TriggerKind kind) { return parts->trigger.starts_with(trigger_word(kind)); };
      if (!known_.contains(name) && !is(TriggerKind::together) && !is(TriggerKind::end)) fresh.push_back(name);
    }
    if (error) return {};  // the folder may be temporarily unavailable; its new files are reported by a later call
    known_ = std::move(there);
    return fresh;
  }

  bool read_logs() {
    bool more = false;
    for (Log& log : logs_) {
      more |= log.follower.read([&](std::string_view line) {
        if (log.regex.found_in(line))
          trigger({TriggerKind::log, fmt::format("{}: {}", log.file.string(), excerpt(line))});
        return true;
      });
    }
    return more;
  }

  void run_oracle(std::int64_t now) {
    oracle_until_ = now + options_.oracle_timeout_ns;
    oracle_stderr_.clear();
    oracle_stderr_open_ = true;
    Result<HeldChild> child = HeldChild::fork_held({"/bin/sh", "-c", options_.oracle}, HeldChild::Kind::own_group);
    if (child) {
      tracer_.leave_out(child->pid());
      const Result<void> going = child->release();
      if (going) {
        oracle_.emplace(std::move(*child));
        return;
      }
      warn_undecided(going.error().message);
    } else {
      warn_undecided(child.error().message);
    }
    (void)answers_.take(std::nullopt);
  }

  // Reads the oracle's stderr, so that the oracle never blocks on a full pipe. Keeps the end of the text.
  void read_oracle_stderr() {
    char bytes[4096];
    const ssize_t n = ::read(oracle_->errors(), bytes, sizeof bytes);
    if (n <= 0) {
      oracle_stderr_open_ = n < 0 && (errno == EAGAIN || errno == EINTR);
      return;
    }
    oracle_stderr_.append(bytes, static_cast<std::size_t>(n));
    if (oracle_stderr_.size() > 2 * sizeof bytes) oracle_stderr_.erase(0, oracle_stderr_.size() - sizeof bytes);
  }

  void take_answer(bool timed_out) {
    read_oracle_stderr();
    const std::optional<int> status = oracle_->end(0);
    oracle_.reset();
    std::optional<int> code;
    if (!timed_out && status && WIFEXITED(*status)) code = WEXITSTATUS(*status);
    switch (answers_.take(code)) {
      case OracleAnswers::Meaning::hit: trigger({TriggerKind::oracle, excerpt(options_.oracle)}); break;
      case OracleAnswers::Meaning::nothing: break;
      case OracleAnswers::Meaning::unclear:
        if (timed_out)
          warn_undecided(fmt::format("it did not finish within {}", format_duration(options_.oracle_timeout_ns)));
        else if (code) warn_undecided(fmt::format("it exited with status {}", *code));
        else warn_undecided(fmt::format("it was killed by signal {}", status ? WTERMSIG(*status) : 0));
        break;
    }
  }

  void warn_undecided(const std::string& how) {
    if (warned_) return;
    warned_ = true;
    std::string_view line = oracle_stderr_;
    while (!line.empty() && line.back() == '\n') line.remove_suffix(1);
    line = line.substr(line.rfind('\n') == std::string_view::npos ? 0 : line.rfind('\n') + 1);
    log::warning("--dump-when did not decide: {}{} (0 means dump, 1 means no; reported once)", how,
                 line.empty() ? "" : fmt::format(" and printed '{}'", excerpt(line)));
  }

  TriggerOptions options_;
  Tracer& tracer_;
  Recorder& recorder_;
  DumpPlan plan_;
  std::string failure_;  // why the last dump could not be written; "" if it was written
  OracleAnswers answers_;
  std::vector<Log> logs_;
  std::set<std::string> known_;  // dumps in the shared folder
  std::optional<HeldChild> oracle_;
  std::int64_t oracle_until_ = 0;
  bool oracle_stderr_open_ = false;
  std::string oracle_stderr_;
  bool warned_ = false;
  Fd stop_;
  std::thread thread_;
};

}  // namespace

Result<LogWatch> parse_log_watch(std::string_view option, std::string_view text) {
  const std::size_t colon = text.find(':');
  if (colon == std::string_view::npos || colon == 0 || colon + 1 == text.size())
    return fail(ErrorKind::usage, fmt::format("{}: '{}' does not name a file and an expression", option, excerpt(text)),
                "write FILE:REGEX, such as /var/log/db.log:panic");
  std::error_code error;
  LogWatch watch{std::filesystem::absolute(text.substr(0, colon), error), std::string(text.substr(colon + 1))};
  if (std::filesystem::exists(watch.file, error) && !std::filesystem::is_regular_file(watch.file, error))
    return fail(ErrorKind::usage, fmt::format("{}: {} is not a regular file", option, watch.file.string()));
  if (const std::string problem = Regex(watch.regex).problem(); !problem.empty())
    return fail(ErrorKind::usage,
                fmt::format("{}: '{}' is not a regular expression: {}", option, excerpt(watch.regex), problem),
                std::string(kRegexForm));
  return watch;
}

std::string describe_end(const ProcessEnd& end) {
  if (end.signal != 0)
    return fmt::format("{}: process {} was killed by {}", end.node, end.pid, kernel::signal_name(end.signal));
  return fmt::format("{}: the main process {} exited with status {}", end.node, end.pid, end.exit_code);
}

Result<WrittenDump> Recorder::write(const Cause& cause) {
  const std::lock_guard lock(mutex_);
  return files_.write(cause, wall_ns(), [&](const std::filesystem::path& file, const DumpRoom& room) {
    return tracer_.write_dump(file, [&](trace::Meta& meta) { meta.trigger = cause.text(); }, room);
  });
}

std::vector<WrittenDump> Recorder::written() {
  const std::lock_guard lock(mutex_);
  return files_.written();
}

Result<std::unique_ptr<Triggers>> Triggers::start(const TriggerOptions& options, Tracer& tracer, Recorder& recorder) {
  auto watcher = std::make_unique<Watcher>(options, tracer, recorder);
  ROSE_CHECK(watcher->begin());
  return watcher;
}

}  // namespace rose::observe
