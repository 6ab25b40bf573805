const std = @import("std");
const math = std.math;

// A comptime generic type with a size, operators as methods, anytype.
fn Vec(comptime n: usize) type {
    return struct {
        v: [n]f64,
        const Self = @This();
        pub fn axpy(self: *Self, a: f64, x: Self) void {
            for (&self.v, x.v) |*s, t| s.* += a * t;
        }
        pub fn norm(self: Self) f64 {
            var s: f64 = 0;
            inline for (0..n) |i| s += self.v[i] * self.v[i];
            return @sqrt(s);
        }
    };
}
fn rk4(system: anytype, y: anytype, h: f64) @TypeOf(y) {
    const k1 = system.rate(y);
    var t = y;
    t.axpy(h / 2, k1);
    const k2 = system.rate(t);
    t = y;
    t.axpy(h / 2, k2);
    const k3 = system.rate(t);
    t = y;
    t.axpy(h, k3);
    const k4 = system.rate(t);
    var out = y;
    inline for (.{ k1, k2, k3, k4 }, .{ 1.0, 2.0, 2.0, 1.0 }) |k, w| out.axpy(h * w / 6, k);
    return out;
}
const Lorenz = struct {
    sigma: f64 = 10,
    rho: f64,
    beta: f64 = 8.0 / 3.0,
    fn rate(self: @This(), y: Vec(3)) Vec(3) {
        return .{ .v = .{
            self.sigma * (y.v[1] - y.v[0]),
            y.v[0] * (self.rho - y.v[2]) - y.v[1],
            y.v[0] * y.v[1] - self.beta * y.v[2],
        } };
    }
};
export fn lorenz(y0: *const [3]f64, rho: f64, h: f64, steps: usize) f64 {
    var y: Vec(3) = .{ .v = y0.* };
    const system: Lorenz = .{ .rho = rho };
    for (0..steps) |_| y = rk4(system, y, h);
    return y.norm();
}

// Error sets, errdefer, try, an allocator handed on; a natural cubic spline.
const SplineError = error{ TooShort, NotIncreasing };
const Spline = struct {
    x: []const f64,
    y: []const f64,
    m: []f64,
    allocator: std.mem.Allocator,

    fn init(allocator: std.mem.Allocator, x: []const f64, y: []const f64) (SplineError || error{OutOfMemory})!Spline {
        const n = x.len;
        if (n < 3) return error.TooShort;
        const m = try allocator.alloc(f64, n);
        errdefer allocator.free(m);
        const u = try allocator.alloc(f64, n);
        defer allocator.free(u);
        @memset(m, 0);
        @memset(u, 0);
        for (1..n - 1) |i| {
            const h0 = x[i] - x[i - 1];
            const h1 = x[i + 1] - x[i];
            if (h0 <= 0 or h1 <= 0) return error.NotIncreasing;
            const p = h0 / (h0 + h1) * m[i - 1] + 2;
            m[i] = (h0 / (h0 + h1) - 1) / p;
            const d = (y[i + 1] - y[i]) / h1 - (y[i] - y[i - 1]) / h0;
            u[i] = (6 * d / (h0 + h1) - h0 / (h0 + h1) * u[i - 1]) / p;
        }
        m[n - 1] = 0;
        var k = n - 1;
        while (k > 0) {
            k -= 1;
            m[k] = m[k] * m[k + 1] + u[k];
        }
        return .{ .x = x, .y = y, .m = m, .allocator = allocator };
    }
    fn deinit(self: *Spline) void {
        self.allocator.free(self.m);
        self.* = undefined;
    }
    fn at(self: Spline, t: f64) f64 {
        var lo: usize = 0;
        var hi = self.x.len - 1;
        while (hi - lo > 1) {
            const mid = (hi + lo) / 2;
            if (self.x[mid] > t) hi = mid else lo = mid;
        }
        const h = self.x[hi] - self.x[lo];
        const a = (self.x[hi] - t) / h;
        const b = (t - self.x[lo]) / h;
        const curved = (a * a * a - a) * self.m[lo] + (b * b * b - b) * self.m[hi];
        return a * self.y[lo] + b * self.y[hi] + curved * h * h / 6;
    }
};
export fn spline(x: [*]const f64, y: [*]const f64, n: usize, t: f64, value: *f64) i32 {
    var s = Spline.init(std.heap.c_allocator, x[0..n], y[0..n]) catch |e| return switch (e) {
        error.TooShort => 1,
        error.NotIncreasing => 2,
        error.OutOfMemory => 3,
    };
    defer s.deinit();
    value.* = s.at(t);
    return 0;
}

