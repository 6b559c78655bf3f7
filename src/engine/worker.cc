#include "engine/worker.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <condition_variable>
#include <cstdlib>
#include <deque>
#include <mutex>
#include <thread>

#include "base/cancel.h"
#include "base/file.h"
#include "base/folder.h"
#include "base/log.h"
#include "base/text.h"
#include "deploy/deployment.h"
#include "deploy/image_files.h"
#include "engine/run_files.h"
#include "engine/wire/tree.h"
#include "replay/run_logs.h"
#include "replay/runs_folder.h"
#include "schedule/schedule.h"

namespace rose::engine {
namespace {

namespace fs = std::filesystem;

constexpr std::array<std::pair<ErrorKind, std::string_view>, 6> kKinds = {{{ErrorKind::usage, "usage"},
                                                                           {ErrorKind::input, "input"},
                                                                           {ErrorKind::environment, "environment"},
                                                                           {ErrorKind::inconclusive, "inconclusive"},
                                                                           {ErrorKind::cancelled, "cancelled"},
                                                                           {ErrorKind::bug, "bug"}}};

// A private folder that is removed at the end. If a worker is killed, the next worker removes its folder.
class WorkFolder {
 public:
  static Result<WorkFolder> make() {
    const char* base = std::getenv("TMPDIR");
    const fs::path temporary = base != nullptr && *base != '\0' ? base : "/tmp";
    std::error_code error;
    for (const fs::directory_entry& entry : fs::directory_iterator(temporary, error)) remove_dead(entry.path());
    std::string name = (temporary / "rose-worker-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr)
      return fail_errno(ErrorKind::environment, fmt::format("cannot create a folder in {}", temporary.string()), errno);
    WorkFolder folder;
    folder.path_ = name;
    folder.lock_ = Fd(::open((folder.path_ / "lock").c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
    if (!folder.lock_ || ::flock(folder.lock_.get(), LOCK_EX | LOCK_NB) != 0)
      return fail_errno(ErrorKind::environment, fmt::format("cannot lock {}", name), errno);
    ::chmod(name.c_str(), 0711);  // nodes may run as other users
    return folder;
  }
  WorkFolder(WorkFolder&& other) noexcept : path_(std::exchange(other.path_, {})), lock_(std::move(other.lock_)) {}
  WorkFolder& operator=(WorkFolder&&) = delete;
  ~WorkFolder() {
    if (!path_.empty()) remove_tree(path_);
  }
  [[nodiscard]] const fs::path& path() const { return path_; }

 private:
  WorkFolder() = default;
  static void remove_dead(const fs::path& path) {
    struct stat info{};
    if (!path.filename().string().starts_with("rose-worker-") || ::lstat(path.c_str(), &info) != 0 ||
        !S_ISDIR(info.st_mode) || info.st_uid != ::geteuid())
      return;
    const Fd lock(::open((path / "lock").c_str(), O_RDWR | O_NOFOLLOW | O_CLOEXEC));
    if (!lock || ::flock(lock.get(), LOCK_EX | LOCK_NB) != 0) return;
    replay::remove_runs(path);
  }
  fs::path path_;
  Fd lock_;
};

// Reads input in its own thread during a run, so that the end of the input also ends the run.
class Line {
 public:
  Line(Fd in, Fd out) : in_(std::move(in)), out_(std::move(out)), wake_(::eventfd(0, EFD_CLOEXEC)) {
    reader_ = std::thread([this] { read(); });
  }
  ~Line() {
    const std::uint64_t one = 1;
    [[maybe_unused]] const ssize_t ignored = ::write(wake_.get(), &one, sizeof one);
    reader_.join();
    if (beat_.joinable()) {
      {
        std::lock_guard lock(mutex_);
        ended_ = true;
      }
      came_.notify_all();
      beat_.join();
    }
  }

  // Returns nothing at the end of the input.
  Result<std::optional<Message>> next() {
    std::unique_lock lock(mutex_);
    came_.wait(lock, [&] { return !messages_.empty() || ended_; });
    if (!messages_.empty()) {
      std::optional<Message> message = std::move(messages_.front());
      messages_.pop_front();
      return message;
    }
    if (trouble_) return Unexpected(*trouble_);
    return std::nullopt;
  }

  void say(const Message& message) {
    const std::string bytes = to_bytes(message);
    std::lock_guard lock(write_);
    std::string_view left = bytes;
    while (!left.empty()) {
      const ssize_t n = ::write(out_.get(), left.data(), left.size());
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) {
        cancel::request();  // the diagnosis has ended
        return;
      }
      left.remove_prefix(static_cast<std::size_t>(n));
    }
  }

  // Sends a message at this interval to show that the worker is alive.
  void beat(std::int64_t every_ms) {
    if (beat_.joinable()) return;
    beat_ = std::thread([this, every_ms] {
      Message alive;
      alive.header["type"] = "alive";
      std::unique_lock lock(mutex_);
      while (!came_.wait_for(lock, std::chrono::milliseconds(every_ms), [&] { return ended_; })) {
        lock.unlock();
        say(alive);
        lock.lock();
      }
    });
  }

 private:
  void read() {
    Inbox inbox;
    std::vector<char> buffer(std::size_t{1} << 18);
    std::optional<Error> trouble;
    for (bool more = true; more;) {
      std::array<pollfd, 3> fds = {{{in_.get(), POLLIN, 0}, {wake_.get(), POLLIN, 0}, {cancel::fd(), POLLIN, 0}}};
      if (::poll(fds.data(), fds.size(), -1) < 0) continue;
      if (fds[1].revents != 0 || fds[2].revents != 0) break;
      if (fds[0].revents == 0) continue;
      const ssize_t n = ::read(in_.get(), buffer.data(), buffer.size());
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) break;
      inbox.add({buffer.data(), static_cast<std::size_t>(n)});
      for (;;) {
        Result<std::optional<Message>> message = inbox.next();
        if (!message) {
          trouble = message.error();
          more = false;
          break;
        }
        if (!*message) break;
        std::unique_lock lock(mutex_);
        messages_.push_back(*std::move(*message));
        came_.notify_all();
        // Waits, because the diagnosis may send faster than the disk can write.
        while (messages_.size() > 64 && !cancel::requested()) {
          lock.unlock();
          cancel::sleep(1'000'000);
          lock.lock();
        }
      }
    }
    {
      std::lock_guard lock(mutex_);
      ended_ = true;
      trouble_ = std::move(trouble);
    }
    came_.notify_all();
    cancel::request();
  }

  Fd in_, out_, wake_;
  std::mutex mutex_, write_;
  std::condition_variable came_;
  std::deque<Message> messages_;
  bool ended_ = false;
  std::optional<Error> trouble_;
  std::thread reader_, beat_;
};

Json error_json(const Error& error) {
  return {{"kind", name_of(error.kind)}, {"message", error.message}, {"hint", error.hint}};
}

class Worker {
 public:
  Worker(Line& line, const WorkerOptions& options, const fs::path& folder)
      : line_(line), options_(options), folder_(folder) {}

