// Tells what happened in one failing run, from the first fault to the symptom: what the faulted threads did next, what
// only failing runs do, what was logged, and how the run ended. The story contains only what the trace and the logs
// show.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/text.h"
#include "explain/explain.h"
#include "explain/function_names.h"

namespace rose::explain {
namespace {

// at most this many next steps of a faulted thread are reported, even if correct runs make them as well
constexpr std::size_t kNextSteps = 3;
// at most this many messages of a faulted node to others after the fault are reported, even if correct runs send them
// as well
constexpr std::size_t kMostSends = 3;
// at most this many next steps of the thread that received a message are reported
constexpr std::size_t kMostReactions = 2;
constexpr std::int64_t kReactionNs = 1'000'000'000;
constexpr std::size_t kMostMessageBytes = 200;
constexpr std::size_t kMostFrames = 3;
constexpr std::size_t kMostValues = 2;  // values of one function
// at most this many missing steps of one node are reported; fewer if its process ended, because a process that has
// ended makes no steps anyway
constexpr std::size_t kMostMissing = 4, kMostMissingOfDead = 2;
// of the steps of one node that correct runs make earlier, and that do not occur only with the bug, at most this many
// are reported
constexpr std::size_t kMostUsual = 2;
constexpr double kUsual = 0.5;
constexpr std::string_view kOnlyBug = ": only with the bug", kOnlyFault = ": only with the fault";

struct Candidate {
  double weight = 0;
  StoryLine line;
};

std::string one_line(std::string_view text, std::size_t most = kMostMessageBytes) {
  std::string out(text.substr(0, text.find('\n')));
  if (out.size() > most) out = out.substr(0, most) + "...";
  return out;
}

// "in store (store.c:71), called from request (store.c:110)"
std::string stack_words(const schedule::Stack& stack) {
  std::vector<std::string> frames;
  for (const schedule::Frame& frame : stack.frames) {
    if (frame.function.empty() || is_library(frame)) continue;
    frames.push_back(at_place(frame));
    if (frames.size() == kMostFrames) break;
  }
  if (frames.empty()) return {};
  std::string out = "in " + frames[0];
  for (std::size_t i = 1; i < frames.size(); ++i) out += (i == 1 ? ", called from " : ", from ") + frames[i];
  return out;
}

class Teller {
 public:
  Teller(const Input& input, const Comparison& comparison)
      : input_(input), comparison_(comparison), run_(input.runs[input.story_run]) {}

  std::vector<StoryLine> tell() {
    faults();
    for (const Difference& d : comparison_.differences) keys_.insert({{d.kind, d.next}, &d});
    next_steps();
    sends();
    differences();
    messages();
    ends();
    symptom();
    return chosen();
  }

 private:
  void add(double weight, StoryLine::Kind kind, std::int64_t ts_ns, std::string node, std::string text,
           std::string evidence) {
    Candidate candidate;
    candidate.weight = weight;
    // Show paths as in the configuration, without the folder of this run.
    if (!input_.run_dir.empty()) text = replaced(std::move(text), input_.run_dir + "/", "");
    candidate.line = {kind, ts_ns, ts_ns - run_.zero_ns, std::move(node), std::move(text), std::move(evidence), false};
    candidates_.push_back(std::move(candidate));
  }
  // A message that does not differ from those of correct runs.
  void add_usual(double weight, const Step& step, const LogLine& line, std::string text) {
    add(weight, StoryLine::Kind::message, step.ts_ns, line.node, std::move(text), line.place);
    candidates_.back().line.usual = true;
  }

  [[nodiscard]] std::string evidence_of(const Step& step) const {
    if (input_.kinds[step.kind].what == StepKind::message) return input_.lines[step.source].place;
    if (input_.kinds[step.kind].what == StepKind::value) return fmt::format("thread {}", step.tid);
    if (is_exchange(input_.kinds[step.kind].what) && !run_.exchanged[step.source].is_end())
      return fmt::format("thread {}, {} bytes", step.tid, run_.exchanged[step.source].bytes);
    if (is_exchange(input_.kinds[step.kind].what)) return fmt::format("thread {}", step.tid);
    return fmt::format("event {}", step.source + 1);
  }

