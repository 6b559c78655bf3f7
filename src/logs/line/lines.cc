#include "logs/line/lines.h"

#include <algorithm>
#include <cstring>
#include <optional>

#include "logs/line/document.h"

namespace rose::logs {
namespace {

constexpr std::size_t kBuffer = std::size_t{1} << 20;
static_assert(kBuffer >= 2 * LineReader::kLongestLine);

}  // namespace

LineReader::LineReader(Bytes bytes) : source_(std::move(bytes)), buffer_(kBuffer) {
  using namespace std::string_view_literals;
  if (!fill()) return;
  if (begins_document({buffer_.data(), end_})) unroll();
  if (std::string_view(buffer_.data(), end_).starts_with("\xef\xbb\xbf"sv)) begin_ = 3;  // skip the byte order mark
}

std::size_t LineReader::read(std::span<char> into) {
  if (document_read_ == document_.size()) return source_.read(into);
  const std::size_t count = std::min(into.size(), document_.size() - document_read_);
  std::copy_n(document_.data() + document_read_, count, into.data());
  document_read_ += count;
  return count;
}

// Replaces a JSON document by its lines. A text that turns out to be no document, or that is too large, is read as it
// is.
void LineReader::unroll() {
  std::string whole(buffer_.data(), end_);
  std::size_t got = 1;
  while (got != 0 && whole.size() < kLargestDocument) {
    const std::size_t before = whole.size();
    whole.resize(std::min(kLargestDocument, before + kBuffer));
    got = source_.read(std::span<char>(whole).subspan(before));
    whole.resize(before + got);
  }
  std::optional<std::string> lines = got == 0 ? lines_of_document(whole) : std::nullopt;
  document_ = lines ? *std::move(lines) : std::move(whole);
  begin_ = end_ = 0;
  (void)fill();
}

// Reads more bytes and puts them after the unread ones. Returns false at the end of the data.
bool LineReader::fill() {
  if (begin_ != 0) {
    std::memmove(buffer_.data(), buffer_.data() + begin_, end_ - begin_);
    end_ -= begin_;
    begin_ = 0;
  }
  if (end_ == buffer_.size()) return true;
  const std::size_t got = read(std::span<char>(buffer_).subspan(end_));
  end_ += got;
  bytes_read_ += got;
  return got != 0;
}

bool LineReader::next(std::string_view& line) {
  std::size_t seen = begin_;
  for (;;) {
    const char* from = buffer_.data() + seen;
    const void* newline = seen == end_ ? nullptr : std::memchr(from, '\n', end_ - seen);
    // Cut an overlong line only if it starts at the beginning of the buffer, so that its rest can be skipped in large
    // steps.
    if (newline != nullptr || (end_ - begin_ > kLongestLine && begin_ == 0)) {
      const std::size_t at =
          newline != nullptr ? static_cast<std::size_t>(static_cast<const char*>(newline) - buffer_.data()) : end_;
      line = {buffer_.data() + begin_, at - begin_};
      begin_ = std::min(at + 1, end_);
      if (line.size() > kLongestLine) {
        ++cut_;
        line = line.substr(0, kLongestLine);
      }
      if (newline == nullptr) {
        // Read the rest of this line into the buffer after the part that is returned, because that part must not be
        // overwritten.
        char* const rest = buffer_.data() + (line.data() - buffer_.data()) + line.size();
        const std::size_t room = static_cast<std::size_t>(buffer_.data() + buffer_.size() - rest);
        for (bool ended = false; !ended;) {
          const std::size_t got = read({rest, room});
          bytes_read_ += got;
          const void* end = got == 0 ? nullptr : std::memchr(rest, '\n', got);
          begin_ = end != nullptr ? static_cast<std::size_t>(static_cast<const char*>(end) - buffer_.data()) + 1 : 0;
          end_ = end != nullptr ? static_cast<std::size_t>(rest - buffer_.data()) + got : 0;
          ended = end != nullptr || got == 0;
        }
      }
      if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
      return true;
    }
    const std::size_t kept = end_ - begin_;
    if (!fill()) {
      if (kept == 0) return false;
      line = {buffer_.data() + begin_, kept};
      begin_ = end_;
      if (line.back() == '\r') line.remove_suffix(1);
      return true;
    }
    seen = begin_ + kept;
  }
}

bool LineReader::take(std::uint64_t count, std::string_view& bytes) {
  bytes = {};
  if (count > kLongestLine) {
    for (std::uint64_t left = count; left != 0;) {
      if (begin_ == end_ && !fill()) return false;
      const std::uint64_t now = std::min<std::uint64_t>(left, end_ - begin_);
      begin_ += static_cast<std::size_t>(now);
      left -= now;
    }
    ++cut_;
    return false;
  }
  while (end_ - begin_ < count) {
    if (!fill()) return false;
  }
  bytes = {buffer_.data() + begin_, static_cast<std::size_t>(count)};
  begin_ += static_cast<std::size_t>(count);
  return true;
}

}  // namespace rose::logs
