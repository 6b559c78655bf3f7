// What diagnosis and workers send each other: no bytes may crash the reader or lead out of a folder, and what is
// accepted survives being sent on.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "engine/wire/engines.h"
#include "engine/wire/message.h"
#include "engine/wire/tree.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  namespace engine = rose::engine;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  (void)engine::words_of(std::string(bytes));
  engine::Inbox inbox;
  inbox.add(bytes.substr(0, size / 2));
  inbox.add(bytes.substr(size / 2));
  for (;;) {
    auto message = inbox.next();
    if (!message || !*message) return 0;
    if ((*message)->type().empty()) std::abort();
    engine::Inbox again;
    again.add(engine::to_bytes(**message));
    auto same = again.next();
    if (!same || !*same || (*same)->payload != (*message)->payload) std::abort();
    if (const auto files = (*message)->header.find("files"); files != (*message)->header.end()) {
      if (auto tree = engine::tree_from(*files)) {
        for (const engine::Entry& entry : tree->entries)
          if (!engine::stays_inside(entry.path)) std::abort();
        auto read = engine::tree_from(engine::to_json(*tree));
        if (!read || read->entries != tree->entries) std::abort();
      }
    }
  }
}
