/* Shared by the actors of actors.c: clocks, timestamps, computation of a known duration. */

struct span {
	ns begin, end;
};

struct stamps {
	pid_t tid;
	char name[16];
	int count;
	struct span *spans;
};

static struct span windows[WINDOWS_MAX];
static int windows_count;
static ns until;
static long seed = 1;

static ns now(void)
{
	struct timespec time;
	clock_gettime(CLOCK_MONOTONIC, &time);
	return time.tv_sec * 1000000000LL + time.tv_nsec;
}

static void nap(ns length)
{
	struct timespec time = { length / 1000000000, length % 1000000000 };
	nanosleep(&time, NULL);
}

static int is_on(ns at)
{
	for (int i = 0; i < windows_count; i++)
		if (at >= windows[i].begin && at < windows[i].end)
			return 1;
	return 0;
}

/* Sleeps until the start of the next window; false at the end of the plan. */
static int wait_for_window(void)
{
	ns at = now(), next = until;
	if (is_on(at))
		return 1;
	for (int i = 0; i < windows_count; i++)
		if (windows[i].begin > at && windows[i].begin < next)
			next = windows[i].begin;
	if (next > at)
		nap(next - at);
	return now() < until;
}

static void stamp(struct stamps *stamps, ns begin, ns end)
{
	if (stamps->count < STAMPS_MAX)
		stamps->spans[stamps->count++] = (struct span){ begin, end };
}

static struct stamps named(const char *name)
{
	struct stamps stamps = { .tid = gettid() };
	snprintf(stamps.name, sizeof stamps.name, "%s", name);
	prctl(PR_SET_NAME, stamps.name);
	stamps.spans = calloc(STAMPS_MAX, sizeof *stamps.spans);
	if (!stamps.spans)
		exit(1);
	return stamps;
}

static void print(const char *key, const struct stamps *stamps)
{
	printf("\"%s\": {\"tid\": %d, \"comm\": \"%s\", \"spans\": [", key, stamps->tid, stamps->name);
	for (int i = 0; i < stamps->count; i++)
		printf("%s[%lld, %lld]", i ? "," : "", (long long)stamps->spans[i].begin,
		       (long long)stamps->spans[i].end);
	printf("]}");
}

static void run_on(long cpu)
{
	cpu_set_t set;
	if (cpu < 0)
		return;
	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	sched_setaffinity(0, sizeof set, &set);
}

static long rounds_per_ms = 100000;
static volatile uint64_t sink;

static void compute(long rounds)
{
	uint64_t x = sink + 1;
	for (long i = 0; i < rounds; i++)
		x = x * 6364136223846793005ULL + 1442695040888963407ULL;
	sink = x;
}

/* Takes the minimum of several runs, because other threads may run meanwhile. */
static void calibrate(void)
{
	ns best = INT64_MAX;
	for (int i = 0; i < 9; i++) {
		ns begin = now();
		compute(1000000);
		ns took = now() - begin;
		best = took < best ? took : best;
	}
	rounds_per_ms = 1000000LL * 1000000 / (best > 0 ? best : 1);
}

static void compute_us(long us)
{
	compute(rounds_per_ms * us / 1000);
}

/* Arguments. */
