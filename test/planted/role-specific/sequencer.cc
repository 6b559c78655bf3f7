// Assigns numbers, each once. Three nodes elect a leader, which takes numbers from a block that the others know to be
// used, so that a new leader can continue with the next block. Requests and answers are datagrams.
// Usage: sequencer OWN-ADDRESS ADDRESSES FOLDER
#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <random>

#include "addresses.h"

namespace {

constexpr std::uint64_t kBlock = 150;
constexpr int kBeatMs = 30;
constexpr int kPatienceMs = 250;  // wait of a follower; a random time of up to the same length is added
constexpr int kLeaseMs = 200;     // a leader that receives no message for so long gives up its role

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

class Node {
 public:
  Node(std::string own, const std::string& all, std::string folder) : own_(std::move(own)), folder_(std::move(folder)) {
    for (const std::string& ip : addresses_in(all))
      if (ip != own_) peers_.push_back(ip);
    mkdir(folder_.c_str(), 0755);
    const sockaddr_in address = address_of(own_);
    socket_ = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (bind(socket_, reinterpret_cast<const sockaddr*>(&address), sizeof address) < 0) {
      std::perror("cannot bind");
      std::exit(1);
    }
    wait_anew();
  }

  [[noreturn]] void run() {
    std::fprintf(stderr, "listening\n");
    for (;;) {
      const auto now = Clock::now();
      if (role_ == Role::leader && now - heard_ > milliseconds(kLeaseMs)) follow(term_, "");
      if (now >= deadline_) {
        if (role_ == Role::leader) beat();
        else stand_for_election();
      }
      pollfd wait{socket_, POLLIN, 0};
      const auto left = std::chrono::duration_cast<milliseconds>(deadline_ - Clock::now()).count();
      if (poll(&wait, 1, static_cast<int>(std::clamp<long>(left, 1, 1000))) == 1) receive();
    }
  }

 private:
  enum class Role { follower, candidate, leader };

  void wait_anew() { deadline_ = Clock::now() + milliseconds(kPatienceMs + static_cast<int>(chance_() % kPatienceMs)); }

  void send(const std::string& ip, const std::string& text) {
    const sockaddr_in to = address_of(ip);
    sendto(socket_, text.data(), text.size(), 0, reinterpret_cast<const sockaddr*>(&to), sizeof to);
  }
  void send_peers(const std::string& text) {
    for (const std::string& peer : peers_) send(peer, text);
  }

  // --- elections

  void stand_for_election() {
    role_ = Role::candidate;
    voted_term_ = ++term_;
    leader_.clear();
    wait_anew();
    send_peers("vote " + std::to_string(term_) + " " + std::to_string(reserved_));
  }

  void follow(std::uint64_t term, const std::string& leader) {
    role_ = Role::follower;
    term_ = term;
    leader_ = leader;
    wait_anew();
  }

  void become_leader() {
    role_ = Role::leader;
    leader_ = own_;
    heard_ = Clock::now();
    next_ = reserved_;  // what is left of the old leader's block is lost
    taken_ = reserved_;
    std::fprintf(stderr, "leader of term %llu, from number %llu on\n", static_cast<unsigned long long>(term_),
                 static_cast<unsigned long long>(next_));
    beat();
  }

  void beat() {
    deadline_ = Clock::now() + milliseconds(kBeatMs);
    send_peers("beat " + std::to_string(term_) + " " + std::to_string(reserved_));
  }

  // --- numbers

  void hand_out(const sockaddr_in& client) {
    const bool new_block = next_ == taken_;
    if (new_block) taken_ += kBlock;
    const std::string answer = "number " + std::to_string(next_++);
    sendto(socket_, answer.data(), answer.size(), 0, reinterpret_cast<const sockaddr*>(&client), sizeof client);
    // Announce the block after the answer, so that the client does not wait for the announcement.
    if (new_block) announce_block();
  }

  void announce_block() {
    write_block();
    const std::uint64_t signature = sign_block();
    reserved_ = taken_;
    send_peers("block " + std::to_string(term_) + " " + std::to_string(reserved_) + " " + std::to_string(signature));
  }

  void write_block() {
    const std::string path = folder_ + "/block";
    const std::string text = std::to_string(taken_) + "\n";
    const int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    if (fd < 0 || write(fd, text.data(), text.size()) < 0) std::perror("block");
    close(fd);
  }

  // The program that checks bills computes the same signature.
  std::uint64_t sign_block() const {
    std::uint64_t value = taken_;
    for (int round = 0; round < 8'000'000; ++round) value = (value ^ (value >> 29)) * 0xbf58476d1ce4e5b9u + 1;
    return value;
  }

  // --- messages

  void receive() {
    char buffer[200];
    sockaddr_in from{};
    socklen_t size = sizeof from;
    const ssize_t got = recvfrom(socket_, buffer, sizeof buffer, 0, reinterpret_cast<sockaddr*>(&from), &size);
    if (got <= 0) return;
    char text[INET_ADDRSTRLEN] = "";
    inet_ntop(AF_INET, &from.sin_addr, text, sizeof text);
    const std::string ip = text;
    std::istringstream in(std::string(buffer, static_cast<std::size_t>(got)));
    std::string verb;
    std::uint64_t term = 0, number = 0;
    in >> verb;
    if (verb == "next") {
      if (role_ == Role::leader) return hand_out(from);
      const std::string answer = "ask " + (leader_.empty() ? std::string("later") : leader_);
      sendto(socket_, answer.data(), answer.size(), 0, reinterpret_cast<const sockaddr*>(&from), sizeof from);
      return;
    }
    if (!(in >> term >> number) || term < term_) return;
    if (verb == "vote") {
      if (term > term_) follow(term, "");
      if (voted_term_ < term && number >= reserved_) {
        voted_term_ = term;
        wait_anew();
        send(ip, "yes " + std::to_string(term) + " 0");
      }
    } else if (verb == "yes") {
      if (role_ == Role::candidate && term == term_) become_leader();
    } else if (verb == "beat" || verb == "block") {
      if (term > term_ || role_ != Role::leader) follow(term, ip);
      reserved_ = std::max(reserved_, number);
      send(ip, "heard " + std::to_string(term) + " 0");
    } else if (verb == "heard") {
      heard_ = Clock::now();
    }
  }

  const std::string own_, folder_;
  std::vector<std::string> peers_;
  int socket_ = -1;
  Role role_ = Role::follower;
  std::string leader_;
  std::uint64_t term_ = 0, voted_term_ = 0;
  std::uint64_t reserved_ = 0;  // a majority knows that the numbers below this are assigned
  std::uint64_t taken_ = 0;     // the end of the leader's own block
  std::uint64_t next_ = 0;
  Clock::time_point deadline_, heard_;
  std::random_device chance_;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) {
    std::fprintf(stderr, "usage: sequencer OWN-ADDRESS ADDRESSES FOLDER\n");
    return 2;
  }
  Node(argv[1], argv[2], argv[3]).run();
}
