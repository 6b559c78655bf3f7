// The command line: one file a command declares its options, calls a room and prints. Errors travel up
// as values and are printed once, in main.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "cli/options.h"
#include "config/config.h"
#include "profile/profile.h"
#include "trace/event.h"

namespace rose::cli {

// Each makes its row of the table: names, options, help, and what to run.
[[nodiscard]] Command init_command();
[[nodiscard]] Command profile_command();
[[nodiscard]] Command trace_command();
[[nodiscard]] Command dump_command();
[[nodiscard]] Command diagnose_command();
[[nodiscard]] Command replay_command();
[[nodiscard]] Command explain_command();
[[nodiscard]] Command doctor_command();
[[nodiscard]] Command heal_command();
[[nodiscard]] Command node_command();
[[nodiscard]] Command step_command();
[[nodiscard]] Command exec_command();
[[nodiscard]] Command worker_command();
// Of all that `program` holds; it must live as long as the command.
[[nodiscard]] Command help_command(const Program& program);

// Results go to stdout in one write each.
void print(std::string_view text);

// "5s" on the command line: the option's name stands in the error.
[[nodiscard]] Result<std::int64_t> duration_option(const std::string& option, const std::string& text);

// That a result can be written there, found out before the work that leads to it.
[[nodiscard]] Result<void> check_output(const std::string& option, const std::filesystem::path& path);

// An EVENTS.jsonl or a dump: told apart by the first byte. A damaged dump is an error here.
[[nodiscard]] Result<trace::Trace> load_trace(const std::filesystem::path& path);

[[nodiscard]] Result<std::optional<profile::Profile>> load_profile(const std::string& path,
                                                                   profile::Part part = profile::Part::all);

// Root is needed to make namespaces and cgroups and to load programs; said before anything starts.
[[nodiscard]] Result<void> need_root(std::string_view command);
// What traces or injects: kernel programs must see the process ids that rose sees. ErrorKind::environment in another
// PID namespace.
[[nodiscard]] Result<void> need_process_ids(std::string_view command);

// Commands of the deployment inherit ROSE_EXE, this binary: for `"$ROSE_EXE" node restart n2` in workloads.
void export_own_name();

}  // namespace rose::cli
