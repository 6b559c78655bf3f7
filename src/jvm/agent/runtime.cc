// What the standard library's headers need from its shared half, which the agent does without: it is loaded into JVMs
// built for glibc old and new and for musl, and must not bring a C++ runtime into somebody else's process.
#include <cstdlib>
#include <new>

// Out of memory, or a broken invariant: the JVM would not survive either.
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
