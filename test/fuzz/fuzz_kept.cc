// Runs that `rose explain` keeps: no content may crash the reader, and it must be possible to explain what it accepts.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "explain/kept.h"

using namespace rose;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  // Read the input once as a file, and once as the content of a compressed file, because a compressed file would hardly
  // ever be valid after random changes.
  (void)explain::unpack(bytes, "x");
  (void)explain::unpack_plain(bytes, "x", 1);
  auto kept = explain::unpack_plain(bytes, "x");
  if (!kept) {
    if (kept.error().kind != ErrorKind::input || kept.error().message.rfind("x", 0) != 0) std::abort();
    return 0;
  }
  const explain::Scrub nothing;
  const auto packed = explain::pack(*kept, nothing);
  if (packed && !explain::unpack(*packed, "again")) std::abort();
  (void)explain::explain_kept(*kept);
  return 0;
}
