#include "symbols/gopclntab.h"

#include <algorithm>
#include <cstring>

namespace rose::symbols {
namespace {

constexpr std::size_t kMostText = 65536;  // most bytes of a name or path
constexpr std::uint64_t kMostFunctions = 5'000'000;

// Reads from the table, and checks that the reads are inside it.
class Bytes {
 public:
  explicit Bytes(std::span<const std::uint8_t> bytes) : bytes_(bytes) {}
  template <typename T>
  [[nodiscard]] std::optional<T> get(std::uint64_t at) const {
    if (at > bytes_.size() || bytes_.size() - at < sizeof(T)) return std::nullopt;
    T value;
    std::memcpy(&value, bytes_.data() + at, sizeof value);
    return value;
  }
  [[nodiscard]] std::optional<std::uint32_t> u32(std::uint64_t at) const { return get<std::uint32_t>(at); }
  [[nodiscard]] std::optional<std::uint64_t> u64(std::uint64_t at) const { return get<std::uint64_t>(at); }
  [[nodiscard]] std::optional<std::string_view> text(std::uint64_t at) const {
    if (at >= bytes_.size()) return std::nullopt;
    const auto* begin = reinterpret_cast<const char*>(bytes_.data() + at);
    const std::size_t most = std::min<std::size_t>(bytes_.size() - at, kMostText);
    const void* end = std::memchr(begin, 0, most);
    if (end == nullptr) return std::nullopt;
    return std::string_view(begin, static_cast<std::size_t>(static_cast<const char*>(end) - begin));
  }
  // Reads a varint, and moves `at` behind it.
  [[nodiscard]] std::optional<std::uint32_t> varint(std::uint64_t& at) const {
    std::uint32_t value = 0;
    for (int shift = 0; shift < 35; shift += 7) {
      const auto byte = get<std::uint8_t>(at);
      if (!byte) return std::nullopt;
      ++at;
      value |= (shift < 32 ? static_cast<std::uint32_t>(*byte & 0x7f) << shift : 0);
      if ((*byte & 0x80) == 0) return value;
    }
    return std::nullopt;
  }

