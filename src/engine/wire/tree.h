// The configuration's folder as sent to workers: a list of names, modes and digests, and each distinct file once.
// Refuses anything that is not a file or folder, and names that could lead outside the destination.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "base/fd.h"
#include "base/sha256.h"
#include "engine/wire/message.h"

namespace rose::engine {

inline constexpr std::size_t kMostEntries = 200'000;
inline constexpr std::uint64_t kMostTreeBytes = std::uint64_t{16} << 30;
inline constexpr std::size_t kChunk = std::size_t{1} << 20;  // bytes of a file per message

struct Entry {
  std::string path;  // relative to the folder, with '/'
  bool folder = false;
  std::uint32_t mode = 0;
  std::uint64_t size = 0;
  std::string digest;  // for a file
  friend bool operator==(const Entry&, const Entry&) = default;
};

struct Tree {
  std::filesystem::path root;  // the folder with the files; "" for a tree that was received
  std::vector<Entry> entries;  // folders before their content

  [[nodiscard]] std::uint64_t bytes() const;
};

// Lists everything below `folder`, except entries that match `exclude` or are in `without` (absolute paths). A glob
// without '/' is compared with the names of files and folders. A glob with '/' is compared with their paths relative to
// `folder`. The content of a folder that matches is left out, too. Returns ErrorKind::input for links, sockets,
// unreadable files, or too much data.
[[nodiscard]] Result<Tree> read_tree(const std::filesystem::path& folder, const std::vector<std::string>& exclude,
                                     const std::vector<std::filesystem::path>& without);

[[nodiscard]] Json to_json(const Tree& tree);
// Returns ErrorKind::input if the JSON is not a list of such entries or contains forbidden names.
[[nodiscard]] Result<Tree> tree_from(const Json& json);

// Recreates the folder: reports which files it needs and receives them in pieces.
class TreeBuilder {
 public:
  // `root` must exist and be empty and private.
  TreeBuilder(std::filesystem::path root, Tree tree);

  // Digests of the files that must be sent, each once.
  [[nodiscard]] std::vector<std::string> lacking() const;
  // Receives the next piece of the file with this digest. Pieces are in order, one file after the other.
  [[nodiscard]] Result<void> piece(const std::string& digest, std::string_view bytes);
  [[nodiscard]] bool complete() const { return awaited_.empty(); }
  // Call it when the tree is complete. It sets the modes of folders last, because they may forbid writing to the
  // folders.
  [[nodiscard]] Result<void> finish();

 private:
  [[nodiscard]] Result<void> file_done();

  std::filesystem::path root_;
  Tree tree_;
  std::map<std::string, std::vector<std::size_t>> awaited_;  // entries that still need their content, by digest
  std::vector<std::string> order_;
  bool folders_made_ = false;
  std::string digest_;  // of the file being received
  Sha256 sum_;
  Fd file_;
  std::uint64_t got_ = 0;
};

// True for a relative path without "." and ".." components.
[[nodiscard]] bool stays_inside(const std::string& path);

[[nodiscard]] Result<std::string> digest_of(const std::filesystem::path& file);

}  // namespace rose::engine
