/* A clock that somebody sets: the system's, and as many seconds more or less as stand in the file that CLOCK_FILE names. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

int clock_gettime(clockid_t clock, struct timespec *time)
{
    int (*real)(clockid_t, struct timespec *) = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
    int result = real(clock, time);
    const char *name = getenv("CLOCK_FILE");
    FILE *file = clock == CLOCK_REALTIME && name ? fopen(name, "r") : NULL;
    long seconds = 0;
    if (file) {
        if (fscanf(file, "%ld", &seconds) == 1)
            time->tv_sec += seconds;
        fclose(file);
    }
    return result;
}
