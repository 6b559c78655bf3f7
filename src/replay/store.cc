#include "replay/store.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdlib>

#include "base/file.h"
#include "base/folder.h"
#include "base/json.h"
#include "base/log.h"
#include "base/text.h"
#include "replay/run_record.h"
#include "replay/runs_folder.h"
#include "replay/system.h"
#include "trace/dump.h"

namespace rose::replay {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kRecordName = "record.jsonl";
constexpr std::string_view kSystemName = "system.json";
constexpr std::string_view kTraces = "traces";
constexpr std::string_view kJobsName = "side-by-side.json";

// The number in a name such as "run-0007" or "run-0007.dump". 0 for other names.
int run_number(std::string_view name) {
  if (!name.starts_with("run-")) return 0;
  int number = 0;
  std::from_chars(name.data() + 4, name.data() + name.size(), number);
  return number;
}

fs::path trace_name(const fs::path& report, int number) {
  return report / kTraces / fmt::format("run-{:04}.dump", number);
}

// rose removes and creates files in this folder by their names, so nobody else may be able to replace a folder on the
// path to it. The owner of the configuration is an exception, because the configuration can make rose do anything.
Result<void> check_way(const fs::path& folder, const fs::path& config) {
  std::vector<uid_t> trusted{0, ::geteuid()};
  struct stat owner{};
  if (!config.empty() && ::stat(config.c_str(), &owner) == 0) trusted.push_back(owner.st_uid);
  const std::optional<fs::path> at = exchangeable_by_others(trusted, folder);
  if (!at) return {};
  return fail(ErrorKind::input,
              fmt::format("others may replace entries of {}, a folder on the way to the folders of runs",
                          printable(at->string())),
              "name another folder (--report, or TMPDIR); all folders above it must belong to root or to the owner of "
              "rose.toml");
}

}  // namespace

