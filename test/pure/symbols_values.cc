// Where values are stored, in programs of a real compiler.
#include <catch2/catch.hpp>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>

#include "skip.h"
#include "symbols/code.h"
#include "symbols/symbols.h"
#include "symbols/values.h"

namespace fs = std::filesystem;
using namespace rose;
using namespace rose::symbols;

namespace {

fs::path victim(const std::string& name) { return fs::path(ROSE_PROGRAMS_DIR) / name; }

Answer ask(const std::string& binary, const std::string& text) {
  auto file = ValueFile::open(victim(binary));
  REQUIRE(file);
  const auto query = parse_query(text);
  REQUIRE(query);
  auto answer = file->answer(*query);
  INFO(binary << " " << text << (answer ? "" : ": " + answer.error().message));
  REQUIRE(answer);
  return *answer;
}

}  // namespace

TEST_CASE("arguments on arm64 are located as its ABI defines") {
  if (!std::filesystem::exists(std::filesystem::path(ROSE_PROGRAMS_DIR) / "code_arm64"))
    rose::test::skip_case("clang-19 and mold are not installed");
  for (int n = 1; n <= 8; ++n) {
    const Answer answer = ask("code_arm64", "many(arg" + std::to_string(n) + ")");
    REQUIRE(answer.sites.size() == 1);
    CHECK(answer.sites[0].fetch.kind == Fetch::Kind::word);
    CHECK(answer.sites[0].fetch.at.base == n - 1);
  }
  // On arm64, the return address is in a register, so the first argument on the stack is at offset 0.
  const Answer stack = ask("code_arm64", "many(arg9)");
  REQUIRE(stack.sites.size() == 1);
  CHECK(stack.sites[0].fetch.kind == Fetch::Kind::memory);
  CHECK(stack.sites[0].fetch.at.base == 31);
  CHECK(stack.sites[0].fetch.at.offsets == std::vector<std::uint64_t>{0});
  const Answer callers = ask("code_arm64", "many:callers");
  REQUIRE(callers.sites.size() == 1);
  CHECK(callers.sites[0].fetch.at.base == 30);
}

TEST_CASE("without debug information arguments are located as the ABI defines") {
  const std::uint8_t registers[] = {5, 4, 1, 2, 8, 9};
  for (int n = 1; n <= 6; ++n) {
    const Answer answer = ask("value_bare", "plain(arg" + std::to_string(n) + ")");
    REQUIRE(answer.sites.size() == 1);
    CHECK(answer.sites[0].fetch.kind == Fetch::Kind::word);
    CHECK(answer.sites[0].fetch.at.base == registers[n - 1]);
    CHECK(answer.sites[0].form.kind == Form::Kind::raw);
    CHECK(answer.sites[0].function == "plain");
  }
  const Answer stack = ask("value_bare", "plain(arg8)");
  REQUIRE(stack.sites.size() == 1);
  CHECK(stack.sites[0].fetch.kind == Fetch::Kind::memory);
  CHECK(stack.sites[0].fetch.at.base == 7);
  CHECK(stack.sites[0].fetch.at.offsets == std::vector<std::uint64_t>{16});

  auto file = ValueFile::open(victim("value_bare"));
  REQUIRE(file);
  for (const char* text : {"plain(number)", "plain(arg5->width)", "plain(*arg5)", "value_victim.cc:30:sum"}) {
    const auto answer = file->answer(*parse_query(text));
    CAPTURE(text);
    REQUIRE(!answer);
    CHECK(answer.error().message.find("debug information") != std::string::npos);
  }
  const auto missing = file->answer(*parse_query("plian(arg1)"));
  REQUIRE(!missing);
  CHECK(missing.error().kind == ErrorKind::input);
}

