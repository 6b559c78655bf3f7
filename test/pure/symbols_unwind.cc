// The frames of a thread whose stack was copied. The thread belongs to this program. In some tests, the copy is
// truncated or its data is inconsistent.
#include <elf.h>
#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sstream>
#include <string>

#include "folder.h"
#include "symbols/unwind.h"

using namespace rose::symbols;

namespace {

Snapshot taken;
constexpr std::size_t kCodeAt = 64;  // offset of the code in its page

// Copies a stack as the kernel does, without regard to what it contains. AddressSanitizer would not allow that, because
// it puts data of its own between variables.
__attribute__((noinline, no_sanitize("address"))) void copy_stack(const volatile std::uint8_t* from, std::size_t size) {
  taken.stack.resize(size);
  std::uint8_t* to = taken.stack.data();
  for (std::size_t i = 0; i < size; ++i) to[i] = from[i];
}

// Takes the registers and the stack of the function that calls it. That function must not be inlined.
__attribute__((noinline)) void take_snapshot() {
  auto& r = taken.registers;
  asm volatile(
      "mov %%rbx, 24(%0)\n mov %%rbp, 48(%0)\n mov %%rsp, 56(%0)\n mov %%r12, 96(%0)\n mov %%r13, 104(%0)\n"
      "mov %%r14, 112(%0)\n mov %%r15, 120(%0)\n lea 0(%%rip), %%rax\n mov %%rax, 128(%0)"
      :
      : "r"(r.data())
      : "rax", "memory");
  pthread_attr_t about;
  void* bottom = nullptr;
  std::size_t size = 0;
  REQUIRE(::pthread_getattr_np(::pthread_self(), &about) == 0);
  REQUIRE(::pthread_attr_getstack(&about, &bottom, &size) == 0);
  ::pthread_attr_destroy(&about);
  const auto end = reinterpret_cast<std::uint64_t>(bottom) + size;
  const auto* from = reinterpret_cast<const std::uint8_t*>(r[7]);
  copy_stack(from, std::min<std::uint64_t>(8192, end - r[7]));
}

std::vector<Mapping> own_maps() {
  std::vector<Mapping> maps;
  std::ifstream file("/proc/self/maps");
  for (std::string line; std::getline(file, line);) {
    Mapping map;
    char rights[5] = {}, path[512] = {};
    unsigned long start = 0, end = 0, offset = 0;
    if (std::sscanf(line.c_str(), "%lx-%lx %4s %lx %*s %*s %511s", &start, &end, rights, &offset, path) < 4 ||
        rights[2] != 'x')
      continue;
    map.start = start, map.end = end, map.offset = offset;
    if (path[0] == '/') map.name = path, map.file = path;
    maps.push_back(map);
  }
  return maps;
}

volatile int sink = 0;

}  // namespace

// This function is not in the unnamed namespace, so that the symbol table contains its name.
__attribute__((noinline)) void unwind_third() {
  take_snapshot();
  sink = sink + 1;
}
__attribute__((noinline)) void unwind_second(int n) {
  if (n > 0) unwind_second(n - 1);
  else unwind_third();
  sink = sink + 1;
}
__attribute__((noinline)) void unwind_first() {
  unwind_second(2);
  sink = sink + 1;
}

TEST_CASE("frames of this program are unwound innermost first") {
  taken = {};
  unwind_first();
  taken.maps = own_maps();
  const auto result = unwind(taken);
  std::string text = result.incomplete;
  for (const auto& frame : result.frames) text += "\n" + frame.function + " " + frame.binary;
  INFO(text);
  REQUIRE(result.frames.size() >= 6);
  CHECK(result.frames[0].function.find("take_snapshot") != std::string::npos);
  CHECK(result.frames[1].function == "unwind_third()");
  for (int i = 2; i < 5; ++i) CHECK(result.frames[static_cast<std::size_t>(i)].function == "unwind_second(int)");
  CHECK(result.frames[5].function == "unwind_first()");
  CHECK(result.frames[5].binary.find("pure_symbols") != std::string::npos);
}

TEST_CASE("a truncated copy of the stack is reported as such") {
  taken = {};
  unwind_first();
  taken.maps = own_maps();
  taken.stack.resize(64);
  const auto result = unwind(taken);
  std::string text = result.incomplete;
  for (const auto& frame : result.frames) text += "\n" + frame.function + " " + frame.binary;
  INFO(text);
  CHECK(result.incomplete.find("deeper than the 64 bytes") != std::string::npos);
  REQUIRE(!result.frames.empty());
  CHECK(result.frames[0].function.find("take_snapshot") != std::string::npos);
}

TEST_CASE("without maps or readable files there is one frame and a reason") {
  taken = {};
  unwind_first();
  auto result = unwind(taken);
  REQUIRE(result.frames.size() == 1);
  CHECK(result.incomplete.find("memory map is not known") != std::string::npos);
  taken.maps = own_maps();
  for (auto& map : taken.maps) map.file = "/nonexistent";
  result = unwind(taken);
  REQUIRE(result.frames.size() == 1);
  CHECK(result.frames[0].binary.find("pure_symbols") != std::string::npos);
  CHECK(result.incomplete.find("can be read") != std::string::npos);
}

