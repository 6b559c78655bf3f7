// The implementation of Deployment, in six files: deployment.cc creates, starts and ends the deployment, monitor.cc
// watches the nodes' processes in a separate thread, node_control.cc acts on single nodes, container_nodes.cc lets the
// engine create containers, joined.cc handles containers that join namespaces of others, and places.cc makes file
// systems for faults.
#pragma once

#include <sys/epoll.h>
#include <unistd.h>

#include <atomic>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <set>
#include <thread>

#include "base/cancel.h"
#include "base/units.h"
#include "deploy/command.h"
#include "deploy/container_launch.h"
#include "deploy/control.h"
#include "deploy/deployment.h"
#include "deploy/environment.h"
#include "deploy/identity.h"
#include "deploy/launch.h"
#include "deploy/name_server.h"
#include "deploy/names.h"
#include "deploy/network.h"
#include "deploy/ready.h"
#include "deploy/run_data.h"

namespace rose::deploy {

inline constexpr const char* kEnterFolders = ".rose-enter";  // in the run's folder: one folder per container
inline constexpr const char* kOwnFolder = ".rose";           // in the run's folder: only root may enter it
// In the run's folder; only root may enter it. It holds rescued files (volume::rescue()).
inline constexpr const char* kRescueFolder = ".rescued";
constexpr std::int64_t kAttachTimeout = 10 * kSecond;  // time in which rose must find or start a node without `ready`
constexpr std::int64_t kPlannedStopGrace = 10 * kSecond;  // time that a node has to end after `rose node stop`
constexpr std::int64_t kHookTimeout = 600 * kSecond;      // for a hook; Compose has no such limit, but a run must end
constexpr std::int64_t kKillTimeout = 10 * kSecond;       // from SIGKILL until the process has ended

// State of a node in a container.
struct ContainerState {
  ContainerSpec spec;
  std::vector<std::string> argv;  // the image's entry point and command, or the configuration's
  int stop_signal = 0;
  std::map<std::string, std::string> observers;  // variables that the observer adds
  std::vector<GivenFolder> folders;              // the container's user becomes their owner before its first start
  std::vector<std::string> making;               // the engine's command that creates the container
  bool made = false;                             // the container was created, or is being created
  std::optional<config::Health> health;          // its health check, with the test and all times filled in
};

struct NodeState {
  const config::Node* config = nullptr;
  std::optional<Credentials> user;
  LaunchSpec spec;  // complete except for file and the notified calls, which are determined later
  Fd events;        // its cgroup.events; used by the monitor
  std::unique_ptr<ContainerState> container;    // null: the node runs directly on this machine
  EngineChild engine;                           // the engine's process for its container; used by the monitor
  std::optional<Result<ContainerLaunch>> held;  // the container that waits for its first start

  // Serialises `rose node` requests.
  std::mutex operation;

  std::thread hooks;  // runs its post_start hooks when the run begins

  // Guarded by the deployment's mutex.
  bool in_hooks = false;              // its post_start hooks have not ended
  std::optional<Error> hook_failure;  // why a hook failed; the start of the run then fails, too
  pid_t pid = 0;                      // 0: down
  Fd pidfd;                           // briefly invalid while it starts
  bool ending = false;                // its container's main process has ended, but the engine has not reported how
  pid_t ended_pid = 0;                // the pid of that process
  std::int64_t engine_due_ns = 0;     // time by which the engine should have reported the end; 0: not waiting
  // The main process is not a child of rose (a daemon, or an attached process), so its exit status is unknown.
  bool adopted = false;
  int starts = 0;
  int restarts = 0;                // number of restarts by the restart policy
  std::int64_t restart_at_ns = 0;  // 0: none scheduled
  bool end_noted = false;  // a note for heal() says that the node must end if rose is killed (deploy/guardian.h)
  bool planned = false;    // its ends are planned, so no restart follows
  bool paused = false;
  bool main_paused = false;
  std::int64_t attach_at_ns = 0;    // for an attached node: when to search for it again
  std::optional<Error> failure;     // why it could not be started
  std::optional<Error> unattached;  // why it could not be attached at the last attempt
  int end_status = 0;               // its last exit status; 128 + signal number if it was killed
  std::optional<std::size_t> with;  // the owner of its PID namespace, if the node ended together with it
  std::string end_note;             // how it last ended; "" while it runs or is about to run
  std::string last_end;             // how it last ended, also while it runs again
  std::vector<LogStart> logs;       // of the current incarnation
};

// A place in which a node keeps files that faults concern, and the file systems that hold these files.
struct FaultPlace {
  std::size_t node = 0;
  std::filesystem::path inside;  // as for Deployment::add_volumes()
  bool fills = false, slows = false, loses_power = false;
  std::vector<const Volume*> volumes;
  std::vector<Disk*> disks;
};

// `what` is a volume or folder that `nodes` nodes mount. Removes the places whose faults do not affect it: a power loss
// of a whole node does not affect what several nodes mount. Returns true if `what` may lose power. Fails if the
// schedule names `what` for a power loss although several nodes mount it, or if the faults of the remaining places
// cannot share a file system.
[[nodiscard]] Result<bool> settle_uses(std::vector<FaultPlace*>& places, std::size_t nodes, const std::string& what);

// True if a node's command or environment has the placeholder.
[[nodiscard]] bool mentions(const config::Node& node, std::string_view placeholder);
// True if the volume is mounted read-only. `volume`: the parts of SOURCE:TARGET[:OPTIONS].
[[nodiscard]] bool is_read_only(const std::vector<std::string>& volume);

class Cluster final : public Deployment {
 public:
  Cluster(const config::Config& config, std::filesystem::path run_dir, int run_number, NodeObserver* observer,
          Identity identity)
      : config_(config), observer_(observer), run_dir_(std::move(run_dir)), identity_(std::move(identity)) {
    facts_ = {run_dir_, config_.directory, run_number, config_.deployment.network == config::Network::host};
  }
  Cluster(const Cluster&) = delete;
  Cluster& operator=(const Cluster&) = delete;
  ~Cluster() override { stop(); }

