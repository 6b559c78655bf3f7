// The command line: one file a command reads arguments, calls a room and prints. Errors travel up
// as values and are printed once, in main.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "config/config.h"
#include "profile/profile.h"
#include "trace/event.h"

namespace rose::cli {

// Options that every command has.
struct Common {
  bool verbose = false;
  bool quiet = false;
  bool json = false;
};

// What main runs once the arguments are read; its value is the exit code.
using Action = std::function<Result<int>(const Common&)>;

// Each adds its command (or commands) to `app` and sets `action` when chosen.
void add_profile(CLI::App& app, Action& action);
void add_trace(CLI::App& app, Action& action);
void add_dump(CLI::App& app, Action& action);
void add_diagnose(CLI::App& app, Action& action);
void add_replay(CLI::App& app, Action& action);
void add_doctor(CLI::App& app, Action& action);
void add_heal(CLI::App& app, Action& action);
void add_node(CLI::App& app, Action& action);
void add_exec(CLI::App& app, Action& action);

// A subcommand with --verbose, --quiet, --json and --version; `examples` end its help.
CLI::App* add_command(CLI::App& app, const std::string& name, const std::string& description,
                      const std::string& examples);
[[nodiscard]] Common& common();

// Results go to stdout in one write each.
void print(std::string_view text);

// "5s" on the command line: the option's name stands in the error.
[[nodiscard]] Result<std::int64_t> duration_option(const std::string& option, const std::string& text);

// That a result can be written there, found out before the work that leads to it.
[[nodiscard]] Result<void> check_output(const std::string& option, const std::filesystem::path& path);

// An EVENTS.jsonl or a dump: told apart by the first byte. A damaged dump is an error here.
[[nodiscard]] Result<trace::Trace> load_trace(const std::filesystem::path& path);

[[nodiscard]] Result<std::optional<profile::Profile>> load_profile(const std::string& path);

// Root is needed to make namespaces and cgroups and to load programs; said before anything starts.
[[nodiscard]] Result<void> need_root(std::string_view command);

// Commands of the deployment inherit ROSE_EXE, this binary: for `"$ROSE_EXE" node restart n2` in workloads.
void export_own_name();

}  // namespace rose::cli
