/* A worker in plain C (docs/worker-protocol.md): times LZ4_compress_default, less the time spent waiting for a CPU.
   bisect-lz4.sh builds it with each commit of lz4. */
#define _GNU_SOURCE
#include "lz4.h"
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

typedef unsigned long long u64;
enum { SIZE = 256 << 10, UNTIMED_CALLS = 4, SAMPLES_MAX = 1000 };
static char text[SIZE], back[SIZE], out[LZ4_COMPRESSBOUND(SIZE)];
static int compressed;
static u64 seed, elapsed_ns[SAMPLES_MAX], wait_ns[SAMPLES_MAX];

static void call(void) { compressed = LZ4_compress_default(text, out, SIZE, sizeof out); }

static u64 now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000000000ull + now.tv_nsec;
}

/* How long this thread has been ready to run without a CPU: the second number. */
static u64 waited_ns(int schedstat) {
    char line[100] = {0};
    u64 waited = 0;
    if (pread(schedstat, line, sizeof line - 1, 0) > 0) sscanf(line, "%*u %llu", &waited);
    return waited;
}

/* Words of two to nine letters out of a few hundred. */
static void draw(u64 with) {
    u64 state = seed = with;
    int at = 0, i;
    while (at < SIZE) {
        state = state * 6364136223846793005ull + 1442695040888963407ull;
        u64 word = (state >> 40) % 300 * 2654435761u;
        for (i = 0; i < 2 + (int)(word % 8) && at < SIZE; i++) text[at++] = 'a' + (word >> 3 * i & 31) % 26;
        if (at < SIZE) text[at++] = ' ';
    }
}

static u64 number(const char* line, const char* key) {
    const char* found = strstr(line, key);
    return found ? strtoull(found + strlen(key), NULL, 10) : 0;
}

static void print_list(const char* name, const u64* values, int count) {
    printf(",\"%s\":[", name);
    for (int i = 0; i < count; i++) printf(i ? ",%llu" : "%llu", values[i]);
    printf("]");
}

static void run(u64 count, u64 calls) {
    int schedstat = open("/proc/thread-self/schedstat", O_RDONLY);
    for (int i = 0; i < UNTIMED_CALLS; i++) call();
    for (u64 sample = 0; sample < count; sample++) {
        u64 outer = now_ns(), waited = waited_ns(schedstat), start = now_ns();
        for (u64 i = 0; i < calls; i++) call();
        u64 elapsed = elapsed_ns[sample] = now_ns() - start;
        waited = waited_ns(schedstat) - waited;
        /* The kernel likes to take the CPU away at the end of a system call, so most waits lie beside the calls. */
        u64 beside = now_ns() - outer - elapsed;
        waited = waited > beside ? waited - beside : 0;
        wait_ns[sample] = waited < elapsed ? waited : 0;
    }
    close(schedstat);
    printf("\"samples\",\"workload\":\"compress\",\"calls_per_sample\":%llu", calls);
    print_list("elapsed_ns", elapsed_ns, count);
    print_list("wait_ns", wait_ns, count);
}

int main(void) {
    char line[4096];
    setvbuf(stdout, NULL, _IOFBF, 1 << 16);
    while (fgets(line, sizeof line, stdin)) {
        printf("{\"id\":%llu,\"type\":", number(line, "\"id\":"));
        if (strstr(line, "\"hello\"")) {
            printf("\"hello\",\"protocol\":2,\"name\":\"lz4\",\"version\":\"1\",\"timer\":\"host_monotonic\",\"clock_resolution_ns\":50");
        } else if (strstr(line, "\"list\"")) {
            printf("\"workloads\",\"workloads\":[{\"name\":\"compress\",\"op\":\"compress\",\"shape\":[%d],\"dtype\":\"u8\"}]", SIZE);
        } else if (strstr(line, "\"prepare\"")) {
            draw(number(line, "\"seed\":"));
            printf("\"prepared\",\"workload\":\"compress\",\"work\":{\"bytes\":%d}", SIZE);
        } else if (strstr(line, "\"run\"")) {
            u64 with = number(line, "\"seed\":"), count = number(line, "\"samples_count\":");
            if (with != seed) draw(with);
            run(count < SAMPLES_MAX ? count : SAMPLES_MAX, number(line, "\"calls_per_sample\":"));
        } else if (strstr(line, "\"verify\"")) {
            if (!compressed) call();
            int size = LZ4_decompress_safe(out, back, compressed, SIZE);
            int passed = size == SIZE && !memcmp(text, back, SIZE);
            printf("\"verified\",\"workload\":\"compress\",\"answer\":{\"passed\":%s,\"values_count\":%d,\"max_abs_err\":0,\"max_rel_err\":0}",
                   passed ? "true" : "false", SIZE);
        } else if (strstr(line, "\"release\"")) {
            printf("\"released\",\"workload\":\"compress\"");
        } else {
            printf("\"bye\"");
        }
        puts("}");
        fflush(stdout);
    }
    return 0;
}
