// Messages between a diagnosis and its workers: no bytes may crash the reader, or make it write outside a folder, and
// accepted messages must survive being sent on.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>

#include "engine/wire/engines.h"
#include "engine/wire/message.h"
#include "engine/wire/tree.h"

namespace {

namespace engine = rose::engine;

// Digests would keep a fuzzer from reaching the code after their check, so each frame gets a correct digest.
std::string with_digests(std::string_view bytes) {
  std::string all;
  while (bytes.size() >= 12) {
    const auto number = [&](std::size_t at) {
      std::uint32_t value = 0;
      std::memcpy(&value, bytes.data() + at, sizeof value);
      return std::size_t{value};
    };
    const std::size_t header = std::min(number(4), bytes.size() - 12);
    const std::size_t payload = std::min(number(8), bytes.size() - 12 - header);
    engine::Message message;
    message.header = rose::Json::parse(bytes.substr(12, header), nullptr, false);
    if (!message.header.is_object() || message.header.empty()) break;
    message.header.erase("sha256");
    message.payload = bytes.substr(12 + header, payload);
    all += engine::to_bytes(message);
    bytes.remove_prefix(std::min(bytes.size(), 12 + header + payload + 1));
  }
  return all;
}

void read_all(std::string_view bytes) {
  engine::Inbox inbox;
  inbox.add(bytes.substr(0, bytes.size() / 2));
  inbox.add(bytes.substr(bytes.size() / 2));
  for (;;) {
    auto message = inbox.next();
    if (!message || !*message) return;
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

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  (void)engine::words_of(std::string(bytes));
  read_all(bytes);
  read_all(with_digests(bytes));
  return 0;
}
