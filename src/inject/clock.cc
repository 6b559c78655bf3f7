#include "inject/clock.h"

#ifdef __x86_64__
#include <asm/prctl.h>
#endif
#include <capstone/capstone.h>
#include <elf.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <sys/auxv.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <cstring>
#include <memory>
#include <optional>

#include "base/clock.h"
#include "base/fd.h"
#include "base/file.h"
#include "base/log.h"
#include "base/text.h"
#include "base/thread.h"
#include "base/units.h"
#include "kernel/arch.h"
#include "kernel/maps.h"

// The code in clock_hook.c. The linker defines the beginning and the end of its section (__start_ and __stop_).
extern "C" {
extern const unsigned char __start_rose_clock[], __stop_rose_clock[];
extern const unsigned char rose_clock_block[], rose_clock_rest[];
extern const unsigned char rose_clock_gettime[], rose_clock_gettimeofday[], rose_clock_time[];
}

namespace rose::inject {
namespace {

constexpr std::size_t kAlign = 64;
constexpr std::size_t kFunctionCount = ROSE_CLOCK_FUNCTIONS;
#ifdef __x86_64__
constexpr std::size_t kJump = 5;
constexpr const char* kFunctions[] = {"__vdso_clock_gettime", "__vdso_gettimeofday", "__vdso_time"};
#else
constexpr std::size_t kJump = 4;
constexpr const char* kFunctions[] = {"__kernel_clock_gettime", "__kernel_gettimeofday"};
#endif
// At most this many readings are reported per fault, even if fewer threads than wanted have read the clock. Each report
// costs a process about 50 us.
constexpr std::size_t kMostReports = 64;
constexpr std::int64_t kMostWaitNs = 2 * kSecond;    // for a thread to begin its wait
constexpr std::int64_t kReadsArgumentsNs = 500'000;  // CPU time: a call reads its arguments in less than this

kernel::MappedRange vdso_of(pid_t pid) {
  for (kernel::MappedRange& range : kernel::maps_of(pid))
    if (range.name == "[vdso]") return std::move(range);
  return {};
}

// What is written to a process's vDSO, with offsets from the beginning of its mapping. It is the same for all processes
// of a machine.
struct Recipe {
  std::size_t size = 0;
  std::size_t cave = 0;  // where `code` is written: the unused space behind the kernel's code
  std::string code;
  std::array<std::size_t, kFunctionCount> at{};           // the functions of the vDSO
  std::array<std::string, kFunctionCount> before, after;  // first 8 bytes of each function, original and changed
};

// The address at which the image defines a function; 0: not defined.
std::size_t symbol(std::string_view image, std::string_view name) {
  const auto read = [&](std::size_t at, auto& into) {
    if (at > image.size() || sizeof into > image.size() - at) return false;
    std::memcpy(&into, image.data() + at, sizeof into);
    return true;
  };
  Elf64_Ehdr head{};
  if (!read(0, head)) return 0;
  std::size_t strings = 0, symbols = 0, hash = 0;
  for (unsigned i = 0; i < head.e_phnum; ++i) {
    Elf64_Phdr segment{};
    if (!read(head.e_phoff + i * sizeof segment, segment)) return 0;
    if (segment.p_type != PT_DYNAMIC) continue;
    Elf64_Dyn entry{};
    for (std::size_t at = segment.p_offset; read(at, entry) && entry.d_tag != DT_NULL; at += sizeof entry) {
      if (entry.d_tag == DT_STRTAB) strings = entry.d_un.d_ptr;
      if (entry.d_tag == DT_SYMTAB) symbols = entry.d_un.d_ptr;
      if (entry.d_tag == DT_HASH) hash = entry.d_un.d_ptr;
    }
  }
  // A vDSO has fewer symbols than this. Their number is known only with DT_HASH: a GNU hash table does not store it.
  std::uint32_t count = 64;
  if (hash != 0 && !read(hash + 4, count)) return 0;
  for (std::uint32_t i = 0; symbols != 0 && i < count; ++i) {
    Elf64_Sym symbol{};
    if (!read(symbols + i * sizeof symbol, symbol) || strings + symbol.st_name >= image.size()) return 0;
    const std::string_view found(image.data() + strings + symbol.st_name);
    if (found == name && symbol.st_value != 0 && symbol.st_value + 8 <= image.size()) return symbol.st_value;
  }
  return 0;
}

// The size of the instructions at the beginning of `code` that must be moved to make space for a jump, in bytes; 0 if
// they cannot be moved.
#ifdef __x86_64__
std::size_t movable(std::string_view code, std::uint64_t address) {
  csh handle = 0;
  if (cs_open(CS_ARCH_X86, CS_MODE_64, &handle) != CS_ERR_OK) return 0;
  cs_option(handle, CS_OPT_DETAIL, CS_OPT_ON);
  cs_insn* list = nullptr;
  const std::size_t count =
      cs_disasm(handle, reinterpret_cast<const std::uint8_t*>(code.data()), code.size(), address, 0, &list);
  std::size_t length = 0;
  for (std::size_t i = 0; i < count && length < kJump; ++i) {
    const cs_detail& detail = *list[i].detail;
    bool fixed = (detail.x86.modrm & 0xc7) == 5;  // the operand is relative to the instruction's own address
    for (int k = 0; k < detail.groups_count; ++k)
      fixed =
          fixed || detail.groups[k] == CS_GRP_JUMP || detail.groups[k] == CS_GRP_CALL || detail.groups[k] == CS_GRP_RET;
    if (fixed) {
      length = 0;
      break;
    }
    length += list[i].size;
  }
  if (list != nullptr) cs_free(list, count);
  cs_close(&handle);
  return length >= kJump && length + kJump <= ROSE_CLOCK_DISPLACED ? length : 0;
}

std::string jump(std::size_t from, std::size_t to) {
  const auto distance =
      static_cast<std::int32_t>(static_cast<std::int64_t>(to) - static_cast<std::int64_t>(from + kJump));
  std::string code(kJump, '\xe9');
  std::memcpy(code.data() + 1, &distance, sizeof distance);
  return code;
}
#else
std::size_t movable(std::string_view code, std::uint64_t) {
  std::uint32_t instruction = 0;
  if (code.size() < sizeof instruction) return 0;
  std::memcpy(&instruction, code.data(), sizeof instruction);
  // Branches, adr and adrp, and loads of literals: these instructions depend on their own address.
  const bool fixed = (instruction & 0x1c000000) == 0x14000000 || (instruction & 0x1f000000) == 0x10000000 ||
                     (instruction & 0x3b000000) == 0x18000000;
  return fixed ? 0 : sizeof instruction;
}

std::string jump(std::size_t from, std::size_t to) {
  const auto words = (static_cast<std::int64_t>(to) - static_cast<std::int64_t>(from)) / 4;
  const std::uint32_t branch = 0x14000000U | (static_cast<std::uint32_t>(words) & 0x03ffffffU);
  return {reinterpret_cast<const char*>(&branch), sizeof branch};
}
#endif

Result<Recipe> make_recipe() {
  const auto lacking = [](std::string_view what) {
    return fail(ErrorKind::environment, fmt::format("clocks cannot be changed on this machine: {}", what),
                "clock faults need the vDSO of Debian's or the upstream Linux kernel");
  };
  const kernel::MappedRange range = vdso_of(::getpid());
  if (range.begin == 0) return lacking("processes have no vDSO");
  Recipe recipe;
  recipe.size = range.end - range.begin;
  const std::string_view image(reinterpret_cast<const char*>(range.begin), recipe.size);
  std::size_t end = image.size();
  while (end > 0 && image[end - 1] == '\0') --end;
  recipe.cave = (end + kAlign - 1) / kAlign * kAlign;
  recipe.code.assign(reinterpret_cast<const char*>(__start_rose_clock),
                     static_cast<std::size_t>(__stop_rose_clock - __start_rose_clock));
  if (recipe.cave + recipe.code.size() > image.size())
    return lacking(fmt::format("its vDSO has {} free bytes, {} are needed", image.size() - end, recipe.code.size()));
#ifdef __x86_64__
  const unsigned char* const targets[] = {rose_clock_gettime, rose_clock_gettimeofday, rose_clock_time};
#else
  const unsigned char* const targets[] = {rose_clock_gettime, rose_clock_gettimeofday};
#endif
  const auto offset = [](const unsigned char* place) { return static_cast<std::size_t>(place - __start_rose_clock); };
  const auto block = offset(rose_clock_block);
  rose_clock_parameters parameters{};
  parameters.magic = ROSE_CLOCK_MAGIC;
  for (std::size_t i = 0; i < kFunctionCount; ++i) {
    recipe.at[i] = symbol(image, kFunctions[i]);
    if (recipe.at[i] == 0) return lacking(fmt::format("its vDSO has no {}", kFunctions[i]));
    recipe.before[i] = image.substr(recipe.at[i], 8);
    recipe.after[i] = jump(recipe.at[i], recipe.cave + offset(targets[i])) + recipe.before[i].substr(kJump);
    std::memcpy(parameters.heads[i], recipe.before[i].data(), 8);
  }
  const std::size_t moved = movable(image.substr(recipe.at[0], ROSE_CLOCK_DISPLACED), range.begin + recipe.at[0]);
  if (moved == 0) return lacking("the code of its vDSO begins with instructions that cannot be moved");
  const std::size_t rest = offset(rose_clock_rest);
  recipe.code.replace(rest, moved, image.substr(recipe.at[0], moved));
  recipe.code.replace(rest + moved, kJump, jump(recipe.cave + rest + moved, recipe.at[0] + moved));
  recipe.code.replace(block, sizeof parameters,
                      std::string(reinterpret_cast<const char*>(&parameters), sizeof parameters));
  return recipe;
}

const Result<Recipe>& recipe() {
  static const Result<Recipe> made = make_recipe();
  return made;
}

bool transfer(int fd, bool write, std::uint64_t address, void* data, std::size_t size) {
  const auto done = write ? ::pwrite(fd, data, size, static_cast<off_t>(address))
                          : ::pread(fd, data, size, static_cast<off_t>(address));
  return done == static_cast<ssize_t>(size);
}

// Call this before reading anything else about the process: the file stays bound to the memory of this process, even if
// another process gets its id later.
Fd memory_of(pid_t pid) { return Fd(::open(fmt::format("/proc/{}/mem", pid).c_str(), O_RDWR | O_CLOEXEC)); }

using Shifts = std::array<rose_clock_shift, ROSE_CLOCK_GROUPS>;

// The address of the parameters in a hooked process; 0 if the process has no hook.
std::uint64_t block_in(int memory, const kernel::MappedRange& vdso) {
  if (!recipe() || vdso.end - vdso.begin != recipe()->size) return 0;
  const std::uint64_t at =
      vdso.begin + recipe()->cave + static_cast<std::size_t>(rose_clock_block - __start_rose_clock);
  unsigned long magic = 0;
  return transfer(memory, false, at, &magic, sizeof magic) && magic == ROSE_CLOCK_MAGIC ? at : 0;
}

// Writes the shifts. There are two copies of them: the process reads one while the other is written.
bool write_shifts(int memory, std::uint64_t block, const Shifts& shifts, unsigned long announce) {
  // Write `announce` before the shifts, so that the first reading of a wrong clock is reported.
  if (!transfer(memory, true, block + offsetof(rose_clock_parameters, announce), &announce, sizeof announce))
    return false;
  unsigned long version = 0;
  Shifts now{};
  const std::uint64_t at = block + offsetof(rose_clock_parameters, version);
  const auto place = [&](unsigned long which) {
    return block + offsetof(rose_clock_parameters, shift) + (which & 1) * sizeof(rose_clock_shift) * ROSE_CLOCK_GROUPS;
  };
  if (!transfer(memory, false, at, &version, sizeof version) ||
      !transfer(memory, false, place(version), now.data(), sizeof now))
    return false;
  if (std::memcmp(now.data(), shifts.data(), sizeof now) == 0) return true;
  Shifts next = shifts;
  if (!transfer(memory, true, place(++version), next.data(), sizeof next)) return false;
  return transfer(memory, true, at, &version, sizeof version);
}

std::int64_t read_clock(int clock) {
  timespec now{};
  ::clock_gettime(clock, &now);
  return now.tv_sec * kSecond + now.tv_nsec;
}

ClockSum::Now clocks_now() { return {read_clock(CLOCK_REALTIME), read_clock(CLOCK_MONOTONIC)}; }

std::array<long, 2> split_ns(std::int64_t ns) { return {ns / kSecond, ns % kSecond}; }

// True if the thread waits inside the call or has left it. In both cases, the call has read its arguments from memory.
bool has_begun(pid_t tid, int number) {
  const std::string where = read_file(fmt::format("/proc/{}/wchan", tid), 128).value_or("gone");
  if (where.find("seccomp") != std::string::npos) return false;
  if (!where.empty() && where != "0") return true;
  const std::string call = read_file(fmt::format("/proc/{}/syscall", tid), 256).value_or("gone");
  return !call.starts_with("running") && !call.starts_with(fmt::format("{} ", number));
}

// The CPU time of the thread in ns (Documentation/scheduler/sched-stats: time on cpu). A thread that has run for longer
// than kReadsArgumentsNs must have read the arguments of its call.
std::int64_t processor_ns(pid_t tid) {
  return std::atoll(read_file(fmt::format("/proc/{}/schedstat", tid), 128).value_or("0").c_str());
}

int clock_of_timer(pid_t tid, int fd) {
  const std::string info = read_file(fmt::format("/proc/{}/fdinfo/{}", tid, fd), 4096).value_or("");
  const std::size_t at = info.find("clockid:");
  return at == std::string::npos ? -1 : std::atoi(info.c_str() + at + 8);
}

// True for the call with which the C library of a new program sets up the main thread. The program has not read a clock
// yet.
bool is_first([[maybe_unused]] const NotifiedCall& call) {
#ifdef __x86_64__
  return call.argument(0) == ARCH_SET_FS;
#else
  return true;
#endif
}

}  // namespace

// Pure functions

void ClockSum::begin(std::size_t fault, const schedule::ClockChange& change, const Now& now) {
  active_[fault] = {change, now};
}

Shifts ClockSum::shifts(const Now& now) const {
  constexpr double kOne = 4294967296.0;
  Shifts all{};
  for (std::size_t group = 0; group < ROSE_CLOCK_GROUPS; ++group) {
    rose_clock_shift& shift = all[group];
    shift.base = now[group];
    const bool frozen = std::any_of(active_.begin(), active_.end(), [group](const auto& entry) {
      return entry.second.change.freeze && (group == 0 ? entry.second.change.realtime : entry.second.change.monotonic);
    });
    bool stands = false;
    for (const auto& [fault, active] : active_) {
      if (!(group == 0 ? active.change.realtime : active.change.monotonic)) continue;
      shift.offset += active.change.shift_ns;
      if (frozen ? !active.change.freeze || stands : active.change.drift == 1) continue;
      stands = true;
      const long rate = active.change.freeze ? -(1L << 32) : std::lround((active.change.drift - 1) * kOne);
      shift.offset += rose_clock_more(std::array{rose_clock_shift{0, active.began[group], rate}}.data(), now[group]);
      shift.rate += rate;
    }
    if (shift.offset == 0 && shift.rate == 0) shift.base = 0;
  }
  return all;
}

std::vector<std::size_t> ClockSum::of_group(std::size_t group) const {
  std::vector<std::size_t> faults;
  for (const auto& [fault, active] : active_)
    if (group == 0 ? active.change.realtime : active.change.monotonic) faults.push_back(fault);
  return faults;
}

std::int64_t real_time_of(std::int64_t shown, const rose_clock_shift& shift, std::int64_t now) {
  const std::int64_t shows = now + rose_clock_more(&shift, now);
  if (shown <= shows) return std::min(shown, now);  // the time has already passed
  const double speed = 1 + static_cast<double>(shift.rate) / 4294967296.0;
  const auto ahead = static_cast<double>(shown - shows) / (speed > 0 ? speed : 1);
  return ahead > 9e18 - static_cast<double>(now) ? INT64_MAX : now + static_cast<std::int64_t>(ahead);
}

// Processes of a node

Result<void> NodeClocks::check() {
  if (!recipe()) return UnexpectedOf(recipe().error());
  return {};
}

void NodeClocks::begin(std::size_t fault, const schedule::ClockChange& change) {
  const std::lock_guard lock(mutex_);
  const auto now = clocks_now();
  sum_.begin(fault, change, now);
  now_ = sum_.shifts(now);
}

void NodeClocks::end(std::size_t fault) {
  const std::lock_guard lock(mutex_);
  sum_.end(fault);
  now_ = sum_.shifts(clocks_now());
}

std::size_t NodeClocks::update(const std::vector<pid_t>& pids) {
  const std::lock_guard lock(mutex_);
  std::size_t updated = 0;
  for (const pid_t pid : pids) {
    const Fd memory = memory_of(pid);
    const std::uint64_t block = memory ? block_in(memory.get(), vdso_of(pid)) : 0;
    if (block != 0 && write_shifts(memory.get(), block, now_, announced())) ++updated;
  }
  return updated;
}

// Hooks a newly executed program before it reads a clock. The program has only one thread at that time. The thread may
// end meanwhile, and another process may get its id. `vdso` is then the mapping of the other process, but `memory` is
// still that of the first process, and nothing is written unless the expected code is found there.
void NodeClocks::hook(const NotifiedCall& call, const std::function<bool()>& alive) {
  const Fd memory = call.memory(alive);
  const kernel::MappedRange vdso = vdso_of(call.tid());
  if (!memory || vdso.begin == 0 || !recipe() || vdso.end - vdso.begin != recipe()->size) return;
  const std::lock_guard lock(mutex_);
  std::uint64_t block = block_in(memory.get(), vdso);
  if (block == 0) {
    const Recipe& how = *recipe();
    std::string code = how.code;
    for (std::size_t i = 0; i < kFunctionCount; ++i) {
      std::string head(8, '\0');
      if (!transfer(memory.get(), false, vdso.begin + how.at[i], head.data(), head.size()) || head != how.before[i])
        return;
    }
    if (!transfer(memory.get(), true, vdso.begin + how.cave, code.data(), code.size())) return;
    block = block_in(memory.get(), vdso);
    if (block == 0 || !write_shifts(memory.get(), block, now_, announced())) return;
    for (std::size_t i = 0; i < kFunctionCount; ++i) {
      std::string head = how.after[i];
      if (!transfer(memory.get(), true, vdso.begin + how.at[i], head.data(), head.size())) return;
    }
    return;
  }
  (void)write_shifts(memory.get(), block, now_, announced());
}

bool NodeClocks::reported_enough(std::size_t fault) const {
  const auto reports = read_.find(fault);
  return reports != read_.end() &&
         (reports->second.threads.size() >= most_readers_ || reports->second.count >= kMostReports);
}

// The groups of clocks that faults have made wrong and whose readings the hook must still report, one bit per group.
unsigned long NodeClocks::announced() const {
  unsigned long groups = 0;
  for (std::size_t group = 0; group < ROSE_CLOCK_GROUPS; ++group)
    for (const std::size_t fault : sum_.of_group(group))
      if (!reported_enough(fault)) groups |= 1UL << group;
  return groups;
}

void NodeClocks::was_read(int group, const Reader& reader) {
  std::vector<std::size_t> fresh, of_thread;
  {
    const std::lock_guard lock(mutex_);
    for (const std::size_t fault : sum_.of_group(static_cast<std::size_t>(group))) {
      Reports& reports = read_[fault];
      if (reports.count++ == 0) fresh.push_back(fault);
      if (reports.threads.size() < most_readers_ && reports.threads.insert(reader.call.tid()).second)
        of_thread.push_back(fault);
    }
  }
  for (const std::size_t fault : fresh)
    if (on_read_) on_read_(fault);
  for (const std::size_t fault : of_thread) on_reader_(fault, reader);
}

bool NodeClocks::take_read_report(NotifiedCall& call) {
  if (call.number() != SYS_clock_gettime || call.argument(1) - ROSE_CLOCK_READ >= ROSE_CLOCK_GROUPS) return false;
  was_read(static_cast<int>(call.argument(1) - ROSE_CLOCK_READ), {call, call.argument(2), call.argument(3)});
  (void)update({call.tid()});
  return true;
}

rose_clock_shift NodeClocks::shift_of(int clock) const {
  const int group = rose_clock_group(clock);
  const std::lock_guard lock(mutex_);
  return group < 0 ? rose_clock_shift{} : now_[static_cast<std::size_t>(group)];
}

NodeClocks::Answer NodeClocks::answer(NotifiedCall& call, std::uint64_t ip, const std::function<bool()>& alive) {
  switch (call.number()) {
    case kernel::kFirstCall:
      if (is_first(call)) hook(call, alive);
      return {};
    case SYS_clock_gettime:
    case SYS_gettimeofday: return read_for(call, ip, alive);
#ifdef SYS_time
    case SYS_time: return read_for(call, ip, alive);
#endif
    case SYS_futex: {
      const auto operation = static_cast<int>(call.argument(1));
      if ((operation & FUTEX_CMD_MASK) != FUTEX_WAIT_BITSET || call.argument(3) == 0) return {};
      return wait_for(call, (operation & FUTEX_CLOCK_REALTIME) != 0 ? CLOCK_REALTIME : CLOCK_MONOTONIC,
                      call.argument(3), alive);
    }
    case SYS_clock_nanosleep:
      if ((call.argument(1) & TIMER_ABSTIME) == 0) return {};
      return wait_for(call, static_cast<int>(call.argument(0)), call.argument(2), alive);
    case SYS_timerfd_settime:
      if ((call.argument(1) & TFD_TIMER_ABSTIME) == 0) return {};
      return wait_for(call, clock_of_timer(call.tid(), static_cast<int>(call.argument(0))),
                      call.argument(2) + sizeof(timespec), alive);
    default: return {};
  }
}

// Answers a program that reads a clock by a system call. If the call comes from the vDSO itself, it is left to the
// kernel, because the hook adjusts the result afterwards.
NodeClocks::Answer NodeClocks::read_for(NotifiedCall& call, std::uint64_t ip, const std::function<bool()>& alive) {
  const int clock = call.number() == SYS_clock_gettime ? static_cast<int>(call.argument(0)) : CLOCK_REALTIME;
  const rose_clock_shift shift = shift_of(clock);
  if (shift.offset == 0 && shift.rate == 0) return {};
  const kernel::MappedRange vdso = vdso_of(call.tid());
  if (ip >= vdso.begin && ip < vdso.end) return {};
  const std::int64_t now = read_clock(clock);
  const long more = rose_clock_more(&shift, now);
  if (more != 0) was_read(rose_clock_group(clock), {call});
  std::array<long, 2> shown = split_ns(now + more);
  Answer answer;
  answer.done = true;
#ifdef SYS_time
  if (call.number() == SYS_time) {
    answer.result = shown[0];
    if (call.argument(0) != 0 && !call.write_memory(call.argument(0), shown.data(), sizeof shown[0], alive))
      answer.result = -EFAULT;
    return answer;
  }
#endif
  std::uint64_t to = call.argument(1);
  if (call.number() == SYS_gettimeofday) {
    // A call that asks for the time zone, or for nothing, is left to the kernel.
    if (call.argument(1) != 0 || call.argument(0) == 0) return {};
    shown[1] /= 1000;
    to = call.argument(0);
  }
  if (!call.write_memory(to, shown.data(), sizeof shown, alive)) answer.result = -EFAULT;
  return answer;
}

// Answers a call that waits for a time that has already passed, as the kernel would. If the kernel executed the call,
// it would return at once, before rose could restore the caller's memory (see wait_for()). Returns nothing if the
// kernel must execute the call.
std::optional<NodeClocks::Answer> NodeClocks::passed(NotifiedCall& call) {
  Answer answer;
  answer.done = true;
  if (call.number() == SYS_clock_nanosleep) return answer;
  // A timer must be set even if its time has passed. The kernel refuses a futex call whose bitset is empty.
  if (call.number() != SYS_futex || call.argument(5) == 0) return std::nullopt;
  std::uint32_t value = 0;
  const std::string word = call.read_memory(call.argument(0), sizeof value);
  if (word.size() != sizeof value) return std::nullopt;
  std::memcpy(&value, word.data(), sizeof value);
  answer.result = value == static_cast<std::uint32_t>(call.argument(2)) ? -ETIMEDOUT : -EAGAIN;
  return answer;
}

// The kernel knows only the real clock. Therefore, the time in the caller's memory is replaced by the corresponding
// real time, and restored when the call has read it.
NodeClocks::Answer NodeClocks::wait_for(NotifiedCall& call, int clock, std::uint64_t address,
                                        const std::function<bool()>& alive) {
  const rose_clock_shift shift = shift_of(clock);
  if (shift.offset == 0 && shift.rate == 0) return {};
  const std::string bytes = call.read_memory(address, sizeof(std::array<long, 2>));
  std::array<long, 2> wanted{};
  if (bytes.size() != sizeof wanted) return {};
  std::memcpy(wanted.data(), bytes.data(), sizeof wanted);
  // Leave these values to the kernel: zero stops a timer, invalid values are refused, and times that are too late to
  // be converted to ns are never reached.
  if (wanted[0] < 0 || wanted[1] < 0 || wanted[1] >= kSecond || (wanted[0] == 0 && wanted[1] == 0) ||
      wanted[0] > INT64_MAX / kSecond - 1)
    return {};
  const std::int64_t now = read_clock(clock);
  const std::int64_t real = std::max<std::int64_t>(real_time_of(wanted[0] * kSecond + wanted[1], shift, now), 1);
  if (rose_clock_more(&shift, now) != 0) was_read(rose_clock_group(clock), {call});
  if (real <= now) {
    if (auto at_once = passed(call)) return *at_once;
  }
  std::array<long, 2> instead = split_ns(real);
  // Run with real-time priority, because the program can see the changed value until its own value is restored.
  const auto ahead = std::make_shared<RunsAhead>();
  const auto memory = std::make_shared<const Fd>(call.memory(alive));
  if (!*memory || !transfer(memory->get(), true, address, instead.data(), sizeof instead)) return {};
  Answer answer;
  answer.afterwards = [ahead, memory, tid = call.tid(), number = call.number(), address, wanted, instead] {
    const std::int64_t until = monotonic_ns() + kMostWaitNs;
    const std::int64_t ran = processor_ns(tid);
    for (int i = 0; !has_begun(tid, number) && processor_ns(tid) < ran + kReadsArgumentsNs && monotonic_ns() < until;
         ++i)
      if (i > 20) ::usleep(50);
    std::array<long, 2> there{};
    auto back = wanted;
    // Do not restore the value if the program has written another one meanwhile.
    if (transfer(memory->get(), false, address, there.data(), sizeof there) && there == instead)
      transfer(memory->get(), true, address, back.data(), sizeof back);
  };
  return answer;
}

}  // namespace rose::inject
