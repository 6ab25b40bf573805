// Variants of a number, a text and a call: texts are copied, made longer and exchanged where numbers and pointers lie.
#include <cmath>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>
struct Call;
using Item = std::variant<double, std::string, std::unique_ptr<Call>>;
struct Call { std::string name; std::vector<Item> args; };
static double value(const Item &i) {
  if (auto *d = std::get_if<double>(&i)) return *d;
  if (auto *s = std::get_if<std::string>(&i)) return (double)s->size();
  const Call &c = *std::get<std::unique_ptr<Call>>(i); double sum = 1;
  for (auto &a : c.args) sum *= 0.5 + value(a);
  return c.name == "sine" ? std::sin(sum) : sum;
}
static Item copy(const Item &i) {
  if (auto *d = std::get_if<double>(&i)) return *d;
  if (auto *s = std::get_if<std::string>(&i)) return *s;
  auto r = std::make_unique<Call>(); const Call &c = *std::get<std::unique_ptr<Call>>(i);
  r->name = c.name; for (auto &a : c.args) r->args.push_back(copy(a));
  return r;
}
extern "C" double loss(const double *x, long n) {
  std::vector<Item> items; std::string word = "a";
  for (long k = 0; k < n; k++) {
    Item one = x[k] * x[k];
    if (k % 3 == 1) one = word += "bcdefghi";
    if (k % 3 == 2) { auto c = std::make_unique<Call>(); c->name = k < 4 ? "sine" : "product"; for (auto &i : items) c->args.push_back(copy(i)); c->args.push_back(x[k]); one = std::move(c); }
    items.push_back(std::move(one));
  }
  std::swap(items[0], items[2]); items[1] = x[1] * 3;
  double s = 0; for (size_t k = 0; k < items.size(); k++) s += value(items[k]) * (k + 1);
  return s;
}
