// A partition as a candidate. Private to diagnose.
#pragma once

#include "diagnose/extract/facts.h"
#include "diagnose/extract/sifted.h"
#include "diagnose/network.h"

namespace rose::diagnose {

[[nodiscard]] Candidate cut_candidate(const Given& given, const Facts& facts, const Cut& cut, Ids& ids);

}  // namespace rose::diagnose
