pub export fn energy(pos: [*]const [3]f64, mass: [*]const f64, n: usize) f64 {
    var e: f64 = 0;
    for (pos[0..n], mass[0..n], 0..) |a, m, i| {
        for (pos[0..i], mass[0..i]) |b, w| {
            var r: f64 = 0.01;
            for (a, b) |x, y| r += (x - y) * (x - y);
            e -= m * w / @sqrt(r);
        }
    }
    return e;
}
fn slope(y: [3]f64) [3]f64 {
    return .{ 10 * (y[1] - y[0]), y[0] * (28 - y[2]) - y[1], y[0] * y[1] - 8.0 / 3.0 * y[2] };
}
pub export fn rk4(y: *[3]f64, h: f64, steps: i64) void {
    var s: i64 = 0;
    while (s < steps) : (s += 1) {
        var k: [4][3]f64 = undefined;
        k[0] = slope(y.*);
        for (1..4) |m| {
            const w = if (m == 3) h else h / 2;
            var t: [3]f64 = undefined;
            for (&t, y, k[m - 1]) |*p, a, b| p.* = a + w * b;
            k[m] = slope(t);
        }
        for (y, 0..) |*p, i| p.* += h / 6 * (k[0][i] + 2 * k[1][i] + 2 * k[2][i] + k[3][i]);
    }
}
fn inside(u: []const f64, v: []f64) void {
    for (1..u.len - 1) |i| v[i] = u[i] + 0.1 * (u[i - 1] - 2 * u[i] + u[i + 1]) * @exp(-u[i]);
}
pub export fn diffuse(u: [*]const f64, v: [*]f64, n: usize) void {
    v[0] = u[0];
    v[n - 1] = u[n - 1];
    inside(u[0..n], v[0..n]);
}
