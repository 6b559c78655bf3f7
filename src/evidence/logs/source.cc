#include "evidence/logs/source.h"

#include <algorithm>
#include <utility>

#include "profile/profile.h"

namespace rose::evidence {
namespace {

using trace::Event;
using trace::EventType;
using trace::ProcessState;
using trace::StringId;

constexpr std::uint32_t kManyPackets = 1000;  // assumed number of packets on a connection before it fell silent

}  // namespace

LogSource::LogSource(const LogCase& log_case) : case_(log_case) {
  const trace::Trace* control = case_.control();
  out_.complete = false;
  out_.meta.host = "logs";
  out_.meta.begin_ns = case_.first();
  out_.meta.end_ns = case_.last();
  if (control != nullptr) {
    out_.meta.pause_ns = control->meta.pause_ns;
    out_.meta.network_delay_ns = control->meta.network_delay_ns;
    out_.meta.workload_ts = std::clamp(case_.to_incident(control->meta.workload_ts), case_.first(), case_.last());
    if (control->meta.workload_ts == 0) out_.meta.workload_ts = 0;
  }
}

Observation LogSource::observation(EventType type, const std::string& node, std::int64_t ts) {
  Observation observation;
  observation.type = type;
  observation.ts_ns = ts;
  observation.node = intern(node);
  return observation;
}

void LogSource::put(Observation observation, Origin origin) {
  out_.set_origin(observation, std::move(origin));
  if (observation.type == EventType::scf) failed_.insert(key_of(observation));
  out_.observations.push_back(observation);
}

void LogSource::put_context(Observation observation) {
  out_.set_origin(observation, {.known = Known::inferred});
  out_.observations.push_back(observation);
}

LogSource::FailedCall LogSource::key_of(const Observation& failed) const {
  return {failed.node, failed.syscall, failed.err,
          failed.path == 0 ? std::string() : profile::path_pattern(out_.str(failed.path)), failed.peer};
}

void LogSource::put_silence(const std::string& node, const std::string& peer, std::int64_t begin, std::int64_t end,
                            Origin origin) {
  origin.by = node;
  for (const bool back : {false, true}) {
    Observation silence = observation(EventType::nd, back ? peer : node, end);
    silence.src = intern(back ? node : peer);
    silence.dst = intern(back ? peer : node);
    silence.protocol = trace::Protocol::tcp;
    silence.packets = kManyPackets;
    silence.duration_ms = static_cast<std::int32_t>(std::min<std::int64_t>((end - begin) / 1'000'000, 3'600'000));
    put(silence, origin);
  }
}

void LogSource::cut_off(const std::string& node, std::int64_t ts) {
  const auto [known, fresh] = cut_.try_emplace(node, ts);
  if (!fresh) known->second = std::max(known->second, ts);
}

void LogSource::put_control() {
  const trace::Trace& control = *case_.control();
  for (const Event& control_event : control.events) {
    const bool start = control_event.type == EventType::ps && control_event.state == ProcessState::started;
    if (control_event.type != EventType::af && control_event.type != EventType::sys && !start) continue;
    if ((control_event.flags & trace::kInjected) != 0) continue;
    const std::string_view node = case_.name_in_control(control_event);
    Observation event(control_event);
    event.ts_ns = case_.to_incident(node, control_event.ts_ns);
    const auto cut = cut_.find(std::string(node));
    if (cut != cut_.end() && event.ts_ns > cut->second) continue;
    for (StringId Event::* field :
         {&Event::path, &Event::path2, &Event::peer, &Event::function, &Event::src, &Event::dst, &Event::by})
      if (control_event.*field != 0) event.*field = intern(control.str(control_event.*field));
    event.node = intern(node);
    put_context(event);
  }
  out_.meta.addresses = control.meta.addresses;
}

void LogSource::finish(Evidence& inputs) && {
  std::stable_sort(out_.observations.begin(), out_.observations.end(),
                   [](const Observation& a, const Observation& b) { return a.ts_ns < b.ts_ns; });
  if (!out_.observations.empty()) out_.meta.end_ns = std::max(out_.meta.end_ns, out_.observations.back().ts_ns);
  inputs.sources.push_back(std::move(out_));
}

}  // namespace rose::evidence
