// Go's function table from untrusted programs: no bytes may make the reader read outside the table, or return more than
// the table contains.
#include <cstdint>
#include <cstdlib>
#include <span>

#include "symbols/go_prologue.h"
#include "symbols/gopclntab.h"

using namespace rose::symbols;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::span<const std::uint8_t> bytes(data, size);
  for (const Machine* machine : {&machine::kX86, &machine::kArm64})
    if (stack_check_bytes(bytes, *machine) > size) std::abort();
  for (const std::size_t at : go_table_candidates(bytes)) {
    if (at >= size || !go_header(bytes.subspan(at))) std::abort();
  }
  const auto header = go_header(bytes);
  for (const bool with_sources : {false, true}) {
    const auto functions = go_functions(bytes, 0x401000, with_sources);
    if (!header && !functions.empty()) std::abort();
    if (header && functions.size() > header->functions) std::abort();
    std::size_t texts = 0;
    for (const GoFunction& function : functions) {
      if (function.name.empty() || function.size == 0) std::abort();
      if (!with_sources && !function.source.empty()) std::abort();
      texts += function.name.size() + function.source.size();
    }
    // All entries may refer to the same text. Nevertheless, the total length must be limited.
    if (texts > size * 8 + 3 * 65536) std::abort();
  }
  return 0;
}
