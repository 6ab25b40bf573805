! Internal procedures as arguments: of a function, of one another, of a recursive one.
module m
contains
  function simpson(f, a, b, n) result(s)
    interface
      function f(t) result(r)
        real(8), intent(in) :: t
        real(8) :: r
      end function
    end interface
    real(8), intent(in) :: a, b
    integer, intent(in) :: n
    real(8) :: s, h
    integer :: i
    h = (b-a)/n
    s = f(a) + f(b)
    do i = 1, n-1
      s = s + merge(4.0d0, 2.0d0, mod(i,2)==1)*f(a+i*h)
    end do
    s = s*h/3
  end function
  function g(x) result(s)
    real(8), intent(in) :: x(:)
    real(8) :: s
    s = simpson(wave, 0d0, x(3), 10) + simpson(sq, 0d0, x(2), 6)
  contains
    function wave(t) result(r)
      real(8), intent(in) :: t
      real(8) :: r
      r = sin(x(1)*t)*exp(-x(2)*t*t)
    end function
    function sq(t) result(r)
      real(8), intent(in) :: t
      real(8) :: r
      r = simpson(inner, 0d0, t, 4)*x(4)
    end function
    function inner(t) result(r)
      real(8), intent(in) :: t
      real(8) :: r
      r = cos(x(1)*t)
    end function
  end function
  recursive function boy(k, x1, x2, x3, x4, x5) result(a)
    integer, value :: k
    interface
      function x1() result(r); real(8) :: r; end function
      function x2() result(r); real(8) :: r; end function
      function x3() result(r); real(8) :: r; end function
      function x4() result(r); real(8) :: r; end function
      function x5() result(r); real(8) :: r; end function
    end interface
    real(8) :: a
    if (k <= 0) then
      a = x4() + x5()
    else
      a = b()
    end if
  contains
    recursive function b() result(r)
      real(8) :: r
      k = k - 1
      r = boy(k, b, x1, x2, x3, x4)
    end function
  end function
  function man(x) result(s)
    real(8), intent(in) :: x(:)
    real(8) :: s
    s = boy(5, one, two, two, one, zero)
  contains
    function one() result(r); real(8) :: r; r = x(1); end function
    function two() result(r); real(8) :: r; r = -x(1)*x(2); end function
    function zero() result(r); real(8) :: r; r = 0; end function
  end function
end module
