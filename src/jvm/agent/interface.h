// Declares the parts of the JVM's native interfaces that the agent uses, from their specifications, so that building
// rose does not require a JDK. The functions are in tables. JVM TI numbers them from 1 ("position"), JNI from 0
// ("index"). Private to the agent.
#pragma once

#include <cstdint>

namespace rose::jvm {

using Object = void*;    // jobject, jclass, jstring, jthrowable, jthread
using MethodId = void*;  // jmethodID
using Location = std::int64_t;

using FieldId = void*;  // jfieldID

union Value {  // jvalue
  std::int32_t i;
  std::int64_t j;
  float f;
  double d;
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
  exception = 58,
  breakpoint = 62,
  method_exit = 66,
};

// Callbacks by event number. The first has number 50.
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
inline constexpr int kCanAccessLocalVariables = 14;
inline constexpr int kCanGenerateExceptionEvents = 17;
inline constexpr int kCanGenerateBreakpointEvents = 19;
inline constexpr int kCanGenerateMethodExitEvents = 25;
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

struct VariableEntry {
  Location start;
  std::int32_t length;
  char* name;
  char* signature;
  char* generic;
  std::int32_t slot;
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
  // A null `thread` means all threads.
  std::int32_t set_event(bool on, Event event, Object thread = nullptr) const {
    using Function = std::int32_t (*)(void*, std::int32_t, std::int32_t, Object, ...);
    void** table = *static_cast<void***>(environment_);
    return reinterpret_cast<Function>(table[1])(environment_, on ? 1 : 0, static_cast<std::int32_t>(event), thread);
  }
  std::int32_t run_agent_thread(Object thread, void (*run)(void*, void*, void*), const void* argument,
                                std::int32_t priority) const {
    return at<12>(thread, run, argument, priority);
  }
  std::int32_t set_breakpoint(MethodId method, Location location) const { return at<38>(method, location); }
  std::int32_t clear_breakpoint(MethodId method, Location location) const { return at<39>(method, location); }
  // A null `thread` means the calling thread.
  std::int32_t stack_trace(Object thread, std::int32_t first, std::int32_t most, FrameInfo* frames,
                           std::int32_t* count) const {
    return at<104>(thread, first, most, frames, count);
  }
  std::int32_t declaring_class(MethodId method, Object* klass) const { return at<65>(method, klass); }
  void deallocate(void* memory) const { (void)at<47>(static_cast<unsigned char*>(memory)); }
  std::int32_t class_signature(Object klass, char** signature) const {
    return at<48>(klass, signature, static_cast<char**>(nullptr));
  }
  std::int32_t class_status(Object klass, std::int32_t* status) const { return at<49>(klass, status); }
  std::int32_t source_file(Object klass, char** name) const { return at<50>(klass, name); }
  // local_object() and the four functions after it read a variable in the topmost frame of the calling thread.
  std::int32_t local_object(std::int32_t slot, Object* value) const {
    return at<21>(Object(nullptr), std::int32_t{0}, slot, value);
  }
  std::int32_t local_int(std::int32_t slot, std::int32_t* value) const {
    return at<22>(Object(nullptr), std::int32_t{0}, slot, value);
  }
  std::int32_t local_long(std::int32_t slot, std::int64_t* value) const {
    return at<23>(Object(nullptr), std::int32_t{0}, slot, value);
  }
  std::int32_t local_float(std::int32_t slot, float* value) const {
    return at<24>(Object(nullptr), std::int32_t{0}, slot, value);
  }
  std::int32_t local_double(std::int32_t slot, double* value) const {
    return at<25>(Object(nullptr), std::int32_t{0}, slot, value);
  }
  std::int32_t variable_table(MethodId method, std::int32_t* count, VariableEntry** table) const {
    return at<72>(method, count, table);
  }
  std::int32_t class_fields(Object klass, std::int32_t* count, FieldId** fields) const {
    return at<53>(klass, count, fields);
  }
  std::int32_t field_name(Object klass, FieldId field, char** name, char** signature) const {
    return at<60>(klass, field, name, signature, static_cast<char**>(nullptr));
  }
  std::int32_t field_modifiers(Object klass, FieldId field, std::int32_t* flags) const {
    return at<62>(klass, field, flags);
  }
  std::int32_t class_methods(Object klass, std::int32_t* count, MethodId** methods) const {
    return at<52>(klass, count, methods);
  }
  std::int32_t method_name(MethodId method, char** name, char** descriptor) const {
    return at<64>(method, name, descriptor, static_cast<char**>(nullptr));
  }
  std::int32_t modifiers(MethodId method, std::int32_t* flags) const { return at<66>(method, flags); }
  std::int32_t line_table(MethodId method, std::int32_t* count, LineEntry** table) const {
    return at<70>(method, count, table);
  }
  std::int32_t bytecodes(MethodId method, std::int32_t* count, unsigned char** code) const {
    return at<75>(method, count, code);
  }
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
  std::int32_t push_frame(std::int32_t most) const { return call<std::int32_t, 19>(most); }
  Object pop_frame() const { return call<Object, 20>(Object(nullptr)); }
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
  [[nodiscard]] Object superclass(Object klass) const { return call<Object, 10>(klass); }
  [[nodiscard]] Object class_of(Object object) const { return call<Object, 31>(object); }
  // Reads a field. `type` is the first letter of its signature. `fixed`: the field is static, and `holder` is its
  // class.
  [[nodiscard]] Value field(Object holder, FieldId field, char type, bool fixed) const {
    Value value;
    value.j = 0;
    switch (type) {
      case 'Z': value.j = fixed ? call<std::uint8_t, 146>(holder, field) : call<std::uint8_t, 96>(holder, field); break;
      case 'B': value.j = fixed ? call<std::int8_t, 147>(holder, field) : call<std::int8_t, 97>(holder, field); break;
      case 'C':
        value.j = fixed ? call<std::uint16_t, 148>(holder, field) : call<std::uint16_t, 98>(holder, field);
        break;
      case 'S': value.j = fixed ? call<std::int16_t, 149>(holder, field) : call<std::int16_t, 99>(holder, field); break;
      case 'I':
        value.j = fixed ? call<std::int32_t, 150>(holder, field) : call<std::int32_t, 100>(holder, field);
        break;
      case 'J':
        value.j = fixed ? call<std::int64_t, 151>(holder, field) : call<std::int64_t, 101>(holder, field);
        break;
      case 'F': value.f = fixed ? call<float, 152>(holder, field) : call<float, 102>(holder, field); break;
      case 'D': value.d = fixed ? call<double, 153>(holder, field) : call<double, 103>(holder, field); break;
      default: value.l = fixed ? call<Object, 145>(holder, field) : call<Object, 95>(holder, field); break;
    }
    return value;
  }
  [[nodiscard]] std::int32_t string_length(Object string) const { return call<std::int32_t, 164>(string); }
  [[nodiscard]] std::int32_t array_length(Object array) const { return call<std::int32_t, 171>(array); }
  void string_region(Object string, std::int32_t from, std::int32_t count, std::uint16_t* into) const {
    call<void, 220>(string, from, count, into);
  }
  [[nodiscard]] Object new_weak(Object object) const { return call<Object, 226>(object); }
  void delete_weak(Object object) const { call<void, 227>(object); }
};

// The table JavaVM, which is used only to get the other tables.
class Vm : public Table {
 public:
  using Table::Table;
  std::int32_t environment(void** into, std::int32_t version) const { return call<std::int32_t, 6>(into, version); }
};

}  // namespace rose::jvm
