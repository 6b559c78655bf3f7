/* The hook: code that rose copies into other processes. It must not call code outside its section, use data outside it,
 * or use vector registers. It is compiled with its own flags (CMakeLists.txt). The linker's symbols __start_... and
 * __stop_... mark the beginning and the end of the section. */
#include "inject/clock_hook.h"

#define HOOK __attribute__((section("rose_clock"), used, visibility("hidden")))

struct moment {
	long seconds;
	long part; /* ns or us */
};

__asm__(".pushsection rose_clock,\"ax\",@progbits\n"
	".balign 8\n"
	".globl rose_clock_block\n.hidden rose_clock_block\n"
	"rose_clock_block: .fill 144,1,0\n"
	/* Space for the displaced head of the kernel's function and a jump to the rest of that function. */
	".globl rose_clock_rest\n.hidden rose_clock_rest\n.type rose_clock_rest,@function\n"
	"rose_clock_rest: .fill 32,1,0xcc\n"
	".popsection\n");
_Static_assert(sizeof(struct rose_clock_parameters) == 144, "as many bytes as the section has for them");

extern struct rose_clock_parameters rose_clock_block __attribute__((visibility("hidden")));
extern long rose_clock_rest(int clock, struct moment *to) __attribute__((visibility("hidden")));

#ifdef __x86_64__
enum { CALL_CLOCK_GETTIME = 228, CALL_GETTIMEOFDAY = 96 };
static inline __attribute__((always_inline)) long call2(long number, long first, void *second) {
  long result;

  __asm__ volatile("syscall" : "=a"(result) : "0"(number), "D"(first), "S"(second) : "rcx", "r11", "memory");
  return result;
}
static inline __attribute__((always_inline)) void call4(long number, long first, void *second, void *third,
							void *fourth) {
  register void *r10 __asm__("r10") = fourth;

  __asm__ volatile("syscall" : "+a"(number) : "D"(first), "S"(second), "d"(third), "r"(r10) : "rcx", "r11", "memory");
}
#else
enum { CALL_CLOCK_GETTIME = 113, CALL_GETTIMEOFDAY = 169 };
static inline __attribute__((always_inline)) long call2(long number, long first, void *second) {
  register long x8 __asm__("x8") = number;
  register long x0 __asm__("x0") = first;
  register void *x1 __asm__("x1") = second;

  __asm__ volatile("svc #0" : "+r"(x0) : "r"(x8), "r"(x1) : "memory");
  return x0;
}
static inline __attribute__((always_inline)) void call4(long number, long first, void *second, void *third,
							void *fourth) {
  register long x8 __asm__("x8") = number;
  register long x0 __asm__("x0") = first;
  register void *x1 __asm__("x1") = second;
  register void *x2 __asm__("x2") = third;
  register void *x3 __asm__("x3") = fourth;

  __asm__ volatile("svc #0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2), "r"(x3) : "memory");
}
#endif

/* Reports a reading of a wrong clock to rose, by a system call. Readings are reported until rose clears the group's bit
 * in `announce`. The process cannot clear the bit itself, because the page is not writable for it.
 *
 * One copy serves all functions, because the code must fit into the unused end of the vDSO: Linux 6.12 leaves 1,015
 * bytes. `frame` and `cfa` are those of the calling function, from which rose unwinds the stack. */
HOOK __attribute__((noinline)) void rose_clock_adjust(int group, struct moment *at, void *frame, void *cfa)
{
	const unsigned long version = *(volatile unsigned long *)&rose_clock_block.version & 1;
	const struct rose_clock_shift *shift = &rose_clock_block.shift[version][group];
	long now = at->seconds * 1000000000L + at->part;
	const long more = rose_clock_more(shift, now);

	if (!more)
		return;
	if ((*(volatile unsigned long *)&rose_clock_block.announce >> group) & 1)
		call4(CALL_CLOCK_GETTIME, 0, (void *)(ROSE_CLOCK_READ + group), frame, cfa);
	now += more;
	at->seconds = now / 1000000000L;
	at->part = now - at->seconds * 1000000000L;
}

#define adjust(group, at) rose_clock_adjust(group, at, __builtin_frame_address(0), __builtin_dwarf_cfa())

HOOK long rose_clock_gettime(int clock, struct moment *to)
{
	const long result = rose_clock_rest(clock, to);

	/* Same result as rose_clock_group(). That function is not called, because the compiler might put the table of its
	 * switch outside this section. */
	if (result == 0 && (unsigned)clock < 12 && ((0x8f3u >> clock) & 1))
		adjust((0xd2u >> clock) & 1, to);
	return result;
}

HOOK long rose_clock_gettimeofday(struct moment *to, void *zone)
{
	if (to) {
		struct moment now;
		const long result = rose_clock_rest(0, &now);

		if (result)
			return result;
		adjust(0, &now);
		to->seconds = now.seconds;
		to->part = now.part / 1000;
	}
        return zone ? call2(CALL_GETTIMEOFDAY, 0, zone) : 0;
}

#ifdef __x86_64__
HOOK long rose_clock_time(long *to)
{
	struct moment now;

	rose_clock_rest(5, &now);
	adjust(0, &now);
	if (to)
		*to = now.seconds;
	return now.seconds;
}
#endif
