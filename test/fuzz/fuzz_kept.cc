// Runs kept for `rose explain`: no content may crash the reader, and what it accepts can be explained.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "explain/kept.h"

using namespace rose;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  // The input is read once as a file, and once as the content of a compressed file, because random changes to a
  // compressed file would hardly ever leave it valid.
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