TEST_CASE("a function's result is read at each of its returns") {
  for (const char* binary : {"value_victim", "value_fast", "value_bare"}) {
    CAPTURE(binary);
    auto code = CodeFile::open(victim(binary));
    REQUIRE(code);
    const auto functions = find_functions(victim(binary), {"negated"}, {});
    REQUIRE(functions);
    const auto exits = code->exits(functions->front().address);
    REQUIRE(exits);
    CHECK(exits->whole);
    CHECK(!exits->returns.empty());
    const auto places = code->places("negated");
    REQUIRE(places);
    std::set<std::uint64_t> returns(exits->returns.begin(), exits->returns.end());
    for (const Place& place : *places)
      if (place.name.starts_with("ret")) CHECK(returns.contains(functions->front().offset + place.offset));
    CHECK(ask(binary, "negated:return").sites.size() == exits->returns.size());
  }
  // At -O2, the call at the end becomes a jump, so that the function never returns by itself.
  const Answer jumps = ask("value_fast", "ends_in_a_jump:return");
  CHECK(jumps.sites.empty());
  CHECK(jumps.refused.find("'negated'") != std::string::npos);
  CHECK(ask("value_victim", "ends_in_a_jump:return").sites.size() == 1);
}

TEST_CASE("arguments are found by name and number, with types and members, optimised or not") {
  using Kind = Form::Kind;
  struct Expected {
    const char* query;
    Kind form;
    int size;
    const char* type;
  };
  const Expected all[] = {
      {"plain(number)", Kind::integer, 4, "int"},
      {"plain(arg1)", Kind::integer, 4, "int"},
      {"plain(large)", Kind::integer, 8, "long int"},
      {"plain(small)", Kind::natural, 1, "unsigned char"},
      {"plain(text)", Kind::text, 8, "const char*"},
      {"plain(box)", Kind::pointer, 8, "const Box*"},
      {"plain(box->width)", Kind::integer, 4, "int"},
      {"plain(box.inner.weight)", Kind::integer, 8, "long int"},
      {"plain(box->inner.label)", Kind::text, 8, "const char*"},
      {"plain(box->title)", Kind::text, 8, "string"},
      {"plain(box->next->inner.weight)", Kind::integer, 8, "long int"},
      {"plain(shade)", Kind::enumeration, 1, "Shade"},
      {"plain(flag)", Kind::boolean, 1, "bool"},
      {"plain(last)", Kind::integer, 2, "short int"},
      {"Ledger::enter(this->total_)", Kind::integer, 8, "long int"},
      {"Ledger::enter(title)", Kind::text, 8, "const string&"},
      {"Ledger::enter(amount)", Kind::integer, 4, "int"},
      {"Ledger::enter(arg3)", Kind::integer, 4, "int"},
  };
  for (const char* binary : {"value_victim", "value_fast"}) {
    for (const Expected& one : all) {
      CAPTURE(binary, one.query);
      const Answer answer = ask(binary, one.query);
      CHECK(answer.refused.empty());
      REQUIRE(answer.sites.size() == 1);
      const Site& site = answer.sites[0];
      CHECK(site.form.kind == one.form);
      if (one.form != Kind::text) CHECK(int{site.form.size} == one.size);
      CHECK(site.form.type == one.type);
    }
  }
  // In an optimised program, the argument is read from its register at the entry. Otherwise it is read from the frame,
  // after the frame has been set up.
  const auto entry = find_functions(victim("value_fast"), {"plain"}, {});
  REQUIRE(entry);
  const Site fast = ask("value_fast", "plain(number)").sites.at(0);
  CHECK(fast.offset == entry->front().offset);
  CHECK(fast.fetch.kind == Fetch::Kind::word);
  CHECK(fast.fetch.at.base == 5);
  const auto slow_entry = find_functions(victim("value_victim"), {"plain"}, {});
  REQUIRE(slow_entry);
  const Site slow = ask("value_victim", "plain(number)").sites.at(0);
  CHECK(slow.offset > slow_entry->front().offset);
  CHECK(slow.fetch.kind == Fetch::Kind::memory);
  // The caller puts this argument on the stack, so it is there at the entry.
  CHECK(ask("value_fast", "plain(flag)").sites.at(0).fetch.at.offsets == std::vector<std::uint64_t>{8});

  const auto names = ask("value_victim", "plain(shade)").sites.at(0).form.names;
  REQUIRE(names);
  CHECK(*names == std::map<std::int64_t, std::string>{{1, "red"}, {2, "green"}, {40, "deep_blue"}});
}

