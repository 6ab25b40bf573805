use std::f64::consts::PI;
use std::iter::{successors, Sum};
use std::ops::{AddAssign, Index, IndexMut, Mul, Neg};
use std::rc::Rc;
use std::cell::{Cell, RefCell};

// A matrix of its own: Index, IndexMut, a factorisation that returns Result, `?` through two levels.
#[derive(Clone)]
struct Matrix { n: usize, data: Vec<f64> }
impl Index<(usize, usize)> for Matrix { type Output = f64; fn index(&self, (i, j): (usize, usize)) -> &f64 { &self.data[i * self.n + j] } }
impl IndexMut<(usize, usize)> for Matrix { fn index_mut(&mut self, (i, j): (usize, usize)) -> &mut f64 { &mut self.data[i * self.n + j] } }
impl Matrix {
    fn from_slice(data: &[f64], n: usize) -> Self { Self { n, data: data.to_vec() } }
    fn factor(mut self) -> Result<(Self, Vec<usize>), String> {
        let mut order: Vec<usize> = (0..self.n).collect();
        for k in 0..self.n {
            let pivot = (k..self.n).fold(k, |best, i| if self[(i, k)].abs() > self[(best, k)].abs() { i } else { best });
            if self[(pivot, k)] == 0.0 { return Err(format!("column {k} is zero")); }
            if pivot != k {
                for j in 0..self.n { let t = self[(k, j)]; self[(k, j)] = self[(pivot, j)]; self[(pivot, j)] = t; }
                order.swap(k, pivot);
            }
            for i in k + 1..self.n {
                let f = self[(i, k)] / self[(k, k)];
                self[(i, k)] = f;
                for j in k + 1..self.n { let t = self[(k, j)]; self[(i, j)] -= f * t; }
            }
        }
        Ok((self, order))
    }
}
fn solved(a: &[f64], b: &[f64]) -> Result<Vec<f64>, String> {
    let (lu, order) = Matrix::from_slice(a, b.len()).factor()?;
    let mut x: Vec<f64> = order.iter().map(|&i| b[i]).collect();
    for i in 0..x.len() { for j in 0..i { x[i] -= lu[(i, j)] * x[j]; } }
    for i in (0..x.len()).rev() { for j in i + 1..x.len() { x[i] -= lu[(i, j)] * x[j]; } x[i] /= lu[(i, i)]; }
    Ok(x)
}
pub fn solve(a: &[f64], b: &[f64], x: &mut [f64]) { x.copy_from_slice(&solved(a, b).expect("singular")); }

// Const generics, associated types, a trait with a default method, operators by trait bounds.
#[derive(Clone, Copy)]
struct Vector<const N: usize>([f64; N]);
impl<const N: usize> AddAssign for Vector<N> { fn add_assign(&mut self, o: Self) { for (a, b) in self.0.iter_mut().zip(o.0) { *a += b; } } }
impl<const N: usize> Mul<f64> for Vector<N> { type Output = Self; fn mul(self, k: f64) -> Self { Self(self.0.map(|v| k * v)) } }
impl<const N: usize> Neg for Vector<N> { type Output = Self; fn neg(self) -> Self { self * -1.0 } }
trait System {
    type State: Copy + AddAssign + Mul<f64, Output = Self::State>;
    fn rate(&self, y: Self::State) -> Self::State;
    fn rk4(&self, y: Self::State, h: f64) -> Self::State {
        let moved = |k: Self::State, w: f64| { let mut t = y; t += k * w; t };
        let k1 = self.rate(y);
        let k2 = self.rate(moved(k1, h / 2.0));
        let k3 = self.rate(moved(k2, h / 2.0));
        let k4 = self.rate(moved(k3, h));
        let mut out = y;
        for (k, w) in [(k1, 1.0), (k2, 2.0), (k3, 2.0), (k4, 1.0)] { out += k * (h * w / 6.0); }
        out
    }
}
struct Lorenz { sigma: f64, rho: f64, beta: f64 }
impl System for Lorenz {
    type State = Vector<3>;
    fn rate(&self, Vector([x, y, z]): Vector<3>) -> Vector<3> { -Vector([self.sigma * (x - y), y - x * (self.rho - z), self.beta * z - x * y]) }
}
pub fn lorenz(y0: &[f64; 3], rho: f64, h: f64, steps: usize) -> f64 {
    let system = Lorenz { sigma: 10.0, rho, beta: 8.0 / 3.0 };
    let end = (0..steps).fold(Vector(*y0), |y, _| system.rk4(y, h));
    end.0.iter().map(|v| v * v).sum::<f64>().sqrt()
}

