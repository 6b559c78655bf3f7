// The nodes of a run (namespaces, cgroups, start, readiness, restart, stop) and the commands that run alongside them
// (setup, workload, incident, oracle, teardown). Knows neither faults nor traces: components that need to be informed
// about nodes implement NodeObserver.
//
// Incident scripts rely on these names: the namespaces are "<id>-<node>" and "<id>-client" below /run/netns. In a
// node's namespace the link is rose0. In the client's namespace, the bridge is rosebr0 and the port of a node is
// rose-<node>, or rose-p<index> if that is longer than 15 characters. The cgroups are <id>/rose-<node>, and
// <id>/rose.commands/rose-<n> for commands. Nothing is created in the host's namespace.
//
// Nodes with `attach` are searched for after setup until they are found, and again after each end. Such a node normally
// keeps its own cgroup; but processes that setup left in setup's cgroup are moved to a cgroup that rose created for the
// node. Until start() has returned, NodeInfo::cgroup of an attached node may be empty or change. With pid_file, it is
// at first the cgroup that rose created.
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
#include "deploy/volumes.h"

namespace rose::deploy {

struct NodeInfo {
  std::string name;
  std::size_t index = 0;
  std::size_t network = 0;       // index of the node whose network namespace, address and port it uses: usually its own
  std::string ip;                // "" in host networks without an address
  std::filesystem::path dir;     // run_dir/name
  std::string netns;             // name below /run/netns; "" in host networks
  std::string container;         // name of its container; "" if it has none, or if only the engine knows the name
  std::string bridge_port;       // the interface in the client namespace that leads to the node; "" in host networks
  std::filesystem::path cgroup;  // v2 folder with all its processes
  std::uint64_t cgroup_id = 0;   // inode number, as returned by bpf_get_current_cgroup_id
  std::filesystem::path pid_file;
  std::vector<std::filesystem::path> logs;  // its stdout and stderr, and the files in [[node]] logs
};

struct EndInfo {
  pid_t pid = 0;
  bool signalled = false;
  int code = 0;          // exit status or signal number
  bool planned = false;  // ended by `rose node`, or because the run ends
};
[[nodiscard]] std::string describe(const EndInfo& end);  // "exited with status 3"

// Called in the deployment's own thread, one call at a time. Implementations may query the deployment, signal, pause
// and resume, but not call start(), stop() or spawn(). Each on_start is followed by one on_end, even if the command
// cannot be executed or the process is killed while it waits.
class NodeObserver {
 public:
  virtual ~NodeObserver() = default;
  // Returns the system calls (by this machine's numbers) that this node's seccomp filter reports to rose. Called before
  // each start. If this list is empty, and notified_clocks() returns ClockCalls::none, there is no filter.
  virtual std::vector<int> notified_syscalls(std::size_t) { return {}; }
  // Returns the calls about clocks that the filter reports to rose in addition to those system calls.
  virtual ClockCalls notified_clocks(std::size_t) { return ClockCalls::none; }
  // Returns variables to add to the node's environment. The second argument is the environment without them. Called
  // once, when start() begins. For a node that setup starts, setup gets each variable as ROSE_<variable>_<node>.
  virtual std::map<std::string, std::string> environment(std::size_t, const std::map<std::string, std::string>&) {
    return {};
  }
  // The folders of the run to which the variables of environment() refer. The node's processes may read the files in
  // each of these folders, and may write only in the folder's subfolder that has the node's name. A container sees
  // nothing else of the run's folder.
  virtual std::vector<std::filesystem::path> folders(std::size_t) { return {}; }
  // Called when the node's new main process has installed its filter and waits; the descriptor is the filter's
  // listener. When this function returns, the process calls execve. If execve is selected, the filter reports this
  // call, too, although the node's program has not made it.
  virtual void on_listener(std::size_t, pid_t, Fd) {}
  // Called just before the main process executes its command. The process is already in its cgroup and namespace. An
  // attached node already runs.
  virtual void on_start(std::size_t, pid_t) {}
  virtual void on_end(std::size_t, const EndInfo&) {}
  // From a call with true until a call with false, ends of the node are planned (by `rose node`, or because the run
  // ends).
  virtual void on_planned(std::size_t, bool) {}
};

// How a command that ran alongside the nodes ended.
struct CommandResult {
  bool started = true;     // false: could not be executed; `note` has the reason
  bool timed_out = false;  // it was killed with everything that it had started
  bool cancelled = false;
  bool signalled = false;
  bool too_much = false;  // it was killed because its output exceeded the limit
  int code = 0;           // exit status or signal number
  double seconds = 0;
  std::string note;  // how it ended, as text: "exited with status 3", "timed out after 30s"
  [[nodiscard]] bool ok() const { return started && !timed_out && !cancelled && !signalled && code == 0; }
  // True if it ended by itself with a failure.
  [[nodiscard]] bool failed() const { return !ok() && !timed_out && !cancelled && !too_much; }
};

// A command in the client namespace and the run directory, in its own cgroup so that it can be ended as a whole. The
// destructor kills all its processes.
class RunningCommand {
 public:
  virtual ~RunningCommand() = default;
  [[nodiscard]] virtual int fd() const = 0;  // a pidfd: readable when its first process has ended
  // Waits until the command has ended, `timeout_ns` have passed since its start, or cancellation was requested; then
  // kills its remaining processes.
  virtual CommandResult wait() = 0;
  virtual bool finished() = 0;
  virtual CommandResult kill() = 0;
  [[nodiscard]] virtual const std::filesystem::path& cgroup() const = 0;  // exists until the command has ended
};

enum class Scope { all, main };

class Deployment {
 public:
  // Creates the folders, cgroups, namespaces and links of the run; starts nothing. `run_dir` must exist and be empty.
  // `observer` may be null and must outlive the deployment.
  [[nodiscard]] static Result<std::unique_ptr<Deployment>> create(const config::Config& config,
                                                                  const std::filesystem::path& run_dir, int run_number,
                                                                  NodeObserver* observer);
  virtual ~Deployment() = default;  // calls stop() if necessary

