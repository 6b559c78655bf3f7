// At which places functions make calls, in programs of a real compiler.
#include <catch2/catch.hpp>

#include <elf.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <random>

#include "base/file.h"
#include "skip.h"
#include "symbols/code.h"
#include "symbols/library_calls.h"
#include "symbols/symbols.h"
#include "symbols_support.h"

namespace fs = std::filesystem;
using namespace rose::symbols;
using namespace rose::symbols::test;

namespace {

fs::path victim(const std::string& name) { return fs::path(ROSE_PROGRAMS_DIR) / name; }

std::vector<Place> places_of(const fs::path& binary, const std::string& function) {
  const auto file = CodeFile::open(binary);
  REQUIRE(file);
  const auto places = file->places(function);
  INFO((places ? std::string() : places.error().message));
  REQUIRE(places);
  return *places;
}

std::vector<std::string> names(const std::vector<Place>& places, PlaceKind kind) {
  std::vector<std::string> found;
  for (const Place& place : places)
    if (place.kind == kind) found.push_back(place.name);
  return found;
}

const Place* named(const std::vector<Place>& places, const std::string& name) {
  const auto found = std::find_if(places.begin(), places.end(), [&](const Place& p) { return p.name == name; });
  return found == places.end() ? nullptr : &*found;
}

bool contains(const std::vector<std::string>& list, const std::string& name) {
  return std::find(list.begin(), list.end(), name) != list.end();
}

}  // namespace

TEST_CASE("every instruction that can be probed is listed, system calls first, then returns and jump targets") {
  for (const char* binary : {"code_pie", "code_fixed", "code_noplt", "code_static", "code_library"}) {
    CAPTURE(binary);
    const auto places = places_of(victim(binary), "known_layout");
    std::vector<std::uint64_t> offsets;
    for (const Place& place : places) offsets.push_back(place.offset);
    // Offset 0 is missing because it is the entry, and offset 11 because its instruction has a lock prefix.
    CHECK(offsets == std::vector<std::uint64_t>{6, 19, 17, 18, 1, 8, 15});
    CHECK(places.front().kind == PlaceKind::syscall);
    CHECK(places.front().name == "write");
    CHECK(places.front().changes);
    CHECK(places[1].name == "ret");
    CHECK(places[1].kind == PlaceKind::other);
  }
}

TEST_CASE("code of arm64 is read on any machine") {
  const fs::path binary = victim("code_arm64");
  if (!fs::exists(binary)) rose::test::skip_case("clang-19 and mold are not installed");
  const auto places = places_of(binary, "update");
  CAPTURE(names(places, PlaceKind::syscall), names(places, PlaceKind::call));
  // `update` makes system calls through a stub in the .plt ("rename@plt"), through a function that calls such a stub
  // ("store"), and through a function with its own `svc` instruction ("direct"). It also makes a call through a
  // pointer.
  for (const char* name : {"rename@plt", "store", "direct"}) {
    CAPTURE(name);
    const Place* place = named(places, name);
    REQUIRE(place != nullptr);
    CHECK(place->kind == PlaceKind::syscall);
    CHECK(place->changes);
  }
  REQUIRE(named(places, "store") != nullptr);
  CHECK(named(places, "store")->depth == 1);
  CHECK(named(places, "store")->loop);
  CHECK(contains(names(places, PlaceKind::call), "through a pointer"));
  for (const Place& place : places) CHECK(place.offset % 4 == 0);
  // The kernel refuses probes on `svc`, the instruction of a system call, so the system call in `direct` is not listed.
  CHECK(named(places_of(binary, "direct"), "write") == nullptr);
  const auto file = CodeFile::open(binary);
  REQUIRE(file);
  const auto functions = list_functions(binary);
  REQUIRE(functions);
  const auto update =
      std::find_if(functions->begin(), functions->end(), [](const Function& f) { return f.name == "update"; });
  REQUIRE(update != functions->end());
  const auto exits = file->exits(update->address);
  REQUIRE(exits);
  CHECK(exits->whole);
  CHECK_FALSE(exits->returns.empty());
}

