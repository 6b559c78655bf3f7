// Messages between a diagnosis and its workers. A frame consists of a magic number, two lengths, a JSON header, a
// payload and a newline (srun forwards only complete lines). The header's last member is the SHA-256 of the rest of the
// header and of the payload. The sender is not trusted. Lengths are checked before memory is allocated, and once the
// header is complete, the length of the payload is checked against the limit for the message's type. A header must be
// an object with a `type`.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/json.h"
#include "base/result.h"

namespace rose::engine {

// A worker with another protocol version is refused. Version 2: messages have digests.
inline constexpr int kProtocol = 2;

inline constexpr std::size_t kMostHeader = std::size_t{64} << 20;  // for the list of a folder's files
inline constexpr std::size_t kMostPayload = std::size_t{1} << 30;  // for a run's trace and logs
inline constexpr std::size_t kMostText = std::size_t{64} << 20;    // for a schedule or a profile

struct Message {
  Json header;  // an object; "type" is a string
  std::string payload;

  [[nodiscard]] std::string type() const;
  // Reads a member of the header. Returns ErrorKind::input if it is missing or has another type.
  [[nodiscard]] Result<std::string> text(std::string_view key) const;
  [[nodiscard]] Result<std::int64_t> number(std::string_view key) const;
};

[[nodiscard]] std::string to_bytes(const Message& message);

// Assembles messages from received bytes.
class Inbox {
 public:
  void add(std::string_view bytes) { bytes_.append(bytes); }
  // The next complete message; nothing if more bytes are needed. Returns ErrorKind::input if the bytes are not a
  // message.
  [[nodiscard]] Result<std::optional<Message>> next();
  [[nodiscard]] std::size_t waiting() const { return bytes_.size() - at_; }

 private:
  [[nodiscard]] Result<void> read_header(std::string_view text);
  std::string bytes_;
  std::size_t at_ = 0;             // bytes processed so far
  std::optional<Message> coming_;  // a message of which only the header is complete
  std::string digest_;             // the digest in that header
};

}  // namespace rose::engine
