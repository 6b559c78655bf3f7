// Functions whose calls src/symbols has to find and distinguish. The file is built in several ways (see
// CMakeLists.txt), and never executed.
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define APART __attribute__((noinline, noclone, visibility("hidden")))

#ifdef __x86_64__
// The lengths of its instructions in bytes: 1, 5, 2, 3, 5, 2, 1, 1.
__asm__(
    ".text\n"
    ".globl known_layout\n"
    ".type known_layout,@function\n"
    "known_layout:\n"
    "  push %rbx\n"         // 0
    "  mov $1, %eax\n"      // 1: the number of write
    "  syscall\n"           // 6
    "  test %rax, %rax\n"   // 8
    "  lock incl (%rsp)\n"  // 11: no probe can be placed here (f0 ff 04 24)
    "  js 1f\n"             // 15
    "  nop\n"               // 17
    "1: pop %rbx\n"         // 18
    "  ret\n"               // 19
    ".size known_layout, .-known_layout\n");
#else
long known_layout(void) { return 0; }
#endif

int (*volatile hook)(int) = abs;

APART int only_computes(int x) {
  __asm__ volatile("" ::: "memory");
  return x * 3;
}

APART long raw_write(int fd, const char* text, unsigned long length) {
#ifndef __x86_64__
  return syscall(SYS_write, fd, text, length);
#else
  long result;
  __asm__ volatile("syscall" : "=a"(result) : "0"(SYS_write), "D"(fd), "S"(text), "d"(length) : "rcx", "r11", "memory");
  return result;
#endif
}

APART int flush_log(int fd) { return write(fd, "log", 3) == 3 && only_computes(fd) > 0; }
APART int flush_twice(int fd) { return flush_log(fd) + flush_log(fd + 1); }
APART int ask(int fd) {
  char byte;
  return (int)read(fd, &byte, 1) + 1;
}
APART int recursive(int n) { return n <= 0 ? 0 : recursive(n / 2) + recursive(n / 3) + 1; }

APART int update(int fd, int data, const char* text) {
  char copy[64];
  if (pwrite(fd, text, strlen(text), 0) < 0) return -1;
  int sum = ask(fd);
  sum += only_computes(data);
  sum += flush_log(data);
  sum += flush_twice(data);
  memset(copy, sum, sizeof copy);
  sum += (int)raw_write(data, copy, sizeof copy);
  sum += hook(sum);
  sum += recursive(sum);
  if (fsync(data) != 0) abort();
  return sum;
}

// If the compiler optimises, the call of ftruncate() is a jump, because it is the last one.
APART int commit(int fd) { return ftruncate(fd, only_computes(fd)); }

APART int looped(int fd, int n) {
  int sum = 0;
  for (int i = 0; i < n; ++i) sum += (int)write(fd, "x", 1);
  return sum;
}

APART int cases(int n) {
  switch (n) {
    case 0: return only_computes(4);
    case 1: return open("/dev/null", O_RDONLY);
    case 2: return rename("a", "b");
    case 3: return unlink("a");
    case 4: return puts("five");
    case 5: return only_computes(9) + close(n);
    default: return n;
  }
}

extern long known_layout(void);

int main(int argc, char** argv) {
  int sum = update(argc, argc + 1, argv[0]) + commit(argc) + looped(argc, argc) + cases(argc);
  if (argc > 100) sum += (int)known_layout();
  return sum & 1;
}
