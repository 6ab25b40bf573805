// Vectors of vectors, trait objects, iterators, closures, enums: each function of a slice.
pub fn vecvec(x: &[f64]) -> f64 {
    let n = x.len();
    let mut a: Vec<Vec<f64>> = vec![vec![0.0; n]; n];
    for i in 0..n { for j in 0..n { a[i][j] = x[i] * x[j] * x[j]; } }
    a.iter().map(|r| r.iter().sum::<f64>()).sum()
}
trait Eos { fn p(&self, r: f64) -> f64; }
struct Ideal { g: f64 }
struct Stiff { g: f64, c: f64 }
impl Eos for Ideal { fn p(&self, r: f64) -> f64 { r.powf(self.g) } }
impl Eos for Stiff { fn p(&self, r: f64) -> f64 { self.c * r * r + self.g } }
pub fn dyns(x: &[f64]) -> f64 {
    let models: Vec<Box<dyn Eos>> = vec![Box::new(Ideal { g: x[1] }), Box::new(Stiff { g: x[0], c: x[1] })];
    models.iter().map(|m| m.p(x[0])).sum()
}
pub fn zips(x: &[f64]) -> f64 {
    x.iter().zip(x.iter().skip(1)).enumerate().map(|(i, (a, b))| a * b * i as f64).sum::<f64>()
        + x.windows(2).map(|w| (w[1] - w[0]).powi(2)).sum::<f64>()
        + x.chunks(2).map(|c| c.iter().product::<f64>()).fold(0.0, |a, b| a + b)
}
pub fn sorts(x: &[f64]) -> f64 {
    let mut v = x.to_vec();
    v.sort_by(|a, b| a.partial_cmp(b).unwrap());
    v[0] * v[1] + v.last().unwrap()
}
pub fn maxes(x: &[f64]) -> f64 {
    let m = x.iter().cloned().fold(f64::NEG_INFINITY, f64::max);
    let s: f64 = x.iter().map(|v| (v - m).exp()).sum();
    m + s.ln() + x.iter().copied().min_by(|a, b| a.total_cmp(b)).unwrap()
}
enum Shape { Circle(f64), Rect { w: f64, h: f64 }, Empty }
fn area(s: &Shape) -> f64 { match s { Shape::Circle(r) => 3.0 * r * r, Shape::Rect { w, h } => w * h, Shape::Empty => 0.0 } }
pub fn matches(x: &[f64]) -> f64 {
    let v = [Shape::Circle(x[0]), Shape::Rect { w: x[1], h: x[0] }, Shape::Empty];
    v.iter().map(area).sum()
}
struct Mat { r: usize, c: usize, d: Vec<f64> }
impl std::ops::Index<(usize, usize)> for Mat { type Output = f64; fn index(&self, i: (usize, usize)) -> &f64 { &self.d[i.0 * self.c + i.1] } }
impl std::ops::IndexMut<(usize, usize)> for Mat { fn index_mut(&mut self, i: (usize, usize)) -> &mut f64 { &mut self.d[i.0 * self.c + i.1] } }
impl std::ops::Mul<&Mat> for &Mat { type Output = Mat; fn mul(self, o: &Mat) -> Mat {
    let mut m = Mat { r: self.r, c: o.c, d: vec![0.0; self.r * o.c] };
    for i in 0..self.r { for j in 0..o.c { for k in 0..self.c { m[(i, j)] += self[(i, k)] * o[(k, j)]; } } } m } }
pub fn matrices(x: &[f64]) -> f64 {
    let a = Mat { r: 2, c: 2, d: x[0..4].to_vec() };
    let b = &a * &a;
    (&b * &a).d.iter().sum()
}
pub fn single(x: &[f32]) -> f32 { x.iter().map(|v| v.sin() * v).sum() }
pub fn closures(x: &[f64]) -> f64 {
    let make = |k: f64| move |v: f64| k * v * v;
    let fs: Vec<Box<dyn Fn(f64) -> f64>> = vec![Box::new(make(x[0])), Box::new(|v| v + x[1])];
    fs.iter().fold(x[2], |acc, f| f(acc))
}
pub fn generics(x: &[f64]) -> f64 {
    fn integrate<F: Fn(f64) -> f64>(f: F, a: f64, b: f64, n: usize) -> f64 { let h = (b - a) / n as f64; (0..n).map(|i| f(a + (i as f64 + 0.5) * h)).sum::<f64>() * h }
    integrate(|t| (x[0] * t).sin(), 0.0, x[1], 10)
}
pub fn strings(x: &[f64]) -> f64 {
    let mode = String::from("square");
    match mode.as_str() { "square" => x[0] * x[0], _ => x[0] }
}
