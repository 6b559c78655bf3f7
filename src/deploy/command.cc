#include "deploy/command.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>

#include "base/cancel.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/units.h"
#include "deploy/machine/cgroup.h"

namespace rose::deploy {
namespace {

constexpr std::int64_t kAskedAgain = kSecond / 20;  // longest time until a further Ctrl-C is noticed
constexpr std::int64_t kOutputLook = kSecond / 20;  // how often the size of the command's log is checked

std::uint64_t size_of(const std::string& log) {
  struct stat info{};
  return ::stat(log.c_str(), &info) == 0 && S_ISREG(info.st_mode) ? static_cast<std::uint64_t>(info.st_size) : 0;
}

class Beside : public RunningCommand {
 public:
  Beside(Fd pidfd, const LaunchSpec& spec, const CommandLimits& limits, std::int64_t started_ns,
         std::unique_ptr<cancel::Patience> patience, std::uint64_t log_bytes)
      : pidfd_(std::move(pidfd)),
        folder_(spec.cgroup),
        log_(spec.stdout_log),
        log_bytes_(log_bytes),
        limits_(limits),
        started_ns_(started_ns),
        patience_(std::move(patience)) {}
  Beside(const Beside&) = delete;
  Beside& operator=(const Beside&) = delete;
  ~Beside() override { kill(); }

  int fd() const override { return pidfd_.get(); }
  const std::filesystem::path& cgroup() const override { return folder_; }

  bool finished() override { return done_ || poll_once(0) > 0; }

  CommandResult wait() override {
    if (done_) return result_;
    std::int64_t until = started_ns_ + limits_.timeout_ns;
    bool timed_out = false;
    bool cancelled = false;
    bool asked = false;  // cancellation was noticed, so less time remains
    for (;;) {
      if (!asked && cancel::requested()) {
        asked = true;
        until = std::min(until, monotonic_ns() + limits_.after_cancel_ns);
      }
      if (patience_ && patience_->over()) until = 0;
      std::int64_t left = until - monotonic_ns();
      if (asked) left = std::min(left, kAskedAgain);
      if (limits_.most_output > 0) left = std::min(left, kOutputLook);
      pollfd waits[2] = {{pidfd_.get(), POLLIN, 0}, {asked ? -1 : cancel::fd(), POLLIN, 0}};
      const timespec ts{std::max<std::int64_t>(left, 0) / 1'000'000'000,
                        std::max<std::int64_t>(left, 0) % 1'000'000'000};
      const int ready = ::ppoll(waits, 2, &ts, nullptr);
      if (ready < 0) continue;  // EINTR
      result_.too_much = limits_.most_output > 0 && size_of(log_) > log_bytes_ + limits_.most_output;
      if (result_.too_much || waits[0].revents != 0) break;
      if (!asked && cancel::requested()) continue;
      if (monotonic_ns() < until) continue;
      cancelled = asked;
      timed_out = !asked;
      break;
    }
    return end(timed_out, cancelled);
  }

  CommandResult kill() override {
    if (done_) return result_;
    const bool running = poll_once(0) == 0;
    CommandResult result = end(false, running);
    if (running) result_.note = result.note = "ended by rose";
    return result;
  }

 private:
  int poll_once(int timeout_ms) const {
    pollfd p{pidfd_.get(), POLLIN, 0};
    return ::poll(&p, 1, timeout_ms);
  }

  CommandResult end(bool timed_out, bool cancelled) {
    patience_.reset();  // from here on, a further Ctrl-C ends rose, not only a wait
    result_.seconds = static_cast<double>(monotonic_ns() - started_ns_) / 1e9;
    if (timed_out || cancelled || result_.too_much)
      if (auto killed = cgroup::kill(folder_); !killed) log::warning(killed.error().message);
    siginfo_t info{};
    while (::waitid(P_PIDFD, static_cast<id_t>(pidfd_.get()), &info, WEXITED) != 0 && errno == EINTR) {
    }
    result_.timed_out = timed_out;
    result_.cancelled = cancelled;
    result_.signalled = info.si_code != CLD_EXITED;
    result_.code = info.si_status;
    if (timed_out) result_.note = fmt::format("timed out after {}", format_duration(limits_.timeout_ns));
    else if (cancelled) result_.note = "interrupted";
    else if (result_.too_much)
      result_.note = fmt::format("wrote more than {} and was ended", format_size(limits_.most_output));
    else if (result_.signalled)
      result_.note = fmt::format("was killed by signal {} ({})", result_.code, ::strsignal(result_.code));
    else result_.note = fmt::format("exited with status {}", result_.code);
    if (result_.too_much) {
      const Fd log(::open(log_.c_str(), O_WRONLY | O_CLOEXEC | O_NOFOLLOW));
      if (log && ::ftruncate(log.get(), static_cast<off_t>(log_bytes_ + limits_.most_output)) != 0)
        log::warning("cannot shorten {}: {}", log_, std::strerror(errno));
    }
    if (!(limits_.leave_descendants && result_.ok()))
      if (auto destroyed = cgroup::destroy(folder_); !destroyed) log::warning(destroyed.error().message);
    done_ = true;
    return result_;
  }

  Fd pidfd_;
  std::filesystem::path folder_;
  std::string log_;
  std::uint64_t log_bytes_;  // size of the log before the command started
  CommandLimits limits_;
  std::int64_t started_ns_;
  std::unique_ptr<cancel::Patience> patience_;  // set if the command continues after cancellation
  CommandResult result_;
  bool done_ = false;
};

}  // namespace

Result<std::unique_ptr<RunningCommand>> run_beside(const LaunchSpec& spec, const CommandLimits& limits) {
  ROSE_CHECK(cgroup::make(spec.cgroup));
  const std::int64_t started_ns = monotonic_ns();
  const std::uint64_t log_bytes = limits.most_output > 0 ? size_of(spec.stdout_log) : 0;
  auto patience = limits.after_cancel_ns > 0 ? std::make_unique<cancel::Patience>() : nullptr;
  auto started = [&]() -> Result<Fd> {
    ROSE_TRY(Launch launch, Launch::prepare(spec));
    return launch.release();
  }();
  if (!started) {
    if (auto destroyed = cgroup::destroy(spec.cgroup); !destroyed) log::warning(destroyed.error().message);
    return Unexpected(std::move(started).error());
  }
  return std::unique_ptr<RunningCommand>(
      std::make_unique<Beside>(std::move(*started), spec, limits, started_ns, std::move(patience), log_bytes));
}

}  // namespace rose::deploy
