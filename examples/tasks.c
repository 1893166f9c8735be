/* Locality queues from C.
 *   gcc -O2 -fopenmp tasks.c -lhoming */
#include <homing/homing.h>
#include <stdio.h>
#include <stdlib.h>

enum { blocks = 500, length = 10000 };
struct field {
    double *data, *sums;
};

static void work(intptr_t block, void* context) {
    struct field* field = context;
    for (long i = 0; i < length; ++i)
        field->sums[block] += field->data[block * length + i];
}

int main(void) {
    struct field field = {malloc(sizeof(double) * blocks * length), calloc(blocks, sizeof(double))};
    homing_queues_t* queues = homing_queues_create("field", HOMING_BY_NODE, 0);
    if (!field.data || !field.sums || !queues) return 1;
#pragma omp parallel for schedule(static)
    for (long i = 0; i < (long)blocks * length; ++i)
        field.data[i] = 1;
    for (intptr_t block = 0; block < blocks; ++block)
        homing_queues_put_at(queues, block, field.data + block * length, length * sizeof(double));
#pragma omp parallel
#pragma omp single
    for (int task = 0; task < blocks; ++task) {
#pragma omp task shared(field, queues)
        homing_queues_run(queues, work, &field);
    }
    double total = 0;
    for (int block = 0; block < blocks; ++block)
        total += field.sums[block];
    printf("sum %.0f\n", total);
    free(field.data);
    free(field.sums);
    return homing_queues_destroy(queues) == HOMING_OK && total == (double)blocks * length ? 0 : 1;
}
