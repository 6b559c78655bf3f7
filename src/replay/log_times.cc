#include "replay/log_times.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <memory>

#include "base/clock.h"
#include "base/folder.h"
#include "base/thread.h"
#include "replay/run_logs.h"

namespace rose::replay {
namespace {

constexpr std::size_t kMostSamples = 200'000;  // at most this many samples of a file
constexpr std::size_t kMostBytes = std::size_t{64} << 20;

struct Sample {
  std::uint64_t bytes = 0;
  std::int64_t monotonic_ns = 0;
};

}  // namespace

struct LogTimes::Watch {
  Fd notify, wake;
  std::map<int, std::filesystem::path> folders;  // by watch descriptor
  std::map<std::filesystem::path, std::vector<Sample>> files;
  std::thread thread;

  void look(const std::filesystem::path& file) {
    const auto status = status_inside(file.parent_path(), file);
    if (!status) return;
    std::vector<Sample>& samples = files[file];
    const auto bytes = static_cast<std::uint64_t>(status->st_size);
    if (samples.size() < kMostSamples && (samples.empty() || samples.back().bytes != bytes))
      samples.push_back({bytes, monotonic_ns()});
  }

  void run() {
    alignas(inotify_event) std::array<char, 16384> buffer;
    for (;;) {
      std::array<pollfd, 2> wait = {pollfd{notify.get(), POLLIN, 0}, pollfd{wake.get(), POLLIN, 0}};
      if (::poll(wait.data(), wait.size(), -1) < 0 && errno != EINTR) return;
      const ssize_t got = ::read(notify.get(), buffer.data(), buffer.size());
      for (ssize_t at = 0; at < got;) {
        const auto* event = reinterpret_cast<const inotify_event*>(buffer.data() + at);
        at += static_cast<ssize_t>(sizeof(inotify_event) + event->len);
        const auto folder = folders.find(event->wd);
        if (folder == folders.end() || event->len == 0) continue;
        if (const std::filesystem::path file = folder->second / event->name; is_log(file)) look(file);
      }
      if ((wait[1].revents & POLLIN) != 0 && got <= 0) return;
    }
  }
};

LogTimes::LogTimes(std::unique_ptr<Watch> watch) : watch_(std::move(watch)) {}
LogTimes::LogTimes(LogTimes&&) noexcept = default;
LogTimes::~LogTimes() {
  if (watch_) stop();
}

Result<LogTimes> LogTimes::watch(const std::vector<std::filesystem::path>& folders) {
  auto watch = std::make_unique<Watch>();
  watch->notify = Fd(::inotify_init1(IN_NONBLOCK | IN_CLOEXEC));
  watch->wake = Fd(::eventfd(0, EFD_CLOEXEC));
  if (!watch->notify || !watch->wake) return fail_errno(ErrorKind::environment, "cannot watch the nodes' logs", errno);
  for (const std::filesystem::path& folder : folders) {
    const int number = ::inotify_add_watch(watch->notify.get(), folder.c_str(),
                                           IN_MODIFY | IN_CREATE | IN_MOVED_TO | IN_ONLYDIR | IN_DONT_FOLLOW);
    if (number < 0) return fail_errno(ErrorKind::environment, "cannot watch " + folder.string(), errno);
    watch->folders[number] = folder;
    if (const Result<OpenFolder> there = OpenFolder::open(folder))
      for (const std::string& name : there->names())
        if (is_log(name)) watch->look(folder / name);
  }
  ROSE_TRY(watch->thread, start_thread([w = watch.get()] { w->run(); }));
  return LogTimes(std::move(watch));
}

void LogTimes::stop() {
  if (!watch_->thread.joinable()) return;
  const std::uint64_t one = 1;
  [[maybe_unused]] const ssize_t ignored = ::write(watch_->wake.get(), &one, sizeof one);
  watch_->thread.join();
}

std::vector<std::int64_t> LogTimes::times(const std::filesystem::path& file) const {
  std::vector<std::int64_t> out;
  const auto samples = watch_->files.find(file);
  Result<std::string> text = read_inside(file.parent_path(), file, kMostBytes);
  if (samples == watch_->files.end() || samples->second.empty() || !text) return out;
  // Convert all times with the offset as it is now, as in a trace, because the wall clock may have been set meanwhile.
  const std::int64_t offset = wall_offset_ns();
  auto sample = samples->second.begin();
  for (std::size_t end = text->find('\n'); end != std::string::npos; end = text->find('\n', end + 1)) {
    while (sample->bytes <= end && sample + 1 != samples->second.end()) ++sample;
    out.push_back(sample->monotonic_ns + offset);
  }
  return out;
}

}  // namespace rose::replay
