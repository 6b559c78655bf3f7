#include "engine/fleet.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "base/cancel.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "base/pipe.h"
#include "base/subprocess.h"
#include "base/text.h"
#include "base/units.h"
#include "engine/run_files.h"
#include "engine/worker.h"

namespace rose::engine {
namespace {

// A worker is given up when the weights of its consecutive failures sum up to this number, or after this many unusable
// runs in succession.
constexpr int kMostFailures = 6;
constexpr int kMostLosses = 5;                      // number of workers that one run may lose before it is abandoned
constexpr std::int64_t kUndoing = 120 * kSecond;    // time that a worker has to end its run and clean up
constexpr std::int64_t kTerminating = 5 * kSecond;  // time between SIGTERM and SIGKILL
constexpr std::int64_t kTellsStatus = 3 * kSecond;
constexpr std::size_t kMostErrors = 8192;  // per line on stderr
constexpr std::size_t kMostReported = 200;
constexpr std::size_t kFull = 4 * kChunk;

void do_not_block(const Fd& fd) { ::fcntl(fd.get(), F_SETFL, ::fcntl(fd.get(), F_GETFL) | O_NONBLOCK); }

Done lost_run(const Job& job, std::string why) {
  return {job.id, [why = std::move(why)](const std::filesystem::path& run_dir) -> Result<replay::Run> {
            replay::Run run;
            run.result.reason = why;
            run.result.directory = run_dir;
            return run;
          }};
}

}  // namespace

// Assumption: each step of a run has a timeout, so a run that has taken twice the sum of all timeouts will not end.
// Goal: a worker that is stuck but still sends signs of life does not stop the diagnosis. A further hour is allowed for
// a busy machine, and for steps whose limits the configuration does not state: setup, form, teardown, and fetching
// images.
std::int64_t run_limit(const config::Config& config) {
  std::int64_t sum = 0;
  for (const config::Node& node : config.nodes) sum += node.ready ? node.ready->timeout_ns : 30 * kSecond;
  if (config.workload) sum += config.workload->timeout_ns;
  if (config.oracle) sum += config.oracle->timeout_ns;
  return 3600 * kSecond + 2 * sum;
}

struct Fleet::Worker {
  enum class State { down, greeting, preparing, idle, running, given_up };
  int place = 0;   // index among the workers
  int number = 0;  // number of this start
  int starts = 0;
  int failures = 0;  // consecutive
  State state = State::down;
  std::int64_t due_ns = 0;  // when to start it again
  std::int64_t heard_ns = 0;
  pid_t pid = 0;    // the worker's process, or its last one if that has ended
  Fd in, out, err;  // of the worker: rose writes to the first and reads from the others
  Inbox inbox;
  std::string outbox;
  std::size_t sent = 0;
  std::deque<std::string> lacks;  // digests of files that it still needs
  Fd file;                        // the file being sent
  bool file_began = false;
  std::string errors, last_error;
  std::optional<Job> job;
  std::int64_t job_since_ns = 0;

  [[nodiscard]] bool up() const { return state != State::down && state != State::given_up; }
};

// A worker that was asked to end or has ended, and what remains to be done for it.
struct Fleet::Ending {
  pid_t pid = 0;
  std::string who, why;  // `why` is "" if the worker was meant to end
  std::string last_error;
  std::int64_t since_ns = 0;
  bool hangs = false;  // it will not end by itself
  bool reported = false, terminated = false, killed = false;
  bool worked = false;  // it may have left a folder on its host
  std::string place;
  std::pair<int, int> start;  // the worker's index and the number of its start
};

Fleet::Fleet(Engine engine, Tree tree, FleetOptions options)
    : engine_(std::move(engine)),
      tree_(std::move(tree)),
      options_(std::move(options)),
      wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  for (const Entry& entry : tree_.entries)
    if (!entry.folder) files_.emplace(entry.digest, tree_.root / entry.path);
  for (int i = 0; i < engine_.workers(); ++i) {
    crew_.push_back(std::make_unique<Worker>());
    crew_.back()->place = i;
  }
  unusable_.resize(crew_.size());
}

Fleet::~Fleet() {
  {
    std::lock_guard lock(mutex_);
    stop_ = true;
  }
  const std::uint64_t one = 1;
  [[maybe_unused]] const ssize_t ignored = ::write(wake_.get(), &one, sizeof one);
  if (driver_.joinable()) driver_.join();
}

