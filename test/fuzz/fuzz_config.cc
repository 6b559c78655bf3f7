// rose.toml: no input may crash the reader, and every refusal must give a position.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "config/config.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto config = rose::config::parse_config(text, "rose.toml", "/srv/kv");
  if (!config && config.error().message.rfind("rose.toml:", 0) != 0) std::abort();
  if (config && config->nodes.empty()) std::abort();
  return 0;
}