  // Describes this step. Unlike the words of its kind, the description contains no placeholders.
  [[nodiscard]] std::string words_of(const Step& step) const {
    const Kind& kind = input_.kinds[step.kind];
    if (kind.what == StepKind::message) return fmt::format("logs '{}'", one_line(input_.lines[step.source].text));
    if (is_exchange(kind.what)) return exchange_of(step);
    if (kind.what != StepKind::call && kind.what != StepKind::failed_call) return kind.words;
    const trace::Event& e = input_.story.trace.events[step.source];
    const std::string_view path = input_.story.trace.str(e.path);
    std::string words = kind.words.substr(0, kind.words.find(" ("));
    if (!path.empty()) return fmt::format("{} ({})", words, path);
    return kind.words;
  }

  // "sends n2 "put <*>" (port 7000); n2 has it 0.2 ms later: its thread 41 enters store, then logs ..."
  [[nodiscard]] std::string exchange_of(const Step& step) const {
    const Exchanged& one = run_.exchanged[step.source];
    const std::string later = fmt::format("{:.1f} ms", static_cast<double>(one.taken_ns - one.ts_ns) / 1e6);
    const std::string then = one.taken_ns != 0 ? reaction(one) : std::string();
    if (one.is_end())
      return fmt::format("finds {}'s connection closed (port {}){}", one.from, one.port,
                         then.empty() ? "" : "; then its thread " + then);
    if (input_.kinds[step.kind].what == StepKind::taken)
      return fmt::format("takes {}'s {} (port {}), sent {} before{}", one.from, one.words, one.port, later,
                         then.empty() ? "" : "; then its thread " + then);
    std::string words =
        fmt::format("{} {} {} (port {})", one.answer ? "answers" : "sends", one.to, one.words, one.port);
    if (one.taken_ns == 0 || one.taken_ns > run_.end_ns) return words + fmt::format("; {} does not take it", one.to);
    return words + fmt::format("; {} has it {} later{}", one.to, later,
                               then.empty() ? "" : fmt::format(": its thread {} {}", one.taken_tid, then));
  }

  // What the thread that received the message does next, up to the next message that it receives.
  [[nodiscard]] std::string reaction(const Exchanged& one) const {
    std::string out;
    std::size_t reactions = 0;
    std::set<std::uint32_t> seen;
    auto step = std::upper_bound(run_.steps.begin(), run_.steps.end(), one.taken_ns,
                                 [](std::int64_t at, const Step& other) { return at < other.ts_ns; });
    for (; step != run_.steps.end() && step->ts_ns <= std::min(one.taken_ns + kReactionNs, run_.end_ns) &&
           reactions < kMostReactions;
         ++step) {
      if (step->tid != one.taken_tid || step->pid != one.taken_pid) continue;
      const Kind& kind = input_.kinds[step->kind];
      if (kind.what == StepKind::taken) break;
      const bool thread = kind.what == StepKind::function || kind.what == StepKind::thrown ||
                          kind.what == StepKind::call || kind.what == StepKind::failed_call ||
                          kind.what == StepKind::sent;
      if (!thread || !seen.insert(step->kind).second) continue;
      out += (reactions++ == 0 ? "" : ", then ") + kind.words;
    }
    return out;
  }

  [[nodiscard]] std::string node_of(const Step& step) const {
    const Kind& kind = input_.kinds[step.kind];
    if (!kind.node.empty()) return kind.node;
    if (kind.what == StepKind::message) return input_.lines[step.source].node;
    if (kind.what == StepKind::value) return run_.values[step.source].node;
    if (kind.what == StepKind::sent) return run_.exchanged[step.source].from;
    if (kind.what == StepKind::taken) return run_.exchanged[step.source].to;
    return std::string(input_.story.trace.str(input_.story.trace.events[step.source].node));
  }

