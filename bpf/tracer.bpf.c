/* The tracer's BPF programs. rose_sys_exit handles successful calls first, because they are the most frequent. Most of
 * them cost only two comparisons and a lookup of the call's class. All other work is done only for failures, changes of
 * state, and reads and writes that moved fewer bytes than were asked for.
 * SPDX-License-Identifier: GPL-2.0-only OR MIT */
#include "tracer/calls.h"
#include "tracer/cgroups.h"
#include "tracer/functions.h"
#include "tracer/maps.h"
#include "tracer/network.h"
#include "tracer/processes.h"
#include "tracer/records.h"
#include "tracer/transfers.h"
#include "tracer/values.h"

char LICENSE[] SEC("license") = "Dual MIT/GPL";
