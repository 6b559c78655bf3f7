#include <catch2/catch.hpp>

#include <elf.h>
#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <random>

#include "base/file.h"
#include "opened.h"
#include "symbols/elf.h"
#include "symbols/symbols.h"
#include "symbols_support.h"

namespace fs = std::filesystem;
using namespace rose::symbols;
using namespace rose::symbols::test;

namespace {

const fs::path kVictim = fs::path(ROSE_PROGRAMS_DIR) / "symbols_victim";

const Function* named(const std::vector<Function>& functions, const std::string& name) {
  const auto found =
      std::find_if(functions.begin(), functions.end(), [&](const Function& f) { return f.name == name; });
  return found == functions.end() ? nullptr : &*found;
}

// The attribute prevents inlining, so that the function has code of its own.
extern "C" __attribute__((noinline, used)) int rose_symbols_landmark(int x) {
  asm volatile("nop; nop; nop" ::: "memory");
  return x ^ 0x5a;
}

std::vector<char> bytes_at(const fs::path& path, std::uint64_t offset, std::size_t count) {
  std::ifstream in(path, std::ios::binary);
  std::vector<char> bytes(count);
  in.seekg(static_cast<std::streamoff>(offset));
  in.read(bytes.data(), static_cast<std::streamsize>(count));
  REQUIRE(in.gcount() == static_cast<std::streamsize>(count));
  return bytes;
}

}  // namespace

TEST_CASE("a function's file offset is that of its bytes") {
  const auto functions = find_functions("/proc/self/exe", {"rose_symbols_landmark"}, {});
  REQUIRE(functions);
  REQUIRE(functions->size() == 1);
  const Function& f = functions->front();
  REQUIRE(f.size >= 4);
  const auto bytes = bytes_at("/proc/self/exe", f.offset, f.size);
  CHECK(std::memcmp(bytes.data(), reinterpret_cast<const void*>(&rose_symbols_landmark), f.size) == 0);
}

TEST_CASE("functions are found by name and glob") {
  const auto all = list_functions(kVictim);
  REQUIRE(all);
  for (std::size_t i = 1; i < all->size(); ++i) CHECK((*all)[i - 1].address < (*all)[i].address);
  CHECK(named(*all, "Raft::append(Entry const&)") != nullptr);
  CHECK(named(*all, "raft_log_create") != nullptr);
  CHECK(named(*all, "raft_log_create_alias") == nullptr);  // two names of one function are listed only once

  const auto appends = find_functions(kVictim, {"Raft::append"}, {});
  REQUIRE(appends);
  CHECK(appends->size() == 2);  // the two overloads, but not the part ".part.0"
  const auto one = find_functions(kVictim, {"Raft::append(std::string const&)"}, {});
  REQUIRE(one);
  CHECK(one->size() == 1);
  const auto alias = find_functions(kVictim, {"raft_log_create_alias"}, {});
  REQUIRE(alias);
  REQUIRE(alias->size() == 1);
  CHECK(alias->front().name == "raft_log_create_alias");
  const auto both = find_functions(kVictim, {"raft_log_create*"}, {});
  REQUIRE(both);
  CHECK(both->size() == 1);  // neither the alias nor the cold part is listed
  const auto special = find_functions(kVictim, {"raft_snapshot"}, {});
  REQUIRE(special);
  CHECK(special->size() == 1);
  CHECK(find_functions(kVictim, {"Raft::operator<<"}, {}));
  CHECK(find_functions(kVictim, {"Queue<int>::push"}, {}));
  CHECK(find_functions(kVictim, {"largest<int>"}, {}));
  CHECK(find_functions(kVictim, {"hidden"}, {}));
}

TEST_CASE("inlined functions are found where their code begins inside others") {
  const fs::path victim = fs::path(ROSE_PROGRAMS_DIR) / "stack_victim";
  const auto inlined = list_inlined(victim);
  REQUIRE(inlined);
  const Function* put = named(*inlined, "stacks::put_line");
  REQUIRE(put != nullptr);
  CHECK(put->source.ends_with("stack_victim.cc"));
  // The name must be the one that symbol tables and stacks show.
  CHECK(named(*inlined, "stacks::(anonymous namespace)::Counter::count") != nullptr);
  const auto own = list_functions(victim);
  REQUIRE(own);
  CHECK(named(*own, put->name) == nullptr);
  CHECK(std::any_of(own->begin(), own->end(), [&](const Function& around) {
    return around.name.find("append") != std::string::npos && put->address > around.address &&
           put->address < around.address + around.size && put->offset - around.offset == put->address - around.address;
  }));
  CHECK(std::none_of(inlined->begin(), inlined->end(), [](const Function& one) {
    return one.name.starts_with("std::") || one.source.starts_with("/usr/");
  }));
  CHECK_FALSE(find_functions({victim}, {"stacks::put_line"}, {}));
  const auto found = find_functions({victim}, {"stacks::put_line"}, {}, Copies::inlined);
  REQUIRE(found);
  CHECK(std::any_of(found->begin(), found->end(),
                    [&](const Located& one) { return one.function.probe_offset == put->offset; }));
  const auto known = find_known_functions({victim}, {"stacks::put_line", "nobody"}, Copies::inlined);
  REQUIRE(known);
  CHECK(known->missing == std::vector<std::string>{"nobody"});
  CHECK_FALSE(known->functions.empty());
}

