// As much of MPI as `homing translate --to mpi` uses, between processes of the shared memory (dsm.h): so that
// what the translator writes runs on it. Messages go through buffers that are shared, with a barrier for each
// exchange; two buffers take turns. MPI_Init_thread makes DSM_PROCESSES processes; DSM_MEASURE=1 prints the
// counts at the end, with DSM_COSTS=FILE also predicted times, without what the program computes.
#ifndef HOMING_APPS_DSM_MPI_H
#define HOMING_APPS_DSM_MPI_H

typedef int MPI_Comm;
typedef int MPI_Request; // its place in the list of those that wait
typedef int MPI_Status;

typedef enum {
    MPI_BYTE,
    MPI_INT,
    MPI_LONG,
    MPI_FLOAT,
    MPI_DOUBLE,
    MPI_INT8_T,
    MPI_INT16_T,
    MPI_INT32_T,
    MPI_INT64_T,
    MPI_UINT8_T,
    MPI_UINT16_T,
    MPI_UINT32_T,
    MPI_UINT64_T,
    MPI_C_FLOAT_COMPLEX,
    MPI_C_DOUBLE_COMPLEX
} MPI_Datatype;

typedef enum {
    MPI_SUM,
    MPI_PROD,
    MPI_MIN,
    MPI_MAX,
    MPI_LAND,
    MPI_LOR,
    MPI_LXOR,
    MPI_BAND,
    MPI_BOR,
    MPI_BXOR
} MPI_Op;

enum { MPI_COMM_WORLD = 0, MPI_SUCCESS = 0, MPI_THREAD_SINGLE = 0, MPI_THREAD_FUNNELED = 1 };
#define MPI_STATUS_IGNORE ((MPI_Status*)0)
#define MPI_STATUSES_IGNORE ((MPI_Status*)0)
#define MPI_IN_PLACE ((void*)1)

int MPI_Initialized(int* flag);
int MPI_Finalized(int* flag);
int MPI_Init_thread(int* argc, char*** argv, int required, int* provided);
int MPI_Query_thread(int* provided);
int MPI_Comm_rank(MPI_Comm comm, int* rank);
int MPI_Comm_size(MPI_Comm comm, int* size);
int MPI_Finalize(void);
_Noreturn int MPI_Abort(MPI_Comm comm, int status);

int MPI_Isend(const void* buffer, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm,
              MPI_Request* request);
int MPI_Irecv(void* buffer, int count, MPI_Datatype type, int from, int tag, MPI_Comm comm,
              MPI_Request* request);
// All ranks call it together, also those that have nothing to send or receive.
int MPI_Waitall(int count, MPI_Request* requests, MPI_Status* statuses);

int MPI_Barrier(MPI_Comm comm);
// At the end of the program, where each rank asks whether the others have come: here none ends with an error,
// and what is counted is the program's. So it is over at once, and of no other request may be asked so.
int MPI_Ibarrier(MPI_Comm comm, MPI_Request* request);
int MPI_Wait(MPI_Request* request, MPI_Status* status);
int MPI_Test(MPI_Request* request, int* flag, MPI_Status* status);
double MPI_Wtime(void);
int MPI_Bcast(void* buffer, int count, MPI_Datatype type, int root, MPI_Comm comm);
// Sum, product, least and most of MPI_INT, MPI_LONG, MPI_INT32_T, MPI_INT64_T, MPI_FLOAT and MPI_DOUBLE.
int MPI_Allreduce(const void* mine, void* all, int count, MPI_Datatype type, MPI_Op operation, MPI_Comm comm);
int MPI_Reduce(const void* mine, void* all, int count, MPI_Datatype type, MPI_Op operation, int root,
               MPI_Comm comm);

#endif
