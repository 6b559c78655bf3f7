// Supplies the search with locations in the nodes' code: from their binaries, which are read on demand, and for JVMs
// from the agents' reports.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "config/config.h"
#include "diagnose/code.h"
#include "jvm/code_book.h"
#include "symbols/code.h"

namespace rose::cli {

class NodeCode final : public diagnose::CodeMap {
 public:
  explicit NodeCode(const config::Config& config) : config_(config) {}
  // Locations in Java methods are learnt from the runs that are made.
  [[nodiscard]] jvm::CodeBook& methods() { return methods_; }
  [[nodiscard]] Result<std::vector<diagnose::CodePlace>> places(std::string_view node,
                                                                std::string_view function) override;

 private:
  Result<std::vector<diagnose::CodePlace>> places_of_method(const std::string& node, const std::string& method) const;
  Result<std::vector<diagnose::CodePlace>> read(const std::string& binary, const std::string& function);

  const config::Config& config_;
  jvm::CodeBook methods_;
  std::map<std::string, Result<symbols::CodeFile>> files_;
  std::map<std::pair<std::string, std::string>, Result<std::vector<diagnose::CodePlace>>>
      known_;  // by binary and function
};

}  // namespace rose::cli
