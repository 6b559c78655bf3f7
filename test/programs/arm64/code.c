// arm64 code for the tests of code readers (symbols/code.h, values.h). It is compiled on any machine and never runs.
extern long write(int file, const void *from, unsigned long bytes);
extern int rename(const char *from, const char *to);

#define NOINLINE __attribute__((noinline, visibility("hidden")))

NOINLINE long store(int file, const char *text, unsigned long bytes) { return write(file, text, bytes) + 1; }

NOINLINE long direct(int file, const char *text, unsigned long bytes) {
  register long x8 __asm__("x8") = 64;
  register long x0 __asm__("x0") = file;
  register const char *x1 __asm__("x1") = text;
  register unsigned long x2 __asm__("x2") = bytes;

  __asm__ volatile("svc #0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2) : "memory");
  return x0;
}

long update(int file, const char *text, unsigned long bytes, long (*then)(long)) {
  long sum = 0;

  for (unsigned long i = 0; i < bytes; i++) sum += store(file, text, i);
  sum += direct(file, text, bytes);
  if (rename(text, text + 1) < 0) return -1;
  return then(sum) + 1;
}

long many(long a, long b, long c, long d, long e, long f, long g, long h, long on_the_stack) {
  return a + b + c + d + e + f + g + h * on_the_stack;
}