std::set<int> Fleet::plan(const std::vector<Job>& jobs) {
  std::set<int> begun;
  {
    std::lock_guard lock(mutex_);
    for (const auto& [id, job] : under_way_) begun.insert(id);
    for (const Arrived& arrived : done_) begun.insert(arrived.done.id);
    queue_.clear();
    for (const Job& job : jobs)
      if (!begun.contains(job.id)) queue_.push_back(job);
  }
  if (!driver_.joinable()) driver_ = std::thread([this] { drive(); });
  const std::uint64_t one = 1;
  [[maybe_unused]] const ssize_t ignored = ::write(wake_.get(), &one, sizeof one);
  return begun;
}

Result<Done> Fleet::wait() {
  for (;;) {
    std::unique_lock lock(mutex_);
    came_.wait(lock, [&] { return !done_.empty() || error_ || cancel::requested(); });
    ROSE_CHECK(cancel::check());
    if (done_.empty()) return Unexpected(Error(*error_));
    Arrived arrived = std::move(done_.front());
    done_.pop_front();
    lock.unlock();
    if (std::optional<Done> done = checked(std::move(arrived))) return *std::move(done);
  }
}

// Checks what a worker sent. Returns nothing if it is not a run; the run is then repeated.
std::optional<Done> Fleet::checked(Arrived arrived) {
  const Result<void> readable = arrived.check ? arrived.check() : Result<void>();
  const std::lock_guard lock(mutex_);
  Unusable& unusable = unusable_[static_cast<std::size_t>(arrived.place)];
  if (readable) {
    unusable.count = 0;
    losses_.erase(arrived.done.id);
    return std::move(arrived.done);
  }
  ++unusable.count;
  unusable.why = readable.error().message;
  const std::string what = fmt::format("{}: {}", arrived.who, readable.error().message);
  if (++losses_[arrived.done.id] >= kMostLosses) {
    log::warning("{}: its run was lost {} times and is abandoned", what, kMostLosses);
    return lost_run(arrived.job, fmt::format("{} workers were lost during this run or sent unusable data, the "
                                             "last one {}",
                                             kMostLosses, what));
  }
  log::warning("{}: another worker makes its run", what);
  arrived.job.avoid = arrived.place;
  queue_.push_front(std::move(arrived.job));
  const std::uint64_t one = 1;
  [[maybe_unused]] const ssize_t ignored = ::write(wake_.get(), &one, sizeof one);
  return std::nullopt;
}

std::string Fleet::name(const Worker& worker) const {
  return fmt::format("worker {} ({})", worker.number, printable(engine_.place(worker.place, worker.starts - 1)));
}

// The driving thread

