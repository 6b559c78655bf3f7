#include "symbols/symbols.h"

#include <sys/stat.h>

#include <algorithm>
#include <cctype>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <tuple>
#include <unordered_map>
#include <unordered_set>

#include "base/text.h"
#include "symbols/debug_info.h"
#include "symbols/elf.h"
#include "symbols/go_library.h"
#include "symbols/names.h"
#include "symbols/rust_library.h"

namespace rose::symbols {
namespace {

struct Entry {
  Function function;
  Spelling spelling;
  int rank = 0;  // if several names belong to one address, the one with the smallest rank is used
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
    function.probe_offset = symbol.offset + symbol.check;
    function.size = symbol.size;
    if (const auto found = sources.find(symbol.address); found != sources.end()) function.source = found->second;
    entry.spelling = spell(function.name, function.linkage_name);
    const bool plain = function.name == function.linkage_name;
    entry.rank = (entry.spelling.outlined ? 8 : 0) + (symbol.binding * 2) + (plain ? 1 : 0);
    entries.push_back(std::move(entry));
  }
  return entries;
}

constexpr int kInlinedRank = 16;  // greater than the rank of any function that is not an inlined copy

void add_inlined(const std::vector<Function>& copies, std::vector<Entry>& entries) {
  for (const Function& copy : copies) {
    Entry entry;
    entry.function = copy;
    entry.spelling = spell(copy.name, copy.linkage_name);
    entry.rank = kInlinedRank;
    entries.push_back(std::move(entry));
  }
}

// True if `wanted` is `path`, or its end beginning at a component: "raft.cc" matches "/src/kv/raft.cc", but not
// "craft.cc".
bool is_source(std::string_view path, std::string_view wanted) {
  if (wanted.empty() || path.size() < wanted.size() || !path.ends_with(wanted)) return false;
  return path.size() == wanted.size() || wanted.starts_with('/') || path[path.size() - wanted.size() - 1] == '/';
}

// True for functions of libraries that are compiled into programs: C++ templates, and the standard packages of Rust and
// Go.
bool of_library(const Function& function) {
  const std::string_view source = function.source;
  return source.starts_with("/usr/include/") || source.starts_with("/usr/lib/") || of_rust_library(source) ||
         of_go_library(function.name, source);
}

std::string clean_path(std::string_view path) { return std::filesystem::path(path).lexically_normal().native(); }

constexpr std::size_t kMostKnownFiles = 16;  // at most this many files have their inlined functions cached

// If there are more names without wildcards than this, build an index instead of comparing every function with each
// name.
constexpr std::size_t kWorthAnIndex = 8;

// A file that is searched for functions.
struct Binary {
  std::filesystem::path path;
  std::vector<Entry> entries;
  std::vector<const Entry*> found;

  Binary(std::filesystem::path where, std::vector<Entry> what) : path(std::move(where)), entries(std::move(what)) {}

  void index() {
    by_spelling_.reserve(entries.size() * 3);
    for (std::uint32_t i = 0; i < entries.size(); ++i) {
      for_each_spelling(entries[i].function.name, entries[i].function.linkage_name, entries[i].spelling,
                        [&](std::string_view text) { by_spelling_.emplace(std::hash<std::string_view>{}(text), i); });
    }
  }

  bool match(const std::string& pattern) {
    const auto before = found.size();
    const bool glob = pattern.find_first_of("*?") != std::string::npos;
    std::vector<std::uint32_t> candidates;
    if (!by_spelling_.empty()) {
      for_each_lookup(pattern, [&](std::string_view text) {
        const auto [begin, end] = by_spelling_.equal_range(std::hash<std::string_view>{}(text));
        for (auto at = begin; at != end; ++at) candidates.push_back(at->second);
      });
      std::sort(candidates.begin(), candidates.end());
      candidates.erase(std::unique(candidates.begin(), candidates.end()), candidates.end());
      // Try an exact match first, because "main.(*shelf).checkpoint" is a name, although it looks like a glob.
      if (glob)
        std::erase_if(candidates, [&](std::uint32_t one) {
          return entries[one].function.name != pattern && entries[one].function.linkage_name != pattern;
        });
      for (const auto candidate : candidates) add(pattern, entries[candidate]);
    }
    if (by_spelling_.empty() || (glob && candidates.empty()))
      for (const Entry& entry : entries) add(pattern, entry);
    return found.size() > before;
  }

  // "server.go" means the program's own file if there is one, not the file with that name in net/http.
  bool match_source(const std::string& wanted) {
    std::vector<const Entry*> own, librarys;
    for (const Entry& entry : entries) {
      if (entry.spelling.outlined || entry.spelling.thunk || entry.function.source.empty()) continue;
      auto [known, fresh] = sources_.try_emplace(entry.function.source, false);
      if (fresh) known->second = is_source(clean_path(entry.function.source), wanted);
      if (known->second) (of_library(entry.function) ? librarys : own).push_back(&entry);
    }
    sources_.clear();
    const std::vector<const Entry*>& matching = own.empty() ? librarys : own;
    found.insert(found.end(), matching.begin(), matching.end());
    return !matching.empty();
  }