TEST_CASE("results have types, and variables are found at lines") {
  CHECK(ask("value_fast", "negated:return").sites.at(0).form.type == "int");
  CHECK(ask("value_fast", "Ledger::enter:return").sites.at(0).form.type == "long int");
  const auto line = [](std::string_view mark) {
    std::ifstream source(std::string(ROSE_TEST_DIR) + "/programs/value_victim.cc");
    std::string text;
    for (int n = 1; std::getline(source, text); ++n)
      if (text.find(mark) != std::string::npos) return std::to_string(n);
    return std::string("0");
  };
  const std::string forgets = line("// line: forgets");
  for (const char* binary : {"value_victim", "value_fast"}) {
    CAPTURE(binary);
    const Answer answer = ask(binary, "value_victim.cc:" + forgets + ":doubled");
    REQUIRE(!answer.sites.empty());
    CHECK(answer.sites[0].form.type == "int");
    // The address of a global variable depends on where the file is loaded, so it is relative to that of the
    // instruction.
    const Answer global = ask(binary, "value_victim.cc:" + forgets + ":in_all");
    REQUIRE(!global.sites.empty());
    CHECK(global.sites[0].fetch.at.base == 16);
  }
  CHECK(!ask("value_victim", "value_victim.cc:" + forgets + ":gone").sites.empty());
  const Answer gone = ask("value_fast", "value_victim.cc:" + forgets + ":gone");
  CHECK(gone.sites.empty());
  CHECK(gone.refused.find("optimized out at that address") != std::string::npos);
  // If a line has no code, the next line that has code is used.
  const Answer next =
      ask("value_victim", "value_victim.cc:" + std::to_string(std::stoi(line("int forgets(int gone)")) - 1) + ":gone");
  REQUIRE(next.remarks.size() == 1);
  CHECK(next.remarks[0].find("has no code of its own") != std::string::npos);
  const Answer real = ask("value_fast", "plain(real)");
  CHECK(real.sites.empty());
  CHECK(real.refused.find("floating-point") != std::string::npos);
}

TEST_CASE("a function's caller is found by its return address, also after the file was closed") {
  const Answer callers = ask("value_victim", "plain:callers");
  REQUIRE(callers.sites.size() == 1);
  const Site& site = callers.sites[0];
  CHECK(site.fetch.kind == Fetch::Kind::code);
  CHECK(site.fetch.at.base == 7);
  const auto functions = list_functions(victim("value_victim"));
  REQUIRE(functions);
  const auto find = [&](const std::string& name) {
    return *std::find_if(functions->begin(), functions->end(), [&](const Function& one) { return one.name == name; });
  };
  const Function plain = find("plain"), negated = find("negated");
  CHECK(site.offset == plain.offset);
  const auto describe = [&](std::uint64_t address) {
    return format_value(site.form, address - plain.address, {}).text;
  };
  CAPTURE(describe(negated.address + 1));
  // The return address of a call that never returns may lie directly after the last instruction of its function.
  CHECK(describe(negated.address + negated.size).starts_with("negated (value_victim.cc:"));
  CHECK(describe(negated.address + 1).starts_with("negated (value_victim.cc:"));
  CHECK(describe(std::uint64_t{1} << 40) == "code outside the file");
}

TEST_CASE("the function that starts a thread is the caller of the thread's function") {
  // The C library calls the function of the thread, but what started the thread is main().
  const Site exchange = ask("hostile_files", "exchange:callers").sites.at(0);
  CHECK(format_value(exchange.form, std::uint64_t{1} << 40, {}).text == "a library, from main");
  // plain() is also called directly by another function, so rose must not say that a function passed it to a library.
  const Site plain = ask("value_victim", "plain:callers").sites.at(0);
  CHECK(format_value(plain.form, std::uint64_t{1} << 40, {}).text == "code outside the file");
  // The C++ library calls the function of a std::thread through a class that is generated for that thread.
  for (const char* binary : {"value_victim", "value_fast"}) {
    CAPTURE(binary);
    const Site work = ask(binary, "negated:callers").sites.at(0);
    const auto functions = list_functions(victim(binary));
    REQUIRE(functions);
    const auto find = [&](const std::string& name) {
      return std::find_if(functions->begin(), functions->end(),
                          [&](const Function& one) { return one.name.find(name) != std::string::npos; });
    };
    const std::uint64_t runs = find("_M_run")->address, negated = find("negated")->address;
    CHECK(format_value(work.form, runs + 1 - negated, {}).text == "a library, from main");
  }
}