Result<RunStore> RunStore::open(const std::optional<fs::path>& report, bool keep_all, std::string_view command,
                                const fs::path& config) {
  RunStore store;
  store.command_ = command;
  store.keep_all_ = keep_all;
  if (report) {
    std::error_code error;
    store.report_ = fs::absolute(*report);
    store.folder_ = *store.report_ / "runs";
    ROSE_CHECK(check_way(store.folder_, config));  // before anything is created in a folder of another user
    fs::create_directories(store.folder_, error);
    if (!error) fs::create_directories(*store.report_ / kTraces, error);
    if (error)
      return fail(ErrorKind::input,
                  fmt::format("cannot create the report folder {}: {}", report->string(), error.message()));
    // The names of runs and traces are predictable, so other users must not be able to create files there.
    for (const fs::path& inside : {store.folder_, *store.report_ / kTraces}) {
      if (Result<OpenFolder> ours = OpenFolder::open(inside)) {
        ROSE_TRY(const struct stat status, ours->status());
        if (status.st_uid == ::geteuid() && (status.st_mode & 0022) != 0)
          ROSE_CHECK(ours->give({status.st_uid, status.st_gid}, status.st_mode & 07755));
      }
      if (!is_own_folder(inside))
        return fail(ErrorKind::input,
                    fmt::format("others may write to {}, where files of runs are created", inside.string()),
                    "remove it, or name another report folder");
      ROSE_CHECK(check_way(inside, config));
    }
    // If two processes wrote to this folder, they would remove each other's runs.
    store.in_use_ = Fd(::open(store.report_->c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (!store.in_use_ || ::flock(store.in_use_.get(), LOCK_EX | LOCK_NB) != 0) {
      if (errno == EWOULDBLOCK)
        return fail(ErrorKind::input, fmt::format("the report folder {} is in use by another rose", report->string()),
                    "wait for it, or name another folder");
      return fail_errno(ErrorKind::input, fmt::format("cannot lock the report folder {}", report->string()), errno);
    }
    return store;
  }
  const char* base = std::getenv("TMPDIR");
  const fs::path temporary = base != nullptr && *base != '\0' ? base : "/tmp";
  ROSE_TRY(RunsFolder made, make_runs_folder(temporary, command));
  ROSE_CHECK(check_way(made.path, config));
  store.folder_ = std::move(made.path);
  store.in_use_ = std::move(made.in_use);
  return store;
}

RunStore::RunStore(RunStore&& other) noexcept
    : folder_(std::exchange(other.folder_, {})),
      report_(std::exchange(other.report_, std::nullopt)),
      in_use_(std::move(other.in_use_)),
      command_(std::move(other.command_)),
      keep_all_(other.keep_all_),
      keep_control_(other.keep_control_),
      mutex_(std::move(other.mutex_)),
      kept_(std::move(other.kept_)),
      begun_(std::move(other.begun_)) {}

RunStore::~RunStore() {
  if (folder_.empty() || report_) return;
  std::error_code ignored;
  if (fs::is_empty(folder_, ignored)) {
    fs::remove(folder_, ignored);
    return;
  }
  keep_runs_folder(folder_, keep_all_, command_);
  log::info("run directories kept in {}{}", folder_.string(),
            command_.empty() ? "" : fmt::format(" (only later runs of 'rose {}' remove them)", command_));
}

fs::path RunStore::directory_of(int number) const {
  if (report_) return folder_ / fmt::format("run-{:04}", number);
  const std::lock_guard lock(*mutex_);
  const auto known = begun_.find(number);
  return known == begun_.end() ? fs::path() : known->second;
}

Result<fs::path> RunStore::next(int number) {
  fs::path directory = report_ ? directory_of(number) : folder_ / unforeseen_name("run-");
  if (report_) remove_run(directory);  // an interrupted run, which is now repeated, may have left files
  ROSE_CHECK(make_own_folder(directory, 0711));
  const std::lock_guard lock(*mutex_);
  if (!report_) begun_[number] = directory;
  return directory;
}

std::vector<fs::path> RunStore::kept() const {
  const std::lock_guard lock(*mutex_);
  return {kept_.begin(), kept_.end()};
}

void RunStore::abandoned(const fs::path& directory) {
  if (!keep_all_) remove_run(directory);
}

Result<void> RunStore::done(Run& run, const schedule::Schedule& schedule) {
  const Json json = run_json(run, schedule);
  const std::string line = json_line(json);
  std::lock_guard lock(*mutex_);
  if (report_) {
    // Write the trace first, because a line in the record means that the run is complete.
    ROSE_CHECK(trace::write_dump(run.result.trace, trace_name(*report_, run.result.number)));
    const fs::path record = *report_ / kRecordName;
    Fd fd(::open(record.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_CLOEXEC, 0600));
    if (!fd || ::write(fd.get(), line.data(), line.size()) != static_cast<ssize_t>(line.size()))
      return fail_errno(ErrorKind::input, fmt::format("cannot write {}", record.string()), errno);
  }
  const fs::path directory = run.result.directory;
  const bool informative = run.result.verdict != schedule::Verdict::not_reproduced;
  if (schedule.faults.empty() && keep_control_) return write_file(directory / "run.json", json_text(json, 2) + "\n");
  if (!keep_all_ && !informative) {
    remove_tree(directory);
    run.result.directory.clear();
    return {};
  }
  // A full disk makes this run inconclusive, but must not end the runs that are still to be made.
  if (auto written = write_file(directory / "run.json", json_text(json, 2) + "\n"); !written)
    log::warning("{}", written.error().message);
  kept_.push_back(directory);
  if (!keep_all_ && kept_.size() > kKeptRuns) {
    remove_tree(kept_.front());
    kept_.pop_front();
  }
  return {};
}

Result<void> RunStore::start_over(const config::Config& config) {
  if (!report_) return {};
  std::error_code error;
  fs::remove(*report_ / kRecordName, error);
  if (error)
    return fail(ErrorKind::input,
                fmt::format("cannot remove {}: {}", (*report_ / kRecordName).string(), error.message()));
  fs::remove(*report_ / kJobsName, error);
  // Remove files of an earlier diagnosis from this folder, because they would be mistaken for files of this one.
  for (const fs::path& folder : {*report_ / kTraces, folder_})
    for (const fs::directory_entry& entry : fs::directory_iterator(folder, error))
      if (run_number(entry.path().filename().string()) > 0) remove_run(entry.path());
  return write_file(*report_ / kSystemName, system_json(config));
}

Result<std::vector<RunStore::Recorded>> RunStore::recorded(const config::Config& config) {
  std::vector<Recorded> runs;
  if (!report_) return runs;
  const fs::path record = *report_ / kRecordName;
  const fs::path system = *report_ / kSystemName;
  std::error_code error;
  if (!fs::exists(record, error)) {
    ROSE_CHECK(start_over(config));
    return runs;
  }
  for (const fs::path& file : {record, system})
    if (fs::exists(file, error) && !open_regular(file))
      return fail(ErrorKind::input, fmt::format("{} is not a file that can be read", file.string()),
                  "diagnose without --resume to start over");
  ROSE_TRY(std::string text, read_file(record));
  if (fs::exists(system, error)) {
    ROSE_TRY(const std::string before, read_file(system));
    if (const std::string what = system_difference(before, system_json(config)); !what.empty())
      return fail(ErrorKind::input,
                  fmt::format("{}: its runs were made with another configuration: [{}] has changed since, so their "
                              "results do not apply to this one",
                              report_->string(), what),
                  "diagnose without --resume to start over");
  } else {
    ROSE_CHECK(write_file(system, system_json(config)));
  }
  if (const std::size_t whole = text.rfind('\n') + 1; whole < text.size()) {  // npos + 1 is 0: no complete line
    log::info("the record's last line is incomplete: that run is made again");
    fs::resize_file(record, whole, error);
    if (error) return fail(ErrorKind::input, fmt::format("cannot mend {}: {}", record.string(), error.message()));
    text.resize(whole);
  }
  int line = 0;
  for (std::size_t start = 0; start < text.size();) {
    const std::size_t end = text.find('\n', start);
    ++line;
    const Json json = parse_json(std::string_view(text).substr(start, end - start));
    start = end + 1;
    Result<RecordedRun> read = run_from(json);
    if (!read) {
      log::warning("{}:{}: not a record of a run, so that run is made again: {}", record.string(), line,
                   read.error().message);
      continue;
    }
    if (!read->run.disturbed.empty()) continue;  // the search did not receive this run, because it was repeated
    Recorded run{std::move(read->fingerprint), std::move(read->run.backend), std::move(read->run.result)};
    runs.push_back(std::move(run));
  }
  // Parallel runs were recorded in the order in which they ended.
  std::stable_sort(runs.begin(), runs.end(),
                   [](const Recorded& a, const Recorded& b) { return a.result.number < b.result.number; });
  std::vector<std::pair<int, fs::path>> folders;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder_, error))
    if (const int number = run_number(entry.path().filename().string()); number > 0)
      folders.emplace_back(number, entry.path());
  std::sort(folders.begin(), folders.end());
  for (const auto& [number, path] : folders) {
    const auto known =
        std::find_if(runs.begin(), runs.end(), [n = number](const Recorded& run) { return run.result.number == n; });
    if (known != runs.end() && known->result.faults.empty()) continue;  // see keep_control() for the reason
    if (known != runs.end()) kept_.push_back(path);
    else abandoned(path);
  }
  return runs;
}

