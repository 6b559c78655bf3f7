// Headers of `base` that most libraries include; precompiled (RoseOptions.cmake).
#pragma once

#include "base/ascii.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/file.h"
#include "base/glob.h"
#include "base/instantiations.h"
#include "base/log.h"
#include "base/result.h"
#include "base/text.h"
#include "base/units.h"
