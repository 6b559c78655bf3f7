#include "logs/line/bytes.h"

#include <bzlib.h>
#include <fcntl.h>
#include <lzma.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <vector>

#include "base/folder.h"
#include "base/text.h"
#include "base/units.h"

namespace rose::logs {
namespace {

constexpr std::size_t kPacked = std::size_t{256} << 10;  // at most this many bytes are read from the file at once
// In bytes, for xz and zstd. Data that need a larger window are refused.
constexpr std::uint64_t kMostDecoderMemory = std::uint64_t{128} << 20;

enum class Step { more, end, damaged };

// A decoder. step() consumes bytes from `in` and fills `out`; it shortens both spans. It returns Step::end when one
// compressed stream is complete; another stream may follow.
class Unpacker {
 public:
  Unpacker() = default;
  Unpacker(const Unpacker&) = delete;
  Unpacker& operator=(const Unpacker&) = delete;
  virtual ~Unpacker() = default;
  virtual Step step(std::span<const char>& in, std::span<char>& out) = 0;
  virtual bool again() = 0;  // prepares for the stream that follows in the same file
};

class Gzip final : public Unpacker {
 public:
  Gzip() { ready_ = ::inflateInit2(&stream_, 15 + 16) == Z_OK; }
  ~Gzip() override {
    if (ready_) ::inflateEnd(&stream_);
  }
  Step step(std::span<const char>& in, std::span<char>& out) override {
    if (!ready_) return Step::damaged;
    stream_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(in.data()));
    stream_.avail_in = static_cast<uInt>(in.size());
    stream_.next_out = reinterpret_cast<Bytef*>(out.data());
    stream_.avail_out = static_cast<uInt>(out.size());
    const int state = ::inflate(&stream_, Z_NO_FLUSH);
    in = in.last(stream_.avail_in);
    out = out.last(stream_.avail_out);
    if (state == Z_STREAM_END) return Step::end;
    return state == Z_OK || state == Z_BUF_ERROR ? Step::more : Step::damaged;
  }
  bool again() override { return ::inflateReset(&stream_) == Z_OK; }

 private:
  z_stream stream_{};
  bool ready_ = false;
};

class Xz final : public Unpacker {
 public:
  // Without LZMA_CONCATENATED, the decoder stops at the end of each stream, as the decoders of the other formats do.
  Xz() { ready_ = ::lzma_stream_decoder(&stream_, kMostDecoderMemory, 0) == LZMA_OK; }
  ~Xz() override { ::lzma_end(&stream_); }
  Step step(std::span<const char>& in, std::span<char>& out) override {
    if (!ready_) return Step::damaged;
    stream_.next_in = reinterpret_cast<const std::uint8_t*>(in.data());
    stream_.avail_in = in.size();
    stream_.next_out = reinterpret_cast<std::uint8_t*>(out.data());
    stream_.avail_out = out.size();
    const lzma_ret state = ::lzma_code(&stream_, LZMA_RUN);
    in = in.last(stream_.avail_in);
    out = out.last(stream_.avail_out);
    if (state == LZMA_STREAM_END) return Step::end;
    return state == LZMA_OK || state == LZMA_BUF_ERROR ? Step::more : Step::damaged;
  }
  bool again() override { return ::lzma_stream_decoder(&stream_, kMostDecoderMemory, 0) == LZMA_OK; }

 private:
  lzma_stream stream_ = LZMA_STREAM_INIT;
  bool ready_ = false;
};

class Zstd final : public Unpacker {
 public:
  Zstd() : stream_(::ZSTD_createDStream()) {
    if (stream_ != nullptr) ::ZSTD_DCtx_setParameter(stream_, ZSTD_d_windowLogMax, 27);  // 128 MiB
  }
  ~Zstd() override { ::ZSTD_freeDStream(stream_); }
  Step step(std::span<const char>& in, std::span<char>& out) override {
    if (stream_ == nullptr) return Step::damaged;
    ZSTD_inBuffer from{in.data(), in.size(), 0};
    ZSTD_outBuffer to{out.data(), out.size(), 0};
    const std::size_t state = ::ZSTD_decompressStream(stream_, &to, &from);
    in = in.subspan(from.pos);
    out = out.subspan(to.pos);
    if (::ZSTD_isError(state) != 0) return Step::damaged;
    return state == 0 ? Step::end : Step::more;
  }
  bool again() override { return true; }

 private:
  ZSTD_DStream* stream_;
};

class Bzip2 final : public Unpacker {
 public:
  Bzip2() { ready_ = ::BZ2_bzDecompressInit(&stream_, 0, 0) == BZ_OK; }
  ~Bzip2() override {
    if (ready_) ::BZ2_bzDecompressEnd(&stream_);
  }
  Step step(std::span<const char>& in, std::span<char>& out) override {
    if (!ready_) return Step::damaged;
    stream_.next_in = const_cast<char*>(in.data());
    stream_.avail_in = static_cast<unsigned>(in.size());
    stream_.next_out = out.data();
    stream_.avail_out = static_cast<unsigned>(out.size());
    const int state = ::BZ2_bzDecompress(&stream_);
    in = in.last(stream_.avail_in);
    out = out.last(stream_.avail_out);
    if (state == BZ_STREAM_END) return Step::end;
    return state == BZ_OK ? Step::more : Step::damaged;
  }
  bool again() override {
    if (ready_) ::BZ2_bzDecompressEnd(&stream_);
    stream_ = {};
    ready_ = ::BZ2_bzDecompressInit(&stream_, 0, 0) == BZ_OK;
    return ready_;
  }

