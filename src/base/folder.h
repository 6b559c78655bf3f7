// A folder that another user may write, such as a node's. Whatever has a name in it may be exchanged at any moment: a
// folder for a link to /etc, a log for a hard link to /etc/shadow. Therefore everything below it is reached through
// descriptors: a name is looked up once, without leaving the folder, and what was found is what is read, written, given
// away, mounted on or removed.
//
// Links: functions that change something follow none. Functions that read follow links that stay inside, because
// servers keep links such as `current.log`. Every error names the path and is of ErrorKind::environment unless it says
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
  // The folders above it must be such as only their owner changes; it must itself be no link.
  [[nodiscard]] static Result<OpenFolder> open(const std::filesystem::path& path);
  // `path`: for messages.
  OpenFolder(Fd fd, std::filesystem::path path) : fd_(std::move(fd)), path_(std::move(path)) {}

  [[nodiscard]] int fd() const { return fd_.get(); }
  [[nodiscard]] const std::filesystem::path& path() const { return path_; }
  [[nodiscard]] Result<struct stat> status() const;

  // A folder in it; `inside` may have several parts, or none: the folder itself.
  [[nodiscard]] Result<OpenFolder> enter(const std::filesystem::path& inside) const;
  // The same, making the folders that are missing. What is made belongs to `owner`, if there is one. What exists keeps
  // its mode, and must belong to the owner or to this user; it is given to the owner only if no other user could have
  // put it there.
  [[nodiscard]] Result<OpenFolder> make(const std::filesystem::path& inside, const std::optional<Owner>& owner,
                                        mode_t mode = 0755) const;
  [[nodiscard]] Result<void> give(const Owner& owner, mode_t mode) const;

  // A regular file to be read (opened so that a pipe or a device neither blocks nor acts); invalid with errno when
  // there is none, when a link leads out of the folder (EXDEV), or when it is a further name of somebody else's file
  // (EPERM).
  [[nodiscard]] Fd file(const std::filesystem::path& inside) const;
  // The same, to be changed in place: no link is followed.
  [[nodiscard]] Fd file_to_change(const std::filesystem::path& inside) const;
  // ErrorKind::input when it cannot be read or is larger than `most` bytes.
  [[nodiscard]] Result<std::string> read(const std::filesystem::path& inside, std::size_t most) const;
  // A new file: an error when the name is taken.
  [[nodiscard]] Result<Fd> create(const std::string& name, const std::optional<Owner>& owner, mode_t mode) const;
  // What the name stands for now, not followed, for its type and for mounting on it.
  [[nodiscard]] Fd at(const std::filesystem::path& inside) const;

  [[nodiscard]] std::vector<std::string> names() const;
  struct Entry {
    std::filesystem::path inside;  // from the folder that each() began in
    const OpenFolder& parent;
    std::string name;
    struct stat status;
  };
  // All that is in it, at any depth, folders before their content, but nothing of other file systems that are mounted
  // in it. Stops when it returns false.
  void each(const std::function<bool(const Entry&)>& visit) const;

  // Removes it with all that is in it, on this file system. Succeeds if it does not exist.
  [[nodiscard]] Result<void> remove(const std::string& name) const;
  // All that is in it, but for `keep`. `only`: what is in folders of other users stays.
  [[nodiscard]] Result<void> clear(const std::function<bool(const std::string& name)>& keep = {},
                                   const std::optional<uid_t>& only = std::nullopt) const;
  // Within one file system; `to` is not there yet.
  [[nodiscard]] Result<void> rename(const std::string& name, const OpenFolder& into, const std::string& to) const;

  // All that is in it, with owners, modes, times, links, extended attributes of users and access lists, into `to`,
  // which has nothing of these names; nothing of other file systems that are mounted in it. Goes on after an error and
  // reports the first one. Files with holes keep them. `copied`: called for each regular file, with what was read (of
  // one with several names, once).
  using Copied = std::function<void(const std::filesystem::path& inside, int fd)>;
  [[nodiscard]] Result<void> copy_into(const OpenFolder& to, const Copied& copied = {}) const;
  // Is another file system, or a file of another place, mounted under this name?
  [[nodiscard]] bool is_mounted_on(const std::string& name) const;

 private:
  Fd fd_;
  std::filesystem::path path_;
};

// For calls and tools that take a path: what the descriptor is open on, whatever has its name now. Of this process
// only.
[[nodiscard]] std::string own_path(int fd);

// `file` (relative, or an absolute path below `folder`), as OpenFolder::file reads it. An empty `folder`: a path that
// the user gave, followed as it is (base/file.h).
[[nodiscard]] Fd open_inside(const std::filesystem::path& folder, const std::filesystem::path& file);
[[nodiscard]] Result<std::string> read_inside(const std::filesystem::path& folder, const std::filesystem::path& file,
                                              std::size_t most);
// The status of a regular file; nothing when open_inside() would refuse it.
[[nodiscard]] std::optional<struct stat> status_inside(const std::filesystem::path& folder,
                                                       const std::filesystem::path& file);

// Removes a folder that is this user's own, with all that is in it. What cannot be removed stays.
void remove_tree(const std::filesystem::path& folder);

// Makes a new folder for this user alone but for `mode` (0700: nobody else enters it). An error when the name is taken.
[[nodiscard]] Result<void> make_own_folder(const std::filesystem::path& folder, mode_t mode);
// Whether only this user may put something there: it is no link, belongs to this user, and others may not write to it.
[[nodiscard]] bool is_own_folder(const std::filesystem::path& folder);

// The first folder above `folder` in which `user` may exchange what leads to it, through all links on the way; none
// when the path can be trusted.
struct UserGroups {
  uid_t uid = 0;
  std::vector<gid_t> groups;
};
[[nodiscard]] std::optional<std::filesystem::path> exchangeable_by(const UserGroups& user,
                                                                   const std::filesystem::path& folder);

}  // namespace rose
