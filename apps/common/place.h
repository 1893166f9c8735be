// Pages of the whole program put on the nodes in turn or at random, in place of where first touch put them:
// two of the cold starts of Nikolopoulos et al. (2000, section 4). Only where they are changes: no policy is
// left behind, so the kernel's balancing and homing may move them on.
#ifndef HOMING_APPS_PLACE_H
#define HOMING_APPS_PLACE_H

enum app_place { APP_PLACE_FIRST_TOUCH, APP_PLACE_ROUND_ROBIN, APP_PLACE_RANDOM };

// Moves the pages of the program's own private memory that are there now, stacks included (the kernel joins a
// thread's with arrays beside it), over the nodes that it may use. Returns 0, or an errno of the call that
// failed; pages that the kernel refuses stay.
int app_place_pages(enum app_place place);

#endif
