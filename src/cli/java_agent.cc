#include "cli/java_agent.h"

#include <set>

#include "base/file.h"
#include "base/json.h"
#include "base/leaving.h"
#include "base/log.h"
#include "jvm/agent_file.h"
#include "jvm/names.h"
#include "jvm/session.h"
#include "jvm/state_layout.h"

namespace rose::cli {
namespace {

constexpr const char* kAgent = "rose-jvm.so";
constexpr const char* kInstructions = "rose-jvm.spec";

// Writes a file that the JVMs of all users can read. A file with the same content is not written again, because running
// JVMs map the existing file and are recognised by it.
Result<void> put(const std::filesystem::path& path, std::string_view bytes, mode_t mode) {
  if (const auto there = read_file(path, std::size_t{64} << 20); there && *there == bytes) return {};
  ROSE_TRY(AtomicFile file, AtomicFile::create(path, mode));
  ROSE_CHECK(file.write(bytes));
  return file.commit();
}

}  // namespace

Result<int> write_java_agent(const std::filesystem::path& folder, const profile::Profile& profile, double hot_rate,
                             const std::vector<std::string>& exceptions, const Common& common) {
  for (const std::string& name : exceptions)
    if (!jvm::looks_like_java(name) || !leaving_of(name).exception.empty())
      return fail(ErrorKind::usage, fmt::format("--java-exceptions: '{}' names no Java methods", name),
                  "names are like org.x.Store.append, org.x.*");
  std::set<std::string> rare = profile::rare_methods(profile, "");
  std::erase_if(rare, [](const std::string& name) { return !leaving_of(name).exception.empty(); });
  if (rare.empty())
    return fail(ErrorKind::input,
                "the profile calls no method of a JVM infrequent: there is nothing for the agent to watch",
                "name methods by `functions` or `sources` in rose.toml, and profile anew");
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  const std::filesystem::path whole = std::filesystem::absolute(folder, error).lexically_normal();
  if (error || !std::filesystem::is_directory(whole, error))
    return fail(ErrorKind::input,
                fmt::format("--java-agent: '{}' cannot be created: {}", folder.string(), error.message()));
  if (rare.size() > jvm::kStateMethods)
    log::warning("{} methods are more than the {} that one JVM watches", rare.size(), int{jvm::kStateMethods});
  ROSE_CHECK(put(whole / kAgent, jvm::agent_bytes(), 0755));
  const jvm::WatchRequest watch{.count = false,
                                .code = false,
                                .lasting = true,
                                .rate = hot_rate,
                                .functions = {},
                                .sources = {},
                                .methods = {rare.begin(), rare.end()},
                                .throwers = exceptions};
  ROSE_CHECK(put(whole / kInstructions, jvm::instructions({}, {}, watch), 0644));
  const std::string options =
      fmt::format("-agentpath:{}={}", (whole / kAgent).string(), (whole / kInstructions).string());
  if (common.json)
    print(json_line({{"agent", (whole / kAgent).string()}, {"options", options}, {"methods", rare.size()}}));
  else
    print(
        fmt::format("{}: the agent, and instructions to watch {} methods, except those that return an "
                    "object\n\nstart the JVMs with\n  JAVA_TOOL_OPTIONS='\"{}\"'\nthen trace them with\n"
                    "  rose trace --pid PID --java-agent {}\n",
                    whole.string(), rare.size(), options, whole.string()));
  return 0;
}

Result<std::filesystem::path> java_agent_in(const std::filesystem::path& folder) {
  std::filesystem::path agent = folder / kAgent;
  if (std::error_code error; !std::filesystem::is_regular_file(agent, error))
    return fail(
        ErrorKind::input, fmt::format("--java-agent: '{}' does not exist", agent.string()),
        fmt::format("write it with 'rose trace --java-agent {} --profile profile.json', and start the JVMs with it",
                    folder.string()));
  return agent;
}

}  // namespace rose::cli
