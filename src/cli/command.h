// The command line: each file declares the options of one command, calls the other folders and prints the result.
// Contains no logic of its own. Errors are returned as values and printed once, in main.
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

// Each of these functions returns the command's entry in the table: names, options, help, and the function to run.
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
// Prints the help of all commands in `program`, which must outlive the command.
[[nodiscard]] Command help_command(const Program& program);

// Prints a result to stdout in one write. If that fails, printed() returns the error at the end of the command.
void print(std::string_view text);
// Returns ErrorKind::input if a result could not be printed completely. It is no error if a reader closes the pipe
// early (`rose dump show | head`), because that reader has what it wants.
[[nodiscard]] Result<void> printed();

// Parses a duration such as "5s". The error names the option.
[[nodiscard]] Result<std::int64_t> duration_option(const std::string& option, const std::string& text);

// "auto" (nothing) or a number of runs in parallel.
[[nodiscard]] Result<std::optional<int>> jobs_option(const std::string& text);
// The number of parallel runs for replay, explain and profile: --jobs if given ("auto" is measured, which makes runs),
// otherwise the number in [diagnose] jobs, otherwise 1. Checks that the deployment's runs can be made in parallel.
[[nodiscard]] Result<int> jobs_of(const std::optional<std::string>& given, const config::Config& config,
                                  bool allow_attached);

// Checks that the result can be written to `path`, before the work that produces the result.
[[nodiscard]] Result<void> check_output(const std::string& option, const std::filesystem::path& path);
// True if both name the same file, which may not exist yet.
[[nodiscard]] bool same_output(const std::filesystem::path& a, const std::filesystem::path& b);

// Reads EVENTS.jsonl or a dump, distinguished by the first byte. A damaged dump is an error here.
[[nodiscard]] Result<trace::Trace> load_trace(const std::filesystem::path& path);

[[nodiscard]] Result<std::optional<profile::Profile>> load_profile(const std::string& path,
                                                                   profile::Part part = profile::Part::all);

// Returns an error unless rose runs as root, which is required to create namespaces and cgroups and to load BPF
// programs. Call this before anything starts.
[[nodiscard]] Result<void> need_root(std::string_view command);
// For commands that trace or inject: BPF programs must see the same process ids as rose. Returns ErrorKind::environment
// in a nested PID namespace.
[[nodiscard]] Result<void> need_process_ids(std::string_view command);

// Sets ROSE_EXE to the path of this binary for the deployment's commands, so that workloads can call `"$ROSE_EXE" node
// restart n2`.
void export_own_name();

}  // namespace rose::cli