  Result<void> make();

  const std::vector<NodeInfo>& nodes() const override { return infos_; }
  const std::filesystem::path& run_dir() const override { return run_dir_; }
  const std::string& client_netns() const override { return client_netns_; }
  const std::string& id() const override { return identity_.id(); }
  int node_netns_fd(std::size_t node) const override { return network_ ? network_->node_fd(node) : -1; }
  int client_netns_fd() const override { return network_ ? network_->client_fd() : -1; }

  Result<void> prepare() override;
  Result<void> start() override;
  std::filesystem::path commands_cgroup() const override { return cgroup_ / "rose.commands"; }
  Result<std::unique_ptr<RunningCommand>> spawn(const config::Command& command, std::string_view log_name,
                                                std::int64_t timeout_ns, std::uint64_t most_output) override {
    ROSE_CHECK(cancel::check());
    return spawn_as(command, log_name, {.timeout_ns = timeout_ns, .most_output = most_output}, nullptr);
  }

  pid_t main_pid(std::size_t node) const override {
    std::lock_guard lock(mutex_);
    return states_[node]->pid;
  }
  std::vector<pid_t> processes(std::size_t node) const override;
  int starts(std::size_t node) const override {
    std::lock_guard lock(mutex_);
    return states_[node]->starts;
  }
  std::string trouble() const override {
    std::lock_guard lock(mutex_);
    return trouble_;
  }
  Result<void> signal(std::size_t node, Scope scope, int signal) override;
  Result<void> pause(std::size_t node, Scope scope) override { return stand_still(node, scope, true); }
  Result<void> pause_at_once(std::size_t node) override { return stand_still(node, Scope::all, false); }
  Result<void> resume(std::size_t node, Scope scope) override;
  Result<void> foresee_stops(std::size_t node) override;
  void on_step(StepHandler handler) override { on_step_ = std::move(handler); }
  Result<void> add_volumes(std::size_t node, const std::filesystem::path& inside) override;
  Result<void> add_disks(std::size_t node, const std::filesystem::path& inside, bool paced) override;
  std::vector<const Volume*> volumes(std::size_t node, const std::filesystem::path& inside) const override;
  std::vector<Disk*> disks(std::size_t node, const std::filesystem::path& inside) const override;
  Result<void> note(std::string_view key, std::string_view value) override { return identity_.note(key, value); }
  void stop() override;

 private:
  // The descriptor that an epoll event belongs to.
  enum Source : std::uint64_t { kWake, kPidfd, kEvents, kEngine };
  static std::uint64_t tag(Source source, std::size_t node) { return (std::uint64_t{source} << 32) | node; }

