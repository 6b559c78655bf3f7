// Container engines, by their own command lines: podman and docker. What is asked of them both understand.
//
// A container is made once a run (`create`) and started for each start of its node, so that what it wrote is there
// again after a restart. Its entry point is rose's (deploy/enter), which becomes the image's command once rose has made
// its arrangements.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "config/config.h"

namespace rose::deploy {

inline constexpr const char* kEngineCgroup = "rose.engine";  // below the run's: the engine's own processes

struct Engine {
  std::vector<std::string> command;  // its first words, the program as an absolute path
  bool podman = true;                // else docker
  std::string version;               // as it says: "podman version 4.3.1"
};
// `wanted` empty: podman, then docker, the first that answers. ErrorKind::environment with the remedy when there is
// none, or docker's daemon does not answer; ErrorKind::input when it is no engine.
[[nodiscard]] Result<Engine> find_engine(const config::Command& wanted);

// What an image says of itself.
struct Image {
  std::vector<std::string> entrypoint;
  std::vector<std::string> command;
  std::string user;         // "": root
  std::string stop_signal;  // "": SIGTERM
  std::string working_dir;  // "": "/"
  std::string path;         // where its commands are looked for
};
// Pulls it when it is not here; with `policy` "always" first, once a process, with "never" not at all. ErrorKind::input
// when it cannot be had.
[[nodiscard]] Result<Image> look_at_image(const Engine& engine, const std::string& image, const std::string& policy);
// Builds it first, once a process, where `container` says how. `may_change`: what it was the last time may not be true
// any more, as a `setup` may make it anew.
[[nodiscard]] Result<Image> have_image(const Engine& engine, const config::Container& container, bool may_change);
// Of `image inspect`'s answer. ErrorKind::inconclusive: it is of a form that rose does not know.
[[nodiscard]] Result<Image> parse_image(const std::string& json);

struct ContainerSpec {
  std::string name;  // "rose-1f3a9c-n1"
  std::string run;   // "rose-1f3a9c": its label
  std::string image;
  std::string hostname;
  std::string netns;            // a file; "": the host's
  std::string holder;           // the container whose network it shares, and with it name and hosts; "": none
  std::filesystem::path enter;  // the folder with the entry point and the socket
  std::vector<std::pair<std::string, std::string>> hosts;  // names and addresses
  std::map<std::string, std::string> env;
  std::vector<std::string> volumes;  // SOURCE:TARGET[:OPTIONS]
  std::string user;
  std::vector<std::string> limits;   // "nofile=1024:1024"
  std::vector<std::string> options;  // further words
};
// The whole command that makes the container, or makes and starts it. ErrorKind::input when this engine cannot do it.
[[nodiscard]] Result<std::vector<std::string>> making_words(const Engine& engine, const ContainerSpec& spec,
                                                            bool starts);

// Docker enters no network namespace but a container's: so each node's belongs to one that does nothing else, of an
// empty image. The words that make that image out of `archive`, an empty tar file, and a holder.
[[nodiscard]] std::vector<std::string> holder_image_words(const Engine& engine, const std::string& archive,
                                                          const std::string& image);
[[nodiscard]] std::vector<std::string> holder_words(const Engine& engine, const ContainerSpec& spec,
                                                    const std::string& image);
[[nodiscard]] std::vector<std::string> remove_image_words(const Engine& engine, const std::string& image);
// Process ids of the main processes, in the order of `names`.
[[nodiscard]] Result<std::vector<pid_t>> start_holders(const Engine& engine, const std::vector<std::string>& names);

[[nodiscard]] std::vector<std::string> start_words(const Engine& engine, const std::string& name);
// Ends and removes containers with their anonymous volumes; fine when there are none.
[[nodiscard]] std::vector<std::string> remove_words(const Engine& engine, const std::vector<std::string>& names);
[[nodiscard]] std::vector<std::string> make_volume_words(const Engine& engine, const std::string& name);
[[nodiscard]] std::vector<std::string> remove_volume_words(const Engine& engine, const std::string& name);

// Limits that a container is given because rose may not raise its own (no CAP_SYS_RESOURCE): those of this process, as
// engines' defaults would be refused. Empty where it may.
[[nodiscard]] std::vector<std::string> inherited_limits();

// Runs the words to their end. The error holds the last line of what the engine said, and `what` could not be done.
[[nodiscard]] Result<std::string> ask_engine(const std::vector<std::string>& words, std::string_view what,
                                             std::int64_t timeout_ns);

// A line of the lock file, for heal(): the words that remove something, with the variables that tell the engine where
// it is.
[[nodiscard]] std::string undo_line(const std::vector<std::string>& words);
// The words of such a line; none when it is not one that removes what `id` made.
[[nodiscard]] std::vector<std::string> undo_words(const std::string& line, const std::string& id);

}  // namespace rose::deploy
