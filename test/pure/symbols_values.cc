// Where values stand, in programs that a real compiler made.
#include <catch2/catch.hpp>

#include <algorithm>
#include <filesystem>
#include <set>

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

TEST_CASE("without debug information arguments are where the ABI has them") {
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

TEST_CASE("what a function returns is read at each of its returns") {
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
  // At -O2 the call becomes a jump: no return is its own.
  const Answer jumps = ask("value_fast", "ends_in_a_jump:return");
  CHECK(jumps.sites.empty());
  CHECK(jumps.refused.find("'negated'") != std::string::npos);
  CHECK(ask("value_victim", "ends_in_a_jump:return").sites.size() == 1);
}

TEST_CASE("bits are told by their form") {
  const auto told = [](Form::Kind kind, std::uint8_t size, std::uint64_t bits, std::uint8_t shift = 0) {
    Form form;
    form.kind = kind;
    form.size = size;
    form.shift = shift;
    return tell_value(form, bits, {}).text;
  };
  using Kind = Form::Kind;
  CHECK(told(Kind::integer, 4, 0xffffffff) == "-1");
  CHECK(told(Kind::integer, 4, 0xdeadbeef00000005) == "5");
  CHECK(told(Kind::natural, 4, 0xffffffffffffffff) == "4294967295");
  CHECK(told(Kind::natural, 8, ~0ULL) == "18446744073709551615");
  CHECK(told(Kind::integer, 2, 0x0000ffff00000000, 32) == "-1");
  CHECK(told(Kind::boolean, 1, 0x100) == "false");
  CHECK(told(Kind::boolean, 1, 1) == "true");
  CHECK(told(Kind::pointer, 8, 0) == "null");
  CHECK(told(Kind::pointer, 8, 0x1234) == "0x1234");
  CHECK(told(Kind::character, 1, 'a') == "'a'");
  CHECK(told(Kind::real, 8, 0x3ff8000000000000) == "1.5");
  CHECK(told(Kind::real, 4, 0x3fc00000) == "1.5");
  CHECK(told(Kind::raw, 8, 0xffffffff) == "4294967295 (as int -1)");
  CHECK(told(Kind::raw, 8, ~0ULL) == "-1");
  CHECK(told(Kind::raw, 8, 7) == "7");
  Form text;
  text.kind = Kind::text;
  CHECK(tell_value(text, 3, "abc").text == "\"abc\"");
  CHECK(tell_value(text, 100, "abc").text == "\"abc\"...");
  CHECK(tell_value(text, 3, "a\nb").text.find('\n') == std::string::npos);
  Form shade;
  shade.kind = Kind::enumeration;
  shade.size = 1;
  shade.names = std::make_shared<const std::map<std::int64_t, std::string>>(std::map<std::int64_t, std::string>{{1, "red"}, {-1, "none"}});
  CHECK(tell_value(shade, 1, {}).text == "red");
  CHECK(tell_value(shade, 0xff, {}).text == "none");
  CHECK(tell_value(shade, 9, {}).text == "9");
}
