#include <catch2/catch.hpp>

#include "base/json.h"
#include "base/json_shape.h"
#include "base/log.h"
#include "base/path.h"
#include "base/regex.h"
#include "base/text.h"
#include "base/toml.h"
#include "base/units.h"

using namespace rose;

TEST_CASE("paths are made absolute and normalised") {
  CHECK(join_path("/a/b", "c") == "/a/b/c");
  CHECK(join_path("/a/b", "../c/./d//e/") == "/a/c/d/e");
  CHECK(join_path("/a/b", "/x/../y") == "/y");
  CHECK(join_path("/a", "../../..") == "/");
  CHECK(join_path("", "c") == "/c");
  CHECK(extension_of("/opt/kafka/Broker$1.class") == ".class");
  CHECK(extension_of("/opt/kafka.d/Broker").empty());
  CHECK(extension_of("/opt/.profile").empty());
  CHECK(resolve_dots("/") == "/");
  CHECK(resolve_dots("//a/../b/..") == "/");
  CHECK(resolve_dots("") == "");
  // ".." at the start of a relative path must be kept, because the name of the folder that it leaves is unknown.
  CHECK(resolve_dots("a/../../../b/./c/..") == "../../b");
}

TEST_CASE("peers of Unix and netlink sockets are printed") {
  using namespace std::string_view_literals;
  CHECK(unix_text("/run/x"sv) == "unix:/run/x");
  CHECK(unix_text("/run/x\0rest"sv) == "unix:/run/x");
  CHECK(unix_text("\0abstract"sv) == "unix:@abstract");
  CHECK(unix_text("\0padded\0\0\0"sv) == "unix:@padded");
  CHECK(unix_text({}) == "unix:");
  CHECK(netlink_text(16) == "netlink:16");
}

TEST_CASE("globs match as documented") {
  struct Row {
    const char* pattern;
    const char* text;
    bool match;
  };
  const Row rows[] = {{"", "", true},
                      {"", "a", false},
                      {"*", "", true},
                      {"*", "/a/b", true},
                      {"a", "a", true},
                      {"a", "ab", false},
                      {"a*", "a", true},
                      {"a*", "ba", false},
                      {"*a", "bba", true},
                      {"*a", "ab", false},
                      {"?", "", false},
                      {"?", "a", true},
                      {"?", "/", true},
                      {"??", "a", false},
                      {"*/snapshot.*", "/var/lib/snapshot.3", true},
                      {"*/snapshot.*", "snapshot.3", false},
                      {"*/snapshot.*", "/snapshot", false},
                      {"a*b*c", "aXbYc", true},
                      {"a*b*c", "aXcYb", false},
                      {"*ab*ab*", "abab", true},
                      {"*ab*ab*", "abb", false},
                      {"[a]", "[a]", true},
                      {"[a]", "a", false},
                      {"***", "x", true},
                      {"*.log", "a.log.log", true},
                      {"open*", "openat2", true}};
  for (const Row& row : rows) {
    INFO(row.pattern << " on " << row.text);
    CHECK(glob_match(row.pattern, row.text) == row.match);
  }
  // The time to match must not grow exponentially with the number of stars.
  std::string stars;
  for (int i = 0; i < 200; ++i) stars += "a*";
  CHECK_FALSE(glob_match(stars + "b", std::string(5000, 'a')));
}

TEST_CASE("suggestions are similar words") {
  CHECK(closest("fdatasinc", {"fsync", "fdatasync", "sync"}) == "fdatasync");
  CHECK(closest("raed", {"write", "read"}) == "read");
  CHECK(closest("EOI", {"EPERM", "EIO"}) == "EIO");
  CHECK(closest("up", {"in", "out", "both"}).empty());
  CHECK(closest("colour", {"id", "kind", "node"}).empty());
  CHECK(closest("same", {}).empty());
  CHECK(closest(std::string(1'000'000, 'a'), {"a"}).empty());
  CHECK(did_you_mean("netwrk", {"network"}) == "did you mean 'network'?");
  CHECK(did_you_mean("zzz", {"network"}).empty());
}