 private:
  std::span<const std::uint8_t> bytes_;
};

// The offsets of the table's parts.
struct Layout {
  GoHeader header;
  std::uint64_t names = 0, units = 0, files = 0, values = 0;
  std::uint64_t functions = 0;   // the function table; since 1.16, funcoffs are relative to it
  std::uint64_t data = 0;        // the address to which funcoffs are relative
  std::uint64_t file_count = 0;  // number of files; only in 1.2
  unsigned field = 8;            // bytes of each field of an entry in the function table
};

std::optional<Layout> layout_of(const Bytes& bytes) {
  const auto magic = bytes.u32(0);
  const auto rest = bytes.u32(4);
  // A valid table has two zero bytes, then an instruction size of one byte (arm64: four), then a pointer size of eight.
  if (!magic || !rest || (*rest != 0x08010000 && *rest != 0x08040000)) return std::nullopt;
  Layout out;
  auto& header = out.header;
  switch (*magic) {
    case 0xfffffffb: header.version = 2; break;
    case 0xfffffffa: header.version = 16; break;
    case 0xfffffff0: header.version = 18; break;
    case 0xfffffff1: header.version = 20; break;
    default: return std::nullopt;
  }
  const auto word = [&](unsigned i) { return bytes.u64(8 + 8 * i).value_or(UINT64_MAX); };
  header.functions = word(0);
  if (header.functions == 0 || header.functions > kMostFunctions) return std::nullopt;
  if (header.version == 2) {
    out.functions = 16;
    out.data = 0;
    const auto files = bytes.u32(out.functions + (header.functions * 2 + 1) * 8);
    if (!files) return std::nullopt;
    out.files = *files;
    out.file_count = bytes.u32(out.files).value_or(0);
  } else {
    const unsigned at = header.version == 16 ? 2 : 3;
    if (at == 3) header.text = word(2);
    out.names = word(at);
    out.units = word(at + 1);
    out.files = word(at + 2);
    out.values = word(at + 3);
    out.functions = out.data = word(at + 4);
    // With offsets close to the maximum, later additions would overflow.
    for (const auto part : {out.names, out.units, out.files, out.values, out.functions}) {
      if (part > UINT32_MAX) return std::nullopt;
    }
    if (at == 3) out.field = 4;
  }
  const auto entry = [&](std::uint64_t i) {
    const std::uint64_t place = out.functions + i * 2 * out.field;
    return out.field == 4 ? bytes.u32(place).value_or(UINT32_MAX) : bytes.u64(place).value_or(UINT64_MAX);
  };
  header.first = entry(0);
  header.last = entry(header.functions);
  const std::uint64_t none = out.field == 4 ? UINT32_MAX : UINT64_MAX;
  if (header.first == none || header.last == none || header.last <= header.first) return std::nullopt;
  return out;
}

// The first value of a pc-value table, which is the value at the function's entry.
std::optional<std::uint32_t> first_value(const Bytes& bytes, std::uint64_t at) {
  const auto delta = bytes.varint(at);
  if (!delta) return std::nullopt;
  const std::uint32_t change = (*delta & 1) != 0 ? ~(*delta >> 1) : *delta >> 1;
  return change - 1;  // because values start at -1
}

}  // namespace

std::optional<GoHeader> go_header(std::span<const std::uint8_t> table) {
  const auto layout = layout_of(Bytes(table));
  if (!layout) return std::nullopt;
  return layout->header;
}

std::vector<std::size_t> go_table_candidates(std::span<const std::uint8_t> bytes) {
  std::vector<std::size_t> found;
  for (std::size_t at = 0; at + 8 <= bytes.size() && found.size() < 64; at += 8) {
    if (bytes[at + 1] != 0xff || bytes[at + 2] != 0xff || bytes[at + 3] != 0xff || bytes[at + 7] != 8) continue;
    if (go_header(bytes.subspan(at))) found.push_back(at);
  }
  return found;
}

std::vector<GoFunction> go_functions(std::span<const std::uint8_t> table, std::uint64_t text, bool with_sources) {
  std::vector<GoFunction> out;
  const Bytes bytes(table);
  const auto layout = layout_of(bytes);
  if (!layout) return out;
  const auto& header = layout->header;
  const std::uint64_t base = header.relative() ? text : 0;
  const unsigned field = layout->field;
  const auto get = [&](std::uint64_t at) -> std::optional<std::uint64_t> {
    if (field == 8) return bytes.u64(at);
    const auto value = bytes.u32(at);
    if (!value) return std::nullopt;
    return *value;
  };
  out.reserve(std::min<std::uint64_t>(header.functions, table.size() / 8));
  // A hostile table may refer to one large text many times, so the size of the table limits the total.
  std::uint64_t spent = 0;
  for (std::uint64_t i = 0; i < header.functions; ++i) {
    const std::uint64_t place = layout->functions + i * 2 * field;
    const auto entry = get(place), data_offset = get(place + field), next = get(place + 2 * field);
    if (!entry || !data_offset || !next || *next < *entry || *data_offset > table.size()) break;
    const std::uint64_t data = layout->data + *data_offset;
    // The function's record begins with its entry, which the table contains, too. 32-bit words follow it.
    const std::uint64_t words = data + field;
    const auto name_at = bytes.u32(words);
    if (!name_at) break;
    const auto name = bytes.text(layout->names + *name_at);
    if (!name) break;
    spent += name->size();
    if (spent > table.size() * 4 + kMostText) break;
    if (name->empty() || *next == *entry) continue;
    GoFunction function;
    function.name = *name;
    function.address = base + *entry;
    function.size = *next - *entry;
    if (with_sources) {
      const auto file_at = bytes.u32(words + 16);  // pcfile
      const auto number = file_at && *file_at != 0 ? first_value(bytes, layout->values + *file_at) : std::nullopt;
      std::optional<std::string_view> file;
      if (number && header.version == 2) {
        const auto at =
            *number < layout->file_count ? bytes.u32(layout->files + 4 * std::uint64_t{*number}) : std::nullopt;
        if (at) file = bytes.text(*at);
      } else if (number) {
        const auto unit = bytes.u32(words + 28);
        const auto at = unit ? bytes.u32(layout->units + 4 * (std::uint64_t{*unit} + *number)) : std::nullopt;
        if (at && *at != UINT32_MAX) file = bytes.text(layout->files + *at);
      }
      if (file) {
        spent += file->size();
        function.source = *file;
      }
    }
    out.push_back(std::move(function));
  }
  return out;
}

}  // namespace rose::symbols
