/* A lock that readers share and that prefers readers. They come at the same times, so that there are gaps for the
   writer: until one of them is late and the gaps are closed. The writer counts the readers that overtake it. */
#include "../planted.h"

enum { ROUNDS = 4, READS = 12, MOST = 8 };
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t freed = PTHREAD_COND_INITIALIZER;
static int readers, overtaking;
static bool is_writing, is_waiting;
static atomic_uint met;

static void read_lock(void) {
    pthread_mutex_lock(&lock);
    while (is_writing || (IS_FIXED && is_waiting)) pthread_cond_wait(&freed, &lock);
    readers++;
    if (is_waiting) overtaking++;
    pthread_mutex_unlock(&lock);
}

static void read_unlock(void) {
    pthread_mutex_lock(&lock);
    if (!--readers) pthread_cond_broadcast(&freed);
    pthread_mutex_unlock(&lock);
}

static void write_once(void) {
    pthread_mutex_lock(&lock);
    is_waiting = true;
    overtaking = 0;
    while (readers) pthread_cond_wait(&freed, &lock);
    is_waiting = false;
    is_writing = true;
    if (overtaking > MOST) fail("the writer starves");
    pthread_mutex_unlock(&lock);
    work(2);
    pthread_mutex_lock(&lock);
    is_writing = false;
    pthread_cond_broadcast(&freed);
    pthread_mutex_unlock(&lock);
}

static void *run(void *id) {
    pin((long)id);
    for (int round = 0; round < ROUNDS; round++) {
        meet(&met, 3);
        if (id == (void *)2) {
            work(200);
            write_once();
            continue;
        }
        /* Readers that come at the very same time would make each other late. */
        work(id ? 8 : 0);
        for (int i = 0; i < READS; i++) {
            UNLUCKY(id && round == 1 && i == 1);
            read_lock();
            work(90);
            read_unlock();
            work(60);
        }
    }
    return NULL;
}

int main(void) {
    run_threads(run, 3);
    return 0;
}