// A cubic spline: windows, scan, partition_point, slices by ranges.
pub fn spline(x: &[f64], y: &[f64], at: f64) -> f64 {
    let n = x.len();
    let h: Vec<f64> = x.windows(2).map(|w| w[1] - w[0]).collect();
    let slope: Vec<f64> = y.windows(2).zip(&h).map(|(w, h)| (w[1] - w[0]) / h).collect();
    let (mut c, mut d) = (vec![0.0; n], vec![0.0; n]);
    for i in 1..n - 1 {
        let p = 2.0 * (h[i - 1] + h[i]) - h[i - 1] * c[i - 1];
        c[i] = h[i] / p;
        d[i] = (6.0 * (slope[i] - slope[i - 1]) - h[i - 1] * d[i - 1]) / p;
    }
    let mut m = vec![0.0; n];
    for i in (1..n - 1).rev() { m[i] = d[i] - c[i] * m[i + 1]; }
    let k = x[1..n - 1].partition_point(|&v| v < at);
    let (a, b) = ((x[k + 1] - at) / h[k], (at - x[k]) / h[k]);
    a * y[k] + b * y[k + 1] + ((a.powi(3) - a) * m[k] + (b.powi(3) - b) * m[k + 1]) * h[k] * h[k] / 6.0
}

// Recursion with Option and `?`; adaptive quadrature over a generic closure.
fn adaptive<F: Fn(f64) -> f64>(f: &F, a: f64, b: f64, whole: f64, depth: u32) -> Option<f64> {
    let simpson = |a: f64, b: f64| (b - a) / 6.0 * (f(a) + 4.0 * f(0.5 * (a + b)) + f(b));
    let m = 0.5 * (a + b);
    let (left, right) = (simpson(a, m), simpson(m, b));
    if (left + right - whole).abs() < 1e-9 { return Some(left + right); }
    let deeper = depth.checked_sub(1)?;
    Some(adaptive(f, a, m, left, deeper)? + adaptive(f, m, b, right, deeper)?)
}
pub fn runge(a: f64, b: f64, k: f64) -> f64 { adaptive(&|x: f64| 1.0 / (1.0 + k * x * x), a, b, 0.0, 30).unwrap_or(f64::NAN) }

// Random numbers by an iterator of one's own, boxed closures in a Vec, Box-Muller.
struct SplitMix(u64);
impl Iterator for SplitMix {
    type Item = f64;
    fn next(&mut self) -> Option<f64> {
        self.0 = self.0.wrapping_add(0x9E3779B97F4A7C15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58476D1CE4E5B9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94D049BB133111EB);
        Some(((z ^ (z >> 31)) >> 11) as f64 / (1u64 << 53) as f64)
    }
}
pub fn book(spot: f64, vol: f64, strikes: &[f64], seed: u64, paths: usize) -> f64 {
    let payoffs: Vec<Box<dyn Fn(f64) -> f64 + '_>> = strikes.iter().enumerate().map(|(i, &k)| -> Box<dyn Fn(f64) -> f64 + '_> {
        if i % 2 == 0 { Box::new(move |s| (s - k).max(0.0)) } else { Box::new(move |s| 1.0 / (1.0 + ((k - s) / 0.05).exp())) }
    }).collect();
    let mut uniform = SplitMix(seed);
    let mut sum = 0.0;
    for _ in 0..paths {
        let (u, v) = (uniform.next().unwrap(), uniform.next().unwrap());
        let z = (-2.0 * (1.0 - u).ln()).sqrt() * (2.0 * PI * v).cos();
        let s = spot * (vol * z - 0.5 * vol * vol).exp();
        sum += payoffs.iter().map(|p| p(s)).sum::<f64>();
    }
    sum / paths as f64
}

