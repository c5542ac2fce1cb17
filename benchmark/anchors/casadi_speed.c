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

/* Inverse dynamics one sample at a time: C from CasADi and from robotid_ros, rounds taking turns on the same states. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { STATES = 1000, ROUNDS = 301 };

int casadi_recursion(const double **given, double **made, long long *integers, double *work, int memory);
void robotid_inverse_dynamics(
    const double q[N], const double dq[N], const double ddq[N], const double coefficients[], double tau[N]);
void robotid_default_inverse_dynamics(const double q[N], const double dq[N], const double ddq[N], double tau[N]);
extern const double robotid_default_coefficients[];

static double at[3][STATES][N], tau[3][STATES][N], work[100000];

static void call(int which, int k)
{
    const double *given[] = {at[0][k], at[1][k], at[2][k]};
    double *made[] = {tau[which][k]};
    if (which == 0) {
        casadi_recursion(given, made, NULL, work, 0);
    } else if (which == 1) {
        robotid_inverse_dynamics(given[0], given[1], given[2], robotid_default_coefficients, made[0]);
    } else {
        robotid_default_inverse_dynamics(given[0], given[1], given[2], made[0]);
    }
}

static int ascending(const void *a, const void *b)
{
    return (*(const double *)a > *(const double *)b) - (*(const double *)a < *(const double *)b);
}

static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

int main(void)
{
    static double times[3][ROUNDS];
    double error = 0.0;
    srand(1);
    for (int k = 0; k < 3 * STATES * N; ++k) {
        (&at[0][0][0])[k] = 6.0 * rand() / RAND_MAX - 3.0;
    }
    for (int round = 0; round < ROUNDS; ++round) {
        for (int which = 0; which < 3; ++which) {
            const double start = seconds();
            for (int k = 0; k < STATES; ++k) {
                call(which, k);
            }
            times[which][round] = 1e9 * (seconds() - start) / STATES;
        }
    }
    for (int k = 0; k < STATES * N; ++k) {
        error = fmax(error, fabs((&tau[1][0][0])[k] - (&tau[0][0][0])[k]));
        error = fmax(error, fabs((&tau[2][0][0])[k] - (&tau[0][0][0])[k]));
    }
    for (int which = 0; which < 3; ++which) {
        qsort(times[which], ROUNDS, sizeof(double), ascending);
    }
    printf(
        "{\"error\": %.3g, \"casadi\": %.1f, \"robotid\": %.1f, \"folded\": %.1f}\n", error, times[0][ROUNDS / 2],
        times[1][ROUNDS / 2], times[2][ROUNDS / 2]);
    return 0;
}
