#include "replay/alone.h"

#include <linux/close_range.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <map>
#include <set>

#include "base/clock.h"
#include "base/fd.h"
#include "base/file.h"
#include "base/folder.h"
#include "base/held_child.h"
#include "base/log.h"
#include "base/read_at.h"
#include "base/subprocess.h"
#include "base/text.h"
#include "deploy/environment.h"
#include "deploy/libc_recorder.h"
#include "rr/outcome.h"
#include "rr/reading.h"

namespace rose::replay {
namespace {

namespace fs = std::filesystem;
constexpr std::size_t kMostFiles = 10000;  // at most this many files in a folder are examined
constexpr int kDeepestRecording = 2;

// The bytes of a recording in the form that its reader needs: the beginning of the ring is repeated after its end, so
// that a record that wraps around is contiguous. They are in a mapping of their own, because a recording may be large.
class RecordingBytes {
 public:
  static Result<RecordingBytes> read(const fs::path& path, const fs::path& folder = {}) {
    const Fd file = open_inside(folder, path);
    if (!file) {
      std::error_code error;
      const bool there = fs::exists(path, error);
      return fail(ErrorKind::input,
                  fmt::format("{}: {}", path.string(),
                              there ? "it cannot be opened, or is not a regular file" : "there is no such file"));
    }
    struct stat info{};
    char head[rr::kHeadBytes];
    const char* why = "it is too short for a recording";
    const bool whole = ::fstat(file.get(), &info) == 0 && read_at(file.get(), head, sizeof head, 0) == sizeof head;
    const std::uint64_t ring =
        whole ? rr::Reading::ring_bytes(head, static_cast<std::uint64_t>(info.st_size), &why) : 0;
    if (ring == 0) return fail(ErrorKind::input, fmt::format("{}: {}", path.string(), why));
    RecordingBytes bytes;
    bytes.file_ = rr::kHeadBytes + ring;
    bytes.all_ = bytes.file_ + rr::most_record(ring);
    void* memory =
        ::mmap(nullptr, bytes.all_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED)
      return fail_errno(ErrorKind::environment, fmt::format("{}: no memory", path.string()), errno);
    bytes.at_ = static_cast<char*>(memory);
    if (read_at(file.get(), bytes.at_, bytes.file_, 0) != bytes.file_)
      return fail(ErrorKind::input, fmt::format("{}: it shrank while it was read", path.string()));
    std::copy_n(bytes.at_ + rr::kHeadBytes, rr::most_record(ring), bytes.at_ + bytes.file_);
    return bytes;
  }
  RecordingBytes(RecordingBytes&& other) noexcept
      : at_(std::exchange(other.at_, nullptr)), file_(other.file_), all_(other.all_) {}
  RecordingBytes& operator=(RecordingBytes&&) = delete;
  ~RecordingBytes() {
    if (at_ != nullptr) ::munmap(at_, all_);
  }
  [[nodiscard]] const char* data() const { return at_; }
  [[nodiscard]] std::uint64_t file_bytes() const { return file_; }