  Result<void> make_folders();
  Result<void> ask_calls(std::size_t node);
  Result<void> note_end(std::size_t node);
  Result<OpenFolder> volume_folder(std::size_t node, const std::filesystem::path& inside);
  Result<OpenFolder> own_folder();
  Result<void> check_path(const NodeInfo& info, const Credentials& user) const;
  void dissolve_volumes();
  // places.cc: file systems for faults.
  Result<void> take_place(std::size_t node, const std::filesystem::path& inside, bool FaultPlace::* use);
  [[nodiscard]] std::optional<std::filesystem::path> in_node_folder(std::size_t node,
                                                                    const std::filesystem::path& inside) const;
  [[nodiscard]] bool keeps_elsewhere(std::size_t node) const;
  [[nodiscard]] std::vector<FaultPlace*> places_at(std::size_t node, const std::filesystem::path& target) const;
  Result<void> mount_for(const std::vector<FaultPlace*>& places, OpenFolder at, const std::vector<std::string>& outside,
                         bool may_lose_power);
  Result<void> name_volumes(std::size_t node, const Image& image, std::vector<std::string>& volumes);
  Result<void> mount_volumes();
  Result<void> sync_disks(std::size_t node);
  void drop_volumes();
  Result<void> share_run_folder();
  Result<void> make_own_names();
  static void no_names(const Error& why);
  Result<void> make_nodes();
  Result<void> check_commands();
  Result<void> make_containers();
  // The folder that commands have in PATH, with a program that has the engine's name. It exists only if it is needed.
  [[nodiscard]] std::filesystem::path engine_commands() const { return run_dir_ / kEnterFolders / ".commands"; }
  Result<void> place_engine_command();
  Result<void> create_containers(const std::vector<std::size_t>& later);
  // In joined.cc: containers that join namespaces of other containers. The other containers are called the owners.
  [[nodiscard]] std::vector<std::size_t> owners(std::size_t node) const;
  [[nodiscard]] bool is_joined(std::size_t node) const;
  // Divides the nodes into rounds; each node is in a later round than its owners.
  [[nodiscard]] std::vector<std::vector<std::size_t>> owners_first(std::vector<std::size_t> nodes) const;
  // The name of an owner that is not running; "" if all are running. Call with the deployment's mutex held.
  [[nodiscard]] std::string missing_owner(std::size_t node) const;
  // The owner of the node's PID namespace, if the owner has ended or is about to end. Call with the deployment's mutex
  // held.
  [[nodiscard]] std::optional<std::size_t> ended_with(std::size_t node) const;
  // If the node's main process was in the PID namespace of another node or of this machine, kills the processes that
  // the node left there.
  void end_others(std::size_t node) const;
  [[nodiscard]] bool starts_at_once(std::size_t node) const;
  [[nodiscard]] bool made_by_start(std::size_t node) const;
  [[nodiscard]] std::unique_lock<std::mutex> alone(std::size_t node);
  Result<void> plan_container(std::size_t node);
  Result<void> make_holders(std::vector<Network::Member>& members);
  [[nodiscard]] ContainerSpec named_spec(std::size_t node) const;
  Result<std::filesystem::path> memory_volume(const std::string& name, const std::string& options);
  Result<void> write_handed(std::size_t node, std::vector<std::string>& volumes);
  Result<void> place_names(std::size_t node, const Image& image);
  bool is_name_server(std::size_t owner) const;
  Result<void> make_data();
  void dissolve_data();
  Result<void> place_folders(std::size_t node, const Image& image);
  void remove_containers();
  [[nodiscard]] bool has_containers() const;
  ContainerStart container_start(std::size_t node);
  void hold_containers();
  void hold_containers(const std::vector<std::size_t>& nodes);
  Result<void> await_dependencies(std::size_t node);
  Result<void> await_completed(std::size_t node);
  void begin_hooks(std::size_t node);
  Result<void> await_hooks(std::size_t node);
  Result<void> post_start(std::size_t node);
  Result<void> pre_stop(std::size_t node, std::int64_t timeout_ns, bool at_end);
  Result<void> run_hook(std::size_t node, const config::Hook& hook, const std::string& kind, std::int64_t timeout_ns,
                        bool at_end);
  void end_hooks();
  [[nodiscard]] std::vector<std::size_t> start_order() const;
  void settle_health(std::size_t node, const Image& image);
  // The health check of the node's container, if the check decides whether the node is ready; otherwise null.
  [[nodiscard]] const config::Health* health_of(std::size_t node) const;
  [[nodiscard]] std::int64_t ready_timeout(std::size_t node, bool strict) const;
  [[nodiscard]] bool has_ready(std::size_t node) const {
    return states_[node]->config->ready.has_value() || health_of(node) != nullptr;
  }
  void unhealthy(std::size_t node, const std::string& why) const;
  [[nodiscard]] config::Command health_command(std::size_t node) const;
  Variables command_variables(const NodeInfo* node) const;
  Result<std::unique_ptr<RunningCommand>> spawn_as(const config::Command& command, std::string_view log_name,
                                                   const CommandLimits& limits, const NodeInfo* node,
                                                   const Variables& further = {});
  void add_observers_variables();
  Result<void> run_setup();
  Result<void> run_form();
  Result<void> run_to_end(const config::Command& command, std::string_view what, const Variables& further);
  void run_teardown();

