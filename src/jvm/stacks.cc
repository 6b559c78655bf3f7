#include "jvm/stacks.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <cstddef>
#include <cstring>
#include <optional>

#include "base/ascii.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/folder.h"
#include "base/read_at.h"
#include "base/text.h"
#include "kernel/processes.h"

namespace rose::jvm {
namespace {

constexpr std::string_view kEnding = ".stacks";
constexpr std::size_t kNameDigits = 16;
constexpr std::int64_t kLookNs = 5'000'000;
// ns; a recording that is older than the event by more than this belongs to another visit
constexpr std::int64_t kLongBefore = 1'000'000'000;

// Text that the node wrote, without control characters.
std::string words_of(const char* bytes, std::size_t size) {
  std::string text(bytes, size);
  std::replace_if(
      text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; }, '?');
  return text;
}

template <typename Value>
std::optional<Value> value_at(std::string_view bytes, std::uint64_t at) {
  Value value;
  if (at > bytes.size() || bytes.size() - at < sizeof value) return std::nullopt;
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

JavaFrame frame_of(std::string_view bytes, std::uint32_t id, std::uint32_t names) {
  if (id == 0 || id > names || id > kStackNames) return {};
  const auto name = value_at<StackName>(bytes, kStacksNamesAt + std::uint64_t{id - 1} * sizeof(StackName));
  if (!name || std::size_t{name->function} + name->file > kStackText) return {};
  return {words_of(name->text, name->function), words_of(name->text + name->function, name->file),
          static_cast<int>(std::min<std::uint32_t>(name->line, INT_MAX))};
}

// True for frames that lead to the code of a lambda. Java's own stack traces omit such frames, too.
bool made_by_jvm(std::string_view function) {
  return function.find("$$Lambda") != std::string_view::npos || function.find("LambdaForm$") != std::string_view::npos;
}

std::optional<JavaStack> stack_in(std::string_view bytes, std::uint32_t index, std::uint32_t names) {
  const auto slot = value_at<StackSlot>(bytes, sizeof(StacksHead) + std::uint64_t{index} * sizeof(StackSlot));
  if (!slot || slot->tid == 0 || slot->count == 0 || slot->count > kStackFrames) return std::nullopt;
  JavaStack stack;
  stack.at_ns = slot->at_ns;
  stack.tid = slot->tid;
  stack.kept = index > kStackThreads;
  for (std::uint32_t i = 0; i < slot->count; ++i) {
    JavaFrame frame = frame_of(bytes, slot->frames[i], names);
    if (!made_by_jvm(frame.function)) stack.frames.push_back(std::move(frame));
  }
  if (slot->more != 0)
    stack.missing = fmt::format("outer frames are missing: Java's stack is deeper than {} frames", kStackFrames);
  return stack;
}

std::optional<StacksHead> head_of(std::string_view bytes) {
  const auto head = value_at<StacksHead>(bytes, 0);
  if (!head || head->magic != kStacksMagic) return std::nullopt;
  return head;
}

// Reads only the part of the file that is in use. The rest of the file is sparse.
std::string read_used(int fd) {
  StacksHead head;
  if (read_at(fd, &head, sizeof head, 0) != sizeof head || head.magic != kStacksMagic) return {};
  std::string bytes(kStacksNamesAt + std::uint64_t{std::min(head.names, kStackNames)} * sizeof(StackName), '\0');
  bytes.resize(read_at(fd, bytes.data(), bytes.size(), 0));
  return bytes;
}

// Maps the part of the file that contains the futex words. Only the kernel accesses them through the mapping: if the
// node truncated the file, an access by rose would kill rose with SIGBUS, whereas the kernel only returns an error.
class Futexes {
 public:
  explicit Futexes(int fd) : memory_(::mmap(nullptr, sizeof(StacksHead), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0)) {}
  ~Futexes() {
    if (memory_ != MAP_FAILED) ::munmap(memory_, sizeof(StacksHead));
  }
  Futexes(const Futexes&) = delete;
  Futexes& operator=(const Futexes&) = delete;
  [[nodiscard]] bool ok() const { return memory_ != MAP_FAILED; }
  void wake(std::size_t word) const { (void)::syscall(SYS_futex, at(word), FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0); }
  void wait(std::size_t word, std::uint32_t value, std::int64_t ns) const {
    const timespec time{ns / 1'000'000'000, ns % 1'000'000'000};
    (void)::syscall(SYS_futex, at(word), FUTEX_WAIT, value, &time, nullptr, 0);
  }

 private:
  [[nodiscard]] void* at(std::size_t word) const { return static_cast<char*>(memory_) + word; }
  void* memory_;
};

JavaStack without(std::string why) {
  JavaStack stack;
  stack.missing = std::move(why);
  return stack;
}

}  // namespace

std::string stacks_file(std::string_view maps) {
  for (std::size_t at = maps.find(kEnding); at != std::string_view::npos; at = maps.find(kEnding, at + 1)) {
    const std::size_t end = at + kEnding.size();
    if ((end < maps.size() && maps[end] != '\n') || at < kNameDigits + 1 || maps[at - kNameDigits - 1] != '/') continue;
    const std::string_view name = maps.substr(at - kNameDigits, kNameDigits);
    if (std::all_of(name.begin(), name.end(), [](char c) { return hex_digit(c) >= 0; }))
      return std::string(maps.substr(at - kNameDigits, kNameDigits + kEnding.size()));
  }
  return {};
}

JavaStack ask(const std::filesystem::path& file, pid_t tid) {
  // The folder belongs to the node, so the name may refer to anything, such as a symbolic link.
  const Result<OpenFolder> folder = OpenFolder::open(file.parent_path());
  const Fd fd = folder ? folder->file_to_change(file.filename()) : Fd();
  StacksHead head;
  const auto look = [&] {
    return read_at(fd.get(), &head, sizeof head, 0) == sizeof head && head.magic == kStacksMagic;
  };
  if (!fd || !look()) return without("the agent in the JVM left no file for requests");
  if (head.live == 0)
    return without("the JVM was still starting, or ended, and did not report the positions of its threads");
  const Futexes futexes(fd.get());
  if (!futexes.ok()) return without("the agent's file cannot be mapped");
  const std::uint32_t serial = head.asked + 1;
  const std::int32_t own = kernel::own_number(tid);
  if (::pwrite(fd.get(), &own, sizeof own, offsetof(StacksHead, asked_tid)) != static_cast<ssize_t>(sizeof own) ||
      ::pwrite(fd.get(), &serial, sizeof serial, offsetof(StacksHead, asked)) != static_cast<ssize_t>(sizeof serial))
    return without("the agent's file cannot be written");
  futexes.wake(offsetof(StacksHead, asked));
  const std::int64_t asked = monotonic_ns();
  std::int64_t begun = 0;
  while (look() && head.answered != serial) {
    const std::int64_t now = monotonic_ns();
    if (begun == 0 && head.begun == serial) begun = now;
    if (begun == 0 && now - asked >= kBeginNs)
      return without(
          fmt::format("Java's frames are missing: the JVM's agent did not run for {} ms", kBeginNs / 1'000'000));
    if (begun != 0 && now - begun >= kAskNs)
      return without(fmt::format(
          "Java's frames are missing: the thread was inside the JVM, which did not report its position within {} ms",
          kAskNs / 1'000'000));
    // No wake-up announces a change of `begun`, so poll it.
    futexes.wait(offsetof(StacksHead, answered), head.answered, begun == 0 ? kLookNs : kAskNs - (now - begun));
  }
  if (head.answer == static_cast<std::uint32_t>(StackAnswer::stranger)) return without("it is not a Java thread");
  const std::string bytes = read_used(fd.get());
  std::optional<JavaStack> stack =
      head.answer == static_cast<std::uint32_t>(StackAnswer::recorded) ? stack_in(bytes, 0, head.names) : std::nullopt;
  if (!stack || stack->tid != own) return without("the JVM does not report its Java frames");
  return *std::move(stack);
}

std::vector<JavaStack> parse_noted(std::string_view bytes) {
  std::vector<JavaStack> all;
  const auto head = head_of(bytes);
  if (!head) return all;
  const std::uint32_t end = 1 + kStackThreads + std::min(head->kept, kStackKept);
  for (std::uint32_t i = 1; i < end; ++i)
    if (std::optional<JavaStack> stack = stack_in(bytes, i, head->names)) all.push_back(*std::move(stack));
  return all;
}

std::vector<JavaStack> noted(const std::filesystem::path& folder) {
  std::vector<JavaStack> all;
  const Result<OpenFolder> states = OpenFolder::open(folder);
  if (!states) return all;
  for (const std::string& name : states->names()) {
    if (!name.ends_with(kEnding)) continue;
    const Fd fd = states->file(name);
    if (!fd) continue;
    for (JavaStack& stack : parse_noted(read_used(fd.get()))) all.push_back(std::move(stack));
  }
  return all;
}

const JavaStack* stack_of(const std::vector<JavaStack>& stacks, int tid, std::int64_t at_ns) {
  const JavaStack* best = nullptr;
  for (const JavaStack& one : stacks) {
    if (one.tid != tid || (one.at_ns > at_ns && !one.kept) || one.at_ns < at_ns - kLongBefore ||
        one.at_ns > at_ns + kLongBefore)
      continue;
    const auto apart = [&](const JavaStack& stack) { return std::abs(at_ns - stack.at_ns); };
    if (best == nullptr || apart(one) < apart(*best)) best = &one;
  }
  return best;
}

}  // namespace rose::jvm
