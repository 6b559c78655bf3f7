#include "replay/launched.h"

#include <algorithm>

#include "base/cancel.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "base/text.h"
#include "base/units.h"
#include "javascript/session.h"
#include "jvm/application.h"
#include "jvm/node.h"
#include "python/session.h"
#include "replay/repeat.h"
#include "replay/watchable.h"

namespace rose::replay {
namespace {

constexpr std::size_t kMostPrograms = 4;  // per node
// A node without a readiness probe may still be executing its script. Wait at most this long if it launches nothing
// visible.
constexpr std::int64_t kLaunchedNs = 15 * kSecond;

struct Program {
  std::string file;
  std::vector<std::string> command;
  std::filesystem::path folder;
};

Program program_of(pid_t pid) {
  Program program;
  std::error_code error;
  program.file = std::filesystem::read_symlink(fmt::format("/proc/{}/exe", pid), error).string();
  program.folder = std::filesystem::read_symlink(fmt::format("/proc/{}/cwd", pid), error);
  std::string words = read_file(fmt::format("/proc/{}/cmdline", pid)).value_or("");
  if (!words.empty() && words.back() == '\0') words.pop_back();
  program.command = split(words, '\0');
  return program;
}

// True for files among the node's own or in the run's folder, which differ in the next run.
bool stays(const std::string& file, const std::filesystem::path& run_dir) {
  std::error_code error;
  return !file.empty() && !file.starts_with(run_dir.string() + "/") && std::filesystem::is_regular_file(file, error);
}

void take(config::Node& node, const std::vector<Program>& programs, const std::filesystem::path& run_dir) {
  std::vector<std::string> binaries, methods;
  std::string java;  // the program with these methods
  const auto collect = [&](bool of_system) {
    for (const Program& program : programs) {
      if (!stays(program.file, run_dir) || is_systems(program.file) != of_system || binaries.size() == kMostPrograms)
        continue;
      if (std::find(binaries.begin(), binaries.end(), program.file) != binaries.end()) continue;
      if (!of_system || shows_functions(program.file)) binaries.push_back(program.file);
    }
  };
  for (const Program& program : programs)
    if (methods.empty() && !(methods = jvm::own_methods(program.command, program.folder)).empty()) java = program.file;
  collect(false);
  // A server from a distribution package. Tools that scripts call have no symbols, so they cannot be confused with it.
  if (binaries.empty() && methods.empty()) collect(true);
  if (!binaries.empty()) {
    log::info("{}: it runs {}", node.name, fmt::join(binaries, " and "));
    node.binaries = std::move(binaries);
    return;
  }
  if (methods.empty()) {
    for (const Program& program : programs) {
      const bool is_python = python::is_python(program.file);
      if (!stays(program.file, run_dir) || (!is_python && !javascript::is_node(program.file))) continue;
      log::info("{}: it runs {}; functions of {} are watched", node.name, program.file,
                is_python ? "Python" : "JavaScript");
      node.binaries = {program.file};
      return;
    }
    return;
  }
  std::vector<std::string> before = std::move(node.functions);
  node.functions = methods;
  // The agent reaches only JVMs that rose knows of. Class names without a package do not indicate Java.
  if (!jvm::runs_java(node) && std::all_of(node.binaries.begin(), node.binaries.end(), jvm::launches) &&
      stays(java, run_dir))
    node.binaries = {java};
  if (!jvm::runs_java(node)) node.functions = std::move(before);
  else log::info("{}: it runs a JVM; methods of {} are watched", node.name, fmt::join(methods, " and "));
}

}  // namespace

Result<config::Config> follow_launchers(const config::Config& config, RunStore& store, bool allow_attached) {
  config::Config out = config;
  std::vector<std::size_t> wanted;
  for (std::size_t i = 0; i < out.nodes.size(); ++i)
    if (shows_no_function(out.nodes[i])) wanted.push_back(i);
  if (wanted.empty()) return out;
  log::info("{} is started once, to see what its command launches", fmt::join(
                                                                        [&] {
                                                                          std::vector<std::string> names;
                                                                          for (const std::size_t i : wanted)
                                                                            names.push_back(out.nodes[i].name);
                                                                          return names;
                                                                        }(),
                                                                        " and "));
  config::Config started = config;
  started.workload.reset();
  started.oracle.reset();
  RunOptions options;
  options.trace = false;
  options.allow_attached = allow_attached;
  options.number = 0;
  ROSE_TRY(options.run_dir, store.next(options.number));
  options.nodes_ready = [&](const deploy::Deployment& deployment) {
    for (const std::int64_t began = monotonic_ns();; cancel::sleep(kSecond / 10)) {
      for (const deploy::NodeInfo& info : deployment.nodes()) {
        if (!shows_no_function(out.nodes[info.index]) ||
            std::find(wanted.begin(), wanted.end(), info.index) == wanted.end())
          continue;
        std::vector<Program> programs;
        for (const pid_t pid : deployment.processes(info.index)) programs.push_back(program_of(pid));
        take(out.nodes[info.index], programs, options.run_dir);
      }
      const bool more = std::any_of(wanted.begin(), wanted.end(), [&](std::size_t i) {
        const bool health = out.nodes[i].container && out.nodes[i].container->health;
        return !out.nodes[i].ready && !health && shows_no_function(out.nodes[i]);
      });
      if (!more || monotonic_ns() - began >= kLaunchedNs || cancel::requested()) return;
    }
  };
  const Result<Run> run = run_once(started, {}, options);
  store.abandoned(options.run_dir);
  if (!run) return Unexpected(run.error());
  return out;
}

}  // namespace rose::replay
