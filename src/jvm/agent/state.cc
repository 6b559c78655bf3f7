#include "jvm/agent/state.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <new>
#include <string>

namespace rose::jvm {
namespace {

constexpr std::uint32_t kChunk = 128;  // the file grows by this many records, which take 64 KiB

std::uint64_t random_word() {
  std::uint64_t word = 0;
  const int fd = ::open("/dev/urandom", O_RDONLY | O_CLOEXEC);
  if (fd >= 0) {
    if (::read(fd, &word, sizeof word) != static_cast<ssize_t>(sizeof word)) word = 0;
    ::close(fd);
  }
  return word;
}

}  // namespace

void State::open(std::string_view folder) {
  for (int tries = 0; tries < 8 && fd_ < 0 && !folder.empty(); ++tries) {
    std::string path(folder);
    path += '/';
    std::uint64_t word = random_word() ^ static_cast<std::uint64_t>(::getpid());
    for (int i = 0; i < 16; ++i, word >>= 4) path += "0123456789abcdef"[word & 15];
    path_ = path;
    path += ".jvm";
    fd_ = ::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd_ < 0 && errno != EEXIST) break;
  }
  if (fd_ < 0) path_.clear();
  head_ = new (more(sizeof(StateHead))) StateHead;
  head_->record_bytes = sizeof(StateRecord);
  head_->pid = ::getpid();
}

// Extends the file if possible, and otherwise returns ordinary memory. It allocates the disk blocks first, because
// otherwise, on a full disk, a store to the mapping would kill the JVM.
void* State::more(std::size_t bytes) {
  if (fd_ >= 0) {
    if (::posix_fallocate(fd_, static_cast<off_t>(end_), static_cast<off_t>(bytes)) == 0) {
      void* memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd_, static_cast<off_t>(end_));
      if (memory != MAP_FAILED) {
        end_ += bytes;
        return memory;
      }
    }
    ::close(fd_);
    fd_ = -1;
  }
  return std::calloc(1, bytes);
}

StateRecord* State::add(RecordKind kind, std::string_view text) {
  if (head_ == nullptr || head_->used >= kStateRecords) return nullptr;
  if (left_ == 0) {
    // If the file cannot grow, it keeps the records that it has, and readers do not see later ones.
    const bool filed = fd_ >= 0;
    chunk_ = static_cast<StateRecord*>(more(kChunk * sizeof(StateRecord)));
    if (chunk_ == nullptr) return nullptr;
    if (filed && fd_ < 0) head_ = new StateHead(*head_);
    left_ = kChunk;
  }
  auto* record = new (chunk_++) StateRecord;
  --left_;
  record->kind = static_cast<std::uint32_t>(kind);
  record->length = static_cast<std::uint32_t>(text.size() < kStateText ? text.size() : kStateText);
  std::memcpy(record->text, text.data(), record->length);
  __atomic_store_n(&head_->used, head_->used + 1, __ATOMIC_RELEASE);
  return record;
}

}  // namespace rose::jvm
