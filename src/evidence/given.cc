#include "evidence/given.h"

namespace rose::evidence {

std::int64_t Given::pause_threshold() const {
  for (const Source& source : inputs.sources)
    if (source.meta.pause_ns > 0) return source.meta.pause_ns;
  return config().trace.pause_ns;
}

std::int64_t Given::network_threshold() const {
  for (const Source& source : inputs.sources)
    if (source.meta.network_delay_ns > 0) return source.meta.network_delay_ns;
  return config().trace.network_delay_ns;
}

}  // namespace rose::evidence
