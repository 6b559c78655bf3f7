// Folders inside a run's folder for rose's agents: processes of nodes load the agents from there, and the agents write
// their reports there.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "base/result.h"

namespace rose {

// Returns ErrorKind::environment if nothing may be executed in `run_dir`. `loader` names what loads the agents ("JVMs")
// in the message.
[[nodiscard]] Result<void> check_loadable(const std::filesystem::path& run_dir, std::string_view loader);
// Makes FOLDER/NODE, which only the owner of the node's folder RUN_DIR/NODE may enter. If the node has no folder yet,
// the new folder belongs to root.
[[nodiscard]] Result<void> make_notes_folder(const std::filesystem::path& run_dir, const std::filesystem::path& folder,
                                             const std::string& node);

}  // namespace rose
