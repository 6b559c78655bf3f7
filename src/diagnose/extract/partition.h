// Turns a partition into a candidate. Private to diagnose.
#pragma once

#include "diagnose/extract/extracted.h"
#include "evidence/facts.h"
#include "evidence/network.h"

namespace rose::diagnose {

[[nodiscard]] Candidate partition_candidate(const Given& given, const Facts& facts, const Partition& partition,
                                            Ids& ids);

}  // namespace rose::diagnose
