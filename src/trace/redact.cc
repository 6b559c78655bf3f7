#include "trace/redact.h"

#include <vector>

namespace rose::trace {

Trace rewritten(const Trace& trace, const Rewrite& text, const Rewrite& code) {
  Trace out;
  std::vector<StringId> texts(trace.strings.size(), 0), names = texts;
  const auto id = [&](StringId old, std::vector<StringId>& known, const Rewrite& rewrite) {
    if (old == 0 || old >= known.size()) return StringId{0};
    if (known[old] == 0) known[old] = out.strings.intern(rewrite(trace.str(old)));
    return known[old];
  };
  out.events = trace.events;
  for (Event& event : out.events) {
    for (StringId Event::* field :
         {&Event::node, &Event::path, &Event::path2, &Event::peer, &Event::src, &Event::dst, &Event::by})
      event.*field = id(event.*field, texts, text);
    event.function = id(event.function, names, code);
  }
  return out;
}

Trace redacted(const Trace& trace, Redactor& redactor) {
  redactor.add_host(trace.meta.host);
  const auto text = [&](std::string_view one) { return redactor(one); };
  Trace out = rewritten(trace, text, [](std::string_view one) { return std::string(one); });
  out.meta = trace.meta;
  out.meta.boot_id.clear();
  for (std::string* one : {&out.meta.node, &out.meta.host, &out.meta.trigger}) *one = redactor(*one);
  for (auto* lines : {&out.meta.nodes, &out.meta.addresses, &out.meta.labels, &out.meta.handshakes, &out.meta.clock})
    for (std::string& one : *lines) one = redactor(one);
  return out;
}

}  // namespace rose::trace