// Nodes of Gauss and Legendre, found when the program is compiled.
fn nodes(comptime n: usize) [n][2]f64 {
    @setEvalBranchQuota(100_000);
    var out: [n][2]f64 = undefined;
    for (0..n) |i| {
        var x = @cos(math.pi * (@as(f64, i) + 0.75) / (@as(f64, n) + 0.5));
        var d: f64 = 0;
        for (0..8) |_| {
            var p0: f64 = 1;
            var p1: f64 = x;
            for (2..n + 1) |k| {
                const kf: f64 = @floatFromInt(k);
                const p2 = ((2 * kf - 1) * x * p1 - (kf - 1) * p0) / kf;
                p0 = p1;
                p1 = p2;
            }
            d = @as(f64, n) * (x * p1 - p0) / (x * x - 1);
            x -= p1 / d;
        }
        out[i] = .{ x, 2 / ((1 - x * x) * d * d) };
    }
    return out;
}
const gauss = nodes(7);
fn Integrand(comptime Context: type) type {
    return struct { context: Context, call: *const fn (Context, f64) f64 };
}
fn integrate(f: anytype, a: f64, b: f64) f64 {
    var s: f64 = 0;
    for (gauss) |row| s += row[1] * f.call(f.context, (a + b) / 2 + (b - a) / 2 * row[0]);
    return s * (b - a) / 2;
}
export fn gauss_legendre(p: *const [2]f64, a: f64, b: f64) f64 {
    const f: Integrand(*const [2]f64) = .{ .context = p, .call = struct {
        fn call(q: *const [2]f64, x: f64) f64 {
            return math.exp(-q[0] * x * x) * @cos(q[1] * x);
        }
    }.call };
    return integrate(f, a, b);
}

// Recursion with an optional result; adaptive quadrature.
fn adaptive(a: f64, b: f64, k: f64, whole: f64, depth: u8) ?f64 {
    if (depth == 0) return null;
    const m = (a + b) / 2;
    const left = simpson(a, m, k);
    const right = simpson(m, b, k);
    if (@abs(left + right - whole) < 1e-9) return left + right;
    const x = adaptive(a, m, k, left, depth - 1) orelse return null;
    const y = adaptive(m, b, k, right, depth - 1) orelse return null;
    return x + y;
}
fn simpson(a: f64, b: f64, k: f64) f64 {
    return (b - a) / 6 * (bump(a, k) + 4 * bump((a + b) / 2, k) + bump(b, k));
}
fn bump(x: f64, k: f64) f64 {
    return 1 / (1 + k * x * x);
}
export fn runge(a: f64, b: f64, k: f64) f64 {
    return adaptive(a, b, k, simpson(a, b, k), 30) orelse math.nan(f64);
}

// Packed structs of flags, switch on ranges, bits that are taken out.
const Flags = packed struct(u8) { squared: bool, logarithm: bool, power: u3, _: u3 = 0 };
export fn flagged(x: [*]const f64, kinds: [*]const u8, n: usize) f64 {
    var s: f64 = 0;
    for (x[0..n], kinds[0..n]) |v, bits| {
        const flags: Flags = @bitCast(bits);
        var t = if (flags.squared) v * v else v;
        if (flags.logarithm) t = math.log1p(@abs(t));
        s += switch (flags.power) {
            0 => t,
            1...3 => t * t,
            else => math.pow(f64, @abs(t), @floatFromInt(flags.power)),
        };
    }
    return s;
}

// Vectors: select, shuffle, mulAdd, reduce.
export fn lanes(x: [*]const f64, n: usize) f64 {
    const V = @Vector(4, f64);
    var low: V = @splat(0);
    var most: V = @splat(-math.inf(f64));
    for (0..n / 4) |i| {
        const v: V = x[4 * i ..][0..4].*;
        const turned = @shuffle(f64, v, undefined, [4]i32{ 3, 2, 1, 0 });
        low += @select(f64, v < @as(V, @splat(0)), -v, @mulAdd(V, v, turned, @sin(v)));
        most = @max(most, v);
    }
    return @reduce(.Add, low) * @reduce(.Max, most);
}

