#include "symbols/users.h"

#include <algorithm>
#include <cstring>
#include <initializer_list>
#include <set>
#include <span>

namespace rose::symbols {
namespace {

// only_user() examines the users of at most this many functions: of the given one, and of library functions that use it
constexpr std::size_t kMostFollowed = 64;

// Code refers to a table of functions by an address near the beginning of the table. These are the possible distances
// from that address to the word with the function. In C, the distance is 0. In C++, it is 16: code refers to the first
// virtual function of a class, and the function that a thread executes is the third one. In Rust, it is 24: three words
// about the object come before its function.
constexpr std::uint64_t kBeforeFunction[] = {0, 16, 24};

std::uint32_t word_at(std::span<const std::uint8_t> code, std::size_t at) {
  std::uint32_t word = 0;
  std::memcpy(&word, code.data() + at, sizeof word);
  return word;
}

// Calls `refers(target, calls)` for each address to which the code may refer. Every byte is taken as the possible
// beginning of an instruction. This does no harm, because an accidental match with a given target occurs only once in
// 2^32 bytes.
template <typename Refers>
void x86_references(std::span<const std::uint8_t> code, std::uint64_t address, const Refers& refers) {
  for (std::size_t at = 0; at + 5 <= code.size(); ++at) {
    const std::uint8_t byte = code[at];
    const auto relative = [&](std::size_t from) {
      return address + from + 4 + static_cast<std::uint64_t>(static_cast<std::int32_t>(word_at(code, from)));
    };
    if (byte == 0xe8 || byte == 0xe9) refers(relative(at + 1), true);                 // call, jmp
    if ((byte & 0xf8U) == 0xb8) refers(std::uint64_t{word_at(code, at + 1)}, false);  // mov $..., register
    if ((byte & 0xfbU) == 0x48 && at + 7 <= code.size() && code[at + 1] == 0x8d && (code[at + 2] & 0xc7U) == 0x05)
      refers(relative(at + 3), false);  // lea ...(%rip), register
  }
}

template <typename Refers>
void arm64_references(std::span<const std::uint8_t> code, std::uint64_t address, const Refers& refers) {
  std::uint64_t pages[32] = {};  // by register: what adrp loaded
  for (std::size_t at = 0; at + 4 <= code.size(); at += 4) {
    const std::uint32_t word = word_at(code, at);
    if ((word & 0x7c000000U) == 0x14000000U)  // b, bl
      refers(address + at +
                 static_cast<std::uint64_t>(static_cast<std::int64_t>(static_cast<std::int32_t>(word << 6) >> 6) * 4),
             true);
    if ((word & 0x9f000000U) == 0x90000000U) {  // adrp
      const std::uint32_t page = ((word >> 3) & 0x1ffffcU) | ((word >> 29) & 3U);
      const std::int64_t pages_away = static_cast<std::int32_t>(page << 11) >> 11;
      pages[word & 31U] = ((address + at) & ~std::uint64_t{0xfff}) + static_cast<std::uint64_t>(pages_away * 4096);
    }
    if ((word & 0xffc00000U) == 0x91000000U) refers(pages[(word >> 5) & 31U] + ((word >> 10) & 0xfffU), false);  // add
  }
}

}  // namespace

bool is_compiled_in(std::string_view name, std::string_view linkage_name) {
  const auto begins = [](std::string_view text, std::initializer_list<std::string_view> with) {
    return std::any_of(with.begin(), with.end(), [&](std::string_view one) { return text.starts_with(one); });
  };
  // The demangled name of a template instance begins with its return type, as in "void std::__invoke_impl<...>", so
  // check the linkage name, too.
  return begins(linkage_name, {"_ZNSt", "_ZSt", "_ZNKSt", "_ZN9__gnu_cxx", "_ZNK9__gnu_cxx"}) ||
         begins(name, {"std::", "core::", "alloc::", "<std::", "<core::", "<alloc::", "__gnu_cxx::"});
}

Users::Users(const ElfFile& file, const std::vector<Function>& functions) {
  // the key is the address of the function, or of a table that contains it
  std::unordered_multimap<std::uint64_t, std::uint64_t> of;
  for (const Function& function : functions) of.emplace(function.address, function.address);
  for (const auto& [slot, what] : file.slots())
    if (what.address != 0)
      for (const std::uint64_t before : kBeforeFunction) of.emplace(slot - before, what.address);
  for (const Function& function : functions) {
    const std::vector<std::uint8_t> code = file.code(function.address, function.size);
    const auto refers = [&](std::uint64_t target, bool calls) {
      const auto [begin, end] = of.equal_range(target);
      for (auto used = begin; used != end; ++used)
        if (used->second != function.address) users_[used->second].push_back({&function, calls});
    };
    if (file.machine().elf == EM_AARCH64) arm64_references(code, function.address, refers);
    else x86_references(code, function.address, refers);
  }
}

const Function* Users::only_user(std::uint64_t address, bool calls) const {
  std::set<const Function*> librarys, applications;
  std::vector<std::uint64_t> next = {address};
  for (std::size_t i = 0; i < next.size() && i < kMostFollowed; ++i) {
    const auto users = users_.find(next[i]);
    if (users == users_.end()) continue;
    for (const User& user : users->second) {
      if (user.calls && !calls && i == 0) continue;
      if (!is_compiled_in(user.function->name, user.function->linkage_name)) applications.insert(user.function);
      else if (librarys.insert(user.function).second) next.push_back(user.function->address);
    }
  }
  return applications.size() == 1 ? *applications.begin() : nullptr;
}

}  // namespace rose::symbols
