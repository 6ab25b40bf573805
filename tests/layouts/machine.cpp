// A machine with registers, counters and a bit set as std::array, which its program names by numbers.
#include <array>
#include <memory>
#include <vector>

struct Machine {
  std::array<double, 4> reg{1, 0.5, 0.8, 1.1};
  std::array<int, 8> hits{};
  const double *x = nullptr;
  std::array<unsigned char, 16> seen{};
  int pc = 0, n = 0;
  double sum = 0;

  void step(int op) {
    hits[op]++;
    seen[pc / 8] |= 1 << (pc % 8);
    pc++;
    switch (op) {
      case 0: reg[pc % 4] += x[pc % n]; break;
      case 1: reg[(pc + 1) % 4] *= reg[pc % 4]; break;
      default: sum += reg[hits[op] % 4] * x[hits[op] % n];
    }
  }
};

struct Run {
  std::unique_ptr<Machine> machine;
  std::vector<int> program;
  double scale;
};

extern "C" double loss(const double *x, long n) {
  Run run{std::make_unique<Machine>(), {}, 0.25};
  run.machine->x = x;
  run.machine->n = (int)n;
  for (int i = 0; i < 12; i++) run.program.push_back((i * i + i / 3) % 3);
  for (int op : run.program) run.machine->step(op);
  double s = run.machine->sum * run.scale;
  for (double v : run.machine->reg) s += 0.01 * v * v;
  return s + run.machine->hits[1] + run.machine->seen[0];
}
