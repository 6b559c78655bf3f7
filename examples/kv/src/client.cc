// kv-client: single commands, a load that remembers what was acknowledged, and waiting for a cluster to become idle.
#include <fcntl.h>
#include <getopt.h>

#include <charconv>
#include <chrono>
#include <cstdio>
#include <map>
#include <sstream>
#include <thread>

#include "net.h"
#include "raft.h"

namespace {

using namespace kv;
using Clock = std::chrono::steady_clock;

const char* const kClientUsage =
    "Usage: kv-client --nodes IP,IP,... [options] COMMAND\n"
    "  put KEY VALUE | add KEY AMOUNT | get KEY     at the leader\n"
    "  status                                       of every node\n"
    "  scan N                                       all keys and values of the Nth node\n"
    "  load                                         write until --count or --seconds is reached\n"
    "  settle                                       wait until all nodes have applied all that is committed\n"
    "  reach N FIELD VALUE                          wait until a number in the Nth node's status is VALUE or more\n"
    "Options of load: --op put|add|swap (put)  --prefix TEXT (put: keys begin so, key-)  --keys N (else: counters, 1)\n"
    "  --count N  --seconds N  --interval-ms N (10)  --acked FILE: a line for each acknowledged write\n"
    "Others: --timeout SECONDS (10; of settle and reach)\n"
    "Exit status: 0 done, 1 not done, 2 wrong usage.\n";

struct Arguments {
  std::vector<std::string> nodes;
  std::vector<std::string> command;
  std::string op = "put";
  std::string acked;
  std::string prefix = "key-";
  long keys = 1;
  long count = 0;
  long seconds = 0;
  long interval_ms = 10;
  long timeout = 10;
};

// Sends requests to the same node as long as it answers, and to another one after it failed or named another leader.
class Client {
 public:
  explicit Client(std::vector<std::string> nodes) : nodes_(std::move(nodes)) {}

  // The leader's answer; nothing if there was none in time. `again`: a command whose outcome is unknown may be sent
  // again, because executing it twice changes nothing.
  std::optional<std::string> ask_leader(const std::string& line, bool again, Millis patience) {
    const Clock::time_point end = Clock::now() + patience;
    while (Clock::now() < end) {
      const std::optional<std::string> answer = ask(line, Millis(10000));
      if (answer && !answer->starts_with("NOTLEADER") && !answer->starts_with("UNKNOWN")) return answer;
      if ((!answer && sent_) || (answer && answer->starts_with("UNKNOWN"))) {
        if (!again) return std::nullopt;
      }
      std::size_t next = (now_ + 1) % nodes_.size();
      if (answer && answer->starts_with("NOTLEADER ")) {
        const int leader = std::atoi(answer->c_str() + 10);
        const bool known = leader > 0 && static_cast<std::size_t>(leader) <= nodes_.size();
        if (known) next = static_cast<std::size_t>(leader) - 1;
      }
      go_to(next);
      stop_.wait(Millis(50));
    }
    return std::nullopt;
  }

  std::optional<std::string> ask_node(std::size_t node, const std::string& line) {
    if (node != now_ || !connection_.open()) go_to(node);
    return ask(line, Millis(5000));
  }

  std::optional<std::map<std::string, std::string>> status(std::size_t node) {
    const std::optional<std::string> line = ask_node(node, "STATUS");
    if (!line || !line->starts_with("STATUS ")) return std::nullopt;
    std::map<std::string, std::string> fields;
    std::istringstream in(line->substr(7));
    for (std::string field; in >> field;) {
      const std::size_t equals = field.find('=');
      if (equals != std::string::npos) fields[field.substr(0, equals)] = field.substr(equals + 1);
    }
    return fields;
  }

  std::optional<std::vector<std::string>> scan(std::size_t node) {
    std::optional<std::string> line = ask_node(node, "SCAN");
    std::vector<std::string> result;
    while (line && *line != "END") {
      result.push_back(*line);
      line = connection_.read_line(Millis(5000), stop_);
    }
    if (!line) return std::nullopt;
    return result;
  }

  std::size_t size() const { return nodes_.size(); }
  void pause(Millis time) { stop_.wait(time); }

 private:
  void go_to(std::size_t node) {
    connection_.close();
    now_ = node;
  }

