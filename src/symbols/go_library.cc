#include "symbols/go_library.h"

#include <algorithm>
#include <array>
#include <set>

namespace rose::symbols {
namespace {

std::string_view first_part(std::string_view path) { return path.substr(0, path.find('/')); }

// The package of a function: "crypto/sha256" for "crypto/sha256.(*digest).Write". Type arguments in brackets are left
// out, because they may contain other paths.
std::string_view package_of(std::string_view function) {
  const std::string_view head = function.substr(0, function.find_first_of("[("));
  const std::size_t slash = head.rfind('/');
  const std::size_t dot = head.find('.', slash == std::string_view::npos ? 0 : slash);
  return dot == std::string_view::npos ? std::string_view{} : head.substr(0, dot);
}

// The first path components of the Go distribution's packages.
const std::set<std::string_view>& packages() {
  static const std::set<std::string_view> known = {
      "archive", "bufio",    "bytes",   "cmp",    "compress", "container", "context", "crypto",  "database", "debug",
      "embed",   "encoding", "errors",  "expvar", "flag",     "fmt",       "go",      "hash",    "html",     "image",
      "index",   "internal", "io",      "iter",   "log",      "maps",      "math",    "mime",    "net",      "os",
      "path",    "plugin",   "reflect", "regexp", "runtime",  "slices",    "sort",    "strconv", "strings",  "structs",
      "sync",    "syscall",  "testing", "text",   "time",     "unicode",   "unique",  "unsafe",  "vendor",   "weak"};
  return known;
}

bool is_known(std::string_view package) { return packages().contains(first_part(package)); }

// True for function literals: "sort.(*list).Len.func1".
bool is_literal(std::string_view function) {
  const std::size_t dot = function.rfind('.');
  return dot != std::string_view::npos && function.substr(dot + 1).starts_with("func");
}

// True for a part of a C function that the compiler split off: "log.part.0" for "log".
bool is_clone(std::string_view function) {
  const std::size_t dot = function.find('.');
  if (dot == std::string_view::npos) return false;
  static constexpr std::array<std::string_view, 7> kForms = {"cold",       "constprop", "isra", "llvm",
                                                             "localalias", "lto_priv",  "part"};
  const std::string_view rest = function.substr(dot + 1);
  return std::find(kForms.begin(), kForms.end(), rest.substr(0, rest.find('.'))) != kForms.end();
}

// True for the functions of runtime/cgo through which threads of C enter and leave Go. They are on stacks of every
// program that is linked with C. They have no source file, because the distribution builds them without debug
// information.
bool of_cgo(std::string_view function) {
  return function.starts_with("crosscall") || function.starts_with("x_cgo_") || function.starts_with("_cgo_");
}

// True for folders such as "/usr/local/go", "/usr/lib/go-1.19" and
// ".../golang.org/toolchain@v0.0.1-go1.23.1.linux-amd64".
bool is_goroot(std::string_view folder) {
  const std::string_view name = folder.substr(folder.rfind('/') + 1);
  return name == "go" || name.starts_with("go-1.") || name.starts_with("go1.") || name.starts_with("toolchain@");
}

}  // namespace

bool of_go_library(std::string_view function, std::string_view file) {
  const std::string_view package = package_of(function);
  if (file.empty() && of_cgo(function)) return true;
  if (file.empty()) return !package.empty() && is_known(package) && !is_clone(function);
  if (!file.ends_with(".go") && !file.ends_with(".s")) return false;
  // For callers, only the file's name without a folder is known: "proc.go" for "runtime.main".
  if (file.find('/') == std::string_view::npos) return !package.empty() && is_known(package);
  constexpr std::string_view kSources = "/src/";
  const std::size_t root = file.rfind(kSources);
  const std::string_view folder = root == std::string_view::npos ? file : file.substr(root + kSources.size());
  if (!is_known(folder)) return false;
  // If the function around a literal was inlined into another function, the literal is named after this other function:
  // "etcd/raft.(*DefaultLogger).Info.(*Logger).Output.func1". Therefore the literal's source file decides. If the path
  // has no root, the folder of the file decides, because no module may have the path of a standard package.
  if (root == std::string_view::npos || (is_literal(function) && is_goroot(file.substr(0, root)))) return true;
  // The package in the name decides, not the folder, because some functions of one package are implemented in the
  // folder of another package. A name without a package is in Go's library only if it is a local name in an assembly
  // file.
  return package.empty() ? file.ends_with(".s") : is_known(package);
}

std::string go_module(std::string_view file) {
  if (!file.ends_with(".go") && !file.ends_with(".s")) return {};
  const std::size_t version = file.find("@v");
  if (version != std::string_view::npos) {
    file = file.substr(0, version);
    constexpr std::string_view kCache = "/pkg/mod/";
    if (const std::size_t cache = file.find(kCache); cache != std::string_view::npos)
      file.remove_prefix(cache + kCache.size());
  } else if (first_part(file).find('.') == std::string_view::npos || first_part(file) == file) {
    return {};
  }
  const std::string_view host = first_part(file);
  const bool shared = host == "github.com" || host == "gitlab.com" || host == "bitbucket.org";
  std::size_t end = 0;
  for (int parts = shared ? 3 : 2; parts > 0 && end != std::string_view::npos; --parts)
    end = file.find('/', end == 0 ? 0 : end + 1);
  return std::string(file.substr(0, end));
}

}  // namespace rose::symbols
