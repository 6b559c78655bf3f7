// Hints at the causes of a failure, from the logs of one or several nodes.
#include "logs_support.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <fstream>
#include <map>

#include "folder.h"
#include "logs/evidence.h"

using namespace rose;
using namespace rose::logs;
using namespace rose::logs::test;

namespace {

// The logs of n1, n2, ... in a failure and in a run without faults, and the hints found in them.
struct Hinted {
  rose::test::Folder folder;
  Templates kinds;
  Evidence evidence;

  Hinted(const std::vector<std::string>& failed, const std::vector<std::string>& usual) {
    evidence.normal = read("usual", usual);
    evidence.failure = read("failed", failed);
    evidence.difference = compare(evidence.failure, evidence.normal, kinds);
    evidence.hints = find_hints(evidence.failure, evidence.normal, evidence.difference,
                                {{"n1", {"10.0.0.1"}}, {"n2", {"10.0.0.2"}}, {"n3", {"10.0.0.3"}}});
  }
  Logs read(const std::string& name, const std::vector<std::string>& texts) {
    std::vector<Input> inputs;
    for (std::size_t i = 0; i < texts.size(); ++i) {
      inputs.push_back({folder / (name + std::to_string(i) + ".log"), "n" + std::to_string(i + 1)});
      std::ofstream(inputs.back().path) << texts[i];
    }
    return read_files(inputs, kinds);
  }
  [[nodiscard]] const Hint* find(Hint::Kind kind, const std::string& node) const {
    for (const Hint& hint : evidence.hints)
      if (hint.kind == kind && hint.node == node) return &hint;
    return nullptr;
  }
};

}  // namespace

TEST_CASE("one repeated line of the start-up banner is not a restart", "[logs]") {
  const Hinted one({"ready at 10.0.0.1:7000\nmember 1 leads\nmember 2 leads\nmember 1 leads\n"},
                   {"ready at 10.0.0.1:7000\nmember 1 leads\n"});
  CHECK(one.find(Hint::Kind::end, "n1") == nullptr);
  const Hinted two({"0 puts\nready at 10.0.0.1:7000\n0 puts\nready at 10.0.0.1:7000\n"},
                   {"0 puts\nready at 10.0.0.1:7000\n"});
  const Hint* end = two.find(Hint::Kind::end, "n1");
  REQUIRE(end != nullptr);
  CHECK(end->signal == 9);
  CHECK(end->message == 1);
}

TEST_CASE("a node whose role another node takes over may have been stopped or partitioned", "[logs]") {
  const std::string at = "2026-01-02 03:04:";
  const std::string led = at + "05 leader of term 1\n", follows = at + "04 listening\n";
  const Hinted one({follows + at + "40 leader of term 2\n", follows, follows + led}, {follows, follows, follows + led});
  const Hint* end = one.find(Hint::Kind::end, "n3");
  REQUIRE(end != nullptr);
  CHECK(one.find(Hint::Kind::stop, "n3") != nullptr);
  CHECK(one.find(Hint::Kind::silence, "n3") != nullptr);
  CHECK(one.find(Hint::Kind::end, "n1") == nullptr);
  // In the failure, n1 leads from the beginning, and in the run without faults, n3 does. No node lost the role.
  const Hinted other({follows + led, follows, follows}, {follows, follows, follows + led});
  CHECK(other.find(Hint::Kind::end, "n3") == nullptr);
}

TEST_CASE("without timestamps, term numbers show which node had a role first", "[logs]") {
  const Hinted one(
      {"listening\nleader of term 2, from job 57 on\n", "listening\n", "listening\nleader of term 1, from job 0 on\n"},
      {"listening\n", "listening\nleader of term 1, from job 0 on\n", "listening\n"});
  // In the run without faults, n2 has the role. In the failure, others have it.
  CHECK(one.find(Hint::Kind::end, "n2") != nullptr);
  CHECK(one.find(Hint::Kind::stop, "n2") == nullptr);  // because the logs do not show when n2 stopped
}

// The messages of haproxy 2.6 about two servers. The link of n3 was down for a while, and n2 was killed.
TEST_CASE("a node that refuses connections has ended, one that does not answer is partitioned", "[logs]") {
  const std::string lb =
      "2026-11-23T21:35:37.630125+00:00 10.0.0.254:57414 [23/Nov/2026:21:35:37.628] f b/n2 0/0/1/0/1 200 203 - - ---- "
      "1/1/0/0/0 0/0 \"GET / HTTP/1.1\"\n"
      "2026-11-23T21:35:40.456934+00:00 Server b/n3 is DOWN, reason: Layer4 timeout, check duration: 501ms. 1 active "
      "and 0 backup servers left. 2 sessions active, 0 requeued, 0 "
      "remaining in queue.\n"
      "2026-11-23T21:35:45.477787+00:00 Server b/n3 is UP, reason: Layer4 check passed, check duration: 0ms. 2 active "
      "and 0 backup servers online. 0 sessions requeued, 0 total in "
      "queue.\n"
      "2026-11-23T21:35:46.729800+00:00 Server b/n2 is DOWN, reason: Layer4 connection problem, info: \"Connection "
      "refused\", check duration: 0ms. 1 active and 0 backup servers "
      "left. 0 sessions active, 0 requeued, 0 remaining in queue.\n";
  const Hinted one({lb}, {});
  const Hint* gone = one.find(Hint::Kind::end, "n2");
  REQUIRE(gone != nullptr);
  CHECK(gone->reported);
  const Hint* missed = one.find(Hint::Kind::end, "n3");  // nothing shows that n3 went on, so its end is a guess
  REQUIRE(missed != nullptr);
  CHECK(missed->missed);
  CHECK(!missed->reported);
  for (const Hint& hint : one.evidence.hints) {
    INFO(hint.words);
    if (hint.kind == Hint::Kind::silence) CHECK((hint.peer == "n3" || hint.weight < gone->weight));
    if (hint.kind == Hint::Kind::silence && hint.peer == "n3") CHECK(hint.weight > missed->weight);
  }
}

