// Messages between a diagnosis and its workers: a frame is a magic word, two lengths, a JSON header, bytes, and an end
// of line, since some that stand between (srun) hand on whole lines only. Whoever sends is not trusted: lengths are
// checked before memory is taken, and a header is an object with a `type`.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/json.h"
#include "base/result.h"

namespace rose::engine {

// A worker of another number is refused. 1: the first.
inline constexpr int kProtocol = 1;

inline constexpr std::size_t kMostHeader = std::size_t{64} << 20;  // the list of a folder's files
inline constexpr std::size_t kMostPayload = std::size_t{1} << 30;  // a run's trace and its logs

struct Message {
  Json header;  // an object; "type" is a string
  std::string payload;

  [[nodiscard]] std::string type() const;
  // Of the header; what is missing or of another type is an error (input).
  [[nodiscard]] Result<std::string> text(std::string_view key) const;
  [[nodiscard]] Result<std::int64_t> number(std::string_view key) const;
};

[[nodiscard]] std::string to_bytes(const Message& message);

// Puts messages together from what comes in.
class Inbox {
 public:
  void add(std::string_view bytes) { bytes_.append(bytes); }
  // The next whole message; nothing when more has to come. Error (input): what came is no message, nor will be.
  [[nodiscard]] Result<std::optional<Message>> next();
  [[nodiscard]] std::size_t waiting() const { return bytes_.size() - at_; }

 private:
  std::string bytes_;
  std::size_t at_ = 0;  // read until here
};

}  // namespace rose::engine
