// kv-server: one node of the store. Clients speak lines, see handle_client().
#include <getopt.h>
#include <signal.h>
#include <unistd.h>

#include <charconv>
#include <cstdio>
#include <sstream>

#include "net.h"
#include "raft.h"

namespace {

using namespace kv;

constexpr Millis kCommitTimeout{8000};
constexpr Millis kPeerIdle{5000};  // peers ping several times a second
constexpr Millis kClientIdle{60000};

const char* const kServerUsage =
    "Usage: kv-server --id N --cluster IP,IP,... --data DIR [--snapshot-every N] [--compact-after N]\n"
    "One node of a replicated key-value store; its address is the Nth of the cluster's.\n"
    "Clients connect to port 7000, nodes to port 7001.\n";

const char* role_name(Role role) {
  switch (role) {
    case Role::follower: return "follower";
    case Role::candidate: return "candidate";
    case Role::leader: return "leader";
  }
  return "?";
}

std::string status_line(const Report& report) {
  std::ostringstream out;
  out << "STATUS id=" << report.id << " role=" << role_name(report.role) << " leader=" << report.leader
      << " term=" << report.term << " last=" << report.last << " commit=" << report.commit
      << " applied=" << report.applied << " base=" << report.base << " snapshot=" << report.snapshot << '\n';
  return out.str();
}

std::string outcome_line(const Outcome& outcome) {
  switch (outcome.kind) {
    case Outcome::Kind::done: return "OK " + outcome.value + "\n";
    case Outcome::Kind::not_leader: return "NOTLEADER " + std::to_string(outcome.leader) + "\n";
    case Outcome::Kind::unknown: break;
  }
  return "UNKNOWN it may or may not be done\n";
}

// PUT key value, ADD key amount: OK value | NOTLEADER id | UNKNOWN ...
// GET key (from the leader), LOCAL key (from this node): VALUE value | NONE | NOTLEADER id
// SCAN (this node's state): lines "key value", then END
// STATUS: STATUS id=... role=... ...
// SWAP key old new (new in the place of old): OK value | CONFLICT | NOTLEADER id | UNKNOWN ...
std::string answer(Raft& raft, const std::string& line, const std::string& caller = {}) {
  std::istringstream in(line);
  std::string verb;
  std::string key;
  in >> verb >> key;
  if (verb == "STATUS") return status_line(raft.report());
  if (verb == "SCAN") {
    std::string result;
    for (const auto& [name, value] : raft.scan()) result += name + " " + value + "\n";
    return result + "END\n";
  }
  if (key.empty()) return "ERROR expected PUT, ADD, SWAP, GET, LOCAL, SCAN or STATUS and a key\n";
  if (verb == "PUT") {
    std::string value;
    std::getline(in >> std::ws, value);
    return outcome_line(raft.propose(encode_put(key, value), kCommitTimeout, caller));
  }
  if (verb == "ADD") {
    std::int64_t amount = 0;
    if (!(in >> amount)) return "ERROR expected a number\n";
    return outcome_line(raft.propose(encode_add(key, amount), kCommitTimeout, caller));
  }
  if (verb == "SWAP") {
    std::string expected;
    std::string value;
    if (!(in >> expected >> value)) return "ERROR expected the old value and the new one\n";
    const bool holds = raft.holds(key, expected == "-" ? "" : expected, caller);
    if (const Report report = raft.report(); report.role != Role::leader)
      return "NOTLEADER " + std::to_string(report.leader) + "\n";
    if (!holds) return "CONFLICT\n";
    return outcome_line(raft.propose(encode_swap(key, expected == "-" ? "" : expected, value), kCommitTimeout, caller));
  }
  if (verb == "GET" || verb == "LOCAL") {
    const Report report = raft.report();
    if (verb == "GET" && report.role != Role::leader) return "NOTLEADER " + std::to_string(report.leader) + "\n";
    const std::optional<std::string> value = raft.read(key);
    return value ? "VALUE " + *value + "\n" : "NONE\n";
  }
  return "ERROR unknown command '" + verb + "'\n";
}

// Requests that change nothing need not be recorded.
bool changes(std::string_view line) {
  return line.starts_with("PUT ") || line.starts_with("ADD ") || line.starts_with("SWAP ");
}

void handle_client(Connection& connection, Raft& raft, const Stop& stop) {
  const std::string caller = numbered_caller("client/");
  while (std::optional<std::string> line = connection.read_line(kClientIdle, stop)) {
    std::string result;
    if (rr::on() && changes(*line)) {
      const Gate::Pass pass(raft.gate());
      rr::record(caller.c_str(), *line);
      result = answer(raft, *line, caller);
    } else {
      result = answer(raft, *line);
    }
    if (!connection.send(result, Millis(5000), stop)) return;
  }
}

void handle_peer(Connection& connection, Raft& raft, const Stop& stop) {
  const std::string caller = numbered_caller("peer/");
  while (const std::optional<Connection::Frame> frame = connection.read_frame(kPeerIdle, stop)) {
    const Kind kind = static_cast<Kind>(frame->type);
    std::optional<std::string> reply;
    {
      const Gate::Pass pass(raft.gate());
      if (rr::on() && kind != Kind::ping) {
        std::string bytes(1, static_cast<char>(frame->type));
        bytes += frame->body;
        rr::record(caller.c_str(), bytes);
      }
      reply = raft.serve(kind, frame->body, caller);
    }
    if (!reply || !connection.send_frame(frame->type, *reply, Millis(5000), stop)) return;
  }
}

// Prints this node's state in the form of SCAN.
void print_state(const Raft& raft) {
  std::string text;
  for (const auto& [name, value] : raft.scan()) text += name + " " + value + "\n";
  std::fputs((text + "END\n").c_str(), stdout);
  std::fflush(stdout);
}

// Runs this node alone from its recording: it accepts no connections and sends nothing. It writes to the replay's
// folder.
struct Replay {
  Raft& raft;

