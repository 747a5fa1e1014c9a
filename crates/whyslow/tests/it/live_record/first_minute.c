// Two incidents that the first minute of use must explain: `ship SECONDS FILE` appends 10 MiB/s to a file
// in the thread log-shipper; `lock SECONDS` has a thread reporter hold a mutex for 300 of every 500 ms
// that four threads worker-N need.
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

static pthread_mutex_t table = PTHREAD_MUTEX_INITIALIZER;
static volatile int is_over;

static void pause_ms(long ms) {
    struct timespec left = {ms / 1000, ms % 1000 * 1000000};
    while (nanosleep(&left, &left)) {
    }
}

__attribute__((noinline)) static void update_table(long ms) {
    pthread_mutex_lock(&table);
    pause_ms(ms);
    pthread_mutex_unlock(&table);
}

static void *report(void *unused) {
    prctl(PR_SET_NAME, "reporter");
    while (!is_over) {
        update_table(300);
        pause_ms(200);
    }
    return unused;
}

static void *work(void *name) {
    prctl(PR_SET_NAME, name);
    while (!is_over) {
        update_table(1);
        pause_ms(2);
    }
    return NULL;
}

static int ship(int seconds, const char *path) {
    static char block[1 << 20];
    prctl(PR_SET_NAME, "log-shipper");
    memset(block, 'x', sizeof block);
    int file = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    for (int round = 0; round < seconds * 10 && file >= 0; round++) {
        if (write(file, block, sizeof block) < 0 || fdatasync(file))
            return 1;
        pause_ms(100);
    }
    return file < 0;
}

int main(int argc, char **argv) {
    if (argc > 3 && !strcmp(argv[1], "ship"))
        return ship(atoi(argv[2]), argv[3]);
    if (argc < 3)
        return 2;
    static char *names[] = {"worker-1", "worker-2", "worker-3", "worker-4"};
    pthread_t threads[5];
    pthread_create(&threads[4], NULL, report, NULL);
    for (int i = 0; i < 4; i++)
        pthread_create(&threads[i], NULL, work, names[i]);
    pause_ms(atoi(argv[2]) * 1000L);
    is_over = 1;
    for (int i = 0; i < 5; i++)
        pthread_join(threads[i], NULL);
    return 0;
}
