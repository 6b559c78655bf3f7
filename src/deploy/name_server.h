// The name server of a run's containers. It listens at 127.0.0.11 in each container's network, as Docker's does. It
// answers for the names in the container's hosts file, for programs that do not read that file (nginx with `resolver
// 127.0.0.11`, HAProxy with `resolvers`, libraries that ask name servers themselves).
#pragma once

#include <cstdint>
#include <string>
#include <thread>
#include <vector>

#include "base/fd.h"
#include "base/result.h"
#include "deploy/dns/answer.h"

namespace rose::deploy {

inline constexpr const char* kNameServer = "127.0.0.11";  // as with Docker; configurations contain this address
inline constexpr std::uint16_t kNamePort = 53;

class NameServer {
 public:
  NameServer() = default;
  NameServer(const NameServer&) = delete;
  NameServer& operator=(const NameServer&) = delete;
  ~NameServer();
  // Serves the names in `hosts`, the text of a hosts file, in a network namespace. Call it before start().
  [[nodiscard]] Result<void> add(int netns_fd, const std::string& hosts);
  // Starts the thread that answers. Does nothing if add() was not called.
  [[nodiscard]] Result<void> start();

 private:
  struct Served {
    Fd socket;
    NameTable names;
  };
  void serve();
  std::vector<Served> served_;
  Fd quit_;
  std::thread thread_;
};

}  // namespace rose::deploy