 private:
  RecordingBytes() = default;
  char* at_ = nullptr;
  std::uint64_t file_ = 0, all_ = 0;
};

Result<RecordingFacts> read_recording(const fs::path& path) {
  ROSE_TRY(const RecordingBytes bytes, RecordingBytes::read(path));
  rr::Reading reading;
  if (const char* why = reading.open(bytes.data(), bytes.file_bytes()))
    return fail(ErrorKind::input, fmt::format("{}: {}", path.string(), why));
  const rr::Facts& facts = reading.facts();
  RecordingFacts summary{path,
                         printable(facts.node),
                         printable(facts.host),
                         printable(facts.program),
                         facts.began_ns,
                         facts.began_ns,
                         facts.pid,
                         facts.records,
                         0,
                         facts.unfinished,
                         facts.end,
                         facts.overwritten,
                         facts.damaged,
                         facts.ended};
  if (facts.lost != 0)
    return fail(
        ErrorKind::input,
        fmt::format("{}: {} records were lost during recording: it cannot be replayed", path.string(), facts.lost),
        "the window was too small: record with a larger ROSE_RR_WINDOW");
  rr::Record record;
  for (std::uint64_t at = facts.begin; reading.next(at, record);) {
    summary.ended_ns = record.time_ns;
    if (facts.overwritten && summary.replayable == 0 &&
        (record.kind != rr::Kind::checkpoint || (record.flags & rr::kDigest) != 0))
      continue;
    if (record.kind != rr::Kind::end) ++summary.replayable;
  }
  if (facts.records == 0)
    return fail(ErrorKind::input,
                fmt::format("{}: it contains no record{}", path.string(), facts.damaged ? " that is not damaged" : ""));
  if (summary.replayable == 0 && facts.overwritten)
    return fail(
        ErrorKind::input,
        fmt::format("{}: its beginning was overwritten, and no checkpoint is left to start from", path.string()),
        "record with a larger ROSE_RR_WINDOW, or let the program make checkpoints when rose_rr_checkpoint_due() says "
        "so");
  return summary;
}

// Fills in the record's position and key and the expected value from the recording. Needed if the process has not
// reported them.
Result<void> name_record(const RecordingFacts& recording, Divergence& divergence) {
  ROSE_TRY(const RecordingBytes bytes, RecordingBytes::read(recording.path));
  rr::Reading reading;
  if (reading.open(bytes.data(), bytes.file_bytes()) != nullptr) return {};
  rr::Record record;
  std::uint64_t number = 0;
  for (std::uint64_t at = reading.facts().begin; reading.next(at, record);) {
    if (recording.overwritten && number == 0 &&
        (record.kind != rr::Kind::checkpoint || (record.flags & rr::kDigest) != 0))
      continue;
    if (++number < divergence.record) continue;
    divergence.position = record.position;
    divergence.key = printable(record.key);
    divergence.expected = fmt::format("{} '{}'{}", rr::kind_name(record.kind), divergence.key,
                                      record.data.empty() ? "" : fmt::format(" of {} bytes", record.data.size()));
    break;
  }
  return {};
}

// A recording of which only the header was read.
struct Candidate {
  fs::path path;
  std::string node;    // the node that the recording names; if it names none, the same as `folder`
  std::string folder;  // the name of the recording's folder; "" if it has no folder of its own
  std::int64_t began_ns = 0;
};

std::vector<Candidate> recordings_in(const fs::path& folder) {
  std::vector<Candidate> found;
  std::size_t looked = 0;
  const Result<OpenFolder> top = OpenFolder::open(folder);
  if (!top) return found;
  top->each([&](const OpenFolder::Entry& entry) {
    const auto depth = std::distance(entry.inside.begin(), entry.inside.end()) - 1;
    if (depth > kDeepestRecording || !S_ISREG(entry.status.st_mode)) return true;
    if (++looked > kMostFiles) return false;
    const Fd file = entry.parent.file(entry.name);
    char head[rr::kHeadBytes];
    struct stat info{};
    const char* why = nullptr;
    if (!file || ::fstat(file.get(), &info) != 0 || read_at(file.get(), head, sizeof head, 0) != sizeof head)
      return true;
    if (rr::Reading::ring_bytes(head, static_cast<std::uint64_t>(info.st_size), &why) == 0) return true;
    Candidate candidate{folder / entry.inside, "", depth > 0 ? entry.parent.path().filename().string() : "", 0};
    const char* node = head + offsetof(rr::FileHead, node);
    candidate.node = std::string(node, ::strnlen(node, sizeof rr::FileHead::node));
    if (candidate.node.empty()) candidate.node = candidate.folder;
    std::memcpy(&candidate.began_ns, head + offsetof(rr::FileHead, began_ns), sizeof candidate.began_ns);
    found.push_back(std::move(candidate));
    return true;
  });
  return found;
}

class Page {
 public:
  static Result<Page> make() {
    Page page;
    page.file_ = Fd(::memfd_create("rose-outcome", MFD_CLOEXEC));
    if (!page.file_ || ::ftruncate(page.file_.get(), 4096) != 0)
      return fail_errno(ErrorKind::environment, "memfd_create", errno);
    void* memory = ::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, page.file_.get(), 0);
    if (memory == MAP_FAILED) return fail_errno(ErrorKind::environment, "mmap", errno);
    page.outcome_ = static_cast<rr::Outcome*>(memory);
    return page;
  }
  Page(Page&& other) noexcept : file_(std::move(other.file_)), outcome_(std::exchange(other.outcome_, nullptr)) {}
  Page& operator=(Page&&) = delete;
  ~Page() {
    if (outcome_ != nullptr) ::munmap(outcome_, 4096);
  }
  // The path by which the command can open the file. The file disappears with rose, so nothing is left behind.
  [[nodiscard]] std::string name() const { return fmt::format("/proc/{}/fd/{}", ::getpid(), file_.get()); }
  [[nodiscard]] const rr::Outcome& operator*() const { return *outcome_; }

