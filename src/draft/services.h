// Compose files whose services rose itself makes nodes of ([deployment] compose): the file stays as it is, and the
// draft adds what it does not say. Pure.
#pragma once

#include <string>

#include "config/compose.h"
#include "draft/compose.h"

namespace rose::draft {

// `taken`: what the services are as nodes; `file`: what is said of them; `path`: of the file as it will stand in
// rose.toml.
[[nodiscard]] Drafted draft_services(const ComposeFile& file, const config::ComposeNodes& taken,
                                     const std::string& path);

}  // namespace rose::draft
