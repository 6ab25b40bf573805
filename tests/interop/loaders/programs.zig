const std = @import("std");
const math = std.math;

fn simpson(comptime f: fn (f64, []const f64) f64, p: []const f64, a: f64, b: f64, n: usize) f64 {
    const h = (b - a) / @as(f64, @floatFromInt(n));
    var s = f(a, p) + f(b, p);
    var i: usize = 1;
    while (i < n) : (i += 1) {
        const w: f64 = if (i % 2 == 1) 4 else 2;
        s += w * f(a + @as(f64, @floatFromInt(i)) * h, p);
    }
    return s * h / 3;
}
fn wave(x: f64, p: []const f64) f64 {
    return @sin(p[0] * x) * @exp(-p[1] * x * x);
}
export fn quadrature(p: [*]const f64, k: usize, b: f64, n: usize) f64 {
    return simpson(wave, p[0..k], 0, b, n);
}

// Errors, defer, a fixed buffer.
const Trouble = error{Singular};
fn thomas(a: []const f64, b: []const f64, c: []const f64, d: []const f64, x: []f64) !void {
    var memory: [4096]u8 = undefined;
    var fixed = std.heap.FixedBufferAllocator.init(&memory);
    const allocator = fixed.allocator();
    const cp = try allocator.alloc(f64, b.len);
    defer allocator.free(cp);
    if (@abs(b[0]) < 1e-12) return Trouble.Singular;
    cp[0] = c[0] / b[0];
    x[0] = d[0] / b[0];
    for (1..b.len) |i| {
        const m = b[i] - a[i] * cp[i - 1];
        if (@abs(m) < 1e-12) return Trouble.Singular;
        cp[i] = c[i] / m;
        x[i] = (d[i] - a[i] * x[i - 1]) / m;
    }
    var i = b.len - 1;
    while (i > 0) {
        i -= 1;
        x[i] -= cp[i] * x[i + 1];
    }
}
export fn tridiagonal(a: [*]const f64, b: [*]const f64, c: [*]const f64, d: [*]const f64, x: [*]f64, n: usize) c_int {
    thomas(a[0..n], b[0..n], c[0..n], d[0..n], x[0..n]) catch |e| return switch (e) {
        error.Singular => 1,
        else => 2,
    };
    return 0;
}

// Optionals, tagged unions.
const Gas = union(enum) {
    ideal,
    van_der_waals: struct { a: f64, b: f64 },
    fn pressure(self: Gas, v: f64, t: f64) ?f64 {
        return switch (self) {
            .ideal => t / v,
            .van_der_waals => |g| if (v > g.b) t / (v - g.b) - g.a / (v * v) else null,
        };
    }
};
export fn equation_of_state(v: f64, t: f64, a: f64, b: f64) f64 {
    const gas: Gas = if (a == 0) .ideal else .{ .van_der_waals = .{ .a = a, .b = b } };
    return gas.pressure(v, t) orelse math.nan(f64);
}

// Generics over types, struct methods.
fn Complex(comptime T: type) type {
    return struct {
        re: T,
        im: T,
        const Self = @This();
        fn mul(x: Self, y: Self) Self {
            return .{ .re = x.re * y.re - x.im * y.im, .im = x.re * y.im + x.im * y.re };
        }
        fn add(x: Self, y: Self) Self {
            return .{ .re = x.re + y.re, .im = x.im + y.im };
        }
    };
}
export fn polynomial(re: [*]const f64, im: [*]const f64, n: usize, x: f64, y: f64) f64 {
    const C = Complex(f64);
    const at: C = .{ .re = x, .im = y };
    var v: C = .{ .re = re[n - 1], .im = im[n - 1] };
    var i = n - 1;
    while (i > 0) : (i -= 1) v = v.mul(at).add(.{ .re = re[i - 1], .im = im[i - 1] });
    return v.re * v.re + v.im * v.im;
}

// Vectors.
export fn vectors(x: [*]const f64, n: usize) f64 {
    var sum: @Vector(4, f64) = @splat(0);
    var i: usize = 0;
    while (i + 4 <= n) : (i += 4) {
        const v: @Vector(4, f64) = x[i..][0..4].*;
        sum += v * v * @sqrt(v);
    }
    var rest = @reduce(.Add, sum);
    while (i < n) : (i += 1) rest += x[i] * x[i] * @sqrt(x[i]);
    return rest;
}

