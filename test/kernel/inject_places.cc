// The locations that src/symbols finds in functions are used as conditions. It must be possible to probe each of them,
// and counting them must not change what the program does.
#include <compare>
#include <map>

#include "base/subprocess.h"
#include "inject/shared.h"
#include "inject_rig.h"
#include "skip.h"
#include "symbols/code.h"

using namespace rose;
using namespace rose::test;

namespace {

std::vector<symbols::Place> places_of(const std::string& function) {
  const auto file = symbols::CodeFile::open(kVictim);
  REQUIRE(file);
  auto places = file->places(function);
  if (!places) FAIL(places.error().message);
  return *places;
}

// Faults that never fire. They count how often the node reaches each location after it has entered the function.
std::string looks(const std::string& function, const std::vector<symbols::Place>& places) {
  std::string text;
  for (std::size_t i = 0; i < places.size(); ++i)
    text += fmt::format(
        "[[fault]]\nid = \"look-{}\"\nkind = \"crash\"\nnode = \"n1\"\nwhen = [ {{ function = \"{}\" }}, "
        "{{ function = \"{}\", offset = {}, count = 1000000000 }} ]\n",
        i, function, function, places[i].offset);
  return text;
}

}  // namespace

TEST_CASE("a probing run counts the sites of a function and changes nothing") {
  Rig rig;
  rig.add({"create", "data", "call", "call", "print", "survived"});
  const auto places = places_of("step_function");
  REQUIRE(places.size() > 8);
  rig.start(looks("step_function", places));
  rig.wait_end();
  CHECK(rig.printed("survived"));
  CHECK(rig.read("n1/data") == "a1\nb1\na2\nb2\n");
  const auto outcomes = rig.finish();
  REQUIRE(outcomes.size() == places.size());
  int writes = 0;
  for (std::size_t i = 0; i < places.size(); ++i) {
    INFO(places[i].name << " at " << places[i].offset);
    CHECK_FALSE(outcomes[i].fired);
    REQUIRE(outcomes[i].conditions.size() == 2);
    CHECK(outcomes[i].conditions[0].met);
    CHECK_FALSE(outcomes[i].conditions[1].met);
    CHECK(outcomes[i].conditions[1].seen <= 2);
    if (places[i].name == "syscall@plt" || places[i].name.starts_with("ret")) {
      ++writes;
      CHECK(outcomes[i].conditions[1].seen == 2);
    }
  }
  CHECK(writes >= 3);  // two calls, and the return
}

TEST_CASE("a crash at a site: earlier calls are executed, the call at the site is not") {
  const auto places = places_of("step_function");
  std::vector<symbols::Place> calls;
  for (const auto& place : places)
    if (place.kind == symbols::PlaceKind::syscall && place.name == "syscall@plt") calls.push_back(place);
  REQUIRE(calls.size() == 2);
  for (std::size_t i = 0; i < calls.size(); ++i) {
    Rig rig;
    rig.add({"create", "data", "call", "call", "print", "survived"});
    rig.start(
        fmt::format("[[fault]]\nid = \"it\"\nkind = \"crash\"\nnode = \"n1\"\nwhen = [ {{ function = "
                    "\"step_function\", count = 2 }}, "
                    "{{ function = \"step_function\", offset = {} }} ]\n",
                    calls[i].offset));
    rig.wait_end();
    CHECK_FALSE(rig.printed("survived"));
    CHECK(rig.read("n1/data") == (i == 0 ? "a1\nb1\n" : "a1\nb1\na2\n"));
    CHECK(rig.finish().front().fired);
  }
}

TEST_CASE("every site of a large function can be probed") {
  Rig rig;
  rig.add({"print", "survived"});
  auto places = places_of("main");
  const auto file = symbols::CodeFile::open(kVictim);
  REQUIRE(file);
  if (places.size() > 1500) places.resize(1500);
  rig.start(looks("main", places));
  rig.wait_end();
  CHECK(rig.printed("survived"));
  std::uint64_t passed = 0;
  for (const auto& outcome : rig.finish()) passed += outcome.conditions.back().seen > 0 ? 1 : 0;
  CHECK(passed > 3);
}