TEST_CASE("functions are found by source file") {
  const auto all = list_functions(kVictim, true);
  REQUIRE(all);
  const Function* append = named(*all, "Raft::append(Entry const&)");
  REQUIRE(append != nullptr);
  CHECK(fs::path(append->source).filename() == "symbols_victim.cc");

  for (const char* source : {"symbols_victim.cc", "programs/symbols_victim.cc", "./symbols_victim.cc"}) {
    CAPTURE(source);
    const auto found = find_functions(kVictim, {}, {source});
    REQUIRE(found);
    CHECK(named(*found, "Raft::append(Entry const&)") != nullptr);
    CHECK(named(*found, "Raft::inline_in_class(int)") != nullptr);
    CHECK(named(*found, "main") != nullptr);
    CHECK(named(*found, "raft_log_create.cold") == nullptr);
    for (const Function& f : *found) CHECK(f.name.find("std::vector") != 0);
  }
  // This header belongs to the program. The C++ library has another header of the same name, in the folder bits.
  const auto own = find_functions(kVictim, {}, {"stl_vector.h"});
  REQUIRE(own);
  REQUIRE(own->size() == 1);
  CHECK(own->front().name == "of_own_file(int)");
  const auto librarys = find_functions(kVictim, {}, {"bits/stl_vector.h"});
  REQUIRE(librarys);
  CHECK(named(*librarys, "of_own_file(int)") == nullptr);

  const auto part = find_functions(kVictim, {}, {"victim.cc"});
  REQUIRE_FALSE(part);  // because a name must consist of whole parts of the path
  CHECK(part.error().kind == rose::ErrorKind::input);
  const auto slip = find_functions(kVictim, {}, {"symbols_victm.cc"});
  REQUIRE_FALSE(slip);
  CHECK(slip.error().message.find("symbols_victm.cc") != std::string::npos);
  CHECK(slip.error().hint == "did you mean 'symbols_victim.cc'?");
}

TEST_CASE("a name without a match suggests similar ones") {
  struct Row {
    const char* pattern;
    const char* hint;
  };
  for (const Row& row :
       {Row{"Raft::apend", "did you mean 'Raft::append'?"}, Row{"append", "did you mean 'Raft::append'?"},
        Row{"raft_log_crate", "did you mean 'raft_log_create'?"},
        Row{"Queue::push", "did you mean 'Queue<int>::push'?"}}) {
    CAPTURE(row.pattern);
    const auto found = find_functions(kVictim, {row.pattern}, {});
    REQUIRE_FALSE(found);
    CHECK(found.error().kind == rose::ErrorKind::input);
    CHECK(found.error().message == "no function of " + kVictim.native() + " matches '" + row.pattern + "'");
    CHECK(found.error().hint == row.hint);
  }
  const auto glob = find_functions(kVictim, {"Rift::*"}, {});
  REQUIRE_FALSE(glob);
  CHECK(glob.error().hint.find("nm -C") != std::string::npos);
}

TEST_CASE("functions of stripped files are found in their debug files") {
  const Folder folder;
  const fs::path program = folder / "victim";
  const fs::path debug = folder / "victim.debug";
  const fs::path stripped = folder / "stripped";
  fs::copy_file(kVictim, program);
  run({"objcopy", "--only-keep-debug", program, debug});
  run({"objcopy", "--strip-all", program, stripped});
  {
    const auto found = find_functions(stripped, {"Raft::append"}, {});
    REQUIRE_FALSE(found);
    CHECK(found.error().hint.find("stripped") != std::string::npos);
    const auto sources = find_functions(stripped, {}, {"symbols_victim.cc"});
    REQUIRE_FALSE(sources);
    CHECK(sources.error().hint.find("-g") != std::string::npos);
  }
  run({"objcopy", "--strip-all", "--add-gnu-debuglink=" + debug.native(), program, stripped});
  const auto reference = find_functions(kVictim, {"Raft::append"}, {"symbols_victim.cc"});
  REQUIRE(reference);
  const auto check_same = [&] {
    const auto found = find_functions(stripped, {"Raft::append"}, {"symbols_victim.cc"});
    REQUIRE(found);
    REQUIRE(found->size() == reference->size());
    for (std::size_t i = 0; i < found->size(); ++i) {
      CHECK((*found)[i].name == (*reference)[i].name);
      CHECK((*found)[i].offset == (*reference)[i].offset);
    }
  };
  check_same();
  fs::create_directory(folder / ".debug");
  fs::rename(debug, folder / ".debug" / "victim.debug");
  check_same();
  // A debug file of another build is refused, because its addresses would belong to other functions.
  fs::remove(folder / ".debug" / "victim.debug");
  fs::copy_file("/proc/self/exe", debug);
  CHECK_FALSE(find_functions(stripped, {"Raft::append"}, {}));
}

