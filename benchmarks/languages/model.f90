module model
  implicit none
  integer, parameter :: dp = kind(1d0)
contains
  function energy(pos, mass) result(e)
    real(dp), intent(in) :: pos(:, :), mass(:)
    real(dp) :: e, r
    integer :: i, j
    e = 0
    do i = 1, size(mass)
      do j = 1, i - 1
        r = 0.01_dp + sum((pos(:, i) - pos(:, j))**2)
        e = e - mass(i) * mass(j) / sqrt(r)
      end do
    end do
  end function
  pure function slope(y) result(d)
    real(dp), intent(in) :: y(3)
    real(dp) :: d(3)
    d = [10 * (y(2) - y(1)), y(1) * (28 - y(3)) - y(2), y(1) * y(2) - 8.0_dp / 3 * y(3)]
  end function
  subroutine rk4(y, h, steps)
    real(dp), intent(inout) :: y(3)
    real(dp), intent(in) :: h
    integer(8), intent(in) :: steps
    real(dp) :: k(3, 4)
    integer(8) :: s
    do s = 1, steps
      k(:, 1) = slope(y)
      k(:, 2) = slope(y + h / 2 * k(:, 1))
      k(:, 3) = slope(y + h / 2 * k(:, 2))
      k(:, 4) = slope(y + h * k(:, 3))
      y = y + h / 6 * (k(:, 1) + 2 * k(:, 2) + 2 * k(:, 3) + k(:, 4))
    end do
  end subroutine
  subroutine diffuse(u, v)
    real(dp), intent(in) :: u(:)
    real(dp), intent(out) :: v(:)
    integer :: n
    n = size(u)
    v(1) = u(1)
    v(n) = u(n)
    v(2:n-1) = u(2:n-1) + 0.1_dp * (u(1:n-2) - 2 * u(2:n-1) + u(3:n)) * exp(-u(2:n-1))
  end subroutine
end module
