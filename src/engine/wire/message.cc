#include "engine/wire/message.h"

#include "base/json.h"
#include "base/json_shape.h"
#include "base/sha256.h"
#include "base/text.h"

namespace rose::engine {
namespace {

constexpr std::string_view kMagic = "ROSE";
constexpr std::size_t kFrameHead = 12;

void put_u32(std::string& into, std::size_t number) {
  for (int shift = 0; shift < 32; shift += 8) into.push_back(static_cast<char>(number >> shift & 0xff));
}

std::size_t get_u32(std::string_view from) {
  std::size_t number = 0;
  for (std::size_t i = 0; i < 4; ++i) number |= std::size_t{static_cast<unsigned char>(from[i])} << (8 * i);
  return number;
}

constexpr std::string_view kDigestName = "sha256";
constexpr std::string_view kDigestMember = ",\"sha256\":\"";
constexpr std::size_t kDigestDigits = 64;

// The limit for the payload, by the message's type. Only runs may be larger than a text or a piece of a file.
std::size_t most_payload(std::string_view type) {
  if (type == "made") return kMostPayload;
  if (type == "begin" || type == "run") return kMostText;
  if (type == "piece") return std::size_t{16} << 20;
  return 0;
}

// the greatest depth of arrays and objects in a valid message
constexpr int kDeepestHeader = 32;

}  // namespace

std::string Message::type() const {
  const auto found = header.find("type");
  return found != header.end() && found->is_string() ? found->get<std::string>() : std::string();
}

Result<std::string> Message::text(std::string_view key) const {
  const auto found = header.find(key);
  if (found == header.end() || !found->is_string())
    return fail(ErrorKind::input, fmt::format("'{}' is missing in a message '{}'", key, printable(type())));
  return found->get<std::string>();
}

Result<std::int64_t> Message::number(std::string_view key) const {
  const auto found = header.find(key);
  if (found == header.end() || !found->is_number_integer())
    return fail(ErrorKind::input, fmt::format("'{}' is missing in a message '{}'", key, printable(type())));
  return found->get<std::int64_t>();
}

std::string to_bytes(const Message& message) {
  std::string header = json_text(message.header);
  Sha256 digest;
  digest.add(header);
  digest.add(message.payload);
  header.pop_back();  // "}"
  header += fmt::format("{}{}\"}}", kDigestMember, digest.finish());
  std::string bytes(kMagic);
  put_u32(bytes, header.size());
  put_u32(bytes, message.payload.size());
  bytes += header;
  bytes += message.payload;
  bytes += '\n';
  return bytes;
}

Result<void> Inbox::read_header(std::string_view text) {
  Message message;
  if (json_within(text, kDeepestHeader)) message.header = parse_json(text);
  if (!message.header.is_object() || message.type().empty())
    return fail(ErrorKind::input, "a message's header is not a JSON object with a type");
  const std::size_t member = kDigestMember.size() + kDigestDigits + 2;
  digest_.clear();
  if (text.size() > member && text.substr(text.size() - member).starts_with(kDigestMember)) {
    digest_ = text.substr(text.size() - kDigestDigits - 2, kDigestDigits);
    message.header.erase(std::string(kDigestName));
  }
  coming_ = std::move(message);
  return {};
}

Result<std::optional<Message>> Inbox::next() {
  const std::string_view here = std::string_view(bytes_).substr(at_);
  const std::size_t same = std::min(here.size(), kMagic.size());
  if (here.substr(0, same) != kMagic.substr(0, same))
    return fail(ErrorKind::input, fmt::format("it does not speak the protocol of a rose worker, its output is '{}'",
                                              printable(here.substr(0, 120))));
  if (here.size() < kFrameHead) return std::nullopt;
  const std::size_t header = get_u32(here.substr(4));
  const std::size_t payload = get_u32(here.substr(8));
  if (header > kMostHeader || payload > kMostPayload)
    return fail(
        ErrorKind::input,
        fmt::format("a message with {} bytes of header and {} bytes of payload is longer than any of a rose worker",
                    header, payload));
  if (here.size() < kFrameHead + header) return std::nullopt;
  const std::string_view json = here.substr(kFrameHead, header);
  const std::size_t whole = kFrameHead + header + payload + 1;
  if (here.size() >= whole && here[whole - 1] != '\n')
    return fail(ErrorKind::input, "a message does not end where it should: a program in between may have changed it");
  if (!coming_) {
    ROSE_CHECK(read_header(json));
    if (payload > most_payload(coming_->type()))
      return fail(ErrorKind::input,
                  fmt::format("a message '{}' of {} bytes is longer than any such message of a rose worker",
                              printable(coming_->type()), payload));
  }
  if (here.size() < whole) return std::nullopt;
  Message message = std::move(*coming_);
  coming_.reset();
  message.payload = here.substr(kFrameHead + header, payload);
  Sha256 digest;
  const std::size_t member = kDigestMember.size() + kDigestDigits + 2;
  if (!digest_.empty()) {
    digest.add(json.substr(0, json.size() - member));
    digest.add("}");
    digest.add(message.payload);
  }
  if (digest_.empty() || digest.finish() != digest_)
    return fail(ErrorKind::input, fmt::format("a message '{}' was damaged on its way: its digest does not match",
                                              printable(message.type())));
  at_ += whole;
  if (at_ == bytes_.size() || at_ > (std::size_t{1} << 20)) {
    bytes_.erase(0, at_);
    at_ = 0;
  }
  return message;
}

}  // namespace rose::engine