 private:
  Page() = default;
  Fd file_;
  rr::Outcome* outcome_ = nullptr;
};

template <std::size_t N>
std::string text_of(const char (&text)[N]) {
  return printable(std::string_view(text, ::strnlen(text, N)));
}

// While an object of this class exists, what this process writes to stdout goes to stderr.
class StdoutIsStderr {
 public:
  explicit StdoutIsStderr(bool wanted) {
    if (!wanted) return;
    kept_ = Fd(::dup(STDOUT_FILENO));
    ::dup2(STDERR_FILENO, STDOUT_FILENO);
  }
  StdoutIsStderr(const StdoutIsStderr&) = delete;
  ~StdoutIsStderr() {
    if (kept_) ::dup2(kept_.get(), STDOUT_FILENO);
  }

 private:
  Fd kept_;
};

// As in a shell, only the command reacts to Ctrl-C. A signal that ends rose (SIGTERM, SIGHUP) also ends the command.
Result<int> wait_for(HeldChild& child) {
  ::signal(SIGINT, SIG_IGN);
  ::signal(SIGQUIT, SIG_IGN);
  sigset_t ends;
  sigemptyset(&ends);
  sigaddset(&ends, SIGTERM);
  sigaddset(&ends, SIGHUP);
  ::sigprocmask(SIG_BLOCK, &ends, nullptr);
  const Fd asked(::signalfd(-1, &ends, SFD_CLOEXEC));
  pollfd fds[2] = {{child.pidfd(), POLLIN, 0}, {asked.get(), POLLIN, 0}};
  for (;;) {
    if (::poll(fds, 2, -1) < 0 && errno != EINTR) return fail_errno(ErrorKind::environment, "poll", errno);
    if (fds[0].revents != 0) return child.end(0).value_or(0);
    if (fds[1].revents != 0) {
      (void)child.end(2000);
      return fail(ErrorKind::cancelled, "the replay was ended from outside");
    }
  }
}

}  // namespace

