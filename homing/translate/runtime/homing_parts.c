/* homing_parts.h says what these functions do. Compile with -fopenmp; with -DHOMING_MPI for ranks. One
 * object, so that a translated program is compiled by one command: each file of homing_parts/ is one concept,
 * and uses those before it. */
#define _GNU_SOURCE
#include "homing_parts.h"

#include <fcntl.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#ifdef _OPENMP
#include <omp.h>
#endif
#ifdef HOMING_MPI
#include <mpi.h>
#endif

/* clang-format off */
#include "homing_parts/layout.h"
#include "homing_parts/process.h"
#include "homing_parts/distributions.h"
#include "homing_parts/places.h"
#include "homing_parts/copying.h"
#include "homing_parts/parts_of_c.h"
#include "homing_parts/touched.h"
#include "homing_parts/exchange.h"
#include "homing_parts/repeated.h"
#include "homing_parts/ranks.h"
#include "homing_parts/files.h"
#include "homing_parts/pages.h"
#include "homing_parts/replicas.h"
/* clang-format on */
