/* Explicit Lagrangian hydrodynamics on an unstructured mesh of hexahedra: nodes carry positions and velocities, elements
   energy, pressure, viscosity. Staggered in space, central differences in time (von Neumann, Richtmyer, 1950), corner
   forces of face normals, viscous damping of hourglass modes (Flanagan, Belytschko, 1981), two materials by branches.
   Loops over elements and over nodes are worksharing loops; forces are gathered from corners, so that nothing is atomic. */

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

/* The corners of a hexahedron are 0 1 2 3 around the bottom and 4 5 6 7 above them. Normals point outwards. */
static const int FACES[6][4] = {{0, 3, 2, 1}, {4, 5, 6, 7}, {0, 1, 5, 4}, {1, 2, 6, 5}, {2, 3, 7, 6}, {3, 0, 4, 7}};
static const double HOURGLASS[4][8] = {{1, 1, -1, -1, -1, -1, 1, 1},
                                       {1, -1, -1, 1, -1, 1, 1, -1},
                                       {1, -1, 1, -1, 1, -1, 1, -1},
                                       {-1, 1, -1, 1, 1, -1, 1, -1}};

enum { GAS = 0, FOAM = 1 };

typedef struct {                 /* what does not change */
    long nodes, elements;
    const int *corners;          /* of each element, eight nodes */
    const int *first;            /* of each node, where its list of corners begins */
    const int *list;             /* corners, as 8 * element + number */
    const int *held;             /* of each node, bits: no motion along x, y, z */
    const int *material;
} mesh;

typedef struct {                 /* the state and its scratch */
    vec *x, *v, *corner_force;
    double *node_mass, *mass, *energy, *pressure, *viscosity, *sound, *volume, *length, *rate;
} state;

/* -- geometry ---------------------------------------------------------------------------------------------------- */

static void gather(const mesh *m, const vec *of, long e, vec out[8]) {
    for (int k = 0; k < 8; k++) out[k] = of[m->corners[8 * e + k]];
}

static vec face_normal(const vec p[8], int face) {        /* area times direction, by the diagonals */
    const int *f = FACES[face];
    return scale(0.5, cross(sub(p[f[2]], p[f[0]]), sub(p[f[3]], p[f[1]])));
}

static void corner_normals(const vec p[8], vec out[8]) {  /* the derivative of the volume by each corner, nearly */
    for (int k = 0; k < 8; k++) out[k] = (vec){0, 0, 0};
    for (int face = 0; face < 6; face++) {
        vec quarter = scale(0.25, face_normal(p, face));
        for (int k = 0; k < 4; k++) out[FACES[face][k]] = add(out[FACES[face][k]], quarter);
    }
}

static double hexahedron_volume(const vec p[8]) {         /* by the divergence of the position */
    double sum = 0;
    for (int face = 0; face < 6; face++) {
        const int *f = FACES[face];
        vec centre = scale(0.25, add(add(p[f[0]], p[f[1]]), add(p[f[2]], p[f[3]])));
        sum += dot(centre, face_normal(p, face));
    }
    return sum / 3;
}

static double characteristic_length(const vec p[8], double volume) {
    double largest = 0;
    for (int face = 0; face < 6; face++) {
        vec n = face_normal(p, face);
        double area = dot(n, n);
        if (area > largest) largest = area;
    }
    return volume / sqrt(largest);
}

/* -- equation of state -------------------------------------------------------------------------------------------- */

static double gas_pressure(double density, double energy) {
    double p = 0.4 * density * energy;                    /* ideal, gamma 1.4 */
    return p < 1e-9 ? 0 : p;
}

static double foam_pressure(double density, double energy) {
    double squeezed = density / 0.8 - 1;                  /* soft while it crushes, then stiff; it bears no tension */
    double cold = squeezed < 0 ? 0.05 * squeezed : squeezed < 0.3 ? 0.2 * squeezed : 0.06 + 2.0 * (squeezed - 0.3);
    double p = cold + 0.25 * density * energy;
    return p < 0 ? 0 : p;
}

