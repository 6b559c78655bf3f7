// Compares the contents of two traces, even if their strings have different ids.
#pragma once

#include <catch2/catch.hpp>

#include "trace/event.h"

namespace rose::trace::test {

inline bool same_event(const Trace& ta, const Event& a, const Trace& tb, const Event& b) {
  const auto text = [&](StringId x, StringId y) { return (x == 0) == (y == 0) && ta.str(x) == tb.str(y); };
  return a.ts_ns == b.ts_ns && a.result == b.result && text(a.node, b.node) && text(a.path, b.path) &&
         text(a.path2, b.path2) && text(a.peer, b.peer) && text(a.function, b.function) && text(a.src, b.src) &&
         text(a.dst, b.dst) && a.pid == b.pid && a.tid == b.tid && a.fd == b.fd && a.duration_ms == b.duration_ms &&
         a.exit_code == b.exit_code && a.packets == b.packets && a.count == b.count && a.syscall == b.syscall &&
         a.err == b.err && a.sport == b.sport && a.dport == b.dport && a.signal == b.signal && a.type == b.type &&
         a.state == b.state && a.protocol == b.protocol && a.flags == b.flags && a.open_flags == b.open_flags &&
         text(a.by, b.by) && a.requested == b.requested && a.begin_within_ms == b.begin_within_ms &&
         a.end_within_ms == b.end_within_ms && a.usual_ms == b.usual_ms;
}

inline void require_same(const Trace& a, const Trace& b) {
  CHECK(a.meta.version == b.meta.version);
  CHECK(a.meta.node == b.meta.node);
  CHECK(a.meta.host == b.meta.host);
  CHECK(a.meta.boot_id == b.meta.boot_id);
  CHECK(a.meta.wall_base_ns == b.meta.wall_base_ns);
  CHECK(a.meta.monotonic_base_ns == b.meta.monotonic_base_ns);
  CHECK(a.meta.window == b.meta.window);
  CHECK(a.meta.memory == b.meta.memory);
  CHECK(a.meta.lost == b.meta.lost);
  CHECK(a.meta.suppressed == b.meta.suppressed);
  CHECK(a.meta.network_delay_ns == b.meta.network_delay_ns);
  CHECK(a.meta.pause_ns == b.meta.pause_ns);
  CHECK(a.meta.workload_ts == b.meta.workload_ts);
  CHECK(a.meta.begin_ns == b.meta.begin_ns);
  CHECK(a.meta.end_ns == b.meta.end_ns);
  CHECK(a.meta.trigger == b.meta.trigger);
  CHECK(a.meta.suppressed_calls == b.meta.suppressed_calls);
  CHECK(a.meta.nodes == b.meta.nodes);
  CHECK(a.meta.addresses == b.meta.addresses);
  CHECK(a.meta.pairs_evicted == b.meta.pairs_evicted);
  CHECK(a.meta.handshakes == b.meta.handshakes);
  CHECK(a.meta.clock == b.meta.clock);
  CHECK(a.meta.labels == b.meta.labels);
  REQUIRE(a.events.size() == b.events.size());
  for (std::size_t i = 0; i < a.events.size(); ++i) {
    if (!same_event(a, a.events[i], b, b.events[i])) FAIL("event " << i << " differs");
  }
}

}  // namespace rose::trace::test