  [[nodiscard]] virtual const std::vector<NodeInfo>& nodes() const = 0;
  [[nodiscard]] virtual const std::filesystem::path& run_dir() const = 0;
  [[nodiscard]] virtual const std::string& client_netns() const = 0;  // "" in host networks
  // "rose-1f3a9c": prefix of the names of everything it creates
  [[nodiscard]] virtual const std::string& id() const = 0;
  [[nodiscard]] virtual int node_netns_fd(std::size_t node) const = 0;  // -1 in host networks
  [[nodiscard]] virtual int client_netns_fd() const = 0;
  // The v2 folder that contains the cgroups of all commands.
  [[nodiscard]] virtual std::filesystem::path commands_cgroup() const = 0;

  // Runs the setup command. start() runs it if prepare() was not called before.
  [[nodiscard]] virtual Result<void> prepare() = 0;
  // Runs the setup command, starts all nodes in file order, runs `form` and waits until they are ready. Errors are
  // `inconclusive` (a node does not become ready; the hint has the end of its log), `input` (a command does not exist)
  // or `cancelled`.
  [[nodiscard]] virtual Result<void> start() = 0;

  // Runs a command. Its output is appended to run_dir/<log_name>.log ("workload", "oracle", ...). The command is killed
  // if that file grows by more than `most_output` bytes; 0: no limit.
  [[nodiscard]] virtual Result<std::unique_ptr<RunningCommand>> spawn(const config::Command& command,
                                                                      std::string_view log_name,
                                                                      std::int64_t timeout_ns,
                                                                      std::uint64_t most_output = 0) = 0;

  // The pid of the node's main process; 0 if the node is down.
  [[nodiscard]] virtual pid_t main_pid(std::size_t node) const = 0;
  // Every living process of the node.
  [[nodiscard]] virtual std::vector<pid_t> processes(std::size_t node) const = 0;
  [[nodiscard]] virtual int starts(std::size_t node) const = 0;
  // Describes in a sentence what this machine has refused to do for the nodes since they were ready. Unless the text is
  // "", the run was not as planned.
  [[nodiscard]] virtual std::string trouble() const = 0;
  // Sends `signal`. SIGKILL with Scope::all uses cgroup.kill, which no fork can escape. The restart policy applies
  // after such an end, too.
  [[nodiscard]] virtual Result<void> signal(std::size_t node, Scope scope, int signal) = 0;
  // Freezes the whole cgroup, or sends SIGSTOP for Scope::main; resume() undoes it.
  [[nodiscard]] virtual Result<void> pause(std::size_t node, Scope scope) = 0;
  // Like pause with Scope::all, but does not wait until all processes are frozen.
  [[nodiscard]] virtual Result<void> pause_at_once(std::size_t node) = 0;
  [[nodiscard]] virtual Result<void> resume(std::size_t node, Scope scope) = 0;
  // Announces that a BPF program may stop (SIGSTOP) processes of the attached node at any time, before rose can note
  // which processes. If rose is killed, heal() then resumes the node's processes that are stopped, except those that
  // were stopped before this call.
  [[nodiscard]] virtual Result<void> foresee_stops(std::size_t node) = 0;

