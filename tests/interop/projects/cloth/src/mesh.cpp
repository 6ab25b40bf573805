#include <cloth/cloth.hpp>
namespace cloth {
Mesh square(int side) {
  Mesh made;
  for (int i = 0; i < side * side; i++) made.at.push_back({double(i % side), std::floor(i / double(side))});
  for (int i = 0; i < side * side; i++) {
    if (i % side + 1 < side) made.edges.emplace_back(i, i + 1);
    if (i + side < side * side) made.edges.emplace_back(i, i + side);
  }
  return made;
}
}
