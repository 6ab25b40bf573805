! Derived types with allocatable components.
module owners
  implicit none
  type :: mesh
    integer :: n
    real(8), allocatable :: u(:)
    real(8), allocatable :: w(:,:)
  end type
  type :: nested
    type(mesh) :: m
    real(8) :: s
  end type
  type :: holder
    type(mesh), allocatable :: parts(:)
  end type
contains
  function own_alloc(x) result(s)
    real(8), intent(in) :: x(:)
    real(8) :: s
    type(mesh) :: a
    allocate(a%u(size(x)))
    a%n = size(x)
    a%u = x**2
    s = sum(a%u)
  end function
  function own_assign(x) result(s)
    real(8), intent(in) :: x(:)
    real(8) :: s
    type(mesh) :: a
    a%u = x**2
    a%n = size(a%u)
    s = sum(a%u)*a%n
  end function
  function own_copied(x) result(s)
    real(8), intent(in) :: x(:)
    real(8) :: s
    type(mesh) :: a, b
    a%u = x**2
    b = a
    b%u(1) = 0
    s = sum(b%u) + a%u(1)*3
  end function
  subroutine fill(m, x)
    type(mesh), intent(inout) :: m
    real(8), intent(in) :: x(:)
    if (allocated(m%u)) deallocate(m%u)
    allocate(m%u(size(x)))
    m%u = x*x
  end subroutine
  function own_passed(x) result(s)
    real(8), intent(in) :: x(:)
    real(8) :: s
    type(mesh) :: a
    call fill(a, x)
    call fill(a, 2*x)
    s = sum(a%u)
  end function
  function make(x) result(m)
    real(8), intent(in) :: x(:)
    type(mesh) :: m
    m%n = size(x)
    m%u = 3*x
  end function
  function own_returned(x) result(s)
    real(8), intent(in) :: x(:)
    real(8) :: s
    type(mesh) :: a
    a = make(x)
    s = sum(a%u**2)
  end function
  function own_nested(x) result(s)
    real(8), intent(in) :: x(:)
    real(8) :: s
    type(nested) :: a
    allocate(a%m%u(size(x)), a%m%w(2,size(x)))
    a%m%u = x
    a%m%w(1,:) = x
    a%m%w(2,:) = x**2
    a%s = sum(a%m%w)
    s = a%s + sum(a%m%u)
  end function
  function own_array(x) result(s)
    real(8), intent(in) :: x(:)
    real(8) :: s
    type(holder) :: h
    integer :: i
    allocate(h%parts(2))
    do i = 1, 2
      allocate(h%parts(i)%u(size(x)))
      h%parts(i)%u = i * x**2
    end do
    s = 0
    do i = 1, 2
      s = s + sum(h%parts(i)%u)*i
    end do
  end function
end module
