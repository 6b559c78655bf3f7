// The socket in the run directory through which `rose node` controls its deployment. One request line, one response;
// only the user who runs rose can connect.
#pragma once

#include <condition_variable>
#include <filesystem>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "base/fd.h"
#include "base/result.h"

namespace rose::deploy {

inline constexpr const char* kControlSocket = ".rose-control";

class ControlServer {
 public:
  // Called in a separate thread for each request; may take long.
  using Handler = std::function<Result<std::string>(const std::string& action, const std::string& node)>;
  [[nodiscard]] static Result<std::unique_ptr<ControlServer>> create(const std::filesystem::path& run_dir,
                                                                     Handler handler);
  ControlServer(const ControlServer&) = delete;
  ControlServer& operator=(const ControlServer&) = delete;
  // Removes the socket and waits for pending requests. It returns only when their handlers have returned.
  ~ControlServer();

 private:
  struct Connection {
    Fd fd;
    std::thread thread;
    bool done = false;
  };
  ControlServer() = default;
  void accept_all();
  void serve(Fd connection);
  std::filesystem::path run_dir_;
  Handler handler_;
  Fd listener_;
  Fd quit_;
  std::thread thread_;
  std::mutex mutex_;
  std::list<Connection> connections_;
};

}  // namespace rose::deploy
