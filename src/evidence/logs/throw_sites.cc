#include "evidence/logs/throw_sites.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/jdk.h"
#include "jvm/names.h"
#include "jvm/node.h"

namespace rose::evidence {
namespace {

using logs::Frame;
using logs::Thrown;

constexpr std::size_t kMostSites = 4;

// True for a frame of the JDK or of a language runtime. If such code throws, the method of the program that called it
// is the site.
bool of_platform(const Frame& frame) {
  static constexpr std::array kPackages =
      std::to_array<std::string_view>({"scala.", "kotlin.", "groovy.", "org.codehaus.groovy.", "clojure."});
  return of_jdk(frame.class_name) || std::any_of(kPackages.begin(), kPackages.end(), [&](std::string_view package) {
           return frame.class_name.starts_with(package);
         });
}

std::string name_of(const Frame& frame) { return frame.class_name + "." + frame.method; }

class Sites {
 public:
  explicit Sites(const config::Node& node) : node_(node), methods_(jvm::methods_of(node)) {
    for (const std::string& function : methods_.functions) patterns_.emplace_back(function);
  }

  std::vector<ThrowSite> find(const logs::StackTrace& trace, bool elsewhere) {
    // Begin with the root cause. An exception that was caught and wrapped had an effect only inside the catching
    // method; the callers of that method saw only its wrapper.
    for (auto thrown = trace.rbegin(); thrown != trace.rend() && sites_.size() < kMostSites; ++thrown)
      if (thrown->elsewhere == elsewhere) of(*thrown);
    if (sites_.size() > kMostSites) sites_.resize(kMostSites);
    return std::move(sites_);
  }

 private:
  [[nodiscard]] bool possible(const Frame& frame) const {
    return !frame.generated && !of_platform(frame) && jvm::is_method(node_, name_of(frame));
  }

  // True if the configuration names the method or its source file.
  [[nodiscard]] bool named(const Frame& frame) const {
    if (std::find(methods_.sources.begin(), methods_.sources.end(), frame.file) != methods_.sources.end()) return true;
    const jvm::Method method{frame.class_name, frame.method, {}, frame.file, 0};
    return std::any_of(patterns_.begin(), patterns_.end(),
                       [&](const jvm::NamePattern& pattern) { return pattern.matches(method); });
  }

  // Adds the sites of one exception: at the innermost method that the configuration names, else at the innermost method
  // of the program.
  void of(const Thrown& thrown) {
    if (thrown.class_name.find('.') == std::string::npos) return;
    const std::size_t inside = thrown.frames.size() - thrown.common;
    std::size_t own = inside;
    for (std::size_t i = 0; i < inside && own == inside; ++i)
      if (possible(thrown.frames[i]) && named(thrown.frames[i])) own = i;
    for (std::size_t i = 0; i < inside && own == inside; ++i)
      if (possible(thrown.frames[i])) own = i;
    if (own == inside) return;
    const Frame& frame = thrown.frames[own];
    if (own > 0) {
      // A callee threw the exception, so throw it where the callee is called, or at the method's entry.
      if (frame.line != 0) add(thrown, frame, frame.line);
      add(thrown, frame, std::nullopt);
      return;
    }
    // The method itself threw the exception, on a line that is executed only in case of an error, so throw it at the
    // method's entry, or where its caller calls it.
    add(thrown, frame, std::nullopt);
    if (inside > 1 && thrown.frames[1].line != 0 && possible(thrown.frames[1]))
      add(thrown, thrown.frames[1], thrown.frames[1].line);
  }

  void add(const Thrown& thrown, const Frame& frame, std::optional<std::uint64_t> line) {
    ThrowSite site{thrown.class_name, thrown.message, name_of(frame), line, {}};
    const bool known = std::any_of(sites_.begin(), sites_.end(), [&](const ThrowSite& known_site) {
      return known_site.throws == site.throws && known_site.function == site.function && known_site.line == site.line;
    });
    if (known) return;
    site.frame = fmt::format("{}({}{})", site.function, frame.file.empty() ? "unknown source" : frame.file,
                             frame.line != 0 ? fmt::format(":{}", frame.line) : "");
    sites_.push_back(std::move(site));
  }

  const config::Node& node_;
  const jvm::Names methods_;
  std::vector<jvm::NamePattern> patterns_;
  std::vector<ThrowSite> sites_;
};

}  // namespace

std::vector<ThrowSite> throw_sites(const logs::StackTrace& trace, const config::Node& node, bool elsewhere) {
  return Sites(node).find(trace, elsewhere);
}

}  // namespace rose::evidence
