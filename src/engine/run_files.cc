#include "engine/run_files.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstring>
#include <set>
#include <span>

#include "base/file.h"
#include "base/folder.h"
#include "base/log.h"
#include "base/text.h"
#include "engine/wire/tree.h"
#include "replay/run_logs.h"
#include "replay/run_record.h"
#include "trace/dump.h"

namespace rose::engine {
namespace {

namespace fs = std::filesystem;

// The files that are sent: logs first, then the others by name.
std::vector<std::string> files_of(const config::Config& config, const fs::path& run_dir, Keep keep) {
  std::vector<std::string> files;
  if (keep == Keep::nothing) return files;
  std::set<std::string> known;
  for (const replay::NodeLogFile& log : replay::run_logs(config, run_dir)) {
    std::string name = log.path.lexically_relative(run_dir).string();
    if (stays_inside(name) && known.insert(name).second) files.push_back(std::move(name));
  }
  if (keep == Keep::logs) return files;
  std::vector<std::string> others;
  if (const Result<OpenFolder> run = OpenFolder::open(run_dir))
    run->each([&](const OpenFolder::Entry& entry) {
      std::string name = entry.inside.string();
      if (S_ISREG(entry.status.st_mode) && stays_inside(name) && known.insert(name).second)
        others.push_back(std::move(name));
      return true;
    });
  std::sort(others.begin(), others.end());
  files.insert(files.end(), others.begin(), others.end());
  return files;
}

Result<void> write_inside(const fs::path& folder, const std::string& name, std::string_view bytes) {
  const fs::path inside(name);
  const auto in = [&](Error error) { return Error{ErrorKind::input, std::move(error.message), {}}; };
  if (!OpenFolder::open(folder)) ROSE_CHECK(make_own_folder(folder, 0711));
  ROSE_TRY(const OpenFolder top, OpenFolder::open(folder).map_error(in));
  ROSE_TRY(const OpenFolder into, top.make(inside.parent_path(), std::nullopt).map_error(in));
  ROSE_TRY(const Fd fd, into.create(inside.filename(), std::nullopt, 0600).map_error(in));
  if (const int failed = write_bytes(fd.get(), bytes); failed != 0)
    return fail_errno(ErrorKind::input, fmt::format("cannot write {}", (folder / name).string()), failed);
  return {};
}

}  // namespace

Result<Message> pack_run(const replay::Run& run, const schedule::Schedule& schedule, const config::Config& config,
                         const fs::path& run_dir, Keep keep, const jvm::CodeBook& code,
                         const logs::Watch::Growth& growth) {
  Message message;
  message.header = {{"type", "made"}, {"run", replay::run_json(run, schedule)}, {"completed", run.completed}};
  ROSE_TRY(message.payload, trace::dump_to_bytes(run.result.trace));
  if (message.payload.size() > kMostPayload - kMostOfFiles)
    return fail(ErrorKind::input,
                fmt::format("a run's trace has {} MiB, more than a worker can send", message.payload.size() >> 20),
                "reduce [trace] window or memory");
  message.header["trace"] = message.payload.size();
  if (const auto texts = code.texts(); !texts.empty()) message.header["code"] = texts;
  Json files = Json::array();
  std::size_t all = 0;
  int stayed = 0;
  for (const std::string& name : files_of(config, run_dir, keep)) {
    const Result<std::string> bytes = read_inside(run_dir, name, kMostOfFile);
    if (!bytes || all + bytes->size() > kMostOfFiles || files.size() >= kMostFilesOfRun) {
      ++stayed;
      continue;
    }
    all += bytes->size();
    Json file = {{"path", name}, {"size", bytes->size()}};
    if (const auto marks = growth.find(run_dir / name); marks != growth.end()) {
      Json list = Json::array();
      for (const logs::Watch::Mark& mark : marks->second) list.push_back({mark.size, mark.ts_ns});
      file["growth"] = std::move(list);
    }
    files.push_back(std::move(file));
    message.payload += *bytes;
  }
  message.header["files"] = std::move(files);
  message.header["stayed"] = stayed;
  return message;
}

namespace {

constexpr std::size_t kMostOfName = 200;  // at most this many bytes of a name are printed

// False if the file `name` cannot exist in one folder with the files `others`: the name is taken, one name would have
// to be both a file and a folder, or a component of the name is too long.
bool can_be_beside(const std::set<std::string>& others, const std::string& name) {
  const auto inside = others.lower_bound(name + "/");
  if (others.contains(name) || (inside != others.end() && inside->starts_with(name + "/"))) return false;
  std::size_t from = 0;
  for (std::size_t slash = name.find('/'); slash != std::string::npos; slash = name.find('/', from)) {
    if (slash - from > NAME_MAX || others.contains(name.substr(0, slash))) return false;
    from = slash + 1;
  }
  return name.size() - from <= NAME_MAX;
}

// If `run_dir` is null, everything is checked, but nothing is written.
Result<Unpacked> read_run(const Message& message, const std::string& fingerprint, const fs::path* run_dir,
                          jvm::CodeBook* code) {
  const auto refused = [](std::string_view why) {
    return fail(ErrorKind::input, fmt::format("the worker did not send a run: {}", why));
  };
  const Json& header = message.header;
  if (!header.contains("run")) return refused("it has no record");
  Result<replay::RecordedRun> record = replay::run_from(header["run"]);
  if (!record) return refused(printable(record.error().message));
  if (record->fingerprint != fingerprint) return refused("it belongs to another schedule");
  Unpacked unpacked;
  unpacked.run = std::move(record->run);
  if (const auto completed = header.find("completed"); completed != header.end() && completed->is_boolean())
    unpacked.run.completed = completed->get<bool>();
  ROSE_TRY(const std::int64_t trace, message.number("trace"));
  if (trace < 0 || static_cast<std::uint64_t>(trace) > message.payload.size())
    return refused("its trace is longer than the message");
  const std::string_view payload = message.payload;
  const std::string_view dump = payload.substr(0, static_cast<std::size_t>(trace));
  Result<trace::ReadDump> read =
      trace::parse_dump(std::as_bytes(std::span(dump.data(), dump.size())), "the trace of a worker's run");
  if (!read) return refused(read.error().message);
  if (read->damage) return refused(read->damage->message);
  unpacked.run.result.trace = std::move(read->trace);
  if (const auto texts = header.find("code"); code != nullptr && texts != header.end() && texts->is_object())
    for (const auto& [node, text] : texts->items())
      if (text.is_string()) code->learn_text(node, text.get_ref<const std::string&>());
  const auto files = header.find("files");
  if (files == header.end() || !files->is_array() || files->size() > kMostFilesOfRun)
    return refused("it has no list of files");
  std::size_t at = dump.size();
  std::set<std::string> names;
  for (const Json& file : *files) {
    if (!file.is_object() || !file.contains("path") || !file["path"].is_string() || !file.contains("size") ||
        !file["size"].is_number_unsigned())
      return refused("a file has no name or size");
    const std::string name = file["path"].get<std::string>();
    const auto size = file["size"].get<std::uint64_t>();
    if (!stays_inside(name))
      return refused(fmt::format("'{}' may lead out of its folder", printable(name.substr(0, kMostOfName))));
    if (!can_be_beside(names, name))
      return refused(
          fmt::format("'{}' cannot be written beside its other files", printable(name.substr(0, kMostOfName))));
    names.insert(name);
    if (size > payload.size() - at) return refused("a file is longer than the message");
    if (run_dir != nullptr)
      ROSE_CHECK(write_inside(*run_dir, name, payload.substr(at, static_cast<std::size_t>(size))));
    at += static_cast<std::size_t>(size);
    const auto growth = file.find("growth");
    if (growth == file.end() || !growth->is_array()) continue;
    std::vector<logs::Watch::Mark>& marks = unpacked.growth[(run_dir != nullptr ? *run_dir : fs::path()) / name];
    for (const Json& mark : *growth) {
      if (!mark.is_array() || mark.size() != 2 || !mark[0].is_number_unsigned() || !mark[1].is_number_integer())
        return refused("how a log grew can't be read");
      if (!marks.empty() && mark[0].get<std::uint64_t>() <= marks.back().size) return refused("a log shrank");
      marks.push_back({mark[0].get<std::uint64_t>(), mark[1].get<std::int64_t>()});
    }
  }
  if (const auto stayed = header.find("stayed"); stayed != header.end() && stayed->is_number_integer())
    unpacked.stayed = static_cast<int>(std::clamp<std::int64_t>(stayed->get<std::int64_t>(), 0, 1'000'000));
  return unpacked;
}

}  // namespace

Result<void> check_run(const Message& message, const std::string& fingerprint) {
  ROSE_TRY([[maybe_unused]] const Unpacked read, read_run(message, fingerprint, nullptr, nullptr));
  return {};
}

Result<Unpacked> unpack_run(const Message& message, const std::string& fingerprint, const fs::path& run_dir,
                            jvm::CodeBook* code) {
  return read_run(message, fingerprint, &run_dir, code);
}

}  // namespace rose::engine
