// Redaction of a trace that is given to others: secrets in its texts are replaced, and equal texts remain equal.
#include "trace/redact.h"

#include <catch2/catch.hpp>

#include "trace/clock.h"

using namespace rose;
using namespace rose::trace;

namespace {

Trace secret_trace() {
  Trace trace;
  trace.meta.node = trace.meta.host = "vault7";
  trace.meta.boot_id = "b2e6e1dc-8fb3-43bf-bcbe-143bf63a2f41";
  trace.meta.nodes = {"vault7"};
  trace.meta.addresses = {"vault7=10.1.2.3"};
  trace.meta.labels = {"vault7=unit:postgresql.service"};
  trace.meta.handshakes = {to_text({"10.1.2.4:40000", "10.1.2.3:7000", 9, 1, 2, 0})};
  trace.meta.trigger = "crash: vault7";
  trace.meta.lost = 3;
  Event event;
  event.type = EventType::scf;
  event.ts_ns = 5;
  event.node = trace.strings.intern("vault7");
  event.path = trace.strings.intern("/home/alice/data/log.1");
  event.peer = trace.strings.intern("10.1.2.4:7000");
  event.function = trace.strings.intern("vault7::open");
  trace.events = {event, event};
  trace.events[1].path2 = trace.events[0].path;
  return trace;
}

}  // namespace

TEST_CASE("a redacted trace contains no host name, address or user", "[trace]") {
  Redactor redactor({}, {});
  const Trace out = redacted(secret_trace(), redactor);
  REQUIRE(out.events.size() == 2);
  CHECK(out.str(out.events[0].node) == "host-1");
  CHECK(out.str(out.events[0].path) == "/home/user-1/data/log.1");
  CHECK(out.events[1].path2 == out.events[0].path);
  CHECK(out.events[0].ts_ns == 5);
  // The names of functions are kept, because they do not reveal on which host the code runs.
  CHECK(out.str(out.events[0].function) == "vault7::open");

  const Meta& meta = out.meta;
  CHECK((meta.node == "host-1" && meta.host == "host-1" && meta.nodes == std::vector<std::string>{"host-1"}));
  CHECK(meta.boot_id.empty());
  CHECK(meta.trigger == "crash: host-1");
  CHECK(meta.lost == 3);
  CHECK(meta.labels == std::vector<std::string>{"host-1=unit:postgresql.service"});
  // The peer in the event is the client of the handshake, not the node itself.
  const auto handshake = to_handshake(meta.handshakes.at(0));
  REQUIRE(handshake);
  CHECK(handshake->client.substr(0, handshake->client.find(':')) ==
        out.str(out.events[0].peer).substr(0, out.str(out.events[0].peer).find(':')));
  CHECK(nodes_by_address(meta).at(std::string(handshake->server.substr(0, handshake->server.find(':')))) == "host-1");
  for (const std::string_view one : out.strings.all())
    CHECK((one.find("10.1.2") == one.npos && one.find("alice") == one.npos));
}
