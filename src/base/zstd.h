// Text compressed by zstd: profiles, recordings, the runs of an explanation.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "base/result.h"

namespace rose {

[[nodiscard]] bool is_zstd(std::string_view bytes);
[[nodiscard]] Result<std::string> zstd_pack(std::string_view bytes);
// Returns ErrorKind::input for damaged data or more than `most` bytes of text. `name` is used in messages.
[[nodiscard]] Result<std::string> zstd_unpack(std::string_view bytes, std::size_t most, std::string_view name);

}  // namespace rose
