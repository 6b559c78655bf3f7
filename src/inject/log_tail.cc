#include "inject/log_tail.h"

#include <unistd.h>

#include <algorithm>

#include "base/folder.h"

namespace rose::inject {
namespace {

constexpr std::size_t kSamples = 64;

}  // namespace

LogTail::LogTail(std::vector<std::filesystem::path> files, std::filesystem::path folder)
    : files_(std::move(files)), folder_(std::move(folder)) {}

void LogTail::sample(std::uint64_t now) {
  Sample sample{.at = now, .sizes = {}};
  for (const auto& file : files_) {
    const auto status = status_inside(folder_, file);
    sample.sizes.push_back(status ? static_cast<std::uint64_t>(status->st_size) : 0);
  }
  if (samples_.size() == kSamples) samples_.erase(samples_.begin());
  samples_.push_back(std::move(sample));
}

void LogTail::begin(Reader& reader, std::uint64_t since) const {
  reader.files.clear();
  for (const auto& file : files_) reader.files.emplace_back(file, folder_);
  reader.begun = true;
  if (since == 0) return;
  const Sample* last = nullptr;
  for (const auto& sample : samples_) {
    if (sample.at <= since) last = &sample;
  }
  if (last == nullptr) return;
  for (std::size_t i = 0; i < files_.size(); ++i) {
    // A line that was incomplete at the sample and was completed later counts as new, so start at its beginning.
    std::uint64_t offset = last->sizes[i];
    const Fd file = open_inside(folder_, files_[i]);
    const std::uint64_t back = std::min<std::uint64_t>(offset, 4096);
    std::string text(back, '\0');
    if (file &&
        ::pread(file.get(), text.data(), back, static_cast<off_t>(offset - back)) == static_cast<ssize_t>(back)) {
      const auto newline = text.rfind('\n');
      if (newline != std::string::npos) {
        offset -= back - newline - 1;
      } else if (back == offset) {
        offset = 0;
      }
    }
    reader.files[i].begin_at(offset);
  }
}

void LogTail::read(Reader& reader, const std::function<bool(std::string_view)>& line) {
  // The number of reads is limited, because a node may write without end. The rest is read the next time.
  constexpr int kMostReads = 16;
  bool going = true;
  for (LogFollower& file : reader.files) {
    for (int i = 0; going && i < kMostReads; ++i)
      if (!file.read([&](std::string_view text) { return going = line(text); })) break;
  }
}

}  // namespace rose::inject
