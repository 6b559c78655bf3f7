/* Collects log lines of many tenants into segment files and passes them on to a mirror, when there is one.
 * Requests: TENANT TEXT\n -> ok\n (or "over quota"). Usage: logd ADDRESS PORT FOLDER [MIRROR-ADDRESS] */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MOST_CLIENTS = 64, LINE = 512, LINES_PER_SEGMENT = 40, LINES_PER_REPORT = 5, RETRY_MS = 15 };

struct client {
	char line[LINE];
	size_t length;
	unsigned used; /* bytes that the client's tenant has used */
};

static struct pollfd fds[MOST_CLIENTS + 2]; /* the listener, the mirror, clients */
static struct client clients[MOST_CLIENTS + 2];
static int count = 2;
static const char *folder;
static int segment = -1;
static unsigned segments, lines;
static struct sockaddr_in mirror, metrics;

static void complain(const char *what)
{
	fprintf(stderr, "logd: %s: %s\n", what, strerror(errno));
}

static void next_segment(void)
{
	char path[300];

	if (segment >= 0) {
		fdatasync(segment);
		close(segment);
	}
	snprintf(path, sizeof(path), "%s/segments/seg-%06u.log", folder, ++segments);
	segment = open(path, O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0644);
	if (segment < 0)
		complain(path);
}

/* A tenant has a limit if there is a file with its name; most have none. */
static int over_quota(const char *tenant, unsigned used)
{
	char path[300], text[16] = "";
	int fd;

	snprintf(path, sizeof(path), "%s/quota/%s", folder, tenant);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return 0;
	if (read(fd, text, sizeof(text) - 1) < 0)
		text[0] = '\0';
	close(fd);
	return used > strtoul(text, NULL, 10);
}

/* Reports the count of lines to a collector on this host, if there is one. */
static void report(void)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return;
	if (connect(fd, (struct sockaddr *)&metrics, sizeof(metrics)) == 0)
		dprintf(fd, "lines %u\n", lines);
	close(fd);
}

static void append(const char *line, size_t length)
{
	if (lines++ % LINES_PER_SEGMENT == 0)
		next_segment();
	if (write(segment, line, length) < 0 && lines % 1000 == 0)
		complain("cannot write");
	if (fds[1].fd >= 0 && send(fds[1].fd, line, length, MSG_NOSIGNAL | MSG_DONTWAIT) < 0) {
		close(fds[1].fd);
		fds[1].fd = -1;
	}
	if (lines % LINES_PER_REPORT == 0)
		report();
}

static void find_mirror(void)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return;
	if (connect(fd, (struct sockaddr *)&mirror, sizeof(mirror)) < 0) {
		close(fd);
		return;
	}
	fcntl(fd, F_SETFL, O_NONBLOCK);
	fds[1].fd = fd;
}

static void drop(int i)
{
	close(fds[i].fd);
	fds[i] = fds[--count];
	clients[i] = clients[count];
}

/* Returns 0 if the client is gone. */
static int hear(int i)
{
	struct client *c = &clients[i];

	for (;;) {
		ssize_t got = read(fds[i].fd, c->line + c->length, LINE - 1 - c->length);
		char *end, tenant[32];

		if (got < 0 && errno == EAGAIN)
			return 1;
		if (got <= 0)
			return 0;
		c->length += got;
		c->line[c->length] = '\0';
		while ((end = memchr(c->line, '\n', c->length)) != NULL) {
			size_t length = end + 1 - c->line;
			const char *answer = "ok\n";

			if (sscanf(c->line, "%31[^ \n/]", tenant) != 1)
				return 0;
			c->used += length;
			if (over_quota(tenant, c->used))
				answer = "over quota\n";
			else
				append(c->line, length);
			if (send(fds[i].fd, answer, strlen(answer), MSG_NOSIGNAL) < 0)
				return 0;
			c->length -= length;
			memmove(c->line, end + 1, c->length);
		}
		if (c->length == LINE - 1)
			return 0;
	}
}

static void make(const char *name)
{
	char path[300];

	snprintf(path, sizeof(path), "%s%s", folder, name);
	if (mkdir(path, 0755) < 0 && errno != EEXIST) {
		complain(path);
		exit(1);
	}
}

int main(int argc, char **argv)
{
	struct sockaddr_in address = { .sin_family = AF_INET };
	int yes = 1;

	if (argc < 4 || argc > 5 || inet_pton(AF_INET, argv[1], &address.sin_addr) != 1) {
		fprintf(stderr, "usage: logd ADDRESS PORT FOLDER [MIRROR-ADDRESS]\n");
		return 2;
	}
	address.sin_port = htons(atoi(argv[2]));
	folder = argv[3];
	metrics = address;
	metrics.sin_port = htons(9125);
	mirror = address;
	if (argc == 5 && inet_pton(AF_INET, argv[4], &mirror.sin_addr) != 1)
		return 2;
	make("");
	make("/segments");
	make("/quota");
	fds[0].fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	fds[1].fd = -1;
	setsockopt(fds[0].fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
	if (bind(fds[0].fd, (struct sockaddr *)&address, sizeof(address)) < 0 || listen(fds[0].fd, 64) < 0) {
		complain("cannot listen");
		return 1;
	}
	for (;;) {
		for (int i = 0; i < count; i++)
			fds[i].events = i == 1 ? 0 : POLLIN;
		if (argc == 5 && fds[1].fd < 0)
			find_mirror();
		poll(fds, count, RETRY_MS);
		if (fds[1].fd >= 0 && fds[1].revents) {
			close(fds[1].fd);
			fds[1].fd = -1;
		}
		for (int i = count - 1; i >= 2; i--)
			if (fds[i].revents && !hear(i))
				drop(i);
		if (fds[0].revents && count < MOST_CLIENTS + 2) {
			int fd = accept4(fds[0].fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);

			if (fd < 0) {
				usleep(1000);
				continue;
			}
			fds[count].fd = fd;
			fds[count].revents = 0;
			memset(&clients[count++], 0, sizeof(clients[0]));
		}
	}
}