void Fleet::drive() {
  std::int64_t looked_ns = monotonic_ns();
  for (;;) {
    bool stop = false;
    bool work = false;
    {
      std::lock_guard lock(mutex_);
      stop = stop_;
      work = !queue_.empty() || !under_way_.empty();
    }
    if (cancel::requested()) {
      stop = true;
      std::lock_guard lock(mutex_);
      came_.notify_all();
    }
    if (stop) {
      for (const auto& worker : crew_)
        if (worker->up()) end(*worker, "");
      reap(true);
      if (endings_.empty() && !sweep()) {
        // All workers have ended, and this thread cannot carry out later plans, so it only waits for `stop_`. The
        // thread in wait() was woken by the cancellation.
        std::unique_lock lock(mutex_);
        if (stop_) return;
        lock.unlock();
        ::usleep(10'000);
        continue;
      }
    }
    const std::int64_t now = monotonic_ns();
    // A long interval means that this process was stopped or the machine was suspended, so silence says nothing about
    // workers.
    const std::int64_t slept = now - looked_ns;
    looked_ns = now;
    if (!stop) {
      for (const auto& worker : crew_) {
        if (slept > options_.silence_ns / 4) {
          worker->heard_ns = now;
          worker->job_since_ns += slept;
        }
        // A replacement starts only when the worker that it replaces has ended, because it cleans up after that worker.
        const bool gone = std::none_of(endings_.begin(), endings_.end(),
                                       [&](const Ending& ending) { return ending.pid == worker->pid; });
        if (worker->state == Worker::State::down && work && worker->due_ns <= now && gone) start(*worker);
        const bool speaks = worker->state != Worker::State::greeting && worker->up();
        if (speaks && now - worker->heard_ns > options_.silence_ns)
          lose(*worker, fmt::format("sent nothing for {}", format_duration(options_.silence_ns)), 1, true);
        else if (worker->job && options_.run_limit_ns > 0 && now - worker->job_since_ns > options_.run_limit_ns)
          lose(*worker, fmt::format("did not end its run within {}", format_duration(options_.run_limit_ns)), 1, true);
        if (const std::string why = worker->up() ? only_unusable(*worker) : ""; !why.empty()) {
          worker->failures = kMostFailures;
          lose(*worker, why, 0);
        }
      }
      give_jobs();
    }
    reap(false);

    std::vector<pollfd> fds = {{wake_.get(), POLLIN, 0}};
    if (cancel::fd() >= 0 && !cancel::requested()) fds.push_back({cancel::fd(), POLLIN, 0});
    std::vector<std::pair<Worker*, std::size_t>> places;
    for (const auto& worker : crew_) {
      if (!worker->up()) continue;
      feed(*worker);
      places.emplace_back(worker.get(), fds.size());
      fds.push_back({worker->out.get(), POLLIN, 0});
      fds.push_back({worker->err.get(), POLLIN, 0});  // -1 after its end, which poll ignores
      fds.push_back({worker->sent < worker->outbox.size() ? worker->in.get() : -1, POLLOUT, 0});
    }
    const bool soon = !endings_.empty() || std::any_of(crew_.begin(), crew_.end(), [](const auto& one) {
      return one->state == Worker::State::down;
    });
    const std::int64_t wait_ns = soon ? kSecond / 20 : std::min(kSecond, options_.silence_ns / 8);
    ::poll(fds.data(), fds.size(), static_cast<int>(std::max<std::int64_t>(1, wait_ns / 1'000'000)));
    if (fds[0].revents != 0) {
      std::uint64_t count = 0;
      [[maybe_unused]] const ssize_t ignored = ::read(wake_.get(), &count, sizeof count);
    }
    for (const auto& [worker, at] : places) {
      if (fds[at + 1].revents != 0) read_errors(*worker, false);
      if (fds[at + 2].revents != 0) write_to(*worker);
      if (!worker->up() || fds[at].revents == 0) continue;
      if (Result<void> read = read_from(*worker); !read) lose(*worker, read.error().message, 3);
    }
  }
}

// If the worker has sent kMostFailures unusable runs in succession, resets the count of these runs and returns why the
// worker is given up. Otherwise returns "".
std::string Fleet::only_unusable(const Worker& worker) {
  const std::lock_guard lock(mutex_);
  Unusable& unusable = unusable_[static_cast<std::size_t>(worker.place)];
  if (unusable.count < kMostFailures) return {};
  unusable.count = 0;
  return fmt::format("could not be used for {} runs in succession, the last time because: {}", kMostFailures,
                     unusable.why);
}

void Fleet::start(Worker& worker) {
  const std::vector<std::string> argv = engine_.argv(worker.place, worker.starts, started_ + 1);
  const int start_number = ++started_;
  worker.number = start_number;
  ++worker.starts;
  const auto failed = [&](const Error& error) {
    worker.state = Worker::State::given_up;
    give_up(fmt::format("{}: {}", name(worker), error.message));
  };
  unswept_.erase(engine_.place(worker.place, worker.starts - 1));  // this worker removes what was left there
  Result<Pipe> in = make_pipe();
  Result<Pipe> out = make_pipe();
  Result<Pipe> err = make_pipe();
  if (!in || !out || !err) return failed(!in ? in.error() : !out ? out.error() : err.error());
  const Result<pid_t> pid = spawn_process(argv, in->read.get(), out->write.get(), err->write.get());
  if (!pid) return failed(pid.error());
  worker.pid = *pid;
  worker.in = std::move(in->write);
  worker.out = std::move(out->read);
  worker.err = std::move(err->read);
  for (const Fd* fd : {&worker.in, &worker.out, &worker.err}) do_not_block(*fd);
  worker.state = Worker::State::greeting;
  worker.heard_ns = monotonic_ns();
  worker.inbox = {};
  worker.sent = 0;
  worker.lacks.clear();
  worker.file.reset();
  worker.errors.clear();
  worker.last_error.clear();
  worker.outbox = to_bytes({{{"type", "hello"}, {"protocol", kProtocol}, {"rose", options_.version}}, {}});
  log::debug("{} started: {}", name(worker), fmt::join(argv, " "));
}

Result<void> Fleet::read_from(Worker& worker) {
  std::vector<char> buffer(std::size_t{1} << 18);
  for (;;) {
    const ssize_t n = ::read(worker.out.get(), buffer.data(), buffer.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno == EAGAIN) return {};
    if (n <= 0) {
      // the loss is reported together with how the worker ended
      lose(worker, "", worker.state == Worker::State::greeting ? 2 : 1);
      return {};
    }
    worker.heard_ns = monotonic_ns();
    worker.inbox.add({buffer.data(), static_cast<std::size_t>(n)});
    for (;;) {
      ROSE_TRY(std::optional<Message> message, worker.inbox.next());
      if (!message) break;
      ROSE_CHECK(hear(worker, *std::move(message)));
      if (!worker.up()) return {};
    }
    if (static_cast<std::size_t>(n) < buffer.size()) return {};
  }
}

Result<void> Fleet::hear(Worker& worker, Message message) {
  const std::string type = message.type();
  if (type == "alive") return {};
  if (type == "refused") {
    std::string why = "refused";
    if (message.header.contains("error") && message.header["error"].is_object()) {
      const Json& error = message.header["error"];
      if (error.contains("message") && error["message"].is_string())
        why = "says: " + printable(error["message"].get<std::string>());
      if (error.contains("hint") && error["hint"].is_string() && !error["hint"].get_ref<const std::string&>().empty())
        why += fmt::format(" ({})", printable(error["hint"].get<std::string>()));
    }
    lose(worker, std::move(why), 3);
    return {};
  }
  if (type == "hello" && worker.state == Worker::State::greeting) {
    ROSE_TRY(const std::int64_t protocol, message.number("protocol"));
    ROSE_TRY(const std::string version, message.text("rose"));
    if (protocol != kProtocol || version != options_.version) {
      lose(worker,
           fmt::format("is rose {} (protocol {}), this one is {} (protocol {}): install the same version on both",
                       printable(version), protocol, options_.version, kProtocol),
           3);
      return {};
    }
    worker.state = Worker::State::preparing;
    Message begin;
    begin.header = {{"type", "begin"},
                    {"config", options_.config},
                    {"allow_attached", options_.allow_attached},
                    {"logs", options_.logs},
                    {"keep", options_.keep},
                    {"beat_ms", std::clamp<std::int64_t>(options_.silence_ns / 4'000'000, 10, 5000)},
                    {"elsewhere", options_.elsewhere},
                    {"files", to_json(tree_)}};
    if (options_.profile != nullptr) begin.payload = profile::to_json(*options_.profile);
    worker.outbox += to_bytes(begin);
    return {};
  }
  if (type == "lacks" && worker.state == Worker::State::preparing) {
    const auto digests = message.header.find("digests");
    if (digests == message.header.end() || !digests->is_array())
      return fail(ErrorKind::input, "asks for files without naming them");
    for (const Json& digest : *digests) {
      if (!digest.is_string() || !files_.contains(digest.get<std::string>()))
        return fail(ErrorKind::input, "asks for a file that is not available");
      worker.lacks.push_back(digest.get<std::string>());
    }
    if (worker.lacks.size() > files_.size()) return fail(ErrorKind::input, "asks for a file twice");
    return {};
  }
  if (type == "ready" && worker.state == Worker::State::preparing) {
    worker.state = Worker::State::idle;
    log::debug("{} is ready", name(worker));
    if (const auto others = message.header.find("others"); others != message.header.end() && others->is_array())
      for (const Json& other : *others)
        if (other.is_string() && reported_.size() < kMostReported && reported_.insert(other.get<std::string>()).second)
          log::warning(
              "{}: {} differs from the file here; keep the programs of nodes in the configuration's folder, which is "
              "copied",
              name(worker), printable(other.get<std::string>()));
    return {};
  }
  if ((type == "made" || type == "failed") && worker.state == Worker::State::running) {
    ROSE_TRY(const std::int64_t id, message.number("id"));
    if (id != worker.job->id) return fail(ErrorKind::input, "sent a run that was not requested");
    Arrived arrived;
    arrived.job = *worker.job;
    arrived.place = worker.place;
    arrived.who = name(worker);
    Done& done = arrived.done;
    done.id = worker.job->id;
    if (type == "failed") {
      Error error{ErrorKind::environment, "a run failed", ""};
      if (const auto sent = message.header.find("error"); sent != message.header.end() && sent->is_object()) {
        const auto text = [&](const char* key) {
          return sent->contains(key) && (*sent)[key].is_string() ? printable((*sent)[key].get<std::string>())
                                                                 : std::string();
        };
        error = {kind_named(text("kind")), text("message"), text("hint")};
      }
      // A mistake in the schedule or the configuration (usage, input) has the same effect on every machine. Any other
      // error may have its cause on this worker's machine, so another worker makes the run.
      if (error.kind != ErrorKind::usage && error.kind != ErrorKind::input)
        arrived.check = [error]() -> Result<void> {
          return fail(error.kind, fmt::format("cannot make a run: {}", error.message), error.hint);
        };
      done.open = [error](const std::filesystem::path&) -> Result<replay::Run> { return Unexpected(Error(error)); };
    } else {
      const auto made = std::make_shared<Message>(std::move(message));
      arrived.check = [made, schedule = worker.job->schedule]() -> Result<void> {
        ROSE_TRY(const schedule::Schedule asked, schedule::parse_schedule(*schedule, "the schedule"));
        return check_run(*made, schedule::fingerprint(asked));
      };
      done.open = [this, schedule = worker.job->schedule, who = name(worker),
                   message = made](const std::filesystem::path& run_dir) -> Result<replay::Run> {
        ROSE_TRY(const schedule::Schedule asked, schedule::parse_schedule(*schedule, "the schedule"));
        Result<Unpacked> unpacked = unpack_run(*message, schedule::fingerprint(asked), run_dir, options_.code_book);
        if (!unpacked) {  // the run becomes inconclusive, but the search continues
          replay::Run run;
          run.result.reason = fmt::format("{}: {}", who, unpacked.error().message);
          run.result.directory = run_dir;
          return run;
        }
        if (unpacked->stayed > 0)
          log::warning("{} file{} of a run stayed with {}: too large to send", unpacked->stayed,
                       unpacked->stayed == 1 ? "" : "s", who);
        unpacked->run.result.directory = run_dir;
        if (options_.seen) options_.seen(run_dir, std::move(unpacked->growth));
        return std::move(unpacked->run);
      };
    }
    worker.failures = 0;
    worker.state = Worker::State::idle;
    worker.job.reset();
    {
      std::lock_guard lock(mutex_);
      under_way_.erase(done.id);
      done_.push_back(std::move(arrived));
    }
    came_.notify_all();
    give_jobs();
    return {};
  }
  return fail(ErrorKind::input, fmt::format("sent an unexpected message '{}'", printable(type)));
}

// Reads lines from the worker's stderr. Each warning is printed once, other lines only with --verbose.
void Fleet::read_errors(Worker& worker, bool last) {
  std::array<char, 16384> buffer;
  for (;;) {
    const ssize_t n = worker.err ? ::read(worker.err.get(), buffer.data(), buffer.size()) : 0;
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) break;
    if (n == 0) {
      worker.err.reset();
      break;
    }
    worker.errors.append(buffer.data(), static_cast<std::size_t>(n));
    for (std::size_t end = worker.errors.find('\n'); end != std::string::npos || worker.errors.size() > kMostErrors;
         end = worker.errors.find('\n')) {
      const std::string line = printable(worker.errors.substr(0, std::min(end, kMostErrors)));
      worker.errors.erase(0, end == std::string::npos ? kMostErrors : end + 1);
      if (line.empty()) continue;
      worker.last_error = line;
      constexpr std::string_view warning = "rose: warning: ";
      if (line.starts_with(warning) && reported_.size() < kMostReported && reported_.insert(line).second)
        log::warning("{}: {}", name(worker), line.substr(warning.size()));
      else log::debug("{}: {}", name(worker), line);
    }
  }
  if (last && !worker.errors.empty()) worker.last_error = printable(worker.errors);
}