 private:
  void add(const std::string& pattern, const Entry& entry) {
    if (spelling_matches(pattern, entry.function.name, entry.function.linkage_name, entry.spelling))
      found.push_back(&entry);
  }
  std::unordered_multimap<std::size_t, std::uint32_t> by_spelling_;
  std::unordered_map<std::string_view, bool> sources_;
};

// The last component of a name: "append" for "Raft::append", "Apply" for "main.(*Server).Apply".
std::string_view last_component(std::string_view bare) {
  const std::size_t at = bare.find_last_of(":.");
  return at == std::string_view::npos ? bare : bare.substr(at + 1);
}

std::string in_quotes(std::string_view name) { return fmt::format("'{}'", name); }

// Suggests functions with the same name in another scope. If there are none, suggests the name whose spelling is most
// similar.
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
    if ((last_component(bare) == wanted || bare.ends_with("::" + wanted)) && same_name.size() < 3)
      same_name.push_back(in_quotes(bare));
    if (bare.size() <= wanted.size() + slack && bare.size() + slack >= wanted.size()) near.push_back(bare);
    // If the user wrote "Queue::push" and only "Queue<int>::push" exists, suggest that.
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

// The last component of a name ("append" of "Raft::append") occurs literally in every linkage name of the function.
bool may_be_named(std::string_view pattern, std::string_view linkage_name, std::string_view name) {
  pattern = pattern.substr(0, pattern.find('('));
  if (const auto colon = pattern.rfind(':'); colon != std::string_view::npos) pattern.remove_prefix(colon + 1);
  const bool plain = !pattern.empty() && std::all_of(pattern.begin(), pattern.end(),
                                                     [](unsigned char c) { return std::isalnum(c) != 0 || c == '_'; });
  return !plain || linkage_name.find(pattern) != std::string_view::npos || name.find(pattern) != std::string_view::npos;
}

bool name_matches(std::string_view pattern, const Function& function) {
  return spelling_matches(pattern, function.name, function.linkage_name, spell(function.name, function.linkage_name));
}

namespace {

// Searches `files`, whose `found` must be empty. If `missing` is given, patterns without a match are added to it;
// otherwise they cause an error.
Result<std::vector<Located>> search_in(std::vector<Binary>& files, std::optional<Error> unreadable,
                                       const std::vector<std::string>& patterns,
                                       const std::vector<std::string>& sources, std::vector<std::string>* missing) {
  // If none of several files has a match, report this for the first file. If a file could not be read, report that
  // instead, because it is the likelier reason.
  const auto nowhere = [&](auto&& error) -> Unexpected {
    if (unreadable) return Unexpected(std::move(*unreadable));
    return error(files.front());
  };
  for (const std::string& pattern : patterns) {
    bool any = false;
    for (Binary& file : files) any |= file.match(pattern);
    if (any) continue;
    if (missing != nullptr) {
      missing->push_back(pattern);
      continue;
    }
    return nowhere([&](const Binary& file) {
      return fail(ErrorKind::input, fmt::format("no function of {} matches '{}'", file.path.native(), pattern),
                  suggestion(pattern, file.entries, file.path));
    });
  }
  for (const std::string& source : sources) {
    const std::string wanted = clean_path(source);
    bool any = false;
    for (Binary& file : files) any |= file.match_source(wanted);
    if (any) continue;
    return nowhere([&](const Binary& file) {
      if (std::none_of(file.entries.begin(), file.entries.end(),
                       [](const Entry& e) { return !e.function.source.empty(); })) {
        return fail(ErrorKind::input,
                    fmt::format("{} has no debug information, so the functions of '{}' are not known",
                                file.path.native(), source),
                    "compile with -g, install its debug file, or name functions with `functions = [...]`");
      }
      return fail(ErrorKind::input,
                  fmt::format("no function of {} is defined in a source file '{}'", file.path.native(), source),
                  source_suggestion(source, file.entries));
    });
  }
  std::vector<Located> located;
  for (Binary& file : files) {
    // Keep each function once, under the requested name with the smallest rank. Several functions may begin at one
    // address: a function, a copy that is inlined at its very beginning, and copies that are inlined in that copy.
    std::stable_sort(file.found.begin(), file.found.end(), [](const Entry* a, const Entry* b) {
      return std::tie(a->function.address, a->rank, a->function.name) <
             std::tie(b->function.address, b->rank, b->function.name);
    });
    const Entry* last = nullptr;
    for (const Entry* entry : file.found) {
      const bool here = last != nullptr && last->function.address == entry->function.address;
      if (here && (entry->rank < kInlinedRank || last->function.name == entry->function.name)) continue;
      last = entry;
      located.push_back({file.path, entry->function});
    }
  }
  return located;
}

Result<std::vector<Located>> search(const std::vector<std::filesystem::path>& binaries,
                                    const std::vector<std::string>& patterns, const std::vector<std::string>& sources,
                                    std::vector<std::string>* missing, Copies copies) {
  std::vector<Binary> files;
  std::optional<Error> unreadable;
  for (const auto& path : binaries) {
    auto file = ElfFile::open(path);
    if (file) {
      std::vector<Entry> entries = load(*file, !sources.empty());
      if (copies == Copies::inlined) {
        ROSE_TRY(const std::vector<Function> inlined, list_inlined(path));
        add_inlined(inlined, entries);
      }
      files.emplace_back(path, std::move(entries));
    } else if (!unreadable) {
      unreadable = std::move(file.error());
    }
  }
  if (files.empty() && unreadable) return Unexpected(std::move(*unreadable));
  if (patterns.size() > kWorthAnIndex) {
    for (Binary& file : files) file.index();
  }
  return search_in(files, std::move(unreadable), patterns, sources, missing);
}

std::vector<Function> without_place(std::vector<Located> located) {
  std::vector<Function> functions;
  functions.reserve(located.size());
  for (Located& one : located) functions.push_back(std::move(one.function));
  return functions;
}

// Keeps one function for each address: the one with the smallest rank.
std::vector<Function> by_address(std::vector<Entry> entries) {
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

}  // namespace

Result<std::vector<Function>> list_functions(const std::filesystem::path& binary, bool with_sources) {
  ROSE_TRY(const ElfFile file, ElfFile::open(binary));
  return by_address(load(file, with_sources));
}

Result<std::vector<Function>> list_inlined(const std::filesystem::path& binary) {
  // Cache the result, because every run of an explanation asks for the same files, and reading all of DWARF takes long.
  static std::mutex mutex;
  static std::map<std::string, std::vector<Function>> known;
  struct stat about{};
  if (::stat(binary.c_str(), &about) != 0)
    return fail_errno(ErrorKind::input, fmt::format("cannot read '{}'", binary.native()), errno);
  const std::string file = fmt::format("{}:{}:{}:{}.{}", about.st_dev, about.st_ino, about.st_size,
                                       about.st_mtim.tv_sec, about.st_mtim.tv_nsec);
  const std::lock_guard lock(mutex);
  if (const auto found = known.find(file); found != known.end()) return found->second;
  ROSE_TRY(const ElfFile elf, ElfFile::open(binary));
  std::vector<Function> functions;
  if (const std::unique_ptr<DebugInfo> debug = DebugInfo::open(elf)) {
    for (DebugInfo::Inlined& copy : debug->all_inlined(kMostInlinedCode)) {
      const std::optional<std::uint64_t> offset = elf.file_offset(copy.entry);
      if (!offset) continue;
      Function function;
      function.name = function.linkage_name = std::move(copy.name);
      function.address = copy.entry;
      function.offset = function.probe_offset = *offset;
      function.source = std::move(copy.source);
      functions.push_back(std::move(function));
    }
  }
  if (known.size() >= kMostKnownFiles) known.clear();
  return known.emplace(file, std::move(functions)).first->second;
}

Result<std::vector<Function>> find_functions(const std::filesystem::path& binary,
                                             const std::vector<std::string>& patterns,
                                             const std::vector<std::string>& sources) {
  return find_functions(std::vector{binary}, patterns, sources).map(without_place);
}

struct FunctionTable::Held {
  std::vector<Binary> file;  // always has exactly one element
};

FunctionTable::FunctionTable(std::unique_ptr<Held> held) : held_(std::move(held)) {}
FunctionTable::FunctionTable(FunctionTable&&) noexcept = default;
FunctionTable& FunctionTable::operator=(FunctionTable&&) noexcept = default;
FunctionTable::~FunctionTable() = default;

FunctionTable FunctionTable::of(const ElfFile& file, const std::filesystem::path& binary) {
  auto held = std::make_unique<Held>();
  held->file.emplace_back(binary, load(file, false));
  held->file.front().index();
  return FunctionTable(std::move(held));
}

Result<std::vector<Function>> FunctionTable::find(const std::string& pattern) {
  held_->file.front().found.clear();
  return search_in(held_->file, std::nullopt, {pattern}, {}, nullptr).map(without_place);
}

std::vector<Function> FunctionTable::all() const { return by_address(held_->file.front().entries); }

Result<std::vector<Located>> find_functions(const std::vector<std::filesystem::path>& binaries,
                                            const std::vector<std::string>& patterns,
                                            const std::vector<std::string>& sources, Copies copies) {
  return search(binaries, patterns, sources, nullptr, copies);
}

Result<Known> find_known_functions(const std::vector<std::filesystem::path>& binaries,
                                   const std::vector<std::string>& names, Copies copies) {
  Known known;
  ROSE_TRY(known.functions, search(binaries, names, {}, &known.missing, copies));
  return known;
}

}  // namespace rose::symbols
