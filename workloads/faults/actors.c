// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Victims and culprits that need more precise timing than Python allows: lock holders, CPU hogs,
 * packet floods. Each follows a given plan, exits at its end, and prints its timestamps as JSON, in
 * ns of CLOCK_MONOTONIC.
 *
 *     actors WHAT until=NS on=NS:NS,NS:NS… [NAME=NUMBER…]
 *
 *     work     a victim: computes for `work_us`, sleeps for `pause_us`, and records each computation
 *     lock     threads that share a mutex: a holder that sleeps while holding it for `hold_us`,
 *              `waiters`, and an intruder that takes it whenever it is free (`intruder=1`); with
 *              disk=PATH, waiters read first
 *     barrier  threads that compute until one of them stops all others for `stop_us`
 *     spin     computes in the active windows: on `cpu`, in `threads` threads, real-time with `rt=1`
 *     storm    runs /bin/true repeatedly from `threads` threads
 *     flood    sends datagrams to host=ADDRESS, `rate` per second
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { WINDOWS_MAX = 64, THREADS_MAX = 16, STAMPS_MAX = 40000, SECTOR = 4096 };

typedef int64_t ns;

#include "actors.h"

static int args_count;
static char **args;

static const char *text(const char *name)
{
	size_t length = strlen(name);
	for (int i = 2; i < args_count; i++)
		if (strncmp(args[i], name, length) == 0 && args[i][length] == '=')
			return args[i] + length + 1;
	return NULL;
}

static long number(const char *name, long otherwise)
{
	const char *found = text(name);
	return found ? atol(found) : otherwise;
}

/* work */

static void work(void)
{
	struct stamps ops = named(text("name") ? text("name") : "victim");
	long work_us = number("work_us", 5000), pause_us = number("pause_us", 5000);
	while (now() < until) {
		ns begin = now();
		compute_us(work_us);
		stamp(&ops, begin, now());
		nap(pause_us * 1000);
	}
	printf("{");
	print("victim", &ops);
	printf("}\n");
}

/* lock */

#include "locks.h"

static _Atomic uint32_t stopped;

static void *serve(void *place)
{
	long me = (long)place;
	char name[16];
	snprintf(name, sizeof name, "worker-%ld", me);
	waits[me] = named(name);
	while (now() < until) {
		ns begin = now();
		compute_us(300);
		while (stopped)
			syscall(SYS_futex, &stopped, FUTEX_WAIT_PRIVATE, 1, NULL, NULL, 0);
		compute_us(300);
		stamp(&waits[me], begin, now());
		nap(3000000);
	}
	return NULL;
}

static void barrier(void)
{
	pthread_t threads[THREADS_MAX];
	long count = number("waiters", 2), stop_us = number("stop_us", 400000);
	for (long i = 0; i < count && i < THREADS_MAX; i++)
		pthread_create(&threads[i], NULL, serve, (void *)i);
	holder_holds = named("collector");
	while (wait_for_window()) {
		ns begin = now();
		stopped = 1;
		compute_us(stop_us);
		stopped = 0;
		syscall(SYS_futex, &stopped, FUTEX_WAKE_PRIVATE, INT32_MAX, NULL, NULL, 0);
		stamp(&holder_holds, begin, now());
		nap(200000000);
	}
	for (long i = 0; i < count; i++)
		pthread_join(threads[i], NULL);
	printf("{\"lock\": \"0x%lx\", ", (unsigned long)&stopped);
	print("holder", &holder_holds);
	for (long i = 0; i < count; i++) {
		char key[32];
		snprintf(key, sizeof key, "waits%ld", i);
		printf(", ");
		print(key, &waits[i]);
	}
	printf("}\n");
}

/* spin */

static void *burn(void *unused)
{
	(void)unused;
	struct stamps *stamps = malloc(sizeof *stamps);
	*stamps = named(text("name") ? text("name") : "spinner");
	ns burst_ns = number("burst_us", 300000) * 1000, pause_ns = number("pause_us", 100000) * 1000;
	while (wait_for_window()) {
		ns begin = now();
		while (now() - begin < burst_ns && is_on(now()))
			compute(2000);
		stamp(stamps, begin, now());
		nap(pause_ns);
	}
	return stamps;
}

