! The domain of I-MG and the flow in it, which is known: gas from a point source that streams outwards,
! steadily and without shocks, through a pyramid cut off at radius 1 and radius 1.5.
!
! The flow's speed depends on the radius only. With a stagnation density and speed of sound of 1, its Mach number
! follows from the mass flow, density * speed * radius**2, being the same at any radius. The four sides of the
! pyramid are made of rays, so they are solid walls of this flow.
module euler_flow
  use, intrinsic :: iso_fortran_env, only: real64
  use euler_flux
  implicit none
  private

  public :: vertex, flow_at

  real(real64), parameter :: pi = 3.14159265358979323846_real64
  real(real64), parameter :: inner_mach = 0.7_real64 ! at radius 1
  real(real64), parameter :: half_angle = pi/8
  real(real64), parameter :: warp = 0.05_real64

contains

  ! The point of the domain with coordinates from 0 to 1. The lines of the grid bend inside of the domain.
  pure function vertex(xi, eta, zeta) result(point)
    real(real64), intent(in) :: xi, eta, zeta
    real(real64) :: point(3), radius, alpha, beta, x, y, z

    x = xi + warp*sin(pi*xi)*cos(pi*eta)*cos(pi*zeta)
    y = eta + warp*sin(pi*eta)*cos(pi*xi)*cos(pi*zeta)
    z = zeta + warp*sin(pi*zeta)*cos(pi*xi)*cos(pi*eta)
    radius = 1 + 0.5_real64*x
    alpha = half_angle*(2*y - 1)
    beta = half_angle*(2*z - 1)
    point = [1.0_real64, tan(alpha), tan(beta)]
    point = radius*point/sqrt(sum(point**2))
  end function

  ! The state of the flow at a point.
  pure function flow_at(point) result(w)
    real(real64), intent(in) :: point(3)
    real(real64) :: w(unknowns), radius, mach, target_value, derivative
    integer :: step

    radius = sqrt(sum(point**2))
    target_value = mass_flow(inner_mach)/radius**2
    mach = inner_mach/radius**2
    do step = 1, 8 ! Newton's method: four steps reach the last digit
      derivative = mass_flow(mach)*(1/mach - 1.2_real64*mach/(1 + 0.2_real64*mach**2))
      mach = mach - (mass_flow(mach) - target_value)/derivative
    end do
    w = conserved(density(mach), mach*sound(mach)*point/radius, density(mach)*sound(mach)**2/gamma_air)
  end function

  pure real(real64) function density(mach)
    real(real64), intent(in) :: mach
    density = (1 + 0.5_real64*(gamma_air - 1)*mach**2)**(-1/(gamma_air - 1))
  end function

  pure real(real64) function sound(mach)
    real(real64), intent(in) :: mach
    sound = 1/sqrt(1 + 0.5_real64*(gamma_air - 1)*mach**2)
  end function

  pure real(real64) function mass_flow(mach)
    real(real64), intent(in) :: mach
    mass_flow = density(mach)*mach*sound(mach)
  end function
end module
