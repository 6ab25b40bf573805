pub fn energy(pos: &[[f64; 3]], mass: &[f64]) -> f64 {
    let mut e = 0.0;
    for i in 0..pos.len() {
        for j in 0..i {
            let r: f64 = 0.01 + pos[i].iter().zip(&pos[j]).map(|(a, b)| (a - b) * (a - b)).sum::<f64>();
            e -= mass[i] * mass[j] / r.sqrt();
        }
    }
    e
}
fn slope(y: [f64; 3]) -> [f64; 3] {
    [10.0 * (y[1] - y[0]), y[0] * (28.0 - y[2]) - y[1], y[0] * y[1] - 8.0 / 3.0 * y[2]]
}
pub fn rk4(y: &mut [f64; 3], h: f64, steps: i64) {
    for _ in 0..steps {
        let mut k = [[0.0; 3]; 4];
        k[0] = slope(*y);
        for m in 1..4 {
            let w = if m == 3 { h } else { h / 2.0 };
            let t: [f64; 3] = std::array::from_fn(|i| y[i] + w * k[m - 1][i]);
            k[m] = slope(t);
        }
        for (i, p) in y.iter_mut().enumerate() {
            *p += h / 6.0 * (k[0][i] + 2.0 * k[1][i] + 2.0 * k[2][i] + k[3][i]);
        }
    }
}
pub fn diffuse(u: &[f64], v: &mut [f64]) {
    let n = u.len();
    v[0] = u[0];
    v[n - 1] = u[n - 1];
    for (w, q) in u.windows(3).zip(&mut v[1..n - 1]) {
        *q = w[1] + 0.1 * (w[0] - 2.0 * w[1] + w[2]) * (-w[1]).exp();
    }
}
