// Drafts for Compose files whose services rose runs itself ([deployment] compose). The file is not changed; the draft
// adds what it lacks. Pure.
#pragma once

#include <string>

#include "config/compose.h"
#include "draft/compose.h"

namespace rose::draft {

// `taken`: the services as nodes; `file`: the file's own content; `path`: the path of the file as written in rose.toml.
[[nodiscard]] Drafted draft_services(const ComposeFile& file, const config::ComposeNodes& taken,
                                     const std::string& path);

}  // namespace rose::draft
