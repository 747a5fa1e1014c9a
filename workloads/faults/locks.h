/* Lock actors: holders, intruders, and waiters. */

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct stamps waits[THREADS_MAX], holds[THREADS_MAX], reads[THREADS_MAX];
static struct stamps holder_holds, intruder_holds;

static void *hold(void *unused)
{
	(void)unused;
	holder_holds = named("holder");
	ns hold_ns = number("hold_us", 80000) * 1000, gap_ns = number("gap_us", 40000) * 1000;
	while (now() < until) {
		int slow = is_on(now());
		pthread_mutex_lock(&mutex);
		ns begin = now();
		if (slow)
			nap(hold_ns);
		ns end = now();
		pthread_mutex_unlock(&mutex);
		stamp(&holder_holds, begin, end);
		nap(slow ? gap_ns : 5000000);
	}
	return NULL;
}

static void *intrude(void *unused)
{
	(void)unused;
	intruder_holds = named("intruder");
	while (now() < until) {
		if (!is_on(now())) {
			nap(2000000);
			continue;
		}
		if (pthread_mutex_trylock(&mutex) == 0) {
			ns begin = now();
			compute_us(1000);
			ns end = now();
			pthread_mutex_unlock(&mutex);
			stamp(&intruder_holds, begin, end);
			nap(1500000);
		} else {
			nap(30000);
		}
	}
	return NULL;
}

static void *wait_for_lock(void *place)
{
	long me = (long)place;
	char name[16];
	snprintf(name, sizeof name, "waiter-%ld", me);
	waits[me] = named(name);
	holds[me] = named(name);
	reads[me] = named(name);
	const char *disk = text("disk");
	long sectors = number("sectors", 1024);
	uint64_t random = (uint64_t)seed * 2654435761u + (uint64_t)me;
	int fd = disk ? open(disk, O_RDONLY | O_DIRECT | O_CLOEXEC) : -1;
	void *buffer = aligned_alloc(SECTOR, SECTOR);
	while (now() < until) {
		ns begin = now();
		if (fd >= 0) {
			random = random * 6364136223846793005ULL + 1442695040888963407ULL;
			long sector = (long)((random >> 33) % (uint64_t)sectors);
			if (pread(fd, buffer, SECTOR, (off_t)sector * SECTOR) != SECTOR)
				exit(1);
		}
		ns read = now();
		pthread_mutex_lock(&mutex);
		ns got = now();
		compute_us(200);
		ns end = now();
		pthread_mutex_unlock(&mutex);
		stamp(&waits[me], begin, got);
		stamp(&reads[me], begin, read);
		stamp(&holds[me], got, end);
		random = random * 6364136223846793005ULL + 1442695040888963407ULL;
		nap(4000000 + (ns)((random >> 33) % 6000000));
	}
	return NULL;
}

static void lock(void)
{
	pthread_t threads[THREADS_MAX + 2];
	long count = number("waiters", 3), made = 0;
	pthread_create(&threads[made++], NULL, hold, NULL);
	if (number("intruder", 0))
		pthread_create(&threads[made++], NULL, intrude, NULL);
	for (long i = 0; i < count && i < THREADS_MAX; i++)
		pthread_create(&threads[made++], NULL, wait_for_lock, (void *)i);
	for (long i = 0; i < made; i++)
		pthread_join(threads[i], NULL);
	printf("{\"lock\": \"0x%lx\", ", (unsigned long)&mutex);
	print("holder", &holder_holds);
	if (number("intruder", 0)) {
		printf(", ");
		print("intruder", &intruder_holds);
	}
	for (long i = 0; i < count; i++) {
		char key[32];
		snprintf(key, sizeof key, "waits%ld", i);
		printf(", ");
		print(key, &waits[i]);
		snprintf(key, sizeof key, "holds%ld", i);
		printf(", ");
		print(key, &holds[i]);
		snprintf(key, sizeof key, "reads%ld", i);
		printf(", ");
		print(key, &reads[i]);
	}
	printf("}\n");
}

/* barrier */
