// The replicated log: in memory for reading, and in one append-only file. Entries that a snapshot covers can be dropped
// from its front; the last dropped one is the base.
#pragma once

#include <atomic>
#include <deque>
#include <filesystem>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "base.h"
#include "storage.h"

namespace kv {

struct Entry {
  Index index = 0;
  Term term = 0;
  std::string command;  // empty: a new leader's first entry, which changes nothing
};

// Everything except sync() is called under Raft's mutex. If the log cannot be written, the process ends.
class Log {
 public:
  // Reads the file, or creates an empty one. A torn record at the end (a crash while appending) is cut off: it was
  // never acknowledged.
  void open(const std::filesystem::path& path);

  // Leaves the log as if it had been opened from a file with this content, and writes that file.
  void restore(const std::filesystem::path& path, Index base, Term base_term, const std::vector<Entry>& entries);

  Index base() const { return base_; }
  Index last() const { return base_ + entries_.size(); }
  Term last_term() const { return term_at(last()); }
  // 0 outside of base()..last().
  Term term_at(Index index) const;
  const Entry& at(Index index) const { return entries_[index - base_ - 1].entry; }
  // Starts at `from`; returns up to about `most_bytes` and at least one entry.
  std::vector<Entry> read(Index from, std::size_t most_bytes) const;

  // Writes the entry to the file; it is durable only after sync().
  void append(const Entry& entry);
  // Makes everything up to `index` durable. Called without the mutex: callers that wait for the disk
  // at the same time share one fdatasync. Returns the last durable index.
  Index sync(Index index);
  // Drops the entry `from` and all after it, because they conflict with the leader's.
  void truncate(Index from);
  // Drops everything up to `upto`, which becomes the base. Rewrites the file: costly.
  void compact(Index upto);
  // Forgets everything; the log continues after `base`, which a snapshot covers.
  void reset(Index base, Term base_term);

 private:
  struct Stored {
    Entry entry;
    std::uint64_t offset = 0;  // where the entry's record begins in the file
  };
  void rewrite();
  void open_file();

  std::filesystem::path path_;
  Index base_ = 0;
  Term base_term_ = 0;
  std::deque<Stored> entries_;
  std::uint64_t size_ = 0;  // the file's size
  std::atomic<Index> written_ = 0;

  std::mutex sync_mutex_;  // guards the members below; taken after Raft's mutex, never before it
  Fd file_;
  Index durable_ = 0;
};

}  // namespace kv
