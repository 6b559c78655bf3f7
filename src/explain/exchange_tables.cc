// The messages that nodes exchange: a table for each pair of nodes, over the same period in all runs.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <map>
#include <tuple>

#include "explain/explain.h"

namespace rose::explain {
namespace {

constexpr std::size_t kFewestCounted = 4;  // with fewer runs of either side, counts are not compared
constexpr std::size_t kMostTables = 40;
// upper estimate of the probability that two counts are apart() by chance, as in order.cc
constexpr double kFarApartByChance = 0.25;
constexpr std::uint64_t kLeastApart = 3;  // least gap between counts that differ, in messages

struct OfRun {
  std::uint64_t messages = 0, bytes = 0, untaken = 0;
};
// from, to, port, true if the service is the sender
using Pair = std::tuple<std::string, std::string, std::uint16_t, bool>;

double splits(std::size_t n, std::size_t k) {
  double out = 1;
  for (std::size_t i = 1; i <= k; ++i) out *= static_cast<double>(n - k + i) / static_cast<double>(i);
  return out;
}

void add(ExchangeCount& count, const OfRun& run, bool first) {
  const auto widen = [&](std::uint64_t& least, std::uint64_t& most, std::uint64_t value) {
    least = first ? value : std::min(least, value);
    most = first ? value : std::max(most, value);
  };
  widen(count.least, count.most, run.messages);
  widen(count.least_bytes, count.most_bytes, run.bytes);
  count.untaken = std::max(count.untaken, run.untaken);
}

// True if all values of one count are at most half of all values of the other, and the gap between them is at least
// kLeastApart and exceeds the spread of either.
bool apart(const ExchangeCount& a, const ExchangeCount& b) {
  const ExchangeCount &low = a.most < b.least ? a : b, &high = a.most < b.least ? b : a;
  if (low.most >= high.least) return false;
  const std::uint64_t gap = high.least - low.most, spread = (low.most - low.least) + (high.most - high.least);
  return gap >= kLeastApart && gap > spread && high.least >= 2 * low.most;
}

bool is_compared(const Run& run) {
  return run.group != Group::shorter && (run.group != Group::failing || !fired(run).empty());
}

}  // namespace

std::string amount_words(const ExchangeCount& count) {
  const auto range = [](std::uint64_t least, std::uint64_t most) {
    return least == most ? std::to_string(least) : fmt::format("{} to {}", least, most);
  };
  std::string out = fmt::format("{} message{}, {} bytes", range(count.least, count.most), count.most == 1 ? "" : "s",
                                range(count.least_bytes, count.most_bytes));
  if (count.untaken > 0) out += fmt::format(", up to {} never received", count.untaken);
  return out;
}

std::vector<ExchangeTable> exchange_tables(const std::vector<Run>& runs) {
  const bool found =
      std::all_of(runs.begin(), runs.end(), [](const Run& run) { return run.group != Group::sound || run.found_cut; });
  // The moment that corresponds to the cut of correct runs. In a run with a fault, it may be earlier than the fault.
  const auto begin_of = [&](const Run& run) {
    return found && run.known_ns > 0 && !fired(run).empty() ? run.known_ns : run.cut_ns;
  };
  std::int64_t window = std::numeric_limits<std::int64_t>::max();
  std::array<std::size_t, 3> amount{};
  std::vector<std::string> talkative;
  for (const Run& run : runs) {
    if (!is_compared(run)) continue;
    if (run.group != Group::near) window = std::min(window, run.end_ns - begin_of(run));
    ++amount[static_cast<std::size_t>(run.group)];
    talkative.insert(talkative.end(), run.talkative.begin(), run.talkative.end());
  }
  std::map<Pair, std::array<std::vector<OfRun>, 3>> pairs;
  for (const Run& run : runs) {
    if (!is_compared(run)) continue;
    std::map<Pair, OfRun> here;
    for (const Exchanged& one : run.exchanged) {
      if (one.is_end() || one.ts_ns <= begin_of(run) || one.ts_ns - begin_of(run) > window) continue;
      OfRun& of = here[{one.from, one.to, one.port, one.answer}];
      ++of.messages;
      of.bytes += one.bytes;
      if (one.taken_ns == 0 || one.taken_ns > run.end_ns) ++of.untaken;
    }
    for (const auto& [pair, of] : here) pairs[pair][static_cast<std::size_t>(run.group)].push_back(of);
  }
  std::vector<ExchangeTable> out;
  std::size_t varying = 0;
  for (auto& [pair, groups] : pairs) {
    ExchangeTable table;
    std::tie(table.from, table.to, table.port, table.answer) = pair;
    if (std::find(talkative.begin(), talkative.end(), table.from) != talkative.end() ||
        std::find(talkative.begin(), talkative.end(), table.to) != talkative.end())
      continue;
    const std::array<ExchangeCount*, 3> counts{&table.failing, &table.sound, &table.near};
    for (std::size_t group = 0; group < counts.size(); ++group) {
      groups[group].resize(amount[group]);  // an entry for each run in which this pair exchanged nothing
      for (std::size_t i = 0; i < groups[group].size(); ++i) add(*counts[group], groups[group][i], i == 0);
    }
    const bool differs = apart(table.failing, table.sound);
    if (!differs && (table.failing.least != table.failing.most || table.sound.least != table.sound.most)) ++varying;
    if (differs && amount[0] >= kFewestCounted && amount[1] >= kFewestCounted)
      table.differs =
          fmt::format("{} in failing runs, {} in correct ones", amount_words(table.failing), amount_words(table.sound));
    out.push_back(std::move(table));
  }
  if (kFarApartByChance * (static_cast<double>(varying) / 3 + 0.5) * 2 / splits(amount[0] + amount[1], amount[0]) >
      kMostChance)
    for (ExchangeTable& table : out) table.differs.clear();
  // First the rows that differ, then those with the most messages.
  std::stable_sort(out.begin(), out.end(), [](const ExchangeTable& a, const ExchangeTable& b) {
    return std::tuple(a.differs.empty(), std::max(b.failing.most, b.sound.most)) <
           std::tuple(b.differs.empty(), std::max(a.failing.most, a.sound.most));
  });
  if (out.size() > kMostTables) out.resize(kMostTables);
  return out;
}

}  // namespace rose::explain