TEST_CASE("a node that does not answer may also have ended or been paused", "[logs]") {
  const Hinted one({"2026-01-02 03:04:05 WARN n2: read timed out\n"}, {});
  const Hint* ended = one.find(Hint::Kind::end, "n2");
  const Hint* stands = one.find(Hint::Kind::stop, "n2");
  const Hint* cut = one.find(Hint::Kind::silence, "n1");
  REQUIRE((ended != nullptr && stands != nullptr && cut != nullptr));
  CHECK(cut->timed_out);
  CHECK(ended->weight < cut->weight / 2);
  CHECK(stands->weight < cut->weight / 2);
  CHECK(stands->missed);
  // The machine of n2 answered, so the process of n2 has ended.
  const Hinted closed({"2026-01-02 03:04:05 WARN n2: read timed out\n"
                       "2026-01-02 03:04:06 WARN n2: unexpected EOF\n"},
                      {});
  CHECK(closed.find(Hint::Kind::stop, "n2") == nullptr);
  REQUIRE(closed.find(Hint::Kind::end, "n2") != nullptr);
  CHECK(closed.find(Hint::Kind::end, "n2")->weight > ended->weight);
  // One of several messages reports a timeout.
  const std::string lost = "2026-01-02 03:04:05 WARN n2 is unreachable\n";
  const Hinted both({lost + "2026-01-02 03:04:06 WARN n2: read timed out\n"}, {});
  REQUIRE(both.find(Hint::Kind::stop, "n2") != nullptr);
  CHECK(both.find(Hint::Kind::silence, "n1")->timed_out);
  // No message reports a timeout: a pause of n2 is less likely, and not suspected if n3 is missed, too.
  const Hinted gone({lost}, {});
  REQUIRE(gone.find(Hint::Kind::stop, "n2") != nullptr);
  CHECK(gone.find(Hint::Kind::stop, "n2")->weight < both.find(Hint::Kind::stop, "n2")->weight);
  CHECK(Hinted({lost + "2026-01-02 03:04:09 WARN n3 is unreachable\n"}, {}).find(Hint::Kind::stop, "n2") == nullptr);
  // The few messages of n2 do not show whether it ended, but a paused node goes on.
  const std::string late = "2026-01-02 03:04:05 WARN n2: read timed out\n";
  const Hinted excerpt({late, "2026-01-02 03:04:30 INFO n2 serves\n"}, {});
  CHECK(excerpt.find(Hint::Kind::end, "n2") == nullptr);
  CHECK(excerpt.find(Hint::Kind::stop, "n2") != nullptr);
  // An unreachable host may be off, or its container was removed, but it is not paused.
  const Hinted away({"2026-01-02 03:04:05 ERROR dial tcp n2:7000: connect: no route to host\n"}, {});
  REQUIRE(away.find(Hint::Kind::end, "n2") != nullptr);
  CHECK(away.find(Hint::Kind::end, "n2")->weight < away.find(Hint::Kind::silence, "n1")->weight);
  CHECK(away.find(Hint::Kind::stop, "n2") == nullptr);
  // Without a route, this host's own network is down.
  CHECK(Hinted({"2026-01-02 03:04:05 ERROR dial tcp n2:7000: connect: network is unreachable\n"}, {})
            .find(Hint::Kind::end, "n2") == nullptr);
  // The same must follow from logs without times.
  REQUIRE(Hinted({"lost connection to n2\n"}, {}).find(Hint::Kind::end, "n2") != nullptr);
}

TEST_CASE("a node whose own network interface is down is partitioned from all others", "[logs]") {
  for (const char* down : {"Netlink reports eth0 down", "eth0: lost carrier", "eno1: NIC Link is Down"}) {
    INFO(down);
    const Hinted one({std::string("2026-01-02 03:04:05 ") + down + "\n"}, {});
    std::set<std::string> peers;
    for (const Hint& hint : one.evidence.hints)
      if (hint.kind == Hint::Kind::silence && hint.node == "n1") peers.insert(hint.peer);
    CHECK(peers == std::set<std::string>{"n2", "n3"});
    CHECK(one.find(Hint::Kind::end, "n2") == nullptr);  // the partition explains why n2 is missed
  }
}

TEST_CASE("vague words report a lost peer only next to a node's name", "[logs]") {
  const std::string ok = "2026-01-02 03:04:05.000 all is well\n";
  for (const char* text : {"lost sight of n2", "n2 went silent", "n2 has failed", "n2 is no longer a member",
                           "couldn't get a reply from 10.0.0.2:7000", "n2 stopped responding", "evicting n2",
                           "rpc call to n2 failed", "no word from n2 for 30s", "giving up on n2"}) {
    INFO(text);
    const Hinted missed({ok + "2026-01-02 03:04:10.000 WARN " + text + "\n" + ok}, {});
    const Hint* silence = missed.find(Hint::Kind::silence, "n1");
    REQUIRE(silence != nullptr);
    CHECK(silence->peer == "n2");
  }
  for (const char* text : {"n2 joined the ring", "n2 is healthy again", "reconnected to n2", "n2 is the new leader",
                           "dropped table lost", "removed old snapshot", "evicted 12 entries from the cache"}) {
    INFO(text);
    const Hinted missed({ok + "2026-01-02 03:04:10.000 INFO " + text + "\n" + ok}, {});
    CHECK(missed.find(Hint::Kind::silence, "n1") == nullptr);
  }
}

TEST_CASE("a node that others declared dead was partitioned or paused", "[logs]") {
  const std::string ok = "2026-01-02 03:04:05.000 all is well\n";
  for (const char* text :
       {"This node has been marked as dead.", "I have been told I am dead", "we were evicted from the cluster",
        "n1 was expelled from the group", "this node is no longer part of the cluster", "our lease has expired"}) {
    INFO(text);
    const Hinted out({ok + "2026-01-02 03:04:30.000 ERROR " + text + "\n"}, {});
    const Hint* stop = out.find(Hint::Kind::stop, "n1");
    REQUIRE(stop != nullptr);
    CHECK(stop->missed);
    CHECK(out.find(Hint::Kind::silence, "n1") != nullptr);
  }
  // This is a message of n1 about another node.
  const Hinted other({ok + "2026-01-02 03:04:30.000 WARN our peer n2 is dead\n"}, {});
  CHECK(other.find(Hint::Kind::stop, "n1") == nullptr);
}

