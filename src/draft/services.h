// Drafts for Compose files whose services rose runs itself ([deployment] compose). The file is not changed; the draft
// adds what it lacks. Pure.
#pragma once

#include <string>
#include <vector>

#include "config/compose.h"
#include "draft/container.h"

namespace rose::draft {

// `taken`: the services as nodes; `files`: the paths of the Compose files, as written in rose.toml.
[[nodiscard]] Drafted draft_services(const config::ComposeNodes& taken, const std::vector<std::string>& files,
                                     const Host& host = {});

}  // namespace rose::draft