// Labelled loops and blocks; elimination with pivots, rows swapped by std.mem.
export fn solve(a: [*]const f64, b: [*]const f64, x: [*]f64, n: usize) i32 {
    const allocator = std.heap.c_allocator;
    const m = allocator.dupe(f64, a[0 .. n * n]) catch return 2;
    defer allocator.free(m);
    @memcpy(x[0..n], b[0..n]);
    columns: for (0..n) |k| {
        var pivot = k;
        for (k + 1..n) |i| if (@abs(m[i * n + k]) > @abs(m[pivot * n + k])) {
            pivot = i;
        };
        if (m[pivot * n + k] == 0) return 1;
        if (pivot != k) {
            for (m[k * n ..][0..n], m[pivot * n ..][0..n]) |*p, *q| std.mem.swap(f64, p, q);
            std.mem.swap(f64, &x[k], &x[pivot]);
        }
        if (k + 1 == n) break :columns;
        rows: for (k + 1..n) |i| {
            const f = m[i * n + k] / m[k * n + k];
            if (f == 0) continue :rows;
            for (k..n) |j| m[i * n + j] -= f * m[k * n + j];
            x[i] -= f * x[k];
        }
    }
    var i = n;
    while (i > 0) {
        i -= 1;
        for (i + 1..n) |j| x[i] -= m[i * n + j] * x[j];
        x[i] /= m[i * n + i];
    }
    return 0;
}

// A tagged union with `inline else`; Peng and Robinson's equation by Newton.
const Ideal = struct {
    fn pressure(_: Ideal, v: f64, t: f64) f64 {
        return 8.314 * t / v;
    }
};
const PengRobinson = struct {
    tc: f64,
    pc: f64,
    omega: f64,
    fn pressure(self: PengRobinson, v: f64, t: f64) f64 {
        const r = 8.314;
        const k = 0.37464 + 1.54226 * self.omega - 0.26992 * self.omega * self.omega;
        const s = 1 + k * (1 - @sqrt(t / self.tc));
        const a = 0.45724 * r * r * self.tc * self.tc / self.pc * s * s;
        const b = 0.07780 * r * self.tc / self.pc;
        return r * t / (v - b) - a / (v * v + 2 * b * v - b * b);
    }
};
const Fluid = union(enum) {
    ideal: Ideal,
    real: PengRobinson,
    fn pressure(self: Fluid, v: f64, t: f64) f64 {
        return switch (self) {
            inline else => |f| f.pressure(v, t),
        };
    }
};
export fn volume(p: f64, t: f64, tc: f64, pc: f64, omega: f64, ideal: bool) f64 {
    const fluid: Fluid = if (ideal) .{ .ideal = .{} } else .{ .real = .{ .tc = tc, .pc = pc, .omega = omega } };
    var v = 8.314 * t / p;
    return for (0..60) |_| {
        const h = 1e-6 * v;
        const f = fluid.pressure(v, t) - p;
        const d = (fluid.pressure(v + h, t) - fluid.pressure(v - h, t)) / (2 * h);
        v -= f / d;
        if (@abs(f) < 1e-10 * p) break v;
    } else math.nan(f64);
}

// An interface: a table of functions over `*anyopaque`.
const Curve = struct {
    self: *const anyopaque,
    rateFn: *const fn (*const anyopaque, f64) f64,
    fn of(pointer: anytype) Curve {
        const T = @typeInfo(@TypeOf(pointer)).pointer.child;
        return .{ .self = pointer, .rateFn = struct {
            fn call(raw: *const anyopaque, t: f64) f64 {
                const known: *const T = @ptrCast(@alignCast(raw));
                return known.rate(t);
            }
        }.call };
    }
    fn discount(c: Curve, t: f64) f64 {
        return math.exp(-c.rateFn(c.self, t) * t);
    }
};
const Flat = struct {
    r: f64,
    fn rate(self: *const Flat, _: f64) f64 {
        return self.r;
    }
};
const NelsonSiegel = struct {
    b: [3]f64,
    tau: f64,
    fn rate(self: *const NelsonSiegel, t: f64) f64 {
        const e = math.exp(-t / self.tau);
        const w = (1 - e) * self.tau / t;
        return self.b[0] + self.b[1] * w + self.b[2] * (w - e);
    }
};
export fn bond(b: *const [3]f64, tau: f64, coupon: f64, years: u32) f64 {
    const flat: Flat = .{ .r = b[0] };
    const curved: NelsonSiegel = .{ .b = b.*, .tau = tau };
    const curves = [_]Curve{ .of(&flat), .of(&curved) };
    var s: f64 = 0;
    for (curves) |curve| {
        for (1..years + 1) |k| s += coupon * curve.discount(@floatFromInt(k));
        s += curve.discount(@floatFromInt(years));
    }
    return s;
}

// Random numbers of the standard library (their bits are integers), Box and Muller's normal ones.
export fn asian(spot: f64, vol: f64, strike: f64, seed: u64, paths: u32) f64 {
    var source = std.Random.DefaultPrng.init(seed);
    const random = source.random();
    var sum: f64 = 0;
    for (0..paths) |_| {
        var s = spot;
        var mean: f64 = 0;
        for (0..4) |_| {
            const r = @sqrt(-2 * @log(1 - random.float(f64)));
            const z = r * @cos(2 * math.pi * random.float(f64));
            s *= @exp(vol * z * 0.5 - 0.125 * vol * vol);
            mean += s / 4;
        }
        sum += @max(mean - strike, 0);
    }
    return sum / @as(f64, @floatFromInt(paths));
}

