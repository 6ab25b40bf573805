// The functions behind libstdc++'s trees, lists and hash tables that no header has. Its binary has them, where a
// differentiator cannot follow pointers; these do the same to the structures that its headers declare.
#include <cstddef>
#include <list>
#include <map>
#include <unordered_map>
#include <utility>

namespace std {

using Node = _Rb_tree_node_base;

static Node *leftmost(Node *x) noexcept {
  while (x->_M_left) x = x->_M_left;
  return x;
}

static Node *rightmost(Node *x) noexcept {
  while (x->_M_right) x = x->_M_right;
  return x;
}

// Behind the last node comes the header, whose parent is the root.
Node *_Rb_tree_increment(Node *x) throw() {
  if (x->_M_right) return leftmost(x->_M_right);
  Node *above = x->_M_parent;
  while (x == above->_M_right) {
    x = above;
    above = above->_M_parent;
  }
  return x->_M_right == above ? x : above;  // equal: x is the header of a tree whose root is its largest
}

const Node *_Rb_tree_increment(const Node *x) throw() { return _Rb_tree_increment(const_cast<Node *>(x)); }

Node *_Rb_tree_decrement(Node *x) throw() {
  if (x->_M_color == _S_red && x->_M_parent && x->_M_parent->_M_parent == x) return x->_M_right;  // the header
  if (x->_M_left) return rightmost(x->_M_left);
  Node *above = x->_M_parent;
  while (x == above->_M_left) {
    x = above;
    above = above->_M_parent;
  }
  return above;
}

const Node *_Rb_tree_decrement(const Node *x) throw() { return _Rb_tree_decrement(const_cast<Node *>(x)); }

// Puts `to` in the place that `from` has below its parent.
static void hang(Node *from, Node *to, Node *&root) noexcept {
  if (from == root) root = to;
  else if (from == from->_M_parent->_M_left) from->_M_parent->_M_left = to;
  else from->_M_parent->_M_right = to;
  if (to) to->_M_parent = from->_M_parent;
}

static void turn_left(Node *x, Node *&root) noexcept {
  Node *y = x->_M_right;
  hang(x, y, root);
  x->_M_right = y->_M_left;
  if (y->_M_left) y->_M_left->_M_parent = x;
  y->_M_left = x;
  x->_M_parent = y;
}

static void turn_right(Node *x, Node *&root) noexcept {
  Node *y = x->_M_left;
  hang(x, y, root);
  x->_M_left = y->_M_right;
  if (y->_M_right) y->_M_right->_M_parent = x;
  y->_M_right = x;
  x->_M_parent = y;
}

static bool black(const Node *x) noexcept { return !x || x->_M_color == _S_black; }

void _Rb_tree_insert_and_rebalance(const bool left, Node *x, Node *parent, Node &header) throw() {
  Node *&root = header._M_parent;
  x->_M_parent = parent;
  x->_M_left = x->_M_right = nullptr;
  x->_M_color = _S_red;
  if (parent == &header) {
    root = header._M_left = header._M_right = x;
  } else if (left) {
    parent->_M_left = x;
    if (parent == header._M_left) header._M_left = x;
  } else {
    parent->_M_right = x;
    if (parent == header._M_right) header._M_right = x;
  }
  while (x != root && x->_M_parent->_M_color == _S_red) {
    Node *p = x->_M_parent, *g = p->_M_parent;
    const bool on_left = p == g->_M_left;
    Node *uncle = on_left ? g->_M_right : g->_M_left;
    if (!black(uncle)) {
      p->_M_color = uncle->_M_color = _S_black;
      g->_M_color = _S_red;
      x = g;
      continue;
    }
    if (on_left) {
      if (x == p->_M_right) {
        turn_left(p, root);
        p = x;
      }
      turn_right(g, root);
    } else {
      if (x == p->_M_left) {
        turn_right(p, root);
        p = x;
      }
      turn_left(g, root);
    }
    p->_M_color = _S_black;
    g->_M_color = _S_red;
    break;
  }
  root->_M_color = _S_black;
}

// Takes z out of the tree; the caller frees it.
Node *_Rb_tree_rebalance_for_erase(Node *const z, Node &header) throw() {
  Node *&root = header._M_parent;
  if (z == header._M_left) header._M_left = z->_M_right ? leftmost(z->_M_right) : z->_M_parent;
  if (z == header._M_right) header._M_right = z->_M_left ? rightmost(z->_M_left) : z->_M_parent;
  Node *x, *above;  // what lacks a black node, and what it hangs below
  _Rb_tree_color lost = z->_M_color;
  if (!z->_M_left || !z->_M_right) {
    x = z->_M_left ? z->_M_left : z->_M_right;
    above = z->_M_parent;
    hang(z, x, root);
  } else {
    Node *next = leftmost(z->_M_right);
    lost = next->_M_color;
    x = next->_M_right;
    above = next;
    if (next->_M_parent != z) {
      above = next->_M_parent;
      hang(next, x, root);
      next->_M_right = z->_M_right;
      next->_M_right->_M_parent = next;
    }
    hang(z, next, root);
    next->_M_left = z->_M_left;
    next->_M_left->_M_parent = next;
    next->_M_color = z->_M_color;
  }
  if (lost == _S_red) return z;
  while (x != root && black(x)) {
    const bool on_left = x == above->_M_left;
    Node *w = on_left ? above->_M_right : above->_M_left;
    if (!black(w)) {
      w->_M_color = _S_black;
      above->_M_color = _S_red;
      on_left ? turn_left(above, root) : turn_right(above, root);
      w = on_left ? above->_M_right : above->_M_left;
    }
    if (black(w->_M_left) && black(w->_M_right)) {
      w->_M_color = _S_red;
      x = above;
      above = above->_M_parent;
      continue;
    }
    if (black(on_left ? w->_M_right : w->_M_left)) {
      (on_left ? w->_M_left : w->_M_right)->_M_color = _S_black;
      w->_M_color = _S_red;
      on_left ? turn_right(w, root) : turn_left(w, root);
      w = on_left ? above->_M_right : above->_M_left;
    }
    w->_M_color = above->_M_color;
    above->_M_color = _S_black;
    (on_left ? w->_M_right : w->_M_left)->_M_color = _S_black;
    on_left ? turn_left(above, root) : turn_right(above, root);
    break;
  }
  if (x) x->_M_color = _S_black;
  return z;
}

namespace __detail {

void _List_node_base::_M_hook(_List_node_base *const position) noexcept {
  _M_next = position;
  _M_prev = position->_M_prev;
  position->_M_prev->_M_next = this;
  position->_M_prev = this;
}

void _List_node_base::_M_unhook() noexcept {
  _M_prev->_M_next = _M_next;
  _M_next->_M_prev = _M_prev;
}

// Moves [first, last) in front of this node.
void _List_node_base::_M_transfer(_List_node_base *const first, _List_node_base *const last) noexcept {
  if (this == last) return;
  _List_node_base *const end = last->_M_prev;
  first->_M_prev->_M_next = last;
  last->_M_prev = first->_M_prev;
  first->_M_prev = _M_prev;
  _M_prev->_M_next = first;
  end->_M_next = this;
  _M_prev = end;
}

void _List_node_base::_M_reverse() noexcept {
  _List_node_base *at = this;
  do {
    _List_node_base *const next = at->_M_next;
    at->_M_next = at->_M_prev;
    at->_M_prev = next;
    at = next;
  } while (at != this);
}

static void take(_List_node_base &from, _List_node_base &to) noexcept {
  if (from._M_next == &from) {
    to._M_next = to._M_prev = &to;
    return;
  }
  to._M_next = from._M_next;
  to._M_prev = from._M_prev;
  to._M_next->_M_prev = to._M_prev->_M_next = &to;
}

void _List_node_base::swap(_List_node_base &x, _List_node_base &y) noexcept {
  _List_node_base kept;
  take(x, kept);
  take(y, x);
  take(kept, y);
}

// A table has as many buckets as a prime; it grows when there are more entries than its load factor allows.
size_t _Prime_rehash_policy::_M_next_bkt(size_t count) const {
  size_t prime = count < 2 ? 2 : count;
  for (;; prime++) {
    bool divided = false;
    for (size_t d = 2; d * d <= prime && !divided; d++) divided = prime % d == 0;
    if (!divided) break;
  }
  _M_next_resize = static_cast<size_t>(static_cast<double>(prime) * static_cast<double>(_M_max_load_factor));
  return prime;
}

pair<bool, size_t> _Prime_rehash_policy::_M_need_rehash(size_t buckets, size_t entries, size_t more) const {
  if (entries + more <= _M_next_resize) return {false, 0};
  const double least = static_cast<double>(entries + more) / static_cast<double>(_M_max_load_factor);
  const size_t wanted = static_cast<size_t>(least) + 1;
  if (wanted <= buckets) {
    _M_next_resize = static_cast<size_t>(static_cast<double>(buckets) * static_cast<double>(_M_max_load_factor));
    return {false, 0};
  }
  const size_t least_growth = _M_next_resize == 0 ? 11 : 2 * buckets;
  return {true, _M_next_bkt(wanted > least_growth ? wanted : least_growth)};
}

}  // namespace __detail
}  // namespace std
