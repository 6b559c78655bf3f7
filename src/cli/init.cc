// rose init: writes a first, commented rose.toml for a running system.

#include "base/file.h"
#include "base/json.h"
#include "base/log.h"
#include "base/text.h"
#include "cli/command.h"
#include "draft/draft.h"

namespace rose::cli {
namespace {

struct InitOptions {
  draft::Sources sources;
  std::vector<std::string> compose;
  std::vector<std::string> manifests;
  std::string out = "rose.toml";
};

// Reports that a file cannot be used. The report is printed as a result, because scripts read the result, and the
// caller also returns it as an error.
void report_unusable(const Error& error, const Common& common) {
  const std::vector<std::string> reasons = split(error.message, '\n');
  if (common.json)
    print(
        json_line({{"config", nullptr}, {"nodes", Json::array()}, {"questions", Json::array()}, {"doubts", reasons}}));
  else
    print(fmt::format("no configuration was written, because a file cannot be used:\n  {}\n",
                      fmt::join(reasons, "\n  ")));
}

Result<int> run_init(const InitOptions& options, const Common& common) {
  const std::filesystem::path out = options.out;
  std::error_code ignored;
  if (out.empty() || std::filesystem::is_directory(out, ignored))
    return fail(ErrorKind::usage, fmt::format("-o: '{}' is not a file name", options.out));
  // This check saves the time of the inspection if the file exists. The file is checked again when it is written.
  if (std::filesystem::exists(std::filesystem::symlink_status(out, ignored)))
    return fail(ErrorKind::usage, fmt::format("{} exists and is not overwritten", out.string()),
                "choose another name with -o");
  draft::Sources sources = options.sources;
  sources.compose.assign(options.compose.begin(), options.compose.end());
  sources.manifests.assign(options.manifests.begin(), options.manifests.end());
  const std::string files = out.stem().string() + ".files";
  if (!sources.manifests.empty() && std::filesystem::exists(out.parent_path() / files, ignored))
    return fail(ErrorKind::usage, fmt::format("{} exists and is not overwritten", (out.parent_path() / files).string()),
                "remove it, or choose another name with -o");
  const Result<draft::Draft> made = draft::make_draft(sources, out.parent_path(), files);
  if (!made && made.error().kind == ErrorKind::input) report_unusable(made.error(), common);
  if (!made) return Unexpected(made.error());
  const draft::Draft& draft = *made;
  for (const draft::DraftFile& file : draft.files) {
    const std::filesystem::path path = out.parent_path() / file.path;
    std::filesystem::create_directories(path.parent_path(), ignored);
    ROSE_CHECK(write_new_file(path, file.content, static_cast<mode_t>(file.mode)));
  }
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
          "Each process, unit, container, service or pod that is named becomes a node of a test deployment, with its "
          "command, its variables, its user, and the port on which it listens when it is ready. Addresses of the nodes "
          "become placeholders; folders to which they write become empty folders in each run. The running system is "
          "not changed.\n\nThe file contains a QUESTION with an example for everything that rose cannot know: what "
          "clients do, and how the bug is detected. Values that may be wrong are marked LOOK. Secrets are replaced by "
          "generated words. Once you have written the workload, 'rose profile' works.",
      .examples = {"rose init --pid 812 --pid 840",
                   "rose init --unit redis-server --unit redis-server@replica -o kv.toml",
                   "rose init --compose compose.yaml --compose-profile cluster", "rose init --manifest etcd.yaml"},
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
               .help = "A Compose file: its services are the nodes; further files override it",
               .group = "What runs",
               .completes = Completes::file},
              {.names = "--compose-profile",
               .slot = &options->sources.profiles,
               .value = "NAME",
               .help = "Include the services with this profile, too (default COMPOSE_PROFILES)",
               .group = "What runs"},
              {.names = "--manifest",
               .slot = &options->manifests,
               .value = "FILE",
               .help = "Kubernetes manifests, also those that kustomize and 'helm template' print: pods are the nodes",
               .group = "What runs",
               .completes = Completes::file},
              {.names = "-o,--output",
               .slot = &options->out,
               .value = "FILE",
               .help = "Where to write the configuration; an existing file is never overwritten",
               .completes = Completes::file},
          },
      .run = [options](const Common& common) { return run_init(*options, common); },
  };
}

}  // namespace rose::cli