// Memory by columns, a list of pointers that may be null.
const Node = struct { value: f64, next: ?*const Node = null };
export fn listed(x: *const [4]f64) f64 {
    var ring: [4]Node = undefined;
    var head: ?*const Node = null;
    for (&ring, x) |*node, v| {
        node.* = .{ .value = v, .next = head };
        head = node;
    }
    var s: f64 = 0;
    var weight: f64 = 1;
    while (head) |node| : (head = node.next) {
        s += weight * node.value * node.value;
        weight *= node.value;
    }
    return s;
}
const Particle = struct { at: f64, speed: f64, mass: f64 };
export fn columns(x: [*]const f64, mass: [*]const f64, n: usize, h: f64) f64 {
    var all: std.MultiArrayList(Particle) = .empty;
    defer all.deinit(std.heap.c_allocator);
    for (x[0..n], mass[0..n]) |p, m| all.append(std.heap.c_allocator, .{ .at = p, .speed = 0, .mass = m }) catch return 0;
    const at = all.items(.at);
    const speed = all.items(.speed);
    for (0..5) |_| {
        for (at, speed, all.items(.mass)) |p, *v, m| v.* -= h * @sin(p) / m;
        for (at, speed) |*p, v| p.* += h * v;
    }
    var s: f64 = 0;
    for (0..all.len) |i| {
        const one = all.get(i);
        s += 0.5 * one.mass * one.speed * one.speed;
    }
    return s;
}

// Sorting by a comparison of the source, slices of slices, a hash table of integers.
export fn median(x: [*]const f64, n: usize) f64 {
    const copy = std.heap.c_allocator.dupe(f64, x[0..n]) catch return math.nan(f64);
    defer std.heap.c_allocator.free(copy);
    std.sort.insertion(f64, copy, {}, std.sort.asc(f64));
    const rest = copy[n / 4 .. n - n / 4];
    var s: f64 = 0;
    for (rest) |v| s += v * v;
    return s / @as(f64, @floatFromInt(rest.len)) + math.clamp(copy[0], -0.1, 5);
}

// Halves of a transform, in place, by a stride; complex numbers of the standard library.
const C = math.Complex(f64);
fn fft(x: []C) void {
    const n = x.len;
    var j: usize = 0;
    for (1..n) |i| {
        var bit = n >> 1;
        while (j & bit != 0) : (bit >>= 1) j ^= bit;
        j ^= bit;
        if (i < j) std.mem.swap(C, &x[i], &x[j]);
    }
    var len: usize = 2;
    while (len <= n) : (len <<= 1) {
        const angle = -2 * math.pi / @as(f64, @floatFromInt(len));
        var at: usize = 0;
        while (at < n) : (at += len) for (0..len / 2) |k| {
            const w = C.init(@cos(angle * @as(f64, @floatFromInt(k))), @sin(angle * @as(f64, @floatFromInt(k))));
            const u = x[at + k];
            const v = x[at + k + len / 2].mul(w);
            x[at + k] = u.add(v);
            x[at + k + len / 2] = u.sub(v);
        };
    }
}
export fn spectrum(x: [*]const f64, power: [*]f64, n: usize) void {
    const z = std.heap.c_allocator.alloc(C, n) catch return;
    defer std.heap.c_allocator.free(z);
    for (z, x[0..n]) |*c, v| c.* = .init(v, 0);
    fft(z);
    for (power[0..n], z) |*p, c| p.* = c.squaredMagnitude();
}

// Sentinels, saturating and wrapping integers, fields by name.
const Weights = struct { linear: f64 = 0.5, square: f64 = 2, cubic: f64 = -1 };
export fn terms(x: f64, scale: f64) f64 {
    const w: Weights = .{ .square = scale };
    const powers = [_:0]u8{ 1, 2, 3 };
    var s: f64 = 0;
    var power: [*:0]const u8 = &powers;
    inline for (@typeInfo(Weights).@"struct".field_names) |field| {
        s += @field(w, field) * math.pow(f64, x, @floatFromInt(power[0]));
        power += 1;
    }
    const wrapped: u8 = @as(u8, 250) +% 10;
    const full: u8 = @as(u8, 250) +| 10;
    return s * @as(f64, @floatFromInt(@as(u32, wrapped) + full));
}
