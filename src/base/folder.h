// A folder that another user may write, such as a node's. Any entry in it may be replaced at any moment: a folder by a
// link to /etc, a log by a hard link to /etc/shadow. Therefore everything below it is accessed through descriptors: a
// name is looked up once, without leaving the folder, and the descriptor is then read, written, chowned, mounted on or
// removed.
//
// Links: functions that change something follow no links. Functions that read follow links that stay inside, because
// servers keep links such as `current.log`. Every error names the path and is of ErrorKind::environment unless stated
// otherwise.
#pragma once

#include <sys/stat.h>
#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/fd.h"
#include "base/result.h"

namespace rose {

struct Owner {
  uid_t uid = 0;
  gid_t gid = 0;
};

class OpenFolder {
 public:
  // Opens `path`, which must not be a link. The folders above it are not checked: the caller must trust everybody who
  // can replace entries in them.
  [[nodiscard]] static Result<OpenFolder> open(const std::filesystem::path& path);
  // `path`: for messages.
  OpenFolder(Fd fd, std::filesystem::path path) : fd_(std::move(fd)), path_(std::move(path)) {}

  [[nodiscard]] int fd() const { return fd_.get(); }
  [[nodiscard]] const std::filesystem::path& path() const { return path_; }
  [[nodiscard]] Result<struct stat> status() const;

  // Opens a folder inside this one. `inside` may have several components; if it is empty, this folder is opened again.
  [[nodiscard]] Result<OpenFolder> enter(const std::filesystem::path& inside) const;
  // Like enter(), but creates missing folders and gives them to `owner` if there is one. Existing folders keep their
  // mode and must belong to the owner or to this user. They are given to the owner only if no other user could have put
  // them there.
  [[nodiscard]] Result<OpenFolder> make(const std::filesystem::path& inside, const std::optional<Owner>& owner,
                                        mode_t mode = 0755) const;
  [[nodiscard]] Result<void> give(const Owner& owner, mode_t mode) const;

  // Opens a regular file for reading (in a way that neither blocks on nor triggers pipes and devices). Returns an
  // invalid descriptor and sets errno if there is no such file, if a link leads out of the folder (EXDEV), if the file
  // is a hard link to another user's file (EPERM), or if a folder on the path belongs to a user who may not read the
  // file (EACCES).
  [[nodiscard]] Fd file(const std::filesystem::path& inside) const;
  // Opens a regular file for changes in place. Follows no links.
  [[nodiscard]] Fd file_to_change(const std::filesystem::path& inside) const;
  // Returns the content of a file. ErrorKind::input if it cannot be read or is larger than `most` bytes.
  [[nodiscard]] Result<std::string> read(const std::filesystem::path& inside, std::size_t most) const;
  // Creates a file. Returns an error if the name is in use.
  [[nodiscard]] Result<Fd> create(const std::string& name, const std::optional<Owner>& owner, mode_t mode) const;
  // Opens the entry that the name currently refers to, without following links. The descriptor can be used to query the
  // entry's type and as a mount point.
  [[nodiscard]] Fd at(const std::filesystem::path& inside) const;

  [[nodiscard]] std::vector<std::string> names() const;
  struct Entry {
    std::filesystem::path inside;  // relative to the folder in which each() began
    const OpenFolder& parent;
    std::string name;
    struct stat status;
  };
  // Visits the entries in this folder and in the folders inside it, to a depth of 64 folders; a folder comes before its
  // content. Does not enter other file systems that are mounted inside. Stops when `visit` returns false.
  void each(const std::function<bool(const Entry&)>& visit) const;

  // Removes the entry with everything in it, on this file system. Succeeds if the entry does not exist. If a folder in
  // it belongs to another user, that user may have moved folders of this user there. Such folders are recognised
  // because they are older than the entry. They are kept, and an error is returned.
  [[nodiscard]] Result<void> remove(const std::string& name) const;
  // Removes all entries except those that `keep` selects. Folders that do not belong to the user `only`, if one is
  // given, are kept.
  [[nodiscard]] Result<void> clear(const std::function<bool(const std::string& name)>& keep = {},
                                   const std::optional<uid_t>& only = std::nullopt) const;
  // Renames an entry within one file system; `to` must not exist.
  [[nodiscard]] Result<void> rename(const std::string& name, const OpenFolder& into, const std::string& to) const;

  // Copies all entries, with owners, modes, times, links, extended attributes of users and access lists, into `to`,
  // which must not have entries with these names. Other file systems mounted in this folder are not copied. Continues
  // after an error and reports the first one. Holes in files are preserved. `copied` is called for each regular file,
  // with a descriptor of the source (once for a file with several names).
  using Copied = std::function<void(const std::filesystem::path& inside, int fd)>;
  [[nodiscard]] Result<void> copy_into(const OpenFolder& to, const Copied& copied = {}) const;
  // True if another file system, or a file from elsewhere, is mounted under this name.
  [[nodiscard]] bool is_mounted_on(const std::string& name) const;

 private:
  Fd fd_;
  std::filesystem::path path_;
};

// Returns a path for functions that need one. It leads to the open file or folder, whatever the name of the file is
// now. Valid in this process only.
[[nodiscard]] std::string own_path(int fd);

// Opens `file` (relative, or an absolute path below `folder`) like OpenFolder::file. If `folder` is empty, the user
// gave the path, and it is opened normally (base/file.h).
[[nodiscard]] Fd open_inside(const std::filesystem::path& folder, const std::filesystem::path& file);
[[nodiscard]] Result<std::string> read_inside(const std::filesystem::path& folder, const std::filesystem::path& file,
                                              std::size_t most);
// The status of a regular file; nothing if open_inside() would refuse it.
[[nodiscard]] std::optional<struct stat> status_inside(const std::filesystem::path& folder,
                                                       const std::filesystem::path& file);

// Removes a folder of this user with everything in it. Entries that cannot be removed are left.
void remove_tree(const std::filesystem::path& folder);

// Creates a folder that belongs to this user, with this mode (0700: only this user may enter it). Returns an error if
// the name is in use.
[[nodiscard]] Result<void> make_own_folder(const std::filesystem::path& folder, mode_t mode);
// True if only this user may add entries to the folder: it is not a link, belongs to this user, and others may not
// write to it.
[[nodiscard]] bool is_own_folder(const std::filesystem::path& folder);

// A user with their groups.
struct UserGroups {
  uid_t uid = 0;
  std::vector<gid_t> groups;
};
// The first folder on the path to `folder`, through all links, in which `user` may replace the next component of the
// path. Nothing if the path can be trusted.
[[nodiscard]] std::optional<std::filesystem::path> exchangeable_by(const UserGroups& user,
                                                                   const std::filesystem::path& folder);
// The first folder on the path in which a user who is not in `trusted` may replace the next component. The path may end
// in components that do not exist yet. Members of groups that may write to a folder are trusted like its owner.
[[nodiscard]] std::optional<std::filesystem::path> exchangeable_by_others(const std::vector<uid_t>& trusted,
                                                                          const std::filesystem::path& folder);

}  // namespace rose
