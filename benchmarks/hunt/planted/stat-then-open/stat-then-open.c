/* One thread replaces a file by removing it and writing it again, the other looks whether it is there and then opens
   it. The twin opens it, and takes an absent file for what it is. */
#include "../planted.h"

enum { ROUNDS = 25 };
static char path[64];
static atomic_uint met;

static void write_file(void) {
    int file = open(path, O_CREAT | O_WRONLY | O_TRUNC, 0600);
    require(file >= 0, path);
    close(file);
}

static void read_file(int round) {
    (void)round;
#ifndef FIXED
    struct stat status;
    if (stat(path, &status)) return;
    UNLUCKY(round == 7);
#endif
    int file = open(path, O_RDONLY);
    if (file < 0) {
        if (IS_FIXED && errno == ENOENT) return;
        fail("the file that was there is gone");
    }
    close(file);
}

static void *run(void *id) {
    pin((long)id);
    for (int i = 0; i < ROUNDS; i++) {
        meet(&met, 2);
        if (id) {
            work(85);
            unlink(path);
            meet(&met, 2);
            write_file();
        } else {
            work(10);
            read_file(i);
            meet(&met, 2);
        }
    }
    return NULL;
}

int main(void) {
    snprintf(path, sizeof path, "/tmp/stat-then-open.%d", getpid());
    write_file();
    run_threads(run, 2);
    unlink(path);
    return 0;
}