void Fleet::write_to(Worker& worker) {
  while (worker.sent < worker.outbox.size()) {
    const ssize_t n = ::write(worker.in.get(), worker.outbox.data() + worker.sent, worker.outbox.size() - worker.sent);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return;  // the pipe is full, or the worker has ended and its output will end too
    worker.sent += static_cast<std::size_t>(n);
  }
  worker.outbox.clear();
  worker.sent = 0;
}

// Sends the next pieces of files that the worker needs.
void Fleet::feed(Worker& worker) {
  while (!worker.lacks.empty() && worker.outbox.size() - worker.sent < kFull) {
    const std::string& digest = worker.lacks.front();
    if (!worker.file) {
      worker.file = open_regular(files_.at(digest));
      worker.file_began = false;
      if (!worker.file)
        return lose(worker, fmt::format("can't be sent {}: {}", files_.at(digest).string(), std::strerror(errno)), 3);
    }
    Message piece;
    piece.header = {{"type", "piece"}, {"digest", digest}};
    piece.payload.resize(kChunk);
    const ssize_t n = ::read(worker.file.get(), piece.payload.data(), piece.payload.size());
    if (n < 0 && errno == EINTR) continue;
    piece.payload.resize(static_cast<std::size_t>(std::max<ssize_t>(0, n)));
    if (n > 0 || !worker.file_began) worker.outbox += to_bytes(piece);
    worker.file_began = true;
    if (n > 0) continue;
    worker.file.reset();
    worker.lacks.pop_front();
  }
}

