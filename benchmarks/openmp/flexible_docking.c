/* Docking of a flexible molecule: energies of many conformations (a shift, a rotation as a quaternion, an angle for each
   bond that turns) in a pocket of charged atoms, and what follows of them by Boltzmann's weights. The terms are those of
   empirical force fields: dispersion and repulsion (Lennard-Jones), hydrogen bonds of directed sites (12-10), charges
   screened by distance (Mehler, Solmajer, 1991), desolvation by volumes (Stouten et al., 1993), the strain within the
   molecule, and a wall around the pocket. Atoms of the pocket are found through a grid of cells. Conformations are
   independent and run as a worksharing loop; each thread has coordinates of its own. */

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct { double x, y, z; } vec;

static inline vec add(vec a, vec b) { return (vec){a.x + b.x, a.y + b.y, a.z + b.z}; }
static inline vec sub(vec a, vec b) { return (vec){a.x - b.x, a.y - b.y, a.z - b.z}; }
static inline vec scale(double s, vec a) { return (vec){s * a.x, s * a.y, s * a.z}; }
static inline double dot(vec a, vec b) { return a.x * b.x + a.y * b.y + a.z * b.z; }
static inline vec cross(vec a, vec b) {
    return (vec){a.y * b.z - a.z * b.y, a.z * b.x - a.x * b.z, a.x * b.y - a.y * b.x};
}
static inline double norm(vec a) { return sqrt(dot(a, a)); }

/* -- what is given ------------------------------------------------------------------------------------------------- */

enum role { PLAIN = 0, DONOR = 1, ACCEPTOR = 2 };

typedef struct { double radius, depth, volume, solvation; int role; } kind;

typedef struct { double x, y, z, charge; int kind, bonded; } site;      /* bonded: the atom that it hangs on, or -1 */

typedef struct {                 /* the molecule at rest, and what turns about what */
    int atoms, torsions, pairs;
    const site *rest;
    const int *axis;             /* of each torsion, two atoms: from, to */
    const int *first;            /* of each torsion, where its list of atoms begins */
    const int *moved;            /* atoms beyond the axis */
    const int *pair;             /* atoms of the molecule that see each other: more than three bonds apart */
} molecule;

typedef struct {                 /* the pocket, its atoms sorted by cell */
    vec low, high;
    double side;
    int n[3];
    int *first;
    site *sorted;
    vec *direction;              /* of hydrogen bonds, a unit vector, zero where the atom hangs on nothing */
} pocket;

typedef struct { double dispersion, polar, bonds, solvation, strain, wall; } terms;

typedef struct { double weight[6], temperature, reach; } model;

static double total(const terms *t, const model *m) {
    return m->weight[0] * t->dispersion + m->weight[1] * t->bonds + m->weight[2] * t->polar +
           m->weight[3] * t->solvation + m->weight[4] * t->strain + m->weight[5] * t->wall;
}

/* -- the pocket ------------------------------------------------------------------------------------------------------ */

static int along(double at, double low, double side, int n) {
    int k = (int)floor((at - low) / side);
    return k < 0 ? 0 : k >= n ? n - 1 : k;
}

static int cell_of(const pocket *p, vec at) {
    int i = along(at.x, p->low.x, p->side, p->n[0]);
    int j = along(at.y, p->low.y, p->side, p->n[1]);
    int k = along(at.z, p->low.z, p->side, p->n[2]);
    return (i * p->n[1] + j) * p->n[2] + k;
}

static vec place(const site *s) { return (vec){s->x, s->y, s->z}; }

static void bounds(pocket *p, const site *sites, long count) {
    p->low = (vec){1e30, 1e30, 1e30}, p->high = (vec){-1e30, -1e30, -1e30};
    for (long a = 0; a < count; a++) {
        p->low.x = fmin(p->low.x, sites[a].x), p->high.x = fmax(p->high.x, sites[a].x);
        p->low.y = fmin(p->low.y, sites[a].y), p->high.y = fmax(p->high.y, sites[a].y);
        p->low.z = fmin(p->low.z, sites[a].z), p->high.z = fmax(p->high.z, sites[a].z);
    }
}

