module kinds
  implicit none
  integer, parameter :: dp = kind(1d0)
end module

module numerics
  use kinds
  implicit none
  type :: gas
    real(dp) :: a, b
  contains
    procedure :: pressure
  end type
  abstract interface
    pure function integrand(x, p) result(y)
      import :: dp
      real(dp), intent(in) :: x, p(:)
      real(dp) :: y
    end function
  end interface
contains
  pure function pressure(self, v, t) result(p)
    class(gas), intent(in) :: self
    real(dp), intent(in) :: v, t
    real(dp) :: p
    p = t / (v - self%b) - self%a / v**2
  end function
  function equation_of_state(v, t, a, b) result(p)
    real(dp), intent(in) :: v, t, a, b
    real(dp) :: p
    type(gas) :: g
    g%a = a
    g%b = b
    if (v <= b) error stop "volume below the excluded one"
    p = g%pressure(v, t)
  end function
  pure function wave(x, p) result(y)
    real(dp), intent(in) :: x, p(:)
    real(dp) :: y
    y = sin(p(1) * x) * exp(-p(2) * x * x)
  end function
  function simpson(f, p, a, b, n) result(s)
    procedure(integrand) :: f
    real(dp), intent(in) :: p(:), a, b
    integer, intent(in) :: n
    real(dp) :: s, h
    integer :: i
    h = (b - a) / n
    s = f(a, p) + f(b, p)
    do i = 1, n - 1
      s = s + merge(4.0_dp, 2.0_dp, mod(i, 2) == 1) * f(a + i * h, p)
    end do
    s = s * h / 3
  end function
  function quadrature(p, b, n) result(s)
    real(dp), intent(in) :: p(:), b
    integer, intent(in) :: n
    real(dp) :: s
    s = simpson(wave, p, 0.0_dp, b, n)
  end function
  subroutine tridiagonal(a, b, c, d, x, n)
    integer, intent(in) :: n
    real(dp), intent(in) :: a(n), b(n), c(n), d(n)
    real(dp), intent(out) :: x(n)
    real(dp) :: cp(n), m
    integer :: i
    cp(1) = c(1) / b(1)
    x(1) = d(1) / b(1)
    do i = 2, n
      m = b(i) - a(i) * cp(i - 1)
      cp(i) = c(i) / m
      x(i) = (d(i) - a(i) * x(i - 1)) / m
    end do
    do i = n - 1, 1, -1
      x(i) = x(i) - cp(i) * x(i + 1)
    end do
  end subroutine
  function payoff(z, spot, vol, strike) result(v)
    real(dp), intent(in) :: z(:), spot, vol, strike
    real(dp) :: v
    v = sum(max(spot * exp(-0.5_dp * vol**2 + vol * z) - strike, 0.0_dp)) / size(z)
  end function
  subroutine product_of(a, b, c)
    real(dp), intent(in) :: a(:, :), b(:, :)
    real(dp), intent(out) :: c(:, :)
    c = matmul(a, transpose(b))
  end subroutine
  function kepler(m, e) result(x)
    real(dp), intent(in) :: m, e
    real(dp) :: x, step
    x = m
    do
      step = (x - e * sin(x) - m) / (1 - e * cos(x))
      x = x - step
      if (abs(step) < 1e-13_dp) exit
    end do
  end function
  recursive function legendre(n, x) result(p)
    integer, intent(in) :: n
    real(dp), intent(in) :: x
    real(dp) :: p
    select case (n)
    case (0)
      p = 1
    case (1)
      p = x
    case default
      p = ((2 * n - 1) * x * legendre(n - 1, x) - (n - 1) * legendre(n - 2, x)) / n
    end select
  end function
  function masked(x, low) result(s)
    real(dp), intent(in) :: x(:), low
    real(dp) :: s, y(size(x))
    where (x > low)
      y = log(x)
    elsewhere
      y = x**2
    end where
    s = sum(y, mask=y < 5) + maxval(y) + real(count(x > low), dp) + dot_product(x, y)
  end function
  function temporary(x) result(s)
    real(dp), intent(in) :: x(:)
    real(dp), allocatable :: w(:)
    real(dp) :: s
    allocate(w(size(x)))
    w(:) = x**3
    w(2:) = w(2:) + w(:size(w) - 1)
    s = sum(w)
    deallocate(w)
  end function
  function special(x) result(y)
    real(dp), intent(in) :: x
    real(dp) :: y
    y = erf(x) + gamma(x) + bessel_j0(x) + hypot(x, 2.0_dp) + atan2(x, 3.0_dp)
    y = y + sign(x, -1.0_dp) + asinh(x) + log_gamma(x)
  end function
  function interpolated(x, y, n, at) result(v)
    integer, intent(in) :: n
    real(dp), intent(in) :: x(n), y(n), at
    real(dp) :: v, w
    integer :: i
    i = 1
    do while (i < n - 1 .and. at > x(i + 1))
      i = i + 1
    end do
    w = (at - x(i)) / (x(i + 1) - x(i))
    v = (1 - w) * y(i) + w * y(i + 1)
  end function
  subroutine sweep(u, n, m, w)
    integer, intent(in) :: n, m
    real(dp), intent(inout) :: u(n, m)
    real(dp), intent(in) :: w
    integer :: i, j
    do concurrent (j = 2:m-1, i = 2:n-1)
      u(i, j) = u(i, j) + w * u(i, j)**2
    end do
    do i = 1, n
      u(i, 1) = u(i, 2)
    end do
  end subroutine
  function complex_power(re, im) result(y)
    real(dp), intent(in) :: re, im
    real(dp) :: y
    complex(dp) :: z
    z = cmplx(re, im, dp)
    z = z * z + conjg(z)
    y = real(z, dp)**2 + aimag(z)**2
  end function
  function single(x) result(y)
    real(4), intent(in) :: x(:)
    real(4) :: y
    y = sqrt(sum(x * x))
  end function
  function grown(x) result(s)
    real(dp), intent(in) :: x(:)
    real(dp), allocatable :: w(:)
    real(dp) :: s
    w = x * x
    s = sum(w) + norm2(x)
  end function
end module

subroutine logistic(x, r, n, y) bind(c, name="logistic")
  use iso_c_binding
  real(c_double), value :: x, r
  integer(c_int), value :: n
  real(c_double), intent(out) :: y
  integer :: i
  y = x
  do i = 1, n
    y = r * y * (1 - y)
  end do
end subroutine

real(8) function old(x, n)
  integer n, i
  real(8) x(n)
  common /shared/ scale
  real(8) scale
  scale = 2
  old = 0
  do 10 i = 1, n
10 old = old + scale * x(i)**2
end function
