// Messages between nodes: each send is matched with a receive, and what differs in failing runs is reported.
#include <catch2/catch.hpp>

#include <algorithm>
#include <random>

#include "explain_runs.h"

using namespace rose;
using explain::Group;
using script::Case;

namespace {

const explain::DifferenceText* find(const explain::Explanation& e, const std::string& words, bool missing = false) {
  const auto found = std::find_if(e.differences.begin(), e.differences.end(),
                                  [&](const auto& d) { return d.words == words && d.missing == missing; });
  return found == e.differences.end() ? nullptr : &*found;
}

const explain::StoryLine* line(const explain::Explanation& e, const std::string& part) {
  const auto found = std::find_if(e.story.begin(), e.story.end(),
                                  [&](const auto& one) { return one.text.find(part) != std::string::npos; });
  return found == e.story.end() ? nullptr : &*found;
}

script::Run put_on_two(int number) {
  return script::Run(number)
      .enters(10, "start")
      .enters(100, "request")
      .sends(101, "n1", "n2", "put 17", 1)
      .takes(102, "n1", "n2", 5)
      .enters(103, "apply", 5, "n2");
}

}  // namespace

TEST_CASE("sends and receives are matched by sequence numbers, however calls split the data", "[explain]") {
  // Three sends arrive in two calls, of which the first ends within the second send. The sequence numbers wrap around
  // meanwhile.
  std::vector<schedule::Message> messages;
  const auto add = [&](std::int64_t ts, const std::string& node, bool taken, std::uint32_t end, std::uint32_t bytes,
                       const std::string& data, int tid) {
    const bool first = node == "n1";
    messages.push_back({.ts_ns = ts,
                        .node = node,
                        .pid = 1,
                        .tid = tid,
                        .taken = taken,
                        .tcp = true,
                        .own = first ? "10.0.0.1" : "10.0.0.2",
                        .peer = first ? "10.0.0.2" : "10.0.0.1",
                        .own_port = static_cast<std::uint16_t>(first ? 45000 : 7000),
                        .peer_port = static_cast<std::uint16_t>(first ? 7000 : 45000),
                        .end = end,
                        .bytes = bytes,
                        .data = data});
  };
  add(100, "n1", false, 0xfffffffe, 6, "put 17", 3);
  add(110, "n1", false, 4, 6, "put 18", 3);
  add(115, "n2", true, 0, 8, "put 17pu", 9);
  add(120, "n1", false, 10, 6, "put 19", 3);
  add(130, "n2", true, 10, 10, "t 18put 19", 8);
  add(140, "n1", false, 16, 6, "put 20", 3);
  add(150, "n2", false, 77, 2, "ok", 8);
  add(160, "n1", true, 77, 2, "ok", 4);
  const std::vector<explain::Exchanged> all = explain::exchanged(messages, {{"10.0.0.1", "n1"}, {"10.0.0.2", "n2"}});
  REQUIRE(all.size() == 5);
  CHECK(all[0].from == "n1");
  CHECK(all[0].to == "n2");
  CHECK(all[0].port == 7000);
  CHECK_FALSE(all[0].answer);
  CHECK(all[0].words == "\"put <n>\"");
  CHECK(all[0].taken_ns == 115);
  CHECK(all[0].taken_tid == 9);
  CHECK(all[1].taken_ns == 130);
  CHECK(all[1].taken_tid == 8);
  CHECK(all[2].taken_ns == 130);
  CHECK(all[3].taken_ns == 0);
  CHECK(all[4].from == "n2");
  CHECK(all[4].answer);
  CHECK(all[4].port == 7000);
  CHECK(all[4].taken_ns == 160);
}

