/* A disk that a test looks through, and lets fail: preloaded, it records what is done to files whose name begins with
 * AJUSTE_DISK, and can fail one operation, or that one and all after it. Only what SQLite and Python use is here. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

#define FILES 4096
static char *names[FILES];
static int record = -1;
static long count, fails_at = -1;
static int fails_with, fails_on;

enum { OPEN = 'o', WRITE = 'w', TRUNCATE = 't', SYNC = 's', UNLINK = 'u', MARK = 'm' };

#define REAL(type, name, ...) \
    static type (*real)(__VA_ARGS__); \
    if (!real) real = (type (*)(__VA_ARGS__))dlsym(RTLD_NEXT, name)

static int ours(const char *name)
{
    const char *prefix = getenv("AJUSTE_DISK");
    return prefix && name && !strncmp(name, prefix, strlen(prefix)) && !strstr(name, "-shm");
}

/* The directory of those files, whose sync makes it last that one was removed. */
static int directory(const char *name)
{
    const char *prefix = getenv("AJUSTE_DISK");
    size_t length = name ? strlen(name) : 0;
    return prefix && length && !strncmp(name, prefix, length) && prefix[length] == '/' && !strchr(prefix + length + 1, '/');
}

static ssize_t plain_write(int fd, const void *data, size_t size)
{
    REAL(ssize_t, "write", int, const void *, size_t);
    return real(fd, data, size);
}

static void note(char kind, const char *name, int64_t offset, const void *data, uint64_t size)
{
    uint32_t length = (uint32_t)strlen(name);
    if (record < 0) return;
    plain_write(record, &kind, 1);
    plain_write(record, &length, sizeof length);
    plain_write(record, name, length);
    plain_write(record, &offset, sizeof offset);
    plain_write(record, &size, sizeof size);
    if (data) plain_write(record, data, size);
}

/* Whether the next operation is to fail. */
static int fails(void)
{
    long number = count++;
    return fails_at >= 0 && (number == fails_at || (fails_on && number > fails_at));
}

void disk_record(int fd) { record = fd; }
void disk_fail(long at, int with, int on) { count = 0; fails_at = at; fails_with = with; fails_on = on; }
long disk_count(void) { return count; }
void disk_mark(int64_t number) { note(MARK, "", number, NULL, 0); }

static int opened(int fd, const char *name)
{
    if (fd >= 0 && fd < FILES && (ours(name) || directory(name))) {
        free(names[fd]);
        names[fd] = strdup(name);
    }
    return fd;
}

static const char *name_of(int fd) { return fd >= 0 && fd < FILES ? names[fd] : NULL; }

int open64(const char *name, int flags, ...)
{
    REAL(int, "open64", const char *, int, ...);
    va_list rest;
    va_start(rest, flags);
    mode_t mode = flags & O_CREAT ? va_arg(rest, mode_t) : 0;
    va_end(rest);
    if (ours(name) && flags & (O_RDWR | O_WRONLY | O_CREAT) && fails()) {
        errno = fails_with;
        return -1;
    }
    return opened(real(name, flags, mode), name);
}

int close(int fd)
{
    REAL(int, "close", int);
    if (name_of(fd)) {
        free(names[fd]);
        names[fd] = NULL;
    }
    return real(fd);
}

ssize_t pwrite64(int fd, const void *data, size_t size, off64_t offset)
{
    REAL(ssize_t, "pwrite64", int, const void *, size_t, off64_t);
    if (name_of(fd)) {
        if (fails()) {
            if (fails_with) {
                errno = fails_with;
                return -1;
            }
            size /= 2; /* A short write: then the disk is full. */
            fails_with = ENOSPC;
            fails_on = 1;
        }
        note(WRITE, name_of(fd), offset, data, size);
    }
    return real(fd, data, size, offset);
}

int ftruncate64(int fd, off64_t size)
{
    REAL(int, "ftruncate64", int, off64_t);
    if (name_of(fd)) {
        if (fails() && fails_with) {
            errno = fails_with;
            return -1;
        }
        note(TRUNCATE, name_of(fd), size, NULL, 0);
    }
    return real(fd, size);
}

int fdatasync(int fd)
{
    REAL(int, "fdatasync", int);
    if (name_of(fd)) {
        if (fails() && fails_with) {
            errno = fails_with;
            return -1;
        }
        note(SYNC, name_of(fd), 0, NULL, 0);
    }
    return real(fd);
}

int fsync(int fd)
{
    REAL(int, "fsync", int);
    if (name_of(fd)) note(SYNC, name_of(fd), 0, NULL, 0);
    return real(fd);
}

int unlink(const char *name)
{
    REAL(int, "unlink", const char *);
    if (ours(name)) {
        if (fails() && fails_with) {
            errno = fails_with;
            return -1;
        }
        note(UNLINK, name, 0, NULL, 0);
    }
    return real(name);
}
