#include "snapshot.h"

#include <algorithm>
#include <vector>

#include "storage.h"

namespace kv {
namespace {

constexpr std::string_view kSnapshotMagic = "KVSNAP01";
constexpr std::string_view kPrefix = "snapshot-";

// Indexes of the complete snapshots in the folder, in order. Leftovers of a crash (.tmp) are ignored.
std::vector<Index> list(const std::filesystem::path& folder) {
  std::vector<Index> result;
  for (const auto& file : std::filesystem::directory_iterator(folder)) {
    const std::string name = file.path().filename().string();
    if (!name.starts_with(kPrefix)) continue;
    const std::string number = name.substr(kPrefix.size());
    if (number.empty() || number.find_first_not_of("0123456789") != std::string::npos) continue;
    result.push_back(std::stoull(number));
  }
  std::sort(result.begin(), result.end());
  return result;
}

std::filesystem::path path_of(const std::filesystem::path& folder, Index index) {
  return folder / (std::string(kPrefix) + std::to_string(index));
}

}  // namespace

std::string Snapshot::encode() const {
  Writer body;
  body.u64(index);
  body.u64(term);
  body.u64(state.size());
  for (const auto& [key, value] : state) {
    body.string(key);
    body.string(value);
  }
  Writer sum;
  sum.u32(crc32(body.bytes()));
  return std::string(kSnapshotMagic) + sum.bytes() + body.bytes();
}

std::optional<Snapshot> Snapshot::decode(std::string_view bytes) {
  if (!bytes.starts_with(kSnapshotMagic)) return std::nullopt;
  bytes.remove_prefix(kSnapshotMagic.size());
  Reader in(bytes);
  const std::uint32_t sum = in.u32();
  if (!in.good() || crc32(bytes.substr(4)) != sum) return std::nullopt;
  Snapshot result;
  result.index = in.u64();
  result.term = in.u64();
  const std::uint64_t size = in.u64();
  for (std::uint64_t i = 0; i < size && in.good(); ++i) {
    std::string key = in.string();
    result.state.insert_or_assign(std::move(key), in.string());
  }
  if (!in.good()) return std::nullopt;
  return result;
}

void SnapshotStore::open(const std::filesystem::path& folder) {
  folder_ = folder;
  std::filesystem::create_directories(folder);
}

Snapshot SnapshotStore::load() const {
  std::vector<Index> indexes = list(folder_);
  for (; !indexes.empty(); indexes.pop_back()) {
    const std::filesystem::path path = path_of(folder_, indexes.back());
    const std::optional<std::string> content = read_file(path);
    if (!content) continue;
    if (std::optional<Snapshot> snapshot = Snapshot::decode(*content)) return std::move(*snapshot);
    warning("%s is damaged, trying an older one", path.c_str());
  }
  return {};
}

Status SnapshotStore::save(const Snapshot& snapshot) {
  const std::lock_guard lock(mutex_);
  if (Status done = replace_file(path_of(folder_, snapshot.index), snapshot.encode()); !done) return done;
  for (const Index index : list(folder_)) {
    if (index < snapshot.index) std::filesystem::remove(path_of(folder_, index));
  }
  return Status::ok();
}

}  // namespace kv
