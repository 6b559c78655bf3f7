// From the events of the dumps to ranked candidates: what is benign is dropped and counted, what an
// earlier fault explains is a symptom and ranks last, equal failures are one candidate.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "diagnose/diagnose.h"
#include "diagnose/nodes.h"

namespace rose::diagnose {

// Fills plan.candidates (ranked), discarded, failures, notes and the times of the dump. The workload
// of the test deployment surely does not last longer than `longest_ns`.
void extract(const Inputs& inputs, const NodeMap& nodes, std::int64_t longest_ns, Plan& plan);

// A glob that finds the same file in another directory layout: the last components of `path`, numbers
// as patterns; as many of them as lie below the node's own folder, at most two. "" for what is no file.
[[nodiscard]] std::string path_glob(std::string_view path, std::string_view node, bool wide = false);

// Observed times are rounded to this: finer is noise between machines.
inline constexpr std::int64_t kTimeStep = 100'000'000;
[[nodiscard]] std::int64_t rounded(std::int64_t ns);

}  // namespace rose::diagnose