TEST_CASE("several names that cannot be resolved point to the name server", "[logs]") {
  const Hinted names({"2026-01-02 03:04:05.000 ERROR dial tcp: lookup n2: no such host\n"
                      "2026-01-02 03:04:06.000 ERROR dial tcp: lookup n3: no such host\n"},
                     {});
  const Hint* call = names.find(Hint::Kind::call, "n1");
  REQUIRE(call != nullptr);
  CHECK(call->peer == "*:53");
  const Hint* silence = names.find(Hint::Kind::silence, "n1");
  REQUIRE(silence != nullptr);
  CHECK(silence->weight < call->weight);
}

TEST_CASE("a service's failed status after the reported end of its process is not a failed call", "[logs]") {
  const Hinted killed({"2026-01-02 03:04:05.000 db.service: Main process exited, code=killed, status=9/KILL\n"
                       "2026-01-02 03:04:05.000 db.service: Failed with result 'core-dump'.\n"},
                      {});
  CHECK(killed.find(Hint::Kind::end, "n1") != nullptr);
  CHECK(killed.find(Hint::Kind::call, "n1") == nullptr);
}

TEST_CASE("a message about another node's stop is not a stop of the node that logs it", "[logs]") {
  const auto missed = [](const std::string& stop) {
    return Hinted({"2026-01-02 03:04:05 INFO " + stop + "\n2026-01-02 03:04:06 WARN lost connection to n2\n"}, {})
               .find(Hint::Kind::silence, "n1") != nullptr;
  };
  CHECK(!missed("shutting down"));
  CHECK(!missed("shutting down, leadership goes to n3"));
  CHECK(missed("removing a backend. shutdown host n2(5432)"));
  CHECK(missed("error message from backend: the database system is shutting down"));
  CHECK(missed("connection to n2 failed: FATAL: the database system is shutting down"));
  CHECK(!missed("cannot connect to n2: exiting"));
}

TEST_CASE("nodes with one address are distinguished by the ports that they log", "[logs]") {
  const std::string other = "[127.0.0.1]:7002 [dev] up\n[127.0.0.1]:7002 [dev] has 2 members\n";
  const Hinted one({"[127.0.0.1]:7001 [dev] suspecting member [127.0.0.1]:7002, no heartbeat\n", other}, {});
  const Hint* cut = one.find(Hint::Kind::silence, "n1");
  REQUIRE(cut != nullptr);
  CHECK(cut->peer == "n2");
  CHECK(!cut->unnamed);
  const Hinted listens({"lost connection to 127.0.0.1:7002\n", "Listening on 127.0.0.1:7002\nready\n"}, {});
  REQUIRE(listens.find(Hint::Kind::silence, "n1") != nullptr);
  CHECK(listens.find(Hint::Kind::silence, "n1")->peer == "n2");
}

TEST_CASE("a lookup that times out reports the resolver as missing", "[logs]") {
  const auto missed = [](const std::string& text) {
    const Hinted one({"2026-01-02 03:04:05 WARN " + text + "\n"}, {});
    const Hint* cut = one.find(Hint::Kind::silence, "n1");
    return cut == nullptr ? std::string() : cut->peer;
  };
  CHECK(missed("dial tcp: lookup n3 on 10.0.0.2:53: read udp 10.0.0.1:5112->10.0.0.2:53: i/o timeout") == "n2");
  CHECK(missed("lookup failure \"n3\": lookup n3 on 10.0.0.2:53: server misbehaving") == "n2");
  CHECK(missed("dial tcp: lookup n3 on 10.0.0.2:53: no such host") == "n3");
  CHECK(missed("dial tcp: lookup n3 on 10.9.9.9:53: read udp 10.0.0.1:5112->10.9.9.9:53: i/o timeout").empty());
}

TEST_CASE("a peer with an address of another network may be any node", "[logs]") {
  const auto missed = [](const std::string& text) {
    const Hinted one({"2026-01-02 03:04:05 WARN " + text + "\n"}, {});
    std::set<std::string> peers;
    for (const Hint& hint : one.evidence.hints)
      if (hint.kind == Hint::Kind::silence) peers.insert(hint.peer);
    return peers;
  };
  CHECK(missed("cannot connect to 172.20.3.4:7000: connection timed out") == std::set<std::string>{"n2", "n3"});
  CHECK(missed("cannot connect to 10.0.7.7:7000: connection timed out").empty());      // in the nodes' network
  CHECK(missed("lost connection to 172.20.3.4:51234: connection timed out").empty());  // the port of a client
}

TEST_CASE("a program whose opening lines recur has restarted, whatever their words", "[logs]") {
  const auto life = [](int second, int pid) {
    std::string text;
    for (const char* words : {"using the \"epoll\" event method", "nginx/1.22.1", "OS: Linux 6.1.0",
                              "getrlimit(RLIMIT_NOFILE): 20000:20000", "start worker processes"})
      text += fmt::format("2026/11/23 21:35:{:02} [notice] {}#{}: {}\n", second, pid, pid, words);
    return text;
  };
  const std::string served =
      "2026/11/23 21:35:43 [info] 18803#18803: *19 client 10.0.0.1 closed keepalive connection (104: Connection reset "
      "by peer)\n";
  const Hinted one({life(33, 18794) + served + served + life(49, 19874)}, {});
  const Hint* end = one.find(Hint::Kind::end, "n1");
  REQUIRE(end != nullptr);
  CHECK(end->signal == 9);
  CHECK(end->message == 6);
  // The level of this error is only "info", so it has less weight.
  const Hint* reset = one.find(Hint::Kind::call, "n1");
  REQUIRE(reset != nullptr);
  CHECK(reset->weight <= 0.5);
  // In an excerpt, the first messages may occur again because the program repeats them in each round, not because it
  // restarted.
  std::string round;
  for (int i = 0; i < 30; ++i)
    round += fmt::format(
        "2026/11/23 21:36:{:02} [notice] 1#1: start of a round\n2026/11/23 21:36:{:02} [notice] 1#1: looked "
        "around\n2026/11/23 21:36:{:02} [notice] 1#1: all is well\n",
        i, i, i);
  CHECK(Hinted({round}, {}).find(Hint::Kind::end, "n1") == nullptr);
}