TEST_CASE("datagrams are matched by content, and nodes with one address by their ports", "[explain]") {
  std::vector<schedule::Message> messages;
  const auto add = [&](std::int64_t ts, const std::string& node, bool taken, bool tcp, std::uint16_t own,
                       std::uint16_t peer, const std::string& data) {
    messages.push_back({.ts_ns = ts,
                        .node = node,
                        .pid = 1,
                        .tid = 1,
                        .taken = taken,
                        .tcp = tcp,
                        .own = "127.0.0.1",
                        .peer = "127.0.0.1",
                        .own_port = own,
                        .peer_port = peer,
                        .end = 50,
                        .bytes = static_cast<std::uint32_t>(data.size()),
                        .data = data});
  };
  add(10, "n1", false, false, 9001, 9002, "ping");
  add(20, "n1", false, false, 9001, 9002, "ping");
  add(30, "n2", true, false, 9002, 9001, "ping");
  add(40, "n2", false, false, 9002, 9001, "pong");
  add(45, "n1", true, false, 9001, 0, "pong");  // a recv, which does not request the sender's address
  add(50, "n1", false, false, 9001, 9001, "to itself");
  add(60, "n1", false, false, 9001, 4444, "to nobody");
  const std::vector<explain::Exchanged> all = explain::exchanged(messages, {});
  REQUIRE(all.size() == 3);
  CHECK(all[0].to == "n2");
  CHECK(all[0].taken_ns == 30);
  CHECK(all[1].taken_ns == 0);  // the message was lost
  CHECK(all[2].from == "n2");
  CHECK(all[2].to == "n1");
  CHECK(all[2].taken_ns == 45);
}

TEST_CASE("the end of a connection is attributed to the node at its other end", "[explain]") {
  std::vector<schedule::Message> messages;
  const auto add = [&](std::int64_t ts, const std::string& node, const std::string& peer, std::uint16_t own_port,
                       std::uint16_t peer_port, bool tcp) {
    messages.push_back({.ts_ns = ts,
                        .node = node,
                        .pid = 1,
                        .tid = 2,
                        .taken = true,
                        .tcp = tcp,
                        .own = "10.0.0.9",
                        .peer = peer,
                        .own_port = own_port,
                        .peer_port = peer_port,
                        .end = 0,
                        .bytes = 0,
                        .data = {}});
  };
  add(100, "n1", "10.0.0.2", 7000, 45000, true);
  add(110, "n1", "10.0.0.2", 0, 7001, true);       // a client's socket after a reset
  add(120, "n1", "10.0.0.2", 7000, 45000, false);  // an empty datagram
  add(130, "n1", "10.0.0.77", 7000, 45000, true);  // not a node
  const std::vector<explain::Exchanged> all = explain::exchanged(messages, {{"10.0.0.2", "n2"}, {"10.0.0.9", "n1"}});
  REQUIRE(all.size() == 2);
  for (const explain::Exchanged& one : all) {
    CHECK(one.is_end());
    CHECK(one.from == "n2");
    CHECK(one.to == "n1");
    CHECK(one.taken_tid == 2);
  }
  CHECK(all[0].port == 7000);
  CHECK_FALSE(all[0].answer);
  CHECK(all[1].port == 7001);
  CHECK(all[1].answer);
}

TEST_CASE("a message is described by its beginning and its size", "[explain]") {
  CHECK(explain::spoken_words("GET /x/1 HTTP/1.1\r\nHost: a", 26) ==
        explain::spoken_words("GET /x/2 HTTP/1.1\r\nHost: a", 26));
  // A truncated word is not compared, because it would differ each time.
  CHECK(explain::spoken_words("set key 5 abcdef", 900) == explain::spoken_words("set key 7 abcxyzuv", 800));
  CHECK(explain::spoken_words(std::string("\x00\x00\x00\x0c\x07more.......", 16), 16) ==
        "at most 16 bytes, the first after their length 07");
  CHECK(explain::spoken_words(std::string("\x16\x03\x01 and so on", 12), 500) == "at most 512 bytes, the first 16");
  CHECK(explain::spoken_words(std::string("\x01\x02", 2), 2) == "2 bytes");
  CHECK(explain::spoken_words("", 5000) == "at most 8192 bytes");
}