static int cells_along(double low, double high, double side) {
    int n = (int)((high - low) / side) + 1;
    return n > 64 ? 64 : n;
}

/* Atoms sorted by cell (a counting sort), so that those of a cell lie side by side. */
static pocket *open_pocket(const site *sites, long count, double side) {
    pocket *p = malloc(sizeof *p);
    bounds(p, sites, count);
    p->side = side;
    p->n[0] = cells_along(p->low.x, p->high.x, side);
    p->n[1] = cells_along(p->low.y, p->high.y, side);
    p->n[2] = cells_along(p->low.z, p->high.z, side);
    int cells = p->n[0] * p->n[1] * p->n[2];
    p->first = calloc(cells + 1, sizeof(int));
    p->sorted = malloc(count * sizeof(site));
    p->direction = malloc(count * sizeof(vec));
    int *at = malloc(cells * sizeof(int));
    for (long a = 0; a < count; a++) p->first[cell_of(p, place(&sites[a])) + 1]++;
    for (int c = 0; c < cells; c++) p->first[c + 1] += p->first[c];
    memcpy(at, p->first, cells * sizeof(int));
    for (long a = 0; a < count; a++) {
        int slot = at[cell_of(p, place(&sites[a]))]++;
        p->sorted[slot] = sites[a];
        vec outwards = {0, 0, 0};
        if (sites[a].bonded >= 0) {
            vec from = sub(place(&sites[a]), place(&sites[sites[a].bonded]));
            double length = norm(from);
            if (length > 1e-6) outwards = scale(1 / length, from);
        }
        p->direction[slot] = outwards;
    }
    free(at);
    return p;
}

static void close_pocket(pocket *p) {
    free(p->first), free(p->sorted), free(p->direction);
    free(p);
}

/* -- a conformation ---------------------------------------------------------------------------------------------------- */

/* Turn atoms about an axis by an angle (Rodrigues). */
static void turn(vec *x, const int *atoms, int count, int from, int to, double angle) {
    vec origin = x[from], axis = sub(x[to], x[from]);
    axis = scale(1 / norm(axis), axis);
    double c = cos(angle), s = sin(angle);
    for (int k = 0; k < count; k++) {
        vec r = sub(x[atoms[k]], origin);
        vec turned = add(add(scale(c, r), scale(s, cross(axis, r))), scale((1 - c) * dot(axis, r), axis));
        x[atoms[k]] = add(origin, turned);
    }
}

static vec rotate(const double q[4], vec r) {             /* by a quaternion of any length but zero */
    vec u = {q[1], q[2], q[3]};
    double square = q[0] * q[0] + dot(u, u);
    vec twice = add(scale(q[0] * q[0] - dot(u, u), r), scale(2 * dot(u, r), u));
    return scale(1 / square, add(twice, scale(2 * q[0], cross(u, r))));
}

/* genes: a shift, a quaternion, an angle for each torsion */
static void conformation(const molecule *m, const double *genes, vec *x) {
    for (int a = 0; a < m->atoms; a++) x[a] = place(&m->rest[a]);
    for (int t = 0; t < m->torsions; t++)
        turn(x, m->moved + m->first[t], m->first[t + 1] - m->first[t], m->axis[2 * t], m->axis[2 * t + 1], genes[7 + t]);
    vec middle = {0, 0, 0};
    for (int a = 0; a < m->atoms; a++) middle = add(middle, x[a]);
    middle = scale(1.0 / m->atoms, middle);
    vec shift = {genes[0], genes[1], genes[2]};
    for (int a = 0; a < m->atoms; a++) x[a] = add(shift, rotate(genes + 3, sub(x[a], middle)));
}

/* -- energies ------------------------------------------------------------------------------------------------------------ */

/* One at short distances, zero beyond the reach, with two continuous derivatives. */
static double switched(double distance, double reach) {
    double from = 0.8 * reach;
    if (distance < from) return 1;
    double t = (distance - from) / (reach - from);
    return 1 - t * t * t * (10 - t * (15 - 6 * t));
}

