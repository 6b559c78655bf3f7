// Headers that most libraries above `schedule` include; precompiled (RoseOptions.cmake).
#pragma once

#include "base/address.h"
#include "base/cancel.h"
#include "base/jdk.h"
#include "base/json.h"
#include "base/thread.h"
#include "config/config.h"
#include "kernel/syscalls.h"
#include "logs/line/form.h"
#include "logs/line/times.h"
#include "profile/profile.h"
#include "schedule/outcome.h"
#include "schedule/rate.h"
#include "schedule/schedule.h"
#include "trace/dump.h"
#include "trace/event.h"
