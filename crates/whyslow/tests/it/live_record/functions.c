/*
 * Calls functions as often as the test expects, with all kinds of call and return, and prints how
 * long the waiting ones took.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define FUNCTION __attribute__((noinline, noclone, used))

static volatile long sink;
static long place;
static jmp_buf back;

static long long now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return time.tv_sec * 1000000000LL + time.tv_nsec;
}

/* Six arguments, and a negative 32-bit result. */
FUNCTION int call_plain(long a, int b, unsigned c, void *d, long e, long f)
{
	sink += a + b + c + e + f + (d != 0);
	return -(int)a;
}

FUNCTION long call_inner(long n)
{
	sink += n;
	return n + 1;
}

FUNCTION long call_outer(long n)
{
	long sum = 0;

	for (int i = 0; i < 5; i++)
		sum += call_inner(n + i);
	return sum + sink * 0;
}

FUNCTION long call_itself(long n)
{
	long below = n > 1 ? call_itself(n - 1) : 0;

	sink += n;
	return below + n;
}

FUNCTION long call_last(long n)
{
	sink += n;
	return n * 7;
}

/* Ends in a tail call. */
FUNCTION long call_to_last(long n)
{
	sink++;
	return call_last(n);
}

FUNCTION void call_jumps(long n)
{
	sink += n;
	longjmp(back, 1);
}

FUNCTION long call_around(long n)
{
	sink++;
	if (!setjmp(back))
		call_jumps(n);
	return n;
}

FUNCTION long call_named(const char *name, const char *other)
{
	/* The second argument may not point to text. */
	sink += name[0] + (other != 0);
	return strlen(name);
}

FUNCTION void call_waits(long ms)
{
	struct timespec time = {ms / 1000, ms % 1000 * 1000000};

	nanosleep(&time, 0);
	sink++;
}

static void *thread(void *argument)
{
	for (int i = 0; i < 19; i++)
		call_plain((long)argument, 0, 0, 0, 0, 0);
	return 0;
}

int main(int argc, char **argv)
{
	pthread_t threads[2];
	char name[300];

	for (long i = 0; i < 37; i++)
		call_plain(i, -3, 4000000000u, &place, 1L << 40, -6);
	for (long i = 0; i < 7; i++)
		call_outer(i * 100);
	for (int i = 0; i < 3; i++)
		call_itself(11);
	call_itself(101);
	for (long i = 0; i < 13; i++)
		call_to_last(i);
	for (long i = 0; i < 17; i++)
		call_around(i);
	for (int i = 0; i < 5; i++) {
		snprintf(name, sizeof(name), "name %d", i);
		call_named(name, i % 2 ? "odd" : 0);
	}
	memset(name, 'x', sizeof(name) - 1);
	name[sizeof(name) - 1] = 0;
	call_named(name, (char *)8);
	for (long ms = 2; ms <= 11; ms += 3) {
		long long begun = now();

		call_waits(ms);
		printf("%lld\n", now() - begun);
	}
	for (long i = 0; i < 2; i++)
		pthread_create(&threads[i], 0, thread, (void *)(1000 + i));
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], 0);
	if (argc > 1 && !strcmp(argv[1], "hang")) {
		fflush(stdout);
		call_waits(600000);
	}
	return 0;
}
