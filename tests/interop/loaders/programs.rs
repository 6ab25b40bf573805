use std::collections::VecDeque;
use std::ops::{Add, Mul, Sub};

// Quadrature with a closure.
fn simpson(f: impl Fn(f64) -> f64, a: f64, b: f64, n: usize) -> f64 {
    let h = (b - a) / n as f64;
    (0..=n).map(|i| {
        let w = if i == 0 || i == n { 1.0 } else if i % 2 == 1 { 4.0 } else { 2.0 };
        w * f(a + i as f64 * h)
    }).sum::<f64>() * h / 3.0
}
pub fn quadrature(p: &[f64], b: f64, n: usize) -> f64 {
    simpson(|t| (p[0] * t).sin() * (-p[1] * t * t).exp() + p[2].hypot(t), 0.0, b, n)
}

// Tridiagonal solve: Vec, early return by Result, `?`.
#[derive(Debug)]
pub enum Trouble { Singular(usize) }
fn pivot(d: f64, at: usize) -> Result<f64, Trouble> {
    if d.abs() < 1e-12 { Err(Trouble::Singular(at)) } else { Ok(d) }
}
fn thomas(a: &[f64], b: &[f64], c: &[f64], d: &[f64]) -> Result<Vec<f64>, Trouble> {
    let n = b.len();
    let (mut cp, mut dp) = (vec![0.0; n], Vec::with_capacity(n));
    let first = pivot(b[0], 0)?;
    cp[0] = c[0] / first;
    dp.push(d[0] / first);
    for i in 1..n {
        let m = pivot(b[i] - a[i] * cp[i - 1], i)?;
        cp[i] = c[i] / m;
        dp.push((d[i] - a[i] * dp[i - 1]) / m);
    }
    for i in (0..n - 1).rev() { dp[i] -= cp[i] * dp[i + 1]; }
    Ok(dp)
}
pub fn tridiagonal(a: &[f64], b: &[f64], c: &[f64], d: &[f64], x: &mut [f64]) {
    x.copy_from_slice(&thomas(a, b, c, d).unwrap());
}

// Generics and traits: forward-mode-like arithmetic over a number type of one's own.
#[derive(Clone, Copy)]
struct Complex<T> { re: T, im: T }
impl<T: Copy + Add<Output = T>> Add for Complex<T> { type Output = Self; fn add(self, o: Self) -> Self { Complex { re: self.re + o.re, im: self.im + o.im } } }
impl<T: Copy + Add<Output = T> + Sub<Output = T> + Mul<Output = T>> Mul for Complex<T> {
    type Output = Self;
    fn mul(self, o: Self) -> Self { Complex { re: self.re * o.re - self.im * o.im, im: self.re * o.im + self.im * o.re } }
}
fn horner<T: Copy + Add<Output = T> + Mul<Output = T>>(c: &[T], x: T) -> T {
    c.iter().rev().skip(1).fold(c[c.len() - 1], |acc, &k| acc * x + k)
}
pub fn polynomial(re: &[f64], im: &[f64], x: f64, y: f64) -> f64 {
    let c: Vec<Complex<f64>> = re.iter().zip(im).map(|(&re, &im)| Complex { re, im }).collect();
    let v = horner(&c, Complex { re: x, im: y });
    v.re * v.re + v.im * v.im
}

// Trait objects.
trait Payoff { fn value(&self, s: f64) -> f64; }
struct Call(f64);
struct Digital { strike: f64, width: f64 }
impl Payoff for Call { fn value(&self, s: f64) -> f64 { (s - self.0).max(0.0) } }
impl Payoff for Digital { fn value(&self, s: f64) -> f64 { 0.5 * (1.0 + ((s - self.strike) / self.width).tanh()) } }
pub fn monte_carlo(z: &[f64], spot: f64, vol: f64, strike: f64, digital: bool) -> f64 {
    let payoff: Box<dyn Payoff> = if digital { Box::new(Digital { strike, width: 0.1 }) } else { Box::new(Call(strike)) };
    z.iter().map(|z| payoff.value(spot * (-0.5 * vol * vol + vol * z).exp())).sum::<f64>() / z.len() as f64
}