void Fleet::give_jobs() {
  std::lock_guard lock(mutex_);
  const auto there =
      std::count_if(crew_.begin(), crew_.end(), [](const auto& one) { return one->state != Worker::State::given_up; });
  for (const auto& worker : crew_) {
    if (worker->state != Worker::State::idle) continue;
    const auto job = std::find_if(queue_.begin(), queue_.end(),
                                  [&](const Job& one) { return there == 1 || one.avoid != worker->place; });
    if (job == queue_.end()) continue;
    worker->job = std::move(*job);
    worker->job_since_ns = monotonic_ns();
    queue_.erase(job);
    under_way_.emplace(worker->job->id, *worker->job);
    worker->state = Worker::State::running;
    worker->outbox += to_bytes({{{"type", "run"}, {"id", worker->job->id}}, *worker->job->schedule});
    write_to(*worker);
  }
}

// `weight`: how much this failure counts. When consecutive failures sum up to kMostFailures, the worker is not
// replaced.
void Fleet::lose(Worker& worker, std::string why, int weight, bool hangs) {
  read_errors(worker, true);
  const bool worked = worker.state == Worker::State::running || worker.state == Worker::State::idle;
  std::string then;
  if (worker.job) {
    const Job job = *std::exchange(worker.job, std::nullopt);
    std::lock_guard lock(mutex_);
    under_way_.erase(job.id);
    if (++losses_[job.id] >= kMostLosses) {
      then = fmt::format("its run has lost {} workers and is abandoned", kMostLosses);
      done_.push_back(
          {lost_run(job, fmt::format("{} workers were lost during this run, the last one {}{}", kMostLosses,
                                     name(worker), worker.last_error.empty() ? "" : ": " + worker.last_error)),
           {},
           job,
           worker.place,
           name(worker)});
      came_.notify_all();
    } else {
      then = "another worker makes its run";
      queue_.push_front(job);
    }
  }
  worker.failures += worked ? 1 : weight;
  const bool given_up = worker.failures >= kMostFailures;
  const std::string who = name(worker);
  end(worker, why.empty()    ? (then.empty() ? "has ended" : "has ended: " + then)
              : then.empty() ? why
                             : why + ": " + then);
  endings_.back().hangs = hangs;
  if (given_up) {
    worker.state = Worker::State::given_up;
    const std::string last = endings_.back().last_error;
    give_up(fmt::format("{} {}{}", who, why.empty() ? "has ended" : why, last.empty() ? "" : ": " + last));
    return;
  }
  worker.due_ns = monotonic_ns() + (kSecond / 4 << std::min(worker.failures - 1, 5));
}

