// Page faults: SIGSEGV in the shared memory.
#ifndef HOMING_APPS_DSM_FAULTS_H
#define HOMING_APPS_DSM_FAULTS_H

#include <stdbool.h>

// From now on the function is called for each access that a page's protection does not allow; the access is
// tried again when it returns. Any other SIGSEGV ends the process.
void faults_catch(void (*handle)(long page, bool writing));

#endif
