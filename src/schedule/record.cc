#include "schedule/record.h"

#include "base/json.h"

namespace rose::schedule {
namespace {

// In records, a time of 0 means that the event did not happen, so an event at 0 ns is stored as 1 ns.
std::int64_t to_number(const std::optional<std::int64_t>& at_ns) { return !at_ns ? 0 : *at_ns == 0 ? 1 : *at_ns; }

Json to_json(const ConditionOutcome& condition) {
  return {{"words", condition.words}, {"met", condition.met},      {"met_ns", condition.met_ns},
          {"node", condition.node},   {"pid", condition.pid},      {"tid", condition.tid},
          {"seen", condition.seen},   {"wanted", condition.wanted}};
}

Json to_json(const Frame& frame) {
  return {{"function", frame.function},
          {"file", frame.file},
          {"line", frame.line},
          {"module", frame.module},
          {"offset", frame.offset}};
}

Json to_json(const Stack& stack) {
  Json frames = Json::array();
  for (const Frame& frame : stack.frames) frames.push_back(to_json(frame));
  return {{"node", stack.node},
          {"thread", stack.thread},
          {"pid", stack.pid},
          {"tid", stack.tid},
          {"ns", stack.ns},
          {"why", stack.why},
          {"frames", std::move(frames)},
          {"incomplete", stack.incomplete}};
}

Json to_json(const FaultOutcome& fault) {
  Json conditions = Json::array();
  for (const ConditionOutcome& condition : fault.conditions) conditions.push_back(to_json(condition));
  Json stacks = Json::array();
  for (const Stack& stack : fault.stacks) stacks.push_back(to_json(stack));
  return {{"id", fault.id},
          {"armed", fault.armed},
          {"fired", fault.fired},
          {"effective", fault.effective()},
          {"no_effect", fault.no_effect},
          {"withdrawn", fault.withdrawn},
          {"fired_ns", fault.fired_ns},
          {"ended_ns", to_number(fault.ended_ns)},
          {"seen", fault.seen},
          {"injected", fault.injected},
          {"node", fault.node},
          {"pid", fault.pid},
          {"tid", fault.tid},
          {"detail", fault.detail},
          {"why_not", fault.why_not},
          {"conditions", std::move(conditions)},
          {"stacks", std::move(stacks)}};
}

ConditionOutcome condition_from(const Json& json) {
  ConditionOutcome condition;
  condition.met = json.at("met").get<bool>();
  condition.met_ns = json.at("met_ns").get<std::int64_t>();
  condition.seen = json.at("seen").get<std::uint64_t>();
  condition.wanted = json.value("wanted", condition.wanted);
  condition.node = json.value("node", condition.node);
  condition.pid = json.value("pid", 0);
  condition.tid = json.value("tid", 0);
  condition.words = json.value("words", condition.words);
  return condition;
}

Frame frame_from(const Json& json) {
  Frame frame;
  frame.function = json.at("function").get<std::string>();
  frame.file = json.at("file").get<std::string>();
  frame.line = json.at("line").get<int>();
  frame.module = json.value("module", frame.module);
  frame.offset = json.value("offset", frame.offset);
  return frame;
}

Stack stack_from(const Json& json) {
  Stack stack;
  stack.node = json.at("node").get<std::string>();
  stack.thread = json.at("thread").get<std::string>();
  stack.pid = json.value("pid", 0);
  stack.tid = json.value("tid", 0);
  stack.ns = json.value("ns", stack.ns);
  stack.why = json.value("why", stack.why);
  stack.incomplete = json.value("incomplete", stack.incomplete);
  for (const Json& frame : json.at("frames")) stack.frames.push_back(frame_from(frame));
  return stack;
}

FaultOutcome fault_from(const Json& json) {
  FaultOutcome fault;
  fault.id = json.at("id").get<std::string>();
  fault.armed = json.at("armed").get<bool>();
  fault.fired = json.at("fired").get<bool>();
  fault.withdrawn = json.at("withdrawn").get<bool>();
  fault.fired_ns = json.at("fired_ns").get<std::int64_t>();
  if (const auto ended_ns = json.at("ended_ns").get<std::int64_t>(); ended_ns != 0) fault.ended_ns = ended_ns;
  fault.seen = json.at("seen").get<std::uint64_t>();
  fault.injected = json.at("injected").get<std::uint64_t>();
  fault.node = json.value("node", fault.node);
  fault.pid = json.at("pid").get<int>();
  fault.tid = json.at("tid").get<int>();
  fault.detail = json.at("detail").get<std::string>();
  fault.why_not = json.at("why_not").get<std::string>();
  fault.no_effect = json.value("no_effect", fault.no_effect);
  for (const Json& condition : json.at("conditions")) fault.conditions.push_back(condition_from(condition));
  if (const auto stacks = json.find("stacks"); stacks != json.end()) {
    for (const Json& stack : *stacks) fault.stacks.push_back(stack_from(stack));
  }
  return fault;
}

}  // namespace

Json outcomes_json(const std::vector<FaultOutcome>& outcomes) {
  Json all = Json::array();
  for (const FaultOutcome& outcome : outcomes) all.push_back(to_json(outcome));
  return all;
}

Result<std::vector<FaultOutcome>> outcomes_from(const Json& json) {
  std::vector<FaultOutcome> outcomes;
  try {
    for (const Json& fault : json) outcomes.push_back(fault_from(fault));
  } catch (const Json::exception& e) {
    return fail(ErrorKind::input, fmt::format("not a record of faults: {}", e.what()));
  }
  return outcomes;
}

Json order_json(const std::vector<OrderOutcome>& order) {
  Json all = Json::array();
  for (const OrderOutcome& one : order) {
    Json entry = {{"name", one.name}, {"kind", one.kind}, {"came", one.came}};
    if (one.came) entry["ns"] = one.ns;
    if (!one.why_not.empty()) entry["why_not"] = one.why_not;
    if (one.held_ns > 0) entry["held_ns"] = one.held_ns;
    all.push_back(std::move(entry));
  }
  return all;
}

Result<std::vector<OrderOutcome>> order_from(const Json& json) {
  std::vector<OrderOutcome> order;
  try {
    for (const Json& entry : json) {
      OrderOutcome one;
      one.name = entry.at("name").get<std::string>();
      one.kind = entry.at("kind").get<std::string>();
      one.came = entry.at("came").get<bool>();
      one.ns = entry.value("ns", std::int64_t{0});
      one.why_not = entry.value("why_not", std::string());
      one.held_ns = entry.value("held_ns", std::int64_t{0});
      order.push_back(std::move(one));
    }
  } catch (const Json::exception& e) {
    return fail(ErrorKind::input, fmt::format("not a record of an order: {}", e.what()));
  }
  return order;
}

}  // namespace rose::schedule
