// 100,000 blocks that are all used in every iteration: what homing takes for them itself is in its record.
//
//     blocks BLOCKS LEAST MOST REPLACED ITERATIONS
//
// Blocks have LEAST to MOST bytes; REPLACED of them are freed and allocated anew in each iteration.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint64_t random_state = 88172645463325252u;
static uint64_t next_random(void) { // xorshift64
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return random_state >> 16;
}

int main(int count, char** words) {
    if (count != 6) return 2;
    const long blocks = atol(words[1]), least = atol(words[2]), most = atol(words[3]);
    const long replaced = atol(words[4]), iterations = atol(words[5]);
    char** block = malloc((size_t)blocks * sizeof *block);
    long* bytes = malloc((size_t)blocks * sizeof *bytes);
    if (!block || !bytes) return 1;
    for (long i = 0; i < blocks; ++i) {
        bytes[i] = least + (long)(next_random() % (uint64_t)(most - least + 1));
        block[i] = calloc((size_t)bytes[i], 1);
        if (!block[i]) return 1;
    }
    for (long iteration = 0; iteration < iterations; ++iteration) {
        for (long i = 0; i < replaced; ++i) {
            const uint64_t at = next_random() % (uint64_t)blocks;
            free(block[at]);
            block[at] = calloc((size_t)bytes[at], 1);
            if (!block[at]) return 1;
        }
        for (int sweep = 0; sweep < 3; ++sweep)
#pragma omp parallel for schedule(static)
            for (long i = 0; i < blocks; ++i)
                for (long at = 0; at < bytes[i]; at += 256)
                    block[i][at] = (char)(block[i][at] + sweep);
    }
    uint64_t sum = 0;
    for (long i = 0; i < blocks; ++i)
        sum += (unsigned char)block[i][0];
    printf("%llu\n", (unsigned long long)sum);
    return 0;
}
