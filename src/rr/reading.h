// Reads a recording: determines which records it contains, and where it ends. The bytes may be hostile, so everything
// is checked before it is used. Allocates no memory and opens no files, because the library also uses it in the
// replayed program.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "rr/layout.h"

namespace rose::rr {

struct Record {
  std::uint64_t position = 0;
  std::int64_t time_ns = 0;
  std::uint32_t thread = 0;
  std::uint16_t flags = 0;
  Kind kind = Kind::value;
  std::string_view key, data;
};

struct Facts {
  std::uint64_t salt = 0, ring_bytes = 0;
  std::uint64_t reserved = 0;
  std::uint64_t lost = 0;
  std::int64_t began_ns = 0;
  std::uint32_t pid = 0;
  std::string_view node, host, program;
  std::uint64_t begin = 0;   // position of the first remaining record
  bool overwritten = false;  // earlier records were overwritten
  std::uint64_t end = 0;     // position after the last valid record
  std::uint64_t records = 0;
  // number of gaps, each left by a call that had not returned when the process was killed
  std::uint64_t unfinished = 0;
  // the record at `end` had been completed, but cannot be read; it and everything after it are ignored
  bool damaged = false;
  bool ended = false;  // the last record says that the process ended on purpose
};

class Reading {
 public:
  // `bytes`: the whole file. The ring must be mapped or copied a second time after it, so that a record which continues
  // at the beginning of the ring is contiguous; see span_bytes(). Returns null, or the reason why the bytes are no
  // recording.
  const char* open(const char* bytes, std::uint64_t file_bytes);
  [[nodiscard]] const Facts& facts() const { return facts_; }
  // Moves to the next record. `position` must start at `facts().begin`. Returns false if there are no more records.
  bool next(std::uint64_t& position, Record& record) const;

  // The size of the ring according to `head`, which contains the first kHeadBytes of the file. If the file is no
  // recording or has another version, returns 0 and sets `why`.
  static std::uint64_t ring_bytes(const char* head, std::uint64_t file_bytes, const char** why);

 private:
  bool at(std::uint64_t position, Record& record) const;
  [[nodiscard]] std::uint64_t find(std::uint64_t position) const;
  void look();
  const char* ring_ = nullptr;
  mutable std::uint64_t wasted_ = 0;  // number of bytes whose checksums did not match
  Facts facts_;
};

// The name of a kind, such as "value" or "lock".
const char* kind_name(Kind kind);

}  // namespace rose::rr
