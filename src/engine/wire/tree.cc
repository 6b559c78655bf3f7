#include "engine/wire/tree.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <set>

#include "base/file.h"
#include "base/glob.h"
#include "base/text.h"

namespace rose::engine {
namespace {

namespace fs = std::filesystem;

constexpr int kDeepestTree = 64;
constexpr std::size_t kLongestPath = 4000;
constexpr std::string_view kExcludeHint = "remove it from the configuration's folder, or name it in [diagnose] exclude";

bool excluded(const std::string& path, const std::vector<std::string>& globs) {
  const std::string name = path.substr(path.rfind('/') + 1);
  return std::any_of(globs.begin(), globs.end(), [&](const std::string& glob) {
    return glob_match(glob, glob.find('/') == std::string::npos ? name : path);
  });
}

class TreeReader {
 public:
  TreeReader(const std::vector<std::string>& exclude, const std::vector<fs::path>& without) : exclude_(exclude) {
    for (const fs::path& path : without) {
      std::error_code ignored;
      without_.insert(fs::weakly_canonical(path, ignored));
    }
  }
  Tree tree;

  Result<void> folder(const fs::path& at, const std::string& below, int depth) {
    if (depth > kDeepestTree)
      return fail(ErrorKind::input, fmt::format("{}: folders lie more than {} deep", at.string(), kDeepestTree),
                  std::string(kExcludeHint));
    std::vector<fs::path> names;
    std::error_code error;
    for (fs::directory_iterator entry(at, error), end; !error && entry != end; entry.increment(error))
      names.push_back(entry->path());
    if (error)
      return fail(ErrorKind::input, fmt::format("cannot read the folder {}: {}", at.string(), error.message()),
                  std::string(kExcludeHint));
    std::sort(names.begin(), names.end());
    for (const fs::path& path : names) {
      Entry entry;
      entry.path = below.empty() ? path.filename().string() : below + "/" + path.filename().string();
      if (excluded(entry.path, exclude_) || without_.contains(path)) continue;
      struct stat info{};
      if (::lstat(path.c_str(), &info) != 0) return fail_errno(ErrorKind::input, path.string(), errno);
      if (S_ISLNK(info.st_mode))
        return fail(ErrorKind::input,
                    fmt::format("{} is a symbolic link, which cannot be copied to workers", path.string()),
                    std::string(kExcludeHint));
      if (!S_ISREG(info.st_mode) && !S_ISDIR(info.st_mode))
        return fail(ErrorKind::input,
                    fmt::format("{} is neither a file nor a folder, so it cannot be copied to workers", path.string()),
                    std::string(kExcludeHint));
      entry.folder = S_ISDIR(info.st_mode);
      entry.mode = info.st_mode & 0777;
      if (!entry.folder) {
        entry.size = static_cast<std::uint64_t>(info.st_size);
        bytes_ += entry.size;
        if (bytes_ > kMostTreeBytes)
          return fail(ErrorKind::input,
                      fmt::format("{}: the folder contains more than {} GiB, too much for workers", path.string(),
                                  kMostTreeBytes >> 30),
                      std::string(kExcludeHint));
        ROSE_TRY(entry.digest, digest_of(path));
      }
      const bool into = entry.folder;
      const std::string name = entry.path;
      tree.entries.push_back(std::move(entry));
      if (tree.entries.size() > kMostEntries)
        return fail(ErrorKind::input,
                    fmt::format("{}: the folder contains more than {} files, too many for workers", path.string(),
                                kMostEntries),
                    std::string(kExcludeHint));
      if (into) ROSE_CHECK(folder(path, name, depth + 1));
    }
    return {};
  }