  Result<void> work() {
    for (;;) {
      ROSE_TRY(const std::optional<Message> message, line_.next());
      if (!message) return {};
      const std::string type = message->type();
      if (type == "hello") ROSE_CHECK(greet(*message));
      else if (type == "begin") ROSE_CHECK(begin(*message));
      else if (type == "piece") ROSE_CHECK(piece(*message));
      else if (type == "run") ROSE_CHECK(make(*message));
      else return fail(ErrorKind::input, fmt::format("the diagnosis sent an unknown message '{}'", printable(type)));
    }
  }

  // Cleans up after killed workers on this host, because there may be no later worker that could do it. A worker that
  // received no greeting was started only for this purpose.
  void end() {
    if (builder_ || !greeted_) heal();
  }

 private:
  Result<void> greet(const Message& message) {
    char host[256] = {};
    ::gethostname(host, sizeof host - 1);
    line_.say(
        {{{"type", "hello"}, {"protocol", kProtocol}, {"rose", options_.version}, {"host", host}, {"pid", ::getpid()}},
         {}});
    ROSE_TRY(const std::int64_t protocol, message.number("protocol"));
    ROSE_TRY(const std::string version, message.text("rose"));
    if (protocol != kProtocol || version != options_.version)
      return fail(ErrorKind::environment,
                  fmt::format("the diagnosis is rose {} (protocol {}), this worker is rose {} (protocol {})",
                              printable(version), protocol, options_.version, kProtocol),
                  "install the same version on both");
    greeted_ = true;
    return options_.check();
  }

