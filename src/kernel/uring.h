// Names of io_uring operations (IORING_OP_*).
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace rose::kernel {

// "READ", or "op_70" for an operation that is newer than the table.
[[nodiscard]] std::string uring_operation_name(int operation);
// The inverse of uring_operation_name(); results are 0 to 255.
[[nodiscard]] std::optional<int> uring_operation_number(std::string_view name);

}  // namespace rose::kernel
