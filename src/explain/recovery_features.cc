// Adds the feature of functions that a restarted process executes when it uses the files that the killed process had
// left. A use counts only until the process accepts connections: later, it uses the same files in its usual work.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "explain/evidences.h"

namespace rose::explain {
namespace {

constexpr std::size_t kMostFiles = 3;  // files that were changed last; further ones were probably complete
// Factor for each earlier file. It may be complete, but a restart that reads several files may mix old and new ones.
constexpr double kEarlierFile = 0.8;
// Factor for a file that is read, but whose changes are not recorded, because it was open all the time. It was changed
// in this run, but perhaps long before the crash.
constexpr double kOnlyRead = 0.6;
constexpr std::int64_t kRecently = 1'000'000'000;  // ns; a file that was changed earlier was probably complete

// The path in the words of a call: "*/data/log" in "openat (*/data/log)".
std::string_view path_of(const Kind& kind) {
  const std::string_view words = kind.words;
  const std::size_t begin = words.find(" ("), end = words.rfind(')');
  return begin == words.npos || end == words.npos || end < begin ? std::string_view()
                                                                 : words.substr(begin + 2, end - begin - 2);
}

// The files that processes of the node had changed shortly before, the last one first.
std::vector<std::string_view> changed_before(const Run& run, const Kinds& kinds, const std::string& node,
                                             std::int64_t at_ns) {
  std::vector<std::string_view> files;
  for (auto step = run.steps.rbegin(); step != run.steps.rend() && files.size() < kMostFiles; ++step) {
    const Kind& kind = kinds[step->kind];
    if (step->ts_ns > at_ns || kind.what != StepKind::call || !kind.changes_file || kind.node != node) continue;
    if (step->ts_ns < at_ns - kRecently) break;
    if (const std::string_view path = path_of(kind);
        !path.empty() && std::find(files.begin(), files.end(), path) == files.end())
      files.push_back(path);
  }
  return files;
}

}  // namespace

void from_recovery(const Input& input, std::size_t failing, Evidences& out) {
  struct Reads {
    double share = 0;  // added up over the runs
    std::string node, path;
    bool known = false;  // when the killed process changed it is known
  };
  std::map<std::string, Reads> all;  // by function
  for (const Run& run : input.runs) {
    if (run.group != Group::failing) continue;
    std::map<std::string, Reads> here;
    for (const schedule::FaultOutcome* outcome : fired(run)) {
      const schedule::Fault* planned = input.schedule.find(outcome->id);
      if (planned == nullptr || planned->kind != schedule::FaultKind::crash) continue;
      const std::int64_t at = run.zero_ns + outcome->fired_ns;
      const std::string& node = outcome->node.empty() ? planned->node : outcome->node;
      const std::vector<std::string_view> files = changed_before(run, input.kinds, node, at);
      std::unordered_map<std::int32_t, std::vector<std::uint32_t>>
          entered;  // by thread: the last two functions, because the last one may
      // have returned before the file is used
      std::vector<bool> read(files.size());
      std::set<std::string_view> others;  // files that are read, but not among `files`
      for (const Step& step : run.steps) {
        const Kind& kind = input.kinds[step.kind];
        // The killed process may still end a call.
        if (step.ts_ns <= at || step.pid == outcome->pid || kind.node != node) continue;
        std::vector<std::uint32_t>& last = entered[step.tid];
        if (kind.what == StepKind::function) {
          last.insert(last.begin(), step.kind);
          if (last.size() > 2) last.pop_back();
        }
        if (kind.what != StepKind::call && kind.what != StepKind::failed_call) continue;
        if (kind.words.starts_with("listen") || kind.words.starts_with("accept")) break;  // it has recovered
        const std::string_view path = path_of(kind);
        const auto file = std::find(files.begin(), files.end(), path);
        double share = 1;
        if (file != files.end()) {
          const auto number = static_cast<std::size_t>(file - files.begin());
          if (read[number]) continue;
          read[number] = true;
          for (std::size_t i = 0; i < number; ++i) share *= kEarlierFile;
        } else if (opens_to_read(kind) && others.insert(path).second && others.size() <= kMostFiles) {
          share = kOnlyRead;
        } else {
          continue;
        }
        for (const std::uint32_t function : last) {
          Reads& of = here[input.kinds[function].function];
          if (of.share < share) of = {share, node, std::string(path), file != files.end()};
        }
      }
    }
    for (auto& [function, of] : here) {
      Reads& sum = all[function];
      of.share += sum.share;
      sum = std::move(of);
    }
  }
  for (const auto& [function, of] : all) {
    Evidence& evidence = out[function];
    const double share = of.share / static_cast<double>(failing);
    evidence.features.raise(Feature::reads_back, share);
    // A restarted process enters it as every process does that starts, so this is no evidence.
    for (const Feature feature : {Feature::usual, Feature::harmless}) evidence.features[feature] *= 1 - share;
    evidence.tell(
        0.6 * share, of.node,
        fmt::format("entered just before {} was first used after the restart; {}", of.path,
                    of.known ? "the killed process had changed it last" : "the file had been changed in this run"));
  }
}

}  // namespace rose::explain
