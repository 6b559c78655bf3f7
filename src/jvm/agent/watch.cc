// Sets and removes breakpoints. The agent's own thread sets breakpoints again that were lost when another tool changed
// a class.
#include "jvm/agent/agent.h"
#include "jvm/agent/stubs.h"
#include "jvm/agent/system.h"

namespace rose::jvm {
namespace {

constexpr std::int64_t kLookNs = 50'000'000;

}  // namespace

void Agent::hold(Jni jni, Place& place) {
  if (place.users++ > 0) return;
  // The local reference keeps the class from being unloaded until the breakpoint is set.
  const Object klass = jni.new_local(place.klass);
  if (klass == nullptr) return;
  const std::int32_t error = jvmti_.set_breakpoint(place.method, place.location);
  jni.delete_local(klass);
  if (error != kNone && error != kDuplicate) {
    for (const std::uint32_t entry : place.entered.entries) state_.note("this JVM refuses a breakpoint there", entry);
  }
  for (Place* guard : place.guards) hold(jni, *guard);
}

void Agent::release(Jni jni, Place& place) {
  if (place.users == 0 || --place.users > 0) return;
  const Object klass = jni.new_local(place.klass);
  if (klass == nullptr) return;
  (void)jvmti_.clear_breakpoint(place.method, place.location);
  jni.delete_local(klass);
  for (Place* guard : place.guards) release(jni, *guard);
}

// Call this under the lock.
void Agent::look_at_watched(Jni jni) {
  const WatchedMethods::Changes changes = watched_.look();
  for (Watched* one : changes.gone) {
    if (one->place != nullptr) release(jni, *one->place);
    if (!spec_.watch.count) rose_jvm_enter(one->name, 1);
  }
  for (Watched* one : changes.again) {
    if (one->place != nullptr) hold(jni, *one->place);
    watched_.held(*one);
  }
}

void Agent::watch(Jni jni) {
  while (!__atomic_load_n(&ending_, __ATOMIC_ACQUIRE)) {
    stacks_.answer(jni);
    {
      const Lock lock(mutex_);
      if (!redefined_.empty()) follow_redefined(jni);
      if (watched_.on()) look_at_watched(jni);
    }
    if (const std::int64_t until = __atomic_load_n(&paused_until_ns_, __ATOMIC_ACQUIRE);
        until != 0 && now_ns() >= until) {
      __atomic_store_n(&paused_until_ns_, 0, __ATOMIC_RELEASE);
      (void)jvmti_.set_event(true, Event::exception);
    }
    stacks_.wait(kLookNs);
  }
  stacks_.live(false);
}

bool Agent::is_class(Jni jni, Object weak, Object klass) const {
  const Object own = jni.new_local(weak);
  const bool same = own != nullptr && jni.same(own, klass);
  if (own != nullptr) jni.delete_local(own);
  return same;
}

// Sets the breakpoints of changed classes again. A class that another tool changes loses its breakpoints when the
// change takes effect, which is shortly after the change was announced. As long as the JVM refuses a second breakpoint
// at the same location (kDuplicate), the change has not taken effect. Call this under the lock.
void Agent::follow_redefined(Jni jni) {
  const std::int64_t now = now_ns();
  std::vector<Redefined> waiting;
  for (const Redefined& one : redefined_) {
    const Object klass = jni.new_local(one.klass);
    const Place* probe = nullptr;
    for (const Place* place : places_.all()) {
      if (klass != nullptr && place->users > 0 && probe == nullptr && is_class(jni, place->klass, klass)) probe = place;
    }
    const std::int32_t error = probe != nullptr ? jvmti_.set_breakpoint(probe->method, probe->location) : kNotFound;
    if (error == kDuplicate && now < one.until_ns) {
      waiting.push_back(one);
    } else {
      jni.delete_weak(one.klass);
      if (error == kNone) {
        prepare(jni, klass);
      }
    }
    if (klass != nullptr) jni.delete_local(klass);
  }
  redefined_.swap(waiting);
}

}  // namespace rose::jvm
