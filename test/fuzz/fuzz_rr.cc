// Recordings of librose-rr: no bytes may make the reader read outside the recording, run forever, or return records
// whose positions are wrong.
//
// The first byte of the input is an option. The rest is copied into the smallest possible ring, which has 64 KiB and
// otherwise contains zeros. If the first byte is 'S', the heads of records get correct checksums, because otherwise a
// fuzzer never reaches the code after the check. Otherwise, nothing is changed.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>

#include "rr/reading.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  namespace rr = rose::rr;
  const bool sums = size != 0 && data[0] == 'S';
  if (size != 0) {
    ++data;
    --size;
  }
  const std::uint64_t file = rr::kHeadBytes + rr::kLeastRing;
  std::string bytes(file + rr::most_record(rr::kLeastRing), '\0');
  std::memcpy(bytes.data(), data, std::min<std::size_t>(size, file));
  if (sums) {
    std::uint64_t salt = 0;
    std::memcpy(&salt, bytes.data() + offsetof(rr::FileHead, salt), sizeof salt);
    std::string& b = bytes;
    for (std::size_t at = rr::kHeadBytes; at + sizeof(rr::RecordHead) <= file;) {
      auto* head = reinterpret_cast<rr::RecordHead*>(b.data() + at);
      const std::uint32_t length = head->bytes;
      if (length < sizeof *head || length % 8 != 0 || length > file - at) break;
      head->sum = rr::sum_of(head, salt);
      at += length;
    }
  }
  std::memcpy(bytes.data() + file, bytes.data() + rr::kHeadBytes, rr::most_record(rr::kLeastRing));
  rr::Reading reading;
  if (reading.open(bytes.data(), file) != nullptr) return 0;
  // A file that is too short must be refused, whatever its header says.
  if (rr::Reading().open(bytes.data(), file - 1) == nullptr) std::abort();
  const rr::Facts& facts = reading.facts();
  if (facts.begin > facts.end || facts.end > facts.reserved) std::abort();
  rr::Record record;
  std::uint64_t position = facts.begin, records = 0, before = facts.begin;
  while (reading.next(position, record)) {
    ++records;
    if (record.position < before || position > facts.end || record.key.empty()) std::abort();
    for (const std::string_view part : {record.key, record.data})
      if (!part.empty() &&
          (part.data() < bytes.data() + rr::kHeadBytes || part.data() + part.size() > bytes.data() + bytes.size()))
        std::abort();
    (void)rr::kind_name(record.kind);
    before = position;
  }
  if (records != facts.records) std::abort();
  return 0;
}