static double pressure_of(int material, double density, double energy) {
    return material == GAS ? gas_pressure(density, energy) : foam_pressure(density, energy);
}

static double sound_speed(int material, double density, double pressure) {
    double stiff = material == GAS ? 1.4 * pressure : 1.25 * pressure + 0.25;
    double square = stiff / density;
    return square < 1e-8 ? 1e-4 : sqrt(square);
}

/* -- a step --------------------------------------------------------------------------------------------------------- */

static void hourglass_forces(const mesh *m, const state *s, long e, const vec x[8], vec force[8]) {
    vec v[8], normal[8];
    gather(m, s->v, e, v);
    corner_normals(x, normal);
    double density = s->mass[e] / s->volume[e];
    double strength = 0.05 * density * s->sound[e] * s->length[e] * s->length[e];
    for (int mode = 0; mode < 4; mode++) {
        vec of_x = {0, 0, 0};
        for (int k = 0; k < 8; k++) of_x = add(of_x, scale(HOURGLASS[mode][k], x[k]));
        double gamma[8];                                  /* orthogonal to linear fields */
        for (int k = 0; k < 8; k++) gamma[k] = HOURGLASS[mode][k] - dot(of_x, normal[k]) / s->volume[e];
        vec speed = {0, 0, 0};
        for (int k = 0; k < 8; k++) speed = add(speed, scale(gamma[k], v[k]));
        for (int k = 0; k < 8; k++) force[k] = sub(force[k], scale(strength * gamma[k], speed));
    }
}

static void corner_forces(const mesh *m, state *s) {
    #pragma omp parallel for schedule(static)
    for (long e = 0; e < m->elements; e++) {
        vec x[8], normal[8], force[8];
        gather(m, s->x, e, x);
        corner_normals(x, normal);
        double push = s->pressure[e] + s->viscosity[e];
        for (int k = 0; k < 8; k++) force[k] = scale(push, normal[k]);
        hourglass_forces(m, s, e, x, force);
        for (int k = 0; k < 8; k++) s->corner_force[8 * e + k] = force[k];
    }
}

static void move_nodes(const mesh *m, state *s, double dt) {
    #pragma omp parallel for schedule(static)
    for (long n = 0; n < m->nodes; n++) {
        vec force = {0, 0, 0};
        for (int k = m->first[n]; k < m->first[n + 1]; k++) force = add(force, s->corner_force[m->list[k]]);
        vec a = scale(1 / s->node_mass[n], force);
        if (m->held[n] & 1) a.x = 0;
        if (m->held[n] & 2) a.y = 0;
        if (m->held[n] & 4) a.z = 0;
        vec v = add(s->v[n], scale(dt, a));
        s->v[n] = v;
        s->x[n] = add(s->x[n], scale(dt, v));
    }
}

static void artificial_viscosity(const mesh *m, state *s, long e, double density) {
    double compression = -s->rate[e];                     /* the negative divergence of the velocity */
    if (compression <= 0) {
        s->viscosity[e] = 0;
        return;
    }
    double jump = compression * s->length[e];
    double linear = m->material[e] == GAS ? 0.06 : 0.2;
    s->viscosity[e] = density * jump * (2.0 * jump + linear * s->sound[e]);
}

