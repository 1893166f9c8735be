!> The Fortran interface of homing, over its C interface (homing/homing.h): contiguous arrays of any type and rank.
!> From where each may be called, and what it returns on one node or with HOMING=off, is said there, and is the same here.
!> Sizes are bytes, of an array `a` storage_size(a)/8*size(a): they are not known here. To name an array of characters give
!> homing_watch a pointer to it of another type (c_f_pointer): gfortran passes the length of its elements for that of the name.
module homing
  use, intrinsic :: iso_c_binding, only: c_int, c_int32_t, c_int64_t, c_intptr_t, c_size_t, c_long, c_ptr, c_loc, c_double, &
      & c_char, c_null_char
  implicit none
  private
  public :: homing_version, homing_watch, homing_unwatch, homing_iteration, homing_next_touch
  public :: homing_watch_hot, homing_record, homing_replay, homing_undo, homing_replay_pages
  public :: homing_place_on_node, homing_place_round_robin, homing_place_random, homing_where
  public :: homing_statistics_t, homing_statistics
  public :: upmlib_init, upmlib_memrefcnt, upmlib_migrate_memory, upmlib_record, upmlib_replay, upmlib_undo

  public :: homing_domains, homing_domain_here, homing_domain_of_node, homing_domain_of
  public :: homing_queues_create, homing_queues_destroy, homing_queues_discard, homing_queues_put, homing_queues_put_at
  public :: homing_queues_take, homing_queues_run, homing_queues_drain, homing_work
  public :: homing_queues_waiting, homing_queues_waiting_all, homing_queues_taken

  integer, parameter, public :: homing_ok = 0, homing_in_region = -1, homing_invalid = -2, homing_aside = -3, &
      & homing_refused = -4, homing_full = -5, homing_not_empty = -6
  !> Kinds of locality domains, and the domain of a block without a home.
  integer(c_int), parameter, public :: homing_by_node = 0, homing_by_cache = 1, homing_anywhere = -1

  !> What homing has done so far; see homing/homing.h for the meaning of each component.
  type, bind(c) :: homing_statistics_t
    integer(c_size_t) :: struct_bytes = 0
    integer(c_int) :: active = 0
    integer(c_int) :: nodes = 0
    integer(c_int64_t) :: iterations = 0
    integer(c_int64_t) :: settled_at = 0
    integer(c_int64_t) :: pages_moved = 0
    integer(c_int64_t) :: pages_refused = 0
    integer(c_int64_t) :: references_seen = 0
    real(c_double) :: seconds_observing = 0
    real(c_double) :: seconds_deciding = 0
    real(c_double) :: seconds_moving = 0
  end type

  abstract interface
    !> Work on a block; `data` is what was given with the procedure.
    subroutine homing_work(block, data) bind(c)
      import :: c_intptr_t, c_ptr
      integer(c_intptr_t), value :: block
      type(c_ptr), value :: data
    end subroutine
  end interface

  interface
    !> The library's version: 10000*major + 100*minor + patch.
    function homing_version() bind(c, name='homing_version') result(version)
      import :: c_int
      integer(c_int) :: version
    end function
    function c_watch(start, bytes, name) bind(c, name='homing_watch') result(status)
      import :: c_int, c_size_t, c_char
      type(*), dimension(*), intent(in) :: start
      integer(c_size_t), value :: bytes
      character(kind=c_char), dimension(*), intent(in) :: name
      integer(c_int) :: status
    end function
    function homing_unwatch(start) bind(c, name='homing_unwatch') result(status)
      import :: c_int
      type(*), dimension(*), intent(in) :: start
      integer(c_int) :: status
    end function
    function homing_iteration() bind(c, name='homing_iteration') result(status)
      import :: c_int
      integer(c_int) :: status
    end function
    function homing_next_touch(start, bytes) bind(c, name='homing_next_touch') result(status)
      import :: c_int, c_size_t
      type(*), dimension(*), intent(in) :: start
      integer(c_size_t), value :: bytes
      integer(c_int) :: status
    end function
    function homing_place_on_node(start, bytes, node) bind(c, name='homing_place_on_node') result(status)
      import :: c_int, c_size_t
      type(*), dimension(*), intent(in) :: start
      integer(c_size_t), value :: bytes
      integer(c_int), value :: node
      integer(c_int) :: status
    end function
    function homing_place_round_robin(start, bytes) bind(c, name='homing_place_round_robin') result(status)
      import :: c_int, c_size_t
      type(*), dimension(*), intent(in) :: start
      integer(c_size_t), value :: bytes
      integer(c_int) :: status
    end function
    function homing_place_random(start, bytes, seed) bind(c, name='homing_place_random') result(status)
      import :: c_int, c_size_t, c_int64_t
      type(*), dimension(*), intent(in) :: start
      integer(c_size_t), value :: bytes
      integer(c_int64_t), value :: seed
      integer(c_int) :: status
    end function
    function homing_where(start, bytes, nodes, count) bind(c, name='homing_where') result(pages)
      import :: c_int, c_size_t, c_long
      type(*), dimension(*), intent(in) :: start
      integer(c_size_t), value :: bytes
      integer(c_int), intent(out) :: nodes(*)
      integer(c_size_t), value :: count
      integer(c_long) :: pages
    end function
    function c_statistics(out) bind(c, name='homing_statistics') result(status)
      import :: c_int, homing_statistics_t
      type(homing_statistics_t), intent(inout) :: out
      integer(c_int) :: status
    end function
    ! Locality queues. A block is an integer(c_intptr_t) of the program's own meaning; a set of queues a type(c_ptr).
    function homing_domains(by) bind(c, name='homing_domains') result(count)
      import :: c_int
      integer(c_int), value :: by
      integer(c_int) :: count
    end function
    function homing_domain_here(by) bind(c, name='homing_domain_here') result(domain)
      import :: c_int
      integer(c_int), value :: by
      integer(c_int) :: domain
    end function
    function homing_domain_of_node(node) bind(c, name='homing_domain_of_node') result(domain)
      import :: c_int
      integer(c_int), value :: node
      integer(c_int) :: domain
    end function
    function homing_domain_of(start, bytes) bind(c, name='homing_domain_of') result(domain)
      import :: c_int, c_size_t
      type(*), dimension(*), intent(in) :: start
      integer(c_size_t), value :: bytes
      integer(c_int) :: domain
    end function
    function c_queues_create(name, by, keep) bind(c, name='homing_queues_create') result(queues)
      import :: c_ptr, c_char, c_int, c_size_t
      character(kind=c_char), dimension(*), intent(in) :: name
      integer(c_int), value :: by
      integer(c_size_t), value :: keep
      type(c_ptr) :: queues
    end function
    function homing_queues_destroy(queues) bind(c, name='homing_queues_destroy') result(status)
      import :: c_ptr, c_int
      type(c_ptr), value :: queues
      integer(c_int) :: status
    end function
    function homing_queues_discard(queues) bind(c, name='homing_queues_discard') result(blocks)
      import :: c_ptr, c_size_t
      type(c_ptr), value :: queues
      integer(c_size_t) :: blocks
    end function
    function homing_queues_put(queues, block, domain) bind(c, name='homing_queues_put') result(status)
      import :: c_ptr, c_intptr_t, c_int
      type(c_ptr), value :: queues
      integer(c_intptr_t), value :: block
      integer(c_int), value :: domain
      integer(c_int) :: status
    end function
    function homing_queues_put_at(queues, block, start, bytes) bind(c, name='homing_queues_put_at') result(status)
      import :: c_ptr, c_intptr_t, c_int, c_size_t
      type(c_ptr), value :: queues
      integer(c_intptr_t), value :: block
      type(*), dimension(*), intent(in) :: start
      integer(c_size_t), value :: bytes
      integer(c_int) :: status
    end function
    !> 1: `block` is the caller's to work on; 0: there is none.
    function homing_queues_take(queues, block) bind(c, name='homing_queues_take') result(taken)
      import :: c_ptr, c_intptr_t, c_int
      type(c_ptr), value :: queues
      integer(c_intptr_t), intent(inout) :: block
      integer(c_int) :: taken
    end function
    !> One task's share: 1: a block was worked on; 0: `keep` reserved those that wait for other domains' tasks.
    function homing_queues_run(queues, work, data) bind(c, name='homing_queues_run') result(worked)
      import :: c_ptr, c_int, homing_work
      type(c_ptr), value :: queues
      procedure(homing_work) :: work
      type(c_ptr), value :: data
      integer(c_int) :: worked
    end function
    !> After the tasks: work on what `keep` left over; returns how many blocks that were.
    function homing_queues_drain(queues, work, data) bind(c, name='homing_queues_drain') result(blocks)
      import :: c_ptr, c_size_t, homing_work
      type(c_ptr), value :: queues
      procedure(homing_work) :: work
      type(c_ptr), value :: data
      integer(c_size_t) :: blocks
    end function
    function homing_queues_waiting(queues, domain) bind(c, name='homing_queues_waiting') result(blocks)
      import :: c_ptr, c_int, c_size_t
      type(c_ptr), value :: queues
      integer(c_int), value :: domain
      integer(c_size_t) :: blocks
    end function
    function homing_queues_waiting_all(queues) bind(c, name='homing_queues_waiting_all') result(blocks)
      import :: c_ptr, c_size_t
      type(c_ptr), value :: queues
      integer(c_size_t) :: blocks
    end function
    subroutine homing_queues_taken(queues, at_home, elsewhere) bind(c, name='homing_queues_taken')
      import :: c_ptr, c_int64_t
      type(c_ptr), value :: queues
      integer(c_int64_t), intent(out) :: at_home, elsewhere
    end subroutine
    function c_watch_hot(start, bytes, name) bind(c, name='homing_watch_hot') result(status)
      import :: c_int, c_size_t, c_char
      type(*), dimension(*), intent(in) :: start
      integer(c_size_t), value :: bytes
      character(kind=c_char), dimension(*), intent(in) :: name
      integer(c_int) :: status
    end function
    ! Phases: record at their transitions in one iteration, replay and undo at the same places in the others.
    function homing_record() bind(c, name='homing_record') result(status)
      import :: c_int
      integer(c_int) :: status
    end function
    function homing_replay() bind(c, name='homing_replay') result(status)
      import :: c_int
      integer(c_int) :: status
    end function
    function homing_undo() bind(c, name='homing_undo') result(status)
      import :: c_int
      integer(c_int) :: status
    end function
    function homing_replay_pages(most) bind(c, name='homing_replay_pages') result(status)
      import :: c_int, c_size_t
      integer(c_size_t), value :: most
      integer(c_int) :: status
    end function
    subroutine upmlib_init() bind(c, name='upmlib_init')
    end subroutine
    subroutine c_memrefcnt(start, bytes) bind(c, name='upmlib_memrefcnt')
      import :: c_size_t
      type(*), dimension(*), intent(in) :: start
      integer(c_size_t), value :: bytes
    end subroutine
    subroutine upmlib_migrate_memory() bind(c, name='upmlib_migrate_memory')
    end subroutine
    subroutine upmlib_record() bind(c, name='upmlib_record')
    end subroutine
    subroutine upmlib_replay() bind(c, name='upmlib_replay')
    end subroutine
    subroutine upmlib_undo() bind(c, name='upmlib_undo')
    end subroutine
  end interface

  !> The size in bytes, of either integer kind, as the paper's figure passes it. A generic name is resolved by type and
  !> rank even for type(*): the directives in its procedures (gfortran's and flang's) let arrays of any rank in.
  interface upmlib_memrefcnt
    module procedure memrefcnt_32, memrefcnt_64
  end interface

