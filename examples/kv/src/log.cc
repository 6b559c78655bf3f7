#include "log.h"

#include <fcntl.h>

#include <cerrno>
#include <cstring>

#include "rr/rose_rr.h"

namespace kv {
namespace {

// File: magic, base index, base term, checksum; then records of length, checksum, index, term, command.
constexpr std::string_view kLogMagic = "KVLOG001";
constexpr std::size_t kHeaderSize = 8 + 8 + 8 + 4;
constexpr std::size_t kRecordHeader = 8;

std::string encode_header(Index base, Term base_term) {
  Writer fields;
  fields.u64(base);
  fields.u64(base_term);
  Writer sum;
  sum.u32(crc32(fields.bytes()));
  return std::string(kLogMagic) + fields.bytes() + sum.bytes();
}

std::string encode_record(const Entry& entry) {
  Writer body;
  body.u64(entry.index);
  body.u64(entry.term);
  body.string(entry.command);
  Writer head;
  head.u32(static_cast<std::uint32_t>(body.bytes().size()));
  head.u32(crc32(body.bytes()));
  return head.bytes() + body.bytes();
}

}  // namespace

void Log::open(const std::filesystem::path& path) {
  path_ = path;
  const std::optional<std::string> content = read_file(path);
  if (!content) {
    rewrite();
    return;
  }
  Reader header(std::string_view(*content).substr(std::min(kLogMagic.size(), content->size())));
  base_ = header.u64();
  base_term_ = header.u64();
  if (!header.good() || encode_header(base_, base_term_) != content->substr(0, kHeaderSize)) {
    fatal("%s is not a log, or its header is damaged", path.c_str());
  }

  size_ = kHeaderSize;
  while (size_ < content->size()) {
    const std::string_view rest = std::string_view(*content).substr(size_);
    Reader head(rest);
    const std::uint32_t length = head.u32();
    const std::uint32_t sum = head.u32();
    if (!head.good() || head.left() < length) break;
    const std::string_view body = rest.substr(kRecordHeader, length);
    if (crc32(body) != sum) break;
    Reader in(body);
    Entry entry;
    entry.index = in.u64();
    entry.term = in.u64();
    entry.command = in.string();
    if (!in.good() || entry.index != last() + 1) break;
    entries_.push_back({std::move(entry), size_});
    size_ += kRecordHeader + length;
  }
  open_file();
  if (size_ < content->size()) {
    warning("log: cut off %zu bytes after entry %lu that were not completely written", content->size() - size_, last());
    if (::ftruncate(file_.get(), static_cast<off_t>(size_)) != 0) fatal("truncate log: %s", std::strerror(errno));
  }
  written_ = last();
  sync(last());
}

void Log::restore(const std::filesystem::path& path, Index base, Term base_term, const std::vector<Entry>& entries) {
  path_ = path;
  base_ = base;
  base_term_ = base_term;
  entries_.clear();
  for (const Entry& entry : entries) entries_.push_back({entry, 0});
  rewrite();
}

void Log::open_file() {
  file_ = Fd(::open(path_.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC));
  if (!file_) fatal("open %s: %s", path_.c_str(), std::strerror(errno));
}

Term Log::term_at(Index index) const {
  if (index == base_) return base_term_;
  if (index < base_ || index > last()) return 0;
  return at(index).term;
}

std::vector<Entry> Log::read(Index from, std::size_t most_bytes) const {
  std::vector<Entry> result;
  std::size_t bytes = 0;
  for (Index index = from; index <= last() && bytes < most_bytes; ++index) {
    result.push_back(at(index));
    bytes += result.back().command.size() + 32;
  }
  return result;
}

void Log::append(const Entry& entry) {
  const std::string record = encode_record(entry);
  if (Status done = write_all(file_.get(), record); !done) {
    fatal("the log can't be kept: %s", done.message().c_str());
  }
  entries_.push_back({entry, size_});
  size_ += record.size();
  written_ = entry.index;
}

Index Log::sync(Index index) {
  const std::lock_guard lock(sync_mutex_);
  if (durable_ >= index) return durable_;
  const Index written = written_;
  // A replay does not sync its copy of the log: the recording contains what reached the disk.
  if (rose_rr_replaying() != 0) return written;
  // After a failed sync it is unknown what reached the disk, and a second sync does not report it.
  if (::fdatasync(file_.get()) != 0) fatal("sync log: %s", std::strerror(errno));
  durable_ = written;
  return durable_;
}

void Log::truncate(Index from) {
  const std::lock_guard lock(sync_mutex_);
  size_ = entries_[from - base_ - 1].offset;
  entries_.resize(from - base_ - 1);
  if (::ftruncate(file_.get(), static_cast<off_t>(size_)) != 0) fatal("truncate log: %s", std::strerror(errno));
  written_ = last();
  durable_ = std::min(durable_, last());
}

void Log::compact(Index upto) {
  base_term_ = term_at(upto);
  entries_.erase(entries_.begin(), entries_.begin() + static_cast<std::ptrdiff_t>(upto - base_));
  base_ = upto;
  rewrite();
}

void Log::reset(Index base, Term base_term) {
  entries_.clear();
  base_ = base;
  base_term_ = base_term;
  rewrite();
}

void Log::rewrite() {
  const std::lock_guard lock(sync_mutex_);
  std::string content = encode_header(base_, base_term_);
  for (Stored& stored : entries_) {
    stored.offset = content.size();
    content += encode_record(stored.entry);
  }
  if (Status done = replace_file(path_, content); !done) {
    fatal("the log can't be kept: %s", done.message().c_str());
  }
  size_ = content.size();
  open_file();
  written_ = last();
  durable_ = last();
}

}  // namespace kv