static void update_elements(const mesh *m, state *s, double dt) {
    #pragma omp parallel for schedule(static)
    for (long e = 0; e < m->elements; e++) {
        vec x[8], v[8], normal[8];
        gather(m, s->x, e, x);
        gather(m, s->v, e, v);
        corner_normals(x, normal);
        double volume = hexahedron_volume(x), grown = volume - s->volume[e], divergence = 0;
        for (int k = 0; k < 8; k++) divergence += dot(normal[k], v[k]);
        s->rate[e] = divergence / volume;
        s->length[e] = characteristic_length(x, volume);

        /* energy by a half step at the old pressure, then corrected with the mean of old and new */
        double density = s->mass[e] / volume, old = s->pressure[e] + s->viscosity[e];
        int material = m->material[e];
        double half = s->energy[e] - old * grown / s->mass[e];
        if (half < 0) half = 0;
        double guess = pressure_of(material, density, half);
        artificial_viscosity(m, s, e, density);
        double energy = s->energy[e] - 0.5 * (old + guess + s->viscosity[e]) * grown / s->mass[e];
        if (energy < 1e-12) energy = 0;
        s->energy[e] = energy;
        s->pressure[e] = pressure_of(material, density, energy);
        s->sound[e] = sound_speed(material, density, s->pressure[e]);
        s->volume[e] = volume;
    }
}

static double stable_step(const mesh *m, const state *s, double before) {
    double least = 1e30;
    #pragma omp parallel for reduction(min : least)
    for (long e = 0; e < m->elements; e++) {
        double speed = s->sound[e];
        if (s->rate[e] < 0) speed += -4.0 * s->rate[e] * s->length[e];
        double dt = 0.3 * s->length[e] / speed;
        if (dt < least) least = dt;
    }
    return least > 1.1 * before ? 1.1 * before : least;
}

/* -- whole runs ------------------------------------------------------------------------------------------------------ */

static void start(const mesh *m, state *s, const double *positions, const double *energies, const double *densities) {
    s->x = malloc(m->nodes * sizeof(vec));
    s->v = calloc(m->nodes, sizeof(vec));
    s->corner_force = malloc(8 * m->elements * sizeof(vec));
    s->node_mass = malloc(m->nodes * sizeof(double));
    double **arrays[] = {&s->mass, &s->energy, &s->pressure, &s->viscosity, &s->sound, &s->volume, &s->length, &s->rate};
    for (int k = 0; k < 8; k++) *arrays[k] = calloc(m->elements, sizeof(double));
    memcpy(s->x, positions, m->nodes * sizeof(vec));
    for (long e = 0; e < m->elements; e++) {
        vec x[8];
        gather(m, s->x, e, x);
        s->volume[e] = hexahedron_volume(x);
        s->length[e] = characteristic_length(x, s->volume[e]);
        s->mass[e] = densities[e] * s->volume[e];
        s->energy[e] = energies[e];
        s->pressure[e] = pressure_of(m->material[e], densities[e], energies[e]);
        s->sound[e] = sound_speed(m->material[e], densities[e], s->pressure[e]);
    }
    for (long n = 0; n < m->nodes; n++) {
        s->node_mass[n] = 0;
        for (int k = m->first[n]; k < m->first[n + 1]; k++) s->node_mass[n] += s->mass[m->list[k] / 8] / 8;
    }
}

static void finish(state *s) {
    free(s->x), free(s->v), free(s->corner_force), free(s->node_mass), free(s->mass), free(s->energy);
    free(s->pressure), free(s->viscosity), free(s->sound), free(s->volume), free(s->length), free(s->rate);
}

/* How far the blast carried the mass: the mean of the squared distance from the origin after some steps. */
double blast(const double *positions, const double *energies, const double *densities, const int *corners,
             const int *first, const int *list, const int *held, const int *material, long nodes, long elements,
             long steps) {
    mesh m = {nodes, elements, corners, first, list, held, material};
    state s;
    start(&m, &s, positions, energies, densities);
    double dt = 1e-3;
    for (long step = 0; step < steps; step++) {
        dt = stable_step(&m, &s, dt);
        corner_forces(&m, &s);
        move_nodes(&m, &s, dt);
        update_elements(&m, &s, dt);
    }
    double sum = 0, total = 0;
    #pragma omp parallel for reduction(+ : sum, total)
    for (long n = 0; n < nodes; n++) {
        sum += s.node_mass[n] * dot(s.x[n], s.x[n]);
        total += s.node_mass[n];
    }
    finish(&s);
    return sum / total;
}