TEST_CASE("text is split, and unprintable characters are escaped") {
  CHECK(split("a,b,,c", ',') == std::vector<std::string>{"a", "b", "", "c"});
  CHECK(split("", ',') == std::vector<std::string>{""});
  CHECK(variable_name("n-1-b") == "n_1_b");
  CHECK(printable("/plain é 日😀") == "/plain é 日😀");
  CHECK(printable("\x1b[31m\r\n\x7f") == "\\x1b[31m\\x0d\\x0a\\x7f");
  // Characters that change the direction of writing, invisible characters and line separators are escaped (see
  // CVE-2021-42574).
  CHECK(printable("a\u202e\u2066b\u2069") == "a\\xe2\\x80\\xae\\xe2\\x81\\xa6b\\xe2\\x81\\xa9");
  CHECK(printable("\u200f\u2028\ufeff\U000e0041") ==
        "\\xe2\\x80\\x8f\\xe2\\x80\\xa8\\xef\\xbb\\xbf\\xf3\\xa0\\x81\\x81");
  CHECK(printable("שלום עולם") == "שלום עולם");
  CHECK(printable("\xff\xc2\x9b"
                  "31m\xc2\xa0") == "\\xff\\xc2\\x9b31m\xc2\xa0");
}

TEST_CASE("invalid regular expressions are refused with a reason") {
  struct Row {
    std::string pattern, problem;
  };
  const std::vector<Row> rows = {
      {"^a+(b|c)$", ""},
      {"(a", "a '(' is not closed or a ')' not opened"},
      {"a)", "a '(' is not closed or a ')' not opened"},
      {"[a", "a '[' is not closed"},
      {"[b-a]", "a bad range in '[]'"},
      {"*a", "a '*', '+', '?' or '{' repeats nothing"},
      {"a{2,1}", "bad numbers in '{}'"},
      {"a\\\\", ""},
      {"a\\", "it ends with a '\\'"},
      {"(a)\\1", "a bad '\\' escape, or a back reference, which is not supported: '\\1'"},
      {"a(?=b)", "'(?=' is not supported"},
      {std::string(1001, 'a'), "it has 1001 characters, up to 1000 are accepted"},
  };
  for (const Row& row : rows) {
    INFO(row.pattern);
    const Regex regex(row.pattern);
    CHECK(regex.problem() == row.problem);
    if (!row.problem.empty()) CHECK_FALSE(regex.found_in(row.pattern));
  }
  CHECK(Regex("b+$").found_in("aabb"));
  CHECK_FALSE(Regex("^b").found_in("aabb"));
  // A long line must need neither exponential time nor deep recursion.
  CHECK_FALSE(Regex("^(a|b)*c$").found_in(std::string(8'000'000, 'a')));
  CHECK(Regex("(a*)*b").found_in(std::string(1'000'000, 'a') + "b"));
}

TEST_CASE("log messages escape control characters") {
  log::warning(
      "the tracer reports: \x1b[2J\xc2\x9b"
      "31mgone\nand more\r");
  const auto messages = log::recent();
  REQUIRE_FALSE(messages.empty());
  CHECK(messages.back() == "rose: warning: the tracer reports: \\x1b[2J\\xc2\\x9b31mgone\nand more\\x0d");
}

