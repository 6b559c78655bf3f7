// Programs from untrusted files. No bytes may make the reader of functions' code read outside the file.
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <set>

#include <fmt/format.h>

#include "base/fd.h"
#include "symbols/code.h"
#include "symbols/symbols.h"
#include "symbols/values.h"

using namespace rose::symbols;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), std::min<std::size_t>(size, 2 * kMostQueryBytes));
  if (const auto query = parse_query(text)) {
    const bool names_variable = query->kind == Query::Kind::argument || query->kind == Query::Kind::variable;
    if (query->name.empty() == names_variable) std::abort();
  }
  const rose::Fd file(::memfd_create("rose-fuzz", MFD_CLOEXEC));
  if (!file) std::abort();
  for (std::size_t done = 0; done < size;) {
    const ssize_t wrote = ::write(file.get(), data + done, size - done);
    if (wrote <= 0) std::abort();
    done += static_cast<std::size_t>(wrote);
  }
  const std::string path = fmt::format("/proc/self/fd/{}", file.get());
  const auto code = CodeFile::open(path);
  const auto functions = list_functions(path);
  if (code.has_value() != functions.has_value()) std::abort();
  const auto inlined = list_inlined(path);
  if (inlined.has_value() != functions.has_value()) std::abort();
  if (inlined && inlined->size() > kMostInlinedCode) std::abort();
  if (!code) return 0;
  std::size_t looked_at = 0;
  for (const Function& function : *functions) {
    if (++looked_at > 40) break;
    const auto places = code->places(function.linkage_name);
    if (!places) continue;
    std::set<std::uint64_t> offsets;
    for (const Place& place : *places)
      if (place.offset == 0 || place.offset > size || !offsets.insert(place.offset).second) std::abort();
  }
  auto values = ValueFile::open(path);
  if (!values) std::abort();
  looked_at = 0;
  for (const Function& function : *functions) {
    if (++looked_at > 10) break;
    for (const char* what : {"(arg1)", "(arg2->next)", "(*arg3)", "(fd)", ":return", ":return.first"}) {
      const auto query = parse_query(function.linkage_name + what);
      if (!query) continue;
      const auto answer = values->answer(*query);
      if (!answer) continue;
      for (const Site& site : answer->sites)
        if (site.offset >= size || site.fetch.at.offsets.empty() || site.fetch.at.offsets.size() > kMostReads + 1)
          std::abort();
    }
  }
  for (const char* what : {"code_victim.c:30:text", "code_victim.c:60:stderr", "stack_victim.cc:20:x"})
    if (const auto query = parse_query(what)) (void)values->answer(*query);
  return 0;
}
