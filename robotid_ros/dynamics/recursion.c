/*
 * Copyright 2026 robotid_ros maintainers
 *
 * Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
 * the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
 *
 * Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
 * "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
 * specific language governing permissions and limitations under the License.
 */

/*
 * Inverse dynamics and regressor (recursion.py) of any serial arm, LANES samples at once.
 * The arm comes as one array of doubles, packed by recursion.py; joints and links are those of chain.py. The
 * Python modules say where the formulas come from.
 */
#include <stdlib.h>

#include "codegen/lanes.h"
#if LANES == 1
#include "codegen/one_sample.h"
#endif

enum {
    PER_JOINT = 16,    /* revolute, rotation by rows, offset, slide */
    PER_COLUMN = 21,   /* of how many columns it is made, their numbers and weights */
    STREAMED = 1 << 20 /* so many numbers bypass the caches, which they would fill */
};

typedef struct {
    long n;
    int coupled;
    const double *start, *joints, *inertial, *coupling, *rotor, *damping, *friction, *to_link;
} Arm;

typedef struct {
    vec w[3], dw[3], a[3], u[3][3], origin[3], cosine, sine;
} Motion;

static Arm unpack(const double *packed)
{
    const long n = (long)packed[0];
    Arm arm = {n, packed[1] != 0.0, packed + 2, packed + 5, 0, 0, 0, 0, 0, 0};
    arm.inertial = arm.joints + PER_JOINT * n;
    arm.coupling = arm.inertial + 10 * n;
    arm.rotor = arm.coupling + n * n;
    arm.damping = arm.rotor + n;
    arm.friction = arm.damping + n;
    arm.to_link = arm.friction + n;
    return arm;
}

static long packed_size(const double *packed)
{
    const long n = (long)packed[0];
    return unpack(packed).to_link + 10 * PER_COLUMN * n - packed;
}

/* Samples s, s + 1, ... of one array, a row of LANES for each joint; the last sample fills what is missing. */
static inline void load(const double *from, long s, long count, long n, vec *to)
{
    for (long lane = 0; lane < LANES; ++lane) {
        const double *row = from + (s + lane < count ? s + lane : count - 1) * n;
        for (long i = 0; i < n; ++i) {
            to[i][lane] = row[i];
        }
    }
}

/* Chain coordinates from measured ones. */
static void couple(const Arm *arm, const vec *measured, vec *chain)
{
    for (long k = 0; k < arm->n; ++k) {
        vec total = {0};
        for (long i = 0; i < arm->n; ++i) {
            total += arm->coupling[k * arm->n + i] * measured[i];
        }
        chain[k] = total;
    }
}

/* Chain coordinates of samples s, s + 1, ...: those measured, where no drive is coupled. */
static inline void motion_at(
    const Arm *arm, long s, long count, const double *const *from, vec measured[3][arm->n], vec moved[3][arm->n],
    const vec **x)
{
    for (int part = 0; part < 3; ++part) {
        load(from[part], s, count, arm->n, measured[part]);
        x[part] = measured[part];
        if (arm->coupled) {
            couple(arm, measured[part], moved[part]);
            x[part] = moved[part];
        }
    }
}

static inline void turn(vec *x, vec cosine, vec sine)
{
    const vec first = cosine * x[0] + sine * x[1];
    x[1] = cosine * x[1] - sine * x[0];
    x[0] = first;
}

static inline void rotate(const double *r, const vec *x, vec *result) /* R x */
{
    for (int i = 0; i < 3; ++i) {
        result[i] = r[3 * i] * x[0] + r[3 * i + 1] * x[1] + r[3 * i + 2] * x[2];
    }
}

static inline void rotate_back(const double *r, const vec *x, vec *result) /* R^T x */
{
    for (int i = 0; i < 3; ++i) {
        result[i] = r[i] * x[0] + r[3 + i] * x[1] + r[6 + i] * x[2];
    }
}

