! Pointers, polymorphic arrays, complex numbers, common blocks, and intrinsic functions that flang leaves to its library.
module forms
  use iso_c_binding
  implicit none
  integer, parameter :: dp = kind(1d0)
  type :: pnode
    real(dp), pointer :: p(:) => null()
  end type
  type, bind(c) :: cpoint
    real(c_double) :: x, y
  end type
  type :: base
    real(dp) :: k = 1
  contains
    procedure :: f => f_base
  end type
  type, extends(base) :: child
    real(dp) :: q = 2
  contains
    procedure :: f => f_child
  end type
  real(dp), save :: cache(4) = 0
  common /blk/ cm(3)
  real(dp) :: cm
contains
  function f_base(self, x) result(r)
    class(base), intent(in) :: self
    real(dp), intent(in) :: x
    real(dp) :: r
    r = self%k * x
  end function
  function f_child(self, x) result(r)
    class(child), intent(in) :: self
    real(dp), intent(in) :: x
    real(dp) :: r
    r = self%k * x**2 + self%q
  end function
  function parr(x) result(s)
    real(dp), intent(in), target :: x(:)
    real(dp) :: s
    type(pnode) :: a(3)
    integer :: i
    do i = 1, 3
      a(i)%p => x(i:i+1)
    end do
    s = 0
    do i = 1, 3
      s = s + dot_product(a(i)%p, a(4-i)%p)
    end do
  end function
  function cptr(x) result(s)
    real(dp), intent(in), target :: x(:)
    real(dp) :: s
    real(dp), pointer :: m(:,:)
    call c_f_pointer(c_loc(x(1)), m, [2, 2])
    s = m(1,1)*m(2,2) - m(1,2)*m(2,1)
  end function
  function classarr(x) result(s)
    real(dp), intent(in) :: x(:)
    real(dp) :: s
    class(base), allocatable :: o(:)
    integer :: i
    allocate(child :: o(2))
    o(1)%k = x(1)
    o(2)%k = x(2)
    s = 0
    do i = 1, 2
      s = s + o(i)%f(x(3))
    end do
    select type (o)
    type is (child)
      o%q = x(4)
      s = s + sum(o%q * o%k)
    end select
  end function
  function holder(x) result(s)
    real(dp), intent(in) :: x(:)
    real(dp) :: s
    class(base), allocatable :: a, c
    allocate(a, source=child(k=x(1), q=x(2)))
    allocate(c, source=a)
    c%k = x(3)
    s = a%f(x(4)) * c%f(x(1))
  end function
  function cplx(x) result(s)
    real(dp), intent(in) :: x(:)
    real(dp) :: s
    complex(dp) :: z, w, a(3)
    z = cmplx(x(1), x(2), dp)
    w = log(z)*sqrt(z) / conjg(z) + z**2.5_dp + sin(z) + exp((0,1)*z) + z**3
    a = [z, w, z*w]
    s = real(w)*aimag(w) + abs(sum(a))**2 + real(dot_product(a, [w, z, z])) + real(product(a))
  end function
  function mixed(x) result(s)
    real(dp), intent(in) :: x(:)
    real(dp) :: s
    real(4) :: r
    integer :: i
    r = 0
    do i = 1, size(x)
      r = r + real(x(i), 4)
    end do
    s = r * sum(x)
  end function
  function globals(x) result(s)
    real(dp), intent(in) :: x(:)
    real(dp) :: s
    cache = x(1:4)**2
    cm = x(1:3)
    call bump()
    s = sum(cache) * cm(2)
  end function
  subroutine bump()
    cache(2) = cache(1)*cache(3)
    cm(2) = cm(1) + cm(3)**2
  end subroutine
  subroutine outalloc(x, y)
    real(dp), intent(in) :: x(:)
    real(dp), allocatable, intent(out) :: y(:)
    allocate(y(size(x)-1))
    y = x(2:) - x(:size(x)-1)
  end subroutine
  function diffs(x) result(s)
    real(dp), intent(in) :: x(:)
    real(dp) :: s
    real(dp), allocatable :: y(:), z(:)
    call outalloc(x, y)
    z = y
    call outalloc(z, y)
    s = sum(y**2)
  end function
  function pick(x) result(p)
    real(dp), intent(in), target :: x(:)
    real(dp), pointer :: p(:)
    p => x(::2)
  end function
  function ptrfun(x) result(s)
    real(dp), intent(in), target :: x(:)
    real(dp) :: s
    s = sum(pick(x)**3)
  end function
  function transferred(x) result(s)
    real(dp), intent(in) :: x(:)
    real(dp) :: s, y(2)
    type(cpoint) :: p
    p = transfer(x(1:2), p)
    y = transfer(p, y)
    s = p%x**2*p%y + sum(y)
  end function
  function seq(x) result(s)
    real(dp), intent(in) :: x(:)
    real(dp) :: s, w(8)
    w(1:4) = x(1:4)
    w(5:8) = x(4:1:-1)
    w(2:8) = w(1:7) * 2
    w(8:1:-1) = w
    where (w > 1)
      w = w**2
    elsewhere (w > 0.5)
      w = sqrt(w)
    elsewhere
      w = 0
    end where
    s = sum(w * [1,2,3,4,5,6,7,8])
  end function
  function optarg(x) result(s)
    real(dp), intent(in) :: x(:)
    real(dp) :: s
    s = inner2(x(1)) + inner2(x(2), x(3))
  contains
    function inner2(a, w) result(r)
      real(dp), intent(in) :: a
      real(dp), intent(in), optional :: w
      real(dp) :: r
      r = a**2
      if (present(w)) r = r * w
    end function
  end function
  function crs(x) result(s)
    real(dp), intent(in) :: x(:)
    real(dp) :: s, y(3), v(4)
    integer :: rp(4), ci(4), i, j
    rp = [1, 2, 4, 5]
    ci = [1, 1, 3, 2]
    v = x(1:4)
    y = 0
    do i = 1, 3
      do j = rp(i), rp(i+1)-1
        y(i) = y(i) + v(j)*x(ci(j))
      end do
    end do
    s = norm2(y) + maxval(y(ci(1:3)))
    y(ci(1:3:2)) = x(5:6)
    s = s + sum(y)
  end function
  function broyden(x) result(r)
    real(dp), intent(in) :: x(:)
    real(dp) :: r, u(2), du(2), f(2), j(2,2), det
    integer :: it
    u = [1.0_dp, 1.0_dp]
    do it = 1, 30
      f = [u(1)**2 + u(2)**2 - x(1) - 3, u(1)*u(2) - x(2)]
      j = reshape([2*u(1), u(2), 2*u(2), u(1)], [2,2])
      det = j(1,1)*j(2,2) - j(1,2)*j(2,1)
      if (abs(det) < 1e-8_dp) then
        u(1) = u(1) + 0.3_dp
        cycle
      end if
      du = [j(2,2)*f(1) - j(1,2)*f(2), -j(2,1)*f(1) + j(1,1)*f(2)]/det
      u = u - du
      if (maxval(abs(du)) < 1e-14_dp) exit
    end do
    r = u(1) - 2*u(2)
  end function
