#include "symbols/symbols.h"

#include <algorithm>
#include <set>
#include <tuple>
#include <unordered_set>

#include "base/text.h"
#include "symbols/elf.h"
#include "symbols/names.h"

namespace rose::symbols {
namespace {

struct Entry {
  Function function;
  Spelling spelling;
  int rank = 0;  // among aliases of one address, the smallest is shown
};

std::vector<Entry> load(const ElfFile& file, bool with_sources) {
  const auto sources = with_sources ? file.sources() : std::map<std::uint64_t, std::string>{};
  std::vector<Entry> entries;
  for (RawSymbol& symbol : file.functions()) {
    Entry entry;
    Function& function = entry.function;
    function.name = demangle(symbol.linkage_name);
    function.linkage_name = std::move(symbol.linkage_name);
    function.address = symbol.address;
    function.offset = symbol.offset;
    function.size = symbol.size;
    if (const auto found = sources.find(symbol.address); found != sources.end()) function.source = found->second;
    entry.spelling = spell(function.name, function.linkage_name);
    const bool plain = function.name == function.linkage_name;
    entry.rank = (entry.spelling.outlined ? 8 : 0) + (symbol.binding * 2) + (plain ? 1 : 0);
    entries.push_back(std::move(entry));
  }
  return entries;
}

// Is `wanted` the end of `path`, at a component boundary? "raft.cc" of "/src/kv/raft.cc", not "craft.cc".
bool is_source(std::string_view path, std::string_view wanted) {
  if (wanted.empty() || path.size() < wanted.size() || !path.ends_with(wanted)) return false;
  return path.size() == wanted.size() || wanted.starts_with('/') || path[path.size() - wanted.size() - 1] == '/';
}

std::string clean_path(std::string_view path) {
  return std::filesystem::path(path).lexically_normal().native();
}

// The last component of "Raft::append" or "main.(*Server).Apply".
std::string_view last_component(std::string_view bare) {
  const std::size_t at = bare.find_last_of(":.");
  return at == std::string_view::npos ? bare : bare.substr(at + 1);
}

std::string in_quotes(std::string_view name) { return fmt::format("'{}'", name); }

// What the user may have meant: functions of that name in another scope first, else the nearest spelling.
std::string suggestion(std::string_view pattern, const std::vector<Entry>& entries,
                       const std::filesystem::path& binary) {
  if (entries.empty()) {
    return "the file names no functions (stripped?): build it without -s, or install its debug file";
  }
  if (pattern.find_first_of("*?") != std::string_view::npos) {
    return fmt::format("`nm -C {}` shows its functions; '*' stands for any characters", binary.native());
  }
  const std::string wanted = normalise(pattern);
  std::vector<std::string> same_name;
  std::unordered_set<std::string> seen;
  std::vector<std::string> near;
  const std::size_t slack = std::max<std::size_t>(2, wanted.size() / 3);
  for (const Entry& entry : entries) {
    const std::string& bare = entry.spelling.bare;
    if (entry.spelling.outlined || entry.spelling.thunk || !seen.insert(bare).second) continue;
    if (last_component(bare) == wanted && same_name.size() < 3) same_name.push_back(in_quotes(bare));
    if (bare.size() <= wanted.size() + slack && bare.size() + slack >= wanted.size()) near.push_back(bare);
    // "Queue::push" where only "Queue<int>::push" exists.
    if (const std::size_t open = bare.find('<'); open != std::string::npos && same_name.size() < 3) {
      std::string plain;
      int depth = 0;
      for (const char c : bare) {
        if (c == '<') ++depth;
        if (depth == 0) plain += c;
        if (c == '>') --depth;
      }
      if (plain == wanted) same_name.push_back(in_quotes(bare));
    }
  }
  if (!same_name.empty()) return fmt::format("did you mean {}?", fmt::join(same_name, " or "));
  if (std::string hint = did_you_mean(wanted, near); !hint.empty()) return hint;
  return fmt::format("`nm -C {}` shows its functions", binary.native());
}

std::string source_suggestion(std::string_view wanted, const std::vector<Entry>& entries) {
  std::vector<std::string> names;
  std::set<std::string> seen;
  for (const Entry& entry : entries) {
    const std::string& source = entry.function.source;
    if (source.empty()) continue;
    std::string name = std::filesystem::path(source).filename().native();
    if (seen.insert(name).second) names.push_back(std::move(name));
  }
  return did_you_mean(std::filesystem::path(wanted).filename().native(), names);
}

}  // namespace

bool name_matches(std::string_view pattern, const Function& function) {
  return spelling_matches(pattern, function.name, function.linkage_name,
                          spell(function.name, function.linkage_name));
}

Result<std::vector<Function>> list_functions(const std::filesystem::path& binary, bool with_sources) {
  ROSE_TRY(const ElfFile file, ElfFile::open(binary));
  std::vector<Entry> entries = load(file, with_sources);
  std::stable_sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) {
    return std::tie(a.function.address, a.rank) < std::tie(b.function.address, b.rank);
  });
  std::vector<Function> functions;
  for (Entry& entry : entries) {
    if (!functions.empty() && functions.back().address == entry.function.address) continue;
    functions.push_back(std::move(entry.function));
  }
  return functions;
}

Result<std::vector<Function>> find_functions(const std::filesystem::path& binary,
                                             const std::vector<std::string>& patterns,
                                             const std::vector<std::string>& sources) {
  ROSE_TRY(const ElfFile file, ElfFile::open(binary));
  const std::vector<Entry> entries = load(file, !sources.empty());
  std::vector<const Entry*> found;
  for (const std::string& pattern : patterns) {
    bool any = false;
    for (const Entry& entry : entries) {
      if (!spelling_matches(pattern, entry.function.name, entry.function.linkage_name, entry.spelling)) continue;
      found.push_back(&entry);
      any = true;
    }
    if (!any) {
      return fail(ErrorKind::input, fmt::format("no function of {} matches '{}'", binary.native(), pattern),
                  suggestion(pattern, entries, binary));
    }
  }
  if (!sources.empty() &&
      std::none_of(entries.begin(), entries.end(), [](const Entry& e) { return !e.function.source.empty(); })) {
    return fail(ErrorKind::input,
                fmt::format("{} holds no debug information, so the functions of '{}' are not known", binary.native(),
                            sources.front()),
                "compile with -g, install its debug file, or name functions with `functions = [...]`");
  }
  for (const std::string& source : sources) {
    const std::string wanted = clean_path(source);
    bool any = false;
    for (const Entry& entry : entries) {
      if (entry.spelling.outlined || entry.spelling.thunk || entry.function.source.empty()) continue;
      if (!is_source(clean_path(entry.function.source), wanted)) continue;
      found.push_back(&entry);
      any = true;
    }
    if (!any) {
      return fail(ErrorKind::input,
                  fmt::format("no function of {} is defined in a source file '{}'", binary.native(), source),
                  source_suggestion(source, entries));
    }
  }
  // Each address once, under the best of the names that were asked for.
  std::stable_sort(found.begin(), found.end(), [](const Entry* a, const Entry* b) {
    return std::tie(a->function.address, a->rank) < std::tie(b->function.address, b->rank);
  });
  std::vector<Function> functions;
  for (const Entry* entry : found) {
    if (!functions.empty() && functions.back().address == entry->function.address) continue;
    functions.push_back(entry->function);
  }
  return functions;
}

}  // namespace rose::symbols
