! Numerical routines of Fortran: matrices as types with operators, integrators as objects, internal procedures as arguments,
! recursive transforms, pools that grow by move_alloc, and routines as they stand in old and new codes.
module kinds
  implicit none
  integer, parameter :: dp = kind(1.0d0)
  real(dp), parameter :: pi = 3.14159265358979323846_dp
end module
module mat_mod
  use kinds
  implicit none
  type :: matrix
    real(dp), allocatable :: a(:,:)
    integer :: n = 0
  end type
  type :: layer
    type(matrix) :: w
    real(dp), allocatable :: b(:)
  end type
  type :: network
    type(layer), allocatable :: layers(:)
  end type
  interface operator(+)
    module procedure add_m
  end interface
  interface operator(*)
    module procedure mul_m
  end interface
contains
  function add_m(x, y) result(z)
    type(matrix), intent(in) :: x, y
    type(matrix) :: z
    z%n = x%n
    z%a = x%a + y%a
  end function
  function mul_m(x, y) result(z)
    type(matrix), intent(in) :: x, y
    type(matrix) :: z
    z%n = x%n
    z%a = matmul(x%a, y%a)
  end function
  function ops(x) result(s)  ! overloaded operators on owners
    real(dp), intent(in) :: x(:)
    real(dp) :: s
    type(matrix) :: p, q, r
    p%n = 2
    p%a = reshape(x(1:4), [2,2])
    q%n = 2
    q%a = reshape(x(2:5), [2,2])
    r = p * q + p
    s = sum(r%a**2)
  end function
  function copies(x) result(s)  ! b = a
    real(dp), intent(in) :: x(:)
    real(dp) :: s
    type(matrix) :: p, q
    p%a = reshape(x(1:4), [2,2])
    p%n = 2
    q = p
    q%a = q%a * 2
    s = sum(q%a * p%a * p%a)
  end function
  function mlp(x) result(s)  ! nested allocatable
    real(dp), intent(in) :: x(:)
    real(dp) :: s
    type(network) :: net
    real(dp), allocatable :: h(:)
    integer :: l
    allocate(net%layers(2))
    do l = 1, 2
      allocate(net%layers(l)%w%a(3,3), net%layers(l)%b(3))
      net%layers(l)%w%a = spread(x(1:3), 2, 3) * l
      net%layers(l)%b = x(4:6)
    end do
    h = x(1:3)
    do l = 1, size(net%layers)
      h = tanh(matmul(net%layers(l)%w%a, h) + net%layers(l)%b)
    end do
    s = sum(h)
  end function
  function passed_copy(x) result(s)  ! array of owners assigned element by element
    real(dp), intent(in) :: x(:)
    real(dp) :: s
    type(matrix) :: m(2)
    m(1)%a = reshape(x(1:4), [2,2])
    m(2) = m(1)
    m(2)%a(1,1) = x(5)
    s = sum(m(1)%a * m(2)%a) + sum(m(2)%a**3)
  end function
end module
module prog
  use kinds
  use mat_mod
  implicit none
  type :: body
    real(dp) :: x(3), v(3), m
  end type
  abstract interface
    subroutine rhs_i(t, y, dy)
      import dp
      real(dp), intent(in) :: t, y(:)
      real(dp), intent(out) :: dy(:)
    end subroutine
  end interface
  type, abstract :: stepper
    integer :: count = 0
  contains
    procedure(step_i), deferred :: step
  end type
  abstract interface
    subroutine step_i(self, f, t, y, h)
      import stepper, rhs_i, dp
      class(stepper), intent(inout) :: self
      procedure(rhs_i) :: f
      real(dp), intent(in) :: t, h
      real(dp), intent(inout) :: y(:)
    end subroutine
  end interface
  type, extends(stepper) :: heun
  contains
    procedure :: step => heun_step
  end type
  type, extends(stepper) :: rk4
  contains
    procedure :: step => rk4_step
  end type
