// Collects what every HTML report states about its origin: where, when and with what inputs it was made.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "config/config.h"
#include "report/page.h"

namespace rose::cli {

// The machine, the kernel, the version of rose and the time; commands add their inputs.
[[nodiscard]] report::PageContext page_context(std::vector<std::string> nodes);
void add_deployment(report::PageContext& context, const config::Config& config, const std::string& file);

}  // namespace rose::cli
