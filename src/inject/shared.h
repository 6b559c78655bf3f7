// bpf/inject.h for C++.
#pragma once

#include <linux/types.h>

extern "C" {
#include "../../bpf/inject.h"
}