// Reports that a worker is not started again. If no worker is left, wait() returns an error, because the diagnosis
// cannot continue.
void Fleet::give_up(std::string why) {
  if (!std::all_of(crew_.begin(), crew_.end(), [](const auto& one) { return one->state == Worker::State::given_up; })) {
    log::warning("{}; it is not started again", why);
    return;
  }
  {
    std::lock_guard lock(mutex_);
    error_ = Error{ErrorKind::environment, fmt::format("no worker is left to make runs: {}", why),
                   "check that the engine ('slurm', 'ssh', 'kubernetes' or a command) starts 'rose worker' there, as "
                   "root, of this version"};
  }
  came_.notify_all();
}

void Fleet::end(Worker& worker, std::string why) {
  read_errors(worker, true);
  Ending ending;
  ending.pid = worker.pid;
  ending.who = name(worker);
  ending.why = std::move(why);
  ending.last_error = worker.last_error;
  ending.since_ns = monotonic_ns();
  ending.worked = worker.state != Worker::State::greeting;
  ending.place = engine_.place(worker.place, worker.starts - 1);
  ending.start = {worker.place, worker.starts - 1};
  endings_.push_back(std::move(ending));
  worker.in.reset();
  worker.out.reset();
  worker.err.reset();
  worker.outbox.clear();
  worker.sent = 0;
  worker.lacks.clear();
  worker.file.reset();
  worker.job.reset();
  worker.state = Worker::State::down;
}