// Peng and Robinson's equation by Newton: successors, take_while, builder methods.
#[derive(Default, Clone, Copy)]
struct Fluid { tc: f64, pc: f64, omega: f64 }
impl Fluid {
    fn critical(mut self, tc: f64, pc: f64) -> Self { self.tc = tc; self.pc = pc; self }
    fn acentric(self, omega: f64) -> Self { Self { omega, ..self } }
    fn pressure(&self, v: f64, t: f64) -> f64 {
        let r = 8.314;
        let k = 0.37464 + 1.54226 * self.omega - 0.26992 * self.omega.powi(2);
        let s = 1.0 + k * (1.0 - (t / self.tc).sqrt());
        let (a, b) = (0.45724 * (r * self.tc * s).powi(2) / self.pc, 0.0778 * r * self.tc / self.pc);
        r * t / (v - b) - a / (v * v + 2.0 * b * v - b * b)
    }
}
pub fn volume(p: f64, t: f64, tc: f64, pc: f64, omega: f64) -> f64 {
    let fluid = Fluid::default().critical(tc, pc).acentric(omega);
    let step = |v: f64| {
        let h = 1e-6 * v;
        v - (fluid.pressure(v, t) - p) * 2.0 * h / (fluid.pressure(v + h, t) - fluid.pressure(v - h, t))
    };
    successors(Some(8.314 * t / p), |&v| Some(step(v))).take(40).last().unwrap()
}

// Shared ownership and interior mutability: a tape of one's own, as a list of Rc.
struct Node { value: Cell<f64>, next: RefCell<Option<Rc<Node>>> }
pub fn linked(x: &[f64]) -> f64 {
    let nodes: Vec<Rc<Node>> = x.iter().map(|&v| Rc::new(Node { value: Cell::new(v), next: RefCell::new(None) })).collect();
    for pair in nodes.windows(2) { *pair[0].next.borrow_mut() = Some(Rc::clone(&pair[1])); }
    for node in &nodes {
        if let Some(next) = node.next.borrow().as_ref() { next.value.set(next.value.get() + 0.5 * node.value.get().powi(2)); }
    }
    nodes.last().map_or(0.0, |n| n.value.get())
}

// Sorting by partial_cmp, chunks, products.
pub fn trimmed(x: &[f64]) -> f64 {
    let mut y = x.to_vec();
    y.sort_by(|a, b| a.partial_cmp(b).unwrap());
    let rest = &y[x.len() / 4..x.len() - x.len() / 4];
    rest.iter().map(|v| v * v).sum::<f64>() / rest.len() as f64 + y.chunks(2).map(|c| c.iter().product::<f64>()).sum::<f64>()
}

// Sum for a type of one's own, PhantomData-like wrappers, From, slices by pattern.
#[derive(Clone, Copy)]
struct Metres(f64);
impl From<f64> for Metres { fn from(v: f64) -> Self { Metres(v) } }
impl Sum for Metres { fn sum<I: Iterator<Item = Metres>>(all: I) -> Self { Metres(all.map(|m| m.0).sum()) } }
pub fn path(points: &[[f64; 2]]) -> f64 {
    let length: Metres = points.windows(2).map(|w| match w { [[x0, y0], [x1, y1]] => Metres::from((x1 - x0).hypot(y1 - y0)), _ => unreachable!() }).sum();
    length.0
}

// A wave in place: split_at_mut, swap, iter over three rows at once.
pub fn wave(u: &mut [f64], c: f64, steps: usize) {
    let (mut now, mut before) = (u.to_vec(), u.to_vec());
    for _ in 0..steps {
        let mut next = now.clone();
        for ((out, w), old) in next[1..].iter_mut().zip(now.windows(3)).zip(&before[1..]) { *out = 2.0 * w[1] - old + c * (w[0] - 2.0 * w[1] + w[2]); }
        std::mem::swap(&mut before, &mut now);
        now = next;
    }
    let (left, right) = u.split_at_mut(now.len() / 2);
    left.copy_from_slice(&now[..left.len()]);
    right.iter_mut().zip(&now[left.len()..]).for_each(|(a, b)| *a = *b);
}
