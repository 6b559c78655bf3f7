// Container engines (podman, docker) through their command lines. Uses only features that both have.
//
// A container is created once per run (`create`) and started for each start of its node, so that its files survive a
// restart. Its entry point is rose's (deploy/enter), which executes the image's command once rose is ready.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "config/config.h"

namespace rose::deploy {

inline constexpr const char* kEngineCgroup = "rose.engine";  // below the run's cgroup: the engine's own processes

struct Engine {
  std::vector<std::string> command;  // first words of its command line, with the program as an absolute path
  bool podman = true;                // false: docker
  std::string version;               // as reported: "podman version 4.3.1"
};
// If `wanted` is empty, finds the first of podman and docker that works. Returns ErrorKind::environment with a remedy
// if there is none or docker's daemon does not answer, ErrorKind::input if the program is not an engine.
[[nodiscard]] Result<Engine> find_engine(const config::Command& wanted);

// The settings of an image for its containers.
struct Image {
  std::vector<std::string> entrypoint;
  std::vector<std::string> command;
  std::string user;                        // "" means root
  std::string stop_signal;                 // "" means SIGTERM
  std::string working_dir;                 // "" means "/"
  std::map<std::string, std::string> env;  // with PATH
  std::optional<config::Health> health;
  bool name_server = false;          // it exposes port 53
  std::vector<std::string> volumes;  // the folders that are volumes in each of its containers
};
// Returns the image's configuration. `policy`: "" pulls the image if it is missing, "always" pulls it once per process,
// "never" does not pull. Returns ErrorKind::input if the image is not available.
[[nodiscard]] Result<Image> look_at_image(const Engine& engine, const std::string& image, const std::string& policy);
// Like look_at_image, but if `container` defines a build, first builds the image, once per process. `may_change`: does
// not use cached results, because a `setup` command may change the image.
[[nodiscard]] Result<Image> have_image(const Engine& engine, const config::Container& container, bool may_change);
// Parses the output of `image inspect`. Returns ErrorKind::inconclusive if its form is unknown.
[[nodiscard]] Result<Image> parse_image(const std::string& json);

struct ContainerSpec {
  std::string name;  // "rose-1f3a9c-n1"
  std::string run;   // "rose-1f3a9c": the value of its label
  std::string image;
  std::string hostname;
  std::string netns;               // the file of a network namespace; "": the host's namespace
  std::string pid_of, ipc_of;      // the containers whose namespaces it joins; "": none
  bool joined = false;             // other containers join its namespaces
  std::string holder;              // the container whose network and host name it shares; "": none
  std::filesystem::path enter;     // the folder with the entry point and the socket
  std::filesystem::path hosts;     // the file that becomes its /etc/hosts
  std::filesystem::path resolver;  // the file that becomes its /etc/resolv.conf; "": the engine's
  std::map<std::string, std::string> env;
  std::vector<std::string> volumes;  // SOURCE:TARGET[:OPTIONS]
  std::string user;
  std::vector<std::string> limits;   // "nofile=1024:1024"
  std::vector<std::string> options;  // further options for the command that creates it
};
// The engine's command that creates the container, and also starts it if `starts`. Returns ErrorKind::input if this
// engine cannot do it.
[[nodiscard]] Result<std::vector<std::string>> making_words(const Engine& engine, const ContainerSpec& spec,
                                                            bool starts);

// Docker containers can only join the network namespace of another container. Therefore each node's namespace belongs
// to a container that does nothing else (its holder). These are the commands that create the holders' image from
// `archive`, an empty tar file, and that create a holder.
[[nodiscard]] std::vector<std::string> holder_image_words(const Engine& engine, const std::string& archive,
                                                          const std::string& image);
[[nodiscard]] std::vector<std::string> holder_words(const Engine& engine, const ContainerSpec& spec,
                                                    const std::string& image);
[[nodiscard]] std::vector<std::string> remove_image_words(const Engine& engine, const std::string& image);
// Starts the holders. Returns the process ids of their main processes, in the order of `names`.
[[nodiscard]] Result<std::vector<pid_t>> start_holders(const Engine& engine, const std::vector<std::string>& names);

[[nodiscard]] std::vector<std::string> start_words(const Engine& engine, const std::string& name);
// The command that removes containers with their anonymous volumes, and succeeds if there are none. `joined`: other
// containers have joined namespaces of these. They are removed as well, because podman would otherwise refuse to remove
// the owners of the namespaces.
[[nodiscard]] std::vector<std::string> remove_words(const Engine& engine, const std::vector<std::string>& names,
                                                    bool joined = false);
[[nodiscard]] std::vector<std::string> make_volume_words(const Engine& engine, const std::string& name);
// The engine's command that prints the folder of this machine in which the volume's files are.
[[nodiscard]] std::vector<std::string> find_volume_words(const Engine& engine, const std::string& name);
[[nodiscard]] std::vector<std::string> remove_volume_words(const Engine& engine, const std::string& name);

// Limits for a container if rose may not raise its own limits (no CAP_SYS_RESOURCE): the limits of this process,
// because the engine's defaults would be refused. Otherwise empty.
[[nodiscard]] std::vector<std::string> inherited_limits();
// Lowers the limits that a container asks for ("nofile=65535", "memlock=-1:-1") if the engine is podman and rose may
// not raise its own limits. Podman has rose's rights, so it would refuse higher limits, and the container would not
// start. Docker's daemon has more rights, so its limits stay as they are. `lowered` says what was changed.
[[nodiscard]] std::vector<std::string> permitted_limits(const Engine& engine, const std::vector<std::string>& asked,
                                                        std::vector<std::string>& lowered);
// Like the function above, but the highest permitted values are given, by the name of the limit. Pure.
[[nodiscard]] std::vector<std::string> permitted_limits(const std::vector<std::string>& asked,
                                                        const std::map<std::string, std::uint64_t>& highest,
                                                        std::vector<std::string>& lowered);

// Runs a command to its end. The error contains `what` and the last line of the engine's output.
[[nodiscard]] Result<std::string> ask_engine(const std::vector<std::string>& words, std::string_view what,
                                             std::int64_t timeout_ns);

// A line for heal() in the lock file: a command that removes something, and the environment variables by which the
// engine finds its storage.
[[nodiscard]] std::string undo_line(const std::vector<std::string>& words);
// Returns the command in a line that undo_line() made. Empty if the command does not remove something that the
// deployment `id` created.
[[nodiscard]] std::vector<std::string> undo_words(const std::string& line, const std::string& id);

}  // namespace rose::deploy