TEST_CASE("calls are found and named, direct, indirect and through stubs") {
  struct Row {
    const char* binary;
    const char* end;  // the suffix of the names of functions in another file
  };
  for (const Row& row : {Row{"code_pie", "@plt"}, Row{"code_fixed", "@plt"}, Row{"code_noplt", ""},
                         Row{"code_static", ""}, Row{"code_library", "@plt"}}) {
    CAPTURE(row.binary);
    const std::string end = row.end;
    const auto places = places_of(victim(row.binary), "update");
    CAPTURE(names(places, PlaceKind::syscall), names(places, PlaceKind::call));
    // Calls that change state come first, and direct ones before indirect ones. Then come calls that only read.
    const bool whole = std::string(row.binary) == "code_static";
    std::vector<std::string> calls = names(places, PlaceKind::syscall);
    if (whole) {
      for (std::string& name : calls)
        if (name.ends_with("pwrite") || name.ends_with("pwrite64")) name = "pwrite";
    }
    std::erase(calls, "abort");
    CHECK(calls ==
          std::vector<std::string>{"pwrite" + end, "fsync" + end, "flush_log", "raw_write", "flush_twice", "ask"});
    const auto others = names(places, PlaceKind::call);
    CHECK(contains(others, "only_computes"));
    CHECK(contains(others, "recursive"));
    CHECK(contains(others, "through a pointer"));
    CHECK(named(places, "flush_log")->depth == 1);
    CHECK(named(places, "flush_log")->changes);
    CHECK(named(places, "raw_write")->changes);
    CHECK(named(places, "flush_twice")->depth == 2);
    CHECK_FALSE(named(places, "ask")->changes);
    // Each place is listed once, and lies within the function.
    std::vector<std::uint64_t> offsets;
    for (const Place& place : places) offsets.push_back(place.offset);
    std::sort(offsets.begin(), offsets.end());
    CHECK(std::adjacent_find(offsets.begin(), offsets.end()) == offsets.end());
    const auto function = find_functions(victim(row.binary), {"update"}, {});
    REQUIRE(function);
    CHECK(offsets.front() > 0);
    CHECK(offsets.back() < function->front().size);
  }
}

TEST_CASE("sites that a backward jump encloses are in a loop") {
  for (const char* binary : {"code_pie", "code_static"}) {
    CAPTURE(binary);
    const auto places = places_of(victim(binary), "looped");
    REQUIRE(places.front().kind == PlaceKind::syscall);
    CHECK(places.front().loop);
    CHECK_FALSE(named(places, "ret")->loop);
    for (const Place& place : places_of(victim(binary), "known_layout")) CHECK_FALSE(place.loop);
  }
}

TEST_CASE("a tail call is a call, a jump table is not") {
  for (const char* binary : {"code_pie", "code_noplt", "code_static"}) {
    CAPTURE(binary);
    const auto commit = names(places_of(victim(binary), "commit"), PlaceKind::syscall);
    REQUIRE(commit.size() == 1);
    CHECK(commit.front().find("ftruncate") != std::string::npos);
    const auto cases = places_of(victim(binary), "cases");
    CAPTURE(names(cases, PlaceKind::syscall), names(cases, PlaceKind::call));
    for (const Place& place : cases) CHECK(place.name != "through a pointer");
    const auto calls = names(cases, PlaceKind::syscall);
    CHECK(calls.size() == 5);
    for (const char* name : {"open", "rename", "unlink", "puts", "close"})
      CHECK(std::any_of(calls.begin(), calls.end(),
                        [&](const std::string& call) { return call.find(name) != std::string::npos; }));
  }
}

TEST_CASE("a stripped program's code is read with the symbols of its debug file") {
  Folder folder;
  const auto with = victim("code_pie");
  const auto debug = folder / "p.debug";
  const auto stripped = folder / "p";
  run({"objcopy", "--only-keep-debug", with.native(), debug.native()});
  run({"objcopy", "--strip-all", "--add-gnu-debuglink=" + debug.native(), with.native(), stripped.native()});
  const auto expected = places_of(with, "update");
  const auto found = places_of(stripped, "update");
  REQUIRE(found.size() == expected.size());
  for (std::size_t i = 0; i < found.size(); ++i) {
    CHECK(found[i].offset == expected[i].offset);
    CHECK(found[i].name == expected[i].name);
  }
  fs::remove(debug);
  const auto file = CodeFile::open(stripped);
  REQUIRE(file);
  const auto none = file->places("update");
  REQUIRE_FALSE(none);
  CHECK(none.error().message.find("no function 'update'") != std::string::npos);
  CHECK_FALSE(none.error().hint.empty());
}

