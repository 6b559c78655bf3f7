#include "replay/cases.h"

#include <algorithm>
#include <set>

#include "base/file.h"
#include "base/text.h"
#include "base/toml.h"

namespace rose::replay {
namespace {

namespace fs = std::filesystem;

struct Found {
  fs::path schedule;
  fs::path root;  // the named folder in which the file was found; "" if the file itself was named
};

Result<bool> is_schedule(const fs::path& file) {
  ROSE_TRY(const std::string text, read_file(file, toml::kMostBytes));
  auto root = toml::parse(text, file.string());
  if (!root) {
    Error error = std::move(root).error();
    if (error.hint.empty()) error.hint = "correct it, or exclude it with --exclude";
    return Unexpected(std::move(error));
  }
  return root->find("version") != nullptr || root->find("fault") != nullptr;
}

bool matches(const std::vector<std::string>& globs, const std::string& name, const std::string& path) {
  return std::any_of(globs.begin(), globs.end(),
                     [&](const std::string& glob) { return glob_match(glob, name) || glob_match(glob, path); });
}

// The name within the folder: "kv/split" for kv/split/schedule.toml, "split" for split.toml.
std::string name_of(const Found& found) {
  const fs::path file = found.schedule.lexically_normal();
  fs::path below = found.root.empty() ? file.filename() : file.lexically_relative(found.root);
  if (below.filename() != "schedule.toml") return below.replace_extension().string();
  below = below.parent_path();
  if (!below.empty() && below != ".") return below.string();
  std::error_code ignored;
  const std::string folder = fs::absolute(file, ignored).lexically_normal().parent_path().filename().string();
  return folder.empty() ? "schedule" : folder;
}

Result<std::vector<Found>> search(const fs::path& root, const CaseQuery& query) {
  std::vector<Found> found;
  std::size_t files = 0;
  std::error_code error;
  fs::recursive_directory_iterator each(root, error);
  for (; !error && each != fs::recursive_directory_iterator(); each.increment(error)) {
    const fs::path& path = each->path();
    if (++files > kMostFiles || each.depth() > kDeepestFolder)
      return fail(ErrorKind::input,
                  fmt::format("{}: more than {} files or {} folders deep", root.string(), kMostFiles, kDeepestFolder),
                  "name the folders that hold schedules");
    if (path.filename().string().starts_with('.')) {
      each.disable_recursion_pending();
      continue;
    }
    std::error_code ignored;
    if (path.extension() != ".toml" || !each->is_regular_file(ignored)) continue;
    Found one{path, root};
    if (matches(query.exclude, name_of(one), path.string())) continue;
    ROSE_TRY(const bool wanted, is_schedule(path));
    if (wanted) found.push_back(std::move(one));
  }
  if (error) return fail(ErrorKind::input, fmt::format("{}: {}", root.string(), error.message()));
  std::sort(found.begin(), found.end(), [](const Found& a, const Found& b) { return a.schedule < b.schedule; });
  if (found.empty())
    return fail(ErrorKind::input, fmt::format("{}: no schedule in this folder", root.string()),
                "a schedule is a .toml file with [[fault]] tables, as rose diagnose writes it");
  return found;
}

// The first configuration on the way from the schedule's folder up to the folder that the user named, because each test
// may have its own configuration. If there is none, returns the configuration in the working directory.
Result<fs::path> config_of(const Found& found, const std::string& config) {
  if (found.root.empty() || config.find('/') != std::string::npos) return fs::path(config);
  const fs::path& top = found.root;
  std::error_code ignored;
  for (fs::path folder = found.schedule.lexically_normal().parent_path();; folder = folder.parent_path()) {
    if (fs::exists(folder / config, ignored)) return folder / config;
    if (folder == top || folder.empty() || folder == folder.parent_path()) break;
  }
  if (fs::exists(config, ignored)) return fs::path(config);
  return fail(ErrorKind::input, fmt::format("{}: no {} beside it or above it", found.schedule.string(), config),
              "put the deployment's configuration there, name one for all with -c ./FILE, or exclude the schedule with "
              "--exclude");
}

}  // namespace

bool CaseQuery::is_single() const {
  std::error_code ignored;
  return places.size() == 1 && !fs::is_directory(places.front(), ignored);
}

Result<std::vector<Case>> find_cases(const CaseQuery& query) {
  std::vector<Case> cases;
  std::set<std::string> names;
  std::string all;
  for (const std::string& place : query.places) {
    std::error_code ignored;
    std::vector<Found> found{{place, {}}};
    if (fs::is_directory(place, ignored)) {
      const fs::path folder = fs::path(place).lexically_normal();
      ROSE_TRY(found, search(folder.has_filename() ? folder : folder.parent_path(), query));
    } else if (!fs::exists(place, ignored)) {
      return fail(ErrorKind::input, fmt::format("{}: there is no such schedule or folder", place));
    }
    for (const Found& one : found) {
      const std::string own = name_of(one);
      all += (all.empty() ? "" : ", ") + own;
      if (!query.filter.empty() && !matches(query.filter, own, one.schedule.string())) continue;
      if (matches(query.exclude, own, one.schedule.string())) continue;
      std::string name = own;
      for (int more = 2; !names.insert(name).second; ++more) name = fmt::format("{}-{}", own, more);
      ROSE_TRY(fs::path config, config_of(one, query.config));
      cases.push_back({std::move(name), one.schedule, std::move(config)});
    }
  }
  if (cases.empty())
    return fail(ErrorKind::input, "--filter and --exclude leave no schedule",
                all.size() > 2000 ? "names are relative to the given folders" : fmt::format("the names are: {}", all));
  return cases;
}

}  // namespace rose::replay