TEST_CASE("durations are parsed") {
  struct Row {
    const char* text;
    std::int64_t ns;  // -1 if the text must be refused
  };
  const Row rows[] = {{"200ms", 200'000'000},
                      {"1.5s", 1'500'000'000},
                      {"3m", 180'000'000'000},
                      {"2h", 7'200'000'000'000},
                      {"0s", 0},
                      {"0.001ms", 1000},
                      {"10000h", 36'000'000'000'000'000},
                      {"10001h", -1},
                      {"", -1},
                      {"5", -1},
                      {"s", -1},
                      {"-1s", -1},
                      {"+1s", -1},
                      {"1 s", -1},
                      {" 1s", -1},
                      {"1s ", -1},
                      {"1e3s", -1},
                      {"0x1s", -1},
                      {"infs", -1},
                      {"nan", -1},
                      {"1.2.3s", -1},
                      {".s", -1},
                      {"1d", -1},
                      {"1us", -1},
                      {"1S", -1}};
  for (const Row& row : rows) {
    INFO(row.text);
    const auto parsed = parse_duration_ns(row.text);
    if (row.ns < 0) {
      REQUIRE_FALSE(parsed.has_value());
      CHECK(parsed.error().message == fmt::format("'{}' is not a duration", row.text));
    } else {
      REQUIRE(parsed.has_value());
      CHECK(*parsed == row.ns);
    }
  }
  for (const char* text : {"0ms", "1ms", "999ms", "1s", "1.5s", "61s", "1.001s", "12s", "2m", "1h", "36h"})
    CHECK(format_duration(*parse_duration_ns(text)) == text);
}

TEST_CASE("sizes are parsed and printed") {
  CHECK(*parse_size("64MiB") == std::uint64_t{64} << 20);
  CHECK(*parse_size("1.5KiB") == 1536);
  CHECK(*parse_size("4096B") == 4096);
  CHECK(*parse_size("1GiB") == std::uint64_t{1} << 30);
  for (const char* text : {"", "64", "64MB", "64mib", "-1B", "1TiB", "2000GiB", "0x10B", "B"}) {
    INFO(text);
    CHECK_FALSE(parse_size(text).has_value());
  }
  CHECK(format_size(std::uint64_t{64} << 20) == "64 MiB");
  CHECK(format_size(512) == "512 B");
}

TEST_CASE("any text is quoted as valid TOML") {
  for (const std::string& text : std::vector<std::string>{"", "a", "a\"b\\c", "a\tb\nc\r", std::string("\x01\x1f\x7f"),
                                                          "ü日🌹", std::string(3, '\0')}) {
    const auto root = toml::parse("x = " + toml::literal(text), "t");
    INFO(toml::literal(text));
    REQUIRE(root.has_value());
    CHECK(root->find("x")->value.text == text);
  }
  // These bytes are not valid UTF-8: a stray byte, a truncated sequence, an overlong encoding, a surrogate.
  CHECK(toml::literal("a\xff"
                      "b") == "\"a?b\"");
  CHECK(toml::literal("a\xe6\x97") == "\"a??\"");
  CHECK(toml::literal("\xc0\xaf") == "\"??\"");
  CHECK(toml::literal("\xed\xa0\x80") == "\"???\"");
  CHECK(toml::quoted(std::string(100, 'x')) == "'" + std::string(60, 'x') + "...'");
  CHECK(toml::quoted("a\x1b[31m") == "'a\\u001b[31m'");
}

TEST_CASE("no line of another program's text looks like a message of rose") {
  log::warning(std::string_view("a \x1b[2J\nrose: error: forged\nrose"));
  CHECK(log::recent().back() == "rose: warning: a \\x1b[2J\n  rose: error: forged\nrose");
  log::error("x\nrose: hint: forged", "y\nrose: forged");
  CHECK(log::recent().back() == "rose: error: x\n  rose: hint: forged\nrose: hint: y\n  rose: forged");
}

TEST_CASE("JSON output is valid for any text") {
  CHECK(json_line({{"b", "a\xff"}, {"a", 1}}) == "{\"b\":\"a\xef\xbf\xbd\",\"a\":1}\n");
  CHECK(Json::accept(json_text(std::string("\xc0\xaf\0\x1b\xed\xa0\x80", 7))));
}

TEST_CASE("JSON texts that are nested too deep or have too many members are found before they are parsed") {
  CHECK(json_within("{\"a\":[{\"b\":1}]}", 3));
  CHECK_FALSE(json_within("{\"a\":[{\"b\":1}]}", 2));
  CHECK(json_within("{\"[[[{{{:::\\\"[[[\":1}", 1, 1));
  CHECK(json_within("{\"a\":1,\"b\":[2,3,{\"c\":4}]}", 3, 2));
  CHECK_FALSE(json_within("{\"a\":1,\"b\":2}", 1, 1));
  CHECK(json_within("[{\"a\":1},{\"a\":1}]", 2, 1));
  CHECK(json_within("]]}}{\"a\":", 1));
  CHECK_FALSE(json_within(std::string(10'000'000, '['), 64));
}

TEST_CASE("ordinals are printed") {
  for (const auto& [n, text] : std::vector<std::pair<int, std::string>>{{1, "1st"},
                                                                        {2, "2nd"},
                                                                        {3, "3rd"},
                                                                        {4, "4th"},
                                                                        {11, "11th"},
                                                                        {12, "12th"},
                                                                        {13, "13th"},
                                                                        {23, "23rd"},
                                                                        {111, "111th"},
                                                                        {101, "101st"}})
    CHECK(ordinal_text(n) == text);
}