// The messages of PostgreSQL 15, whose checkpointer was killed. Later the server was stopped.
TEST_CASE("the end of a child process, also during an orderly stop, is not the node's end", "[logs]") {
  const std::string at = "2026-11-23 21:37:";
  const Hinted one({at + "35.009 UTC [27001] LOG:  checkpoint starting: wal\n" + at +
                    "50.631 UTC [26992] LOG:  checkpointer process (PID 27001) was terminated by signal 9: Killed\n" +
                    at + "50.695 UTC [26992] LOG:  database system is ready to accept connections\n" + at +
                    "53.967 UTC [28387] postgres@postgres FATAL:  could not write init file\n" + at +
                    "56.235 UTC [26992] LOG:  received fast shutdown request\n" + at +
                    "56.240 UTC [26992] LOG:  background worker \"logical replication launcher\" (PID 28204) exited "
                    "with exit code 1\n"},
                   {});
  std::size_t ends = 0;
  for (const Hint& hint : one.evidence.hints)
    if (hint.kind == Hint::Kind::end) {
      INFO(hint.words);
      ++ends;
      CHECK(hint.helper);
      CHECK(hint.signal == 9);
    }
  CHECK(ends == 1);
  const Hint* write = one.find(Hint::Kind::call, "n1");
  REQUIRE(write != nullptr);
  CHECK(write->syscalls.front() == "write");
  CHECK(write->weight < 0.3);  // a disk may be the cause, but the message does not say so
}

// The messages of mosquitto 2.0.11, first with a folder in place of its file, then while the peer's link was down.
TEST_CASE("a separate error message belongs to the previous one; of two nodes the other is the unnamed peer",
          "[logs]") {
  const std::string text =
      "2026-11-23T21:48:15: Saving in-memory database to /srv/m1/data//mosquitto.db.\n"
      "2026-11-23T21:48:15: Error saving in-memory database, unable to remove /srv/m1/data//mosquitto.db.new.\n"
      "2026-11-23T21:48:15: Error: Is a directory.\n"
      "2026-11-23T21:48:26: Client vm.tob2 has exceeded timeout, disconnecting.\n";
  const Hinted one({text}, {});
  const Hint* call = one.find(Hint::Kind::call, "n1");
  REQUIRE(call != nullptr);
  CHECK(call->error == EISDIR);
  CHECK(call->path == "/srv/m1/data/mosquitto.db.new");
  REQUIRE(!call->syscalls.empty());
  CHECK(call->syscalls.front() == "unlink");
  // because there are three nodes, and the message contains no name
  CHECK(one.find(Hint::Kind::silence, "n1") == nullptr);
  Templates kinds;
  const Logs failure = read_text(text, {"n1.log", "n1"}, {}, kinds);
  const std::vector<Hint> hints = find_hints(failure, {}, compare(failure, {}, kinds), {{"n1", {}}, {"n2", {}}});
  CHECK(std::any_of(hints.begin(), hints.end(), [](const Hint& hint) {
    return hint.kind == Hint::Kind::silence && hint.peer == "n2" && hint.weight < 0.3;
  }));
}

TEST_CASE("a line without a timestamp after an ordinary message is read separately", "[logs]") {
  const std::string begin =
      "2026-01-02 03:04:05 INFO committed block 1\n2026-01-02 03:04:06 ERROR server ended: use of closed connection\n";
  const std::string refused = "open /srv/n1/data/state.json: permission denied\n";
  const Hinted one({begin + refused}, {begin});
  const Hint* call = one.find(Hint::Kind::call, "n1");
  REQUIRE(call != nullptr);
  CHECK(call->error == EACCES);
  CHECK(call->path == "/srv/n1/data/state.json");
  CHECK(call->weight > 0.9);
  // An earlier occurrence of the message, without a line that contains the error, must not prevent the hint.
  const Hinted later({begin + begin + refused}, {begin + begin});
  REQUIRE(later.find(Hint::Kind::call, "n1") != nullptr);
  CHECK(later.find(Hint::Kind::call, "n1")->weight > 0.9);
  // The line after the message may also be that of an exception.
  const std::string trace = "org.x.BadSumException: block 8\n\tat org.x.Store.check(Store.java:40)\n";
  REQUIRE(Hinted({begin + trace}, {begin}).find(Hint::Kind::thrown, "n1") != nullptr);
  // If the message also occurs in runs without faults, it is weak evidence.
  const Hinted usual({begin + refused}, {begin + refused});
  CHECK((usual.find(Hint::Kind::call, "n1") == nullptr || usual.find(Hint::Kind::call, "n1")->weight < 0.2));
}

// The messages of ovsdb-server 3.1.0 while its disk was full. Both layers report each failure, the upper one several
// times.
TEST_CASE("one failure that two layers of a program log counts once", "[logs]") {
  const std::string at = "2026-11-25T22:28:24.";
  const Hinted one({at + "100Z|00018|raft|INFO|server ee7a added to configuration\n" + at +
                    "689Z|00019|ovsdb_log|WARN|/run/ovs/n1/data/db: write failed (No space left on device)\n" + at +
                    "689Z|00020|raft|ERR|I/O error: data/db: write failed (No space left on device)\n" + at +
                    "712Z|00021|raft|ERR|I/O error: data/db: write failed (No space left on device)\n" + at +
                    "800Z|00022|raft|ERR|I/O error: data/other: write failed (No space left on device)\n"},
                   {});
  std::map<std::string, std::uint64_t> counts;
  for (const Hint& hint : one.evidence.hints)
    if (hint.kind == Hint::Kind::call && hint.error == ENOSPC) counts[hint.path] += hint.count;
  CHECK(counts == std::map<std::string, std::uint64_t>{{"/run/ovs/n1/data/db", 2}, {"data/other", 1}});
}

