! Van Leer's splitting of the Euler fluxes.
!
! Source: B. van Leer, "Flux-vector splitting for the Euler equations", Lecture Notes in Physics 170, 1982.
! A state w holds density, the three components of momentum, and total energy, each a unit of volume.
!
! Through a face with area vector S flows F+(w, S) of the state behind it and F-(w, S) of the state before it.
! Since F-(w, S) = -F+(w, -S), plus_flux is all there is: a cell sends F+ out through each of its faces, and
! receives what its neighbours send.
module euler_flux
  use, intrinsic :: iso_fortran_env, only: real64
  implicit none
  private

  public :: plus_flux, plus_flux_and_jacobian, reflected, pressure, conserved

  integer, parameter, public :: unknowns = 5
  real(real64), parameter, public :: gamma_air = 1.4_real64
  real(real64), parameter :: g1 = gamma_air - 1

contains

  pure real(real64) function pressure(w)
    real(real64), intent(in) :: w(unknowns)
    pressure = g1*(w(5) - 0.5_real64*(w(2)*w(2) + w(3)*w(3) + w(4)*w(4))/w(1))
  end function

  pure function conserved(density, velocity, p) result(w)
    real(real64), intent(in) :: density, velocity(3), p
    real(real64) :: w(unknowns)

    w(1) = density
    w(2:4) = density*velocity
    w(5) = p/g1 + 0.5_real64*density*sum(velocity**2)
  end function

  ! f = F+(w, area)
  pure subroutine plus_flux(w, area, f)
    real(real64), intent(in) :: w(unknowns), area(3)
    real(real64), intent(out) :: f(unknowns)
    real(real64) :: size, n1, n2, n3, u1, u2, u3, normal, sound, p, mass, add, c

    size = sqrt(area(1)*area(1) + area(2)*area(2) + area(3)*area(3))
    n1 = area(1)/size
    n2 = area(2)/size
    n3 = area(3)/size
    u1 = w(2)/w(1)
    u2 = w(3)/w(1)
    u3 = w(4)/w(1)
    normal = u1*n1 + u2*n2 + u3*n3
    p = g1*(w(5) - 0.5_real64*w(1)*(u1*u1 + u2*u2 + u3*u3))
    sound = sqrt(gamma_air*p/w(1))
    if (normal <= -sound) then
      f = 0
    else if (normal >= sound) then
      mass = size*w(1)*normal
      f(1) = mass
      f(2) = mass*u1 + p*area(1)
      f(3) = mass*u2 + p*area(2)
      f(4) = mass*u3 + p*area(3)
      f(5) = size*normal*(w(5) + p)
    else
      mass = size*w(1)*(normal + sound)**2/(4*sound)
      add = (2*sound - normal)/gamma_air
      c = g1*normal + 2*sound
      f(1) = mass
      f(2) = mass*(u1 + n1*add)
      f(3) = mass*(u2 + n2*add)
      f(4) = mass*(u3 + n3*add)
      f(5) = mass*(c*c/(2*(gamma_air**2 - 1)) + 0.5_real64*(u1*u1 + u2*u2 + u3*u3 - normal*normal))
    end if
  end subroutine

  ! f = F+(w, area), jacobian(:, k) its derivative by w(k).
  !
  ! By the chain rule over density, velocity and speed of sound where the flow through the face is subsonic,
  ! over density, velocity and pressure where it is supersonic.
  pure subroutine plus_flux_and_jacobian(w, area, f, jacobian)
    real(real64), intent(in) :: w(unknowns), area(3)
    real(real64), intent(out) :: f(unknowns), jacobian(unknowns, unknowns)
    real(real64) :: size, n(3), u(3), normal, sound, p, square, mass, add, c, energy
    real(real64) :: d_u(3)
    integer :: k

    size = sqrt(area(1)*area(1) + area(2)*area(2) + area(3)*area(3))
    n = area/size
    u = w(2:4)/w(1)
    square = u(1)*u(1) + u(2)*u(2) + u(3)*u(3)
    normal = u(1)*n(1) + u(2)*n(2) + u(3)*n(3)
    p = g1*(w(5) - 0.5_real64*w(1)*square)
    sound = sqrt(gamma_air*p/w(1))
    if (normal <= -sound) then
      f = 0
      jacobian = 0
      return
    end if

    add = (2*sound - normal)/gamma_air
    c = g1*normal + 2*sound
    energy = c*c/(2*(gamma_air**2 - 1)) + 0.5_real64*(square - normal*normal)
    if (normal < sound) then
      mass = size*w(1)*(normal + sound)**2/(4*sound)
      f(1) = mass
      f(2:4) = mass*(u + n*add)
      f(5) = mass*energy
    else
      mass = size*w(1)*normal
      f(1) = mass
      f(2:4) = mass*u + p*area
      f(5) = size*normal*(w(5) + p)
    end if

    ! Derivatives by density, the components of momentum, and energy.
    call set_column(jacobian(:, 1), 1.0_real64, -u/w(1), 0.5_real64*g1*square, 0.0_real64)
    do k = 1, 3
      d_u = 0
      d_u(k) = 1/w(1)
      call set_column(jacobian(:, k + 1), 0.0_real64, d_u, -g1*u(k), 0.0_real64)
    end do
    call set_column(jacobian(:, 5), 0.0_real64, [0.0_real64, 0.0_real64, 0.0_real64], g1, 1.0_real64)

  contains

    ! From the derivatives of density, velocity, pressure and energy.
    pure subroutine set_column(column, d_density, d_velocity, d_pressure, d_energy)
      real(real64), intent(out) :: column(unknowns)
      real(real64), intent(in) :: d_density, d_velocity(3), d_pressure, d_energy
      real(real64) :: d_mass, d_normal, d_sound

      d_normal = d_velocity(1)*n(1) + d_velocity(2)*n(2) + d_velocity(3)*n(3)
      if (normal < sound) then
        d_sound = gamma_air*(d_pressure - p/w(1)*d_density)/(2*sound*w(1))
        d_mass = mass/w(1)*d_density + size*w(1)*(normal + sound)/(2*sound) &
            *(d_normal + (sound - normal)/(2*sound)*d_sound)
        column(1) = d_mass
        column(2:4) = d_mass*(u + n*add) + mass*(d_velocity + n*((2*d_sound - d_normal)/gamma_air))
        column(5) = d_mass*energy + mass*(c*(g1*d_normal + 2*d_sound)/(gamma_air**2 - 1) &
            + u(1)*d_velocity(1) + u(2)*d_velocity(2) + u(3)*d_velocity(3) - normal*d_normal)
      else
        d_mass = size*(d_density*normal + w(1)*d_normal)
        column(1) = d_mass
        column(2:4) = d_mass*u + mass*d_velocity + d_pressure*area
        column(5) = size*(d_normal*(w(5) + p) + normal*(d_energy + d_pressure))
      end if
    end subroutine
  end subroutine

  ! What is left of F+(w, area) at a solid wall, which sends back its mirror image: a force along the normal.
  pure function reflected(f, area) result(force)
    real(real64), intent(in) :: f(unknowns), area(3)
    real(real64) :: force(unknowns)

    force(1) = 0
    force(2:4) = 2*area*(f(2)*area(1) + f(3)*area(2) + f(4)*area(3))/sum(area**2)
    force(5) = 0
  end function
end module
