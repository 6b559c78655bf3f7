// What travels to a worker: the configuration's folder as a list of names, modes and digests, and each file once by its
// digest. What is no file or folder is refused, so is every name that could lead out of the folder it is put into.
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
inline constexpr std::size_t kChunk = std::size_t{1} << 20;  // of a file, in one message

struct Entry {
  std::string path;  // below the folder, parts parted by '/'
  bool folder = false;
  std::uint32_t mode = 0;
  std::uint64_t size = 0;
  std::string digest;  // of files
  friend bool operator==(const Entry&, const Entry&) = default;
};

struct Tree {
  std::filesystem::path root;  // where the files lie; "" of one that was received
  std::vector<Entry> entries;  // folders before what is in them

  [[nodiscard]] std::uint64_t bytes() const;
};

// All below `folder`, but for what `exclude` matches and what lies in `without` (absolute). A glob without '/' is
// matched with names, one with it with the path below the folder; of a folder that matches nothing travels. Errors
// (input): a link, a socket, a file that can't be read, too much.
[[nodiscard]] Result<Tree> read_tree(const std::filesystem::path& folder, const std::vector<std::string>& exclude,
                                     const std::vector<std::filesystem::path>& without);

[[nodiscard]] Json to_json(const Tree& tree);
// Error (input) when it is no such list, or names what must not be named.
[[nodiscard]] Result<Tree> tree_from(const Json& json);

// Makes the folder again, elsewhere: tells which files it lacks, takes them in pieces.
class TreeBuilder {
 public:
  // `root` exists, is empty and nobody else's.
  TreeBuilder(std::filesystem::path root, Tree tree);

  // Digests of the files to be sent, each once.
  [[nodiscard]] std::vector<std::string> lacking() const;
  // The next piece of the file with this digest; pieces of one file come in order, one file after the other.
  [[nodiscard]] Result<void> piece(const std::string& digest, std::string_view bytes);
  [[nodiscard]] bool complete() const { return awaited_.empty(); }
  // Once complete: modes of folders, which may say that nothing is to be written there.
  [[nodiscard]] Result<void> finish();

 private:
  [[nodiscard]] Result<void> file_done();

  std::filesystem::path root_;
  Tree tree_;
  std::map<std::string, std::vector<std::size_t>> awaited_;  // by digest: entries
  std::vector<std::string> order_;
  bool folders_made_ = false;
  std::string digest_;  // of the file that is coming in
  Sha256 sum_;
  Fd file_;
  std::uint64_t got_ = 0;
};

// A path of parts that have names, below the folder that it is put into.
[[nodiscard]] bool stays_inside(const std::string& path);

[[nodiscard]] Result<std::string> digest_of(const std::filesystem::path& file);

}  // namespace rose::engine
