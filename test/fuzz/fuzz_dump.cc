// Dumps: no bytes may crash the reader. What the reader accepts must be valid, survive being written and read in both
// file forms, and `dump show` must be able to print it.
#include <cstdint>
#include <cstdlib>
#include <span>
#include <string>

#include "recipe.h"
#include "report/dump/perfetto.h"
#include "report/dump/show.h"
#include "report/dump/summary.h"
#include "text_form.h"
#include "trace/dump.h"
#include "trace/jsonl.h"
#include "trace/limits.h"
#include "trace/merge.h"

using namespace rose;

namespace {

void check(std::string_view bytes) {
  const auto read = trace::parse_dump(std::as_bytes(std::span(bytes.data(), bytes.size())), "x.bin");
  if (!read) {
    if (read.error().kind != ErrorKind::input || read.error().message.rfind("x.bin: ", 0) != 0) std::abort();
    return;
  }
  const trace::Trace& trace = read->trace;
  if (read->damage && read->damage->message.rfind("x.bin: damaged at byte ", 0) != 0) std::abort();
  for (std::size_t i = 0; i < trace.events.size(); ++i) {
    if (trace::event_fault(trace.events[i], trace.strings.size())) std::abort();
    if (i > 0 && trace.events[i].ts_ns < trace.events[i - 1].ts_ns) std::abort();
  }
  const std::string text = fuzz::text_of(trace);
  const auto rewritten = trace::dump_to_bytes(trace);
  if (!rewritten) std::abort();
  const auto again = trace::parse_dump(std::as_bytes(std::span(*rewritten)), "again.bin");
  if (!again || again->damage || fuzz::text_of(again->trace) != text) std::abort();
  const auto imported = trace::parse_jsonl(text, "x.jsonl");
  if (!imported || fuzz::text_of(*imported) != text) std::abort();
  const auto ignore = [](std::string_view) {};
  report::show_text(trace, {}, ignore);
  report::show_summary(trace, {}, ignore);
  report::show_perfetto(trace, {}, ignore);
  (void)trace::merge({trace, *imported});
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  check(bytes);
  if (!bytes.starts_with(fuzz::kMagic)) check(fuzz::cook(bytes));
  return 0;
}