// An enum with data, match, Option.
enum Gas { Ideal, VanDerWaals { a: f64, b: f64 } }
impl Gas {
    fn pressure(&self, v: f64, t: f64) -> Option<f64> {
        match *self {
            Gas::Ideal => (v > 0.0).then(|| t / v),
            Gas::VanDerWaals { a, b } if v > b => Some(t / (v - b) - a / v.powi(2)),
            _ => None,
        }
    }
}
pub fn equation_of_state(v: f64, t: f64, a: f64, b: f64) -> f64 {
    let gas = if a == 0.0 { Gas::Ideal } else { Gas::VanDerWaals { a, b } };
    gas.pressure(v, t).expect("volume below the excluded one")
}

// Chunks, a matrix product with flat storage and helper closures.
pub fn matmul(a: &[f64], b: &[f64], c: &mut [f64], n: usize) {
    assert_eq!(a.len() % n, 0, "rows of a");
    let column = |j: usize| b.iter().skip(j).step_by(n);
    for (row, out) in a.chunks_exact(n).zip(c.chunks_exact_mut(n)) {
        for (j, o) in out.iter_mut().enumerate() { *o = row.iter().zip(column(j)).map(|(x, y)| x * y).sum(); }
    }
}

// Newton with a loop that breaks.
pub fn kepler(m: f64, e: f64) -> f64 {
    let mut x = m;
    loop {
        let step = (x - e * x.sin() - m) / (1.0 - e * x.cos());
        x -= step;
        if step.abs() < 1e-13 { break x; }
    }
}

// A struct with methods and in-place state.
struct Oscillator { x: f64, v: f64, k: f64 }
impl Oscillator {
    fn new(x: f64, k: f64) -> Self { Self { x, v: 0.0, k } }
    fn step(&mut self, h: f64) -> &mut Self { self.v -= h * self.k * self.x.sin(); self.x += h * self.v; self }
    fn energy(&self) -> f64 { 0.5 * self.v.powi(2) + self.k * (1.0 - self.x.cos()) }
}
impl Drop for Oscillator { fn drop(&mut self) { self.x = 0.0; } }
pub fn pendulum(x: f64, k: f64, h: f64, steps: u32) -> f64 {
    let mut o = Oscillator::new(x, k);
    for _ in 0..steps { o.step(h); }
    o.energy()
}

// Queues, sorting by keys, iterators with state.
pub fn moving(x: &[f64], y: &mut [f64], width: usize) {
    let mut last: VecDeque<f64> = VecDeque::new();
    for (v, out) in x.iter().zip(y.iter_mut()) {
        last.push_back(*v);
        if last.len() > width { last.pop_front(); }
        *out = last.iter().sum::<f64>() / last.len() as f64;
    }
}

// log-sum-exp with fold, scan and f64 methods.
pub fn softmax_loss(x: &[f64], target: usize) -> f64 {
    let top = x.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let total: f64 = x.iter().map(|v| (v - top).exp()).sum();
    let running: f64 = x.iter().scan(0.0, |s, v| { *s += v; Some(*s) }).map(|s: f64| s.ln_1p().clamp(-5.0, 5.0)).sum();
    total.ln() + top - x[target] + 0.1 * running + x[0].mul_add(x[1], x[2].exp_m1()).cbrt()
}
pub mod models { pub mod inner { pub fn square(x: f64) -> f64 { x * x } } }
#[no_mangle] pub extern "C" fn raw(x: *const f64, n: usize, out: *mut f64) -> i32 {
    if x.is_null() || n == 0 { return 3; }
    let x = unsafe { std::slice::from_raw_parts(x, n) };
    unsafe { *out = x.iter().product(); }
    0
}
