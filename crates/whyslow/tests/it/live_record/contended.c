/* contended lock: a thread holds a mutex for 300 of every 500 ms, and four need it.
 * contended pool: four threads wait for jobs, of which there are ten per second. */
#include <pthread.h>
#include <string.h>
#include <time.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t jobs_came = PTHREAD_COND_INITIALIZER;
static int jobs;

static void pause_ms(long ms) {
    struct timespec time = {ms / 1000, ms % 1000 * 1000000};
    nanosleep(&time, NULL);
}

static void *need_lock(void *unused) {
    for (;;) {
        pthread_mutex_lock(&mutex);
        pthread_mutex_unlock(&mutex);
        pause_ms(5);
    }
    return unused;
}

static void *serve(void *unused) {
    for (;;) {
        pthread_mutex_lock(&mutex);
        while (!jobs)
            pthread_cond_wait(&jobs_came, &mutex);
        jobs--;
        pthread_mutex_unlock(&mutex);
    }
    return unused;
}

static void *hold(void *unused) {
    for (int i = 0; i < 8; i++) {
        pthread_mutex_lock(&mutex);
        pause_ms(300);
        pthread_mutex_unlock(&mutex);
        pause_ms(200);
    }
    return unused;
}

int main(int argc, char **argv) {
    int is_pool = argc > 1 && !strcmp(argv[1], "pool");
    pthread_t thread;
    for (int i = 0; i < 4; i++)
        pthread_create(&thread, NULL, is_pool ? serve : need_lock, NULL);
    if (!is_pool) {
        pthread_create(&thread, NULL, hold, NULL);
        pthread_join(thread, NULL);
        return 0;
    }
    for (int i = 0; i < 40; i++) {
        pause_ms(100);
        pthread_mutex_lock(&mutex);
        jobs++;
        pthread_cond_signal(&jobs_came);
        pthread_mutex_unlock(&mutex);
    }
    return 0;
}
