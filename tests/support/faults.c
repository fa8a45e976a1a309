/* A disk that fails: the n-th change below a folder, and with it all later ones if it is full.

   Preloaded into a process, which arms it by name: see disk_faults.py. Counted are writes, what
   makes files and folders, renames and syncs. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

static char folder[4096];
static long at, counted;
static int number, stays;

void arm(const char *below, long nth, int error, int forever) {
    snprintf(folder, sizeof folder, "%s", below);
    at = nth, number = error, stays = forever, counted = 0;
}

long count(void) { return counted; }

static int fails(const char *path) {
    if (!folder[0] || strncmp(path, folder, strlen(folder))) return 0;
    counted++;
    if (!at || counted < at || (counted > at && !stays)) return 0;
    errno = number;
    return 1;
}

static int name_fails(const char *path) {
    char whole[8192];
    if (path[0] == '/') return fails(path);
    if (!folder[0] || !getcwd(whole, 4096)) return 0;
    snprintf(whole + strlen(whole), 4096, "/%s", path);
    return fails(whole);
}

static int file_fails(int file) {
    char link[64], path[4096];
    if (!folder[0]) return 0;
    snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    ssize_t length = readlink(link, path, sizeof path - 1);
    if (length < 0) return 0;
    path[length] = 0;
    return fails(path);
}

#define NEXT(name) __typeof__(&name) next = (__typeof__(&name))dlsym(RTLD_NEXT, #name)

ssize_t write(int file, const void *data, size_t size) {
    NEXT(write);
    return file_fails(file) ? -1 : next(file, data, size);
}

ssize_t writev(int file, const struct iovec *parts, int n) {
    NEXT(writev);
    return file_fails(file) ? -1 : next(file, parts, n);
}

ssize_t pwrite(int file, const void *data, size_t size, off_t place) {
    NEXT(pwrite);
    return file_fails(file) ? -1 : next(file, data, size, place);
}

ssize_t pwrite64(int file, const void *data, size_t size, off64_t place) {
    NEXT(pwrite64);
    return file_fails(file) ? -1 : next(file, data, size, place);
}

int fsync(int file) {
    NEXT(fsync);
    return file_fails(file) ? -1 : next(file);
}

int fdatasync(int file) {
    NEXT(fdatasync);
    return file_fails(file) ? -1 : next(file);
}

int rename(const char *from, const char *to) {
    NEXT(rename);
    return name_fails(to) ? -1 : next(from, to);
}

int mkdir(const char *path, mode_t mode) {
    NEXT(mkdir);
    return name_fails(path) ? -1 : next(path, mode);
}

#define OPEN(name)                                              \
    int name(const char *path, int flags, ...) {                \
        NEXT(name);                                             \
        va_list rest;                                           \
        va_start(rest, flags);                                  \
        mode_t mode = flags & O_CREAT ? va_arg(rest, mode_t) : 0; \
        va_end(rest);                                           \
        if (flags & O_CREAT && access(path, F_OK) && name_fails(path)) return -1; \
        return next(path, flags, mode);                         \
    }

OPEN(open)
OPEN(open64)
