// The functions of rose_rr.h as typed functions for C++17 and later. Header only.
#pragma once

#include <functional>
#include <mutex>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "rose_rr.h"

namespace rose::rr {

inline bool replaying() { return rose_rr_replaying() != 0; }
inline bool on() { return rose_rr_on() != 0; }

// Records a number, or a struct without pointers and padding. In a replay, the value is replaced by the recorded one.
template <typename T, typename = std::enable_if_t<std::is_trivially_copyable_v<T> && !std::is_pointer_v<T>>>
void record(const char* key, T& value) {
  rose_rr_record(key, &value, sizeof value);
}
// Records a string of any length.
inline void record(const char* key, std::string& bytes) {
  if (!on()) return;
  if (replaying()) bytes.resize(rose_rr_lock(key));
  rose_rr_record_sized(key, bytes.data(), bytes.size(), bytes.size());
}
// Returns the result of make(). In a replay, make() is not called, and the recorded result is returned. Example:
// auto seed = recorded("seed", [] { return std::random_device{}(); });
template <typename Make>
auto recorded(const char* key, Make make) -> decltype(make()) {
  decltype(make()) value{};
  if (!replaying()) value = make();
  record(key, value);
  return value;
}
inline void compare(const char* key, std::string_view bytes) { rose_rr_compare(key, bytes.data(), bytes.size()); }

// Locks a mutex whose acquisition order matters. `lock` is a std::unique_lock that does not own its mutex yet.
template <typename Lock>
void lock_in_order(const char* key, Lock& lock) {
  rose_rr_lock(key);
  lock.lock();
  rose_rr_locked(key);
}

// `function` is kept as long as the process exists. Its arguments are the key and the recorded bytes.
inline void reproducer(const char* key, std::function<void(std::string_view, std::string_view)> function) {
  using Function = std::function<void(std::string_view, std::string_view)>;
  if (!replaying()) return;
  rose_rr_reproducer(
      key,
      [](void* context, const char* of, const void* data, std::size_t size) {
        (*static_cast<Function*>(context))(of, {static_cast<const char*>(data), size});
      },
      new Function(std::move(function)));
}

}  // namespace rose::rr