TEST_CASE("where a function was inlined, the code around it is its caller") {
  const Answer callers = ask("stack_victim", "put_line:callers");
  CHECK(ask("stack_victim", "stacks::put_line:callers").sites.size() == callers.sites.size());
  REQUIRE(!callers.sites.empty());
  for (const Site& site : callers.sites) {
    CHECK(site.fetch.at.base == kNoRegister);
    const std::string text = format_value(site.form, site.fetch.at.offsets[0], {}).text;
    CAPTURE(text);
    CHECK(text.find("put_line") == std::string::npos);
    CHECK(text.find("append(") != std::string::npos);
    CHECK(text.find(" (stack_victim.cc:") != std::string::npos);
  }
  auto file = ValueFile::open(victim("stack_victim"));
  REQUIRE(file);
  const std::vector<std::string> possible = file->questions("put_line");
  CHECK(std::find(possible.begin(), possible.end(), "put_line:callers") != possible.end());
}

TEST_CASE("the caller in inlined code is the inlined function, with the function that it was inlined into") {
  const Answer callers = ask("stack_victim", "checkpoint:callers");
  REQUIRE(callers.sites.size() == 1);
  const auto functions = list_functions(victim("stack_victim"));
  const auto copies = list_inlined(victim("stack_victim"));
  REQUIRE(functions);
  REQUIRE(copies);
  const auto find = [](const std::vector<Function>& all, const std::string& name) {
    return *std::find_if(all.begin(), all.end(),
                         [&](const Function& one) { return one.name.find(name) != std::string::npos; });
  };
  const auto describe = [&](std::uint64_t address) {
    return format_value(callers.sites[0].form, address - find(*functions, "checkpoint").address, {}).text;
  };
  const std::string told = describe(find(*copies, "put_line").address + 1);
  CAPTURE(told);
  CHECK(told.starts_with("stacks::put_line (stack_victim.cc:20), inlined into stacks::Store::append("));
  CHECK(told.ends_with(" (stack_victim.cc:31)"));
  CHECK(describe(find(*functions, "odd_way").address + 1).find("odd_way") != std::string::npos);
}

TEST_CASE("a call in an inlined function is one of that function") {
  const Answer calls = ask("value_fast", "jots_inlined:calls");
  std::vector<std::string> texts;
  for (const Site& site : calls.sites) texts.push_back(format_value(site.form, site.fetch.at.offsets[0], {}).text);
  CAPTURE(texts);
  REQUIRE(texts.size() == 2);
  const std::size_t inlined = texts[0].starts_with("negated (value_victim.cc:") ? 0 : 1;
  CHECK(texts[inlined].ends_with("), in the inlined jot"));
  CHECK(texts[1 - inlined].starts_with("ends_in_a_jump (value_victim.cc:"));
  CHECK(texts[1 - inlined].ends_with(")"));
}

TEST_CASE("a function's calls are found with callee and line, and its possible queries are listed") {
  const Answer calls = ask("value_fast", "ends_in_a_jump:calls");
  CHECK(ask("value_fast", "negated:calls").refused.find("calls nothing") != std::string::npos);
  REQUIRE(!calls.sites.empty());
  REQUIRE(calls.sites[0].form.names);
  for (const Site& site : calls.sites) {
    CHECK(site.fetch.at.base == kNoRegister);
    const std::string text = format_value(site.form, site.fetch.at.offsets[0], {}).text;
    CHECK(text.find(" (") != std::string::npos);
    CHECK(text.ends_with(")"));
  }
  auto file = ValueFile::open(victim("value_fast"));
  REQUIRE(file);
  const auto questions = file->questions("plain");
  for (const char* wanted : {"plain(number)", "plain(text)", "plain(box)", "plain(box->width)", "plain(shade)",
                             "plain:return", "plain:calls", "plain:callers"})
    CHECK(std::find(questions.begin(), questions.end(), wanted) != questions.end());
  for (const std::string& question : questions) {
    CAPTURE(question);
    const auto query = parse_query(question);
    REQUIRE(query);
    CHECK(file->answer(*query));
  }
  CHECK(file->questions("no_such_function").empty());
  auto bare = ValueFile::open(victim("value_bare"));
  REQUIRE(bare);
  const auto raw = bare->questions("negated");
  CHECK(std::find(raw.begin(), raw.end(), "negated(arg1)") != raw.end());
}

