module arrays
  implicit none
  integer, parameter :: dp = kind(1d0)
  type :: particle
    real(dp) :: x(3), v(3)
    real(dp) :: m
  end type
  type, abstract :: shape
  contains
    procedure(area_i), deferred :: area
  end type
  abstract interface
    function area_i(self) result(a)
      import shape, dp
      class(shape), intent(in) :: self
      real(dp) :: a
    end function
  end interface
  type, extends(shape) :: circle
    real(dp) :: r
  contains
    procedure :: area => circle_area
  end type
  type, extends(shape) :: box
    real(dp) :: w, h
  contains
    procedure :: area => box_area
  end type
  type :: node
    real(dp) :: v
    type(node), pointer :: next => null()
  end type
  interface operator(+)
    module procedure added
  end interface
contains
  function added(a, b) result(c)
    type(particle), intent(in) :: a, b
    type(particle) :: c
    c = particle(a%x + b%x, a%v + b%v, a%m + b%m)
  end function
  function constructed(x) result(s)
    real(dp), intent(in) :: x(:)
    real(dp) :: s
    type(particle) :: p, q
    p = particle([x(1), x(2), x(3)], [0d0, 1d0, 2d0], x(1)*x(2))
    q = p + p
    s = sum(q%x**2) + q%m + dot_product(p%x, p%v)
  end function
  function assigned(x) result(s)
    real(dp), intent(in) :: x(:)
    real(dp), allocatable :: w(:)
    real(dp) :: s
    w = x * x
    s = sum(w) + norm2(x)
  end function
  function appended(x) result(s)
    real(dp), intent(in) :: x(:)
    real(dp), allocatable :: w(:)
    real(dp) :: s
    integer :: i
    allocate(w(0))
    do i = 1, size(x)
      w = [w, x(i)**2]
    end do
    s = sum(w * x)
  end function
  subroutine cubed(x, y)
    real(dp), allocatable, intent(in) :: x(:)
    real(dp), allocatable, intent(inout) :: y(:)
    y = x**3
  end subroutine
  function allocated(x) result(s)
    real(dp), intent(in) :: x(:)
    real(dp) :: s
    real(dp), allocatable :: a(:), b(:)
    allocate(a(size(x)), source=x)
    call cubed(a, b)
    s = sum(b)
  end function
  function reshaped(x) result(s)
    real(dp), intent(in) :: x(:)
    real(dp) :: s, a(2, 3), b(3, 2), c(2,2)
    a = reshape(x(1:6), [2, 3])
    b = transpose(a)
    c = matmul(a, b)
    s = sum(c) + maxval(a) + minval(b) + product(x(1:3)) + sum(sum(a, dim=1)**2)
  end function
  function located(x) result(s)
    real(dp), intent(in) :: x(:)
    real(dp) :: s
    integer :: i
    i = maxloc(x, dim=1)
    s = x(i)**2 + x(minloc(x, dim=1))
    if (any(x > 0.5_dp)) s = s * 2
    if (all(x > -100)) s = s + 1
    s = s + count(x > 0) * x(1)
  end function
  function positive(x) result(s)
    real(dp), intent(in) :: x(:)
    real(dp), allocatable :: w(:)
    real(dp) :: s
    w = pack(x, x > 0)
    s = sum(w**2)
  end function
  function shifted(x) result(s)
    real(dp), intent(in) :: x(:)
    real(dp) :: s, y(size(x))
    y = cshift(x, 1) * x + eoshift(x, 1)
    s = sum(y**2)
  end function
  function spreaded(x) result(s)
    real(dp), intent(in) :: x(:)
    real(dp) :: s, y(size(x), 3)
    y = spread(x, 2, 3)
    y(:, 2) = y(:, 2) * 2
    s = sum(y**2)
  end function
  function pointers(x) result(s)
    real(dp), intent(in), target :: x(:)
    real(dp), pointer :: p(:), q
    real(dp) :: s
    p => x(1:size(x):2)
    q => x(2)
    s = sum(p**2) * q
  end function
  function moved(x) result(s)
    real(dp), intent(in) :: x(:)
    real(dp), allocatable :: a(:), b(:)
    real(dp) :: s
    allocate(a(size(x)))
    a = x * 2
    call move_alloc(a, b)
    s = sum(b**2)
  end function
  pure elemental function sigmoid(x) result(y)
    real(dp), intent(in) :: x
    real(dp) :: y
    y = 1 / (1 + exp(-x))
  end function
  function activated(x) result(s)
    real(dp), intent(in) :: x(:, :)
    real(dp) :: s
    s = sum(sigmoid(x) * x)
  end function
  function product_of(a, x) result(y)
    real(dp), intent(in) :: a(:, :), x(:)
    real(dp) :: y(size(a, 1))
    y = matmul(a, x)
  end function
  subroutine squares(x, y)
    real(dp), intent(in) :: x(:)
    real(dp), allocatable, intent(out) :: y(:)
    integer :: i
    allocate(y(size(x)))
    do i = 1, size(x)
      y(i) = x(i)**2
    end do
  end subroutine
  subroutine shrunk(y)
    real(dp), allocatable, intent(inout) :: y(:)
    y = [y, 1d0]
    y = y(2:) * y(1)
  end subroutine
  function columns(a) result(s)
    real(dp), allocatable, intent(in) :: a(:, :)
    real(dp) :: s
    s = sum(a(1, :) * a(2, :)) + size(a, 1)
  end function
  function pointed(a) result(s)
    real(dp), pointer, intent(in) :: a(:)
    real(dp) :: s
    s = sum(a**2)
  end function
  function circle_area(self) result(a)
    class(circle), intent(in) :: self
    real(dp) :: a
    a = 3 * self%r**2
  end function
  function box_area(self) result(a)
    class(box), intent(in) :: self
    real(dp) :: a
    a = self%w * self%h
  end function
  function area_of(x, kind_) result(s)
    real(dp), intent(in) :: x
    integer, intent(in) :: kind_
    real(dp) :: s
    class(shape), allocatable :: f
    if (kind_ == 1) then
      allocate(f, source=circle(x))
    else
      allocate(box :: f)
      select type (f)
      type is (box)
        f%w = x
        f%h = 2 * x**2
      end select
    end if
    s = f%area()
  end function
  function powers(x, n, r) result(s)
    real(dp), intent(in) :: x, r
    integer, intent(in) :: n
    real(dp) :: s
    s = x**n + r**x + mod(x, 0.3_dp) + modulo(-x, 0.7_dp) + nint(x) * x + floor(x) + ceiling(x)*x + aint(x) + anint(x)*x
  end function
  function parts_of_floats(x) result(s)
    real(dp), intent(in) :: x
    real(dp) :: s
    s = scale(x, 2) + fraction(x) + exponent(x) * x + spacing(x) + x * epsilon(x) + bessel_jn(2, x) + bessel_y1(x) + erfc_scaled(x) + dim(x, 0.2_dp) + set_exponent(x, 3)
  end function
  function along_axes(a) result(s)
    real(dp), intent(in) :: a(:, :)
    real(dp) :: s, v(size(a, 2)), w(size(a, 1))
    integer :: l(2), k(size(a, 2))
    v = sum(a, dim=1, mask=a > 0)
    w = maxval(a, dim=2)
    l = maxloc(a)
    k = minloc(a, dim=1)
    s = sum(v**2) + sum(w) + a(l(1), l(2))**2 + norm2(a) + sum(norm2(a, dim=1)) + sum(product(a, 2))
    s = s + sum(count(a > 0, dim=1) * v) + v(k(1))
    if (any(any(a > 3, dim=1))) s = s * 2
  end function
  function unpacked(x) result(s)
    real(dp), intent(in) :: x(:)
    real(dp) :: s, y(size(x)), f(size(x))
    integer :: i, p
    f = 1
    y = unpack(pack(x, x > 0), x > 0, f)
    p = findloc([1, 3, 5], 3, dim=1)
    s = sum(y**2) * x(p) + sum([(x(i) * i, i = 1, size(x))])
    y = merge(x, -x, x > 0)
    s = s + total(y)
  end function
  function total(x) result(s)
    real(dp), intent(in), contiguous :: x(:)
    real(dp) :: s
    s = sum(x)
  end function
  function strided(x) result(s)
    real(dp), intent(in) :: x(:, :)
    real(dp) :: s
    s = total(x(1, :)) + outer(x(:, 1), x(1, :))
    call inplace(s)
  end function
  subroutine inplace(s)
    real(dp), intent(inout) :: s
    s = s**2
  end subroutine
  function outer(a, b) result(s)
    real(dp), intent(in) :: a(:), b(:)
    real(dp) :: s, m(size(a), size(b))
    m = spread(a, 2, size(b)) * spread(b, 1, size(a))
    s = sum(matmul(m, b)) + dot_product(matmul(a, m), b)
  end function
  function linked(x) result(s)
    real(dp), intent(in) :: x(:)
    real(dp) :: s
    type(node), pointer :: head, n
    integer :: i
    nullify(head)
    do i = 1, size(x)
      allocate(n)
      n%v = x(i)**2
      n%next => head
      head => n
    end do
    s = 0
    do while (associated(head))
      s = s + head%v * x(1)
      n => head%next
      deallocate(head)
      head => n
    end do
  end function
  function by_name(x, mode) result(s)
    real(dp), intent(in) :: x
    integer, intent(in) :: mode
    real(dp) :: s
    character(len=10) :: name
    name = "linear"
    if (mode == 2) name = "square"
    select case (trim(name))
    case ("linear")
      s = 2 * x
    case ("square")
      s = x**2
    case default
      s = 0
    end select
  end function
  function complex_sums(z) result(s)
    real(dp), intent(in) :: z(:)
    real(dp) :: s
    complex(dp) :: w(size(z)), v
    w = cmplx(z, 2 * z, dp)
    v = sum(w) * exp(w(1)) + dot_product(w, w) + w(1)**3
    s = abs(v)
  end function
end module
