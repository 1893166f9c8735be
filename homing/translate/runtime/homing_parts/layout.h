/* What is known of a distributed array. */

struct homing_layout {
    char name[64];
    int language, rank;
    size_t element;
    homing_dimension dimension[HOMING_RANK_MAX];
    long* bounds[HOMING_RANK_MAX]; /* GEN_BLOCK: parts + 1 ascending template indices */
    int grid_stride[HOMING_RANK_MAX];
    int parts;                             /* of the grid; a part beyond has nothing */
    void** memory;                         /* C: of each part; Fortran keeps it itself */
    void* whole;                           /* C: gathered inside a region */
    unsigned long made;                    /* which one of all: memory is used again */
    struct homing_layout *previous, *next; /* all that there are, to be freed at the end */
};

/* Changed one thread at a time: procedures with arrays of their own may be called in parallel regions. */
static homing_layout* all_layouts = NULL;
static unsigned long layouts_made = 0;

/* Half-open ranges would need an exception for nothing; these are inclusive, empty when low > high. */
typedef struct range {
    long low, high;
} range;