  std::optional<std::string> ask(const std::string& line, Millis timeout) {
    sent_ = false;
    if (!connection_.open()) connection_ = Connection::dial(nodes_[now_], kClientPort, Millis(1000), stop_);
    if (!connection_.open()) return std::nullopt;
    sent_ = true;
    std::optional<std::string> answer;
    if (connection_.send(line + "\n", timeout, stop_)) answer = connection_.read_line(timeout, stop_);
    if (!answer) connection_.close();
    return answer;
  }

  std::vector<std::string> nodes_;
  std::size_t now_ = 0;
  bool sent_ = false;
  Connection connection_;
  Stop stop_;
};

// Adds one by replacing the number that was read; repeats if another client was faster.
std::optional<std::string> count_by_swap(Client& client, const std::string& key) {
  for (int tries = 0; tries < 1000; ++tries) {
    const std::optional<std::string> now = client.ask_leader("GET " + key, true, Millis(15000));
    if (!now) return std::nullopt;
    const std::string value = now->starts_with("VALUE ") ? now->substr(6) : "";
    const std::string next = std::to_string(std::atol(value.c_str()) + 1);
    const std::optional<std::string> answer =
        client.ask_leader("SWAP " + key + " " + (value.empty() ? "-" : value) + " " + next, false, Millis(15000));
    if (!answer || !answer->starts_with("CONFLICT")) return answer;
  }
  return std::nullopt;
}

int load(Client& client, const Arguments& arguments) {
  Fd acked;
  if (!arguments.acked.empty()) {
    acked = Fd(::open(arguments.acked.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644));
    if (!acked) {
      std::fprintf(stderr, "kv-client: can't open %s\n", arguments.acked.c_str());
      return 2;
    }
  }
  const bool put = arguments.op == "put";
  const bool swap = arguments.op == "swap";
  const Clock::time_point begin = Clock::now();
  long done = 0;
  long sent = 0;
  while ((arguments.count == 0 || sent < arguments.count) &&
         (arguments.seconds == 0 || Clock::now() - begin < std::chrono::seconds(arguments.seconds))) {
    const std::string number = std::to_string(++sent);
    const std::string key = put ? arguments.prefix + number : "counter-" + std::to_string(sent % arguments.keys);
    const std::string line = put ? "PUT " + key + " value-" + number : "ADD " + key + " 1";
    const std::optional<std::string> answer =
        swap ? count_by_swap(client, key) : client.ask_leader(line, put, Millis(15000));
    if (answer && answer->starts_with("OK")) {
      ++done;
      if (acked && !write_all(acked.get(), key + "\n")) return 1;
    }
    client.pause(Millis(arguments.interval_ms));
  }
  std::printf("%ld of %ld writes acknowledged\n", done, sent);
  return done > 0 ? 0 : 1;
}

// All nodes agree on one leader and have applied everything that it has committed; its log has no uncommitted entry.
bool settled(Client& client) {
  std::string leader;
  std::string term;
  std::string applied;
  for (std::size_t node = 0; node < client.size(); ++node) {
    auto status = client.status(node);
    if (!status) return false;
    auto& fields = *status;
    if (node == 0) {
      leader = fields["leader"];
      term = fields["term"];
      applied = fields["applied"];
    }
    if (fields["leader"] == "0" || fields["leader"] != leader || fields["term"] != term) return false;
    if (fields["applied"] != applied || fields["applied"] != fields["last"]) return false;
    if (fields["commit"] != fields["last"]) return false;
  }
  return true;
}

template <typename Condition>
bool wait_until(Client& client, long seconds, Condition condition) {
  const Clock::time_point end = Clock::now() + std::chrono::seconds(seconds);
  do {
    if (condition()) return true;
    client.pause(Millis(100));
  } while (Clock::now() < end);
  return false;
}

int run(const Arguments& arguments) {
  Client client(arguments.nodes);
  const std::vector<std::string>& command = arguments.command;
  const std::string& verb = command[0];
  // The node that the second word names, counted from 0; client.size() if there is no such node.
  const auto node = [&]() -> std::size_t {
    const long number = command.size() > 1 ? std::atol(command[1].c_str()) : 0;
    const bool known = number >= 1 && static_cast<std::size_t>(number) <= client.size();
    return known ? static_cast<std::size_t>(number) - 1 : client.size();
  };

  if ((verb == "put" || verb == "add") && command.size() == 3) {
    const std::string line = (verb == "put" ? "PUT " : "ADD ") + command[1] + " " + command[2];
    const auto answer = client.ask_leader(line, verb == "put", Millis(10000));
    std::puts(answer ? answer->c_str() : "no answer");
    return answer && answer->starts_with("OK") ? 0 : 1;
  }
  if (verb == "get" && command.size() == 2) {
    const auto answer = client.ask_leader("GET " + command[1], true, Millis(10000));
    std::puts(answer ? answer->c_str() : "no answer");
    return answer && answer->starts_with("VALUE") ? 0 : 1;
  }
  if (verb == "status" && command.size() == 1) {
    bool all = true;
    for (std::size_t i = 0; i < client.size(); ++i) {
      const auto answer = client.ask_node(i, "STATUS");
      std::puts(answer ? answer->c_str() : "no answer");
      all = all && answer.has_value();
    }
    return all ? 0 : 1;
  }
  if (verb == "scan" && command.size() == 2 && node() < client.size()) {
    const auto lines = client.scan(node());
    if (!lines) return 1;
    for (const std::string& line : *lines) std::puts(line.c_str());
    return 0;
  }
  if (verb == "load" && command.size() == 1 && (arguments.count > 0 || arguments.seconds > 0)) {
    return load(client, arguments);
  }
  if (verb == "settle" && command.size() == 1) {
    return wait_until(client, arguments.timeout, [&] { return settled(client); }) ? 0 : 1;
  }
  if (verb == "reach" && command.size() == 4 && node() < client.size()) {
    const long wanted = std::atol(command[3].c_str());
    return wait_until(client, arguments.timeout,
                      [&] {
                        auto status = client.status(node());
                        return status && status->contains(command[2]) &&
                               std::atol((*status)[command[2]].c_str()) >= wanted;
                      })
               ? 0
               : 1;
  }
  std::fputs(kClientUsage, stderr);
  return 2;
}

std::optional<Arguments> parse(int argc, char** argv) {
  const option kOptions[] = {
      {"nodes", required_argument, nullptr, 'n'},   {"op", required_argument, nullptr, 'o'},
      {"acked", required_argument, nullptr, 'a'},   {"keys", required_argument, nullptr, 'k'},
      {"prefix", required_argument, nullptr, 'p'},  {"count", required_argument, nullptr, 'c'},
      {"seconds", required_argument, nullptr, 's'}, {"interval-ms", required_argument, nullptr, 'i'},
      {"timeout", required_argument, nullptr, 't'}, {nullptr, 0, nullptr, 0}};
  Arguments arguments;
  const auto number = [](long& value) {
    const std::string_view text(optarg);
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    return error == std::errc() && end == text.data() + text.size() && value >= 0;
  };
  int choice = 0;
  while ((choice = getopt_long(argc, argv, "", kOptions, nullptr)) != -1) {
    bool good = true;
    switch (choice) {
      case 'n': {
        std::istringstream in(optarg);
        for (std::string part; std::getline(in, part, ',');) arguments.nodes.push_back(part);
        break;
      }
      case 'o':
        arguments.op = optarg;
        good = arguments.op == "put" || arguments.op == "add" || arguments.op == "swap";
        break;
      case 'a': arguments.acked = optarg; break;
      case 'p': arguments.prefix = optarg; break;
      case 'k': good = number(arguments.keys) && arguments.keys > 0; break;
      case 'c': good = number(arguments.count); break;
      case 's': good = number(arguments.seconds); break;
      case 'i': good = number(arguments.interval_ms); break;
      case 't': good = number(arguments.timeout); break;
      default: good = false;
    }
    if (!good) return std::nullopt;
  }
  for (; optind < argc; ++optind) arguments.command.emplace_back(argv[optind]);
  if (arguments.nodes.empty() || arguments.command.empty()) return std::nullopt;
  return arguments;
}

}  // namespace

int main(int argc, char** argv) {
  const std::optional<Arguments> arguments = parse(argc, argv);
  if (!arguments) {
    std::fputs(kClientUsage, stderr);
    return 2;
  }
  return run(*arguments);
}
