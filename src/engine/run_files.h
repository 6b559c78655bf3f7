// A run as a message: its record, its trace, what methods' code it told of, and the files of its folder.
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

// Of a folder, files up to these travel, logs first; how many stayed is said.
inline constexpr std::size_t kMostOfFile = std::size_t{64} << 20;
inline constexpr std::size_t kMostOfFiles = std::size_t{256} << 20;
inline constexpr std::size_t kMostFilesOfRun = 10'000;

enum class Keep { nothing, logs, all };

// `code`: of this run alone. `growth`: of its logs, with paths as they are here. Error (input): the trace is too large
// for a message.
[[nodiscard]] Result<Message> pack_run(const replay::Run& run, const schedule::Schedule& schedule,
                                       const config::Config& config, const std::filesystem::path& run_dir, Keep keep,
                                       const jvm::CodeBook& code, const logs::Watch::Growth& growth);

struct Unpacked {
  replay::Run run;
  logs::Watch::Growth growth;  // with paths in `run_dir`
  int stayed = 0;              // files that did not travel
};
// Writes the files into `run_dir`, which is empty and nobody else's. Nothing in the message is trusted. Error (input):
// it is no such run, or of another schedule than `fingerprint`.
[[nodiscard]] Result<Unpacked> unpack_run(const Message& message, const std::string& fingerprint,
                                          const std::filesystem::path& run_dir, jvm::CodeBook* code);

}  // namespace rose::engine