TEST_CASE("functions of stripped files are found in their MiniDebugInfo") {
  const Folder folder;
  const fs::path table = folder / "table";
  const fs::path packed = folder / "table.xz";
  const fs::path stripped = folder / "stripped";
  const auto pack_as = [&](const fs::path& content) {
    run({"objcopy", "--strip-all", "--add-section=.gnu_debugdata=" + content.native(), kVictim, stripped});
  };
  run({"objcopy", "--strip-debug", kVictim, table});
  run({"xz", "--keep", table});
  pack_as(packed);
  const auto reference = find_functions(kVictim, {"Raft::append"}, {});
  const auto found = find_functions(stripped, {"Raft::append"}, {});
  REQUIRE(reference);
  REQUIRE(found);
  REQUIRE(found->size() == reference->size());
  CHECK((*found)[0].name == (*reference)[0].name);
  CHECK((*found)[0].offset == (*reference)[0].offset);
  // If the embedded file is truncated, has other bytes or is not an ELF file, it is treated as missing.
  for (const auto size : {fs::file_size(packed) / 2, std::uintmax_t{7}}) {
    fs::resize_file(packed, size);
    pack_as(packed);
    CHECK_FALSE(find_functions(stripped, {"Raft::append"}, {}));
  }
  pack_as(table);
  CHECK_FALSE(find_functions(stripped, {"Raft::append"}, {}));
  std::ofstream(folder / "text") << "no ELF file";
  run({"xz", folder / "text"});
  pack_as(folder / "text.xz");
  CHECK_FALSE(find_functions(stripped, {"Raft::append"}, {}));
}

TEST_CASE("debug files are searched in the standard locations") {
  const std::vector<std::uint8_t> id = {0xab, 0xcd, 0xef};
  const auto paths = debug_candidates("/usr/bin", id, "x.debug");
  const auto has = [&](const char* path) { return std::find(paths.begin(), paths.end(), path) != paths.end(); };
  CHECK(has("/usr/lib/debug/.build-id/ab/cdef.debug"));
  CHECK(has("/usr/x.debug"));
  CHECK(has("/usr/.debug/x.debug"));
  CHECK(has("/usr/lib/debug/usr/x.debug"));
}

TEST_CASE("functions of non-PIE, static and shared files are found") {
  const Folder folder;
  const fs::path source = folder / "small.c";
  REQUIRE(rose::write_file(
      source,
      "static __attribute__((noinline)) int local_function(int x) { __asm__ volatile(\"\"); return x + 1; }\n"
      "int raft_entry(int x) { return local_function(x) * 2; }\n"
      "int main(int c, char **v) { (void)v; return raft_entry(c) == 0; }\n"));
  const std::vector<std::vector<std::string>> ways = {{"-pie", "-fPIE"},
                                                      {"-no-pie", "-fno-PIE"},
                                                      {"-static"},
                                                      {"-shared", "-fPIC"},
                                                      {"-no-pie", "-Wl,-Ttext-segment=0x10000000"}};
  for (const auto& way : ways) {
    CAPTURE(way);
    const fs::path out = folder / "small";
    std::vector<std::string> command = {"gcc", "-g", "-O1", "-o", out, source};
    command.insert(command.end(), way.begin(), way.end());
    run(command);
    const auto found = find_functions(out, {"raft_entry", "local_function"}, {"small.c"});
    REQUIRE(found);
    CHECK(found->size() == 3);
    for (const Function& f : *found) CHECK(fs::path(f.source).filename() == "small.c");
    // The bytes at the function's offset must be part of the section .text that objcopy extracts.
    const auto entry = find_functions(out, {"raft_entry"}, {});
    REQUIRE(entry);
    const fs::path text = folder / "text";
    run({"objcopy", "-O", "binary", "--only-section=.text", out, text});
    auto whole = rose::read_file(text);
    REQUIRE(whole);
    const auto bytes = bytes_at(out, entry->front().offset, entry->front().size);
    CHECK(whole->find(std::string(bytes.begin(), bytes.end())) != std::string::npos);
  }
}

