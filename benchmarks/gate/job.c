/* Five small jobs, each with a regression that planted.h switches on. */
#include "planted.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static volatile unsigned result, outside;

unsigned mixed(unsigned x, int rounds) {
    for (int i = 0; i < rounds; i++) x = x * 1664525u + 1013904223u;
    return x;
}

/* 1 % more instructions. */
static void compute(void) {
    for (int i = 0; i < 20000; i++) result = mixed(result, PLANTED ? 102 : 101);
}

/* One more fsync for each record. */
static void store(void) {
    char record[512] = {0};
    int file = open("/tmp/records", O_CREAT | O_RDWR, 0600);
    for (int i = 0; i < 500; i++) {
        if (write(file, record, sizeof record) < 0) exit(1);
        fsync(file);
        if (PLANTED) fsync(file);
    }
}

/* One more system call for each round. */
static void call(void) {
    for (int i = 0; i < 2000; i++) {
        result += mixed(i, 20) + getppid();
        if (PLANTED) result += getuid();
    }
}

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static long waited_ns;

static long now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000000000L + now.tv_nsec;
}

/* A lock held for four times as long: the same work, more of it within. */
static void *contend(void *unused) {
    for (int i = 0; i < 300; i++) {
        long begin = now_ns();
        pthread_mutex_lock(&lock);
        waited_ns += now_ns() - begin;
        result = mixed(result, PLANTED ? 8000 : 2000);
        pthread_mutex_unlock(&lock);
        outside = mixed(i, PLANTED ? 2000 : 8000);
    }
    return unused;
}

static void wait_for_lock(void) {
    pthread_t threads[3];
    for (int i = 0; i < 3; i++) pthread_create(&threads[i], NULL, contend, NULL);
    for (int i = 0; i < 3; i++) pthread_join(threads[i], NULL);
    printf("waited %ld ns\n", waited_ns);
}

/* An allocation in a loop. */
static void allocate(void) {
    char *kept = malloc(64);
    for (int i = 0; i < 5000; i++) {
        char *text = PLANTED ? malloc(64) : kept;
        memset(text, i, 64);
        result = mixed(result + text[1], 20);
        if (PLANTED) free(text);
    }
}

int main(int count, char **words) {
    const char *what = count > 1 ? words[1] : "";
    if (!strcmp(what, "compute")) compute();
    else if (!strcmp(what, "store")) store();
    else if (!strcmp(what, "call")) call();
    else if (!strcmp(what, "lock")) wait_for_lock();
    else if (!strcmp(what, "allocate")) allocate();
    else return 2;
    return 0;
}
