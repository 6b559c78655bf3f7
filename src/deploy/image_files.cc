#include "deploy/image_files.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <map>

#include "base/log.h"
#include "base/path.h"
#include "base/text.h"
#include "base/units.h"
#include "deploy/engine.h"
#include "deploy/guardian.h"
#include "deploy/identity.h"

namespace rose::deploy {
namespace {

constexpr std::int64_t kTakeOut = 300 * kSecond;

class Taken final : public ImageFiles {
 public:
  Taken(Identity identity, std::filesystem::path folder) : identity_(std::move(identity)), folder_(std::move(folder)) {}
  Taken(const Taken&) = delete;
  Taken& operator=(const Taken&) = delete;
  ~Taken() override {
    std::error_code error;
    std::filesystem::remove_all(folder_, error);
    if (error) log::warning("cannot remove {}: {}", folder_.string(), error.message());
  }
  Identity& identity() { return identity_; }
  const std::filesystem::path& folder() const { return folder_; }

 private:
  Identity identity_;
  std::filesystem::path folder_;
};

Result<std::unique_ptr<Taken>> make_folder() {
  ensure_guardian();
  ROSE_TRY(Identity identity, Identity::create());
  const char* above = std::getenv("TMPDIR");
  const std::filesystem::path folder =
      std::filesystem::path(above != nullptr && *above == '/' ? above : "/tmp") / (identity.id() + "-images");
  ROSE_CHECK(identity.note("images", folder.string()));
  if (::mkdir(folder.c_str(), 0700) != 0)
    return fail_errno(ErrorKind::environment, fmt::format("cannot create {}", folder.string()), errno);
  return std::make_unique<Taken>(std::move(identity), folder);
}

// A container that is never started, from which files are copied.
class Source {
 public:
  static Result<std::unique_ptr<Source>> make(const Engine& engine, const config::Container& container,
                                              Identity& identity, std::size_t number) {
    auto source = std::unique_ptr<Source>(new Source(engine, fmt::format("{}-image{}", identity.id(), number)));
    ROSE_TRY(source->image_, have_image(engine, container, true));
    ROSE_CHECK(identity.note("engine", undo_line(remove_words(engine, {source->name_}))));
    std::vector<std::string> words = engine.command;
    // Engines refuse to create a container without a command, even if it is never executed.
    words.insert(words.end(), {"create", "--name", source->name_, "--label", "rose=" + identity.id(), "--network",
                               "none", "--entrypoint", "/rose", container.image});
    ROSE_TRY([[maybe_unused]] const std::string made,
             ask_engine(words, fmt::format("inspect image '{}'", container.image), kTakeOut));
    return source;
  }
  Source(const Source&) = delete;
  Source& operator=(const Source&) = delete;
  ~Source() {
    if (auto removed = ask_engine(remove_words(engine_, {name_}), "remove a container", kTakeOut); !removed)
      log::warning("{}", removed.error().message);
  }
  const Image& image() const { return image_; }

  // Copies `inside`, following all links. Returns false if there is no such file.
  Result<bool> take(const std::string& inside, const std::filesystem::path& to) {
    std::string path = inside;
    for (int links = 0; links < 16; ++links) {
      std::error_code ignored;
      std::filesystem::remove_all(to, ignored);
      std::vector<std::string> words = engine_.command;
      words.insert(words.end(), {"cp", fmt::format("{}:{}", name_, path), to.string()});
      if (auto copied = ask_engine(words, "copy", kTakeOut); !copied) {
        log::debug("{}: {}", path, copied.error().message);
        return false;
      }
      if (!std::filesystem::is_symlink(to, ignored)) return std::filesystem::is_regular_file(to, ignored);
      path = join_path(std::filesystem::path(path).parent_path().string(),
                       std::filesystem::read_symlink(to, ignored).string());
    }
    return false;
  }

 private:
  Source(const Engine& engine, std::string name) : engine_(engine), name_(std::move(name)) {}
  const Engine& engine_;
  std::string name_;
  Image image_;
};

// The paths at which the command may be. With a slash in its name, there is only one.
std::vector<std::string> places(const std::string& name, const Image& image) {
  if (name.find('/') != std::string::npos) return {join_path(image.working_dir, name)};
  std::vector<std::string> found;
  for (const std::string& folder : split(image.env.at("PATH"), ':'))
    if (folder.starts_with('/')) found.push_back(join_path(folder, name));
  return found;
}

}  // namespace

Result<std::unique_ptr<ImageFiles>> take_programs_out(config::Config& config) {
  const auto wants = [](const config::Node& node) {
    return node.container && (!node.binaries.empty() || !node.functions.empty() || !node.sources.empty());
  };
  if (std::none_of(config.nodes.begin(), config.nodes.end(), wants)) return nullptr;
  ROSE_TRY(const Engine engine, find_engine(config.deployment.engine));
  ROSE_TRY(std::unique_ptr<Taken> taken, make_folder());
  std::map<std::string, std::unique_ptr<Source>> sources;
  std::map<std::pair<std::string, std::string>, std::pair<std::string, std::string>>
      known;  // key: image and name; value: the copy's path, and the path in the image
  for (config::Node& node : config.nodes) {
    if (!wants(node)) continue;
    const std::string& image = node.container->image;
    auto& source = sources[image];
    if (!source) {
      auto made = Source::make(engine, *node.container, taken->identity(), sources.size());
      if (!made) return Unexpected(std::move(made).error().in("node " + node.name));
      source = std::move(*made);
    }
    std::vector<std::string> names = std::move(node.binaries);
    node.binaries.clear();
    if (names.empty()) {
      const std::vector<std::string>& argv = node.container->entrypoint && !node.container->entrypoint->empty()
                                                 ? *node.container->entrypoint
                                             : !source->image().entrypoint.empty() ? source->image().entrypoint
                                             : !node.command.empty()               ? node.command
                                                                                   : source->image().command;
      if (!argv.empty()) names.push_back(argv.front());
    }
    for (const std::string& name : names) {
      auto [at, fresh] = known.try_emplace({image, name});
      if (fresh) {
        const std::filesystem::path folder = taken->folder() / std::to_string(known.size());
        if (::mkdir(folder.c_str(), 0755) != 0)
          return fail_errno(ErrorKind::environment, fmt::format("cannot create {}", folder.string()), errno);
        const std::filesystem::path file = folder / std::filesystem::path(name).filename();
        for (const std::string& place : places(name, source->image())) {
          ROSE_TRY(const bool there, source->take(place, file));
          if (!there) continue;
          at->second = {file.string(), place};
          break;
        }
      }
      if (at->second.first.empty())
        return fail(
            ErrorKind::input,
            fmt::format("node {}: image '{}' has no file '{}' in which to look up functions", node.name, image, name),
            "name the executables and shared libraries with `binary`, by their paths in the image");
      node.binaries.push_back(at->second.first);
      node.container->programs[at->second.second] = at->second.first;
    }
  }
  return taken;
}

}  // namespace rose::deploy
