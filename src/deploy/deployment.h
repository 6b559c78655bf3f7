// Nodes: namespaces, cgroups, start, readiness, restart, stop; and the commands that run beside
// them (setup, workload, incident, oracle, teardown). Knows nothing of faults or traces: the rooms
// above watch through NodeObserver.
//
// Names in a run (incident scripts rely on them): namespaces "<id>-<node>" and "<id>-client" under
// /run/netns; in each node's namespace the link is rose0; in the client's the bridge is rosebr0 and the
// port of a node rose-<node> (rose-p<index> when that is longer than 15 characters). cgroups are
// <id>/rose-<node>, and <id>/rose.commands/rose-<n> for commands. Nothing is made in the host's namespace.
//
// Nodes with `attach` are looked for after setup until they are found, and again after each end. Their
// cgroup is their own; processes that setup left in its cgroup are moved to the node's. Until start() has
// returned, `cgroup` of such a node may be empty or change (with pid_file it is foreseen).
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/fd.h"
#include "base/result.h"
#include "config/config.h"
#include "deploy/clock_calls.h"
#include "deploy/disk.h"

namespace rose::deploy {

struct NodeInfo {
  std::string name;
  std::size_t index = 0;
  std::string ip;                // "" in host networks without an address
  std::filesystem::path dir;     // run_dir/name
  std::string netns;             // name under /run/netns; "" in host networks
  std::string bridge_port;       // interface in the client namespace that leads to the node; "" in host networks
  std::filesystem::path cgroup;  // v2 folder that holds all its processes
  std::uint64_t cgroup_id = 0;   // its inode, as bpf_get_current_cgroup_id says
  std::filesystem::path pid_file;
  std::vector<std::filesystem::path> logs;  // its output, and the files that [[node]] logs names
};

struct EndInfo {
  pid_t pid = 0;
  bool signalled = false;
  int code = 0;          // exit status or signal
  bool planned = false;  // by `rose node`, or because the run ends
};
[[nodiscard]] std::string describe(const EndInfo& end);  // "exited with status 3"

// Called from the deployment's own thread, one call at a time; they may ask the deployment anything, signal, pause and
// resume, but not start(), stop() or spawn(). Each on_start is followed by one on_end, also when the command cannot be
// executed or the process is killed while it waits.
class NodeObserver {
 public:
  virtual ~NodeObserver() = default;
  // Syscalls (x86-64 numbers) whose calls by this node are to be notified; asked before each start.
  // Empty: no seccomp filter at all.
  virtual std::vector<int> notified_syscalls(std::size_t) { return {}; }
  // Beside them.
  virtual ClockCalls notified_clocks(std::size_t) { return ClockCalls::none; }
  // Variables to set in the node's environment, `own` being what it has; asked once, when start() begins. A node that
  // setup starts gets them from there: setup has each as ROSE_<variable>_<node>.
  virtual std::map<std::string, std::string> environment(std::size_t, const std::map<std::string, std::string>&) {
    return {};
  }
  // The node's new main process has its filter and waits; after this returns it makes its execve
  // (which is notified too when selected: it is rose's own, not the node's).
  virtual void on_listener(std::size_t, pid_t, Fd) {}
  // Just before the main process executes its command; it is in its cgroup and namespace already. An attached node
  // runs already when this is called.
  virtual void on_start(std::size_t, pid_t) {}
  virtual void on_end(std::size_t, const EndInfo&) {}
  // Ends that follow are planned (rose node, end of run) until called with false.
  virtual void on_planned(std::size_t, bool) {}
};

// How a command beside the nodes ended.
struct CommandResult {
  bool started = true;     // false: could not be executed; `note` says why
  bool timed_out = false;  // killed with everything it had started
  bool cancelled = false;
  bool signalled = false;
  bool too_much = false;  // killed since it wrote without end
  int code = 0;           // exit status or signal
  double seconds = 0;
  std::string note;  // for people: "exited with status 3", "timed out after 30s"
  [[nodiscard]] bool ok() const { return started && !timed_out && !cancelled && !signalled && code == 0; }
  // It came to an end of its own that it calls a failure.
  [[nodiscard]] bool failed() const { return !ok() && !timed_out && !cancelled && !too_much; }
};

// A command that runs in the client namespace and the run directory, in a cgroup of its own so that
// it ends as one. Destroying it kills what is left.
class RunningCommand {
 public:
  virtual ~RunningCommand() = default;
  [[nodiscard]] virtual int fd() const = 0;  // a pidfd: readable when its first process has ended
  // Waits until it ended, `timeout_ns` passed since its start, or cancellation; then ends all that is left of it.
  virtual CommandResult wait() = 0;
  virtual bool finished() = 0;
  virtual CommandResult kill() = 0;
  [[nodiscard]] virtual const std::filesystem::path& cgroup() const = 0;  // there until it has ended
};

enum class Scope { all, main };

class Deployment {
 public:
  // Makes the run directory's folders, cgroups, namespaces and links; nothing runs yet. `run_dir` must exist and be
  // empty. `observer` may be null and must outlive the deployment.
  [[nodiscard]] static Result<std::unique_ptr<Deployment>> create(const config::Config& config,
                                                                  const std::filesystem::path& run_dir, int run_number,
                                                                  NodeObserver* observer);
  virtual ~Deployment() = default;  // stop() if that was not done

