#include "jvm/agent/agent.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <utility>

#include "jvm/agent/stubs.h"
#include "jvm/agent/system.h"

namespace rose::jvm {
namespace {

constexpr std::size_t kMostSpec = std::size_t{64} << 20;
// If a thread spends more than this time in rose_jvm_visit, although no exception was ordered, the agent assumes that a
// fault stopped the thread there.
constexpr std::int64_t kStoodStillNs = 10'000'000;

std::string read_whole(const char* path) {
  std::string text;
  const int fd = ::open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return text;
  char buffer[4096];
  for (;;) {
    const ssize_t n = ::read(fd, buffer, sizeof buffer);
    if (n <= 0 || text.size() > kMostSpec) break;
    text.append(buffer, static_cast<std::size_t>(n));
  }
  ::close(fd);
  return text;
}

// Exceptions, which the BPF program orders by sending signals

// A thread inside rose_jvm_visit, and the number of signals it received there. It is not thread-local, because the
// signal handler uses it.
struct Ordered {
  int tid;
  int signals;
};
constexpr std::size_t kOrdered = 1024;
Ordered g_ordered[kOrdered];

void on_signal(int, siginfo_t* info, void*) {
  // Accept only signals from the kernel, not those of kill().
  if (info->si_code != SI_KERNEL) return;
  const int tid = thread_id();
  for (std::size_t i = 0; i < kOrdered; ++i) {
    auto& slot = g_ordered[(static_cast<std::size_t>(tid) + i) % kOrdered];
    const int owner = __atomic_load_n(&slot.tid, __ATOMIC_ACQUIRE);
    if (owner != tid) continue;
    ++slot.signals;
    return;
  }
}

Ordered* take_slot() {
  const int tid = thread_id();
  for (std::size_t i = 0; i < kOrdered; ++i) {
    auto& slot = g_ordered[(static_cast<std::size_t>(tid) + i) % kOrdered];
    int nobody = 0;
    if (!__atomic_compare_exchange_n(&slot.tid, &nobody, tid, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)) continue;
    slot.signals = 0;
    return &slot;
  }
  return nullptr;
}

// The `return` instruction that this thread has reached, if the returned value was requested.
__thread const Place* t_returning = nullptr;

// The entry of a method that this thread is about to reach by a jump instead of a call.
__thread const Place* t_jumping = nullptr;

Agent* g_agent = nullptr;

// The name of the class with dots instead of slashes.
std::string dotted(std::string_view class_name) { return class_of_signature("L" + std::string(class_name) + ";"); }

void vm_init(void*, void* jni, Object thread) { g_agent->on_start(Jni(jni), thread); }
void thread_start(void*, void* jni, Object thread) { g_agent->on_thread(Jni(jni), thread, true); }
void thread_end(void*, void* jni, Object thread) { g_agent->on_thread(Jni(jni), thread, false); }
void vm_death(void*, void*) { g_agent->on_end(); }
void class_prepare(void*, void* jni, Object, Object klass) { g_agent->on_class(Jni(jni), klass); }
void breakpoint(void*, void* jni, Object thread, MethodId method, Location location) {
  g_agent->on_breakpoint(Jni(jni), thread, method, location);
}
void method_exit(void*, void* jni, Object thread, MethodId method, std::uint8_t by_exception, Value value) {
  g_agent->on_method_exit(Jni(jni), thread, method, by_exception != 0, value);
}
void exception(void*, void* jni, Object, MethodId, Location, Object thrown, MethodId catcher, Location) {
  g_agent->on_exception(Jni(jni), thrown, catcher);
}
void class_file(void*, void* jni, Object redefined, Object, const char*, Object, std::int32_t, const unsigned char*,
                std::int32_t*, unsigned char**) {
  if (redefined != nullptr) g_agent->on_class_file(Jni(jni), redefined);
}
void agent_thread(void*, void* jni, void*) { g_agent->watch(Jni(jni)); }

// The JVM's arguments, from its command line and from the environment variables that it reads.
std::string jvm_arguments() {
  std::string all = read_whole("/proc/self/cmdline");
  // With `java @file`, the words in the file are arguments, too.
  std::string files;
  for (std::size_t begin = 0; begin < all.size();) {
    const std::size_t end = all.find('\0', begin);
    if (all[begin] == '@' && end != std::string::npos) files += read_whole(all.c_str() + begin + 1) + '\0';
    if (end == std::string::npos) break;
    begin = end + 1;
  }
  all += files;
  for (const char* name : {"JDK_JAVA_OPTIONS", "_JAVA_OPTIONS", "JAVA_TOOL_OPTIONS"}) {
    if (const char* value = std::getenv(name)) all += value;
    all += '\0';
  }
  return all;
}

}  // namespace

// Lifecycle

void Agent::load(Vm vm, std::string_view specification) {
  const std::string text = read_whole(std::string(specification).c_str());
  spec_ = parse_spec(text);
  state_.open(spec_.state);
  if (text.empty()) return state_.note("the agent's instructions cannot be read");
  if (spec_.damaged) state_.note("the agent and rose are of different versions: some instructions were not understood");
  void* environment = nullptr;
  if (vm.environment(&environment, 0x30010200) != 0) return state_.note("this JVM has no tool interface (JVM TI 1.2)");
  jvmti_ = Jvmti(environment);
  // If only stacks are requested, leave the breakpoints to other tools, such as a debugger.
  const bool places = !spec_.places.empty() || spec_.watch.on || !spec_.asks.empty();
  breakpoints_ = places && may_set_breakpoints();
  state_.head().breakpoints = breakpoints_ ? 1 : 0;
  if (spec_.stacks && !state_.path().empty()) {
    Capabilities wanted;
    wanted.add(kCanGetSourceFileName);
    wanted.add(kCanGetLineNumbers);
    (void)jvmti_.add_capabilities(&wanted);
    if (!stacks_.open(state_.path() + ".stacks", jvmti_))
      state_.note("the agent cannot create its file for stacks: the positions of threads are not reported");
  }
  char* version = nullptr;
  if (jvmti_.system_property("java.vm.version", &version) == kNone && version != nullptr) {
    std::strncpy(state_.head().version, version, sizeof state_.head().version - 1);
    jvmti_.deallocate(version);
  }
  if (!breakpoints_ && !stacks_.on()) return;
  if (breakpoints_ && spec_.watch.on) watched_.begin(spec_.watch);
  if (breakpoints_ && spec_.watch.on && spec_.watch.code && !state_.path().empty()) code_.open(state_.path() + ".code");
  g_agent = this;
  EventCallbacks callbacks;
  callbacks.set(Event::vm_init, vm_init);
  callbacks.set(Event::vm_death, vm_death);
  callbacks.set(Event::class_prepare, class_prepare);
  callbacks.set(Event::breakpoint, breakpoint);
  callbacks.set(Event::class_file_load_hook, class_file);
  callbacks.set(Event::method_exit, method_exit);
  callbacks.set(Event::exception, exception);
  callbacks.set(Event::thread_start, thread_start);
  callbacks.set(Event::thread_end, thread_end);
  if (jvmti_.set_callbacks(&callbacks) != kNone) return state_.note("this JVM's tool interface refuses callbacks");
  for (const Event event : {Event::vm_init, Event::vm_death, Event::class_prepare, Event::breakpoint,
                            Event::thread_start, Event::thread_end}) {
    if (!breakpoints_ && (event == Event::class_prepare || event == Event::breakpoint)) continue;
    if (!stacks_.on() && (event == Event::thread_start || event == Event::thread_end)) continue;
    if (jvmti_.set_event(true, event) != kNone)
      state_.note("this JVM's tool interface refuses an event that the agent needs");
  }
}

bool Agent::may_set_breakpoints() {
  // Only one tool can use breakpoints. A debugger that the JVM's command line requests may start after the agent. The
  // JVM would then fail to start it, because the agent already has this capability.
  const std::string arguments = jvm_arguments();
  for (const char* debugger : {"-agentlib:jdwp", "-Xrunjdwp", "-agentpath:jdwp", "libjdwp.so"}) {
    if (arguments.find(debugger) == std::string::npos) continue;
    state_.note(
        "a debugger (jdwp) is attached to this JVM, and only one tool can set breakpoints: start it without the "
        "debugger");
    return false;
  }
  Capabilities wanted;
  wanted.add(kCanGenerateBreakpointEvents);
  if (jvmti_.add_capabilities(&wanted) != kNone) {
    state_.note("another tool in this JVM has its breakpoints, and only one can: start it without that agent");
    return false;
  }
  wanted = {};
  wanted.add(kCanGetBytecodes);
  wanted.add(kCanGetSourceFileName);
  wanted.add(kCanGetLineNumbers);
  if (jvmti_.add_capabilities(&wanted) != kNone) {
    state_.note("this JVM's tool interface does not report bytecodes, lines and source files");
    return false;
  }
  // kCanSupportVirtualThreads does not exist before JDK 21. Without kCanRetransformClasses, the JVM does not report
  // that another tool changes a class; without kCanGetConstantPool, the locations of calls are unknown.
  Capabilities possible;
  if (jvmti_.potential_capabilities(&possible) == kNone) {
    wanted = {};
    for (const int one : {kCanSupportVirtualThreads, kCanRetransformClasses, kCanGetConstantPool}) {
      if (possible.has(one)) wanted.add(one);
    }
    (void)jvmti_.add_capabilities(&wanted);
  }
  for (const AskSpec* ask : spec_.asks) {
    if (ask->where == AskWhere::caller) continue;
    bool& able = ask->where == AskWhere::returned ? exits_ : variables_;
    if (able) continue;
    wanted = {};
    wanted.add(ask->where == AskWhere::returned ? kCanGenerateMethodExitEvents : kCanAccessLocalVariables);
    able = jvmti_.add_capabilities(&wanted) == kNone;
  }
  exceptions_.begin(spec_, jvmti_);
  if (exceptions_.on()) {
    wanted = {};
    wanted.add(kCanGenerateExceptionEvents);
    if (jvmti_.add_capabilities(&wanted) != kNone) state_.note("this JVM does not report exceptions");
  }
  for (const PlaceSpec* place : spec_.places) {
    if (place->thrown == nullptr || signal_ != 0) continue;
    if (!choose_signal()) state_.note("all real-time signals of this JVM are in use: no exception can be injected");
  }
  return true;
}

// Chooses an unused real-time signal. It searches from the highest number down, because the C library uses the lowest
// numbers itself.
bool Agent::choose_signal() {
  for (int number = 63; number > 40; --number) {
    struct sigaction old;
    if (::sigaction(number, nullptr, &old) != 0 || (old.sa_flags & SA_SIGINFO) != 0 || old.sa_handler != SIG_DFL)
      continue;
    struct sigaction ours;
    std::memset(&ours, 0, sizeof ours);
    ours.sa_sigaction = on_signal;
    ours.sa_flags = SA_SIGINFO | SA_RESTART | SA_ONSTACK;
    if (::sigaction(number, &ours, nullptr) != 0) continue;
    signal_ = static_cast<std::uint32_t>(number);
    return true;
  }
  return false;
}

void Agent::on_start(Jni jni, Object main) {
  __atomic_store_n(&live_, true, __ATOMIC_RELEASE);
  if (stacks_.on()) stacks_.thread_begins(jni, main);
  // The JVM loaded these classes before it could report them to on_class().
  std::int32_t count = 0;
  Object* classes = nullptr;
  if (breakpoints_ && jvmti_.loaded_classes(&count, &classes) == kNone) {
    for (std::int32_t i = 0; i < count; ++i) {
      std::int32_t status = 0;
      constexpr std::int32_t kPrepared = 2, kArray = 16, kPrimitive = 32;
      if (jvmti_.class_status(classes[i], &status) == kNone && (status & kPrepared) != 0 &&
          (status & (kArray | kPrimitive)) == 0)
        on_class(jni, classes[i]);
      jni.delete_local(classes[i]);
    }
    jvmti_.deallocate(classes);
  }
  if (breakpoints_ && exceptions_.on()) (void)jvmti_.set_event(true, Event::exception);
  // Enable this event only now: if it is enabled while the JVM loads its own classes, the JVM reads their class files,
  // although it has these classes in an archive.
  if (breakpoints_) (void)jvmti_.set_event(true, Event::class_file_load_hook);
  const Object klass = jni.find_class("java/lang/Thread");
  const MethodId constructor = klass != nullptr ? jni.method(klass, "<init>", "(Ljava/lang/String;)V") : nullptr;
  Value name;
  name.l = jni.new_string("rose");
  const Object thread = constructor != nullptr ? jni.new_object(klass, constructor, &name) : nullptr;
  if (jni.exception() != nullptr) jni.clear_exception();
  // Requests that arrive before the agent's thread runs are answered when it runs.
  stacks_.live(true);
  if (thread == nullptr || jvmti_.run_agent_thread(thread, agent_thread, nullptr, 5) != kNone) {
    stacks_.live(false);
    const Lock lock(mutex_);
    state_.note("the agent cannot start its thread in this JVM: places in classes that other tools change are lost");
  }
}

void Agent::on_thread(Jni jni, Object thread, bool begins) {
  if (begins) stacks_.thread_begins(jni, thread);
  else stacks_.thread_ends(jni);
}

void Agent::on_class(Jni jni, Object klass) {
  if (!__atomic_load_n(&live_, __ATOMIC_ACQUIRE)) return;
  const Lock lock(mutex_);
  prepare(jni, klass);
}

void Agent::on_class_file(Jni jni, Object redefined) {
  const Object weak = jni.new_weak(redefined);
  if (weak == nullptr) return;
  const Lock lock(mutex_);
  redefined_.push_back({weak, now_ns() + 10'000'000'000LL});
}

void Agent::on_end() { __atomic_store_n(&ending_, true, __ATOMIC_RELEASE); }

// Breakpoint hits

void Agent::on_breakpoint(Jni jni, Object thread, MethodId method, Location location) {
  const Place* place = places_.find(method, location);
  if (place == nullptr) return;
  const bool entered = t_jumping != place || location != 0;
  t_jumping = nullptr;
  if (location == 0 && entered && place->watched != nullptr) watched_.entered(*place->watched);
  if (location == 0 && entered) report_values(jni, place->at_entry);
  report_values(jni, place->at_pass);
  // The next method that this thread leaves is the one at `place`. The exit event is expensive, so enable it only until
  // then.
  if (!place->at_return.empty() && jvmti_.set_event(true, Event::method_exit, thread) == kNone) t_returning = place;
  const Visit& arrival = location == 0 && entered ? place->entered : place->passed;
  const bool thrown = !arrival.entries.empty() && visit(jni, arrival);
  // Set this last, because the Java code that visit() runs in this thread may reach other breakpoints.
  t_jumping = thrown ? nullptr : place->jumps_to;
}

void Agent::report_values(Jni jni, const std::vector<const PlacedQuery*>& all) {
  for (const PlacedQuery* asking : all) {
    std::string missing;
    if (asking->spec->where == AskWhere::caller) report_caller(jvmti_, jni, *asking);
    else report_variable(jvmti_, jni, *asking, missing);
    if (missing.empty()) continue;
    const Lock lock(mutex_);
    complain(*asking->spec, missing);
  }
}

void Agent::on_method_exit(Jni jni, Object thread, MethodId method, bool by_exception, Value value) {
  const Place* place = t_returning;
  t_returning = nullptr;
  (void)jvmti_.set_event(false, Event::method_exit, thread);
  if (place == nullptr || place->method != method || by_exception) return;
  for (const PlacedQuery* asking : place->at_return) {
    std::string missing;
    report_returned(jvmti_, jni, *asking, value, missing);
    if (missing.empty()) continue;
    const Lock lock(mutex_);
    complain(*asking->spec, missing);
  }
}

void Agent::on_exception(Jni jni, Object exception, MethodId catcher) {
  bool first = false;
  if (!exceptions_.may_look(first)) {
    if (!first) return;
    constexpr std::int64_t kPauseNs = 10'000'000'000;
    __atomic_store_n(&paused_until_ns_, now_ns() + kPauseNs, __ATOMIC_RELEASE);
    (void)jvmti_.set_event(false, Event::exception);
    const Lock lock(mutex_);
    if (!std::exchange(reported_many_, true))
      state_.note("more than 1000 exceptions a second: while there are so many, none is reported for 10 s at a time");
    return;
  }
  FrameInfo frames[kMostFramesSeen];
  std::int32_t count = 0;
  if (jvmti_.stack_trace(nullptr, 0, kMostFramesSeen, frames, &count) != kNone) return;
  const Object klass = jni.class_of(exception);
  char* signature = nullptr;
  if (jvmti_.class_signature(klass, &signature) != kNone) return;
  const std::string class_name = class_of_signature(signature);
  jvmti_.deallocate(signature);
  jni.delete_local(klass);
  std::vector<const Escape*> escapes;
  {
    const Lock lock(mutex_);
    exceptions_.escapes(frames, count, catcher, class_name, watched_, state_, escapes);
    for (const Escape* escape : escapes)
      if (escape->watched != nullptr && watched_.is_held(*escape->watched)) watched_.entered(*escape->watched);
  }
  for (const Escape* escape : escapes)
    if (!escape->visit.entries.empty()) visit(jni, escape->visit);
}

// Returns true if an exception is pending in the thread.
bool Agent::visit(Jni jni, const Visit& visit) {
  // Read the memory, so that the BPF program can read it without a page fault.
  std::uint32_t sum = 0;
  for (const std::uint32_t entry : visit.entries) sum |= entry;
  __asm__ volatile("" ::"r"(sum));
  const auto count = static_cast<std::uint32_t>(visit.entries.size());
  // The process may be killed or stopped in rose_jvm_visit(), so the stack must be recorded before.
  const StackSlot* noted = visit.noted && stacks_.on() ? stacks_.note(jni) : nullptr;
  if (visit.throws.empty() || signal_ == 0) {
    rose_jvm_visit(visit.entries.data(), count, 0);
    if (noted != nullptr && now_ns() - noted->at_ns > kStoodStillNs) stacks_.keep(*noted);
    return false;
  }
  // The thread may have been started with all signals blocked.
  sigset_t ours;
  sigemptyset(&ours);
  sigaddset(&ours, static_cast<int>(signal_));
  ::pthread_sigmask(SIG_UNBLOCK, &ours, nullptr);
  Ordered* slot = take_slot();
  if (slot == nullptr) {
    const Lock lock(mutex_);
    state_.note(
        "more than 1024 threads at once at places where exceptions may be thrown: one passed without an "
        "exception");
    return false;
  }
  rose_jvm_visit(visit.entries.data(), count, signal_);
  const auto ordered = static_cast<std::size_t>(__atomic_load_n(&slot->signals, __ATOMIC_ACQUIRE));
  __atomic_store_n(&slot->tid, 0, __ATOMIC_RELEASE);
  if (ordered == 0 || ordered > visit.throws.size()) return false;
  if (stacks_.on()) {
    if (noted == nullptr) noted = stacks_.note(jni);
    if (noted != nullptr) stacks_.keep(*noted);
  }
  return throw_exception(jni, *visit.throws[ordered - 1]);
}

bool Agent::throw_exception(Jni jni, const Throw& thrown) {
  const Object klass = find_exception(jni, thrown);
  if (klass == nullptr) return false;
  if (jni.throw_new(klass, thrown.message.c_str()) == 0) return true;
  // If the class has no constructor with a message, use the constructor without arguments. If it has none of these
  // either, allocate the object without calling a constructor.
  jni.clear_exception();
  const MethodId plain = jni.method(klass, "<init>", "()V");
  if (plain == nullptr) jni.clear_exception();
  Object exception = plain != nullptr ? jni.new_object(klass, plain, nullptr) : jni.allocate(klass);
  if (exception != nullptr && jni.throw_object(exception) == 0) return true;
  jni.clear_exception();
  const Lock lock(mutex_);
  state_.note("an exception of class " + dotted(thrown.class_name) + " could not be created", thrown.entry);
  return false;
}

// Finds the class as the throwing code would find it. If that fails, searches all loaded classes.
Object Agent::find_exception(Jni jni, const Throw& thrown) {
  Object klass = jni.find_class(thrown.class_name.c_str());
  if (klass == nullptr) {
    jni.clear_exception();
    std::int32_t count = 0;
    Object* classes = nullptr;
    const std::string wanted = 'L' + thrown.class_name + ';';
    if (jvmti_.loaded_classes(&count, &classes) == kNone) {
      for (std::int32_t i = 0; i < count; ++i) {
        char* signature = nullptr;
        const bool same =
            klass == nullptr && jvmti_.class_signature(classes[i], &signature) == kNone && wanted == signature;
        if (signature != nullptr) jvmti_.deallocate(signature);
        if (same) klass = classes[i];
        else jni.delete_local(classes[i]);
      }
      jvmti_.deallocate(classes);
    }
  }
  const Object throwable = klass != nullptr ? jni.find_class("java/lang/Throwable") : nullptr;
  if (throwable != nullptr && jni.is_assignable(klass, throwable)) return klass;
  const Lock lock(mutex_);
  state_.note((klass == nullptr ? "this JVM has no class " : "not an exception: class ") + dotted(thrown.class_name),
              thrown.entry);
  return nullptr;
}

}  // namespace rose::jvm

extern "C" __attribute__((visibility("default"))) std::int32_t Agent_OnLoad(void* vm, char* options, void*) {
  static rose::jvm::Agent* agent = nullptr;
  // The agent was given twice on the command line: ignore the second.
  if (agent != nullptr) return 0;
  agent = new rose::jvm::Agent;
  agent->load(rose::jvm::Vm(vm), options != nullptr ? options : "");
  return 0;
}
