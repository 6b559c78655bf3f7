// Reads [[meaning]] tables: what messages of a system mean. They are in rose.toml and in files of a folder beside it.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "base/file.h"
#include "config/config_reader.h"
#include "kernel/syscalls.h"
#include "knowledge/meanings.h"

namespace rose::config {
namespace {

constexpr std::size_t kMostKnowledgeFiles = 1000;

}  // namespace

// The tables have the same form as the entries in src/knowledge. Keys that an entry does not need are refused, because
// they would be ignored.
void read_meanings(toml::Table& root, std::vector<knowledge::Entry>& into) {
  const std::vector<std::string> names = knowledge::says_names();
  for (toml::Table& table : root.tables("meaning", "a list of tables ([[meaning]])")) {
    knowledge::Entry entry;
    std::size_t says = 0;
    table.require("says", fmt::format("what such a message means: one of {}", fmt::join(names, ", ")));
    table.require("words", "the words of the message, such as \"disk|volume .. stalled\"");
    const bool known = table.one_of("says", names, says);
    entry.says = static_cast<knowledge::Says>(says);
    table.string("words", entry.words);
    table.string("example", entry.example);
    table.string("source", entry.source);
    table.boolean("vague", entry.vague);
    const auto belongs = [&](std::string_view key, knowledge::Says to) {
      const bool there = table.get(key) != nullptr;
      if (!known || (entry.says == to) == there) return entry.says == to;
      if (entry.says == to) table.require(key);
      else
        table.wrong(key, fmt::format("'{}' belongs to says = \"{}\", but this entry has says = \"{}\"", key,
                                     knowledge::name_of(to), knowledge::name_of(entry.says)));
      return false;
    };
    std::string error;
    if (belongs("error", knowledge::Says::error) && table.string("error", error)) {
      entry.number = kernel::errno_number(error).value_or(0);
      if (entry.number <= 0)
        table.wrong("error", fmt::format("{} is not the name of an error", toml::quoted(error)), "such as \"EIO\"");
    }
    for (const auto& [key, to] :
         {std::pair{"operation", knowledge::Says::operation}, std::pair{"clock", knowledge::Says::clock}}) {
      if (!belongs(key, to)) continue;
      std::vector<std::string> choices;  // the spellings that the built-in entries use
      for (const knowledge::Entry& known_entry : knowledge::Meanings::built_in().entries())
        if (known_entry.says == to && std::find(choices.begin(), choices.end(), known_entry.name) == choices.end())
          choices.push_back(known_entry.name);
      std::sort(choices.begin(), choices.end());
      if (std::size_t chosen = 0; table.one_of(key, choices, chosen)) entry.name = choices[chosen];
    }
    if (!entry.words.empty())
      if (const std::string problem = knowledge::Meanings::problem(entry); !problem.empty()) {
        const std::string key = problem.substr(0, problem.find(':'));
        table.wrong(key, problem.substr(key.size() + 2), "configs/rose-toml.md has the form of patterns");
      }
    table.finish();
    into.push_back(std::move(entry));
  }
}

Result<void> read_knowledge(const std::filesystem::path& folder, std::vector<knowledge::Entry>& into) {
  std::error_code error;
  std::vector<std::filesystem::path> files;
  for (std::filesystem::directory_iterator it(folder, error), end; !error && it != end; it.increment(error))
    if (it->path().extension() == ".toml" && files.size() < kMostKnowledgeFiles) files.push_back(it->path());
  std::sort(files.begin(), files.end());
  for (const std::filesystem::path& file : files) {
    ROSE_TRY(const std::string text, read_file(file, toml::kMostBytes));
    ROSE_TRY(const toml::Value root, toml::parse(text, file.string()));
    toml::Problems problems(file.string());
    toml::Table table(root, "", problems);
    read_meanings(table, into);
    table.finish();
    ROSE_CHECK(problems.result());
  }
  return {};
}

}  // namespace rose::config
