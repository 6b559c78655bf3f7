#include "python/session.h"

#include <algorithm>
#include <cstring>

#include "base/agent_folder.h"
#include "base/file.h"
#include "base/folder.h"
#include "base/text.h"
#include "python/agent_file.h"
#include "python/stacks_layout.h"

namespace rose::python {
namespace {

// at most this many files of a node are read, for the stack of a thread and for the list of functions
constexpr std::size_t kMostFiles = 1000, kMostFunctionFiles = 16;

// A text that may lack the terminating zero.
std::string text_in(const char* text, std::size_t room) { return printable(std::string(text, ::strnlen(text, room))); }

bool is_stacks_file(std::string_view bytes) {
  return bytes.size() >= sizeof(StacksFile) && std::memcmp(bytes.data(), kStacksMagic, sizeof kStacksMagic) == 0;
}

// `number` is below kMostFunctions.
Frame function_at(std::string_view bytes, std::uint32_t number) {
  StackFunction function;
  std::memcpy(&function, bytes.data() + offsetof(StacksFile, function) + number * sizeof function, sizeof function);
  return {text_in(function.name, sizeof function.name), text_in(function.file, sizeof function.file),
          static_cast<int>(std::min(function.line, 0x7fffffffu))};
}

}  // namespace

bool is_python(std::string_view program) {
  std::string_view name = program.substr(program.rfind('/') + 1);
  if (!name.starts_with("python")) return false;
  name.remove_prefix(std::strlen("python"));
  return name.find_first_not_of("0123456789.") == std::string_view::npos;
}

Result<std::unique_ptr<Session>> Session::open(const std::filesystem::path& run_dir) {
  auto session = std::unique_ptr<Session>(new Session);
  session->run_dir_ = run_dir;
  session->folder_ = run_dir / "rose.python";
  session->agent_ = session->folder_ / "rose-python.so";
  ROSE_CHECK(check_loadable(run_dir, "Python"));
  // A node may run as another user, so all users must be able to read these files.
  ROSE_CHECK(make_own_folder(session->folder_, 0755));
  ROSE_CHECK(make_own_folder(session->folder_ / "site", 0755));
  ROSE_CHECK(write_file(session->agent_, agent_bytes(), 0755));
  ROSE_CHECK(write_file(session->folder_ / "site" / "sitecustomize.py", site_bytes(), 0644));
  return session;
}

Result<void> Session::watch(const std::string& node) {
  ROSE_CHECK(make_notes_folder(run_dir_, folder_, node));
  watched_.insert(node);
  return {};
}

Session::Variables Session::environment(const std::string& node, const Variables& own) const {
  if (!watched_.contains(node)) return {};
  std::string path = (folder_ / "site").string();
  if (const auto before = own.find("PYTHONPATH"); before != own.end() && !before->second.empty())
    path += ":" + before->second;
  return {
      {"PYTHONPATH", path}, {"ROSE_PYTHON_AGENT", agent_.string()}, {"ROSE_PYTHON_STATE", (folder_ / node).string()}};
}

std::vector<Frame> parse_stack(std::string_view bytes, std::uint32_t tid) {
  std::vector<Frame> frames;
  if (!is_stacks_file(bytes)) return frames;
  const auto read = [&](auto& to, std::size_t at) { std::memcpy(&to, bytes.data() + at, sizeof to); };
  StackThread thread;
  read(thread, offsetof(StacksFile, thread) + tid % kThreads * sizeof thread);
  if (thread.tid != tid) return frames;
  for (std::uint32_t i = std::min(thread.depth, kFrames); i-- > 0;) {
    if (thread.functions[i] == 0 || thread.functions[i] >= kMostFunctions) continue;
    frames.push_back(function_at(bytes, thread.functions[i]));
  }
  return frames;
}

std::vector<Frame> parse_functions(std::string_view bytes) {
  std::vector<Frame> functions;
  if (!is_stacks_file(bytes)) return functions;
  std::uint32_t end = 0;
  std::memcpy(&end, bytes.data() + offsetof(StacksFile, functions), sizeof end);
  for (std::uint32_t number = 1; number < std::min(end, kMostFunctions); ++number)
    functions.push_back(function_at(bytes, number));
  return functions;
}

bool Session::loaded(const std::string& node) const {
  const Result<OpenFolder> folder = OpenFolder::open(folder_ / node);
  if (!folder) return false;
  const std::vector<std::string> names = folder->names();
  return std::any_of(names.begin(), names.end(), [](const std::string& name) { return name.ends_with(".stacks"); });
}

std::vector<Frame> Session::functions_of(const std::string& node) const {
  std::vector<Frame> functions;
  const Result<OpenFolder> folder = OpenFolder::open(folder_ / node);
  if (!watched_.contains(node) || !folder) return functions;
  std::vector<std::string> names = folder->names();
  names.resize(std::min(names.size(), kMostFunctionFiles));
  for (const std::string& name : names)
    if (const Result<std::string> bytes = folder->read(name, sizeof(StacksFile)))
      for (Frame& one : parse_functions(*bytes)) functions.push_back(std::move(one));
  return functions;
}

std::vector<Frame> Session::stack_of(const std::string& node, pid_t tid) const {
  if (!watched_.contains(node)) return {};
  const Result<OpenFolder> folder = OpenFolder::open(folder_ / node);
  if (!folder) return {};
  std::vector<std::string> names = folder->names();
  names.resize(std::min(names.size(), kMostFiles));
  // The id of a main thread is the id of its process, so look first in the file of the process with this id.
  std::stable_partition(names.begin(), names.end(),
                        [&](const std::string& name) { return name == fmt::format("{}.stacks", tid); });
  for (const std::string& name : names) {
    const Result<std::string> bytes = folder->read(name, sizeof(StacksFile));
    if (!bytes) continue;
    if (std::vector<Frame> frames = parse_stack(*bytes, static_cast<std::uint32_t>(tid)); !frames.empty())
      return frames;
  }
  return {};
}

}  // namespace rose::python
