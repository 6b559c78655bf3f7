#include "explain/features.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>
#include <unordered_map>

#include "base/ascii.h"
#include "explain/evidences.h"
#include "explain/explain.h"
#include "explain/function_names.h"
#include "explain/symptom.h"
#include "knowledge/verbs.h"

namespace rose::explain {
namespace {

constexpr double kNamedByType = 0.4;  // value of `named` if the word is only in the name of the function's type
constexpr double kLogScale = 4;       // brings the logarithm of a count near 1
// a word counts in full if at least this share of the library units has it (see library_share())
constexpr double kFullHelper = 0.1;

// Counts, for each function, how many different functions are entered directly before it and directly after it.
void from_use(const Input& input, Evidences& out) {
  struct Use {
    std::string function;
    std::set<std::size_t> before, after;
  };
  std::vector<Use> uses;
  std::map<std::string, std::size_t> numbers;
  // by kind of step, for entries of functions: index into `uses`
  std::vector<std::size_t> use_of(input.kinds.size(), 0);
  for (std::uint32_t id = 0; id < input.kinds.size(); ++id) {
    if (input.kinds[id].what != StepKind::function) continue;
    const auto [at, fresh] = numbers.emplace(key_of(input.kinds[id].function), uses.size());
    if (fresh) uses.push_back({input.kinds[id].function, {}, {}});
    use_of[id] = at->second;
  }
  for (const Run& run : input.runs) {
    if (run.group != Group::sound && run.group != Group::failing) continue;
    std::unordered_map<std::int32_t, std::size_t> last;  // by thread
    for (const Step& step : run.steps) {
      if (input.kinds[step.kind].what != StepKind::function) continue;
      const std::size_t own = use_of[step.kind];
      const auto [at, fresh] = last.emplace(step.tid, own);
      if (!fresh && at->second != own) uses[own].before.insert(at->second), uses[at->second].after.insert(own);
      at->second = own;
    }
  }
  for (const Use& use : uses)
    if (Evidence* evidence = out.find(use.function))
      evidence->features[Feature::reused] =
          (std::log1p(static_cast<double>(use.before.size())) - std::log1p(static_cast<double>(use.after.size()))) /
          kLogScale;
}

// How common names with this first word are in libraries. The share also depends on whether further words follow: in
// "applyAll" and in "apply_all", one word follows "apply".
double share_of_name(std::string_view name) {
  name.remove_prefix(std::min(name.find_first_not_of('_'), name.size()));
  std::string word;
  std::size_t at = 0;
  for (; at < name.size() && is_alpha(name[at]); ++at) {
    const bool before_lower = at + 1 < name.size() && is_lower(name[at + 1]);
    if (at > 0 && is_upper(name[at]) && (is_lower(name[at - 1]) || before_lower)) break;
    word += lower_case(name[at]);
  }
  return knowledge::library_share(word, at < name.size());
}

}  // namespace

std::string times(std::size_t have, std::size_t all) {
  return have == all ? fmt::format("all {}", all) : fmt::format("{} of {}", have, all);
}

void Evidence::tell(double weight, const std::string& node, std::string reason) {
  if (!node.empty()) nodes.insert(node);
  if (std::none_of(why.begin(), why.end(), [&](const auto& one) { return one.second == reason; }))
    why.emplace(weight, std::move(reason));
}

const std::array<FeatureEntry, kFeatures>& features() {
  static constexpr std::array<FeatureEntry, kFeatures> kAll = {{
#define ROSE_FEATURE(constant, name, sign, prior, what) {Feature::constant, name, what, sign, prior},
#include "explain/features.def"
#undef ROSE_FEATURE
  }};
  return kAll;
}

void add_name(const std::string& function, Features& into) {
  const std::string key = key_of(function);
  const std::size_t at = key.find_last_of(":.");
  const std::string_view last = std::string_view(key).substr(at == std::string::npos ? 0 : at + 1);
  const bool makes = last.starts_with('<') || last.starts_with('~');  // "<init>" of Java, "~Lines" of C++
  into[Feature::helper] = makes ? 1 : std::min(1.0, share_of_name(last) / kFullHelper);
  into[Feature::base] = is_base(function) ? 1 : 0;
}

std::set<std::string> usual_functions(const Input& input, bool after_fault) {
  std::set<std::string> usual;
  for (const Run& run : input.runs) {
    if (run.group != Group::sound) continue;
    for (const Step& step : run.steps)
      if ((!after_fault || step.ts_ns > run.cut_ns) && input.kinds[step.kind].what == StepKind::function)
        usual.insert(key_of(input.kinds[step.kind].function));
  }
  return usual;
}

std::map<std::string, Evidence> evidence_of(const Input& input, const Comparison& comparison) {
  const auto failing = static_cast<std::size_t>(std::count_if(input.runs.begin(), input.runs.end(), [](const Run& run) {
    return run.group == Group::failing && !fired(run).empty();
  }));
  if (failing == 0) return {};
  Evidences evidences;
  const bool known_broken_off = from_stacks(input, failing, evidences) > 0;
  from_harmless_stacks(input, evidences);
  from_results(input, comparison, failing, evidences);
  from_entries(input, failing, evidences);
  from_requests(input, failing, evidences);
  from_messages(input, failing, evidences);
  from_late_messages(input, failing, evidences);
  from_ends(input, failing, evidences);
  from_differences(input, comparison, known_broken_off, evidences);
  from_recovery(input, failing, evidences);
  from_use(input, evidences);
  std::vector<std::string> names;
  for (const auto& [key, evidence] : evidences.all()) names.push_back(evidence.name);
  const std::map<std::string, Named> named = named_by(input.oracle_output, names);
  for (auto& [key, evidence] : evidences.all()) {
    add_name(evidence.name, evidence.features);
    const auto word = named.find(evidence.name);
    if (word == named.end()) continue;
    evidence.features[Feature::named] = word->second.own ? 1 : kNamedByType;
    evidence.named_by = word->second.word;
  }
  return std::move(evidences.all());
}

}  // namespace rose::explain
