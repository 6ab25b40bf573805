/* Energies of many poses of a small molecule in the pocket of a large one: steric repulsion, hydrogen bonds or charges,
   and desolvation, each with its own cut-off, as empirical scoring functions have them. A pose is three angles and a
   shift; poses are independent and run as a worksharing loop, in blocks whose coordinates stay in registers and cache. */

#include <math.h>

typedef struct { double x, y, z; int kind; } atom;
typedef struct { int bonds; double radius, hydrophobic, charge; } kind;      /* bonds: 0 none, 1 gives, 2 takes, 3 charged */

#define BLOCK 16
#define HARD 38.0
#define FAR 4.0
#define BOND 1.0

static void rotation(const double *pose, double r[3][4]) {
    double sx = sin(pose[0]), cx = cos(pose[0]), sy = sin(pose[1]), cy = cos(pose[1]), sz = sin(pose[2]), cz = cos(pose[2]);
    r[0][0] = cy * cz, r[0][1] = sx * sy * cz - cx * sz, r[0][2] = cx * sy * cz + sx * sz, r[0][3] = pose[3];
    r[1][0] = cy * sz, r[1][1] = sx * sy * sz + cx * cz, r[1][2] = cx * sy * sz - sx * cz, r[1][3] = pose[4];
    r[2][0] = -sy, r[2][1] = sx * cy, r[2][2] = cx * cy, r[2][3] = pose[5];
}

static double steric(double distance, double touching) {                     /* zero at contact, steep below */
    double apart = distance - touching;
    return apart < 0 ? (1 - distance / touching) * 2 * HARD : 0;
}

static double polar(const kind *a, const kind *b, double distance, double touching) {
    if (a->bonds == 0 || b->bonds == 0) return 0;
    int charged = a->bonds == 3 && b->bonds == 3;
    double reach = charged ? FAR : BOND, beyond = distance - touching;
    if (beyond > reach) return 0;
    double strength = a->charge * b->charge;
    if (!charged) {
        if (a->bonds == b->bonds) return 0;                                  /* two that give, or two that take */
        strength = -fabs(strength);
    }
    return strength * (beyond < 0 ? 1 : 1 - beyond / reach);
}

static double desolvation(const kind *a, const kind *b, double distance, double touching) {
    double sum = a->hydrophobic + b->hydrophobic;
    int mixed = a->hydrophobic * b->hydrophobic < 0;
    double reach = mixed ? 5.5 : 2.75, beyond = distance - touching;
    if (beyond > reach) return 0;
    double near = mixed ? 0.5 * fabs(sum) : -fabs(sum);
    return near * (beyond < 0 ? 1 : 1 - beyond / reach);
}

static double pair(const kind *a, const kind *b, double dx, double dy, double dz) {
    double distance = sqrt(dx * dx + dy * dy + dz * dz), touching = a->radius + b->radius;
    return steric(distance, touching) + polar(a, b, distance, touching) + desolvation(a, b, distance, touching);
}

static void block_of_poses(const double *poses, long count, const atom *ligand, long ligands, const atom *pocket,
                           long pockets, const kind *kinds, double *energies) {
    double r[BLOCK][3][4], sum[BLOCK];
    for (long p = 0; p < count; p++) {
        rotation(poses + 6 * p, r[p]);
        sum[p] = 0;
    }
    for (long i = 0; i < ligands; i++) {
        double x[BLOCK], y[BLOCK], z[BLOCK];
        const atom *a = &ligand[i];
        for (long p = 0; p < count; p++) {
            x[p] = r[p][0][0] * a->x + r[p][0][1] * a->y + r[p][0][2] * a->z + r[p][0][3];
            y[p] = r[p][1][0] * a->x + r[p][1][1] * a->y + r[p][1][2] * a->z + r[p][1][3];
            z[p] = r[p][2][0] * a->x + r[p][2][1] * a->y + r[p][2][2] * a->z + r[p][2][3];
        }
        for (long j = 0; j < pockets; j++) {
            const atom *b = &pocket[j];
            for (long p = 0; p < count; p++)
                sum[p] += pair(&kinds[a->kind], &kinds[b->kind], x[p] - b->x, y[p] - b->y, z[p] - b->z);
        }
    }
    for (long p = 0; p < count; p++) energies[p] = 0.5 * sum[p];
}

/* poses[n][6] -> energies[n] */
void docking(const double *poses, const atom *ligand, const atom *pocket, const kind *kinds, double *energies, long n,
             long ligands, long pockets, long kind_count) {
    (void)kind_count;
    #pragma omp parallel for schedule(dynamic, 1)
    for (long first = 0; first < n; first += BLOCK) {
        long count = n - first < BLOCK ? n - first : BLOCK;
        block_of_poses(poses + 6 * first, count, ligand, ligands, pocket, pockets, kinds, energies + first);
    }
}

/* The energy that a temperature makes of all poses: a smooth minimum. */
double free_energy(const double *poses, const atom *ligand, const atom *pocket, const kind *kinds, double *energies,
                   double temperature, long n, long ligands, long pockets, long kind_count) {
    docking(poses, ligand, pocket, kinds, energies, n, ligands, pockets, kind_count);
    double least = energies[0], sum = 0;
    #pragma omp parallel for reduction(min : least)
    for (long p = 0; p < n; p++) if (energies[p] < least) least = energies[p];
    #pragma omp parallel for reduction(+ : sum)
    for (long p = 0; p < n; p++) sum += exp((least - energies[p]) / temperature);
    return least - temperature * log(sum / n);
}
