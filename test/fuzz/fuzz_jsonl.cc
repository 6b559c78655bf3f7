// JSON Lines: no text may crash the reader, every refusal must name a line, and what is accepted must survive being
// written and read.
#include <cstdint>
#include <cstdlib>
#include <span>
#include <string>

#include "text_form.h"
#include "trace/dump.h"
#include "trace/jsonl.h"

using namespace rose;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  std::string warning;
  const auto trace = trace::parse_jsonl(text, "x.jsonl", &warning);
  if (warning.find('\n') != std::string::npos) std::abort();
  if (!trace) {
    if (trace.error().kind != ErrorKind::input || trace.error().message.rfind("x.jsonl:", 0) != 0) std::abort();
    if (trace.error().message.find('\n') != std::string::npos) std::abort();
    return 0;
  }
  const std::string written = fuzz::text_of(*trace);
  const auto again = trace::parse_jsonl(written, "written.jsonl");
  if (!again || fuzz::text_of(*again) != written) std::abort();
  const auto dump = trace::dump_to_bytes(*trace);
  if (!dump) std::abort();
  const auto read = trace::parse_dump(std::as_bytes(std::span(*dump)), "x.bin");
  if (!read || read->damage || fuzz::text_of(read->trace) != written) std::abort();
  return 0;
}
