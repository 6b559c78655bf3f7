// Starts a container that the engine has created. Its entry point (deploy/enter) connects to rose through a socket and
// is held before its execve until the caller is ready, as Launch does for processes of this machine.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/fd.h"
#include "base/result.h"
#include "base/units.h"
#include "deploy/clock_calls.h"
#include "deploy/engine.h"

struct rose_enter_page;

namespace rose::deploy {

// The engine's process for a running container, a child of rose. Its exit status shows how the container's main process
// ended.
class EngineChild {
 public:
  EngineChild() = default;
  explicit EngineChild(Fd pidfd) : pidfd_(std::move(pidfd)) {}
  EngineChild(EngineChild&& other) noexcept = default;
  EngineChild& operator=(EngineChild&& other) noexcept;
  ~EngineChild() { kill(); }
  [[nodiscard]] int fd() const { return pidfd_.get(); }  // readable when the process has ended; -1: there is none
  // Reaps the process and returns its exit status, which is 128 + signal number if the container was killed. -1 while
  // it runs.
  int reap();
  void kill();

 private:
  Fd pidfd_;
};

// The time in which an engine must create a container. It is long, because engines without layered file systems copy
// the whole image.
inline constexpr std::int64_t kMakeTimeout = 600 * kSecond;

// A folder that is mounted in the container and gets the container's user as its owner.
struct GivenFolder {
  std::filesystem::path above;   // a folder that only root may rename
  std::filesystem::path inside;  // the folder, relative to `above`; "": `above` itself
};

struct ContainerStart {
  std::string what;                 // for messages: "node n1"
  std::vector<std::string> engine;  // start_words(), or making_words() with `starts`
  bool makes = false;               // `engine` also creates the container (making_words())
  std::filesystem::path enter;      // folder with the entry point, in which the socket is created
  std::vector<std::string> argv;
  std::map<std::string, std::string> env;  // in addition to the container's own
  std::string stdout_log, stderr_log;
  std::string engine_log;        // output of the engine
  std::filesystem::path cgroup;  // the node's cgroup
  std::filesystem::path engine_cgroup;
  std::vector<GivenFolder> folders;
  std::vector<int> notified_syscalls;
  ClockCalls notified_clocks = ClockCalls::none;
};

// Creates `folder` and writes the entry point into it.
[[nodiscard]] Result<void> place_entry(const std::filesystem::path& folder);

class ContainerLaunch {
 public:
  // Starts the container and returns once its entry point waits. If this object is destroyed before release() has
  // succeeded, the process is killed. Errors are `input` (the engine refuses, or the command is not in the image),
  // `inconclusive` or `environment`.
  [[nodiscard]] static Result<ContainerLaunch> prepare(const ContainerStart& start);
  ContainerLaunch(ContainerLaunch&& other) noexcept;
  ContainerLaunch& operator=(ContainerLaunch&&) = delete;
  ~ContainerLaunch();

  [[nodiscard]] pid_t pid() const { return pid_; }  // in this machine's PID namespace
  [[nodiscard]] Fd take_listener() { return std::move(listener_); }
  [[nodiscard]] EngineChild take_engine() { return std::move(engine_); }
  // As Launch::release().
  [[nodiscard]] Result<Fd> release();

 private:
  ContainerLaunch() = default;
  Result<void> meet(const ContainerStart& start, const Fd& socket);
  [[nodiscard]] Result<void> give_folders(const ContainerStart& start) const;
  [[nodiscard]] Result<void> come_here(const std::filesystem::path& cgroup) const;
  Result<void> hand_over(const ContainerStart& start, const Fd& out, const Fd& err);
  Result<void> failure() const;
  std::string what_;
  std::string program_;
  pid_t pid_ = 0;
  uid_t uid_ = 0;
  gid_t gid_ = 0;
  Fd pidfd_;
  Fd visitor_;
  Fd listener_;
  EngineChild engine_;
  rose_enter_page* page_ = nullptr;
  std::size_t page_size_ = 0;
};

}  // namespace rose::deploy