// A list that grows.
export fn grown(x: [*]const f64, n: usize) f64 {
    const allocator = std.heap.c_allocator;
    var list: std.ArrayList(f64) = .empty;
    defer list.deinit(allocator);
    for (x[0..n]) |v| list.append(allocator, v * v * v) catch return math.nan(f64);
    var s: f64 = 0;
    for (list.items, 0..) |v, i| s += v * @as(f64, @floatFromInt(i + 1));
    return s;
}

// Labelled loops, early exits.
export fn kepler(m: f64, e: f64) f64 {
    var x = m;
    while (true) {
        const step = (x - e * @sin(x) - m) / (1 - e * @cos(x));
        x -= step;
        if (@abs(step) < 1e-13) break;
    }
    return x;
}
export fn interpolated(x: [*]const f64, y: [*]const f64, n: usize, at: f64) f64 {
    const i = for (1..n - 1) |k| {
        if (at <= x[k]) break k - 1;
    } else n - 2;
    const w = (at - x[i]) / (x[i + 1] - x[i]);
    return (1 - w) * y[i] + w * y[i + 1];
}

// Function pointers, interfaces by hand.
const Payoff = struct {
    strike: f64,
    value: *const fn (*const Payoff, f64) f64,
    fn call(self: *const Payoff, s: f64) f64 {
        return @max(s - self.strike, 0);
    }
    fn digital(self: *const Payoff, s: f64) f64 {
        return 0.5 * (1 + math.tanh((s - self.strike) / 0.1));
    }
};
export fn payoff(z: [*]const f64, n: usize, spot: f64, vol: f64, strike: f64, smooth: bool) f64 {
    const p: Payoff = .{ .strike = strike, .value = if (smooth) &Payoff.digital else &Payoff.call };
    var s: f64 = 0;
    for (z[0..n]) |v| s += p.value(&p, spot * @exp(-0.5 * vol * vol + vol * v));
    return s / @as(f64, @floatFromInt(n));
}

// Recursion, inline loops, comptime tables.
fn legendre(n: u32, x: f64) f64 {
    if (n == 0) return 1;
    if (n == 1) return x;
    const k: f64 = @floatFromInt(n);
    return ((2 * k - 1) * x * legendre(n - 1, x) - (k - 1) * legendre(n - 2, x)) / k;
}
export fn series(x: f64) f64 {
    const weights = comptime blk: {
        var w: [5]f64 = undefined;
        for (&w, 0..) |*p, i| p.* = 1.0 / @as(f64, @floatFromInt(i + 1));
        break :blk w;
    };
    var s: f64 = 0;
    inline for (weights, 0..) |w, i| s += w * legendre(@intCast(i), x);
    return s + math.pow(f64, x, 2.5) + math.pow(f64, 2.0, x) + math.hypot(x, 3.0) + math.atan2(x, 2.0);
}
export fn matmul(a: [*]const f64, b: [*]const f64, c: [*]f64, n: usize) void {
    for (0..n) |i| for (0..n) |j| {
        var s: f64 = 0;
        for (0..n) |k| s += a[i * n + k] * b[k * n + j];
        c[i * n + j] = s;
    };
}
export fn moving(x: [*]const f64, y: [*]f64, n: usize, width: usize) void {
    var ring: [16]f64 = @splat(0);
    for (x[0..n], y[0..n], 0..) |v, *out, i| {
        ring[i % width] = v;
        const count = @min(i + 1, width);
        var s: f64 = 0;
        for (ring[0..count]) |r| s += r;
        out.* = s / @as(f64, @floatFromInt(count));
    }
}
export fn single(x: [*]const f32, n: usize) f32 {
    var s: f32 = 0;
    for (x[0..n]) |v| s += math.log1p(v * v);
    return @sqrt(s);
}
const Oscillator = struct {
    x: f64,
    v: f64 = 0,
    fn step(self: *Oscillator, k: f64, h: f64) void {
        self.v -= h * k * @sin(self.x);
        self.x += h * self.v;
    }
};
export fn pendulum(x: f64, k: f64, h: f64, steps: u32) f64 {
    var o: Oscillator = .{ .x = x };
    for (0..steps) |_| o.step(k, h);
    return 0.5 * o.v * o.v + k * (1 - @cos(o.x));
}
