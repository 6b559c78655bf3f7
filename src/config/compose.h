// A Compose file as nodes: what it says of its services is taken as Compose means it, and what rose cannot do is refused, with file and
// line. `rose init` reads such files too, but to draft a rose.toml from; it is content with what it understands (draft/compose.h).
#pragma once

#include <filesystem>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "config/compose_words.h"
#include "config/config.h"

namespace rose::config {

// The services that are started without a profile, in the file's order, as nodes without addresses. `lookup` knows the variables of
// "${TAG:-7}". What is left out for a reason (published ports) goes to `words`, one sentence each. ErrorKind::input.
[[nodiscard]] Result<std::vector<Node>> read_compose(std::string_view text, const std::filesystem::path& file, const compose::Lookup& lookup,
                                                     std::vector<std::string>& words);
// The file's text, with this process's variables and those of `.env` beside it.
[[nodiscard]] Result<std::vector<Node>> read_compose_file(const std::filesystem::path& file, std::vector<std::string>& words);

}  // namespace rose::config
