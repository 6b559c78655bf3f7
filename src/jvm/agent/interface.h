// The parts of the JVM's native interfaces that the agent uses, declared from their specifications, so that building rose takes no
// JDK. Functions stand in tables: JVM TI numbers them from 1 ("position"), JNI from 0 ("index"). Private to the agent.
#pragma once

#include <cstdint>

namespace rose::jvm {

using Object = void*;    // jobject, jclass, jstring, jthrowable, jthread
using MethodId = void*;  // jmethodID
using Location = std::int64_t;

union Value {  // jvalue
  std::int32_t i;
  std::int64_t j;
  Object l;
};

enum JvmtiError : std::int32_t {
  kNone = 0,
  kDuplicate = 40,
  kNotFound = 41,
};

enum class Event : std::int32_t {
  vm_init = 50,
  vm_death = 51,
  thread_start = 52,
  thread_end = 53,
  class_file_load_hook = 54,
  class_prepare = 56,
  breakpoint = 62,
};

// Callbacks by event, from 50 on.
struct EventCallbacks {
  void* by_event[37] = {};
  template <typename Function>
  void set(Event event, Function* function) {
    by_event[static_cast<int>(event) - 50] = reinterpret_cast<void*>(function);
  }
};

struct Capabilities {
  std::uint32_t words[4] = {};
  void add(int bit) { words[bit / 32] |= 1U << (bit % 32); }
  [[nodiscard]] bool has(int bit) const { return (words[bit / 32] >> (bit % 32) & 1) != 0; }
};
inline constexpr int kCanGetBytecodes = 3;
inline constexpr int kCanGetSourceFileName = 11;
inline constexpr int kCanGetLineNumbers = 12;
inline constexpr int kCanGenerateBreakpointEvents = 19;
inline constexpr int kCanGetConstantPool = 35;
inline constexpr int kCanRetransformClasses = 37;
inline constexpr int kCanSupportVirtualThreads = 44;

struct FrameInfo {
  MethodId method;
  Location location;
};

struct LineEntry {
  Location start;
  std::int32_t line;
};

class Table {
 public:
  explicit Table(void* environment = nullptr) : environment_(environment) {}
  [[nodiscard]] void* environment() const { return environment_; }

 protected:
  template <typename Result, int index, typename... Arguments>
  Result call(Arguments... arguments) const {
    using Function = Result (*)(void*, Arguments...);
    void** table = *static_cast<void***>(environment_);
    return reinterpret_cast<Function>(table[index])(environment_, arguments...);
  }
  void* environment_;
};

class Jvmti : public Table {
 public:
  using Table::Table;
  template <int position, typename... Arguments>
  std::int32_t at(Arguments... arguments) const {
    return call<std::int32_t, position - 1>(arguments...);
  }
  // `thread` null: all threads.
  std::int32_t set_event(bool on, Event event, Object thread = nullptr) const {
    using Function = std::int32_t (*)(void*, std::int32_t, std::int32_t, Object, ...);
    void** table = *static_cast<void***>(environment_);
    return reinterpret_cast<Function>(table[1])(environment_, on ? 1 : 0, static_cast<std::int32_t>(event), thread);
  }
  std::int32_t run_agent_thread(Object thread, void (*run)(void*, void*, void*), const void* argument, std::int32_t priority) const {
    return at<12>(thread, run, argument, priority);
  }
  std::int32_t set_breakpoint(MethodId method, Location location) const { return at<38>(method, location); }
  std::int32_t clear_breakpoint(MethodId method, Location location) const { return at<39>(method, location); }
  // `thread` null: the calling one.
  std::int32_t stack_trace(Object thread, std::int32_t first, std::int32_t most, FrameInfo* frames, std::int32_t* count) const {
    return at<104>(thread, first, most, frames, count);
  }
  std::int32_t declaring_class(MethodId method, Object* klass) const { return at<65>(method, klass); }
  void deallocate(void* memory) const { (void)at<47>(static_cast<unsigned char*>(memory)); }
  std::int32_t class_signature(Object klass, char** signature) const {
    return at<48>(klass, signature, static_cast<char**>(nullptr));
  }
  std::int32_t class_status(Object klass, std::int32_t* status) const { return at<49>(klass, status); }
  std::int32_t source_file(Object klass, char** name) const { return at<50>(klass, name); }
  std::int32_t class_methods(Object klass, std::int32_t* count, MethodId** methods) const { return at<52>(klass, count, methods); }
  std::int32_t method_name(MethodId method, char** name, char** descriptor) const {
    return at<64>(method, name, descriptor, static_cast<char**>(nullptr));
  }
  std::int32_t modifiers(MethodId method, std::int32_t* flags) const { return at<66>(method, flags); }
  std::int32_t line_table(MethodId method, std::int32_t* count, LineEntry** table) const { return at<70>(method, count, table); }
  std::int32_t bytecodes(MethodId method, std::int32_t* count, unsigned char** code) const { return at<75>(method, count, code); }
  std::int32_t loaded_classes(std::int32_t* count, Object** classes) const { return at<78>(count, classes); }
  std::int32_t set_callbacks(const EventCallbacks* callbacks) const {
    return at<122>(callbacks, static_cast<std::int32_t>(sizeof *callbacks));
  }
  std::int32_t system_property(const char* name, char** value) const { return at<131>(name, value); }
  std::int32_t potential_capabilities(Capabilities* capabilities) const { return at<140>(capabilities); }
  std::int32_t constant_pool(Object klass, std::int32_t* count, std::int32_t* size, unsigned char** bytes) const {
    return at<146>(klass, count, size, bytes);
  }
  std::int32_t add_capabilities(const Capabilities* capabilities) const { return at<142>(capabilities); }
};

class Jni : public Table {
 public:
  using Table::Table;
  [[nodiscard]] Object find_class(const char* name) const { return call<Object, 6>(name); }
  std::int32_t throw_object(Object exception) const { return call<std::int32_t, 13>(exception); }
  std::int32_t throw_new(Object klass, const char* message) const { return call<std::int32_t, 14>(klass, message); }
  [[nodiscard]] Object exception() const { return call<Object, 15>(); }
  void clear_exception() const { call<void, 17>(); }
  void delete_local(Object object) const { call<void, 23>(object); }
  [[nodiscard]] bool same(Object a, Object b) const { return call<std::uint8_t, 24>(a, b) != 0; }
  [[nodiscard]] Object new_local(Object object) const { return call<Object, 25>(object); }
  [[nodiscard]] Object allocate(Object klass) const { return call<Object, 27>(klass); }
  [[nodiscard]] Object new_object(Object klass, MethodId constructor, const Value* arguments) const {
    return call<Object, 30>(klass, constructor, arguments);
  }
  [[nodiscard]] MethodId method(Object klass, const char* name, const char* descriptor) const {
    return call<MethodId, 33>(klass, name, descriptor);
  }
  [[nodiscard]] bool is_assignable(Object from, Object to) const { return call<std::uint8_t, 11>(from, to) != 0; }
  [[nodiscard]] Object new_string(const char* text) const { return call<Object, 167>(text); }
  [[nodiscard]] Object new_weak(Object object) const { return call<Object, 226>(object); }
  void delete_weak(Object object) const { call<void, 227>(object); }
};

// JavaVM: only how to get the other tables.
class Vm : public Table {
 public:
  using Table::Table;
  std::int32_t environment(void** into, std::int32_t version) const { return call<std::int32_t, 6>(into, version); }
};

}  // namespace rose::jvm
