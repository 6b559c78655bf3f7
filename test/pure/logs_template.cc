#include "logs/mask.h"
#include "logs_support.h"

using namespace rose::logs;
using namespace rose::logs::test;

TEST_CASE("variable parts of a message are masked") {
  struct Row {
    const char* text;
    const char* masked;
  };
  const Row rows[] = {
      {"dial tcp 127.0.0.1:6223: connection refused", "dial tcp <addr>: connection refused"},
      {"saved record 17, 400000 bytes", "saved record <n>, <n> bytes"},
      {"open /var/lib/x/segment.17: No space left on device", "open <path>: No space left on device"},
      {"[Errno 28] No space left on device", "[Errno 28] No space left on device"},
      {"request 0x7f3a12 of 3fa85f64-5717-4562-b3fc-2c963f66afa6", "request <id> of <id>"},
      {"GET http://app:80/x took 3ms", "GET <url> took <n>"},
      {"peer fe80::1 is gone", "peer <addr> is gone"},
      {"exited with code 137", "exited with code 137"},
      {"first line 1\nsecond 2", "first line <n>"},
      {"", ""},
  };
  for (const Row& row : rows) {
    std::string masked;
    mask(row.text, masked);
    CHECK(masked == row.masked);
  }
}

TEST_CASE("messages that differ in a name share a template; in error, level or logger they do not") {
  Templates kinds;
  const auto kind = [&](const char* text, Level level = Level::info, const char* logger = "") {
    std::string masked;
    mask(text, masked);
    return kinds.learn(masked, level, logger);
  };
  const TemplateId saved = kind("snapshot of table Users was saved in store a1");
  CHECK(kind("snapshot of table Orders was saved in store a1") == saved);
  CHECK(kinds.text(saved) == "snapshot of table <*> was saved in store a<n>");
  CHECK(kind("snapshot of table Users was saved in store a1", Level::error) != saved);
  CHECK(kind("snapshot of table Users was saved in store a1", Level::info, "other") != saved);
  CHECK(kind("cannot save: No space left on device") != kind("cannot save: Permission denied"));
  CHECK(kind("cannot save: ENOSPC") != kind("cannot save: EIO"));
  CHECK(kind("link eth0 is up") != kind("link eth0 is down"));
}

TEST_CASE("a long message has one template whatever the length of its paths") {
  const auto masked = [](const std::string& folder) {
    std::string text = "starting";
    for (int i = 0; i < 60; ++i)
      text += fmt::format(" setting-{}=\"{}/file\"", static_cast<char>('a' + i % 26), folder),
          text += " further words of it";
    std::string into;
    mask(text, into);
    return into;
  };
  CHECK(masked("/tmp") == masked("/var/lib/machines/one/of/many/data"));
  std::string endless;
  mask(std::string(std::size_t{1} << 20, 'x'), endless);
  CHECK(endless.size() <= kMostToMask);
}

TEST_CASE("templates of several logs are merged into one set") {
  Templates all;
  const Logs normal = read_files({{log_file("redis.normal"), "n1"}}, all);
  const std::size_t before = all.size();
  Templates again;
  const Logs same = read_files({{log_file("redis.normal"), "n1"}}, again);
  const Logs twice = read_files({{log_file("redis.normal"), "n1"}}, all);
  CHECK(all.size() == before);
  REQUIRE(twice.nodes[0].messages.size() == normal.nodes[0].messages.size());
  for (std::size_t i = 0; i < normal.nodes[0].messages.size(); ++i)
    CHECK(twice.nodes[0].messages[i].kind == normal.nodes[0].messages[i].kind);
}
