// Maps, lists and hash tables under random work, compared with sorted vectors; trees stay red-black.
#include <algorithm>
#include <cstdio>
#include <list>
#include <map>
#include <unordered_map>
#include <vector>

static unsigned state = 7;
static unsigned next() { return (state = state * 1664525u + 1013904223u) >> 8; }

// Number of black nodes on each way down; -1 where two differ, or a red node has a red child.
static int blacks(const std::_Rb_tree_node_base *x) {
  if (!x) return 1;
  const bool red = x->_M_color == std::_S_red;
  for (auto *child : {x->_M_left, x->_M_right})
    if (child && (child->_M_parent != x || (red && child->_M_color == std::_S_red))) return -1;
  const int left = blacks(x->_M_left), right = blacks(x->_M_right);
  return left != right || left < 0 ? -1 : left + !red;
}

static int trees() {
  std::multimap<int, int> tree;
  std::vector<int> sorted;
  for (int i = 0; i < 4000; i++) {
    const int key = next() % 300;
    if (next() % 5 < 3 || sorted.empty()) {
      tree.emplace(key, i);
      sorted.insert(std::upper_bound(sorted.begin(), sorted.end(), key), key);
    } else if (auto found = tree.find(key); found != tree.end()) {
      tree.erase(found);
      sorted.erase(std::lower_bound(sorted.begin(), sorted.end(), key));
    }
    if (i > 3800 && i % 3) tree.erase(tree.begin()), sorted.erase(sorted.begin());
    if (i % 50 && i < 100) continue;
    auto *header = tree.end()._M_node;
    if (blacks(header->_M_parent) < 0 || tree.size() != sorted.size()) return 1;
    auto expected = sorted.begin();
    for (auto &entry : tree)
      if (entry.first != *expected++) return 2;
    auto back = sorted.rbegin();
    for (auto entry = tree.rbegin(); entry != tree.rend(); ++entry)
      if (entry->first != *back++) return 3;
  }
  while (!tree.empty()) {
    tree.erase(std::next(tree.begin(), next() % tree.size()));
    if (blacks(tree.end()._M_node->_M_parent) < 0) return 4;
  }
  return 0;
}

static int lists() {
  std::list<int> one{5, 3, 9, 1}, two{8, 2}, none;
  one.sort();
  one.reverse();
  one.splice(std::next(one.begin()), two, two.begin());
  std::swap(one, two);
  none.swap(two);
  none.remove(3);
  return !(one == std::list<int>{2} && none == std::list<int>{9, 8, 5, 1} && two.empty());
}

static int tables() {
  std::unordered_map<int, int> table;
  for (int i = 0; i < 5000; i++) table[i * 37 % 5003] += i;
  for (int i = 0; i < 5000; i += 2) table.erase(i * 37 % 5003);
  long sum = 0;
  for (auto &entry : table) sum += entry.second;
  return !(table.size() == 2500 && sum == 6250000 && table.load_factor() <= 1 && table.bucket_count() > 5000);
}

int main() { return 10 * trees() + 100 * lists() + 200 * tables(); }
