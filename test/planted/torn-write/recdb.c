/* A small database in one file. Records follow one another, each a header and a value; the latest record of a
 * key counts. Requests, one connection at a time:
 *   put KEY SIZE\n and SIZE bytes   ->  ok\n
 *   get KEY\n                       ->  SIZE\n and SIZE bytes, or none\n
 * Usage: recdb ADDRESS PORT FILE */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { MAGIC = 0x52454331, MOST_KEYS = 512, KEY_SIZE = 24, SMALL = 4096, PIECE = 16384, MOST = 1 << 20 };

struct header {
	uint32_t magic;
	uint32_t size;
	char key[KEY_SIZE];
	uint64_t check; /* checksum of the fields above */
};

static struct {
	char key[KEY_SIZE];
	off_t value;
	uint32_t size;
} index_[MOST_KEYS];
static int keys;
static int file;
static off_t end; /* where the last record ends */

static void fail(const char *what)
{
	fprintf(stderr, "recdb: %s: %s\n", what, strerror(errno));
	exit(1);
}

static uint64_t check_of(const struct header *h)
{
	const unsigned char *byte = (const void *)h;
	uint64_t sum = 14695981039346656037u;

	for (size_t i = 0; i < offsetof(struct header, check); i++)
		sum = (sum ^ byte[i]) * 1099511628211u;
	return sum;
}

static void remember(const char *key, off_t value, uint32_t size)
{
	int i = 0;

	while (i < keys && strcmp(index_[i].key, key) != 0)
		i++;
	if (i == MOST_KEYS)
		return;
	if (i == keys)
		strcpy(index_[keys++].key, key);
	index_[i].value = value;
	index_[i].size = size;
}

/* Space that was reserved and never written is all zero, so the first invalid header is the end of the records. */
static void recover(void)
{
	struct header h;

	while (pread(file, &h, sizeof(h), end) == (ssize_t)sizeof(h) && h.magic == MAGIC && h.check == check_of(&h) &&
	       h.size <= MOST) {
		h.key[KEY_SIZE - 1] = '\0';
		remember(h.key, end + sizeof(h), h.size);
		end += sizeof(h) + h.size;
	}
	fprintf(stderr, "recdb: %d keys in %lld bytes\n", keys, (long long)end);
}

static int read_all(int from, char *to, size_t size)
{
	while (size > 0) {
		ssize_t got = read(from, to, size);

		if (got <= 0)
			return -1;
		to += got;
		size -= got;
	}
	return 0;
}

static void pwrite_all(const void *data, size_t size, off_t at)
{
	if (pwrite(file, data, size, at) != (ssize_t)size)
		fail("cannot write");
}

static int put(int client, const char *key, uint32_t size)
{
	static char buffer[sizeof(struct header) + PIECE];
	struct header h = { .magic = MAGIC, .size = size };
	off_t at = end + sizeof(h);

	strcpy(h.key, key);
	h.check = check_of(&h);
	if (size <= SMALL) {
		memcpy(buffer, &h, sizeof(h));
		if (read_all(client, buffer + sizeof(h), size) < 0)
			return -1;
		pwrite_all(buffer, sizeof(h) + size, end);
	} else {
		/* Large values are not held in memory: their space is reserved, and each piece is written when it arrives. */
		if (ftruncate(file, at + size) < 0)
			fail("cannot reserve space");
		pwrite_all(&h, sizeof(h), end);
		for (uint32_t done = 0; done < size;) {
			uint32_t piece = size - done < PIECE ? size - done : PIECE;

			if (read_all(client, buffer, piece) < 0) {
				memset(&h, 0, sizeof(h));
				pwrite_all(&h, sizeof(h), end);
				return -1;
			}
			pwrite_all(buffer, piece, at + done);
			done += piece;
		}
	}
	remember(key, at, size);
	end = at + size;
	return send(client, "ok\n", 3, MSG_NOSIGNAL) == 3 ? 0 : -1;
}

static int get(int client, const char *key)
{
	static char value[MOST];
	char head[32] = "none\n";
	int i = 0;

	while (i < keys && strcmp(index_[i].key, key) != 0)
		i++;
	if (i < keys) {
		snprintf(head, sizeof(head), "%u\n", index_[i].size);
		if (pread(file, value, index_[i].size, index_[i].value) != (ssize_t)index_[i].size)
			return -1;
	}
	if (send(client, head, strlen(head), MSG_NOSIGNAL) < 0)
		return -1;
	return i == keys || send(client, value, index_[i].size, MSG_NOSIGNAL) == (ssize_t)index_[i].size ? 0 : -1;
}

static void serve(int client)
{
	char line[128], key[KEY_SIZE];
	unsigned size;

	for (;;) {
		size_t length = 0;

		while (length + 1 < sizeof(line) && read(client, line + length, 1) == 1 && line[length] != '\n')
			length++;
		if (length == 0 || line[length] != '\n')
			return;
		line[length] = '\0';
		if (sscanf(line, "put %23s %u", key, &size) == 2 && size <= MOST) {
			if (put(client, key, size) < 0)
				return;
		} else if (sscanf(line, "get %23s", key) == 1) {
			if (get(client, key) < 0)
				return;
		} else {
			return;
		}
	}
}

int main(int argc, char **argv)
{
	struct sockaddr_in address = { .sin_family = AF_INET };
	int listener, yes = 1;

	if (argc != 4 || inet_pton(AF_INET, argv[1], &address.sin_addr) != 1) {
		fprintf(stderr, "usage: recdb ADDRESS PORT FILE\n");
		return 2;
	}
	address.sin_port = htons(atoi(argv[2]));
	file = open(argv[3], O_RDWR | O_CREAT | O_CLOEXEC, 0644);
	if (file < 0)
		fail(argv[3]);
	recover();
	listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (listener < 0 || setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes)) < 0 ||
	    bind(listener, (struct sockaddr *)&address, sizeof(address)) < 0 || listen(listener, 8) < 0)
		fail("cannot listen");
	for (;;) {
		int client = accept(listener, NULL, NULL);

		if (client < 0)
			continue;
		serve(client);
		close(client);
	}
}
