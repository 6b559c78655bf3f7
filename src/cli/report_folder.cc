#include "cli/report_folder.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <cerrno>
#include <utility>

#include "replay/runs_folder.h"
#include "report/markup.h"

namespace rose::cli {

Result<ReportFolder> ReportFolder::make(const std::string& path, bool redact) {
  ReportFolder folder;
  if (path.empty()) {
    if (redact)
      return fail(ErrorKind::usage, "--redact applies to the files of --report DIR, and there is no --report");
    return folder;
  }
  folder.path_ = path;
  if (!redact) return folder;
  std::error_code error;
  std::filesystem::create_directories(path, error);
  if (error)
    return fail(ErrorKind::input, fmt::format("cannot create the report folder {}: {}", path, error.message()));
  // Files that an earlier report without --redact left in the folder would be shared together with this report.
  for (const char* name : {"record.jsonl", "traces", "runs"})
    if (std::filesystem::exists(*folder.path_ / name, error))
      return fail(ErrorKind::input, fmt::format("{} holds '{}' of a report that was not redacted", path, name),
                  "name another folder");
  folder.redactor_ = Redactor::of_this_machine();
  ROSE_TRY(TemporaryFolder aside, TemporaryFolder::make("rose-report"));
  folder.aside_.emplace(std::move(aside));
  // Nodes that run as other users have their folders in this temporary folder, so these users must be able to pass
  // through it.
  if (::chmod(folder.aside_->path().c_str(), 0711) != 0)
    return fail_errno(ErrorKind::environment, fmt::format("cannot open {}", folder.aside_->path().string()), errno);
  return folder;
}

ReportFolder::~ReportFolder() {
  if (aside_ && !aside_->path().empty()) replay::remove_runs(aside_->path() / "runs");
}

std::optional<std::filesystem::path> ReportFolder::runs() const { return aside_ ? aside_->path() : path_; }

Result<void> ReportFolder::write(std::string_view name, std::string_view text) {
  return write_file(file(name), redactor_ ? (*redactor_)(text) : std::string(text));
}

Result<void> ReportFolder::write_page(std::string_view name, std::string_view html) {
  return write_file(file(name), redactor_ ? report::redacted(html, *redactor_) : std::string(html));
}

}  // namespace rose::cli
