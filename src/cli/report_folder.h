// The folder of --report DIR. With --redact, it contains only what may be shown to third parties, so runs, their record
// and their traces are kept in another folder, which is removed at the end.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "base/file.h"
#include "base/redact.h"
#include "base/result.h"

namespace rose::cli {

class ReportFolder {
 public:
  // `path` "": there is no --report.
  [[nodiscard]] static Result<ReportFolder> make(const std::string& path, bool redact);
  ReportFolder(ReportFolder&&) = default;
  ReportFolder& operator=(ReportFolder&&) = delete;
  ~ReportFolder();

  [[nodiscard]] explicit operator bool() const { return path_.has_value(); }
  [[nodiscard]] std::filesystem::path file(std::string_view name) const { return *path_ / name; }
  // The folder for replay::RunStore::open(): nothing without --report.
  [[nodiscard]] std::optional<std::filesystem::path> runs() const;
  // Null without --redact. Add the names of hosts to replace before anything is written.
  [[nodiscard]] Redactor* redactor() { return redactor_ ? &*redactor_ : nullptr; }

  // Text, JSON or Markdown.
  [[nodiscard]] Result<void> write(std::string_view name, std::string_view text);
  [[nodiscard]] Result<void> write_page(std::string_view name, std::string_view html);

 private:
  ReportFolder() = default;
  std::optional<std::filesystem::path> path_;
  std::optional<Redactor> redactor_;
  std::optional<TemporaryFolder> aside_;
};

}  // namespace rose::cli
