// Extracts candidates from exceptions that logs report. Private to diagnose.
#pragma once

#include "diagnose/extract/extracted.h"
#include "evidence/facts.h"

namespace rose::diagnose {

[[nodiscard]] Extracted extract_exceptions(const Given& given, const Times& times);

}  // namespace rose::diagnose