static inline void add_cross(const vec *a, const vec *b, vec *sum)
{
    sum[0] += a[1] * b[2] - a[2] * b[1];
    sum[1] += a[2] * b[0] - a[0] * b[2];
    sum[2] += a[0] * b[1] - a[1] * b[0];
}

/* Motion of link k in its aligned frame, from that of the link before. */
static inline void step(const Arm *arm, long k, vec q, vec dq, vec ddq, const Motion *before, Motion *link)
{
    const double *joint = arm->joints + PER_JOINT * k, *rotation = joint + 1;
    vec a[3];
    for (int i = 0; i < 3; ++i) {
        link->origin[i] = splat(joint[10 + i]) + joint[13 + i] * q;
        a[i] = before->a[i];
    }
    for (int i = 0; i < 3; ++i) {
        for (int j = 0; j < 3; ++j) {
            a[i] += before->u[i][j] * link->origin[j];
        }
    }
    rotate_back(rotation, before->w, link->w);
    rotate_back(rotation, before->dw, link->dw);
    rotate_back(rotation, a, link->a);
    if (joint[0] != 0.0) {
        sine_cosine(q, &link->sine, &link->cosine);
        turn(link->w, link->cosine, link->sine);
        turn(link->dw, link->cosine, link->sine);
        turn(link->a, link->cosine, link->sine);
        link->dw[0] += link->w[1] * dq;
        link->dw[1] -= link->w[0] * dq;
        link->dw[2] += ddq;
        link->w[2] += dq;
    } else {
        link->cosine = splat(1.0);
        link->sine = splat(0.0);
        link->a[0] += 2.0 * link->w[1] * dq;
        link->a[1] -= 2.0 * link->w[0] * dq;
        link->a[2] += ddq;
    }
    const vec x = link->w[0], y = link->w[1], z = link->w[2];
    const vec xx = x * x, yy = y * y, zz = z * z, xy = x * y, xz = x * z, yz = y * z;
    link->u[0][0] = -(yy + zz);
    link->u[1][1] = -(xx + zz);
    link->u[2][2] = -(xx + yy);
    link->u[0][1] = xy - link->dw[2];
    link->u[1][0] = xy + link->dw[2];
    link->u[0][2] = xz + link->dw[1];
    link->u[2][0] = xz - link->dw[1];
    link->u[1][2] = yz - link->dw[0];
    link->u[2][1] = yz + link->dw[0];
}

static inline Motion at_rest(const Arm *arm)
{
    Motion base;
    memset(&base, 0, sizeof base);
    for (int i = 0; i < 3; ++i) {
        base.a[i] = splat(arm->start[i]);
    }
    return base;
}

static inline void add_wrench(const double *pi, const Motion *link, vec *force, vec *moment)
{
    const double tensor[9] = {pi[0], pi[1], pi[2], pi[1], pi[3], pi[4], pi[2], pi[4], pi[5]};
    const double *first = pi + 6;
    vec momentum[3], change[3];
    rotate(tensor, link->w, momentum);
    rotate(tensor, link->dw, change);
    for (int i = 0; i < 3; ++i) {
        force[i] += pi[9] * link->a[i] + link->u[i][0] * first[0] + link->u[i][1] * first[1] + link->u[i][2] * first[2];
        moment[i] += change[i];
    }
    add_cross(link->w, momentum, moment);
    const vec lever[3] = {splat(first[0]), splat(first[1]), splat(first[2])};
    add_cross(lever, link->a, moment);
}

