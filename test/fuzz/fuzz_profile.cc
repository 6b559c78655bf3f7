// profile.json: no text may crash the reader, and what it accepts must survive being written and read.
#include <cstdint>
#include <cstdlib>
#include <string>

#include "profile/profile.h"

using namespace rose;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto profile = profile::parse_profile(text, "profile.json");
  const auto functions = profile::parse_profile(text, "profile.json", profile::Part::functions);
  if (profile && (!functions || functions->functions.size() != profile->functions.size())) std::abort();
  if (!profile) {
    if (profile.error().kind != ErrorKind::input || profile.error().message.rfind("profile.json", 0) != 0) std::abort();
    return 0;
  }
  const std::string written = profile::to_json(*profile);
  const auto again = profile::parse_profile(written, "written.json");
  if (!again || profile::to_json(*again) != written) std::abort();
  return 0;
}
