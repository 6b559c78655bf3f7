#include "cli/command.h"

#include <poll.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstdlib>

#include "base/file.h"
#include "base/units.h"
#include "kernel/probe.h"
#include "replay/repeat.h"
#include "replay/side_by_side.h"
#include "trace/dump.h"
#include "trace/jsonl.h"

namespace rose::cli {

namespace {

std::atomic<int> g_unprinted = 0;  // errno of the first result that could not be printed

}  // namespace

void print(std::string_view text) {
  while (!text.empty()) {
    const ssize_t n = ::write(STDOUT_FILENO, text.data(), text.size());
    if (n >= 0) {
      text.remove_prefix(static_cast<std::size_t>(n));
      continue;
    }
    // Another process that shares the pipe may have made it non-blocking.
    pollfd room{STDOUT_FILENO, POLLOUT, 0};
    if (errno == EINTR || (errno == EAGAIN && ::poll(&room, 1, -1) >= 0)) continue;
    if (int none = 0; errno != EPIPE) g_unprinted.compare_exchange_strong(none, errno);
    return;
  }
}

Result<void> printed() {
  if (g_unprinted == 0) return {};
  return fail_errno(ErrorKind::input, "cannot write the result to stdout", g_unprinted);
}

Result<std::int64_t> duration_option(const std::string& option, const std::string& text) {
  Result<std::int64_t> ns = parse_duration_ns(text);
  if (!ns)
    return Unexpected(Error{ErrorKind::usage, fmt::format("{}: {}", option, ns.error().message), ns.error().hint});
  return ns;
}

Result<std::optional<int>> jobs_option(const std::string& text) {
  if (text == "auto") return std::nullopt;
  int jobs = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), jobs);
  if (error != std::errc() || end != text.data() + text.size() || jobs < 1 || jobs > 64)
    return fail(ErrorKind::usage, fmt::format("--jobs: '{}' is neither a number from 1 to 64 nor 'auto'", text));
  return jobs;
}

Result<int> jobs_of(const std::optional<std::string>& given, const config::Config& config, bool allow_attached) {
  int jobs = config.diagnose.jobs.value_or(1);
  if (given) {
    ROSE_TRY(const std::optional<int> number, jobs_option(*given));
    if (!number) {
      replay::RunOptions options;
      options.tracer = replay::tracer_options(config);
      options.allow_attached = allow_attached;
      return replay::jobs_for(config, std::move(options));
    }
    jobs = *number;
  }
  ROSE_CHECK(replay::check_jobs(config, jobs));
  return jobs;
}

Result<void> check_output(const std::string& option, const std::filesystem::path& path) {
  std::error_code ignored;
  if (path.empty()) return fail(ErrorKind::usage, fmt::format("{}: the file's name is empty", option));
  if (std::filesystem::is_directory(path, ignored))
    return fail(ErrorKind::usage, fmt::format("{}: {} is a directory, a file is needed", option, path.string()));
  const Result<AtomicFile> tried = AtomicFile::create(path);  // removed again by its destructor
  if (!tried) return fail(ErrorKind::usage, fmt::format("{}: {}", option, tried.error().message));
  return {};
}

bool same_output(const std::filesystem::path& a, const std::filesystem::path& b) {
  std::error_code ignored;
  return std::filesystem::weakly_canonical(std::filesystem::absolute(a), ignored) ==
         std::filesystem::weakly_canonical(std::filesystem::absolute(b), ignored);
}

Result<trace::Trace> load_trace(const std::filesystem::path& path) {
  ROSE_TRY(const std::string start, [&]() -> Result<std::string> {
    std::FILE* file = std::fopen(path.c_str(), "re");
    if (file == nullptr)
      return fail(ErrorKind::input, fmt::format("cannot open {}: {}", path.string(), std::strerror(errno)));
    const int first = std::fgetc(file);
    std::fclose(file);
    return std::string(1, first == EOF ? '\0' : static_cast<char>(first));
  }());
  if (start == "{") return trace::read_jsonl(path);
  ROSE_TRY(trace::ReadDump dump, trace::read_dump(path));
  if (dump.damage) {
    dump.damage->hint = fmt::format(
        "'rose dump show {} --format jsonl' prints the events before the damage; import them "
        "with 'rose dump import'",
        path.string());
    return Unexpected(std::move(*dump.damage));
  }
  return std::move(dump.trace);
}

Result<std::optional<profile::Profile>> load_profile(const std::string& path, profile::Part part) {
  if (path.empty()) return std::optional<profile::Profile>{};
  ROSE_TRY(profile::Profile profile, profile::read_profile(path, part));
  return std::optional<profile::Profile>(std::move(profile));
}

Result<void> need_root(std::string_view command) {
  if (::geteuid() == 0) return {};
  return fail(ErrorKind::environment,
              fmt::format("'rose {}' creates namespaces and cgroups and loads BPF programs: it needs root", command),
              fmt::format("run it with sudo; 'rose doctor' lists what is missing"));
}

Result<void> need_process_ids(std::string_view command) {
  const kernel::Capability ids = kernel::probe("process_ids");
  if (ids.ok || ids.untried) return {};  // missing privileges are reported by the check that needs them
  return fail(ErrorKind::environment, fmt::format("'rose {}' cannot work here: {}", command, ids.detail), ids.remedy);
}

void export_own_name() {
  std::error_code error;
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", error);
  if (error) return;
  ::setenv("ROSE_EXE", self.c_str(), 1);
}

}  // namespace rose::cli