Result<RecordingFacts> find_recording(const fs::path& path, const std::string& node) {
  std::error_code error;
  if (!fs::is_directory(path, error)) {
    ROSE_TRY(RecordingFacts facts, read_recording(path));
    if (!node.empty() && facts.node != node)
      return fail(ErrorKind::input,
                  facts.node.empty()
                      ? fmt::format("{}: it does not name its node (--node {})", path.string(), node)
                      : fmt::format("{}: it belongs to node {}, not to {}", path.string(), facts.node, node),
                  "a process knows its node from ROSE_NODE; without --node any recording is taken");
    return facts;
  }
  const std::vector<Candidate> all = recordings_in(path);
  if (all.empty())
    return fail(ErrorKind::input, fmt::format("{}: no recording of librose-rr is in this folder", path.string()));
  std::set<std::string> nodes;
  const Candidate* newest = nullptr;
  std::size_t lives = 0;
  for (const Candidate& candidate : all) {
    nodes.insert(candidate.node);
    if (!node.empty() && candidate.node != node && candidate.folder != node) continue;
    ++lives;
    if (newest == nullptr || candidate.began_ns > newest->began_ns) newest = &candidate;
  }
  const std::string list = printable(fmt::format("{}", fmt::join(nodes, ", ")));
  if (newest == nullptr)
    return fail(ErrorKind::input, fmt::format("{}: there is no recording of node {}", path.string(), node),
                "there are recordings of: " + list);
  if (node.empty() && nodes.size() > 1)
    return fail(ErrorKind::usage, fmt::format("{}: there are recordings of several nodes", path.string()),
                "choose one with --node: " + list);
  if (lives > 1)
    log::info("{} recordings, one for each lifetime of the process; this is the newest: {}", lives,
              newest->path.string());
  return read_recording(newest->path);
}

std::vector<FoundRecording> recordings_under(const fs::path& folder) {
  std::vector<FoundRecording> all;
  std::error_code error;
  if (!fs::is_directory(folder, error)) return all;
  for (const Candidate& candidate : recordings_in(folder)) {
    FoundRecording& one = all.emplace_back(FoundRecording{candidate.path, std::nullopt, ""});
    if (Result<RecordingFacts> facts = read_recording(candidate.path)) one.facts = std::move(*facts);
    else one.problem = facts.error().message;
  }
  std::sort(all.begin(), all.end(), [](const FoundRecording& a, const FoundRecording& b) { return a.path < b.path; });
  return all;
}

std::vector<fs::path> recordings_of(const config::Config& config, const fs::path& run_dir) {
  std::vector<fs::path> all;
  if (run_dir.empty()) return all;
  const std::string_view name(deploy::kRecordingName);
  const std::string before(name.substr(0, name.find("%n"))), behind(name.substr(name.find("%n") + 2));
  for (const config::Node& node : config.nodes) {
    if (!node.record) continue;
    std::map<int, fs::path> lives;
    const fs::path top = run_dir / node.name;
    const Result<OpenFolder> folder = OpenFolder::open(top);
    if (!folder) continue;
    for (const std::string& file : folder->names()) {
      int number = 0;
      const char* first = file.data() + std::min(before.size(), file.size());
      const auto read = std::from_chars(first, file.data() + file.size(), number);
      if (file.starts_with(before) && read.ec == std::errc() && std::string_view(read.ptr) == behind)
        lives[number] = top / file;
    }
    for (const auto& [number, path] : lives) all.push_back(path);
  }
  return all;
}

Result<bool> each_value(const fs::path& path, const std::function<bool(const RecordedValue&)>& each,
                        const fs::path& folder) {
  ROSE_TRY(const RecordingBytes bytes, RecordingBytes::read(path, folder));
  rr::Reading reading;
  if (const char* why = reading.open(bytes.data(), bytes.file_bytes()))
    return fail(ErrorKind::input, fmt::format("{}: {}", path.string(), why));
  rr::Record record;
  std::uint64_t number = 0;
  for (std::uint64_t at = reading.facts().begin; reading.next(at, record);) {
    ++number;
    const bool whole = record.kind == rr::Kind::value && (record.flags & rr::kDigest) == 0;
    if (whole && !each({number, record.time_ns, record.key, record.data})) break;
  }
  return reading.facts().overwritten;
}

