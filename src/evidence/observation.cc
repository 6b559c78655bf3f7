#include "evidence/observation.h"

#include <utility>

#include "base/result.h"

namespace rose::evidence {

const Origin Observation::kRecorded;

std::string_view known_name(Known known) {
  switch (known) {
    case Known::seen: return "seen";
    case Known::stated: return "stated";
    case Known::inferred: return "inferred";
  }
  ROSE_BUG("unknown kind of knowledge");
}

void Source::set_origin(Observation& observation, Origin origin) {
  if (!origins_) origins_ = std::make_shared<std::deque<Origin>>();
  observation.origin_ = &origins_->emplace_back(std::move(origin));
}

Source of_dump(trace::Trace dump) {
  Source source;
  source.observations.reserve(dump.events.size());
  for (const trace::Event& event : dump.events) source.observations.emplace_back(event);
  static_cast<trace::TraceBase&>(source) = std::move(dump);
  return source;
}

std::vector<std::string> node_names(const Source& source) {
  trace::NodeNames names(source);
  for (const Observation& observation : source.observations) names.add(observation);
  return std::move(names).list();
}

}  // namespace rose::evidence
