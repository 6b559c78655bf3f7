// Replacements for the parts of the C++ runtime that the standard headers need. The agent is loaded into JVMs that were
// built for old and new versions of glibc and for musl, so it must not bring a C++ runtime library into the process.
#include <cstdlib>
#include <new>

// Called if memory is exhausted or an invariant is broken. The JVM could not continue in these cases either.
[[noreturn]] static void give_up() { std::abort(); }

void* operator new(std::size_t size) {
  if (void* memory = std::malloc(size == 0 ? 1 : size)) return memory;
  give_up();
}
void* operator new[](std::size_t size) { return operator new(size); }
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::size_t) noexcept { std::free(memory); }

namespace std {
void __throw_length_error(const char*) { give_up(); }
void __throw_logic_error(const char*) { give_up(); }
void __throw_bad_alloc() { give_up(); }
void __throw_bad_array_new_length() { give_up(); }
void __throw_out_of_range_fmt(const char*, ...) { give_up(); }
void __glibcxx_assert_fail(const char*, int, const char*, const char*) noexcept { give_up(); }
}  // namespace std