/* q, dq, ddq and tau have shape (count, n). */
void recursion_torque(long count, const double *packed, const double *q, const double *dq, const double *ddq, double *tau)
{
    const Arm arm = unpack(packed);
    const long n = arm.n;
    const Motion base = at_rest(&arm);
    Motion link[n];
    vec measured[3][n], moved[3][n], torque[n];
    for (long s = 0; s < count; s += LANES) {
        const vec *x[3];
        motion_at(&arm, s, count, (const double *[]){q, dq, ddq}, measured, moved, x);
        for (long k = 0; k < n; ++k) {
            step(&arm, k, x[0][k], x[1][k], x[2][k], k ? &link[k - 1] : &base, &link[k]);
        }
        vec force[3] = {{0}, {0}, {0}}, moment[3] = {{0}, {0}, {0}};
        for (long k = n - 1; k >= 0; --k) {
            const double *joint = arm.joints + PER_JOINT * k;
            add_wrench(arm.inertial + 10 * k, &link[k], force, moment);
            torque[k] = joint[0] != 0.0 ? moment[2] : force[2];
            vec f[3], m[3];
            turn(force, link[k].cosine, -link[k].sine);
            turn(moment, link[k].cosine, -link[k].sine);
            rotate(joint + 1, force, f);
            rotate(joint + 1, moment, m);
            add_cross(link[k].origin, f, m);
            memcpy(force, f, sizeof f);
            memcpy(moment, m, sizeof m);
        }
        const long rest = count - s < LANES ? count - s : LANES;
        for (long i = 0; i < n; ++i) {
            vec total = torque[i];
            if (arm.coupled) {
                total = splat(0.0);
                for (long k = 0; k < n; ++k) {
                    total += arm.coupling[k * n + i] * torque[k];
                }
            }
            total += arm.rotor[i] * measured[2][i] + arm.damping[i] * measured[1][i];
            if (arm.friction[i] != 0.0) {
                total += arm.friction[i] * sign_of(measured[1][i]);
            }
            for (long lane = 0; lane < rest; ++lane) {
                tau[(s + lane) * n + i] = total[lane];
            }
        }
    }
}

/* The ten columns of link k for the screw (angular, linear) of a joint; see symbolic_regressor.py. */
static inline void columns_of(const Motion *link, const vec *z, const vec *v, vec *column)
{
    const vec wx = link->w[0], wy = link->w[1], wz = link->w[2];
    const vec ax = link->dw[0], ay = link->dw[1], az = link->dw[2];
    const vec gx = link->a[0], gy = link->a[1], gz = link->a[2];
    const vec xy = wx * wy, xz = wx * wz, yz = wy * wz;
    column[0] = z[0] * ax + z[1] * xz - z[2] * xy;
    column[1] = z[0] * (ay - xz) + z[1] * (ax + yz) + z[2] * (wx * wx - wy * wy);
    column[2] = z[0] * (az + xy) + z[1] * (wz * wz - wx * wx) + z[2] * (ax - yz);
    column[3] = z[1] * ay - z[0] * yz + z[2] * xy;
    column[4] = z[0] * (wy * wy - wz * wz) + z[1] * (az - xy) + z[2] * (ay + xz);
    column[5] = z[0] * yz - z[1] * xz + z[2] * az;
    for (int j = 0; j < 3; ++j) {
        column[6 + j] = v[0] * link->u[0][j] + v[1] * link->u[1][j] + v[2] * link->u[2][j];
    }
    column[6] += z[2] * gy - z[1] * gz;
    column[7] += z[0] * gz - z[2] * gx;
    column[8] += z[1] * gx - z[0] * gy;
    column[9] = v[0] * gx + v[1] * gy + v[2] * gz;
}

/* A link's column in its link frame, from those in its aligned frame: how many terms, and of each column and weight. */
static inline vec combined(const double *terms, const vec *column)
{
    const double *end = terms + 1 + 2 * (long)terms[0];
    vec sum = {0};
    for (const double *term = terms + 1; term < end; term += 2) {
        sum += term[1] * column[(long)term[0]];
    }
    return sum;
}

/*
 * The wanted columns of the full regressor, rows of shape (count, n, width). chosen: width, whether each link's frame
 * is its aligned frame (n), and for each column of the full regressor (inertial, then rotor inertia, viscous, Coulomb
 * and offset, n each) its place among the wanted ones, or -1.
 */