  // The monitor thread. It does everything that starts nodes, detects their ends or calls the observer.
  void monitor();
  void on_monitor(const std::function<void()>& task);
  void wake() {
    const std::uint64_t one = 1;
    [[maybe_unused]] const ssize_t n = ::write(wake_.get(), &one, sizeof one);
  }
  void watch(Source source, std::size_t node, int fd, std::uint32_t events) {
    epoll_event event{};
    event.events = events;
    event.data.u64 = tag(source, node);
    ::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event);
  }
  int next_timeout_ms() const;
  void run_timers();
  void not_restarted(const Error& error);
  Result<void> launch(std::size_t node);
  // Records why the node could not be started, and wakes the threads that wait for the node.
  Unexpected not_started(NodeState& state, Error error);
  template <typename Held>
  Result<void> let_run(std::size_t node, Result<Held> prepared);
  Result<void> attach(std::size_t node);
  Result<void> check_apart(std::size_t node, const std::filesystem::path& folder) const;
  void main_ended(std::size_t node);
  void engine_ended(std::size_t node, bool late);
  void cgroup_changed(std::size_t node);
  bool adopt_leader(std::size_t node);
  void finish_end(std::size_t node, EndInfo end);
  void tell_planned(std::size_t node, bool planned) {
    if (observer_ != nullptr) observer_->on_planned(node, planned);
  }

  Result<std::unique_ptr<Probe>> make_probe(std::size_t node);
  // `strict`: if the health check of a node does not pass, that is an error, because another service waits for this
  // node's health.
  Result<void> await_ready(const std::vector<std::size_t>& which, bool strict = false);
  Error not_ready(std::size_t node, std::string message) const;

  Result<void> stand_still(std::size_t node, Scope scope, bool wait);
  Result<std::string> request(const std::string& action, const std::string& name);
  Result<std::string> step(const std::string& name, bool done);
  void set_planned(std::size_t node, bool planned);
  Result<void> stop_node(std::size_t node, int signal);
  Result<void> start_node(std::size_t node);
  std::string status(std::size_t node) const;
  bool wait_down(std::size_t node, std::int64_t timeout_ns);
  void terminate(std::size_t node) const;
  [[nodiscard]] bool heeds_its_end(std::size_t node) const;
  // If `done` is an error, keeps the lock file for heal().
  void undo(const Result<void>& done);
  void end_nodes();
  void resume_attached();

  const config::Config config_;
  NodeObserver* const observer_;
  const std::filesystem::path run_dir_;
  RunFacts facts_;
  Variables setup_variables_;  // from the observer, for nodes that setup starts
  Identity identity_;
  std::filesystem::path cgroup_;
  std::string client_netns_;
  std::unique_ptr<Network> network_;
  std::unique_ptr<NameServer> name_server_;  // answers queries of containers
  std::set<std::size_t> asking_;             // the nodes that own a network in which the name server answers
  Fd names_;             // the mount namespace with the run's names; none if there are attached nodes
  bool shared_ = false;  // the run's folder is a shared mount
  std::vector<NodeInfo> infos_;
  std::vector<std::unique_ptr<NodeState>> states_;
  std::vector<std::unique_ptr<Volume>> volumes_;
  std::vector<std::unique_ptr<Disk>> disks_;
  std::vector<std::unique_ptr<FaultPlace>> places_;
  std::vector<RunData> data_;         // the run's versions of the user's folders and files
  bool mounts_ = false;               // some volumes, disks or data of the run exist, perhaps only in part
  std::optional<Engine> engine_;      // for containers
  std::vector<std::string> holders_;  // containers that only hold a node's network namespace
  std::string holder_image_;
  std::vector<std::string> run_volumes_;  // the engine's volumes of this run
  std::set<std::string> shared_volumes_;  // volumes among them that several nodes use
  std::set<std::size_t> made_alone_;      // nodes whose containers are created one after the other
  std::mutex making_alone_;
  // A volume that the engine keeps for this run.
  struct HeldVolume {
    std::string name;                 // as in the configuration, for messages
    std::set<std::size_t> nodes;      // the nodes that mount it
    std::vector<FaultPlace*> places;  // the places whose faults concern it; empty: no fault does
    std::filesystem::path folder;     // the engine's folder, once a file system is mounted there
  };
  std::map<std::string, HeldVolume> held_volumes_;
  std::atomic<unsigned> commands_{0};
  std::atomic<bool> stopping_{false};
  bool prepared_ = false;
  bool started_ = false;
  bool stopped_ = false;
  bool undone_ = true;  // false: stop() could not undo something
  std::mutex stop_mutex_;

  mutable std::mutex mutex_;  // protects the states of nodes and the tasks for the monitor
  std::string trouble_;       // guarded by mutex_; see trouble()
  std::condition_variable changed_;
  Fd epoll_;
  Fd wake_;
  std::deque<std::function<void()>> tasks_;
  bool quit_ = false;
  std::thread monitor_;
  std::unique_ptr<ControlServer> control_;
  StepHandler on_step_;
};

}  // namespace rose::deploy