  // Sets the handler for `rose step`, which is called in a separate thread for each request. With `done` false, the
  // handler returns when it is the step's turn; with `done` true, it records that the step has happened. Call on_step()
  // before start().
  using StepHandler = std::function<Result<void>(const std::string& name, bool done)>;
  virtual void on_step(StepHandler handler) = 0;
  // Mounts file systems of the run on the folders in which a node keeps files, so that faults can affect these files.
  // Call this before start(). `inside`: "" means the node's folder and its container's volumes; a relative path means a
  // folder in the node's folder, which is created; an absolute path means a folder in its container, which becomes a
  // volume if it is not one yet. stop() restores plain files in the node's folder; volumes are removed as usual. The
  // deployment owns the file systems. start() makes the file systems of a container, before any node runs.
  //
  // A tmpfs of the kernel's default size:
  [[nodiscard]] virtual Result<void> add_volumes(std::size_t node, const std::filesystem::path& inside) = 0;
  // Disks (ext4, 8 GiB, sparse) that can be slow if `paced`, and can lose power otherwise. The node's output is not on
  // them:
  [[nodiscard]] virtual Result<void> add_disks(std::size_t node, const std::filesystem::path& inside, bool paced) = 0;
  // The file systems that were added at `inside`:
  [[nodiscard]] virtual std::vector<const Volume*> volumes(std::size_t node,
                                                           const std::filesystem::path& inside) const = 0;
  [[nodiscard]] virtual std::vector<Disk*> disks(std::size_t node, const std::filesystem::path& inside) const = 0;
  // Adds a line for heal() (deploy/identity.h). Call it before the action that the line describes.
  [[nodiscard]] virtual Result<void> note(std::string_view key, std::string_view value) = 0;

  // Ends nodes (SIGTERM to all their processes, at most 2 s, then cgroup.kill), runs teardown, removes namespaces,
  // links and cgroups. May be called twice. Errors are reported as warnings and the rest is still undone.
  virtual void stop() = 0;
};

// Runs `work` in a thread inside the network namespace `netns_fd` (-1: the current one) and waits for it.
void in_netns(int netns_fd, const std::function<void()>& work);

// `rose node`: sends a request to the deployment with this run directory. Returns the text to print.
[[nodiscard]] Result<std::string> node_request(const std::filesystem::path& run_dir, std::string_view action,
                                               std::string_view node);
// `rose step`: waits for the step's turn, or reports that it has happened.
[[nodiscard]] Result<void> step_request(const std::filesystem::path& run_dir, std::string_view step, bool done);

// What heal() did, and what it found.
struct Healed {
  std::vector<std::string> undone;     // one line each: "cgroup rose-1f3a9c: ended 3 processes, removed"
  std::vector<std::string> alive;      // deployments of running rose processes, which are left alone
  std::vector<std::string> unclaimed;  // "cgroup rose-lab": no lock file identifies the owner, so it is left alone
  std::vector<std::string> failed;
  bool by_engines = false;             // some of `failed` are things that a container engine could not undo
  std::vector<std::string> forgotten;  // with `forget`: leftovers whose notes were removed
};
// Undoes what killed rose processes left: for each lock file /run/rose/<id>.lock that is no longer held, exactly what
// the file lists. Other things with rose's names (rose-*) are left alone and reported. All code that creates things
// with such names must first take an Identity (deploy/identity.h). `names`: ids and names that are undone on request,
// no matter who created them. Returns ErrorKind::usage for a name that rose cannot have created. With `forget`,
// leftovers that only a container engine could remove, but that no engine can remove any more, are reported, and their
// notes are removed.
[[nodiscard]] Result<Healed> heal(const std::vector<std::string>& names = {}, bool forget = false);
// For all runs of the process `owner`, which has ended, undoes the changes that do harm until they are undone: resumes
// stopped and frozen processes, undoes limits and mounts, and ends nodes whose filtered calls are no longer answered.
// heal() does the rest. Touches neither locks of other processes nor the lock `except`.
[[nodiscard]] Healed relieve_after(pid_t owner, const std::string& except);

}  // namespace rose::deploy