  Result<void> begin(const Message& message) {
    if (!greeted_ || builder_) return fail(ErrorKind::input, "unexpected start message");
    ROSE_TRY(const std::int64_t every, message.number("beat_ms"));
    line_.beat(std::clamp<std::int64_t>(every, 10, 60'000));
    ROSE_TRY(config_name_, message.text("config"));
    if (!stays_inside(config_name_) || !message.header.contains("files"))
      return fail(ErrorKind::input, "the folder of the configuration was not described");
    ROSE_TRY(Tree tree, tree_from(message.header["files"]));
    if (!message.payload.empty()) {
      ROSE_TRY(profile_, profile::parse_profile(message.payload, "the profile"));
    }
    const auto flag = [&](const char* key) { return message.header.contains(key) && message.header[key] == true; };
    allow_attached_ = flag("allow_attached");
    logs_ = flag("logs");
    keep_ = flag("keep");
    if (message.header.contains("elsewhere") && message.header["elsewhere"].is_object())
      elsewhere_ = message.header["elsewhere"];
    heal();
    const fs::path root = folder_ / "configuration";
    std::error_code error;
    fs::create_directory(root, error);
    if (error) return fail(ErrorKind::environment, fmt::format("cannot create {}: {}", root.string(), error.message()));
    ::chmod(root.c_str(), 0755);
    builder_.emplace(root, std::move(tree));
    line_.say({{{"type", "lacks"}, {"digests", builder_->lacking()}}, {}});
    return builder_->complete() ? ready() : Result<void>();
  }

  Result<void> piece(const Message& message) {
    ROSE_TRY(const std::string digest, message.text("digest"));
    if (!builder_ || config_) return fail(ErrorKind::input, "a file was sent that was not requested");
    ROSE_CHECK(builder_->piece(digest, message.payload));
    return builder_->complete() ? ready() : Result<void>();
  }

  Result<void> ready() {
    ROSE_CHECK(builder_->finish());
    ROSE_TRY(config_, config::read_config(folder_ / "configuration" / config_name_));
    ROSE_TRY(image_files_, deploy::take_programs_out(*config_));
    ROSE_CHECK(replay::need_workload_and_oracle(*config_));
    // Programs outside the folder must be identical on both machines, or runs would not be comparable.
    std::vector<std::string> others;
    for (const auto& [path, digest] : elsewhere_.items()) {
      if (!digest.is_string()) continue;
      const Result<std::string> own = digest_of(path);
      if (!own || *own != digest.get<std::string>()) others.push_back(own ? path : path + " (it does not exist)");
    }
    line_.say({{{"type", "ready"}, {"others", others}}, {}});
    return {};
  }

  Result<void> make(const Message& message) {
    ROSE_TRY(const std::int64_t id, message.number("id"));
    if (!config_) return fail(ErrorKind::input, "a run was requested before the configuration arrived");
    Result<Message> made = run(static_cast<int>(std::clamp<std::int64_t>(id, 1, 1'000'000'000)), message.payload);
    if (!made && made.error().kind == ErrorKind::cancelled)
      return {};  // the diagnosis has ended, or cancelled this worker because the host is needed for something else
    if (!made) made = Message{{{"type", "failed"}, {"error", error_json(made.error())}}, {}};
    made->header["id"] = id;
    line_.say(*made);
    return {};
  }

  Result<Message> run(int number, const std::string& text) {
    ROSE_TRY(const schedule::Schedule schedule, schedule::parse_schedule(text, "the schedule"));
    // The number in the folder's name is random: nodes of an earlier run may know in which folder runs are stored, so
    // they must not be able to predict the name.
    const fs::path run_dir = folder_ / replay::unforeseen_name("run-");
    ROSE_CHECK(make_own_folder(run_dir, 0711));
    struct Remove {
      const fs::path& path;
      ~Remove() { remove_tree(path); }
    } const remove{run_dir};
    jvm::CodeBook code;
    replay::RunOptions options;
    options.number = number;
    options.run_dir = run_dir;
    options.allow_attached = allow_attached_;
    options.tracer = replay::tracer_options(*config_);
    options.tracer.programs = programs_;
    options.code_book = &code;
    if (profile_) options.profile = &*profile_, options.usual = replay::usual_of(*profile_);
    std::optional<logs::Watch> watch;
    if (logs_)
      watch.emplace([&] {
        std::vector<logs::Input> files;
        for (replay::NodeLogFile& log : replay::run_logs(*config_, run_dir))
          files.push_back({std::move(log.path), std::move(log.node), std::move(log.folder)});
        return files;
      });
    Result<replay::Run> made = replay::run_once(*config_, schedule, options);
    if (watch) watch->stop();
    if (!made) return Unexpected(std::move(made).error());
    const bool telling = made->result.verdict != schedule::Verdict::not_reproduced;
    const Keep keep = keep_ || telling ? Keep::all : logs_ ? Keep::logs : Keep::nothing;
    return pack_run(*made, schedule, *config_, run_dir, keep, code, watch ? watch->growth() : logs::Watch::Growth());
  }

  // Undoes what killed workers left on this machine.
  static void heal() {
    const Result<deploy::Healed> healed = deploy::heal({});
    if (!healed) {
      log::warning("leftovers of killed rose processes were not searched for: {}", healed.error().message);
      return;
    }
    for (const std::string& line : healed->undone) log::info("left by a rose that was killed: {}", line);
    for (const std::string& line : healed->failed) log::warning("left by a rose that was killed: {}", line);
  }

  Line& line_;
  const WorkerOptions& options_;
  const fs::path& folder_;
  bool greeted_ = false;
  std::string config_name_;
  std::optional<TreeBuilder> builder_;
  std::optional<config::Config> config_;
  std::unique_ptr<deploy::ImageFiles> image_files_;  // outlives the runs
  std::optional<profile::Profile> profile_;
  const std::shared_ptr<observe::KeptPrograms> programs_ = observe::keep_programs();
  Json elsewhere_ = Json::object();
  bool allow_attached_ = false, logs_ = false, keep_ = false;
};

}  // namespace

std::string_view name_of(ErrorKind kind) {
  for (const auto& [known, name] : kKinds)
    if (known == kind) return name;
  return "bug";
}

ErrorKind kind_named(std::string_view name) {
  for (const auto& [kind, known] : kKinds)
    if (known == name) return kind;
  return ErrorKind::environment;
}

Result<void> serve(Fd in, Fd out, const WorkerOptions& options) {
  ROSE_TRY(const WorkFolder folder, WorkFolder::make());
  Line line(std::move(in), std::move(out));
  Worker worker(line, options, folder.path());
  Result<void> worked = worker.work();
  if (!worked) line.say({{{"type", "refused"}, {"error", error_json(worked.error())}}, {}});
  worker.end();
  return worked;
}

}  // namespace rose::engine
