// The agent inside a JVM. It sets breakpoints at the locations of a schedule and reports each hit to rose's BPF
// programs by calling a function that these programs are attached to. It throws the exceptions that the BPF programs
// order, watches the entries of methods, and reports stacks. The BPF programs evaluate conditions and faults. On any
// error the JVM continues and rose is informed.
#pragma once

#include <pthread.h>

#include <string>
#include <vector>

#include "jvm/agent/code_file.h"
#include "jvm/agent/exceptions.h"
#include "jvm/agent/interface.h"
#include "jvm/agent/lock.h"
#include "jvm/agent/places.h"
#include "jvm/agent/spec.h"
#include "jvm/agent/stacks.h"
#include "jvm/agent/state.h"
#include "jvm/agent/values.h"
#include "jvm/agent/watched.h"
#include "jvm/bytecode.h"

namespace rose::jvm {

class Agent {
 public:
  // Called before the JVM executes code. `specification` is the path of the file.
  void load(Vm vm, std::string_view specification);

  // Handlers of events. Each is called in the thread that the event concerns.
  void on_start(Jni jni, Object thread);
  void on_thread(Jni jni, Object thread, bool begins);
  void on_class(Jni jni, Object klass);
  void on_class_file(Jni jni, Object redefined);
  void on_breakpoint(Jni jni, Object thread, MethodId method, Location location);
  void on_exception(Jni jni, Object exception, MethodId catcher);
  void on_method_exit(Jni jni, Object thread, MethodId method, bool by_exception, Value value);
  void on_end();
  // The body of the agent's own thread.
  void watch(Jni jni);

 private:
  struct Class;   // what prepare() knows about a class
  struct Wanted;  // the locations in one method whose breakpoints are not set yet

  bool may_set_breakpoints();
  void prepare(Jni jni, Object klass);
  void prepare_method(Class& klass, std::size_t index);
  void places_of(const Class& klass, std::size_t index, PlaceSpec& spec, Wanted& wanted);
  [[nodiscard]] std::vector<Location> stretches_of(MethodId method, Code code, std::int64_t wanted, bool calls) const;
  void asks_of(const Class& klass, std::size_t index, Wanted& wanted);
  bool variable(const Class& klass, std::size_t index, AskSpec& ask, Location location, PlacedQuery& asking);
  void placed(const Class& klass, std::size_t index, AskSpec& ask, std::string_view type);
  void complain(AskSpec& ask, std::string_view text);
  void report_values(Jni jni, const std::vector<const PlacedQuery*>& all);
  void guard(const Class& klass, std::size_t index, Wanted& wanted);
  void publish(Class& klass, std::size_t index, Wanted& wanted);
  void write_code(const Class& klass);
  void hold(Jni jni, Place& place);
  void release(Jni jni, Place& place);
  void look_at_watched(Jni jni);
  void follow_redefined(Jni jni);
  [[nodiscard]] bool is_class(Jni jni, Object weak, Object klass) const;

  bool visit(Jni jni, const Visit& visit);
  bool throw_exception(Jni jni, const Throw& thrown);
  [[nodiscard]] Object find_exception(Jni jni, const Throw& thrown);
  [[nodiscard]] bool choose_signal();

  Jvmti jvmti_;
  Spec spec_;
  State state_;
  ThreadStacks stacks_;
  pthread_mutex_t mutex_ = PTHREAD_MUTEX_INITIALIZER;  // protects everything below except atomics
  Places places_;
  WatchedMethods watched_;
  Exceptions exceptions_;
  // atomic: until this time exceptions are ignored, because there were too many; 0: exceptions are handled
  std::int64_t paused_until_ns_ = 0;
  bool reported_many_ = false;
  CodeFile code_;
  std::uint32_t signal_ = 0;
  bool breakpoints_ = false;
  bool variables_ = false, exits_ = false;  // whether variables and return values can be read
  bool live_ = false;                       // atomic: whether breakpoints can be set
  bool ending_ = false;                     // atomic
  struct Redefined {
    Object klass = nullptr;  // a weak reference
    std::int64_t until_ns = 0;
  };
  std::vector<Redefined> redefined_;
};

}  // namespace rose::jvm