TEST_CASE("calls in C++ are named as in source code") {
  const auto places = places_of(victim("symbols_victim"), "main");
  const auto all = names(places, PlaceKind::call);
  CAPTURE(all);
  CHECK(contains(all, "Raft::append"));
  CHECK(contains(all, "Raft::inline_in_class"));
  CHECK(contains(all, "Queue<int>::push"));
  CHECK(places_of(victim("symbols_victim"), "Raft::append(Entry const&)").size() > 1);
}

TEST_CASE("opening a file that is no program is an error") {
  CHECK_FALSE(CodeFile::open("/nonexistent/program"));
  CHECK_FALSE(CodeFile::open("/dev/null"));
  CHECK_FALSE(CodeFile::open(ROSE_TEST_DIR));
}

TEST_CASE("damaged programs give errors or fewer sites, all within their bytes") {
  Folder folder;
  const auto original = rose::read_file(victim("code_noplt"));
  REQUIRE(original);
  std::mt19937_64 rng(7);
  const auto path = folder / "p";
  int read = 0;
  for (int round = 0; round < 250; ++round) {
    std::string bytes = *original;
    const auto at = [&](std::size_t bound) { return static_cast<std::size_t>(rng() % bound); };
    for (int change = 0; change < 8; ++change) {
      switch (rng() % 4) {
        case 0: bytes[at(sizeof(Elf64_Ehdr))] = static_cast<char>(rng()); break;  // damages the header
        case 1: bytes[sizeof(Elf64_Ehdr) + at(13 * sizeof(Elf64_Phdr))] = static_cast<char>(rng()); break;
        case 2:
          bytes[bytes.size() - 1 - at(40 * sizeof(Elf64_Shdr))] = static_cast<char>(rng());
          break;  // damages the sections
        default: bytes[at(bytes.size())] = static_cast<char>(rng()); break;
      }
    }
    if (rng() % 8 == 0) bytes.resize(at(bytes.size()));
    std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
    const auto file = CodeFile::open(path);
    if (!file) continue;
    for (const char* function : {"update", "commit", "main"}) {
      const auto places = file->places(function);
      if (!places) continue;
      ++read;
      CHECK(places->size() <= bytes.size());
    }
  }
  CHECK(read > 20);
}

TEST_CASE("library functions are rated by name") {
  struct Row {
    const char* name;
    const char* bare;
    bool library, enters, changes;
    int depth;
  };
  for (const Row& row :
       {Row{"write", "write", true, true, true, 0}, Row{"write", "write", false, false, false, 0},
        Row{"__libc_pwrite64", "__libc_pwrite64", true, true, true, 0},
        Row{"__open64_nocancel", "__open64_nocancel", true, true, true, 0},
        Row{"__read_chk", "__read_chk", true, true, false, 0},
        Row{"read@GLIBC_2.2.5", "read@GLIBC_2.2.5", true, true, false, 0}, Row{"fflush", "fflush", true, true, true, 1},
        Row{"fgets", "fgets", true, true, false, 1}, Row{"memcpy", "memcpy", true, false, false, 0},
        Row{"accept4", "accept4", true, true, true, 0}, Row{"syscall.write", "syscall.write", false, true, true, 0},
        Row{"syscall.read", "syscall.read", false, true, false, 0},
        Row{"os.(*File).WriteAt", "os.(*File).WriteAt", false, true, true, 1},
        Row{"_ZNSt10filesystem6renameERKNS_7__cxx114pathES3_", "std::filesystem::rename", true, true, true, 1},
        Row{"_ZNSo5flushEv", "std::ostream::flush", true, true, true, 1},
        Row{"raft_append", "raft_append", true, false, false, 0}}) {
    CAPTURE(row.name);
    const LibraryCall call = library_call(row.name, row.bare, row.library);
    CHECK(call.enters == row.enters);
    CHECK(call.changes == row.changes);
    CHECK(call.depth == row.depth);
  }
  CHECK(library_call("memcpy", "memcpy", true).quiet);
  CHECK(call_of_number(1, machine::kX86) == "write");
  CHECK(call_of_number(64, machine::kArm64) == "write");
  CHECK(call_of_number(1, machine::kArm64).empty());
  CHECK(call_of_number(100000, machine::kX86).empty());
}