/* Lennard-Jones, linear inside of half the least distance, so that overlaps have finite forces. */
static double dispersion(const kind *a, const kind *b, double distance) {
    double least = 0.5 * (a->radius + b->radius), depth = sqrt(a->depth * b->depth), inner = 0.5 * least;
    double at = distance < inner ? inner : distance;
    double ratio = least / at, six = ratio * ratio * ratio;
    six *= six;
    double energy = depth * (six * six - 2 * six);
    if (distance < inner) energy += 12 * depth / at * (six * six - six) * (inner - distance);
    return energy;
}

static int bonds(const kind *a, const kind *b) {
    return (a->role == DONOR && b->role == ACCEPTOR) || (a->role == ACCEPTOR && b->role == DONOR);
}

static double hydrogen_bond(double distance, double facing) {
    if (facing <= 0) return 0;
    double ratio = 1.9 / (distance < 1.2 ? 1.2 : distance), two = ratio * ratio, ten = two * two * two * two * two;
    return 5 * facing * facing * (5 * ten * two - 6 * ten);
}

static double screened(double charge, double distance) {
    double at = distance < 0.5 ? 0.5 : distance;
    double dielectric = -8.5525 + 86.9525 / (1 + 7.7839 * exp(-0.3154137 * at));
    return 332.06 * charge / (dielectric * at);
}

static double desolvation(const kind *a, const kind *b, double charge_a, double charge_b, double distance) {
    double near = exp(-distance * distance / (2 * 3.5 * 3.5));
    double of_a = a->solvation + 0.01097 * fabs(charge_a), of_b = b->solvation + 0.01097 * fabs(charge_b);
    return (of_a * b->volume + of_b * a->volume) * near;
}

static void with_cell(const pocket *p, int cell, const kind *kinds, const site *atom, vec at, double reach, terms *t) {
    const kind *a = &kinds[atom->kind];
    for (int k = p->first[cell]; k < p->first[cell + 1]; k++) {
        const site *other = &p->sorted[k];
        vec apart = sub(at, place(other));
        double square = dot(apart, apart);
        if (square >= reach * reach) continue;
        const kind *b = &kinds[other->kind];
        double distance = sqrt(square), fade = switched(distance, reach);
        if (bonds(a, b)) {
            double facing = dot(apart, p->direction[k]) / (distance + 1e-6);
            t->bonds += fade * hydrogen_bond(distance, facing);
        } else {
            t->dispersion += fade * dispersion(a, b, distance);
        }
        t->polar += fade * screened(atom->charge * other->charge, distance);
        t->solvation += fade * desolvation(a, b, atom->charge, other->charge, distance);
    }
}

static void with_pocket(const molecule *m, const pocket *p, const kind *kinds, const vec *x, double reach, terms *t) {
    for (int a = 0; a < m->atoms; a++) {
        int i = along(x[a].x, p->low.x, p->side, p->n[0]);
        int j = along(x[a].y, p->low.y, p->side, p->n[1]);
        int k = along(x[a].z, p->low.z, p->side, p->n[2]);
        for (int di = i > 0 ? i - 1 : 0; di <= i + 1 && di < p->n[0]; di++)
            for (int dj = j > 0 ? j - 1 : 0; dj <= j + 1 && dj < p->n[1]; dj++)
                for (int dk = k > 0 ? k - 1 : 0; dk <= k + 1 && dk < p->n[2]; dk++)
                    with_cell(p, (di * p->n[1] + dj) * p->n[2] + dk, kinds, &m->rest[a], x[a], reach, t);
    }
}

static void within(const molecule *m, const kind *kinds, const vec *x, const double *genes, double reach, terms *t) {
    for (int k = 0; k < m->pairs; k++) {
        const site *a = &m->rest[m->pair[2 * k]], *b = &m->rest[m->pair[2 * k + 1]];
        double distance = norm(sub(x[m->pair[2 * k]], x[m->pair[2 * k + 1]]));
        if (distance >= reach) continue;
        double fade = switched(distance, reach);
        t->strain += fade * dispersion(&kinds[a->kind], &kinds[b->kind], distance);
        t->strain += fade * screened(a->charge * b->charge, distance);
    }
    for (int k = 0; k < m->torsions; k++) t->strain += 0.3 * (1 - cos(3 * genes[7 + k]));
}

