#include "jvm/call_sites.h"

namespace rose::jvm {
namespace {

enum Tag : unsigned char {
  kTagUtf8 = 1,
  kTagLong = 5,
  kTagDouble = 6,
  kTagClass = 7,
  kTagMethod = 10,
  kTagInterfaceMethod = 11,
  kTagNameAndType = 12,
  kTagInvokeDynamic = 18
};

// The size of an entry after its tag, for all tags except that of strings. 0 if the tag is unknown.
std::size_t size_of(unsigned char tag) {
  switch (tag) {
    case 7:
    case 8:
    case 16:
    case 19:
    case 20: return 2;
    case 15: return 3;
    case 3:
    case 4:
    case 9:
    case 10:
    case 11:
    case 12:
    case 17:
    case 18: return 4;
    case 5:
    case 6: return 8;
    default: return 0;
  }
}

}  // namespace

ConstantPool::ConstantPool(std::span<const unsigned char> bytes, std::size_t count) : bytes_(bytes) {
  if (count > 65536) count = 65536;
  entries_.resize(count);
  std::size_t where = 0;
  for (std::size_t index = 1; index < count && where < bytes.size(); ++index) {
    const unsigned char tag = bytes[where];
    std::size_t size = size_of(tag);
    if (tag == kTagUtf8) {
      if (bytes.size() - where < 3) return;
      size = 2 + number(where + 1);
    }
    if (size == 0 || bytes.size() - where - 1 < size) return;
    entries_[index] = static_cast<std::uint32_t>(where + 1);
    where += 1 + size;
    if (tag == kTagLong || tag == kTagDouble) ++index;
  }
}

// The offset of the entry's content, which follows the tag. 0 if there is no such entry.
std::size_t ConstantPool::at(std::size_t index, unsigned char kind) const {
  if (index >= entries_.size() || entries_[index] == 0 || bytes_[entries_[index] - 1] != kind) return 0;
  return entries_[index];
}

std::string_view ConstantPool::text(std::size_t index) const {
  const std::size_t where = at(index, kTagUtf8);
  if (where == 0) return {};
  return {reinterpret_cast<const char*>(bytes_.data()) + where + 2, number(where)};
}

std::string ConstantPool::callee(std::size_t index) const {
  std::size_t where = at(index, kTagMethod);
  if (where == 0) where = at(index, kTagInterfaceMethod);
  std::string name;
  if (where != 0) {
    if (const std::size_t owner = at(number(where), kTagClass); owner != 0) name = text(number(owner));
    for (char& c : name) c = c == '/' ? '.' : c;
    if (!name.empty()) name += '.';
  } else {
    where = at(index, kTagInvokeDynamic);
  }
  const std::size_t type = where != 0 ? at(number(where + 2), kTagNameAndType) : 0;
  if (type == 0) return {};
  name += text(number(type));
  return name;
}

std::vector<CallSite> call_sites(Code code, const ConstantPool& pool) {
  struct Range {
    std::size_t begin, end;
  };
  std::vector<Range> loops;
  std::vector<CallSite> found;
  for (std::size_t at = 0; at < code.size();) {
    const std::size_t size = instruction_size(code, at);
    if (size == 0) break;
    const Jumps jumps = jumps_of(code, at);
    for (std::size_t i = 0; i < jumps.targets; ++i) {
      const std::int64_t target = jump_target(code, at, i);
      if (target >= 0 && static_cast<std::size_t>(target) <= at)
        loops.push_back({static_cast<std::size_t>(target), at});
    }
    if (is_call(code[at]) && size >= 3) {
      CallSite site;
      site.offset = static_cast<std::uint32_t>(at);
      site.callee = pool.callee(static_cast<std::size_t>(code[at + 1]) << 8 | code[at + 2]);
      if (site.callee.empty()) site.callee = "?";
      found.push_back(std::move(site));
    }
    at += size;
  }
  for (CallSite& site : found) {
    for (const Range& range : loops) site.loop = site.loop || (site.offset >= range.begin && site.offset <= range.end);
  }
  return found;
}

}  // namespace rose::jvm
