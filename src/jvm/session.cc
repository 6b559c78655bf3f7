#include "jvm/session.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>

#include "base/agent_folder.h"
#include "base/file.h"
#include "jvm/agent_file.h"

namespace rose::jvm {
namespace {

Result<void> make_folder(const std::filesystem::path& path, mode_t mode) {
  if (::mkdir(path.c_str(), mode) == 0 || errno == EEXIST) {
    ::chmod(path.c_str(), mode);
    return {};
  }
  return fail_errno(ErrorKind::environment, fmt::format("cannot create {}", path.string()), errno);
}

// The class name as the JVM writes it, with '/'.
std::string internal_name(std::string name) {
  for (char& c : name) c = c == '.' ? '/' : c;
  return name;
}

// Replaces what would end the field: the fields of a line are separated by tabs.
std::string field(std::string text) {
  for (char& c : text) c = c == '\t' || c == '\n' ? ' ' : c;
  return text;
}

std::string_view where_word(At at) { return at == At::entry ? "entry" : at == At::offset ? "offset" : "line"; }

}  // namespace

std::string instructions(const std::filesystem::path& state, const std::vector<PlaceRequest>& places,
                         const std::optional<WatchRequest>& watch, bool stacks, const std::vector<AskRequest>& asks) {
  std::string text = fmt::format("rose-jvm\t3\nstate\t{}\n", state.string());
  for (const PlaceRequest& place : places) {
    text += fmt::format("place\t{}\t{}\t{}\t{}", place.entry, where_word(place.at), place.number, field(place.pattern));
    if (!place.throws.empty())
      text += fmt::format("\t{}\t{}", internal_name(field(place.throws)), field(place.message));
    text += '\n';
  }
  if (stacks) text += "stacks\t1\n";
  for (const PlaceRequest& place : places)
    if (place.noted) text += fmt::format("noted\t{}\n", place.entry);
  for (const AskRequest& ask : asks) {
    using Where = AskRequest::Where;
    const std::string_view where = ask.where == Where::argument   ? "argument"
                                   : ask.where == Where::returned ? "return"
                                   : ask.where == Where::caller   ? "caller"
                                                                  : "line";
    text += fmt::format("ask\t{}\t{}\t{}\t{}\t{}\t{}", ask.fetch, ask.place, where, ask.number, field(ask.what),
                        field(ask.name));
    for (const std::string& member : ask.members) text += "\t" + field(member);
    text += '\n';
  }
  if (!watch) return text;
  text += fmt::format("watch\t{}\t{}\t{}\n", watch->count ? "count" : "tell",
                      std::llround(std::clamp(watch->rate, 0.0, 1e9) * 1000),
                      std::llround(std::clamp(watch->share, 0.001, 1.0) * 1000));
  if (watch->code) text += "code\t1\n";
  if (watch->lasting) text += "lasting\t1\n";
  if (watch->catchers) text += "catchers\t1\n";
  for (const std::string& name : watch->functions) text += fmt::format("function\t{}\n", field(name));
  for (const std::string& name : watch->sources) text += fmt::format("source\t{}\n", field(name));
  for (const std::string& name : watch->throwers) text += fmt::format("thrower\t{}\n", field(name));
  for (const std::string& name : watch->thrower_sources) text += fmt::format("thrower_source\t{}\n", field(name));
  for (const std::string& name : watch->methods) text += fmt::format("method\t{}\n", field(name));
  return text;
}

Result<std::unique_ptr<Session>> Session::open(const std::filesystem::path& run_dir) {
  auto session = std::make_unique<Session>();
  session->run_dir_ = run_dir;
  session->folder_ = run_dir / "rose.jvm";
  session->agent_ = session->folder_ / "rose-jvm.so";
  ROSE_CHECK(check_loadable(run_dir, "JVMs"));
  // A node may run as another user, so all users must be able to read this folder.
  ROSE_CHECK(make_folder(session->folder_, 0755));
  ROSE_CHECK(write_file(session->agent_, agent_bytes(), 0755));
  return session;
}

void Session::add_places(const std::string& node, const std::vector<PlaceRequest>& places) {
  if (places.empty()) return;
  auto& asked = asked_[node].places;
  asked.insert(asked.end(), places.begin(), places.end());
}

Result<void> Session::write() {
  for (const auto& [node, asked] : asked_) {
    const std::filesystem::path state_folder = state(node);
    ROSE_CHECK(make_notes_folder(run_dir_, folder_, node));
    ROSE_CHECK(write_file(folder_ / (node + ".spec"),
                          instructions(state_folder, asked.places, asked.watch, asked.stacks, asked.asks), 0644));
  }
  return {};
}

Session::Variables Session::environment(const std::string& node, const Variables& own) const {
  constexpr const char* kName = "JAVA_TOOL_OPTIONS";
  if (!asked_.contains(node)) return {};
  const auto before = own.find(kName);
  std::string value = before != own.end() ? before->second + " " : std::string();
  // The JVM splits the value of JAVA_TOOL_OPTIONS at spaces and removes quotes.
  value += fmt::format("\"-agentpath:{}={}\"", agent_.string(), (folder_ / (node + ".spec")).string());
  return {{kName, value}};
}

std::filesystem::path Session::state(const std::string& node) const { return folder_ / node; }

}  // namespace rose::jvm
