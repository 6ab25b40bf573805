/* What every spelling of a kernel is built on: its inputs and shadows in all containers that the spellings use.
 *
 * A source is compiled once a spelling, with -DSPELLING=1 for (b) to 5 for (f), and has `primal` and `gradient` without
 * arguments. `setup` fills the inputs and clears the shadows outside of what is timed. */
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <vector>

#define PLAIN 1    /* (b) C without restrict, int sizes */
#define VECTORS 2  /* (c) templates over std::vector, a matrix class, small helpers */
#define STRUCTS 3  /* (d) a struct of pointers and sizes, with methods */
#define ROWS 4     /* (e) two-dimensional arrays as double ** */
#define CELLS 5    /* (f) reductions through memory, loops counting down, while, early continue */

extern int enzyme_dup, enzyme_dupnoneed, enzyme_const;
template <typename... A> void __enzyme_autodiff(void *, A...);

template <class T> struct Matrix {
    std::vector<T> data;
    int rows = 0, cols = 0;
    const T &operator()(int i, int j) const { return data[i * cols + j]; }
    T &operator()(int i, int j) { return data[i * cols + j]; }
};

struct Array {
    Matrix<double> matrix;
    std::vector<double *> row;
    std::vector<int> whole; /* the same numbers, for arrays of indices */
    double *flat() { return matrix.data.data(); }
    double **rows() { return row.data(); }
    std::vector<double> &vec() { return matrix.data; }
    void fill(const double *from, long rows, long cols) {
        if (from) vec().assign(from, from + rows * cols);
        else vec().assign(rows * cols, 0.0);
        whole.assign(vec().begin(), vec().end());
        matrix.rows = (int)rows, matrix.cols = (int)cols;
        row.resize(rows);
        for (long i = 0; i < rows; i++) row[i] = flat() + i * cols;
    }
};

static Array in[10], grad[10];
static int size[8];
static double real[4];

extern "C" void setup(int arrays, const double *const *from, const long *rows, const long *cols, const long *sizes,
                      const double *reals) {
    for (int i = 0; i < arrays; i++) in[i].fill(from[i], rows[i], cols[i]), grad[i].fill(nullptr, rows[i], cols[i]);
    for (int i = 0; i < 8; i++) size[i] = (int)sizes[i];
    for (int i = 0; i < 4; i++) real[i] = reals[i];
}
extern "C" void fetch(int array, double *to) {
    memcpy(to, grad[array].flat(), grad[array].vec().size() * sizeof(double));
}
extern "C" double primal(void);
extern "C" void gradient(void);

#define FLAT(i) in[i].flat(), grad[i].flat()
