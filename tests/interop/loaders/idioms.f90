! Idioms of Fortran, each a function of an array x.
module various
  implicit none
  interface area
    module procedure area1, area2
  end interface
  type :: stack
    real(8) :: items(10)
    integer :: n = 0
  contains
    procedure :: push
    procedure :: pop
    procedure, private :: addit
    generic :: operator(+) => addit
  end type
  type, abstract :: eos
  contains
    procedure(pr), deferred :: p
  end type
  abstract interface
    function pr(self, rho) result(r)
      import eos
      class(eos), intent(in) :: self
      real(8), intent(in) :: rho
      real(8) :: r
    end function
  end interface
  type, extends(eos) :: ideal
    real(8) :: g = 1.4d0
  contains
    procedure :: p => pideal
  end type
contains
  function pideal(self, rho) result(r)
    class(ideal), intent(in) :: self
    real(8), intent(in) :: rho
    real(8) :: r
    r = rho**self%g
  end function
  function use_eos(rho) result(r)
    real(8), intent(in) :: rho
    real(8) :: r
    type(ideal) :: e
    r = call_eos(e, rho)
  end function
  function call_eos(e, rho) result(r)
    class(eos), intent(in) :: e
    real(8), intent(in) :: rho
    real(8) :: r
    r = e%p(rho) * 2
  end function
  subroutine push(self, v)
    class(stack), intent(inout) :: self
    real(8), intent(in) :: v
    self%n = self%n + 1
    self%items(self%n) = v
  end subroutine
  function pop(self) result(v)
    class(stack), intent(inout) :: self
    real(8) :: v
    v = self%items(self%n)
    self%n = self%n - 1
  end function
  function addit(self, v) result(w)
    class(stack), intent(in) :: self
    real(8), intent(in) :: v
    real(8) :: w
    w = self%items(1) + v
  end function
  function use_stack(x) result(s)
    real(8), intent(in) :: x(:)
    real(8) :: s
    type(stack) :: t
    call t%push(x(1)**2)
    call t%push(x(2)*x(1))
    s = t%pop() * x(3) + (t + x(2))
  end function
  function area1(r) result(a)
    real(8), intent(in) :: r
    real(8) :: a
    a = 3*r*r
  end function
  function area2(w, h) result(a)
    real(8), intent(in) :: w, h
    real(8) :: a
    a = w*h
  end function
  function generics(x) result(s)
    real(8), intent(in) :: x(:)
    real(8) :: s
    s = area(x(1)) + area(x(2), x(3))
  end function
  function opt(x, k) result(y)
    real(8), intent(in) :: x
    real(8), intent(in), optional :: k
    real(8) :: y
    y = x*x
    if (present(k)) y = y*k
  end function
  function optional_(x) result(s)
    real(8), intent(in) :: x(:)
    real(8) :: s
    s = opt(x(1)) + opt(x(2), x(3)) + opt(x(3), k=x(1))
  end function
  function associates(x) result(s)
    real(8), intent(in) :: x(:)
    real(8) :: s, y(3)
    y = x(1:3)
    associate (a => y(1), b => x(2:3), c => x(1)*x(2))
      a = a * 2
      s = a**2 + sum(b) * c
    end associate
    s = s + y(1)
  end function
  function blocks(x) result(s)
    real(8), intent(in) :: x(:)
    real(8) :: s
    s = 0
    block
      real(8) :: t(size(x))
      t = x**2
      s = sum(t)
    end block
  end function
  function foralls(x) result(s)
    real(8), intent(in) :: x(:)
    real(8) :: s, a(size(x), size(x))
    integer :: i, j
    a = 0
    forall (i=1:size(x), j=1:size(x), i /= j) a(i,j) = x(i)*x(j)**2
    s = sum(a)
  end function
  function concurrent_(x) result(s)
    real(8), intent(in) :: x(:)
    real(8) :: s, y(size(x)), t
    integer :: i
    do concurrent (i=1:size(x)) local(t)
      t = x(i)**2
      y(i) = t * sin(t)
    end do
    s = sum(y)
  end function
  elemental function act(x, a) result(y)
    real(8), intent(in) :: x, a
    real(8) :: y
    y = merge(x*a, x**2, x > 0)
  end function
  function elementals(x) result(s)
    real(8), intent(in) :: x(:)
    real(8) :: s
    s = sum(act(x, x(1))) + sum(act(x, 2d0))
  end function
  recursive function bisect(a, b, depth) result(s)
    real(8), intent(in) :: a, b
    integer, intent(in) :: depth
    real(8) :: s, m
    m = (a + b)/2
    if (depth == 0) then
      s = (b - a) * m**3
    else
      s = bisect(a, m, depth - 1) + bisect(m, b, depth - 1)
    end if
  end function
  function recursion(x) result(s)
    real(8), intent(in) :: x(:)
    real(8) :: s
    s = bisect(x(1), x(2), 4)
  end function
  function internal(x) result(s)
    real(8), intent(in) :: x(:)
    real(8) :: s, shared
    shared = x(1)
    call bump(x(2))
    call bump(x(3))
    s = shared**2
  contains
    subroutine bump(v)
      real(8), intent(in) :: v
      shared = shared * v
    end subroutine
  end function
  function rand_inactive(x) result(s)
    real(8), intent(in) :: x(:)
    real(8) :: s, r(size(x)), one
    integer :: seed(64)
    seed = 7
    call random_seed(put=seed)
    call random_number(r)
    call random_number(one)
    s = sum(x**2 * r) + one*0*x(1)
    s = sum(x**2) + 0*s
  end function
  function chars(x, mode) result(s)
    real(8), intent(in) :: x
    character(len=*), intent(in) :: mode
    real(8) :: s
    if (mode == "sq") then
      s = x*x
    else
      s = x
    end if
  end function
  function use_chars(x) result(s)
    real(8), intent(in) :: x(:)
    real(8) :: s
    character(len=:), allocatable :: name
    name = "s" // "q"
    s = chars(x(1), name) + chars(x(2), "lin")
  end function
  function ptr_swap(x) result(s)
    real(8), intent(in) :: x(:)
    real(8) :: s
    real(8), target :: a(3), b(3)
    real(8), pointer :: p(:), q(:), t(:)
    integer :: i
    a = x(1:3)
    b = 0
    p => a
    q => b
    do i = 1, 3
      q = p**2 / 2
      t => p
      p => q
      q => t
    end do
    s = sum(p)
  end function
  function ptr_alloc(x) result(s)
    real(8), intent(in) :: x(:)
    real(8) :: s
    real(8), pointer :: p(:,:)
    allocate(p(2, size(x)))
    p(1,:) = x
    p(2,:) = x**2
    s = sum(p(1,:)*p(2,:))
    deallocate(p)
  end function
  function reshapes(x) result(s)
    real(8), intent(in) :: x(:)
    real(8) :: s, a(2,2)
    a = reshape(x(1:4), [2,2], order=[2,1])
    s = a(1,2)**2 + a(2,1) + sum(matmul(a, transpose(a)))
    s = s + sum(spread(x, dim=1, ncopies=2)*2)
    s = s + maxval(pack(x, x < 1)) + x(maxloc(x,1))
  end function
  function implied(x) result(s)
    real(8), intent(in) :: x(:)
    real(8) :: s
    integer :: i
    real(8), allocatable :: t(:)
    t = [(x(i)**2, i=1,size(x)), 1d0]
    s = sum(t) + dot_product(t(1:2), x(1:2))
  end function
  function named_exit(x) result(s)
    real(8), intent(in) :: x(:)
    real(8) :: s
    integer :: i, j
    s = 0
    outer: do i = 1, size(x)
      do j = 1, size(x)
        if (j > i) cycle outer
        if (i*j > 6) exit outer
        s = s + x(i)*x(j)
      end do
    end do outer
  end function
  function saved(x) result(s)
    real(8), intent(in) :: x(:)
    real(8) :: s
    real(8), save :: cache(100) = 0
    cache(1:size(x)) = x**2
    s = sum(cache(1:size(x)))
  end function
  function wheremask(x) result(s)
    real(8), intent(in) :: x(:)
    real(8) :: s, y(size(x))
    y = x
    where (x > 0.5d0)
      y = sqrt(x)
    elsewhere (x > 0)
      y = x**3
    elsewhere
      y = -x
    end where
    s = sum(y)
  end function
  function procptr(x) result(s)
    real(8), intent(in) :: x(:)
    real(8) :: s
    procedure(area1), pointer :: f
    f => area1
    s = f(x(1))
    if (x(2) > 0) f => cube
    s = s + f(x(2))
  end function
  function cube(r) result(a)
    real(8), intent(in) :: r
    real(8) :: a
    a = r**3
  end function
  function lowbounds(x) result(s)
    real(8), intent(in) :: x(:)
    real(8) :: s, u(0:4), v(-2:2)
    u(0:2) = x(1:3); u(3:4) = 1
    v(-2:2) = u
    s = u(0)*v(-1) + lbound(v,1)*v(0) + ubound(u,1)*x(3)
  end function
  function cplx(x) result(s)
    real(8), intent(in) :: x(:)
    real(8) :: s
    complex(8), allocatable :: z(:)
    integer :: i
    z = [(cmplx(x(i), x(1), 8), i = 1, size(x))]
    s = real(sum(exp(z)*conjg(z)), 8) + abs(z(1))
  end function
  function derived_array(x) result(s)
    real(8), intent(in) :: x(:)
    real(8) :: s
    type :: pt
      real(8) :: p(3)
      real(8) :: m
    end type
    type(pt), allocatable :: ps(:)
    integer :: i
    allocate(ps(size(x)))
    do i = 1, size(x)
      ps(i)%p = x(i) * [1d0, 2d0, 3d0]
      ps(i)%m = x(i)
    end do
    s = sum(ps%m * ps%p(2)) + sum(ps(1)%p)
  end function
end module