// The files of a killed worker are removed by the next worker that starts on its host. If there will be none, this
// starts a worker only for that. Returns false if there is nothing to do. If the engine chooses the host or container
// of each job, a new worker might run on another host, so nothing is started.
bool Fleet::sweep() {
  if (cancel::times() > 1 || engine_.kind() == EngineKind::slurm || engine_.kind() == EngineKind::kubernetes)
    return false;
  const Fd nothing(::open("/dev/null", O_RDWR | O_CLOEXEC));
  for (const auto& [place, start] : std::exchange(unswept_, {})) {
    const Result<pid_t> pid =
        spawn_process(engine_.argv(start.first, start.second, ++started_), nothing.get(), nothing.get(), nothing.get());
    if (!pid) {
      log::debug("files of killed workers on {} are not removed: {}", printable(place), pid.error().message);
      continue;
    }
    Ending ending;
    ending.pid = *pid;
    ending.who = fmt::format("worker {} ({})", started_, printable(place));
    ending.since_ns = monotonic_ns();
    endings_.push_back(std::move(ending));
  }
  return !endings_.empty();
}

// Reaps workers that have ended, and kills those that should have ended.
void Fleet::reap(bool all) {
  const std::int64_t now = monotonic_ns();
  std::erase_if(endings_, [&](Ending& ending) {
    int status = 0;
    const bool ended = ::waitpid(ending.pid, &status, WNOHANG) == ending.pid;
    const std::int64_t since = now - ending.since_ns;
    if (!ending.reported && !ending.why.empty() && (ended || since > kTellsStatus)) {
      ending.reported = true;
      std::string how = ended                       ? fmt::format(" (it {}{})", describe_status(status),
                                            ending.last_error.empty() ? "" : "; " + ending.last_error)
                        : ending.last_error.empty() ? ""
                                                    : fmt::format(" ({})", ending.last_error);
      log::warning("{} {}{}", ending.who, ending.why, how);
    }
    if (ended && ending.worked && status != 0) unswept_[ending.place] = ending.start;
    if (ended) return true;
    // After a second Ctrl-C, do not wait any longer.
    const bool hurry = all && cancel::times() > 1;
    // A worker that has not answered yet has made no run, so it has nothing to undo.
    const std::int64_t patience = ending.hangs ? 0 : ending.worked ? kUndoing : kTerminating;
    if (!ending.terminated && (since > patience || hurry)) {
      ending.terminated = true;
      ::kill(-ending.pid, SIGTERM);
    }
    if (!ending.killed && since > patience + kTerminating) {
      ending.killed = true;
      if (!ending.hangs && ending.worked)
        log::warning("{} did not end in {}: killed; 'rose heal' there undoes what it left", ending.who,
                     format_duration(kUndoing));
      ::kill(-ending.pid, SIGKILL);
    }
    return false;
  });
}

}  // namespace rose::engine