namespace {

constexpr const char* kTraced = ROSE_PROGRAMS_DIR "/trace_places";

// What a tracer must report about a call.
struct ReportedCall {
  std::string call, path, path2, peer;
  bool truncated = false;
  auto operator<=>(const ReportedCall&) const = default;
};

// The calls that a tracer must report, each with the number of reports, as the victim prints them. observe_places.cc
// compares this output with a trace. Empty if the victim cannot run on this machine.
std::map<ReportedCall, std::uint64_t> calls_of(const std::string& mode, const std::string& folder) {
  const auto run =
      run_command({"/bin/sh", "-c", fmt::format("echo go | {} {} {}", kTraced, mode, folder)}, {}, 300 * kSecond);
  REQUIRE(run);
  if (run->exit_code == 77) return {};
  REQUIRE(run->exit_code == 0);
  // The ports of clients, and names with a process id, are different in the next run.
  const auto lasting = [](std::string text) {
    const auto colon = text.rfind(':');
    if (colon != std::string::npos && !text.starts_with("unix:") && std::atoi(text.c_str() + colon + 1) >= 32768)
      text.replace(colon + 1, std::string::npos, "*");
    if (const auto dash = text.rfind("rose-places-"); dash != std::string::npos)
      text.replace(dash + 12, std::string::npos, "*");
    return text;
  };
  std::map<ReportedCall, std::uint64_t> all;
  for (const std::string& line : split(run->out, '\n')) {
    const auto fields = split(line, '\t');
    if (fields.size() != 9 || fields[0] != "expect" || fields[4] == "*") continue;
    ++all[{fields[2], fields[4], fields[5], lasting(fields[6]), fields[8].find("truncated") != std::string::npos}];
  }
  return all;
}

}  // namespace

TEST_CASE("a schedule with attributes reported by a tracer matches the same call") {
  const std::string mode = GENERATE("paths", "sockets");
  const Folder folder;
  const std::string place = folder.path + "/victim";
  std::filesystem::create_directory(place);
  const auto reported = calls_of(mode, place);
  if (reported.empty()) rose::test::skip_case("needs what trace_places " + mode + " needs");
  REQUIRE(reported.size() > 20);
  std::filesystem::remove_all(place);
  std::filesystem::create_directory(place);

  Rig rig;
  config::Node& node = rig.add({});
  node.command = {"/bin/sh", "-c", fmt::format("echo go | {} {} {} >/dev/null; echo ended $?", kTraced, mode, place)};
  node.binaries.clear();
  std::string schedule;
  std::vector<const ReportedCall*> in_order;
  const auto quoted = [](const std::string& text) {
    std::string out = "\"";
    for (const char c : text) {
      if (c == '"' || c == '\\') out += '\\';
      out += c < 0x20 || c > 0x7e ? '?' : c;  // because TOML is text, whereas a name may have arbitrary bytes
    }
    return out + '"';
  };
  for (const auto& [one, count] : reported) {
    // Faults that never fire. They count matching calls.
    if (one.truncated && one.path.ends_with("/the-end"))
      continue;  // no fault can match this path: it is longer than any path may be, so the call fails first
    std::vector<std::string> paths{one.path};
    // The target of a link and the source of a mount are texts, and not paths that a call accesses.
    if (one.path2.starts_with('/')) paths.push_back(one.path2);
    for (const std::string& path : paths) {
      // the override backend refuses paths of this length
      if (Rig::overriding() && path.size() + one.truncated > ROSE_GLOB_BYTES) continue;
      schedule += fmt::format(
          "[[fault]]\nid = \"call-{}\"\nkind = \"syscall\"\nnode = \"n1\"\nsyscall = \"{}\"\nerror = \"EIO\"\ncount = "
          "1000000000\n",
          in_order.size(), one.call);
      if (!path.empty()) schedule += "path = " + quoted((one.truncated ? "*" : "") + path) + "\n";
      // For bind and listen, the reported address is the socket's own. For accept, the peer is unknown when the call
      // begins, so the schedule cannot name it.
      const bool own = one.call == "bind" || one.call == "listen";
      if (!one.peer.empty() && !one.call.starts_with("accept"))
        schedule += (own ? "local = " : "peer = ") + quoted(one.peer) + "\n";
      in_order.push_back(&one);
    }
  }
  rig.start(schedule);
  rig.wait_end();
  INFO(rig.out());
  CHECK(rig.printed("ended 0"));
  const auto outcomes = rig.finish();
  REQUIRE(outcomes.size() == in_order.size());
  for (std::size_t i = 0; i < outcomes.size(); ++i) {
    const ReportedCall& one = *in_order[i];
    INFO(one.call << " | " << one.path.substr(0, 200) << " | " << one.path2.substr(0, 200) << " | " << one.peer << ": "
                  << outcomes[i].why_not);
    CHECK(outcomes[i].seen >= reported.at(one));
  }
}
