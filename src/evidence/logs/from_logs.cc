#include "evidence/logs/from_logs.h"

#include <algorithm>
#include <cctype>
#include <string>
#include <utility>
#include <vector>

#include "base/text.h"
#include "evidence/forms.h"
#include "evidence/logs/guesses.h"
#include "evidence/logs/hint_reader.h"
#include "logs/meaning.h"
#include "logs/quote.h"
#include "weights/weights.h"

namespace rose::evidence {
namespace {

using logs::Hint;
using logs::kNoTime;

}  // namespace

void HintReader::build() {
  find_restart_delay();
  for (const Hint& hint : case_.evidence().hints) add(hint);
  for (const logs::ClockJump& jump : case_.evidence().failure.jumps) set_clock(jump);
  if (case_.control() != nullptr && !with_dumps_) {
    if (!inputs_.without.contains("guesses")) {
      Guesses guesses(case_, out_);
      guesses.add_calls();
      guesses.add_stops();
    }
    out_.put_control();
  }
  std::move(out_).finish(inputs_);
  notes();
  observables();
}

std::string HintReader::failing_node(const Hint& hint) const {
  const std::string own = case_.node_of(hint.node);
  const auto in_path = [&](const std::string& name) {
    return hint.path.find(fmt::format("/{}/", name)) != std::string::npos;
  };
  if (hint.kind != Hint::Kind::call || hint.path.empty() || own.empty() || in_path(own)) return own;
  const logs::Logs& failure = case_.evidence().failure;
  const std::string_view text = failure.text(failure.nodes[hint.log].messages[hint.message]);
  for (const config::Node& other : inputs_.config->nodes) {
    if (!in_path(other.name)) continue;
    const auto word = [](char c) {
      return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '-' || c == '/' || c == '.';
    };
    for (std::size_t at = text.find(other.name); at != std::string_view::npos; at = text.find(other.name, at + 1)) {
      const std::size_t end = at + other.name.size();
      if ((at == 0 || !word(text[at - 1])) && (end == text.size() || !word(text[end]))) return other.name;
    }
  }
  return own;
}

void HintReader::add(const Hint& hint) {
  const std::string node = failing_node(hint);
  if (node.empty()) {
    add_of_some_node(hint);
    return;
  }
  if (hint.kind == Hint::Kind::thrown) {
    add_exception(hint, node);
    return;
  }
  if (hint.kind == Hint::Kind::clock) {
    add_clock(hint, node);
    return;
  }
  double left = dumps_.factor(node, case_.time_of(hint), hint.log);
  if (hint.kind == Hint::Kind::end && hint.until_ns != kNoTime)
    left = std::max(left, dumps_.factor(node, hint.until_ns, hint.log));  // the process ended between the two times
  // Dumps contain neither short silences and pauses nor those that no tracer could observe.
  if ((hint.kind == Hint::Kind::silence || hint.kind == Hint::Kind::stop) && !dumps_.has_silence(hint, node))
    left = std::max(left, with_dumps_ && !dumps_explain_ ? 1 : kWithDump);
  if (left == 0) return;
  const double weight = hint.weight * left;
  switch (hint.kind) {
    case Hint::Kind::call: add_call(hint, node, weight); return;
    case Hint::Kind::end: hint.ended_early ? add_early_end(hint, node, weight) : add_end(hint, node, weight); return;
    case Hint::Kind::stop: add_stop(hint, node, weight); return;
    case Hint::Kind::silence: add_silence(hint, node, weight); return;
    case Hint::Kind::limit: add_limit(hint, node, weight); return;
    case Hint::Kind::thrown:
    case Hint::Kind::clock: return;
  }
}

void HintReader::add_of_some_node(const Hint& hint) {
  constexpr std::size_t kFew = 3;
  ++without_node_;
  std::vector<std::string> may_be;
  for (const config::Node& other_node : inputs_.config->nodes)
    if (other_node.name != hint.peer) may_be.push_back(other_node.name);
  if (may_be.empty() || may_be.size() > kFew || hint.kind == Hint::Kind::thrown) return;
  for (const std::string& name : may_be) {
    Hint copy = hint;
    copy.node = name;
    copy.weight /= static_cast<double>(may_be.size());
    add(copy);
  }
}

Origin HintReader::origin_of(const Hint& hint, double weight, bool inferred, std::int64_t since) {
  return {inferred ? Known::inferred : Known::stated, weight, hint.words, since, {}, false};
}

void HintReader::notes() {
  if (without_node_ > 0)
    inputs_.log_notes.push_back(
        fmt::format("{} of logs {} to no known node: name the node with --log NODE=FILE",
                    without_node_ == 1 ? "1 finding" : fmt::format("{} findings", without_node_),
                    without_node_ == 1 ? "belongs" : "belong"));
  if (without_method_ > 0)
    inputs_.log_notes.push_back(
        fmt::format("{} exception{} of logs {} in no method of a JVM that the node is known to run, so the search does "
                    "not throw {}",
                    without_method_, without_method_ == 1 ? "" : "s", without_method_ == 1 ? "occurs" : "occur",
                    without_method_ == 1 ? "it" : "them"));
  const bool end_is_reported =
      std::any_of(case_.evidence().hints.begin(), case_.evidence().hints.end(), [](const Hint& hint) {
        return (hint.kind == Hint::Kind::end || hint.kind == Hint::Kind::stop) && hint.weight >= kLeastReported;
      });
  if (end_is_reported && !with_dumps_ && inputs_.config->nodes.size() > 1)
    inputs_.log_notes.push_back(
        "a partition or pause that no message mentions may have preceded the reported ends and pauses: the search "
        "tries that, too, after the faults that messages mention");
  if (without_file_ > 0)
    inputs_.log_notes.push_back(
        "some messages name an error but no file: the search makes a run without faults to see which files the node "
        "uses, and tries those");
}

void HintReader::observables() {
  std::vector<std::string> quotes;
  for (const logs::Observed& observed : case_.evidence().difference.observed) {
    const logs::Message& message = case_.evidence().failure.nodes[observed.node].messages[observed.first];
    const logs::Logs& failure = case_.evidence().failure;
    quotes.push_back(quote(failure, observed.node, message));
    inputs_.log_observables.push_back(
        {key_of(failure, observed), case_.name_of(observed.node),
         message.ts_ns != kNoTime ? message.ts_ns : case_.last(),
         logs::read_meaning(failure.text(message)).reports_anything() ? quotes.back() : ""});
  }
  // If the meaning of no observable is known, quote all of them, because any of them may be related to the failure.
  if (std::all_of(inputs_.log_observables.begin(), inputs_.log_observables.end(),
                  [](const Observable& observable) { return observable.words.empty(); }))
    for (std::size_t i = 0; i < quotes.size(); ++i) inputs_.log_observables[i].words = std::move(quotes[i]);
}

void add_logs(Evidence& inputs, const logs::Evidence& evidence, const trace::Trace* control, bool dumps_explain) {
  HintReader(inputs, evidence, control, dumps_explain).build();
}

}  // namespace rose::evidence