namespace {

// The sources of values in the C library ("time") that the preloaded library recorded. They are parts of the
// recording's keys: "libc/time/clock_gettime/0".
std::vector<std::string> libc_sources(const fs::path& path) {
  std::set<std::string> sources;
  (void)each_value(path, [&sources](const RecordedValue& value) {
    constexpr std::string_view kOurs = "libc/";
    if (value.key.starts_with(kOurs))
      sources.emplace(value.key.substr(kOurs.size(), value.key.find('/', kOurs.size()) - kOurs.size()));
    return true;
  });
  return {sources.begin(), sources.end()};
}

// Preloads the library that recorded these sources, so that they are replayed, too.
Result<void> preload_recorder(const RecordingFacts& recording, const fs::path& scratch) {
  const std::vector<std::string> sources = libc_sources(recording.path);
  if (sources.empty()) return {};
  ROSE_TRY(const fs::path library, deploy::place_libc_recorder(scratch));
  std::map<std::string, std::string> env;
  if (const char* preload = std::getenv("LD_PRELOAD")) env["LD_PRELOAD"] = preload;
  deploy::add_libc_recorder(env, library, sources);
  for (const auto& [name, value] : env) ::setenv(name.c_str(), value.c_str(), 1);
  // Descriptor numbers are part of the recording, so the command must not inherit descriptors of rose. Needs Linux
  // 5.11.
  ::syscall(SYS_close_range, STDERR_FILENO + 1, ~0U, CLOSE_RANGE_CLOEXEC);
  log::info("{}: the C library's {} are replayed too", recording.path.string(), fmt::join(sources, ", "));
  return {};
}

}  // namespace

Result<AloneResult> replay_alone(const RecordingFacts& recording, const std::vector<std::string>& command,
                                 std::optional<std::int64_t> patience_ns, bool output_to_stderr) {
  ROSE_TRY(const Page page, Page::make());
  ROSE_TRY(const TemporaryFolder scratch, TemporaryFolder::make("rose-replay"));
  ::setenv("ROSE_RR_FOLDER", scratch.path().c_str(), 1);
  std::error_code error;
  const fs::path absolute = fs::absolute(recording.path, error);
  ::setenv("ROSE_RR", ("replay:" + absolute.string()).c_str(), 1);
  ::setenv("ROSE_RR_OUTCOME", page.name().c_str(), 1);
  if (patience_ns)
    ::setenv("ROSE_RR_PATIENCE", fmt::format("{:.3f}", static_cast<double>(*patience_ns) / 1e9).c_str(), 1);
  ROSE_CHECK(preload_recorder(recording, scratch.path()));
  if (!recording.node.empty()) ::setenv("ROSE_NODE", recording.node.c_str(), 1);

  AloneResult result;
  result.recording = recording;
  const std::int64_t began = monotonic_ns();
  std::optional<HeldChild> child;
  {
    const StdoutIsStderr elsewhere(output_to_stderr);
    ROSE_TRY(HeldChild held, HeldChild::fork_held(command, HeldChild::Kind::shares_terminal));
    child.emplace(std::move(held));
  }
  ROSE_CHECK(child->release());
  ROSE_TRY(const int status, wait_for(*child));
  result.seconds = static_cast<double>(monotonic_ns() - began) / 1e9;
  result.signalled = WIFSIGNALED(status);
  result.code = result.signalled ? WTERMSIG(status) : WEXITSTATUS(status);
  result.ended = fmt::format("'{}' {}", printable(command.front()), describe_status(status));

  const rr::Outcome& outcome = *page;
  const rr::State state = outcome.state.load();
  result.taken = std::min<std::uint64_t>(outcome.taken.load(), recording.replayable);
  if (state == rr::State::refused)
    return fail(ErrorKind::input, fmt::format("{}: {}", recording.path.string(), text_of(outcome.message)));
  if (state == rr::State::diverged) {
    result.divergence = Divergence{result.taken + 1, outcome.position, text_of(outcome.key), text_of(outcome.expected),
                                   text_of(outcome.got)};
  } else if (state == rr::State::absent) {
    result.divergence = Divergence{1, 0, "", "a program that is linked with librose-rr",
                                   fmt::format("no call of it: {}", result.ended)};
  } else if (state == rr::State::playing) {
    result.divergence = Divergence{result.taken + 1, 0, "", "", fmt::format("the command's end: {}", result.ended)};
    ROSE_CHECK(name_record(recording, *result.divergence));
  }
  return result;
}

}  // namespace rose::replay
