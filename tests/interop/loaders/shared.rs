// What goes by the thread: locks, variables of threads, what is made once, hash seeds.
use std::sync::*;
pub fn rw(x: &[f64]) -> f64 { let m = Arc::new(RwLock::new(vec![0.0; 3])); for (i, v) in x.iter().enumerate() { m.write().unwrap()[i % 3] += v * v; } let r = m.read().unwrap(); r[0] * r[1] + r[2] }
static TAB: OnceLock<Vec<f64>> = OnceLock::new();
pub fn once(x: f64) -> f64 { let t = TAB.get_or_init(|| (0..5).map(|i| i as f64).collect()); t.iter().fold(0.0, |s, c| s * x + c) }
static LAZY: LazyLock<Vec<f64>> = LazyLock::new(|| (0..5).map(|i| (i * i) as f64).collect());
pub fn lazy(x: f64) -> f64 { LAZY.iter().fold(0.0, |s, c| s * x + c) }
pub fn held(x: f64) -> f64 { let m = Mutex::new(x); let a = m.lock().unwrap(); let b = m.lock().unwrap(); *a * *b }
thread_local! { static K: std::cell::Cell<f64> = const { std::cell::Cell::new(2.0) }; }
pub fn tls(x: f64) -> f64 { K.with(|k| k.get()) * x * x }
pub fn mutex(x: &[f64]) -> f64 { let m = Arc::new(Mutex::new(0.0)); for v in x { *m.lock().unwrap() += v * v; } let r = *m.lock().unwrap(); r * r }
pub fn hashset(x: &[f64], keys: &[i32]) -> f64 {
    let mut s = std::collections::HashSet::new();
    keys.iter().zip(x).filter(|(k, _)| s.insert(**k)).map(|(_, v)| v * v).sum()
}
pub struct Leaf { p: f64, l: Option<Box<Leaf>>, r: Option<Box<Leaf>> }
fn walk(t: &Option<Box<Leaf>>, d: f64) -> f64 {
    match t { None => 0.0, Some(n) => n.p * n.p * d + walk(&n.l, d + 1.0) + walk(&n.r, d + 2.0) }
}
fn build(mut v: Vec<(f64, f64)>) -> Option<Box<Leaf>> {
    if v.is_empty() { return None; }
    v.sort_by(|a, b| a.0.partial_cmp(&b.0).unwrap());
    let m = v.len() / 2;
    let right = v.split_off(m + 1);
    let p = v.pop().unwrap();
    Some(Box::new(Leaf { p: p.0 * p.1, l: build(v), r: build(right) }))
}
pub fn sorted_tree(x: &[f64]) -> f64 { walk(&build(x.iter().map(|v| (*v, v * v)).collect()), 1.0) }
pub fn indexed(x: &[f64], keys: &[i32]) -> f64 {
    let mut at: std::collections::HashMap<i32, usize> = std::collections::HashMap::new();
    let mut sums: Vec<f64> = Vec::new();
    for (k, v) in keys.iter().zip(x) {
        let i = *at.entry(*k).or_insert_with(|| { sums.push(0.0); sums.len() - 1 });
        sums[i] += v * v;
    }
    keys.iter().map(|k| { let s = sums[at[k]]; s * s }).sum()
}
pub fn hashmap(x: &[f64], keys: &[i32]) -> f64 {
    let mut m: std::collections::HashMap<i32, f64> = std::collections::HashMap::new();
    for (k, v) in keys.iter().zip(x) { *m.entry(*k).or_insert(0.0) += v * v; }
    keys.iter().map(|k| m[k] * m[k]).sum()
}
