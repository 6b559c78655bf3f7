#include "replay/launched.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <utility>

#include "base/cancel.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/folder.h"
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

constexpr std::size_t kMostPrograms = 4;  // at most this many programs of a node
// A node without a readiness probe may still be executing its script. If no program that the script launched is visible
// yet, wait for one at most this long.
constexpr std::int64_t kLaunchedNs = 15 * kSecond;

struct Program {
  pid_t pid = 0;
  std::string file;
  std::vector<std::string> command;
  std::filesystem::path folder;
};

Program program_of(pid_t pid) {
  Program program;
  program.pid = pid;
  std::error_code error;
  program.file = std::filesystem::read_symlink(fmt::format("/proc/{}/exe", pid), error).string();
  program.folder = std::filesystem::read_symlink(fmt::format("/proc/{}/cwd", pid), error);
  std::string words = read_file(fmt::format("/proc/{}/cmdline", pid)).value_or("");
  if (!words.empty() && words.back() == '\0') words.pop_back();
  program.command = split(words, '\0');
  return program;
}

// True for a file that the next run executes, too: it is outside the node's own folder and the run's folder.
bool stays(const std::string& file, const std::filesystem::path& run_dir) {
  std::error_code error;
  return !file.empty() && !file.starts_with(run_dir.string() + "/") && std::filesystem::is_regular_file(file, error);
}

// Copies the program that a process executes. `to` is the path of the copy, with the name of the program.
Result<void> copy_program(pid_t pid, const std::filesystem::path& to) {
  const Fd from(::open(fmt::format("/proc/{}/exe", pid).c_str(), O_RDONLY | O_CLOEXEC));
  if (!from) return fail_errno(ErrorKind::environment, fmt::format("cannot read '{}'", to.filename().native()), errno);
  ROSE_TRY(AtomicFile file, AtomicFile::create(to, 0700));
  std::string block(std::size_t{1} << 20, '\0');
  for (ssize_t n = 0; (n = ::read(from.get(), block.data(), block.size())) != 0;) {
    if (n < 0)
      return fail_errno(ErrorKind::environment, fmt::format("cannot copy '{}'", to.filename().native()), errno);
    ROSE_CHECK(file.write(std::string_view(block).substr(0, static_cast<std::size_t>(n))));
  }
  return file.commit();
}

// Copies programs out of a run's folder, each once.
class Copies {
 public:
  Copies(std::filesystem::path folder, std::filesystem::path run_dir)
      : folder_(std::move(folder)), run_dir_(std::move(run_dir)) {}
  // A path at which the program exists after the run, too. "" if there is none.
  std::string of(const Program& program, config::Node& node) {
    if (stays(program.file, run_dir_)) return program.file;
    const std::filesystem::path file = program.file;
    if (!program.file.starts_with(run_dir_.string() + "/") || !file_is_there(program.pid)) return {};
    auto [known, fresh] = copies_.try_emplace(program.file);
    if (fresh) {
      const std::filesystem::path folder = folder_ / std::to_string(copies_.size());
      Result<void> copied = make_own_folder(folder, 0700);
      if (copied) copied = copy_program(program.pid, folder / file.filename());
      if (copied) known->second = folder / file.filename();
      else log::warning("functions of {} are not watched: {}", program.file, copied.error().message);
    }
    if (!known->second.empty()) node.made_by_runs[known->second] = file.lexically_relative(run_dir_);
    return known->second;
  }

 private:
  static bool file_is_there(pid_t pid) {
    std::error_code error;
    return std::filesystem::is_regular_file(fmt::format("/proc/{}/exe", pid), error);
  }
  std::filesystem::path folder_, run_dir_;
  std::map<std::string, std::string> copies_;
};

void take(config::Node& node, const std::vector<Program>& programs, const std::filesystem::path& run_dir,
          Copies& copies) {
  std::vector<std::string> binaries, methods;
  std::string java;  // the program that executes these methods
  const auto collect = [&](bool of_system) {
    for (const Program& program : programs) {
      if (is_systems(program.file) != of_system || binaries.size() == kMostPrograms) continue;
      const std::string file = copies.of(program, node);
      if (file.empty() || std::find(binaries.begin(), binaries.end(), file) != binaries.end()) continue;
      if (!of_system || shows_functions(file)) binaries.push_back(file);
    }
  };
  for (const Program& program : programs)
    if (methods.empty() && !(methods = jvm::own_methods(program.command, program.folder)).empty()) java = program.file;
  collect(false);
  // Accept a program of the system, because it may be a server from a distribution package. Tools that scripts call
  // have no symbols, so they cannot be mistaken for a server.
  if (binaries.empty() && methods.empty()) collect(true);
  if (!binaries.empty()) {
    std::vector<std::string> shown;
    for (const std::string& binary : binaries) {
      const auto made = node.made_by_runs.find(binary);
      shown.push_back(made == node.made_by_runs.end() ? binary : made->second + " of the run's folder");
    }
    log::info("{}: it runs {}", node.name, fmt::join(shown, " and "));
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
  // The agent reaches only JVMs that rose recognises. A method whose class has no package does not show that the node
  // runs Java. If there are only such methods, make the JVM the node's program.
  if (!jvm::runs_java(node) && std::all_of(node.binaries.begin(), node.binaries.end(), jvm::launches) &&
      stays(java, run_dir))
    node.binaries = {java};
  if (!jvm::runs_java(node)) node.functions = std::move(before);
  else log::info("{}: it runs a JVM; methods of {} are watched", node.name, fmt::join(methods, " and "));
}

}  // namespace

Result<Launched> follow_launchers(const config::Config& config, RunStore& store, bool allow_attached) {
  Launched launched{config, std::nullopt};
  config::Config& out = launched.config;
  std::vector<std::size_t> wanted;
  for (std::size_t i = 0; i < out.nodes.size(); ++i)
    if (shows_no_function(out.nodes[i])) wanted.push_back(i);
  if (wanted.empty()) return launched;
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
  ROSE_TRY(TemporaryFolder folder, TemporaryFolder::make("rose-programs"));
  launched.programs.emplace(std::move(folder));
  Copies copies(launched.programs->path(), options.run_dir);
  options.nodes_ready = [&](const deploy::Deployment& deployment) {
    for (const std::int64_t began = monotonic_ns();; cancel::sleep(kSecond / 10)) {
      for (const deploy::NodeInfo& info : deployment.nodes()) {
        if (!shows_no_function(out.nodes[info.index]) ||
            std::find(wanted.begin(), wanted.end(), info.index) == wanted.end())
          continue;
        std::vector<Program> programs;
        for (const pid_t pid : deployment.processes(info.index)) programs.push_back(program_of(pid));
        take(out.nodes[info.index], programs, options.run_dir, copies);
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
  return launched;
}

}  // namespace rose::replay
