// Memory of Zig: arenas, of trees and lists too, pages, the allocators of programs, and hash maps.
const std = @import("std");

export fn arena_sum(x: [*]const f64, n: usize) f64 {
    var arena = std.heap.ArenaAllocator.init(std.heap.c_allocator);
    defer arena.deinit();
    const a = arena.allocator();
    const y = a.alloc(f64, n) catch return -1;
    for (x[0..n], y) |v, *w| w.* = v * v * v;
    const z = a.dupe(f64, y) catch return -1;
    var s: f64 = 0;
    for (z, x[0..n]) |v, w| s += v * @sin(w);
    return s;
}
const Node = struct { value: f64, left: ?*Node = null, right: ?*Node = null };
fn insert(a: std.mem.Allocator, root: ?*Node, v: f64) !*Node {
    if (root) |r| {
        if (v < r.value) r.left = try insert(a, r.left, v) else r.right = try insert(a, r.right, v);
        return r;
    }
    const nd = try a.create(Node);
    nd.* = .{ .value = v };
    return nd;
}
fn walk(r: ?*Node, depth: f64) f64 {
    const q = r orelse return 0;
    return q.value * q.value * depth + walk(q.left, depth + 1) + walk(q.right, depth + 2);
}
export fn tree(x: [*]const f64, n: usize) f64 {
    var arena = std.heap.ArenaAllocator.init(std.heap.c_allocator);
    defer arena.deinit();
    var root: ?*Node = null;
    for (x[0..n]) |v| root = insert(arena.allocator(), root, v) catch return -1;
    return walk(root, 1);
}
export fn used_again(x: [*]const f64, n: usize) f64 {
    var arena = std.heap.ArenaAllocator.init(std.heap.c_allocator);
    defer arena.deinit();
    const a = arena.allocator();
    var t: f64 = 0;
    for (0..3) |_| {
      _ = arena.reset(.retain_capacity);
      const y = a.alloc(f64, n) catch return -1;
      for (x[0..n], y) |v, *w| w.* = v * v * v;
      const z = a.dupe(f64, y) catch return -1;
      var l: std.ArrayList(f64) = .empty;
      for (z) |v| l.append(a, v) catch return -1;
      var s: f64 = 0;
      for (l.items, x[0..n]) |v, w| s += v * @sin(w);
      t += s;
    }
    return t;
}
fn work(a: std.mem.Allocator, x: []const f64) !f64 {
    const y = try a.alloc(f64, x.len); defer a.free(y);
    for (x, y) |v, *w| w.* = v * v;
    var l: std.ArrayList(f64) = .empty; defer l.deinit(a);
    for (y) |v| try l.append(a, v * 2);
    var s: f64 = 0; for (l.items, x) |p, q| s += p * q; return s;
}
export fn page(x: [*]const f64, n: usize) f64 { return work(std.heap.page_allocator, x[0..n]) catch -1; }
export fn smp(x: [*]const f64, n: usize) f64 { return work(std.heap.smp_allocator, x[0..n]) catch -1; }
export fn debug(x: [*]const f64, n: usize) f64 { var g: std.heap.DebugAllocator(.{}) = .init; defer _ = g.deinit(); return work(g.allocator(), x[0..n]) catch -1; }
export fn indexed(x: [*]const f64, keys: [*]const i32, n: usize) f64 {
    const al = std.heap.c_allocator;
    var map = std.AutoHashMap(i32, usize).init(al);
    defer map.deinit();
    const sums = al.alloc(f64, n) catch return -1;
    defer al.free(sums);
    var used: usize = 0;
    for (0..n) |i| {
        const e = map.getOrPut(keys[i]) catch return -1;
        if (!e.found_existing) { e.value_ptr.* = used; sums[used] = 0; used += 1; }
        sums[e.value_ptr.*] += x[i] * x[i];
    }
    var s: f64 = 0;
    for (sums[0..used]) |v| s += v * v;
    return s;
}
export fn histogram(x: [*]const f64, keys: [*]const i32, n: usize) f64 {
    var map = std.AutoHashMap(i32, f64).init(std.heap.c_allocator);
    defer map.deinit();
    for (0..n) |i| {
        const e = map.getOrPut(keys[i]) catch return -1;
        if (e.found_existing) e.value_ptr.* += x[i] else e.value_ptr.* = x[i];
    }
    var s: f64 = 0;
    for (0..n) |i| { const v = map.get(keys[i]).?; s += v * v * v; }
    return s;
}