end module
module axes
  implicit none
  type :: root
    real(8) :: k = 1
  end type
  type, extends(root) :: branch
    real(8) :: q = 2
  end type
contains
  function kinds(x) result(s)
    real(8), intent(in) :: x(:)
    real(8) :: s, t0, t1
    class(root), allocatable :: a, b
    integer :: c
    call cpu_time(t0)
    call system_clock(c)
    allocate(branch :: a)
    allocate(root :: b)
    a%k = x(1)
    b%k = x(2)
    s = a%k * b%k
    if (same_type_as(a, b)) s = s * 2
    if (extends_type_of(a, b)) s = s * 3
    call cpu_time(t1)
    if (t1 < t0) s = -1
  end function
  function words(x) result(s)
    real(8), intent(in) :: x(:)
    real(8) :: s
    integer(8) :: bits(2)
    bits = transfer(x(1:2), bits)
    s = sum(transfer(bits, x(1:2))**2)
  end function
  function near(x) result(s)
    real(8), intent(in) :: x(:)
    real(8) :: s
    complex(8) :: z
    integer :: d, n
    d = size(x) / 8
    n = 3
    z = cmplx(x(1), x(2), 8)
    s = nearest(1d0, 1d0) * x(1) + real(z**n) + aimag((z+1)**(-n))
  end function
  function dims(x, k) result(s)
    real(8), intent(in) :: x(:,:)
    integer, intent(in) :: k
    real(8) :: s
    s = sum(sum(x, dim=k)**2) + sum(maxval(x, dim=k)) + sum(real(maxloc(x, dim=k), 8)) + product(sum(x, dim=1, mask=x > 0)) + reduce(x(:,1), add)
  end function
  pure function add(a, b) result(c)
    real(8), intent(in) :: a, b
    real(8) :: c
    c = a + b
  end function
end module