static void wall(const pocket *p, vec at, terms *t) {
    double beyond[6] = {p->low.x - at.x, at.x - p->high.x, p->low.y - at.y,
                        at.y - p->high.y, p->low.z - at.z, at.z - p->high.z};
    for (int side = 0; side < 6; side++)
        if (beyond[side] > 0) t->wall += beyond[side] * beyond[side];
}

static double energy_of(const molecule *m, const pocket *p, const kind *kinds, const model *given, const double *genes,
                        vec *x, double *parts) {
    terms t = {0};
    conformation(m, genes, x);
    with_pocket(m, p, kinds, x, given->reach, &t);
    within(m, kinds, x, genes, given->reach, &t);
    for (int a = 0; a < m->atoms; a++) wall(p, x[a], &t);
    double tops[6] = {t.dispersion, t.bonds, t.polar, t.solvation, t.strain, t.wall};
    memcpy(parts, tops, sizeof tops);
    return total(&t, given);
}

/* -- many conformations ---------------------------------------------------------------------------------------------------- */

/* The mean squared distance of the atoms of a conformation to those of a known one. */
static double off(const molecule *m, const vec *x, const double *known) {
    double sum = 0;
    for (int a = 0; a < m->atoms; a++) {
        vec apart = sub(x[a], (vec){known[3 * a], known[3 * a + 1], known[3 * a + 2]});
        sum += dot(apart, apart);
    }
    return sum / m->atoms;
}

/* The energies of all conformations, how far each is from the known one, how many there are in each of 16 bins. */
static void evaluate(const molecule *m, const pocket *p, const kind *kinds, const model *given, const double *genes,
                     const double *known, long n, double *energies, double *away, double *parts, int *bins) {
    long stride = 7 + m->torsions;
    #pragma omp parallel
    {
        vec *x = malloc(m->atoms * sizeof(vec));
        #pragma omp for schedule(dynamic, 4)
        for (long c = 0; c < n; c++) {
            energies[c] = energy_of(m, p, kinds, given, genes + stride * c, x, parts + 6 * c);
            away[c] = off(m, x, known);
            int bin = (int)(8 + energies[c] / 4);
            bin = bin < 0 ? 0 : bin > 15 ? 15 : bin;
            #pragma omp atomic
            bins[bin]++;
        }
        free(x);
    }
}

/* Boltzmann's mean of the squared distances to the known conformation, plus the free energy times a weight: what a fit of
   the force field makes small. kinds, charges (in the sites) and weights of the terms are what it fits. */
double misfit(const site *rest, const int *axis, const int *first, const int *moved, const int *pair, const site *sites,
              const kind *kinds, const double *weights, const double *genes, const double *known, double temperature,
              double *energies, int *bins, long atoms, long torsions, long all_moved, long pairs, long count,
              long kind_count, long n) {
    (void)all_moved, (void)kind_count;
    molecule m = {(int)atoms, (int)torsions, (int)pairs, rest, axis, first, moved, pair};
    model given = {{0}, temperature, 8.0};
    memcpy(given.weight, weights, sizeof given.weight);
    pocket *p = open_pocket(sites, count, given.reach);
    double *away = malloc(n * sizeof(double)), *parts = malloc(6 * n * sizeof(double));
    for (int b = 0; b < 16; b++) bins[b] = 0;
    evaluate(&m, p, kinds, &given, genes, known, n, energies, away, parts, bins);

    double least = energies[0], sum = 0, mean = 0, worst_wall = 0;
    #pragma omp parallel for reduction(min : least) reduction(max : worst_wall)
    for (long c = 0; c < n; c++) {
        if (energies[c] < least) least = energies[c];
        if (parts[6 * c + 5] > worst_wall) worst_wall = parts[6 * c + 5];
    }
    #pragma omp parallel for reduction(+ : sum, mean)
    for (long c = 0; c < n; c++) {
        double weight = exp((least - energies[c]) / given.temperature);
        sum += weight;
        mean += weight * away[c];
    }
    free(away), free(parts);
    close_pocket(p);
    return mean / sum + 0.01 * (least - given.temperature * log(sum / n)) + 1e-6 * worst_wall;
}
