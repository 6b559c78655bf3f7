// rose init: writes a first, commented rose.toml for a running system.

#include "base/file.h"
#include "base/json.h"
#include "base/log.h"
#include "cli/command.h"
#include "draft/draft.h"

namespace rose::cli {
namespace {

struct InitOptions {
  draft::Sources sources;
  std::string compose;
  std::string out = "rose.toml";
};

Result<int> run_init(const InitOptions& options, const Common& common) {
  const std::filesystem::path out = options.out;
  std::error_code ignored;
  if (out.empty() || std::filesystem::is_directory(out, ignored))
    return fail(ErrorKind::usage, fmt::format("-o: '{}' is not a file name", options.out));
  // Checked again when the file is written, but before the inspection it costs no time.
  if (std::filesystem::exists(std::filesystem::symlink_status(out, ignored)))
    return fail(ErrorKind::usage, fmt::format("{} exists and is not overwritten", out.string()),
                "choose another name with -o");
  draft::Sources sources = options.sources;
  sources.compose = options.compose;
  ROSE_TRY(const draft::Draft draft, draft::make_draft(sources, out.parent_path()));
  ROSE_CHECK(write_new_file(out, draft.text));

  if (common.json) {
    Json questions = Json::array();
    for (const draft::Question& question : draft.questions)
      questions.push_back({{"line", question.line},
                           {"key", question.key},
                           {"question", question.text},
                           {"blocking", question.blocking}});
    print(json_line(
        {{"config", out.string()}, {"nodes", draft.nodes}, {"questions", questions}, {"doubts", draft.doubts}}));
    return 0;
  }
  std::string text = fmt::format("{}: {} node{} ({})\n", out.string(), draft.nodes.size(),
                                 draft.nodes.size() == 1 ? "" : "s", fmt::join(draft.nodes, ", "));
  for (const std::string& doubt : draft.doubts) text += fmt::format("  look      {}\n", doubt);
  for (const draft::Question& question : draft.questions)
    text += fmt::format("  question  {}:{} {}: {}\n", out.string(), question.line, question.key, question.text);
  text += fmt::format("answer the question{} in {}, then: rose profile -c {}\n", draft.questions.size() == 1 ? "" : "s",
                      out.string(), out.string());
  print(text);
  return 0;
}

}  // namespace

Command init_command() {
  auto options = std::make_shared<InitOptions>();
  return {
      .name = "init",
      .summary = "Write a first configuration for a running system",
      .description =
          "Each process, unit or container that is named becomes a node of a test deployment, with its command, its "
          "variables, its user, and the port that shows that it is ready. Addresses of the nodes become placeholders; "
          "folders that they write to become empty ones in each run. The running system is not touched.\n\nWhat cannot "
          "be known (what clients do, how the bug is detected) is written as a QUESTION with an example; what may be "
          "wrong is marked LOOK. Secrets are not copied but replaced by generated words. When the workload is filled "
          "in, 'rose profile' works.",
      .examples = {"rose init --pid 812 --pid 840",
                   "rose init --unit redis-server --unit redis-server@replica -o kv.toml",
                   "rose init --compose compose.yaml"},
      .options =
          {
              {.names = "--pid",
               .slot = &options->sources.pids,
               .value = "PID",
               .help = "A process and its children",
               .group = "What runs",
               .completes = Completes::pid},
              {.names = "--unit",
               .slot = &options->sources.units,
               .value = "UNIT",
               .help = "A systemd unit",
               .group = "What runs",
               .completes = Completes::unit},
              {.names = "--container",
               .slot = &options->sources.containers,
               .value = "ID",
               .help = "A container, by id or name",
               .group = "What runs",
               .completes = Completes::container},
              {.names = "--compose",
               .slot = &options->compose,
               .value = "FILE",
               .help = "A Compose file: its services are the nodes",
               .group = "What runs",
               .completes = Completes::file},
              {.names = "-o,--output",
               .slot = &options->out,
               .value = "FILE",
               .help = "Where to write it; never overwritten",
               .completes = Completes::file},
          },
      .run = [options](const Common& common) { return run_init(*options, common); },
  };
}

}  // namespace rose::cli
