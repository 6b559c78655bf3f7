#include "deploy/attach.h"

#include <charconv>

#include "base/file.h"
#include "base/subprocess.h"
#include "deploy/cgroup.h"
#include "deploy/deployment.h"

namespace rose::deploy {
namespace {

namespace fs = std::filesystem;

std::string trimmed(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(" \t\r\n");
  if (begin == std::string_view::npos) return {};
  return std::string(text.substr(begin, text.find_last_not_of(" \t\r\n") - begin + 1));
}

Result<pid_t> parse_pid(std::string_view text, std::string_view what) {
  const std::string digits = trimmed(text);
  pid_t pid = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), pid);
  if (error != std::errc{} || end != digits.data() + digits.size() || pid <= 0)
    return fail(ErrorKind::input, fmt::format("{} names no running process: '{}'", what, digits.substr(0, 40)));
  if (!fs::exists(fmt::format("/proc/{}", pid)))
    return fail(ErrorKind::input, fmt::format("{} names process {}, which does not run", what, pid));
  return pid;
}

// The pid's cgroup, unless that is the root, which holds the whole machine.
Result<Attached> of_pid(pid_t pid) {
  ROSE_TRY(const fs::path mount, cgroup2_mount());
  Attached attached{pid, cgroup::of_process(pid)};
  if (attached.cgroup == mount || attached.cgroup == mount / "") attached.cgroup.clear();
  return attached;
}

Result<Attached> of_folder(const std::string& name) {
  ROSE_TRY(const fs::path mount, cgroup2_mount());
  for (const fs::path& folder : {fs::path(name), mount / fs::path(name).relative_path()}) {
    std::error_code ignored;
    if (!fs::exists(folder / "cgroup.procs", ignored)) continue;
    if (fs::equivalent(folder, mount, ignored))
      return fail(ErrorKind::input, fmt::format("cgroup '{}' is the root, which holds the whole machine", name));
    return Attached{0, fs::canonical(folder)};
  }
  return fail(ErrorKind::input, fmt::format("there is no cgroup '{}'", name),
              fmt::format("name a folder below {}", mount.string()));
}

Result<Attached> of_unit(const std::string& unit) {
  ROSE_TRY(const Output shown,
           run_command({"systemctl", "show", "--property=ControlGroup,MainPID,LoadState", "--", unit}));
  if (shown.exit_code != 0)
    return fail(ErrorKind::environment, fmt::format("systemctl does not answer for unit '{}': {}", unit, trimmed(shown.err)));
  std::string group;
  std::string pid = "0";
  std::size_t start = 0;
  while (start < shown.out.size()) {
    const std::size_t end = std::min(shown.out.find('\n', start), shown.out.size());
    const std::string line = shown.out.substr(start, end - start);
    if (line.starts_with("ControlGroup=")) group = line.substr(13);
    if (line.starts_with("MainPID=")) pid = line.substr(8);
    start = end + 1;
  }
  if (!group.empty())
    if (Result<Attached> folder = of_folder(group)) return folder;
  // The legacy layout keeps units out of v2: then their main process leads to the rest.
  if (pid == "0" || pid.empty()) return fail(ErrorKind::input, fmt::format("unit '{}' does not run", unit));
  ROSE_TRY(const pid_t main, parse_pid(pid, fmt::format("unit '{}'", unit)));
  return of_pid(main);
}

Result<Attached> of_container(const std::string& id) {
  std::string tried;
  for (const char* program : {"docker", "podman"}) {
    const Result<Output> shown = run_command({program, "inspect", "--format", "{{.State.Pid}}", "--", id});
    if (!shown || shown->exit_code != 0) {
      tried += fmt::format("{}{}: {}", tried.empty() ? "" : "; ", program,
                           shown ? trimmed(shown->err) : shown.error().message);
      continue;
    }
    if (trimmed(shown->out) == "0") return fail(ErrorKind::input, fmt::format("container '{}' does not run", id));
    ROSE_TRY(const pid_t pid, parse_pid(shown->out, fmt::format("container '{}'", id)));
    return of_pid(pid);
  }
  return fail(ErrorKind::environment, fmt::format("container '{}' was not found ({})", id, tried),
              "name it by its cgroup instead");
}

}  // namespace

Result<Attached> resolve_attach(const config::Attach& attach, const fs::path& directory) {
  if (attach.pid_file) {
    const fs::path file = directory / *attach.pid_file;  // an absolute path replaces `directory`
    ROSE_TRY(const std::string text, read_file(file, 4096));
    ROSE_TRY(const pid_t pid, parse_pid(text, fmt::format("pid file {}", file.string())));
    return of_pid(pid);
  }
  if (attach.cgroup) return of_folder(*attach.cgroup);
  if (attach.unit) return of_unit(*attach.unit);
  if (attach.container) return of_container(*attach.container);
  ROSE_BUG("an attach that names nothing");
}

}  // namespace rose::deploy
