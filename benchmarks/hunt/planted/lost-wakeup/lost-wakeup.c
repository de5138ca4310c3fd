/* A mailbox with a condition variable. The taker looks whether there is mail before it takes the mutex: a letter that
   arrives in between wakes nobody. */
#include "../planted.h"

enum { LETTERS = 60 };
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t posted = PTHREAD_COND_INITIALIZER;
static atomic_uint met;
static atomic_int letters;

static void take(int letter) {
    (void)letter;
#ifdef FIXED
    pthread_mutex_lock(&lock);
    while (!letters) pthread_cond_wait(&posted, &lock);
#else
    bool is_empty = !letters;
    UNLUCKY(letter == 7);
    pthread_mutex_lock(&lock);
    if (is_empty) pthread_cond_wait(&posted, &lock);
#endif
    letters--;
    pthread_mutex_unlock(&lock);
}

static void post(void) {
    pthread_mutex_lock(&lock);
    letters++;
    pthread_cond_signal(&posted);
    pthread_mutex_unlock(&lock);
}

static void *run(void *id) {
    pin((long)id);
    for (int i = 0; i < LETTERS; i++) {
        meet(&met, 2);
        if (id) {
            work(45);
            post();
        } else {
            work(5);
            take(i);
        }
    }
    return NULL;
}

int main(void) {
    run_threads(run, 2);
    return letters != 0;
}
