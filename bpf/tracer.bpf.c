/* The tracer in the kernel. What successful calls pay stands first in rose_sys_exit: a compare, a
 * load and a bit test. Everything else happens only when something failed or changed.
 *
 * SPDX-License-Identifier: GPL-2.0-only OR MIT */
#include "tracer/calls.h"
#include "tracer/cgroups.h"
#include "tracer/functions.h"
#include "tracer/maps.h"
#include "tracer/network.h"
#include "tracer/processes.h"
#include "tracer/records.h"
#include "tracer/spoken.h"
#include "tracer/values.h"

char LICENSE[] SEC("license") = "Dual MIT/GPL";
