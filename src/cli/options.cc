#include "cli/options.h"

#include <fmt/format.h>

#include "base/text.h"

namespace rose::cli {

bool is_flag(const Option& option) { return std::holds_alternative<bool*>(option.slot); }

bool is_list(const Option& option) {
  return std::holds_alternative<std::vector<int>*>(option.slot) || std::holds_alternative<std::vector<std::string>*>(option.slot);
}

bool is_positional(const Option& option) { return !option.names.starts_with('-'); }

std::vector<std::string> names_of(const Option& option) { return split(option.names, ','); }

std::string main_name(const Option& option) {
  for (const std::string& name : names_of(option))
    if (name.starts_with("--")) return name;
  return names_of(option).front();
}

std::string default_of(const Option& option) {
  if (!option.otherwise.empty() || option.required) return option.otherwise;
  if (const auto* number = std::get_if<int*>(&option.slot)) return std::to_string(**number);
  if (const auto* text = std::get_if<std::string*>(&option.slot)) return **text;
  return "";
}

std::vector<Option> common_options(Common& common) {
  return {
      {.names = "-v,--verbose", .slot = &common.verbose, .help = "Say more on stderr"},
      {.names = "-q,--quiet", .slot = &common.quiet, .help = "Say only warnings and errors on stderr"},
      {.names = "--json", .slot = &common.json, .help = "Print the result as one JSON object on stdout"},
  };
}

}  // namespace rose::cli
