/* Programs that wait and work in known ways. Prints its own measurements. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* Prevents tail calls, which would omit the function from the stack. */
#define STAY __asm__ volatile("" ::: "memory")

static long long now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return time.tv_sec * 1000000000LL + time.tv_nsec;
}

__attribute__((noinline)) void nap_inner(void)
{
	struct timespec nap = {0, 5000000};

	STAY;
	clock_nanosleep(CLOCK_MONOTONIC, 0, &nap, 0);
	STAY;
}

__attribute__((noinline)) void nap_outer(void)
{
	nap_inner();
	STAY;
}

/* Symbols are looked up while it is still alive. */
static void linger(const char *seconds)
{
	poll(0, 0, atoi(seconds) * 1000);
}

static int naps(int count, void (*nap)(void))
{
	long long begun = now();

	for (int i = 0; i < count; i++)
		nap();
	printf("%lld\n", now() - begun);
	fflush(stdout);
	return 0;
}

/* JIT-compiled function that calls another one; its name is in a map file. */
static void (*made)(void (*)(void));

static void nap_made(void)
{
	made(nap_outer);
	STAY;
}

static int make(char *map)
{
	static const unsigned char code[] = {0x55, 0x48, 0x89, 0xe5, 0xff, 0xd7, 0x5d, 0xc3};
	void *place = mmap(0, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS,
			   -1, 0);
	FILE *file;

	if (place == MAP_FAILED)
		return 1;
	memcpy(place, code, sizeof(code));
	made = (void (*)(void (*)(void)))place;
	sprintf(map, "/tmp/perf-%d.map", getpid());
	file = fopen(map, "w");
	if (!file)
		return 1;
	fprintf(file, "%lx %lx made_at_run_time\n", (unsigned long)place, sizeof(code));
	return fclose(file);
}

static int fight(const char *path, int count)
{
	char *bytes = calloc(1, 1 << 20);
	int writers[2];

	for (int i = 0; i < 2; i++) {
		writers[i] = fork();
		if (writers[i] == 0) {
			int file = open(path, O_WRONLY | O_APPEND | O_CREAT, 0600);

			for (int round = 0; round < count; round++) {
				if (write(file, bytes, 1 << 20) < 0)
					_exit(1);
				if (round % 16 == 15 && i == 0 && ftruncate(file, 0))
					_exit(1);
			}
			_exit(0);
		}
	}
	for (int i = 0; i < 2; i++)
		waitpid(writers[i], 0, 0);
	return unlink(path);
}

__attribute__((noinline)) void spin(long long until)
{
	volatile unsigned long number = 1;

	while (now() < until)
		for (int i = 0; i < 100000; i++)
			number = number * 31 + 7;
}

int main(int count, char **args)
{
	int status = 1;

	if (count < 4)
		return 1;
	if (!strcmp(args[1], "naps")) {
		status = naps(atoi(args[2]), nap_outer);
		linger(args[3]);
	} else if (!strcmp(args[1], "made")) {
		char map[64];

		if (make(map))
			return 1;
		status = naps(atoi(args[2]), nap_made);
		linger(args[3]);
		unlink(map);
	} else if (!strcmp(args[1], "fight")) {
		status = fight(args[3], atoi(args[2]));
	} else if (!strcmp(args[1], "spin")) {
		spin(now() + atoi(args[2]) * 1000000LL);
		status = 0;
		linger(args[3]);
	}
	return status;
}