  [[nodiscard]] virtual const std::vector<NodeInfo>& nodes() const = 0;
  [[nodiscard]] virtual const std::filesystem::path& run_dir() const = 0;
  [[nodiscard]] virtual const std::string& client_netns() const = 0;  // name; "" in host networks
  [[nodiscard]] virtual const std::string& id() const = 0;            // "rose-1f3a9c": names of all it creates begin so
  [[nodiscard]] virtual int node_netns_fd(std::size_t node) const = 0;  // -1 in host networks
  [[nodiscard]] virtual int client_netns_fd() const = 0;
  // The v2 folder that holds the cgroups of all commands beside the nodes.
  [[nodiscard]] virtual std::filesystem::path commands_cgroup() const = 0;

  // setup command, then all nodes in file order, then their readiness. Errors are `inconclusive` (a node that does not
  // get ready, with the tail of its log as hint), `input` (a command that does not exist) or `cancelled`.
  [[nodiscard]] virtual Result<void> start() = 0;

  // `log_name`: its output goes to run_dir/<log_name>.log ("workload", "oracle", ...), appended. `most_output`: it is
  // ended when that file has grown by more bytes; 0: never.
  [[nodiscard]] virtual Result<std::unique_ptr<RunningCommand>> spawn(const config::Command& command,
                                                                      std::string_view log_name,
                                                                      std::int64_t timeout_ns,
                                                                      std::uint64_t most_output = 0) = 0;

  // 0 when it is down.
  [[nodiscard]] virtual pid_t main_pid(std::size_t node) const = 0;
  // Every living process of the node.
  [[nodiscard]] virtual std::vector<pid_t> processes(std::size_t node) const = 0;
  [[nodiscard]] virtual int starts(std::size_t node) const = 0;
  // Sends `signal`; SIGKILL with Scope::all goes through cgroup.kill and so catches every fork. The restart policy
  // applies afterwards.
  [[nodiscard]] virtual Result<void> signal(std::size_t node, Scope scope, int signal) = 0;
  // Freezes or thaws: the whole cgroup, or SIGSTOP/SIGCONT for Scope::main.
  [[nodiscard]] virtual Result<void> pause(std::size_t node, Scope scope) = 0;
  // As pause with Scope::all, but does not wait until all its processes stand.
  [[nodiscard]] virtual Result<void> pause_at_once(std::size_t node) = 0;
  [[nodiscard]] virtual Result<void> resume(std::size_t node, Scope scope) = 0;
  // From now on a kernel program may stop (SIGSTOP) processes of the attached node, ahead of anything that rose could
  // note: heal() then resumes those that stand still and did not before.
  [[nodiscard]] virtual Result<void> foresee_stops(std::size_t node) = 0;

  // Who answers `rose step`, from a thread for each request: with `done` false it returns once it is the step's turn,
  // with true it takes note that it has happened. Set before start().
  using StepHandler = std::function<Result<void>(const std::string& name, bool done)>;
  virtual void on_step(StepHandler handler) = 0;
  // Before start(): a file system of the run's own (tmpfs, of the size that the kernel gives it) stands in for the
  // node's folder, or for `inside` of it ("" or a relative path), which is made. stop() puts plain files back in its
  // place. Returns where it is.
  [[nodiscard]] virtual Result<std::filesystem::path> add_volume(std::size_t node,
                                                                 const std::filesystem::path& inside) = 0;
  // The same with a disk whose power can go (ext4, 8 GiB, sparse), and which can be slow if it is `paced`. The node's
  // output is not on it. The deployment owns it.
  [[nodiscard]] virtual Result<const Disk*> add_disk(std::size_t node, const std::filesystem::path& inside,
                                                     bool paced = false) = 0;
  // A line for heal(), ahead of what it is about (deploy/identity.h).
  [[nodiscard]] virtual Result<void> note(std::string_view key, std::string_view value) = 0;

  // Ends nodes (SIGTERM to all their processes, at most 2 s of grace, cgroup.kill), runs teardown, removes namespaces,
  // links and cgroups. Safe to call twice; errors are reported as warnings and the rest is still undone.
  virtual void stop() = 0;
};

// Runs `work` in a thread inside the network namespace `netns_fd` (here when it is -1) and waits for it.
void in_netns(int netns_fd, const std::function<void()>& work);

// `rose node`: asks the deployment whose run directory is `run_dir`. The answer is what to print.
[[nodiscard]] Result<std::string> node_request(const std::filesystem::path& run_dir, std::string_view action,
                                               std::string_view node);
// `rose step`: waits for the step's turn, or says that it has happened.
[[nodiscard]] Result<void> step_request(const std::filesystem::path& run_dir, std::string_view step, bool done);

// Undoes what rose processes that were killed left behind: of each lock file /run/rose/<id>.lock that nobody holds any
// more, exactly what it notes. What only bears such a name (rose-*) and has no lock is left alone and told; `names` are
// the ids and names that are undone on request, whoever made them. Other rooms that make such things take an Identity
// (deploy/identity.h) first. ErrorKind::usage: a name that cannot be rose's.
struct Healed {
  std::vector<std::string> undone;     // one line each: "cgroup rose-1f3a9c: ended 3 processes, removed"
  std::vector<std::string> alive;      // deployments of living rose processes, left alone
  std::vector<std::string> unclaimed;  // "cgroup rose-lab": no lock says whose they are, so they are left alone
  std::vector<std::string> failed;
  bool by_engines = false;             // some of those a container engine could not undo
  std::vector<std::string> forgotten;  // those, with `forget`: nothing notes them any more
};
// `forget`: what only a container engine could remove, and it cannot, is told and no more kept for the next time.
[[nodiscard]] Result<Healed> heal(const std::vector<std::string>& names = {}, bool forget = false);

}  // namespace rose::deploy