void recursion_regressor(
    long count, const double *packed, const double *chosen, const double *q, const double *dq, const double *ddq,
    double *rows)
{
    const Arm arm = unpack(packed);
    const long n = arm.n, width = (long)chosen[0], size = n * width;
    const double *aligned = chosen + 1, *place = aligned + n;
    vec measured[3][n], moved[3][n], angular[n][3], linear[n][3], column[n][10], made[n];
#if LANES == 1
    vec *restrict row = (vec *)rows; /* one sample is its own row */
#else
    vec *restrict row = aligned_alloc(sizeof(vec), 2 * size * sizeof(vec)); /* too large for the stack where joints are many */
    if (row == NULL) {
        for (long k = 0; k < count * size; ++k) {
            rows[k] = NAN;
        }
        return;
    }
    double *samples = (double *)(row + size);
#endif
    memset(row, 0, size * sizeof(vec)); /* a link does not act on the joints behind it: those zeros stay */
    for (long s = 0; s < count; s += LANES) {
        const vec *x[3];
        motion_at(&arm, s, count, (const double *[]){q, dq, ddq}, measured, moved, x);
        Motion link = at_rest(&arm);
        for (long k = 0; k < n; ++k) {
            const Motion before = link;
            const double *joint = arm.joints + PER_JOINT * k;
            step(&arm, k, x[0][k], x[1][k], x[2][k], &before, &link);
            for (long i = 0; i < k; ++i) {
                vec z[3], v[3];
                memcpy(v, linear[i], sizeof v);
                add_cross(angular[i], link.origin, v);
                rotate_back(joint + 1, angular[i], z);
                rotate_back(joint + 1, v, linear[i]);
                turn(z, link.cosine, link.sine);
                turn(linear[i], link.cosine, link.sine);
                memcpy(angular[i], z, sizeof z);
            }
            for (int j = 0; j < 3; ++j) {
                angular[k][j] = splat(j == 2 && joint[0] != 0.0 ? 1.0 : 0.0);
                linear[k][j] = splat(j == 2 && joint[0] == 0.0 ? 1.0 : 0.0);
            }
            for (long i = 0; i <= k; ++i) {
                columns_of(&link, angular[i], linear[i], column[i]);
            }
            for (long c = 0; c < 10; ++c) {
                const long at = (long)place[10 * k + c];
                if (at < 0) {
                    continue;
                }
                const double *terms = arm.to_link + PER_COLUMN * (10 * k + c);
                for (long i = 0; i <= k; ++i) {
                    made[i] = aligned[k] != 0.0 ? column[i][c] : combined(terms, column[i]);
                    row[i * width + at] = made[i];
                }
                for (long i = 0; i < n && arm.coupled; ++i) {
                    vec sum = {0};
                    for (long j = 0; j <= k; ++j) {
                        sum += arm.coupling[j * n + i] * made[j];
                    }
                    row[i * width + at] = sum;
                }
            }
        }
        for (long i = 0; i < n; ++i) {
            const vec drives[4] = {measured[2][i], measured[1][i], sign_of(measured[1][i]), splat(1.0)};
            for (long d = 0; d < 4; ++d) {
                const long at = (long)place[(10 + d) * n + i];
                if (at >= 0) {
                    row[i * width + at] = drives[d];
                }
            }
        }
#if LANES > 1
        if (count - s >= LANES && !(STREAMS && count * size >= STREAMED)) {
            store_samples(row, rows + s * size, size);
        } else {
            store_samples(row, samples, size);
            stream(samples, rows + s * size, size * (count - s < LANES ? count - s : LANES));
        }
#endif
    }
#if LANES > 1
    finish_stream();
    free(row);
#endif
}

#if LANES == 1
/* One sample; the constants are the packed arm, and for the regressor the chosen columns behind it. */
static void sample_torque(const double *q, const double *dq, const double *ddq, const double *constants, double *tau)
{
    recursion_torque(1, constants, q, dq, ddq, tau);
}

static void sample_regressor(const double *q, const double *dq, const double *ddq, const double *constants, double *rows)
{
    recursion_regressor(1, constants, constants + packed_size(constants), q, dq, ddq, rows);
}

FROM_PYTHON(sample_torque)
FROM_PYTHON(sample_regressor)
#endif