Result<void> RunStore::record_jobs(const std::vector<Jobs>& decided) {
  if (!report_) return {};
  Json json = Json::array();
  for (const Jobs& one : decided) json.push_back({{"after_runs", one.after_runs}, {"jobs", one.jobs}});
  return write_file(*report_ / kJobsName, json_line(json));
}

Result<std::vector<RunStore::Jobs>> RunStore::recorded_jobs() const {
  std::vector<Jobs> decided;
  std::error_code error;
  if (!report_ || !fs::exists(*report_ / kJobsName, error)) return decided;
  ROSE_TRY(const std::string text, read_file(*report_ / kJobsName));
  const Json json = Json::parse(text, nullptr, false);
  const auto wrong = [&] {
    return fail(ErrorKind::input,
                fmt::format("{} is not a list of decisions as rose writes it", (*report_ / kJobsName).string()),
                "diagnose without --resume to start over");
  };
  if (!json.is_array()) return wrong();
  for (const Json& one : json) {
    if (!one.is_object() || !one.contains("after_runs") || !one.contains("jobs") ||
        !one["after_runs"].is_number_integer() || !one["jobs"].is_number_integer())
      return wrong();
    const Jobs read{one["after_runs"].get<int>(), one["jobs"].get<int>()};
    if (read.after_runs < 0 || read.jobs < 1 || read.jobs > 64) return wrong();
    decided.push_back(read);
  }
  return decided;
}

trace::Trace RunStore::recorded_trace(int number) const {
  if (!report_) return {};
  const fs::path file = trace_name(*report_, number);
  // Another user might have put a pipe there, and opening it would block rose.
  if (!open_regular(file)) {
    log::warning("the record has no trace of run {}: {} is not a file", number, file.string());
    return {};
  }
  Result<trace::ReadDump> dump = trace::read_dump(file);
  if (dump) return std::move(dump->trace);
  log::warning("the record has no trace of run {}: {}", number, dump.error().message);
  return {};
}

}  // namespace rose::replay