  void faults() {
    for (const schedule::FaultOutcome* outcome : fired(run_)) {
      const schedule::Fault* fault = input_.schedule.find(outcome->id);
      std::string text =
          fmt::format("fault '{}': {}", outcome->id, fault != nullptr ? schedule::in_words(*fault) : outcome->detail);
      if (!outcome->detail.empty() && fault != nullptr) text += fmt::format("; it hits {}", outcome->detail);
      add(1000, StoryLine::Kind::fault, run_.zero_ns + outcome->fired_ns, outcome->node, std::move(text),
          fmt::format("run {}", run_.number));
      // The stacks of threads that wait for a peer, or that meet a limit, are taken only some time after the fault
      // began.
      const bool later =
          fault != nullptr && (fault->kind == schedule::FaultKind::partition || schedule::limits(fault->kind));
      std::set<std::string> seen;
      for (const schedule::Stack& stack : outcome->stacks) {
        const std::string words = stack_words(stack);
        if (words.empty() || !seen.insert(words).second || seen.size() > 2) continue;
        add(900, StoryLine::Kind::fault, std::max(run_.zero_ns + stack.ns, run_.zero_ns + outcome->fired_ns),
            stack.node.empty() ? outcome->node : stack.node,
            later && !stack.why.empty()
                ? fmt::format("thread {} {}: {}", stack.thread, stack.why, words)
                : fmt::format("it arrives {}{}", words,
                              stack.thread.empty() ? "" : fmt::format("; thread {}", stack.thread)),
            "stack");
      }
      if (outcome->ended_ns)
        add(300, StoryLine::Kind::fault, run_.zero_ns + *outcome->ended_ns, outcome->node,
            fmt::format("fault '{}' is over", outcome->id), fmt::format("run {}", run_.number));
    }
  }

  [[nodiscard]] const Difference* difference(const Step& step) const {
    const auto found = keys_.find({step.kind, kNoKind});
    return found == keys_.end() || found->second->missing ? nullptr : found->second;
  }

  void next_steps() {
    for (const schedule::FaultOutcome* outcome : fired(run_)) {
      if (outcome->tid == 0) continue;
      const std::int64_t at = run_.zero_ns + outcome->fired_ns;
      std::size_t count = 0;
      std::set<std::uint32_t> seen;
      for (const Step& step : run_.steps) {
        if (step.ts_ns <= at || step.tid != outcome->tid || step.ts_ns > run_.end_ns ||
            input_.kinds[step.kind].what == StepKind::value || is_exchange(input_.kinds[step.kind].what))
          continue;
        if (!seen.insert(step.kind).second) continue;
        if (++count > kNextSteps) break;
        if (difference(step) != nullptr) continue;  // reported as a difference
        add(420 - static_cast<double>(count), StoryLine::Kind::thread, step.ts_ns, node_of(step),
            fmt::format("the same thread: {}", words_of(step)), evidence_of(step));
      }
    }
  }

  // The first message that a faulted node sends to each of the others, from the faulted thread if possible.
  void sends() {
    std::set<std::string> nodes;
    for (const schedule::FaultOutcome* outcome : fired(run_)) {
      if (outcome->node.empty() || !nodes.insert(outcome->node).second) continue;
      const std::int64_t at = run_.zero_ns + outcome->fired_ns;
      std::map<std::string, const Step*> first;  // by the other node
      for (const bool faulted : {true, false})
        for (const Step& step : run_.steps) {
          if (step.ts_ns <= at || step.ts_ns > run_.end_ns || input_.kinds[step.kind].what != StepKind::sent ||
              node_of(step) != outcome->node)
            continue;
          if (faulted && (outcome->tid == 0 || step.tid != outcome->tid)) continue;
          first.emplace(run_.exchanged[step.source].to, &step);
        }
      std::size_t count = 0;
      for (const auto& [to, step] : first) {
        if (++count > kMostSends) break;
        if (difference(*step) != nullptr) continue;  // reported as a difference
        add(405 - static_cast<double>(count), StoryLine::Kind::thread, step->ts_ns, node_of(*step), words_of(*step),
            evidence_of(*step));
      }
    }
  }

  [[nodiscard]] static std::string counted(const Difference& d) {
    std::string out = fmt::format("in {} failing and {} correct runs", of_runs(d.failing, d.failing_runs),
                                  of_runs(d.sound, d.sound_runs));
    if (d.near_runs > 0) out += fmt::format(", {} without harm", of_runs(d.near, d.near_runs));
    return out;
  }

  // True for a step that a limit such as a full disk causes. The program did not decide to make it.
  [[nodiscard]] bool effect_of_fault(const Step& step) const {
    const std::vector<const schedule::FaultOutcome*> all = fired(run_);
    return std::any_of(all.begin(), all.end(), [&](const schedule::FaultOutcome* outcome) {
      const schedule::Fault* fault = input_.schedule.find(outcome->id);
      return fault != nullptr && outcome->node == node_of(step) && step.ts_ns >= run_.zero_ns + outcome->fired_ns &&
             takes_effect(fault->kind, input_.kinds[step.kind]);
    });
  }

