/* Threads that do one thing each, named after it. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static int ends[2];
static int word;
static volatile unsigned long turns;

__attribute__((noinline)) static void sleeps(void)
{
	struct timespec time = { 3600, 0 };

	nanosleep(&time, 0);
}

__attribute__((noinline)) static void polls(void)
{
	struct pollfd one = { ends[0], POLLIN, 0 };

	poll(&one, 1, -1);
}

__attribute__((noinline)) static void reads(void)
{
	char byte;

	if (read(ends[0], &byte, 1) != 1)
		exit(1);
}

__attribute__((noinline)) static void waits(void)
{
	syscall(SYS_futex, &word, FUTEX_WAIT, 0, 0, 0, 0);
}

__attribute__((noinline)) static void spins(void)
{
	for (;;)
		turns++;
}

static const struct {
	const char *name;
	void (*work)(void);
} works[] = {
	{ "w-sleeps", sleeps }, { "w-polls", polls }, { "w-reads", reads },
	{ "w-waits", waits },	{ "w-spins", spins },
};

__attribute__((noinline)) static void outer(int which)
{
	works[which].work();
	__asm__ volatile("");
}

static void *thread(void *which)
{
	int number = (int)(long)which;

	prctl(PR_SET_NAME, works[number].name);
	outer(number);
	return 0;
}

/* Lifetime in seconds; number of additional threads that only sleep. */
int main(int count, char **words)
{
	int seconds = count > 1 ? atoi(words[1]) : 3;
	int more = count > 2 ? atoi(words[2]) : 0;
	pthread_t id;

	if (pipe(ends))
		return 1;
	for (long which = 0; which < 5; which++)
		if (pthread_create(&id, 0, thread, (void *)which))
			return 1;
	for (int i = 0; i < more; i++)
		if (pthread_create(&id, 0, thread, (void *)0))
			return 1;
	sleep(seconds);
	_exit(0);
}
