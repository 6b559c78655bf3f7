#include "deploy/run_data.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/file.h"
#include "base/log.h"
#include "base/text.h"
#include "base/units.h"
#include "config/compose_project.h"
#include "deploy/machine/processes.h"
#include "deploy/volumes.h"

namespace fs = std::filesystem;

namespace rose::deploy {
namespace {

constexpr std::size_t kMostCounted = 20'000;
constexpr std::size_t kBlock = std::size_t{1} << 20;

Result<void> copy_file(const fs::path& source, const OpenFolder& into, const std::string& name) {
  const Fd from = open_regular(source);
  struct stat status{};
  if (!from || ::fstat(from.get(), &status) != 0)
    return fail_errno(ErrorKind::input, fmt::format("cannot read {}", source.string()), errno);
  ROSE_TRY(const Fd to, into.create(name, Owner{status.st_uid, status.st_gid}, status.st_mode & 07777));
  std::string block(kBlock, '\0');
  for (;;) {
    const ssize_t n = ::read(from.get(), block.data(), block.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return fail_errno(ErrorKind::input, fmt::format("cannot read {}", source.string()), errno);
    if (n == 0) return {};
    if (const int err = write_bytes(to.get(), std::string_view(block).substr(0, static_cast<std::size_t>(n))); err != 0)
      return fail_errno(ErrorKind::environment, fmt::format("cannot write {}", (into.path() / name).string()), err);
  }
}

}  // namespace

bool is_data(const fs::path& source) {
  if (compose::belongs_to_machine(source)) return false;
  std::error_code error;
  const fs::path real = fs::canonical(source, error);
  if (error) return false;
  if (real != source && is_within(real, "/run")) return false;
  const auto type = fs::status(real, error).type();
  return type == fs::file_type::directory || type == fs::file_type::regular;
}

std::vector<fs::path> outermost(std::vector<fs::path> sources) {
  std::sort(sources.begin(), sources.end());
  std::vector<fs::path> kept;
  for (fs::path& source : sources)
    if (std::none_of(kept.begin(), kept.end(),
                     [&](const fs::path& outer) { return source == outer || is_within(source, outer); }))
      kept.push_back(std::move(source));
  return kept;
}

std::string data_name(const fs::path& source, std::vector<std::string>& others) {
  const std::string base = source.filename().string();
  std::string name = base;
  for (int n = 2; std::find(others.begin(), others.end(), name) != others.end(); ++n)
    name = fmt::format("{}-{}", base, n);
  others.push_back(name);
  return name;
}

Result<RunData> RunData::make(const fs::path& source, const fs::path& shown, const std::string& id, bool plain) {
  RunData data;
  data.source_ = source;
  data.shown_ = shown;
  const std::string name = shown.filename().string();
  ROSE_TRY(const OpenFolder all, OpenFolder::open(shown.parent_path()));
  std::error_code error;
  if (!fs::is_directory(source, error)) {
    ROSE_CHECK(copy_file(source, all, name));
    return data;
  }
  auto overlay = plain ? Result<void>() : data.overlay(all, id);
  if (!overlay) log::debug("{} is copied for each run: {}", source.string(), overlay.error().message);
  if (plain || !overlay) {
    ROSE_TRY(const OpenFolder from, OpenFolder::open(fs::canonical(source, error)));
    ROSE_TRY(const OpenFolder to, all.make(name, std::nullopt));
    ROSE_TRY(const struct stat status, from.status());
    ROSE_CHECK(from.copy_into(to));
    ROSE_CHECK(to.give({status.st_uid, status.st_gid}, status.st_mode & 07777));
  }
  return data;
}

Result<void> RunData::overlay(const OpenFolder& all, const std::string& id) {
  const Fd lower(::open(source_.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  struct stat status{};
  if (!lower || ::fstat(lower.get(), &status) != 0)
    return fail_errno(ErrorKind::input, fmt::format("cannot open {}", source_.string()), errno);
  const std::string name = shown_.filename().string();
  ROSE_TRY(const OpenFolder upper, all.make(name + std::string(kLayers) + "/changes", std::nullopt));
  ROSE_TRY(const OpenFolder work, all.make(name + std::string(kLayers) + "/work", std::nullopt));
  ROSE_TRY(const OpenFolder at, all.make(name, std::nullopt));
  // The top folder of an overlay has the owner and mode of its upper layer.
  ROSE_CHECK(upper.give({status.st_uid, status.st_gid}, status.st_mode & 07777));
  ROSE_TRY(const Fd mount,
           volume::make_detached("overlay", id,
                                 fmt::format("lowerdir={},upperdir={},workdir={}", own_path(lower.get()),
                                             own_path(upper.fd()), own_path(work.fd()))));
  ROSE_CHECK(volume::attach(mount.get(), at.fd()));
  mounted_ = true;
  return {};
}

std::string described_data(const fs::path& source) {
  std::error_code error;
  if (!fs::is_directory(source, error)) {
    const auto bytes = fs::file_size(source, error);
    return fmt::format("{} ({})", source.string(), format_size(error ? 0 : bytes));
  }
  std::size_t files = 0;
  std::uint64_t bytes = 0;
  const auto options = fs::directory_options::skip_permission_denied;
  for (auto at = fs::recursive_directory_iterator(source, options, error);
       !error && at != fs::recursive_directory_iterator() && files < kMostCounted; at.increment(error)) {
    std::error_code gone;
    if (!at->is_regular_file(gone) || at->is_symlink(gone)) continue;
    ++files;
    const auto size = at->file_size(gone);
    if (!gone) bytes += size;
  }
  const char* more = files == kMostCounted ? "more than " : "";
  return fmt::format("{} ({}{} file{}, {}{})", source.string(), more, files, files == 1 ? "" : "s", more,
                     format_size(bytes));
}

}  // namespace rose::deploy