static void spin(void)
{
	pthread_t threads[THREADS_MAX];
	long count = number("threads", 1);
	if (number("rt", 0)) {
		/* The kernel kills a process that computes for longer than a burst without a pause. */
		rlim_t most = (rlim_t)number("burst_us", 300000) + 500000;
		struct rlimit limit = { most, most };
		setrlimit(RLIMIT_RTTIME, &limit);
		struct sched_param param = { .sched_priority = 50 };
		if (sched_setscheduler(0, SCHED_RR, &param) != 0)
			exit(1);
	}
	prctl(PR_SET_NAME, text("name") ? text("name") : "spinner");
	for (long i = 0; i < count && i < THREADS_MAX; i++)
		pthread_create(&threads[i], NULL, burn, NULL);
	printf("{");
	for (long i = 0; i < count; i++) {
		struct stamps *stamps;
		char key[32];
		pthread_join(threads[i], (void **)&stamps);
		snprintf(key, sizeof key, "spins%ld", i);
		printf("%s", i ? ", " : "");
		print(key, stamps);
	}
	printf("}\n");
}

/* storm */

static _Atomic long runs;

static void *spawn_without_end(void *unused)
{
	(void)unused;
	struct stamps *stamps = malloc(sizeof *stamps);
	*stamps = named("spawner");
	char *words[] = { "true", NULL }, *environment[] = { NULL };
	while (wait_for_window()) {
		ns begin = now();
		while (is_on(now())) {
			pid_t child;
			if (posix_spawn(&child, "/bin/true", NULL, NULL, words, environment) != 0)
				exit(1);
			waitpid(child, NULL, 0);
			runs++;
		}
		stamp(stamps, begin, now());
	}
	return stamps;
}

static void storm(void)
{
	pthread_t threads[THREADS_MAX];
	long count = number("threads", 4);
	prctl(PR_SET_NAME, "spawner");
	for (long i = 0; i < count && i < THREADS_MAX; i++)
		pthread_create(&threads[i], NULL, spawn_without_end, NULL);
	printf("{");
	for (long i = 0; i < count; i++) {
		struct stamps *stamps;
		char key[32];
		pthread_join(threads[i], (void **)&stamps);
		snprintf(key, sizeof key, "spawns%ld", i);
		print(key, stamps);
		printf(", ");
	}
	printf("\"runs\": %ld}\n", runs);
}

/* flood */

static void flood(void)
{
	struct stamps stamps = named("flooder");
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons(9) };
	long rate = number("rate", 50000), sent = 0;
	char packet[64] = { 0 };
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0 || inet_pton(AF_INET, text("host"), &to.sin_addr) != 1)
		exit(1);
	while (wait_for_window()) {
		ns begin = now();
		for (long batch = 0; is_on(now()); batch++) {
			for (int i = 0; i < 50; i++)
				sent += sendto(fd, packet, sizeof packet, 0, (void *)&to, sizeof to) > 0;
			ns wanted = begin + (batch + 1) * 50 * 1000000000LL / rate;
			if (wanted > now())
				nap(wanted - now());
		}
		stamp(&stamps, begin, now());
	}
	printf("{\"sent\": %ld, ", sent);
	print("flood", &stamps);
	printf("}\n");
}

int main(int argc, char **argv)
{
	args_count = argc;
	args = argv;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (char *at = (char *)(text("on") ? text("on") : ""); *at && windows_count < WINDOWS_MAX;) {
		windows[windows_count].begin = strtoll(at, &at, 10);
		windows[windows_count++].end = strtoll(at + (*at == ':'), &at, 10);
		at += *at == ',';
	}
	until = text("until") ? atoll(text("until")) : 0;
	seed = number("seed", 1);
	const char *what = argc > 1 ? argv[1] : "";
	/* No actor needs more than a minute. */
	alarm(60);
	run_on(number("cpu", -1));
	calibrate();
	if (strcmp(what, "work") == 0)
		work();
	else if (strcmp(what, "lock") == 0)
		lock();
	else if (strcmp(what, "barrier") == 0)
		barrier();
	else if (strcmp(what, "spin") == 0)
		spin();
	else if (strcmp(what, "storm") == 0)
		storm();
	else if (strcmp(what, "flood") == 0)
		flood();
	else
		return 2;
	return 0;
}
