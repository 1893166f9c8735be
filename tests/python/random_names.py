"""Names that users give to variables, and that words decide nothing about."""

from __future__ import annotations


def words(text: str) -> list[str]:
    return text.split()


FORTRAN_KEYWORDS = words(
    """
    data error block format in is result function kind where select case stop target pointer save
    only use intent then real call print write read open close do if else end entry contains
    interface type class module program procedure associate critical forall include import public
    private sync team image logical none namelist common equivalence dimension parameter external
    optional value volatile exit cycle return allocate deallocate nullify pause assign goto continue
    enddo endif elsewhere concurrent double precision doubleprecision rewind inquire flush wait
    backspace endfile event lock bind generic final abstract pass enum enumerator submodule
    subroutine recursive pure elemental omp parallel shared reduction distribute homing affinity
    home on nest align with onto
    """
)
#: Of these, what gfortran takes for its own where it is called and nobody declares it.
GNU_SUBROUTINES = frozenset({"exit", "flush"})
FORTRAN_INTRINSICS = words(
    """
    sum size index merge len scan maxval shape count any all pack matmul transpose epsilon huge tiny
    real8 dot_product spread reshape product norm2 minval ubound lbound allocated present floor exp
    log sign
    """
)
C_KEYWORDS = words(
    """
    data error block format in is result function kind where stop target pointer only use then real
    call print entry type class module program critical logical none common value parallel shared
    reduction distribute homing affinity home on nest align with onto omp pragma private
    firstprivate collapse single master new delete this template namespace operator public virtual
    try catch part layout thread
    """
)
#: Of these, C++'s own.
CXX_KEYWORDS = frozenset(
    words("class new delete this template namespace operator public private virtual try catch")
)
C_INTRINSICS = words(
    """
    index y1 j0 time signal div round exp log sin floor getc remove rename strlen
    """
)
LONG = {
    "x": "the_temperatures_of_the_plate_in_this_step_of_the_iteration",
    "y": "the_temperatures_of_the_plate_in_the_step_before_this_one",
    "z": "the_sources_of_heat_within_the_plate_in_watts_per_element",
    "w": "weights_of_the_columns_which_are_the_same_for_all_the_rows",
    "total": "the_sum_of_all_temperatures_over_the_whole_of_the_plate",
    "q": "a_number_that_is_needed_for_a_little_while_and_no_longer",
    "step": "one_step_of_the_iteration_over_the_points_of_the_plate",
    "hi": "the_highest_index_of_the_points_that_are_looked_at_now",
}