contains

  !> Watch an array under a name (blank: it keeps its own); returns homing_ok or a negative code.
  function homing_watch(start, bytes, name) result(status)
    type(*), dimension(*), intent(in) :: start
    integer(c_size_t), intent(in) :: bytes
    character(*), intent(in) :: name
    integer(c_int) :: status
    status = c_watch(start, bytes, trim(name)//c_null_char)
  end function

  !> The same, and pages move in memory that was registered so only.
  function homing_watch_hot(start, bytes, name) result(status)
    type(*), dimension(*), intent(in) :: start
    integer(c_size_t), intent(in) :: bytes
    character(*), intent(in) :: name
    integer(c_int) :: status
    status = c_watch_hot(start, bytes, trim(name)//c_null_char)
  end function

  !> Locality queues under a name (for messages). `keep`, if given: a thread of another domain takes a block only where
  !> more than so many wait.
  function homing_queues_create(name, by, keep) result(queues)
    character(*), intent(in) :: name
    integer(c_int), intent(in) :: by
    integer(c_size_t), intent(in), optional :: keep
    type(c_ptr) :: queues
    integer(c_size_t) :: kept
    kept = 0
    if (present(keep)) kept = keep
    queues = c_queues_create(trim(name)//c_null_char, by, kept)
  end function

  function homing_statistics(out) result(status)
    type(homing_statistics_t), intent(out) :: out
    integer(c_int) :: status
    out%struct_bytes = storage_size(out)/8
    status = c_statistics(out)
  end function

  subroutine memrefcnt_32(start, bytes)
    !gcc$ attributes no_arg_check :: start
    !dir$ ignore_tkr(tkr) start
    type(*), dimension(*), intent(in) :: start
    integer(c_int32_t), intent(in) :: bytes
    call c_memrefcnt(start, int(bytes, c_size_t))
  end subroutine

  subroutine memrefcnt_64(start, bytes)
    !gcc$ attributes no_arg_check :: start
    !dir$ ignore_tkr(tkr) start
    type(*), dimension(*), intent(in) :: start
    integer(c_int64_t), intent(in) :: bytes
    call c_memrefcnt(start, int(bytes, c_size_t))
  end subroutine

end module homing