  // True for a value that says no more than that the function was called.
  [[nodiscard]] static bool says_nothing(const Kind& kind) {
    return kind.what == StepKind::value &&
           (kind.words.ends_with(" is an address") || kind.words.find(" calls through a pointer") != std::string::npos);
  }

  void differences() {
    std::set<std::uint32_t> seen;
    std::map<std::string, std::size_t> usual, values;
    for (const Step& step : run_.steps) {
      if (step.ts_ns <= run_.cut_ns || step.ts_ns > run_.end_ns) continue;
      const Difference* d = difference(step);
      if (d == nullptr || !seen.insert(step.kind).second) continue;
      const Kind& kind = input_.kinds[step.kind];
      if (says_nothing(kind) || (kind.what == StepKind::value && ++values[kind.function] > kMostValues)) continue;
      if (effect_of_fault(step)) {
        add(900, StoryLine::Kind::fault, step.ts_ns, node_of(step), "it takes effect: " + words_of(step),
            fmt::format("{}; {}", evidence_of(step), counted(*d)));
        continue;
      }
      if (d->earlier >= kUsual && !d->only_bug && ++usual[node_of(step)] > kMostUsual) continue;
      const bool message = input_.kinds[step.kind].what == StepKind::message;
      std::string text = words_of(step);
      if (d->clean) text += d->only_bug ? kOnlyBug : kOnlyFault;
      if (d->earlier >= kUsual) text += " (correct runs do so before)";
      add((d->clean ? 500 : 200) + 200 * d->weight + (d->only_bug ? 60 : 0) - 200 * d->earlier,
          message ? StoryLine::Kind::message : StoryLine::Kind::difference, step.ts_ns, node_of(step), std::move(text),
          fmt::format("{}; {}", evidence_of(step), counted(*d)));
    }
    for (const Swapped& swap : comparison_.orders) {
      const auto step = std::find_if(run_.steps.begin(), run_.steps.end(),
                                     [&](const Step& one) { return one.kind == swap.late && one.ts_ns > run_.cut_ns; });
      if (step == run_.steps.end() || step->ts_ns > run_.end_ns) continue;
      const std::string& node = input_.kinds[swap.early].node;
      add(500 + 200 * swap.weight, StoryLine::Kind::difference, step->ts_ns, node_of(*step),
          fmt::format("{} only now: before it came {}{}, in correct runs it comes first{}", words_of(*step),
                      node == node_of(*step) ? "" : node + ": ", one_line(order_of(swap.early)),
                      swap.only_bug ? kOnlyBug : kOnlyFault),
          fmt::format("{}; in all failing and no correct runs", evidence_of(*step)));
    }
    std::map<std::string, std::size_t> missing_of;
    for (const Difference& d : comparison_.differences) {
      if (!d.missing || !d.clean || d.next != kNoKind) continue;
      const Kind& kind = input_.kinds[d.kind];
      const std::string words =
          kind.what == StepKind::message
              ? fmt::format("logs '{}'", one_line(input_.message ? input_.message(kind.message) : ""))
              : kind.words;
      if (++missing_of[kind.node] > (ended_in(kind.node) ? kMostMissingOfDead : kMostMissing)) continue;
      add(380 + 200 * d.weight, StoryLine::Kind::missing, run_.cut_ns + d.after_ns, kind.node,
          fmt::format("about now correct runs go on: {}; this one does not", words), counted(d));
    }
  }

  // True if the node's main process ended after the fault. For merged nodes, true if the main process of any of them
  // ended.
  [[nodiscard]] bool ended_in(const std::string& node) const {
    return std::any_of(run_.steps.begin(), run_.steps.end(),
                       [&](const Step& step) {
                         if (step.ts_ns <= run_.cut_ns || step.ts_ns > run_.end_ns ||
                             input_.kinds[step.kind].what != StepKind::process)
                           return false;
                         const trace::Event& e = input_.story.trace.events[step.source];
                         const bool ended =
                             e.state == trace::ProcessState::exited || e.state == trace::ProcessState::crashed;
                         return ended && (e.flags & trace::kMain) != 0 && (node.empty() || node_of(step) == node);
                       }) ||
           std::any_of(run_.faults.begin(), run_.faults.end(), [&](const schedule::FaultOutcome& one) {
             const schedule::Fault* fault = input_.schedule.find(one.id);
             return one.fired && fault != nullptr && fault->kind == schedule::FaultKind::crash &&
                    (node.empty() || one.node == node);
           });
  }

