// Reading a recording: which records it holds, and where it is cut. Takes whatever bytes a file has: nothing in them is
// believed before it was checked. It allocates nothing and knows no file: the library reads with it inside of the
// program, and rose does.
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
  std::uint64_t begin = 0;   // position of the first record that is left
  bool overwritten = false;  // there were earlier ones
  std::uint64_t end = 0;     // behind the last record that counts
  std::uint64_t records = 0;
  std::uint64_t unfinished = 0;  // calls that had not returned when the process was killed, as far as they left a hole
  bool damaged =
      false;  // at `end` stands what was finished once and is no longer readable: what follows is not looked at
  bool ended = false;  // the last record says that the process ended on purpose
};

class Reading {
 public:
  // `bytes`: the whole file, with the ring mapped or copied behind it once more, which lets records that go on at the
  // ring's beginning be whole; see span_bytes(). Null: it is a recording; else why it is none.
  const char* open(const char* bytes, std::uint64_t file_bytes);
  [[nodiscard]] const Facts& facts() const { return facts_; }
  // From `facts().begin` on; false: there is none.
  bool next(std::uint64_t& position, Record& record) const;

  // What `head`, the file's first kHeadBytes, says of it: 0 and `why` when it is no recording or of another version.
  static std::uint64_t ring_bytes(const char* head, std::uint64_t file_bytes, const char** why);

 private:
  bool at(std::uint64_t position, Record& record) const;
  [[nodiscard]] std::uint64_t find(std::uint64_t position) const;
  void look();
  const char* ring_ = nullptr;
  mutable std::uint64_t wasted_ = 0;  // bytes summed in vain
  Facts facts_;
};

// "value", "lock", ...
const char* kind_name(Kind kind);

}  // namespace rose::rr
