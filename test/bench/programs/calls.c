/* Calls to be timed: reads "KIND COUNT" lines, answers each with the nanoseconds of one call, the minimum of several
 * bursts (interruptions only add time). "storm THREADS SECONDS" makes failing calls as fast as possible and answers
 * with their number. "paths COUNT" makes that many failing opens, each of another path, and answers with the
 * nanoseconds of one. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* A burst is shorter than a scheduler's time slice, so that some bursts are never interrupted. */
enum { BURST = 1000, MOST_THREADS = 64 };

static double now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1e9 + ts.tv_nsec;
}

static int null_fd;

static int one_call(const char *kind)
{
	if (kind[0] == 'w')
		return write(null_fd, "x", 1) == 1;
	if (kind[0] == 'o')
		return open("/nonexistent-folder-of-rose/a-file-that-is-not-there", O_RDONLY) < 0;
	return 0;
}

static atomic_int storm_over;

static void *storm(void *unused)
{
	unsigned long *made = unused;

	while (!atomic_load_explicit(&storm_over, memory_order_relaxed)) {
		close(-1);
		++*made;
	}
	return NULL;
}

static unsigned long run_storm(long threads, double seconds)
{
	pthread_t ids[MOST_THREADS];
	unsigned long made[MOST_THREADS][16] = {0}; /* one cache line per thread */
	unsigned long sum = 0;
	struct timespec ts = {(time_t)seconds, (long)((seconds - (time_t)seconds) * 1e9)};

	if (threads < 1 || threads > MOST_THREADS)
		return 0;
	atomic_store(&storm_over, 0);
	for (long i = 0; i < threads; i++)
		if (pthread_create(&ids[i], NULL, storm, made[i]))
			exit(1);
	nanosleep(&ts, NULL);
	atomic_store(&storm_over, 1);
	for (long i = 0; i < threads; i++) {
		pthread_join(ids[i], NULL);
		sum += made[i][0];
	}
	return sum;
}

static double fail_paths(long count)
{
	static long next;
	double begin = now_ns();
	char path[96];

	for (long i = 0; i < count; i++) {
		snprintf(path, sizeof(path), "/nonexistent-folder-of-rose/segment-%08ld.log", next++);
		if (open(path, O_RDONLY) >= 0)
			exit(1);
	}
	return (now_ns() - begin) / count;
}

int main(void)
{
	char line[128], kind[32];
	double amount, second;

	null_fd = open("/dev/null", O_WRONLY | O_CLOEXEC);
	if (null_fd < 0)
		return 1;
	while (fgets(line, sizeof(line), stdin)) {
		int fields = sscanf(line, "%31s %lf %lf", kind, &amount, &second);

		if (fields == 3 && !strcmp(kind, "storm")) {
			printf("%lu\n", run_storm((long)amount, second));
		} else if (fields == 2 && !strcmp(kind, "paths")) {
			printf("%.3f\n", fail_paths((long)amount));
		} else if (fields == 2 && (!strcmp(kind, "write") || !strcmp(kind, "open"))) {
			long bursts = (long)amount / BURST + 1;
			double least = 1e18;

			for (long burst = 0; burst < bursts; burst++) {
				double begin = now_ns(), spent;

				for (int i = 0; i < BURST; i++)
					if (!one_call(kind))
						return 1;
				spent = (now_ns() - begin) / BURST;
				if (spent < least)
					least = spent;
			}
			printf("%.3f\n", least);
		} else {
			return 2;
		}
		fflush(stdout);
	}
	return 0;
}