TEST_CASE("a message that only failing runs send is reported, with what the receiving thread does", "[explain]") {
  Case one;
  for (int i = 0; i < 5; ++i) {
    one.add(Group::failing, put_on_two(2 * i)
                                .faulted(105)
                                .enters(106, "give_up")
                                .sends(107, "n1", "n2", "abort " + std::to_string(i))
                                .takes(109, "n1", "n2", 5)
                                .enters(110, "forget", 5, "n2"));
    one.add(Group::sound, put_on_two(2 * i + 1)
                              .enters(106, "go_on")
                              .sends(107, "n1", "n2", "commit " + std::to_string(i))
                              .takes(109, "n1", "n2", 5)
                              .enters(110, "keep", 5, "n2"));
  }
  const explain::Explanation e = one.explain();
  CHECK(e.verdict == explain::Verdict::explained);
  const explain::DifferenceText* aborts = find(e, "sends n2 \"abort <n>\" (port 7000)");
  REQUIRE(aborts != nullptr);
  CHECK(aborts->node == "n1");
  CHECK(aborts->clean);
  CHECK(find(e, "sends n2 \"commit <n>\" (port 7000)", true) != nullptr);
  // The receipt of the message is not reported as a further difference.
  CHECK(find(e, "takes n1's \"abort <n>\" (port 7000)") == nullptr);
  // The function that was entered before the send becomes a suspect because of the send.
  CHECK(std::any_of(e.suspects.begin(), e.suspects.end(), [](const auto& s) {
    return s.function == "give_up" && s.why.find("sends n2 \"abort") != std::string::npos;
  }));
  const explain::StoryLine* line_found = line(e, "sends n2 \"abort");
  REQUIRE(line_found != nullptr);
  CHECK(line_found->node == "n1");
  CHECK(line_found->text ==
        "sends n2 \"abort <n>\" (port 7000); n2 has it 2.0 ms later: its thread 5 enters forget: only with the fault");
  CHECK(line_found->evidence.starts_with("thread 1, 7 bytes; "));
}

TEST_CASE("a message that all runs send but failing runs never receive is reported", "[explain]") {
  Case one;
  for (int i = 0; i < 5; ++i) {
    one.add(Group::failing, put_on_two(2 * i).faulted(105).sends(107, "n1", "n2", "beat"));
    one.add(Group::sound, put_on_two(2 * i + 1).sends(107, "n1", "n2", "beat").takes(109, "n1", "n2", 5));
  }
  const explain::Explanation e = one.explain();
  CHECK(e.verdict == explain::Verdict::explained);
  CHECK(find(e, "takes n1's \"beat\" (port 7000)", true) != nullptr);
  CHECK(find(e, "sends n2 \"beat\" (port 7000)") == nullptr);
  // The next message of the node with the fault is reported, although it is also sent in runs without the bug.
  const explain::StoryLine* line_found = line(e, "sends n2 \"beat\" (port 7000); n2 does not take it");
  REQUIRE(line_found != nullptr);
}

TEST_CASE("variation in messages is noise: it is not reported and hides nothing else", "[explain]") {
  std::mt19937 chance(11);
  const auto coin = [&](double p) { return std::uniform_real_distribution<>(0, 1)(chance) < p; };
  for (int pair = 0; pair < 20; ++pair) {
    CAPTURE(pair);
    Case nothing, something;
    for (int i = 0; i < 10; ++i) {
      const bool failing = i % 2 == 0;
      const auto with_noise = [&] {
        script::Run run = put_on_two(i).faulted(105);
        for (int k = 0; k < 8; ++k)
          if (coin(0.5)) run.sends(120 + k, "n2", "n3", std::string("beat-") + static_cast<char>('a' + k));
        return run;
      };
      nothing.add(failing ? Group::failing : Group::sound, with_noise());
      something.add(failing ? Group::failing : Group::sound, with_noise().enters(300, failing ? "give_up" : "go_on"));
    }
    const explain::Explanation none = nothing.explain();
    CHECK(none.verdict == explain::Verdict::nothing_found);
    CHECK(none.differences.empty());
    CHECK(none.suspects.empty());
    const explain::Explanation some = something.explain();
    CHECK(some.verdict == explain::Verdict::explained);
    CHECK(find(some, "enters give_up") != nullptr);
    CHECK(std::none_of(some.differences.begin(), some.differences.end(),
                       [](const auto& d) { return d.words.find("beat") != std::string::npos; }));
  }
}

