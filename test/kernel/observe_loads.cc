// Every program of the tracer is one that this kernel's verifier takes.
#include <algorithm>
#include <iterator>

#include "loads.h"
#include "observe_support.h"

TEST_CASE("the kernel takes every program of the tracer, however many nodes and levels there are", "[loads]") {
  const auto [nodes, levels] = GENERATE(table<std::uint32_t, std::uint32_t>({{1, 0}, {3, 1}, {ROSE_MOST_NODES, ROSE_MOST_LEVELS}}));
  CAPTURE(nodes, levels);
  rose::test::load_each<rose_tracer>([&](rose_tracer& skeleton, const std::string&) {
    auto& fixed = *skeleton.rodata;
    std::fill(std::begin(fixed.rose_changing), std::end(fixed.rose_changing), ~0ull);
    fixed.rose_node_count = nodes;
    fixed.rose_level_count = levels;
    for (std::uint32_t i = 0; i < levels; ++i) fixed.rose_levels[i] = levels - i;
    fixed.rose_storm_slots = 64;
    fixed.rose_ring_limit = 1 << 20;
    return true;
  });
}
