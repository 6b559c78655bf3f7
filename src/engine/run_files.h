// Packs a run into a message: its record, its trace, the code of methods that it reported, and the files of its folder.
#pragma once

#include <filesystem>
#include <string>

#include "config/config.h"
#include "engine/wire/message.h"
#include "jvm/code_book.h"
#include "logs/untimed.h"
#include "replay/run.h"
#include "schedule/schedule.h"

namespace rose::engine {

// Size limits for the files of a folder. Logs are sent first; the number of files that do not fit is reported.
inline constexpr std::size_t kMostOfFile = std::size_t{64} << 20;
inline constexpr std::size_t kMostOfFiles = std::size_t{256} << 20;
inline constexpr std::size_t kMostFilesOfRun = 10'000;

enum class Keep { nothing, logs, all };

// `code`: the code of methods that this run reported. `growth`: the growth of its logs, with the paths on this machine.
// Returns ErrorKind::input if the trace is too large for a message.
[[nodiscard]] Result<Message> pack_run(const replay::Run& run, const schedule::Schedule& schedule,
                                       const config::Config& config, const std::filesystem::path& run_dir, Keep keep,
                                       const jvm::CodeBook& code, const logs::Watch::Growth& growth);

// Checks that this message can be unpacked, without writing anything. Returns the same errors as unpack_run().
[[nodiscard]] Result<void> check_run(const Message& message, const std::string& fingerprint);

struct Unpacked {
  replay::Run run;
  logs::Watch::Growth growth;  // with paths in `run_dir`
  int stayed = 0;              // number of files that were not sent
};
// Writes the files to `run_dir`, which must be empty and private. The message is not trusted. Returns ErrorKind::input
// if it is not a run, or belongs to another schedule than `fingerprint`.
[[nodiscard]] Result<Unpacked> unpack_run(const Message& message, const std::string& fingerprint,
                                          const std::filesystem::path& run_dir, jvm::CodeBook* code);

}  // namespace rose::engine