TEST_CASE("if not all messages of a node are known, nothing is reported about them", "[explain]") {
  Case one;
  for (int i = 0; i < 5; ++i) {
    script::Run failing = put_on_two(2 * i)
                              .faulted(105)
                              .enters(106, "give_up")
                              .sends(107, "n1", "n2", "abort")
                              .sends(108, "n3", "n2", "late");
    if (i == 3) failing.talkative("n1");
    one.add(Group::failing, failing);
    one.add(Group::sound, put_on_two(2 * i + 1).enters(106, "go_on"));
  }
  const explain::Explanation e = one.explain();
  CHECK(find(e, "enters give_up") != nullptr);
  CHECK(find(e, "sends n2 \"abort\" (port 7000)") == nullptr);
  CHECK(find(e, "sends n2 \"late\" (port 7000)") != nullptr);
  CHECK(std::any_of(e.limits.begin(), e.limits.end(),
                    [](const auto& limit) { return limit.starts_with("n1 exchanged more messages"); }));
  CHECK(std::none_of(e.exchanges.begin(), e.exchanges.end(),
                     [](const auto& table) { return table.from == "n1" || table.to == "n1"; }));
}

TEST_CASE("messages are compared without node names if the fault hits different nodes", "[explain]") {
  Case one;
  for (int i = 0; i < 5; ++i) {
    const std::string hit = i % 2 == 0 ? "n1" : "n2", other = i % 2 == 0 ? "n2" : "n1";
    one.add(Group::failing,
            script::Run(2 * i).enters(100, "request", 1, hit).faulted(105, 1, hit).sends(107, hit, other, "abort"));
    one.add(Group::sound, script::Run(2 * i + 1).enters(100, "request", 1, hit));
  }
  const explain::Explanation e = one.explain();
  CHECK(find(e, "sends another node \"abort\" (port 7000)") != nullptr);
  CHECK(line(e, "sends n2 \"abort\"") != nullptr);
}

TEST_CASE("the amount of data between nodes is compared over an equal duration of all runs", "[explain]") {
  Case one;
  for (int i = 0; i < 5; ++i) {
    script::Run failing = put_on_two(2 * i).faulted(105).enters(106, "give_up").ends(400),
                sound = put_on_two(2 * i + 1).enters(106, "go_on").ends(900);
    for (int k = 0; k < 30 + i; ++k) failing.sends(110 + k, "n1", "n2", "again").takes(110 + k, "n1", "n2");
    for (int k = 0; k < 4; ++k) sound.sends(110 + k, "n1", "n2", "again").takes(110 + k, "n1", "n2");
    // these come after the end of the failing runs
    for (int k = 0; k < 50; ++k) sound.sends(500 + k, "n1", "n2", "again");
    for (script::Run* run : {&failing, &sound})
      for (int k = 0; k < 5 + i % 2; ++k) run->sends(120 + k, "n2", "n1", "beat", 7, true);
    one.add(Group::failing, failing);
    one.add(Group::sound, sound);
  }
  const explain::Explanation e = one.explain();
  REQUIRE(e.exchanges.size() == 2);
  const explain::ExchangeTable& retries = e.exchanges[0];
  CHECK(retries.from == "n1");
  CHECK(retries.to == "n2");
  CHECK_FALSE(retries.answer);
  // Sends between the fault and the step at which all runs are cut are counted, too.
  CHECK(retries.failing.least == 31);
  CHECK(retries.failing.most == 35);
  CHECK(retries.failing.most_bytes == 176);
  CHECK(retries.failing.untaken == 0);
  CHECK(retries.sound.least == 5);
  CHECK(retries.sound.most == 5);
  CHECK(retries.differs == "31 to 35 messages, 156 to 176 bytes in failing runs, 5 messages, 26 bytes in correct ones");
  const explain::ExchangeTable& beats = e.exchanges[1];
  CHECK(beats.answer);
  CHECK(beats.failing.untaken == 6);
  CHECK(beats.differs.empty());
}