TEST_CASE("a query for something missing is an error that lists what exists") {
  const std::pair<const char*, const char*> wrong[] = {
      {"plain(nubmer)", "number, large, small"},
      {"plain(arg20)", "number, large, small"},
      {"plain(box->height)", "width, inner, next"},
      {"plain(box->inner)", "weight, label"},
      {"plain(*number)", "not a pointer"},
      {"plain(number.width)", "not a structure"},
      {"plain(box->depths)", "array"},
      {"value_victim.cc:99999:x", "no code"},
      {"value_witness.cc:10:x", "no source file"},
      {"plian(number)", "plian"},
  };
  for (const char* binary : {"value_victim", "value_fast"}) {
    auto file = ValueFile::open(victim(binary));
    REQUIRE(file);
    for (const auto& [text, words] : wrong) {
      const auto answer = file->answer(*parse_query(text));
      CAPTURE(binary, text);
      REQUIRE(!answer);
      CHECK(answer.error().kind == ErrorKind::input);
      INFO(answer.error().message << " / " << answer.error().hint);
      CHECK((answer.error().message + answer.error().hint).find(words) != std::string::npos);
    }
  }
}

TEST_CASE("values are printed by their form") {
  const auto format = [](Form::Kind kind, std::uint8_t size, std::uint64_t bits, std::uint8_t shift = 0) {
    Form form;
    form.kind = kind;
    form.size = size;
    form.shift = shift;
    return format_value(form, bits, {}).text;
  };
  using Kind = Form::Kind;
  CHECK(format(Kind::integer, 4, 0xffffffff) == "-1");
  CHECK(format(Kind::integer, 4, 0xdeadbeef00000005) == "5");
  CHECK(format(Kind::natural, 4, 0xffffffffffffffff) == "4294967295");
  CHECK(format(Kind::natural, 8, ~0ULL) == "18446744073709551615");
  CHECK(format(Kind::integer, 2, 0x0000ffff00000000, 32) == "-1");
  CHECK(format(Kind::boolean, 1, 0x100) == "false");
  CHECK(format(Kind::boolean, 1, 1) == "true");
  CHECK(format(Kind::pointer, 8, 0) == "null");
  CHECK(format(Kind::pointer, 8, 0x1234) == "0x1234");
  CHECK(format(Kind::character, 1, 'a') == "'a'");
  CHECK(format(Kind::real, 8, 0x3ff8000000000000) == "1.5");
  CHECK(format(Kind::real, 4, 0x3fc00000) == "1.5");
  CHECK(format(Kind::raw, 8, 0xffffffff) == "4294967295 (as int -1)");
  CHECK(format(Kind::raw, 8, ~0ULL) == "-1");
  CHECK(format(Kind::raw, 8, 7) == "7");
  Form text;
  text.kind = Kind::text;
  CHECK(format_value(text, 0, "").text == "\"\"");
  CHECK(format_value(text, 3, "abc").text == "\"abc\"");
  CHECK(format_value(text, 100, "abc").text == "\"abc\"...");
  CHECK(format_value(text, 3, "a\nb").text.find('\n') == std::string::npos);
  Form shade;
  shade.kind = Kind::enumeration;
  shade.size = 1;
  shade.names = std::make_shared<const std::map<std::int64_t, std::string>>(
      std::map<std::int64_t, std::string>{{1, "red"}, {-1, "none"}});
  CHECK(format_value(shade, 1, {}).text == "red");
  CHECK(format_value(shade, 0xff, {}).text == "none");
  CHECK(format_value(shade, 9, {}).text == "9");
}