 private:
  bz_stream stream_{};
  bool ready_ = false;
};

std::string_view packing_of(std::string_view head) {
  using namespace std::string_view_literals;
  if (head.starts_with("\x1f\x8b"sv)) return "gzip";
  if (head.starts_with("\xfd\x37zXZ\0"sv)) return "xz";
  if (head.starts_with("\x28\xb5\x2f\xfd"sv)) return "zstd";
  if (head.size() >= 4 && head.starts_with("BZh"sv) && head[3] >= '1' && head[3] <= '9') return "bzip2";
  return {};
}

std::unique_ptr<Unpacker> unpacker(std::string_view packing) {
  if (packing == "gzip") return std::make_unique<Gzip>();
  if (packing == "xz") return std::make_unique<Xz>();
  if (packing == "zstd") return std::make_unique<Zstd>();
  return std::make_unique<Bzip2>();
}

}  // namespace

struct Bytes::Inner {
  Fd file;
  std::string memory;  // the content if there is no file
  std::size_t memory_at = 0;
  std::uint64_t size = 0;
  std::int64_t modified_ns = 0;
  std::string_view packing;
  std::unique_ptr<Unpacker> unpack;
  std::vector<char> packed;  // bytes that were read from the file and not decoded yet
  std::span<const char> left;
  std::uint64_t given = 0;
  bool over = false;
  std::string damage;

  // Reads the stored bytes, without decoding them.
  std::size_t raw(std::span<char> into) {
    if (!file) {
      const std::size_t now = std::min(into.size(), memory.size() - memory_at);
      std::memcpy(into.data(), memory.data() + memory_at, now);
      memory_at += now;
      return now;
    }
    std::size_t done = 0;
    while (done < into.size()) {
      const ssize_t got = ::read(file.get(), into.data() + done, into.size() - done);
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) damage = fmt::format("reading stopped: {}", std::strerror(errno));
      if (got <= 0) break;
      done += static_cast<std::size_t>(got);
    }
    return done;
  }

  // Reads the next part of the compressed file. Returns false at the end of the file.
  bool refill() {
    const std::size_t got = raw(packed);
    left = std::span<const char>(packed.data(), got);
    return got != 0;
  }

  void begin() {
    packed.resize(kPacked);
    (void)refill();
    packing = packing_of({left.data(), left.size()});
    if (!packing.empty()) unpack = unpacker(packing);
  }

  std::size_t plain(std::span<char> into) {
    const std::size_t now = std::min(into.size(), left.size());
    if (now != 0) std::memcpy(into.data(), left.data(), now);
    left = left.subspan(now);
    return now + (now < into.size() ? raw(into.subspan(now)) : 0);
  }

  std::size_t unpacked(std::span<char> into) {
    std::span<char> out = into;
    while (!out.empty() && !over) {
      if (left.empty() && !refill()) {
        damage = fmt::format("the {} data end in the middle", packing);
        over = true;
        break;
      }
      const std::size_t before = left.size() + out.size();
      const Step step = unpack->step(left, out);
      if (step == Step::end) {
        // Several compressed streams that follow each other are one text. Other bytes after the last stream are ignored
        // as padding.
        if (left.empty()) (void)refill();
        if (left.empty() || packing_of({left.data(), left.size()}) != packing || !unpack->again()) over = true;
      } else if (step == Step::damaged || (left.size() + out.size() == before && !left.empty())) {
        damage = fmt::format("the {} data are damaged", packing);
        over = true;
      }
    }
    return into.size() - out.size();
  }

  std::size_t read(std::span<char> into) {
    if (given >= kMostUnpacked && unpack) {
      if (!over)
        damage = fmt::format("only the first {} of the {} data were unpacked", format_size(kMostUnpacked), packing);
      over = true;
      return 0;
    }
    const std::size_t got = unpack ? unpacked(into) : plain(into);
    given += got;
    return got;
  }
};

Bytes::Bytes(std::unique_ptr<Inner> inner) : inner_(std::move(inner)) {}
Bytes::Bytes(Bytes&&) noexcept = default;
Bytes& Bytes::operator=(Bytes&&) noexcept = default;
Bytes::~Bytes() = default;

Result<Bytes> Bytes::open(const std::filesystem::path& path, const std::filesystem::path& folder) {
  auto inner = std::make_unique<Inner>();
  inner->file = folder.empty() ? Fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY)) : open_inside(folder, path);
  if (!inner->file) return fail_errno(ErrorKind::input, fmt::format("cannot open the log {}", path.string()), errno);
  struct stat status{};
  if (::fstat(inner->file.get(), &status) != 0)
    return fail_errno(ErrorKind::input, fmt::format("cannot read the log {}", path.string()), errno);
  if (!S_ISREG(status.st_mode) && !S_ISFIFO(status.st_mode))
    return fail(ErrorKind::input, fmt::format("{} is not a log: a file or a pipe is needed", path.string()),
                S_ISDIR(status.st_mode) ? "name the files in it" : "");
  if (S_ISREG(status.st_mode)) {
    inner->size = static_cast<std::uint64_t>(status.st_size);
    inner->modified_ns = status.st_mtim.tv_sec * kSecond + status.st_mtim.tv_nsec;
    ::posix_fadvise(inner->file.get(), 0, 0, POSIX_FADV_SEQUENTIAL);
  }
  inner->begin();
  return Bytes(std::move(inner));
}

Bytes Bytes::of(std::string content) {
  auto inner = std::make_unique<Inner>();
  inner->size = content.size();
  inner->memory = std::move(content);
  inner->begin();
  return Bytes(std::move(inner));
}

std::size_t Bytes::read(std::span<char> into) { return inner_->read(into); }
std::string_view Bytes::packing() const { return inner_->packing; }
const std::string& Bytes::damage() const { return inner_->damage; }
std::uint64_t Bytes::file_size() const { return inner_->size; }
std::int64_t Bytes::modified_ns() const { return inner_->modified_ns; }

}  // namespace rose::logs