TEST_CASE("a log file that is opened again means a restart", "[logs]") {
  const std::string at = "2026-11-25T22:28:";
  const std::string opened = "Z|00001|vlog|INFO|opened log file /var/log/ovs/ovsdb.log\n";
  const Hinted one({at + "22.204" + opened + at + "22.223Z|00002|raft|INFO|local server ID is ee7a\n" + at +
                    "22.224Z|00003|ovsdb_server|INFO|ovsdb-server (Open vSwitch) 3.1.0\n" + at +
                    "25.060Z|00004|raft|INFO|adding 26de to cluster ea25 succeeded (completed)\n" + at + "25.591" +
                    opened + at + "26.111" + opened + at + "26.627" + opened},
                   {});
  const Hint* end = one.find(Hint::Kind::end, "n1");
  REQUIRE(end != nullptr);
  CHECK(end->message == 3);
  CHECK(end->weight >= 0.8);
  // The node does not start again, so it ended once, not three times.
  for (const Hint& hint : one.evidence.hints)
    if (hint.kind == Hint::Kind::end && &hint != end) CHECK(hint.weight < 0.5 * end->weight);
}

TEST_CASE("the clock that differs from most others is wrong, whichever node reports it", "[logs]") {
  const auto drift = [](int self, int peer) {
    return fmt::format("2026-01-02 03:04:0{}.000 WARN clock drift of n{} is too high: 1m0.{}s\n", 5 + self, peer, self);
  };
  const std::string ready = "2026-01-02 03:04:05.000 INFO ready\n";
  for (const std::vector<std::string>& logs :
       {std::vector{ready + drift(1, 3), ready + drift(2, 3), ready + drift(3, 1) + drift(3, 2)},
        {ready, ready, ready + drift(3, 1) + drift(3, 2)},
        {ready + drift(1, 3), ready + drift(2, 3), ready}}) {
    const Hinted one(logs, {ready, ready, ready});
    const Hint *third = one.find(Hint::Kind::clock, "n3"), *first = one.find(Hint::Kind::clock, "n1"),
               *second = one.find(Hint::Kind::clock, "n2");
    REQUIRE((third != nullptr && first != nullptr && second != nullptr));
    CHECK(third->weight > 1.5 * first->weight);
    CHECK(first->weight == second->weight);
    CHECK(std::abs(third->clock.off_ns) / 1'000'000'000 == 60);
    CHECK(third->clock.either_way);
    // The node answers, so there must be no hint that others miss it.
    CHECK(one.find(Hint::Kind::silence, "n1") == nullptr);
  }
  // If another node's clock seems to be ahead, it may also be this node's clock that is behind.
  const Hinted two({ready + "2026-01-02 03:04:06.000 WARN clock offset of n2: 90s ahead\n", ready}, {ready, ready});
  const Hint *ahead = two.find(Hint::Kind::clock, "n2"), *behind = two.find(Hint::Kind::clock, "n1");
  REQUIRE((ahead != nullptr && behind != nullptr));
  CHECK(ahead->clock.off_ns == 90'000'000'000);
  CHECK(behind->clock.off_ns == -90'000'000'000);
  CHECK(ahead->weight == behind->weight);
  // If the message also occurs in the run without faults, it is weak evidence.
  const Hinted always({ready + drift(1, 3), ready}, {ready + drift(1, 3), ready});
  const Hint* usual = always.find(Hint::Kind::clock, "n3");
  CHECK((usual == nullptr || usual->weight < 0.1));
}

TEST_CASE("a node named as the place of a clock skew may have the wrong clock", "[logs]") {
  const Hinted one({"2026-01-02 03:04:05.000 WARN clock skew detected on mon.n2\n"}, {});
  CHECK(one.find(Hint::Kind::clock, "n2") != nullptr);
  const Hinted own({"2026-01-02 03:04:05.000 WARN clock skew detected, n2 is asked next\n"}, {});
  CHECK(own.find(Hint::Kind::clock, "n2") == nullptr);
}

TEST_CASE("an address of IPv6 names its node, with and without a port", "[logs]") {
  Templates kinds;
  for (const std::string peer : {"[fd00::2]:7000", "fd00::2", "[fd00:0:0::2]:7000"}) {
    INFO(peer);
    const Logs failure =
        read_text("2026-01-02 03:04:05 WARN no heartbeat from " + peer + " for 31s\n", {"a.log", "n1"}, {}, kinds);
    const std::vector<Hint> hints = find_hints(failure, {}, compare(failure, {}, kinds),
                                               {{"n1", {"fd00::1"}}, {"n2", {"fd00::2"}}, {"n3", {"fd00::3"}}});
    CHECK(std::any_of(hints.begin(), hints.end(), [](const Hint& hint) { return hint.peer == "n2" && !hint.unnamed; }));
  }
}

TEST_CASE("a slow disk is that of the writer, or of the node that the message names", "[logs]") {
  Templates kinds;
  const auto slow = [&](const std::string& text) {
    const Logs failure = read_text("2026-01-02 03:04:05 " + text + "\n", {"a.log", "n1"}, {}, kinds);
    std::string nodes;
    std::vector<Hint> hints =
        find_hints(failure, {}, compare(failure, {}, kinds), {{"n1", {"10.0.0.1"}}, {"n2", {"10.0.0.2"}}});
    std::stable_sort(hints.begin(), hints.end(), [](const Hint& a, const Hint& b) { return a.weight > b.weight; });
    for (const Hint& hint : hints)
      if (hint.kind == Hint::Kind::limit && hint.limit == Hint::Limit::disk_slow) nodes += hint.node + " ";
    return nodes;
  };
  CHECK(slow("WARN slow disk: fsync took 2.4s") == "n1 ");
  CHECK(slow("WARN slow disk detected on n2: fsync took 2.4s") == "n2 n1 ");
  CHECK(slow("WARN disk I/O of 10.0.0.2 is stalled for 32s") == "n2 n1 ");
  CHECK(slow("WARN 3 slow ops, oldest one blocked for 34 sec, n2 has slow ops") == "n2 n1 ");
  CHECK(slow("WARN no heartbeat to n2 in time: slow fsync took 2.4s") == "n1 n2 ");
  CHECK(slow("DEBUG slow disk: fsync took 2.4s") == "n1 ");  // such a message counts if there is no stronger hint
  CHECK(slow("DEBUG slow disk: fsync took 2.4s\n2026-01-02 03:04:06 WARN n2 refused the connection") == "");
}

TEST_CASE("if the only node misses a peer outside the deployment, its calls to that peer are suspected", "[logs]") {
  Templates kinds;
  const auto hints_of = [&](const std::string& text) {
    const Logs failure = read_text("2026-01-02 03:04:05 " + text + "\n", {"a.log", "n1"}, {}, kinds);
    return find_hints(failure, {}, compare(failure, {}, kinds), {{"n1", {"10.0.0.1"}}});
  };
  const std::vector<Hint> silent = hints_of("WARN no heartbeat from 10.0.0.9:7000 for 31s");
  REQUIRE(!silent.empty());
  CHECK(silent[0].kind == Hint::Kind::call);
  CHECK(silent[0].error == ETIMEDOUT);
  CHECK(silent[0].peer == "10.0.0.9:7000");
  CHECK(silent[0].unnamed);
  const std::vector<Hint> closed = hints_of("WARN 10.0.0.9:7000: connection closed by peer");
  REQUIRE(!closed.empty());
  CHECK(closed[0].error == ECONNRESET);
}

TEST_CASE("a node that writes again after it was missed was paused until then at most", "[logs]") {
  const auto length = [](const std::string& after) {
    const std::string start =
        "2026-01-02 03:04:01 INFO starting\n2026-01-02 03:04:02 INFO opened the store\n"
        "2026-01-02 03:04:03 INFO listening on port 7000\n";
    const Hinted both(
        {start +
             "2026-01-02 03:04:05.500 WARN no heartbeat from n2 for 700 ms\n2026-01-02 03:04:09 INFO round 9 is done\n",
         start + "2026-01-02 03:04:04 INFO the first client\n" + after},
        {});
    const Hint* stop = both.find(Hint::Kind::stop, "n2");
    REQUIRE(stop != nullptr);
    return (stop->until_ns == kNoTime ? stop->took_ns : stop->until_ns - stop->ts_ns) / 1'000'000;
  };
  CHECK(length("2026-01-02 03:04:06.250 INFO joining again\n") == 2250);  // counted from n2's previous message
}

TEST_CASE("a node that goes on without a start after it was missed has not ended", "[logs]") {
  const std::string start =
      "2026-01-02 03:04:01 INFO starting\n2026-01-02 03:04:02 INFO opened the store\n"
      "2026-01-02 03:04:03 INFO listening on port 7000\n";
  const auto ended = [&](const std::string& after, const std::string& usual) {
    const Hinted both({start + "2026-01-02 03:04:05.500 WARN no heartbeat from n2 for 700 ms\n"
                               "2026-01-02 03:04:09 INFO round 9 is done\n",
                       start + "2026-01-02 03:04:04 INFO the first client\n" + after},
                      {start, usual});
    return both.find(Hint::Kind::end, "n2") != nullptr;
  };
  const std::string again = "2026-01-02 03:04:06.250 INFO joining again\n";
  CHECK_FALSE(ended(again, start));
  CHECK(ended("2026-01-02 03:04:06.100 INFO starting\n" + again, start));
  // the clocks of n1 and n2 may differ by 100 ms, so n2 may have written this before n1 missed it
  CHECK(ended("2026-01-02 03:04:05.600 INFO joining again\n", start));
  CHECK(ended(again, "2026-01-02 03:04:01 INFO version 7\n" + start));  // n2's log lacks the first line of a start
}

TEST_CASE("a node that reports the lost connection as well has not ended", "[logs]") {
  const auto ended = [](const std::string& of_peer) {
    const std::string start =
        "2026-01-02 03:04:01 INFO starting\n2026-01-02 03:04:02 INFO opened the store\n"
        "2026-01-02 03:04:03 INFO listening on port 7000\n";
    const Hinted both({start + "2026-01-02 03:04:05.100 WARN read tcp 10.0.0.1:40123->10.0.0.2:7000: read: connection "
                               "reset by peer\n2026-01-02 03:04:09 INFO round 9 is done\n",
                       start + "2026-01-02 03:04:04 INFO the first client\n" + of_peer},
                      {});
    return both.find(Hint::Kind::end, "n2") != nullptr;
  };
  const std::string lost = "WARN write tcp 10.0.0.2:7000->10.0.0.1:40123: write: software caused connection abort\n";
  CHECK(ended(""));
  CHECK(ended("2026-01-02 03:04:04.900 " + lost));  // n2 wrote this before n1 did, so it may be n2's last message
  CHECK_FALSE(ended("2026-01-02 03:04:05.140 " + lost));
}

TEST_CASE("errors during a successful start and debug messages give no hints", "[logs]") {
  const auto line = [](int second, const std::string& text) {
    return fmt::format("2026-01-02 03:{:02}:{:02} {}\n", 4 + second / 60, second % 60, text);
  };
  const std::string refused = "WARN  cannot connect to 10.0.0.2:2380: connection refused";
  std::string start = line(0, "INFO  starting kvd 3.1.0") + line(2, refused), later = start, debug = start;
  for (int second = 10; second < 600; second += 10) {
    const std::string usual = line(second, fmt::format("INFO  round {} is done", second));
    start += usual;
    later += usual + (second == 400 ? line(second, refused) : "");
    debug += usual + (second == 400 ? line(second, "DEBUG cannot read /srv/x: Connection reset by peer") : "");
  }
  CHECK(Hinted({start}, {}).evidence.hints.empty());
  CHECK(Hinted({debug}, {}).evidence.hints.empty());
  const Hinted missed({later}, {});
  REQUIRE(missed.find(Hint::Kind::end, "n2") != nullptr);
  CHECK(missed.find(Hint::Kind::end, "n2")->message > 40);
  // If a program ends soon after its start, it has failed.
  CHECK(Hinted({line(0, "INFO  starting kvd 3.1.0") + line(2, refused) + line(9, "INFO  round 1 is done")}, {})
            .find(Hint::Kind::end, "n2") != nullptr);
}

TEST_CASE("if there is no other hint, an orderly stop of the only node is one", "[logs]") {
  const std::string work = "2026-01-02 03:04:05 INFO round 1 is done\n",
                    stop = work + "2026-01-02 03:04:09 INFO SIGTERM received, shutting down\n";
  const Hinted one({stop}, {});
  const Hint* end = one.find(Hint::Kind::end, "n1");
  REQUIRE(end != nullptr);
  CHECK(end->signal == 15);
  CHECK(end->weight < 0.2);
  CHECK(Hinted({stop, stop}, {}).evidence.hints.empty());  // all nodes were stopped, so this is not the failure
  CHECK(Hinted({work}, {}).evidence.hints.empty());
}

TEST_CASE("a timeout without a peer's name refers to the node that was silent", "[logs]") {
  const auto line = [](int second, const std::string& text) {
    return fmt::format("2026-01-02 03:{:02}:{:02} {}\n", 4 + second / 60, second % 60, text);
  };
  std::string steady, paused;
  for (int second = 0; second < 240; second += 12) {
    steady += line(second, fmt::format("INFO round {} is done", second));
    if (second < 60 || second > 180) paused += line(second, fmt::format("INFO block {} is kept", second));
  }
  const std::string waits =
      line(2, "INFO duties are known") + line(150, "ERROR no duty at slot 7: context deadline exceeded");
  const Hinted one({waits, paused, steady}, {});
  const Hint* stop = one.find(Hint::Kind::stop, "n2");
  REQUIRE(stop != nullptr);
  CHECK(stop->until_ns - stop->ts_ns == 144 * kSecond);
  CHECK(one.evidence.hints.size() == 1);
  // two nodes were paused, and it is unknown which of them the message is about
  CHECK(Hinted({waits, paused, paused}, {}).evidence.hints.empty());
}

TEST_CASE("if no message is understood, a warning is a complaint about the node that it names", "[logs]") {
  const std::string at = "2026-01-02 03:04:";
  const std::string first = at + "05 INFO work 1\n" + at + "06 INFO work 2\n";
  const Hinted about({first + at + "07 WARN delegated the shards of n2 to others\n", first}, {});
  REQUIRE(about.find(Hint::Kind::silence, "n1") != nullptr);
  CHECK(about.find(Hint::Kind::silence, "n1")->peer == "n2");
  CHECK(about.evidence.hints.front().weight <= 0.3);
  // If there is only one log, an error without the name of a node is one of the node that wrote the log.
  CHECK(Hinted({first + at + "07 ERROR odd things happen\n"}, {}).find(Hint::Kind::end, "n1") != nullptr);
  CHECK(Hinted({first + at + "07 ERROR odd things happen\n", first}, {}).evidence.hints.empty());
  CHECK(Hinted({first + at + "07 INFO delegated the shards of n2 to others\n", first}, {}).evidence.hints.empty());
  // In a short excerpt without levels, every message counts as a complaint.
  CHECK(Hinted({at + "07 delegated the shards of n2 to others\n"}, {}).find(Hint::Kind::silence, "n1") != nullptr);
  CHECK(Hinted({at + "07 odd things happen\n"}, {}).find(Hint::Kind::stop, "n1") != nullptr);
}

TEST_CASE("a node that misses most of the others at once was probably partitioned or paused itself", "[logs]") {
  const std::string at = "2026-01-02 03:04:05 ";
  const std::vector<NodeName> names = {
      {"n1", {"10.0.0.1"}}, {"n2", {"10.0.0.2"}}, {"n3", {"10.0.0.3"}}, {"n4", {"10.0.0.4"}}};
  Templates kinds;
  Evidence one;
  one.failure = read_text(at + "WARN failed to contact 10.0.0.2:8300\n" + at +
                              "WARN failed to contact 10.0.0.3:8300\n" + at + "WARN failed to contact 10.0.0.4:8300\n",
                          {"a.log", "n1"}, {}, kinds);
  one.difference = compare(one.failure, one.normal, kinds);
  one.hints = find_hints(one.failure, one.normal, one.difference, names);
  const auto weight_of = [&](Hint::Kind kind, const std::string& node) {
    double most = 0;
    for (const Hint& hint : one.hints)
      if (hint.kind == kind && hint.node == node) most = std::max(most, hint.weight);
    return most;
  };
  CHECK(weight_of(Hint::Kind::stop, "n1") > weight_of(Hint::Kind::end, "n2"));
  CHECK(weight_of(Hint::Kind::end, "n2") > 0);
}

TEST_CASE("a Unix socket at which nobody listens means that a child process has ended", "[logs]") {
  const Hinted one({"cannot ask: dial unix /vt/kv.sock: connect: no such file or directory\n"}, {});
  const Hint* end = one.find(Hint::Kind::end, "n1");
  REQUIRE(end != nullptr);
  CHECK(end->helper);
}

TEST_CASE("an address after a letter is that of a node, unless the letter makes it a version", "[logs]") {
  const Hinted address({"no ping response from S10.0.0.2:11111:240812401\n"}, {});
  REQUIRE(address.find(Hint::Kind::silence, "n1") != nullptr);
  CHECK(address.find(Hint::Kind::silence, "n1")->peer == "n2");
  const Hinted version({"no ping response, v10.0.0.2 is too old\n"}, {});
  for (const Hint& hint : version.evidence.hints) CHECK((hint.kind != Hint::Kind::silence || hint.unnamed));
}

TEST_CASE("if there is no other hint, debug messages that name a missing node are read", "[logs]") {
  const std::string usual = "2026-01-02 03:04:05 INFO round 1 is done\n",
                    missed = "2026-01-02 03:04:45 DEBUG have not received a heartbeat from n2, suspecting it\n";
  const Hinted one({usual + missed}, {});
  const auto silence = std::find_if(one.evidence.hints.begin(), one.evidence.hints.end(),
                                    [](const Hint& hint) { return hint.kind == Hint::Kind::silence; });
  REQUIRE(silence != one.evidence.hints.end());
  CHECK(silence->peer == "n2");
  CHECK(Hinted({usual + "2026-01-02 03:04:45 DEBUG have not received a heartbeat\n"}, {}).evidence.hints.empty());
  const Hinted refused({usual + "2026-01-02 03:04:45 DEBUG dial 10.0.0.2:7000: connection refused\n"}, {});
  CHECK(refused.find(Hint::Kind::end, "n2") != nullptr);
}

TEST_CASE("nodes that joined the cluster again had not ended", "[logs]") {
  const std::string missed = "2026-01-02 03:04:45 WARN n2 left the cluster\n";
  CHECK(Hinted({missed}, {}).find(Hint::Kind::end, "n2") != nullptr);
  const Hinted merged({missed + "2026-01-02 03:05:45 INFO received a new, MERGED cluster view of 2 members\n"}, {});
  CHECK(merged.find(Hint::Kind::end, "n2") == nullptr);
  CHECK(merged.find(Hint::Kind::silence, "n1") != nullptr);
}

TEST_CASE("a missed node has not ended if a message says that both sides of the partition run", "[logs]") {
  const std::string down = "2026-03-01 10:00:05,000 INFO rabbit on node rabbit@n3 down\n",
                    divided =
                        "2026-03-01 10:00:05,100 ERROR Partial partition detected: * We saw DOWN from rabbit@n3\n";
  CHECK(Hinted({down}, {}).find(Hint::Kind::end, "n3") != nullptr);
  const Hinted both({down + divided}, {});
  CHECK(both.find(Hint::Kind::end, "n3") == nullptr);
  REQUIRE(both.find(Hint::Kind::silence, "n1") != nullptr);
  CHECK(both.find(Hint::Kind::silence, "n1")->peer == "n3");
}

TEST_CASE("a number means the node whose name ends with it, unless another number means no node", "[logs]") {
  const std::string
      leader = "2026-03-01 10:00:01,000 INFO node 1 became leader\n",
      lost = "2026-03-01 10:00:05,000 WARN peer 3 is unreachable: connection refused\n",
      address = "2026-03-01 10:00:05,500 INFO server 4.2 listens at host 10.0.0.7, host 9:80, server 7-b, peer 8a on\n",
      other = "2026-03-01 10:00:06,000 INFO Member: 4 joined\n";
  for (const std::string& text : {leader + lost, leader + lost + address, leader + lost + other}) {
    const Hinted one({text}, {});
    const Hint* silence = one.find(Hint::Kind::silence, "n1");
    REQUIRE(silence != nullptr);
    CHECK((silence->peer == "n3" && !silence->unnamed) == !text.ends_with(other));
  }
}

TEST_CASE("a node that finds traces of an interrupted life had ended", "[logs]") {
  const Hinted one({"2026-01-02 03:04:45 INFO Unclean shutdown detected\n"}, {});
  REQUIRE(one.find(Hint::Kind::end, "n1") != nullptr);
  // The node wrote the message after it had restarted, so failures that come later do not belong to that end.
  CHECK(one.find(Hint::Kind::end, "n1")->until_ns == one.find(Hint::Kind::end, "n1")->ts_ns);
  const Hinted torn({"2026-01-02 03:04:45 ERROR block checksum mismatch in /srv/db/1.sst\n"}, {});
  REQUIRE(torn.find(Hint::Kind::end, "n1") != nullptr);
  REQUIRE(torn.find(Hint::Kind::call, "n1") != nullptr);
  CHECK(torn.find(Hint::Kind::call, "n1")->path == "/srv/db/1.sst");
  CHECK(torn.find(Hint::Kind::call, "n1")->error == EIO);
}

TEST_CASE("a node that logs after it was missed is alive, even if its log ends soon after", "[logs]") {
  const auto line = [](int second, const std::string& text) {
    return fmt::format("2026-01-02 03:04:{:02} {}\n", second, text);
  };
  const std::string missed = line(1, "INFO round 1 is done") + line(10, "WARN no heartbeat from 10.0.0.2:7000");
  std::string before;
  for (int second = 1; second < 9; second += 2) before += line(second, fmt::format("INFO round {} is done", second));
  CHECK(Hinted({missed, before}, {}).find(Hint::Kind::end, "n2") != nullptr);
  const std::string after = before + line(12, "INFO a vote begins") + line(12, "INFO a vote is over");
  CHECK(Hinted({missed, after}, {}).find(Hint::Kind::end, "n2") == nullptr);
}

TEST_CASE("messages below a repeated heading are read separately", "[logs]") {
  const std::string head = "2026-01-02 03:04:05 Recorder\n";
  const Hinted one(
      {head + "a flush was rolled back\n" + head + "OSError: [Errno 28] No space left on device: '/srv/x.db'\n"}, {});
  REQUIRE(one.find(Hint::Kind::call, "n1") != nullptr);
  CHECK(one.find(Hint::Kind::call, "n1")->path == "/srv/x.db");
}

TEST_CASE("an error in the answer of another node is assigned to that node", "[logs]") {
  const auto fails = [](const std::string& text) {
    const Hinted one({"2026-01-02 03:04:05 INFO up\n2026-01-02 03:04:06 ERROR " + text + "\n"}, {});
    std::string nodes;
    for (const std::string node : {"n1", "n2"})
      if (one.find(Hint::Kind::call, node) != nullptr) nodes += node;
    if (nodes == "n2")
      for (const Hint& hint : one.evidence.hints) CHECK(hint.kind != Hint::Kind::silence);
    return nodes;
  };
  CHECK(fails("cannot store batch 18, n2 answered that there is no space left on its disk") == "n2");
  CHECK(fails("replica n2 returned \"Input/output error\" for append of segment 4") == "n2");
  CHECK(fails("ask 10.0.0.2:7000: rpc error: code = Unknown desc = write /data/1.log: no space left on device") ==
        "n2");
  CHECK(fails("upload to 10.0.0.2:9000 was rejected with status 507 (Insufficient Storage)") == "n2");
  // This is an error of the node that writes: it could not store what n2 had sent.
  CHECK(fails("cannot write batch 18 of n2: No space left on device") == "n1");
  CHECK(fails("n2 answered in 3 ms, write /data/1.log: no space left on device") == "n1");
}
