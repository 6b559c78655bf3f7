/* Holds an empty program on raw_tp/sys_exit until its input ends: the minimum cost of any tracer of failures. */
#include <bpf/bpf.h>
#include <linux/bpf.h>
#include <stdio.h>
#include <string.h>
#include <errno.h>

int main(void)
{
	const struct bpf_insn code[] = {
		{.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0},
		{.code = BPF_JMP | BPF_EXIT},
	};
	int program = bpf_prog_load(BPF_PROG_TYPE_RAW_TRACEPOINT, "rose_empty", "GPL", code, 2, NULL);
	int link = program < 0 ? -1 : bpf_raw_tracepoint_open("sys_exit", program);

	if (link < 0) {
		fprintf(stderr, "cannot attach an empty program: %s\n", strerror(errno));
		return 77;
	}
	puts("ready");
	fflush(stdout);
	while (getchar() != EOF)
		;
	return 0;
}
