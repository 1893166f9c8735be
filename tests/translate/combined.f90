! What REDUCTION combines over ranks: all operators, arrays, complex numbers.
program combined
  implicit none
  integer, parameter :: n = 29
  integer :: k(n), i, lo, hi, band, bor, bxor, hist(0:4)
  complex(8) :: z(n), zs, zp
  logical :: all_pos, any_big, same, diff
  real(4) :: prod
  !$homing distribute k(cyclic(3)), z(cyclic(3))
  !$omp parallel do
  !$homing on home(k(i))
  do i = 1, n
    k(i) = mod(i*37, 64) + 1
    z(i) = cmplx(i*0.25d0, -i*0.5d0, 8)
  end do
  lo = huge(lo); hi = -huge(hi); band = not(0); bor = 0; bxor = 0
  zs = 0; zp = 1
  all_pos = .true.; any_big = .false.; same = .true.; diff = .false.
  prod = 1; hist = 0
  !$omp parallel do reduction(min:lo) reduction(max:hi) reduction(iand:band) reduction(ior:bor) &
  !$omp& reduction(ieor:bxor) reduction(+:zs, hist) reduction(.and.:all_pos) reduction(.or.:any_big) &
  !$omp& reduction(.eqv.:same) reduction(.neqv.:diff) reduction(*:prod, zp) schedule(dynamic, 2)
  !$homing on home(k(i))
  do i = 1, n
    lo = min(lo, k(i))
    hi = max(k(i), hi)
    band = iand(band, k(i) + 64)
    bor = ior(bor, k(i))
    bxor = ieor(bxor, k(i))
    zs = zs + z(i)
    hist(mod(k(i), 5)) = hist(mod(k(i), 5)) + 1
    all_pos = all_pos .and. k(i) > 0
    any_big = any_big .or. k(i) > 60
    same = same .eqv. mod(k(i), 2) == 0
    diff = diff .neqv. mod(k(i), 3) == 0
    if (mod(i, 5) == 0) prod = prod*2
    if (mod(i, 7) == 1) zp = zp*(0, 2)
  end do
  print *, lo, hi, band, bor, bxor
  print "(4f9.2)", zs, zp + (1, 1)
  print *, all_pos, any_big, same, diff, prod, hist
end program