TEST_CASE("functions of the C library are found without versions, aliases once") {
  const auto found = find_functions("/lib/x86_64-linux-gnu/libc.so.6", {"fsync", "open64", "open"}, {});
  REQUIRE(found);
  CHECK(found->size() == 2);
  const auto all = list_functions("/lib/x86_64-linux-gnu/libc.so.6");
  REQUIRE(all);
  CHECK(all->size() > 1000);
  for (const Function& f : *all) CHECK(f.name.find('@') == std::string::npos);
}

TEST_CASE("a file that is not a program is refused with its name") {
  const Folder folder;
  const fs::path file = folder / "file";
  const auto refused = [&](const fs::path& path, const char* says) {
    CAPTURE(path);
    const auto listed = list_functions(path);
    REQUIRE_FALSE(listed);
    CHECK(listed.error().kind == rose::ErrorKind::input);
    CHECK(listed.error().message.find(path.native()) == 0);
    CAPTURE(listed.error().message);
    CHECK(listed.error().message.find(says) != std::string::npos);
  };
  refused(folder / "missing", "No such file");
  refused(folder.path, "not a regular file");
  refused("/dev/null", "not a regular file");
  REQUIRE(::mkfifo((folder / "pipe").c_str(), 0600) == 0);
  const rose::test::Opened pipe(folder / "pipe");
  refused(folder / "pipe", "not a regular file");
  CHECK_FALSE(pipe.yes());
  REQUIRE(rose::write_file(file, ""));
  refused(file, "not an ELF file");
  REQUIRE(rose::write_file(file, "#!/bin/sh\n"));
  refused(file, "not an ELF file");
  REQUIRE(rose::write_file(file, "!<arch>\n"));
  refused(file, "not an ELF file");

  auto whole = rose::read_file(kVictim);
  REQUIRE(whole);
  std::string changed = *whole;
  changed[EI_CLASS] = ELFCLASS32;
  REQUIRE(rose::write_file(file, changed));
  CHECK_FALSE(list_functions(file));
  changed = *whole;
  changed[18] = static_cast<char>(EM_RISCV);
  REQUIRE(rose::write_file(file, changed));
  refused(file, "another machine");
  changed = *whole;
  changed[16] = ET_REL;
  REQUIRE(rose::write_file(file, changed));
  refused(file, "neither a program");
  run({"objcopy", "--only-keep-debug", kVictim, file});
  CHECK_FALSE(find_functions(file, {"nothing_at_all"}, {}));
}

TEST_CASE("truncated and damaged files cause neither a crash nor a hang") {
  const Folder folder;
  const fs::path file = folder / "damaged";
  auto whole = rose::read_file(kVictim);
  REQUIRE(whole);
  const auto look = [&](const std::string& bytes) {
    REQUIRE(rose::write_file(file, bytes));
    (void)find_functions(file, {"Raft::append"}, {"symbols_victim.cc"});
    const auto functions = list_functions(file);
    if (!functions) return false;
    for (const Function& function : *functions) CHECK(function.offset < bytes.size());
    return true;
  };
  for (std::size_t size = 0; size < 128; size += 3) look(whole->substr(0, size));
  for (int part = 1; part < 24; ++part) look(whole->substr(0, whole->size() * static_cast<std::size_t>(part) / 24));
  std::mt19937 random(1);
  // Damages `bytes` bytes between `begin` and `end`. The headers come first, because they contain sizes and offsets.
  const auto damage = [&](std::size_t begin, std::size_t end, int bytes) {
    std::string changed = *whole;
    for (int i = 0; i < bytes; ++i) {
      changed[begin + random() % (end - begin)] = static_cast<char>(random() % 3 == 0 ? 0xff : random());
    }
    look(changed);
  };
  Elf64_Ehdr header;
  std::memcpy(&header, whole->data(), sizeof header);
  // According to the changed program header, a part of the code lies beyond the end of the file.
  std::string long_code = *whole;
  for (std::size_t i = 0; i < header.e_phnum; ++i) {
    const std::size_t at = header.e_phoff + i * sizeof(Elf64_Phdr);
    Elf64_Phdr program;
    std::memcpy(&program, whole->data() + at, sizeof program);
    if (program.p_type != PT_LOAD || (program.p_flags & PF_X) == 0) continue;
    program.p_offset = whole->size() - program.p_filesz / 2;
    std::memcpy(long_code.data() + at, &program, sizeof program);
  }
  CHECK(look(long_code));
  for (int i = 0; i < 60; ++i) damage(4, 64 + 13 * 56, 4);
  for (int i = 0; i < 60; ++i) damage(header.e_shoff, whole->size(), 6);
  // Damages bytes anywhere: in symbols, strings, notes, DWARF. ROSE_FUZZ_ROUNDS sets the number of rounds.
  const char* rounds = std::getenv("ROSE_FUZZ_ROUNDS");
  for (int i = 0; i < (rounds != nullptr ? std::atoi(rounds) : 40); ++i) damage(64, whole->size(), 200);
}
