// Extracts candidates from messages about exhausted or slow resources. Private to diagnose.
#pragma once

#include "diagnose/extract/extracted.h"
#include "evidence/given.h"

namespace rose::diagnose {

[[nodiscard]] Extracted extract_limits(const Given& given);

}  // namespace rose::diagnose