contains
  subroutine heun_step(self, f, t, y, h)
    class(heun), intent(inout) :: self
    procedure(rhs_i) :: f
    real(dp), intent(in) :: t, h
    real(dp), intent(inout) :: y(:)
    real(dp) :: k1(size(y)), k2(size(y))
    call f(t, y, k1)
    call f(t + h, y + h*k1, k2)
    y = y + h/2*(k1 + k2)
    self%count = self%count + 1
  end subroutine
  subroutine rk4_step(self, f, t, y, h)
    class(rk4), intent(inout) :: self
    procedure(rhs_i) :: f
    real(dp), intent(in) :: t, h
    real(dp), intent(inout) :: y(:)
    real(dp), dimension(size(y)) :: k1, k2, k3, k4
    call f(t, y, k1)
    call f(t + h/2, y + h/2*k1, k2)
    call f(t + h/2, y + h/2*k2, k3)
    call f(t + h, y + h*k3, k4)
    y = y + h/6*(k1 + 2*k2 + 2*k3 + k4)
    self%count = self%count + 1
  end subroutine
  function ode(x, method) result(s)  ! polymorphic allocatable integrator, internal procedure as rhs
    real(dp), intent(in) :: x(:)
    integer, intent(in) :: method
    real(dp) :: s, y(2)
    class(stepper), allocatable :: st
    integer :: i
    if (method == 1) then
      allocate(heun :: st)
    else
      allocate(rk4 :: st)
    end if
    y = x(1:2)
    do i = 1, 10
      call st%step(vdp, 0.1_dp*i, y, 0.1_dp)
    end do
    s = sum(y**2) * st%count
  contains
    subroutine vdp(t, yy, dy)
      real(dp), intent(in) :: t, yy(:)
      real(dp), intent(out) :: dy(:)
      dy(1) = yy(2)
      dy(2) = x(3)*(1 - yy(1)**2)*yy(2) - yy(1) + x(4)*sin(t)
    end subroutine
  end function
  recursive subroutine fft(z)  ! recursive fft with strided sections
    complex(dp), intent(inout) :: z(:)
    complex(dp), allocatable :: e(:), o(:)
    complex(dp) :: t
    integer :: n, k
    n = size(z)
    if (n <= 1) return
    e = z(1::2)
    o = z(2::2)
    call fft(e)
    call fft(o)
    do k = 1, n/2
      t = exp(cmplx(0, -2*pi*(k-1)/n, dp)) * o(k)
      z(k) = e(k) + t
      z(k+n/2) = e(k) - t
    end do
  end subroutine
  function spectrum(x) result(s)
    real(dp), intent(in) :: x(:)
    real(dp) :: s
    complex(dp) :: z(8)
    z = cmplx(x(1:8), 0, dp)
    call fft(z)
    s = sum([1,2,3,4,5,6,7,8] * abs(z)**2) + real(z(3)) * aimag(z(2))
  end function
  function spline(x, y, t) result(v)  ! natural spline
    real(dp), intent(in) :: x(:), y(:), t
    real(dp) :: v
    real(dp), allocatable :: h(:), m(:), c(:), d(:)
    integer :: n, i
    real(dp) :: a
    n = size(x)
    h = x(2:) - x(:n-1)
    allocate(m(n), source=0.0_dp)
    allocate(c(n), d(n))
    c = 0; d = 0
    do i = 2, n-1
      a = 2*(h(i-1) + h(i)) - h(i-1)*c(i-1)
      c(i) = h(i)/a
      d(i) = (6*((y(i+1)-y(i))/h(i) - (y(i)-y(i-1))/h(i-1)) - h(i-1)*d(i-1))/a
    end do
    do i = n-1, 2, -1
      m(i) = d(i) - c(i)*m(i+1)
    end do
    i = max(1, min(n-1, count(x <= t)))
    associate (u => t - x(i), hi => h(i))
      v = y(i) + u*((y(i+1)-y(i))/hi - hi*(2*m(i)+m(i+1))/6) + u**2*m(i)/2 + u**3*(m(i+1)-m(i))/(6*hi)
    end associate
  end function
  function nbody(b, n) result(e)  ! array of derived types, associate, do concurrent
    integer, intent(in) :: n
    type(body), intent(in) :: b(n)
    real(dp) :: e
    integer :: i, j
    e = 0
    do i = 1, n
      associate (p => b(i))
        e = e + 0.5_dp*p%m*dot_product(p%v, p%v)
        do j = i+1, n
          e = e - p%m*b(j)%m/norm2(p%x - b(j)%x)
        end do
      end associate
    end do
  end function
  function mc(x) result(s)  ! own rng (integer lcg), box-muller
    real(dp), intent(in) :: x(:)
    real(dp) :: s, u, v, z
    integer(8) :: seed
    integer :: i
    seed = 12345_8
    s = 0
    do i = 1, 20
      seed = mod(seed*1103515245_8 + 12345_8, 2147483648_8)
      u = (real(seed, dp) + 1)/2147483649.0_dp
      seed = mod(seed*1103515245_8 + 12345_8, 2147483648_8)
      v = real(seed, dp)/2147483648.0_dp
      z = sqrt(-2*log(u))*cos(2*pi*v)
      s = s + max(x(1)*exp(-0.5_dp*x(2)**2 + x(2)*z) - x(3), 0.0_dp)
    end do
    s = s/20
  end function
  function legacy(x, n) result(s)  ! equivalence/common/goto/computed statements
    integer, intent(in) :: n
    real(dp), intent(in) :: x(n)
    real(dp) :: s, w(4), pair(2,2)
    equivalence (w, pair)
    integer :: i
    s = 0
    i = 1
 10 if (i > n) goto 20
    w = [x(i), x(i)**2, x(i)**3, 1.0_dp]
    s = s + pair(1,1)*pair(2,2) + pair(2,1)*pair(1,2)
    i = i + 1
    goto 10
 20 continue
  end function
  subroutine jacobi(u, f, n, it)  ! pointer swap with target arrays
    integer, intent(in) :: n, it
    real(dp), intent(inout) :: u(n,n)
    real(dp), intent(in) :: f(n,n)
    real(dp), target :: w1(n,n), w2(n,n)
    real(dp), pointer :: old(:,:), new(:,:), tmp(:,:)
    integer :: k
    w1 = u; w2 = u
    old => w1; new => w2
    do k = 1, it
      new(2:n-1,2:n-1) = 0.25_dp*(old(1:n-2,2:n-1) + old(3:n,2:n-1) + old(2:n-1,1:n-2) + old(2:n-1,3:n) - f(2:n-1,2:n-1))
      tmp => old; old => new; new => tmp
    end do
    u = old
  end subroutine
  pure function eos(rho, t) result(p)  ! peng-robinson with pure & merge
    real(dp), intent(in) :: rho, t
    real(dp) :: p, al, b, a
    real(dp), parameter :: tc = 304.2_dp, pc = 7.38e6_dp, om = 0.225_dp, r = 8.314_dp
    real(dp) :: kap
    kap = merge(0.37464_dp + 1.54226_dp*om - 0.26992_dp*om**2, 0.379642_dp, om < 0.49_dp)
    al = (1 + kap*(1 - sqrt(t/tc)))**2
    a = 0.45724_dp*r**2*tc**2/pc*al
    b = 0.0778_dp*r*tc/pc
    p = rho*r*t/(1 - b*rho) - a*rho**2/(1 + 2*b*rho - (b*rho)**2)
  end function
  function bisect_newton(x) result(r)
    real(dp), intent(in) :: x(:)
    real(dp) :: r, dr
    integer :: i
    r = 1
    newton: do i = 1, 50
      dr = (r**3 + x(1)*r - x(2))/(3*r**2 + x(1))
      r = r - dr
      if (abs(dr) < 1e-15_dp) exit newton
    end do newton
  end function
  function gaussq(x) result(s)  ! derived type parameters / namelist arrays of constants
    real(dp), intent(in) :: x(:)
    real(dp) :: s
    real(dp), parameter :: nodes(3) = [-0.774596669241483_dp, 0.0_dp, 0.774596669241483_dp]
    real(dp), parameter :: wts(3) = [5.0_dp/9, 8.0_dp/9, 5.0_dp/9]
    s = sum(wts*exp(-x(1)*(0.5_dp*(x(3)-x(2))*nodes + 0.5_dp*(x(3)+x(2)))**2))*(x(3)-x(2))/2
  end function
  function lu_det(a) result(d)  ! pivoted LU with maxloc
    real(dp), intent(in) :: a(:,:)
    real(dp) :: d
    real(dp), allocatable :: m(:,:), row(:)
    integer :: k, p, n
    m = a
    n = size(m, 1)
    d = 1
    do k = 1, n
      p = k - 1 + maxloc(abs(m(k:,k)), dim=1)
      if (p /= k) then
        row = m(k,:)
        m(k,:) = m(p,:)
        m(p,:) = row
        d = -d
      end if
      d = d*m(k,k)
      m(k+1:,k) = m(k+1:,k)/m(k,k)
      m(k+1:,k+1:) = m(k+1:,k+1:) - spread(m(k+1:,k),2,n-k)*spread(m(k,k+1:),1,n-k)
    end do
  end function
  function sorted(x) result(s)  ! insertion sort + search
    real(dp), intent(in) :: x(:)
    real(dp) :: s, y(size(x)), t
    integer :: i, j
    y = x
    do i = 2, size(y)
      t = y(i)
      j = i - 1
      do while (j >= 1)
        if (y(j) <= t) exit
        y(j+1) = y(j)
        j = j - 1
      end do
      y(j+1) = t
    end do
    s = sum([(i*y(i)**2, i=1,size(y))])
  end function
  function specials(x) result(s)
    real(dp), intent(in) :: x(:)
    real(dp) :: s
    s = erf(x(1)) + gamma(x(2)+1) + log_gamma(x(3)+2) + bessel_j0(x(4)) + hypot(x(5), x(6)) + sign(x(1), -x(2)) &
      + dim(x(3), x(4)) + modulo(x(5), 0.3_dp) + anint(x(1)) + aint(x(2)*3) + erfc_scaled(x(2)) + bessel_jn(2, x(3)) + atan2(x(1), x(2))
  end function
  function iso(x) result(s)  ! findloc, any, all, count, minval dim, eoshift, transpose, dot
    real(dp), intent(in) :: x(:,:)
    real(dp) :: s
    s = sum(minval(x, dim=1)) + product(maxval(x, dim=2)) + sum(eoshift(x(:,1), 1)*x(:,2)) &
      + sum(matmul(transpose(x), x)**2) + merge(1.0_dp, x(1,2), all(x > 5)) + sum(cumul(x(:,1)))
  end function
  function cumul(v) result(c)
    real(dp), intent(in) :: v(:)
    real(dp) :: c(size(v))
    integer :: i
    c = [(sum(v(1:i)), i = 1, size(v))]
  end function
  function linked_pool(x) result(s)  ! pool of owners growing via move_alloc
    real(dp), intent(in) :: x(:)
    real(dp) :: s
    type(matrix), allocatable :: pool(:), tmp(:)
    integer :: i, j
    allocate(pool(0))
    do i = 1, 3
      allocate(tmp(i))
      do j = 1, i - 1
        call move_alloc(pool(j)%a, tmp(j)%a)
      end do
      tmp(i)%a = reshape(x(i:i+3), [2,2])
      call move_alloc(tmp, pool)
    end do
    s = 0
    do i = 1, 3
      s = s + sum(pool(i)%a**2)*i
    end do
  end function
  function random_payoff(x) result(s)
    real(8), intent(in) :: x(:)
    real(8) :: s, u(6), v, z
    real(4) :: w
    integer :: n, i
    integer, allocatable :: seed(:), back(:)
    call random_seed(size=n)
    allocate(seed(n), source=[(i*7919, i=1,n)])
    allocate(back(n))
    call random_seed(put=seed)
    call random_number(u)
    call random_number(v)
    call random_number(w)
    call random_seed(get=back)
    s = 0
    do i = 1, 3
      z = sqrt(-2*log(u(2*i)))*cos(6.28d0*u(2*i-1))
      s = s + max(x(1)*exp(-x(2)**2/2 + x(2)*z) - x(3), 0d0) + v*x(4)*w + mod(back(1), 7)*x(1)
    end do
  end function
  function random_places(x) result(s)
    real(8), intent(in) :: x(:)
    real(8) :: s, u(size(x))
    integer :: i
    call random_init(.true., .false.)
    u = x
    call random_number(u(1:2))
    s = 0
    do i = 1, 5
      call random_number(u(1))
      s = s*x(1) + u(1)*sum(u*x)
    end do
  end function
end module
