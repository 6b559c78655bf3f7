// The sources of drafts: Compose files, units, descriptions of containers, command lines, configuration files and the
// kernel's tables. No input may crash a reader, and every draft must be a rose.toml that its reader accepts.
//
// The first byte of the input selects the reader.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "config/compose.h"
#include "draft/container.h"
#include "draft/draft.h"
#include "draft/manifest.h"
#include "draft/net_tables.h"
#include "draft/node.h"
#include "draft/services.h"
#include "draft/settings.h"
#include "draft/text.h"
#include "draft/unit.h"

using namespace rose;
using namespace rose::draft;

namespace {

constexpr std::string_view kSecret = "hunter2-hunter2";

void check(const Draft& draft) {
  const auto checked = check_draft(draft);
  if (!checked) {
    std::fprintf(stderr, "%s\n%s\n", checked.error().message.c_str(), draft.text.c_str());
    std::abort();
  }
}

void compose_file(std::string_view text) {
  (void)config::read_compose(text, "/nowhere/compose.yaml", [](const std::string&) { return std::nullopt; });
  const auto taken = config::read_compose(text, "/nowhere/compose.yaml", [](const std::string& name) {
    return name.size() > 3 ? std::nullopt : std::optional<std::string>("value");
  });
  if (!taken) return;
  const Drafted drafted = draft_services(*taken, {"compose.yaml"});
  (void)write_draft({"compose.yaml"}, drafted.nodes, drafted.around, example_for(drafted.nodes), Host());
}

void manifest(std::string_view text) {
  const auto made = draft_manifests({{"manifest.yaml", std::string(text)}}, "rose.files", Host());
  if (!made) return;
  check(write_draft({"manifest.yaml"}, made->drafted.nodes, made->drafted.around, example_for(made->drafted.nodes),
                    Host()));
}

// Drafts a process from a command line, with one word on each line, and from settings after the first empty line.
void command(std::string_view text) {
  const std::size_t gap = text.find("\n\n");
  std::string line(text.substr(0, gap));
  for (char& c : line)
    if (c == '\n') c = '\0';
  CommandLine words = read_command_line(line);
  if (words.words.empty()) return;
  std::vector<Seen> seen(2);
  for (Seen& one : seen) {
    one.origin = "a fuzzer";
    one.main.argv = words.words;
    one.title = words.title;
    one.main.exe = "/opt/kv";
    one.main.cwd = "/srv";
    one.network = "net";
    one.addresses = {"127.0.0.1", "10.0.0.5"};
    one.written = {"/var/lib/kv/x"};
  }
  seen[0].tcp = {{"127.0.0.1", 7001}};
  seen[1].tcp = {{"0.0.0.0", 7002}};
  if (gap != std::string_view::npos && is_settings("/etc/kv.conf", text.substr(gap + 2)))
    seen[0].settings.push_back(read_settings("/etc/kv.conf", text.substr(gap + 2), {"localhost"}));
  for (std::size_t i = 1; i < words.words.size() && i < 50; ++i)
    seen[1].main.env.emplace_back(words.words[i], words.words[i - 1]);
  // The draft must not contain a password, whatever surrounds the password in the input.
  const bool odd = std::string_view(text).find(kSecret.substr(0, 7)) != std::string_view::npos;
  if (!odd) seen[1].main.env.emplace_back("KV_PASSWORD", kSecret);
  Host host;
  host.names = {"localhost"};
  Secrets secrets;
  const auto nodes = draft_nodes(seen, host, secrets);
  Surroundings around;
  around.setup = folder_setup(nodes);
  const Draft draft = write_draft({"a fuzzer"}, nodes, around, example_for(nodes), host);
  check(draft);
  if (!odd && draft.text.find(kSecret) != std::string::npos) std::abort();
}

void container(std::string_view text) {
  const auto read = read_container(text, "", "docker");
  if (!read) return;
  std::vector<Seen> seen(1);
  seen[0].tcp = {{"0.0.0.0", 80}};
  Secrets secrets;
  const Drafted drafted = draft_containers({*read}, seen, Host(), secrets);
  check(write_draft({"a fuzzer"}, drafted.nodes, drafted.around, example_for(drafted.nodes), Host()));
}

void unit(std::string_view text) {
  Seen seen;
  seen.unit = read_unit(text);
  seen.main.argv = {"kv: a title"};
  seen.title = true;
  seen.main.exe = "/opt/kv";
  Secrets secrets;
  const auto nodes = draft_nodes({seen}, Host(), secrets);
  check(write_draft({"a fuzzer"}, nodes, {}, example_for(nodes), Host()));
}

void tables(std::string_view text) {
  each_line(text, [](std::string_view line) {
    Socket socket;
    std::uint64_t inode = 0;
    (void)read_socket_line(line, socket);
    (void)read_unix_line(line, inode);
  });
  (void)read_fib_trie(text);
  (void)read_if_inet6(text);
  (void)compose::read_dot_env(text, [](const std::string&) { return std::nullopt; });
  (void)compose::shell_words(text);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0 || size > 64 * 1024) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  switch (data[0]) {
    case 'y': compose_file(text); break;
    case 'c': command(text); break;
    case 'm': manifest(text); break;
    case 'j': container(text); break;
    case 'u': unit(text); break;
    default: tables(text); break;
  }
  return 0;
}
