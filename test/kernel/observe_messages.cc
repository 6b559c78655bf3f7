// Messages between nodes. Every call that sends or receives is reported once, with the first bytes of its data, and
// both ends count the same.
#include <algorithm>

#include "observe_network.h"

using namespace rose;
using namespace rose::observe;
using namespace rose::observe::test;

namespace {

TracerOptions watched() {
  TracerOptions options;
  options.messages = true;
  return options;
}

std::vector<SeenMessage> of(const SeenMessages& seen, std::uint32_t node, bool taken) {
  std::vector<SeenMessage> out;
  for (const SeenMessage& one : seen.messages)
    if (one.node == node && one.taken == taken) out.push_back(one);
  return out;
}

std::vector<std::string> data(const std::vector<SeenMessage>& messages) {
  std::vector<std::string> out;
  for (const SeenMessage& one : messages) out.push_back(one.data);
  return out;
}

}  // namespace

TEST_CASE("every send and receive is recorded with its size, and both ends count the same") {
  const OwnNetwork network;
  const TestCgroup first("sender"), second("receiver");
  Victim receiver(&second, {"receive"}, "trace_messages");
  const int tcp = receiver.number("tcp"), udp = receiver.number("udp");
  REQUIRE(udp > 0);
  Victim sender(&first, {"send", std::to_string(tcp), std::to_string(udp)}, "trace_messages");
  auto tracer = start({target("n1", first), target("n2", second)}, watched());
  sender.go();
  REQUIRE(sender.number("done") == 1);
  const SeenMessages seen = tracer->take_messages();
  const auto sent = of(seen, 0, false), received = of(seen, 1, true), answers = of(seen, 1, false),
             answered = of(seen, 0, true);
  // A call that only peeks at data (MSG_PEEK) receives none. Data from a file has no beginning in memory.
  CHECK(data(sent) ==
        std::vector<std::string>{"write", "writev", "sendto", "sendmsg", "sendmmsg", "", "datagram-1", "datagram-2"});
  CHECK(data(received) == std::vector<std::string>{"write", "writev", "sendto", "sendmsg", "sendmmsg", "sendfile!",
                                                   "datagram-1", "datagram-2"});
  CHECK(data(answers) == std::vector<std::string>{"k1", "k2", "k3", "k4", "k5", "k6", "k7", "k8"});
  CHECK(data(answered) == data(answers));
  REQUIRE(sent.size() == 8);
  REQUIRE(received.size() == 8);
  for (std::size_t i = 0; i < sent.size(); ++i) {
    CAPTURE(i);
    const bool is_tcp = i < 6;
    CHECK(sent[i].tcp == is_tcp);
    CHECK(sent[i].bytes == received[i].bytes);
    CHECK(sent[i].peer == "127.0.0.1");
    CHECK(sent[i].peer_port == (is_tcp ? tcp : udp));
    CHECK(received[i].own_port == sent[i].peer_port);
    CHECK(sent[i].pid == sender.pid());
    CHECK(received[i].tid == receiver.pid());
    if (!is_tcp) continue;
    CHECK(received[i].peer_port == sent[i].own_port);
    CHECK(received[i].end == sent[i].end);
    if (i > 0) CHECK(sent[i].end - sent[i - 1].end == sent[i].bytes);
  }
  CHECK(sent[5].bytes == 9);
  CHECK(std::none_of(seen.left_out.begin(), seen.left_out.end(), [](bool left_out) { return left_out; }));
  // None of these calls is an event.
  for (const trace::Event& event : snapshot(*tracer).events) CHECK(event.type != trace::EventType::af);
}

TEST_CASE("nodes with too many messages are left out with a note, foreign messages are not recorded") {
  const OwnNetwork network;
  const TestCgroup first("floods"), second("quiet");
  Victim receiver(&second, {"receive"}, "trace_messages");
  const int udp = receiver.number("udp");
  Target one = target("n1", first), other = target("n2", second);
  SECTION("to a node") {
    Victim sender(&first, {"flood", std::to_string(udp), "30000"}, "trace_messages");
    auto tracer = start({one, other}, watched());
    sender.go();
    REQUIRE(sender.number("done") == 1);
    const SeenMessages seen = tracer->take_messages();
    // All messages are reported, unless they came so fast that the limit of reports per second was reached.
    CHECK((seen.messages.size() == 30000 || seen.left_out[0]));
    CHECK(seen.messages.size() >= 2000);
    CHECK_FALSE(seen.left_out[1]);
  }
  SECTION("to an address of no node") {
    one.addresses = {"10.99.0.1"};
    other.addresses = {"10.99.0.2"};
    Victim sender(&first, {"flood", std::to_string(udp), "100"}, "trace_messages");
    auto tracer = start({one, other}, watched());
    sender.go();
    REQUIRE(sender.number("done") == 1);
    CHECK(tracer->take_messages().messages.empty());
  }
  SECTION("messages are not requested") {
    Victim sender(&first, {"flood", std::to_string(udp), "100"}, "trace_messages");
    auto tracer = start({one, other});
    sender.go();
    REQUIRE(sender.number("done") == 1);
    CHECK(tracer->take_messages().messages.empty());
  }
}
