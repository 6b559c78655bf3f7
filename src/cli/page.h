// What every HTML report says of where it comes from.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "config/config.h"
#include "report/page.h"

namespace rose::cli {

// With the machine, the kernel, this rose and the time; commands add what they read.
[[nodiscard]] report::PageContext page_context(std::vector<std::string> nodes);
void add_deployment(report::PageContext& context, const config::Config& config, const std::string& file);

}  // namespace rose::cli