  void run(const sigset_t& signals) {
    rr::reproducer("client/*", [this](std::string_view key, std::string_view bytes) {
      std::string line(bytes);
      const std::string caller(key);
      rr::record(caller.c_str(), line);
      (void)answer(raft, line, caller);
    });
    rr::reproducer("peer/*", [this](std::string_view key, std::string_view bytes) {
      std::string request(bytes);
      const std::string caller(key);
      rr::record(caller.c_str(), request);
      (void)raft.serve(static_cast<Kind>(request[0]), std::string_view(request).substr(1), caller);
    });
    rr::reproducer("reply/*",
                   [this](std::string_view key, std::string_view bytes) { raft.take_recorded_reply(key, bytes); });
    rr::reproducer("signal", [](std::string_view, std::string_view) {
      int signal = 0;
      rr::record("signal", signal);
      ::kill(::getpid(), signal);
    });
    rose_rr_at_end([](void* replay) { static_cast<Replay*>(replay)->end(); }, this);
    int signal = 0;
    sigwait(&signals, &signal);
    rose_rr_end();
    end();
    std::_Exit(0);
  }

  void end() { print_state(raft); }
};

bool parse_number(std::string_view text, Index& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size() && value > 0;
}

std::vector<std::string> split(const std::string& text) {
  std::vector<std::string> result;
  std::istringstream in(text);
  for (std::string part; std::getline(in, part, ',');) result.push_back(part);
  return result;
}

// Returns nothing if the command line is wrong.
std::optional<Options> parse_options(int argc, char** argv) {
  const option kOptions[] = {{"id", required_argument, nullptr, 'i'},
                             {"cluster", required_argument, nullptr, 'c'},
                             {"data", required_argument, nullptr, 'd'},
                             {"snapshot-every", required_argument, nullptr, 's'},
                             {"compact-after", required_argument, nullptr, 'a'},
                             {nullptr, 0, nullptr, 0}};
  Options options;
  Index id = 0;
  int choice = 0;
  while ((choice = getopt_long(argc, argv, "", kOptions, nullptr)) != -1) {
    bool good = true;
    switch (choice) {
      case 'i': good = parse_number(optarg, id); break;
      case 'c': options.cluster = split(optarg); break;
      case 'd': options.data = optarg; break;
      case 's': good = parse_number(optarg, options.snapshot_every); break;
      case 'a': good = parse_number(optarg, options.compact_after); break;
      default: return std::nullopt;
    }
    if (!good) return std::nullopt;
  }
  if (optind != argc || id == 0 || id > options.cluster.size() || options.data.empty()) return std::nullopt;
  options.id = static_cast<int>(id);
  return options;
}

}  // namespace

int main(int argc, char** argv) {
  std::optional<Options> options = parse_options(argc, argv);
  if (!options) {
    std::fputs(kServerUsage, stderr);
    return 2;
  }
  set_log_name("n" + std::to_string(options->id));

  // Before the first thread starts, so that all inherit the mask and only sigwait() below receives these signals.
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);

  const std::string& address = options->cluster[static_cast<std::size_t>(options->id) - 1];
  Stop stop;
  if (rr::replaying()) {
    const char* folder = std::getenv("ROSE_RR_FOLDER");
    if (folder == nullptr) fatal("ROSE_RR_FOLDER is not set: 'rose replay --recording' sets it");
    options->data = folder;
  }
  Raft raft(*options);
  raft.start();
  if (rr::replaying()) Replay{raft}.run(signals);
  Listener peers;
  Listener clients;
  Status ready = peers.start(address, kPeerPort, stop, [&](Connection& c) { handle_peer(c, raft, stop); });
  if (ready) ready = clients.start(address, kClientPort, stop, [&](Connection& c) { handle_client(c, raft, stop); });
  if (!ready) fatal("%s", ready.message().c_str());
  info("serves on %s", address.c_str());

  int signal = 0;
  sigwait(&signals, &signal);
  rr::record("signal", signal);
  rose_rr_end();
  info("stops on signal %d", signal);
  stop.request();
  raft.stop();
  clients.join();
  peers.join();
  return 0;
}
