// The calls of UPMlib around a phase (Nikolopoulos et al. 2000, Figure 2), where homing is loaded; nothing
// elsewhere. Outside of parallel regions.
#ifndef HOMING_APPS_UPMLIB_H
#define HOMING_APPS_UPMLIB_H

// Asks for the option --upmlib none|replay|hybrid: record in the first iteration, replay and undo in those
// behind it; or let pages move at iterations first (upmlib_migrate_memory) and record in the fourth one.
void app_upmlib_option(void);
// The phase begins and ends in the iteration of this number, from 1.
void app_phase_begins(long iteration);
void app_phase_ends(long iteration);
void app_upmlib_iteration_ends(long iteration);

#endif
