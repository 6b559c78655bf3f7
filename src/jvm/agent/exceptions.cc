#include "jvm/agent/exceptions.h"

#include <algorithm>

#include "jvm/agent/system.h"
#include "jvm/agent/text.h"

namespace rose::jvm {
namespace {

// At most this many exceptions are handled per second. Each costs about 50 us, and most are thrown and caught inside
// the JVM's own classes, where they are of no interest.
constexpr std::uint32_t kMostThrown = 1000;
constexpr std::size_t kMostEscapes = 8;  // at most this many methods are reported for one exception

// True if the class has several methods with this name.
bool overloaded(const Jvmti& jvmti, Object klass, std::string_view wanted) {
  std::int32_t count = 0;
  MethodId* methods = nullptr;
  if (jvmti.class_methods(klass, &count, &methods) != kNone) return false;
  std::size_t same = 0;
  for (std::int32_t i = 0; i < count; ++i) {
    char *name = nullptr, *descriptor = nullptr;
    std::int32_t flags = 0;
    if (jvmti.method_name(methods[i], &name, &descriptor) != kNone) continue;
    (void)jvmti.modifiers(methods[i], &flags);
    same += name == wanted && (static_cast<std::uint32_t>(flags) & kBridge) == 0 ? 1 : 0;
    jvmti.deallocate(name);
    jvmti.deallocate(descriptor);
  }
  jvmti.deallocate(methods);
  return same > 1;
}

}  // namespace

void Exceptions::begin(const Spec& spec, const Jvmti& jvmti) {
  spec_ = &spec;
  jvmti_ = jvmti;
  on_ = spec.watch.on && spec.watch.exceptions();
  for (const PlaceSpec* place : spec.places) on_ = on_ || !place->escaping.empty();
}

bool Exceptions::may_look(bool& first) {
  const std::int64_t second = now_ns() / 1'000'000'000;
  if (__atomic_exchange_n(&second_, second, __ATOMIC_RELAXED) != second)
    __atomic_store_n(&in_second_, 0, __ATOMIC_RELAXED);
  const std::uint32_t before = __atomic_fetch_add(&in_second_, 1, __ATOMIC_RELAXED);
  first = before == kMostThrown;
  return before < kMostThrown;
}

Exceptions::Thrower Exceptions::look_at(MethodId method) const {
  Thrower thrower;
  Object klass = nullptr;
  if (jvmti_.declaring_class(method, &klass) != kNone) return thrower;
  char *signature = nullptr, *source = nullptr, *name = nullptr, *descriptor = nullptr;
  if (jvmti_.class_signature(klass, &signature) == kNone && jvmti_.method_name(method, &name, &descriptor) == kNone) {
    const std::string class_name = class_of_signature(signature);
    std::int32_t flags = 0;
    (void)jvmti_.modifiers(method, &flags);
    if (jvmti_.source_file(klass, &source) != kNone) source = nullptr;
    const Method found{class_name, name, descriptor, source != nullptr ? source : "",
                       static_cast<std::uint32_t>(flags)};
    thrower.wanted = spec_->watch.on && std::binary_search(spec_->watch.thrower_sources.begin(),
                                                           spec_->watch.thrower_sources.end(), found.source);
    for (const NamePattern* pattern : spec_->watch.throwers)
      thrower.wanted = thrower.wanted || (spec_->watch.on && pattern->matches(found));
    for (const PlaceSpec* place : spec_->places)
      if (!place->escaping.empty() && place->pattern.matches(found)) thrower.places.push_back(place);
    if (thrower.wanted || !thrower.places.empty())
      thrower.name = display_name(class_name, name, descriptor, overloaded(jvmti_, klass, name));
  }
  for (char* text : {signature, source, name, descriptor})
    if (text != nullptr) jvmti_.deallocate(text);
  return thrower;
}

const Exceptions::Thrower& Exceptions::thrower(MethodId method) {
  const auto less = [](const auto& entry, MethodId wanted) { return entry.first < wanted; };
  auto at = std::lower_bound(throwers_.begin(), throwers_.end(), method, less);
  if (at == throwers_.end() || at->first != method) at = throwers_.insert(at, {method, new Thrower(look_at(method))});
  return *at->second;
}

void Exceptions::escapes(const FrameInfo* frames, std::int32_t count, MethodId catcher, std::string_view class_name,
                         WatchedMethods& watched, State& state, std::vector<const Escape*>& into) {
  for (std::int32_t i = 0; i < count && into.size() < kMostEscapes; ++i) {
    const bool caught = frames[i].method == catcher;
    const Thrower& from = thrower(frames[i].method);
    // A method that throws an exception and catches it itself counts as one that throws.
    const bool catches = caught && !into.empty();
    if (!from.name.empty() && (!catches || spec_->watch.catchers)) {
      const std::string what = std::string(catches ? kCatches : kThrows) + std::string(class_name);
      const std::pair<MethodId, std::string> key(frames[i].method, what);
      const auto less = [](const auto& entry, const auto& wanted) { return entry.first < wanted; };
      auto at = std::lower_bound(escapes_.begin(), escapes_.end(), key, less);
      if (at == escapes_.end() || at->first != key) {
        auto* made = new Escape;
        if (from.wanted && watched_ < kStateEscapes) {
          made->watched = watched.add(from.name + what, state);
          if (made->watched != nullptr) ++watched_, watched.held(*made->watched);
        } else if (from.wanted && !full_) {
          full_ = true;
          state.note(
              "only the first 1024 pairs of a method and an exception that it throws are watched: name fewer methods");
        }
        for (const PlaceSpec* place : from.places) {
          if (catches || !is_of_class(class_name, place->escaping)) continue;
          made->visit.entries.push_back(place->entry);
          made->visit.noted = made->visit.noted || place->noted;
        }
        at = escapes_.insert(at, {key, made});
      }
      into.push_back(at->second);
    }
    if (caught) break;
  }
}

}  // namespace rose::jvm