 private:
  const std::vector<std::string>& exclude_;
  std::set<fs::path> without_;
  std::uint64_t bytes_ = 0;
};

bool is_digest(const std::string& text) {
  return text.size() == 64 && text.find_first_not_of("0123456789abcdef") == std::string::npos;
}

}  // namespace

bool stays_inside(const std::string& path) {
  if (path.empty() || path.size() > kLongestPath || path.find('\0') != std::string::npos) return false;
  const std::vector<std::string> parts = split(path, '/');
  return parts.size() <= static_cast<std::size_t>(kDeepestTree) + 1 &&
         std::none_of(parts.begin(), parts.end(),
                      [](const std::string& part) { return part.empty() || part == "." || part == ".."; });
}

Result<std::string> digest_of(const fs::path& file) {
  const Fd fd = open_regular(file);
  if (!fd)
    return fail(ErrorKind::input, fmt::format("cannot read {}: {}", file.string(), std::strerror(errno)),
                std::string(kExcludeHint));
  Sha256 sum;
  std::vector<char> buffer(kChunk);
  for (;;) {
    const ssize_t n = ::read(fd.get(), buffer.data(), buffer.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return fail_errno(ErrorKind::input, fmt::format("cannot read {}", file.string()), errno);
    if (n == 0) return sum.finish();
    sum.add({buffer.data(), static_cast<std::size_t>(n)});
  }
}

std::uint64_t Tree::bytes() const {
  std::uint64_t all = 0;
  for (const Entry& entry : entries) all += entry.size;
  return all;
}

Result<Tree> read_tree(const fs::path& folder, const std::vector<std::string>& exclude,
                       const std::vector<fs::path>& without) {
  std::error_code error;
  const fs::path root = fs::canonical(folder, error);
  if (error)
    return fail(ErrorKind::input, fmt::format("cannot read the folder {}: {}", folder.string(), error.message()));
  TreeReader reader(exclude, without);
  ROSE_CHECK(reader.folder(root, "", 0));
  reader.tree.root = root;
  return std::move(reader.tree);
}

Json to_json(const Tree& tree) {
  Json list = Json::array();
  for (const Entry& entry : tree.entries)
    list.push_back(
        entry.folder
            ? Json{{"path", entry.path}, {"mode", entry.mode}}
            : Json{{"path", entry.path}, {"mode", entry.mode}, {"size", entry.size}, {"digest", entry.digest}});
  return list;
}

Result<Tree> tree_from(const Json& json) {
  const auto refused = [](std::string_view why) {
    return fail(ErrorKind::input, fmt::format("the list of files is invalid: {}", why));
  };
  if (!json.is_array() || json.size() > kMostEntries) return refused("it is not a list, or too long");
  Tree tree;
  std::set<std::string> folders{""};
  std::set<std::string> seen;
  std::uint64_t bytes = 0;
  for (const Json& one : json) {
    const auto is = [&](const char* key, auto test) { return one.contains(key) && test(one[key]); };
    const auto text = [](const Json& value) { return value.is_string(); };
    const auto whole = [](const Json& value) { return value.is_number_unsigned(); };
    if (!one.is_object() || !is("path", text) || !is("mode", whole)) return refused("an entry has no path or mode");
    Entry entry;
    entry.path = one["path"].get<std::string>();
    if (!stays_inside(entry.path))
      return refused(fmt::format("'{}' may lead out of the folder", printable(entry.path)));
    entry.mode = static_cast<std::uint32_t>(one["mode"].get<std::uint64_t>() & 0777);
    entry.folder = !one.contains("digest");
    if (!entry.folder) {
      if (!is("digest", text) || !is("size", whole))
        return refused(fmt::format("'{}' has no digest or size", printable(entry.path)));
      entry.digest = one["digest"].get<std::string>();
      entry.size = one["size"].get<std::uint64_t>();
      if (!is_digest(entry.digest)) return refused(fmt::format("'{}' has no SHA-256", printable(entry.path)));
    }
    if (!seen.insert(entry.path).second) return refused(fmt::format("'{}' occurs twice", printable(entry.path)));
    const std::size_t slash = entry.path.rfind('/');
    if (!folders.contains(slash == std::string::npos ? "" : entry.path.substr(0, slash)))
      return refused(fmt::format("'{}' is in no folder of it", printable(entry.path)));
    if (entry.folder) folders.insert(entry.path);
    tree.entries.push_back(std::move(entry));
    if (tree.entries.back().size > kMostTreeBytes) return refused("it is too large");
    bytes += tree.entries.back().size;
    if (bytes > kMostTreeBytes) return refused("it is too large");
  }
  return tree;
}

TreeBuilder::TreeBuilder(fs::path root, Tree tree) : root_(std::move(root)), tree_(std::move(tree)) {
  for (std::size_t i = 0; i < tree_.entries.size(); ++i) {
    const Entry& entry = tree_.entries[i];
    if (entry.folder) continue;
    std::vector<std::size_t>& of = awaited_[entry.digest];
    if (of.empty()) order_.push_back(entry.digest);
    of.push_back(i);
  }
}

std::vector<std::string> TreeBuilder::lacking() const { return order_; }

Result<void> TreeBuilder::piece(const std::string& digest, std::string_view bytes) {
  if (!folders_made_) {
    folders_made_ = true;
    for (const Entry& entry : tree_.entries)
      if (entry.folder && ::mkdir((root_ / entry.path).c_str(), 0700) != 0)
        return fail_errno(ErrorKind::environment, fmt::format("cannot create {}", (root_ / entry.path).string()),
                          errno);
  }
  const auto awaited = awaited_.find(digest);
  if (awaited == awaited_.end() || (!digest_.empty() && digest != digest_))
    return fail(ErrorKind::input, "a file was sent that was not requested");
  const Entry& entry = tree_.entries[awaited->second.front()];
  if (digest_.empty()) {
    digest_ = digest;
    sum_ = {};
    got_ = 0;
    file_ = Fd(::open((root_ / entry.path).c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
    if (!file_)
      return fail_errno(ErrorKind::environment, fmt::format("cannot write {}", (root_ / entry.path).string()), errno);
  }
  got_ += bytes.size();
  sum_.add(bytes);
  if (const int error = write_bytes(file_.get(), bytes); error != 0)
    return fail_errno(ErrorKind::environment, fmt::format("cannot write {}", (root_ / entry.path).string()), error);
  if (got_ > entry.size)
    return fail(ErrorKind::input, fmt::format("{} has changed since the diagnosis began", entry.path),
                std::string(kExcludeHint));
  return got_ == entry.size ? file_done() : Result<void>();
}

Result<void> TreeBuilder::file_done() {
  auto awaited = awaited_.extract(digest_);
  const Entry& first = tree_.entries[awaited.mapped().front()];
  if (sum_.finish() != digest_)
    return fail(ErrorKind::input, fmt::format("{} has changed since the diagnosis began", first.path),
                std::string(kExcludeHint));
  digest_.clear();
  if (::fchmod(file_.get(), first.mode) != 0) return fail_errno(ErrorKind::environment, first.path, errno);
  file_.reset();
  for (std::size_t i = 1; i < awaited.mapped().size(); ++i) {
    const Entry& same = tree_.entries[awaited.mapped()[i]];
    std::error_code error;
    fs::copy_file(root_ / first.path, root_ / same.path, error);
    if (error)
      return fail(ErrorKind::environment,
                  fmt::format("cannot write {}: {}", (root_ / same.path).string(), error.message()));
    if (::chmod((root_ / same.path).c_str(), same.mode) != 0)
      return fail_errno(ErrorKind::environment, same.path, errno);
  }
  return {};
}

Result<void> TreeBuilder::finish() {
  // Sets modes from the innermost folder outwards, because the content of a folder without search permission cannot be
  // reached.
  for (auto entry = tree_.entries.rbegin(); entry != tree_.entries.rend(); ++entry)
    if (entry->folder && ::chmod((root_ / entry->path).c_str(), entry->mode) != 0)
      return fail_errno(ErrorKind::environment, (root_ / entry->path).string(), errno);
  return {};
}

}  // namespace rose::engine
