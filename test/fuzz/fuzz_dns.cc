// The name server of a run's containers: no packet may crash it, and an answer must belong to its query.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "deploy/dns/answer.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const rose::deploy::NameTable kNames =
      rose::deploy::name_table("127.0.0.1 localhost\n::1 localhost\n10.77.0.1 alpha db.shop\n10.77.0.2 beta db.shop\n");
  const std::string_view packet(reinterpret_cast<const char*>(data), size);
  const std::string answer = rose::deploy::dns_answer(packet, kNames);
  if (answer.empty()) return 0;
  // The answer must have the query's identification, be marked as an answer, and fit into a datagram.
  if (answer.size() < 12 || answer.size() > 1232 || answer.substr(0, 2) != packet.substr(0, 2) ||
      (answer[2] & 0x80) == 0)
    std::abort();
  return 0;
}
