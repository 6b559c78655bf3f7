#include "explain/recorded.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include <fmt/format.h>

#include "base/text.h"
#include "explain/explain.h"
#include "logs/mask.h"
#include "logs/template.h"

namespace rose::explain {
namespace {

constexpr std::size_t kMostWordsBytes = 160;
// least number of runs of each side; a single run usually differs in something that is specific to it
constexpr std::size_t kLeastRuns = 2;

constexpr double kMostAccident = 0.2;
constexpr std::int64_t kCoarse = 10'000'000;  // recorded times may be this many ns late

// For one run and node: the messages that the node received after the fault, in order, by key.
using Taken = std::map<std::string_view, std::vector<const RecordedMessage*>>;

Taken taken_by(const Run& run, const std::string& node) {
  Taken taken;
  for (const RecordedMessage& message : run.recorded)
    if (message.node == node && message.ts_ns >= run.cut_ns - kCoarse) taken[message.key].push_back(&message);
  return taken;
}

const std::vector<const RecordedMessage*>& of_key(const Taken& taken, std::string_view key) {
  static const std::vector<const RecordedMessage*> none;
  const auto found = taken.find(key);
  return found == taken.end() ? none : found->second;
}

// The number of messages in the common beginning of `a` and `b`.
std::size_t alike(const std::vector<const RecordedMessage*>& a, const std::vector<const RecordedMessage*>& b) {
  std::size_t n = 0;
  while (n < a.size() && n < b.size() && a[n]->what == b[n]->what) ++n;
  return n;
}

// 1 divided by the number of ways to choose which of the runs are the failing ones.
double split_chance(std::size_t failing, std::size_t sound) {
  double ways = 1;
  for (std::size_t i = 1; i <= failing; ++i) ways = ways * static_cast<double>(sound + i) / static_cast<double>(i);
  return 1 / ways;
}

// The number of keys for which two of the runs received different messages.
std::size_t varying_keys(const std::vector<Taken>& failing, const std::vector<Taken>& sound) {
  std::vector<const Taken*> all;
  for (const auto* side : {&failing, &sound})
    for (const Taken& taken : *side) all.push_back(&taken);
  std::set<std::string_view> varying;
  for (const Taken* run : all)
    for (const auto& [key, messages] : *run)
      for (const Taken* other : all) {
        const auto& theirs = of_key(*other, key);
        if (theirs.empty() || alike(messages, theirs) < std::min(messages.size(), theirs.size())) varying.insert(key);
      }
  return varying.size();
}

bool is_text(std::string_view data) {
  return !data.empty() && std::all_of(data.begin(), data.end(), [](char c) {
    return (c >= ' ' && c <= '~') || c == '\n' || c == '\r' || c == '\t';
  });
}

}  // namespace

std::string recorded_words(std::string_view data) {
  if (data.empty()) return "nothing";
  if (is_text(data)) {
    std::string masked;
    logs::mask(data.substr(0, 4 * kMostWordsBytes), masked);
    while (!masked.empty() && (masked.back() == '\n' || masked.back() == '\r')) masked.pop_back();
    return "\"" + printable(masked.substr(0, kMostWordsBytes)) + "\"";
  }
  // The data is binary, so the meaning of a number in it is unknown. Its first byte often identifies the kind of
  // message. Sizes are rounded up to a power of two.
  std::size_t size = 8;
  while (size < data.size()) size *= 2;
  return data.size() <= 8
             ? fmt::format("{} bytes", data.size())
             : fmt::format("at most {} bytes, the first {:02x}", size, static_cast<unsigned char>(data.front()));
}

std::vector<RecordedDivergence> recorded_divergences(const Input& input, std::vector<std::string>& words) {
  std::vector<RecordedDivergence> all;
  std::set<std::string> nodes;
  for (const RecordedMessage& message : input.runs[input.story_run].recorded) nodes.emplace(message.node);
  for (const std::string& node : nodes) {
    const Taken story = taken_by(input.runs[input.story_run], node);
    std::vector<Taken> failing, sound;
    for (const Run& run : input.runs) {
      const auto first = std::find_if(run.recorded.begin(), run.recorded.end(),
                                      [&](const RecordedMessage& message) { return message.node == node; });
      // A recording whose kept part begins after the fault does not show what the node received first.
      if (first == run.recorded.end() || (run.recorded_late.contains(node) && first->ts_ns > run.cut_ns)) continue;
      if (run.group == Group::failing) failing.push_back(taken_by(run, node));
      if (run.group == Group::sound) sound.push_back(taken_by(run, node));
    }
    if (failing.size() < kLeastRuns || sound.size() < kLeastRuns) {
      words.push_back(
          fmt::format("recordings of {} are not compared: {} failing and {} correct runs have one that reaches back to "
                      "the fault, {} of each are needed",
                      node, failing.size(), sound.size(), kLeastRuns));
      continue;
    }
    const double chance =
        std::min(1.0, split_chance(failing.size(), sound.size()) * static_cast<double>(varying_keys(failing, sound)));
    std::optional<RecordedDivergence> best;
    std::int64_t best_ts = 0;
    for (const auto& [key, messages] : story) {
      std::size_t common = 0;
      const std::vector<const RecordedMessage*>* nearest = nullptr;
      for (const Taken& other : sound) {
        const auto& theirs = of_key(other, key);
        const std::size_t n = alike(messages, theirs);
        if (nearest == nullptr || n > common || (n == common && theirs.size() > nearest->size())) nearest = &theirs;
        common = std::max(common, n);
      }
      if (common == messages.size()) continue;  // a correct run received all of these messages, too
      const bool all_failing = std::all_of(failing.begin(), failing.end(), [&](const Taken& other) {
        return alike(messages, of_key(other, key)) > common;
      });
      if (!all_failing) continue;
      const RecordedMessage& message = *messages[common];
      if (best && best_ts <= message.ts_ns) continue;
      best_ts = message.ts_ns;
      best = RecordedDivergence{node,
                                std::string(key),
                                std::string(message.what),
                                std::string(nearest->size() > common ? (*nearest)[common]->what : ""),
                                common,
                                message.record,
                                std::string(message.file),
                                message.ts_ns - input.runs[input.story_run].zero_ns,
                                failing.size(),
                                sound.size(),
                                chance};
    }
    if (best && chance <= kMostAccident) all.push_back(std::move(*best));
    else if (best)
      words.push_back(
          fmt::format("recordings of {}: the difference between failing and correct runs may be chance; more runs "
                      "(--runs) show more",
                      node));
    else
      words.push_back(
          fmt::format("recordings of {}: no message distinguishes all failing from all correct runs", node));
  }
  std::sort(all.begin(), all.end(),
            [](const RecordedDivergence& a, const RecordedDivergence& b) { return a.at_ns < b.at_ns; });
  return all;
}

std::string divergence_words(const RecordedDivergence& d) {
  const std::string before = d.alike == 0
                                 ? "from the fault on"
                                 : fmt::format("after {} from '{}' that a correct run takes as well", d.alike, d.key);
  return fmt::format(
      "{}, {} takes {} from '{}', where {} (record {} of {}; all {} failing runs, none of {} correct ones)", before,
      d.node, d.what, d.key,
      d.instead.empty() ? "correct runs take nothing more" : "the nearest correct run takes " + d.instead, d.record,
      d.file, d.failing, d.sound);
}

}  // namespace rose::explain