TEST_CASE("unterminated strings of debug information are not read") {
  taken = {};
  unwind_first();
  taken.maps = own_maps();
  std::ifstream in("/proc/self/exe", std::ios::binary);
  std::string bytes{std::istreambuf_iterator<char>(in), {}};
  Elf64_Ehdr header;
  REQUIRE(bytes.size() > sizeof header);
  std::memcpy(&header, bytes.data(), sizeof header);
  const auto section = [&](std::size_t number) { return bytes.data() + header.e_shoff + number * header.e_shentsize; };
  Elf64_Shdr names;
  std::memcpy(&names, section(header.e_shstrndx), sizeof names);
  int cut = 0;
  for (std::size_t i = 0; i < header.e_shnum; ++i) {
    Elf64_Shdr one;
    std::memcpy(&one, section(i), sizeof one);
    const std::string_view name = bytes.data() + names.sh_offset + one.sh_name;
    if ((name != ".debug_str" && name != ".debug_line_str") || (one.sh_flags & SHF_COMPRESSED) != 0) continue;
    one.sh_size -= 1;  // the section now lacks its last zero
    std::memcpy(section(i), &one, sizeof one);
    ++cut;
  }
  const rose::test::Folder folder;
  const auto copy = folder / "program";
  std::ofstream(copy, std::ios::binary) << bytes;
  for (auto& map : taken.maps)
    if (map.name.find("pure_symbols") != std::string::npos) map.file = copy;
  // A build without debug information has neither of these sections, so nothing was changed.
  const auto result = unwind(taken);
  REQUIRE(result.frames.size() >= 6);
  CHECK(result.frames[1].function == "unwind_third()");
  if (cut > 0) CHECK(result.frames[1].line == 0);
}

TEST_CASE("overlapping or wrapping maps are handled") {
  taken = {};
  unwind_first();
  const auto maps = own_maps();
  taken.maps = maps;
  for (auto map : maps) {
    map.start -= 4096;
    taken.maps.push_back(map);
    map.start = ~std::uint64_t{0} - 4095;
    map.end = ~std::uint64_t{0};
    taken.maps.push_back(map);
  }
  CHECK(unwind(taken).frames.size() <= kMostFrames);
}

namespace {

// Creates code as a runtime does: it is in no file, has a frame pointer, and its name is in a list. Returns nullptr if
// the address `at` is in use.
void* made_code(std::uint64_t at) {
  // the code is: push %rbp; mov %rsp,%rbp; call *%rdi; pop %rbp; ret
  constexpr std::uint8_t kCode[] = {0x55, 0x48, 0x89, 0xe5, 0xff, 0xd7, 0x5d, 0xc3};
  void* page = ::mmap(reinterpret_cast<void*>(at), 4096, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | (at != 0 ? MAP_FIXED_NOREPLACE : 0), -1, 0);
  if (page == MAP_FAILED) return nullptr;
  std::memcpy(static_cast<char*>(page) + kCodeAt, kCode, sizeof kCode);
  REQUIRE(::mprotect(page, 4096, PROT_READ | PROT_EXEC) == 0);
  return page;
}

// Creates such code at an address that the kernel chooses, and also directly after each mapping of a file that has free
// space after it. So there is also code after a library and between its parts.
std::vector<void*> made_codes() {
  std::vector<std::uint64_t> ends = {0};
  std::ifstream file("/proc/self/maps");
  for (std::string line; std::getline(file, line);) {
    unsigned long start = 0, end = 0;
    if (std::sscanf(line.c_str(), "%lx-%lx", &start, &end) == 2 && line.find(" /") != std::string::npos)
      ends.push_back(end);
  }
  std::vector<void*> pages;
  for (const std::uint64_t end : ends)
    if (void* page = made_code(end); page != nullptr) pages.push_back(page);
  return pages;
}

}  // namespace

TEST_CASE("frames of a runtime's generated code have the names of its list, at any address") {
  const std::vector<void*> pages = made_codes();
  CHECK(pages.size() > 1);
  for (void* page : pages) {
    const auto start = reinterpret_cast<std::uint64_t>(page) + kCodeAt;
    char list[] = "/tmp/rose-test-XXXXXX";
    const int fd = ::mkstemp(list);
    REQUIRE(fd >= 0);
    REQUIRE(::dprintf(fd, "%lx 8 JS:*handle /srv/app.js:12:3\n", static_cast<unsigned long>(start)) > 0);
    ::close(fd);

    taken = {};
    reinterpret_cast<void (*)(void (*)())>(start)(&unwind_first);
    sink = sink + 1;
    taken.maps = own_maps();
    const auto handle = [&] {
      auto result = unwind(taken);
      std::string text = result.incomplete;
      for (const auto& frame : result.frames) text += "\n" + frame.function + " " + frame.binary;
      INFO(text);
      const auto behind = std::find_if(result.frames.begin(), result.frames.end(),
                                       [](const auto& frame) { return frame.function == "unwind_first()"; });
      REQUIRE(result.frames.end() - behind >= 2);
      CHECK(behind[1].binary == "");
      return behind[1];
    };
    CHECK(handle().function == "");
    taken.runtime_list = list;
    const auto named = handle();
    CHECK(named.function == "handle");
    CHECK(named.file == "/srv/app.js");
    CHECK(named.line == 12);
    ::unlink(list);
  }
  for (void* page : pages) ::munmap(page, 4096);
}