  [[nodiscard]] bool faulted(const std::string& node) const {
    return std::any_of(run_.faults.begin(), run_.faults.end(),
                       [&](const schedule::FaultOutcome& one) { return one.fired && one.node == node; });
  }

  [[nodiscard]] std::string order_of(std::uint32_t id) const {
    const Kind& kind = input_.kinds[id];
    return kind.what == StepKind::message
               ? fmt::format("'{}'", one_line(input_.message ? input_.message(kind.message) : ""))
               : kind.words;
  }

  void messages() {
    std::map<std::string, const Step*> last;
    for (const Step& step : run_.steps) {
      if (input_.kinds[step.kind].what != StepKind::message || step.ts_ns <= run_.cut_ns) continue;
      const LogLine& line = input_.lines[step.source];
      if (difference(step) == nullptr && line.level >= logs::Level::warning)
        add_usual(350 + (line.level >= logs::Level::error ? 20 : 0) + (faulted(line.node) ? 20 : 0), step, line,
                  words_of(step));
      if (step.ts_ns <= run_.end_ns) last[line.node] = &step;
    }
    for (const auto& [node, step] : last)
      if (difference(*step) == nullptr)
        add_usual(250, *step, input_.lines[step->source],
                  fmt::format("its last message: '{}'", one_line(input_.lines[step->source].text)));
  }

  void ends() {
    for (const Step& step : run_.steps) {
      if (input_.kinds[step.kind].what != StepKind::process || step.ts_ns <= run_.cut_ns || step.ts_ns > run_.end_ns)
        continue;
      const trace::Event& e = input_.story.trace.events[step.source];
      if ((e.flags & trace::kPlanned) != 0 || difference(step) != nullptr) continue;
      add((e.flags & trace::kMain) != 0 ? 440 : 150, StoryLine::Kind::process, step.ts_ns, node_of(step),
          words_of(step), evidence_of(step));
    }
  }

  void symptom() {
    const std::int64_t at = input_.story.oracle_ns ? run_.zero_ns + *input_.story.oracle_ns : run_.end_ns;
    std::string text = "the oracle finds the bug";
    if (!input_.oracle_output.empty()) text += fmt::format(": '{}'", one_line(input_.oracle_output));
    add(1000, StoryLine::Kind::symptom, std::max(at, run_.end_ns), "", std::move(text), "oracle.log");
  }

  std::vector<StoryLine> chosen() {
    std::stable_sort(candidates_.begin(), candidates_.end(),
                     [](const auto& a, const auto& b) { return a.weight > b.weight; });
    std::vector<StoryLine> out;
    std::set<std::pair<std::string, std::string>> seen;
    for (Candidate& candidate : candidates_) {
      if (out.size() == kMostStoryLines) break;
      if (seen.emplace(candidate.line.node, candidate.line.text).second) out.push_back(std::move(candidate.line));
    }
    std::stable_sort(out.begin(), out.end(), [](const auto& a, const auto& b) { return a.ts_ns < b.ts_ns; });
    mark_first_wrong(out);
    return out;
  }

  // Marks the earliest line about a difference that all failing runs have and no other run has. A difference that
  // occurs only with the bug is preferred to one that the fault always causes. A step that correct runs make at another
  // time does not count.
  void mark_first_wrong(std::vector<StoryLine>& lines) const {
    const bool harmless =
        std::any_of(input_.runs.begin(), input_.runs.end(), [](const Run& run) { return run.group == Group::near; });
    for (const std::string_view what : {kOnlyBug, kOnlyFault}) {
      if (what == kOnlyFault && harmless) return;
      const auto first = std::find_if(lines.begin(), lines.end(), [&](const StoryLine& line) {
        return (line.kind == StoryLine::Kind::difference || line.kind == StoryLine::Kind::message) &&
               line.text.ends_with(what);
      });
      if (first == lines.end()) continue;
      first->first_wrong = true;
      return;
    }
  }

  const Input& input_;
  const Comparison& comparison_;
  const Run& run_;
  std::vector<Candidate> candidates_;
  std::map<std::pair<std::uint32_t, std::uint32_t>, const Difference*> keys_;
};

}  // namespace

std::vector<StoryLine> story_of(const Input& input, const Comparison& comparison) {
  return Teller(input, comparison).tell();
}

}  // namespace rose::explain
